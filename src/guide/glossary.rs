//! Our terms next to those of GA, ARMCI, MPI and OpenSHMEM.
//!
//! The crate uses one term per concept. A dash means that the other library lacks the concept, or a term for it.
//!
//! # Ranks
//!
//! | here | is | GA | ARMCI | MPI | OpenSHMEM |
//! |---|---|---|---|---|---|
//! | rank | one of the processes (or threads) that run the program's body | process, *nodeid* | process | rank | PE |
//! | [`Job`](crate::Job) | all ranks from their start to their end; a value, not global state | what happens between `GA_Initialize` and `GA_Terminate` | the same for `ARMCI_Init` | session; `MPI_COMM_WORLD` | what happens between `shmem_init` and `shmem_finalize` |
//! | [`Group`](crate::Group) | an ordered set of ranks; arrays and collectives belong to one | process group | group | group with its communicator | team |
//! | member | a rank's number inside a group | *nodeid* in a group | group rank | rank in a communicator | PE number in a team |
//! | node | the ranks that share one machine's memory | cluster node | SMP domain | `MPI_COMM_TYPE_SHARED` | `SHMEM_TEAM_SHARED` |
//! | agent | the first rank of a node, where it answers for all of them | – | data server | – | – |
//! | helper | a thread that the library starts beside a rank's own | – | – | progress thread | – |
//! | conduit | the code that drives one network (a GASNet term) | port | port, ComEx runtime | BTL, netmod | transport |
//!
//! # Where data are
//!
//! | here | is | GA | ARMCI | MPI | OpenSHMEM |
//! |---|---|---|---|---|---|
//! | segment | the memory that a rank exposes to all other ranks | – | what `ARMCI_Malloc` returns | window memory | symmetric heap |
//! | heap | the allocated bytes of a segment; the same offsets on every rank | – | – | – | symmetric heap |
//! | [`GlobalArray`](crate::GlobalArray) | one dense array spread over a group | global array (a handle, `int g_a`) | – | – | – |
//! | distribution | who owns which element | distribution | – | closest: `MPI_Type_create_darray` | – |
//! | owner | the member in whose segment an element lies | owner | owner | target | – |
//! | part | everything that one member owns of an array: one dense local array, or tile after tile; with ghost cells around it, if the array has them | local portion | – | – | – |
//! | block | a box of indices with one owner | block | – | block | – |
//! | tile | a block that is stored separately and contiguously | tile | – | – | – |
//! | restricted | owned by only some members of its group | restricted | – | – | – |
//! | ghost cell | a member's copy of an element next to its block, stored in one array with the block | ghost cell | – | halo cell, ghost point | – |
//! | halo | all ghost cells of a part | ghost cells | – | halo | – |
//! | process grid | members arranged along the axes | processor grid | – | Cartesian topology | – |
//! | patch | a box of an array's indices, optionally with steps | patch (`lo`, `hi`, both included) | – | subarray type | – |
//! | run | the longest stretch of a patch that is contiguous on both sides | – | `count[0]` of a strided call | contiguous block of a vector type | – |
//! | mapped | memory of a peer that plain loads and stores can reach | same SMP node | `ARMCI_Same_node` | shared window | `shmem_ptr` is not null |
//!
//! # Operations
//!
//! | here | is | GA | ARMCI | MPI | OpenSHMEM |
//! |---|---|---|---|---|---|
//! | one-sided | no other rank takes part | one-sided | one-sided | passive target | one-sided |
//! | get | reads a patch | `NGA_Get` | `ARMCI_GetS` | `MPI_Get` | `shmem_get`, `shmem_iget` |
//! | put | writes a patch | `NGA_Put` | `ARMCI_PutS` | `MPI_Put` | `shmem_put`, `shmem_iput` |
//! | accumulate | adds `alpha` times a buffer, atomically for each element | `NGA_Acc` | `ARMCI_AccS` | `MPI_Accumulate` with `MPI_SUM` | – |
//! | gather, scatter | get and put of single elements from a list | `NGA_Gather`, `NGA_Scatter` | `ARMCI_GetV`, `ARMCI_PutV` | indexed types | – |
//! | gather plan | a list whose owners are known; PETSc's `VecScatter` | – | – | – | – |
//! | load, store | get and put of one element | – | `ARMCI_GetValue…`, `ARMCI_PutValue…` | – | `shmem_g`, `shmem_p` |
//! | read-and-increment | adds to an integer, returns the old value | `NGA_Read_inc` | `ARMCI_Rmw` with `FETCH_AND_ADD` | `MPI_Fetch_and_op` | `shmem_atomic_fetch_add` |
//! | compare-and-swap | replaces an integer if it has the expected value | – | – | `MPI_Compare_and_swap` | `shmem_atomic_compare_swap` |
//! | [`Counter`](crate::Counter) | one shared integer that hands out work | a one-element array and `NGA_Read_inc`; *nxtval* | `ARMCI_Rmw` | `MPI_Fetch_and_op` | `shmem_atomic_fetch_inc` |
//! | [`Locks`](crate::Locks) | mutual exclusion among ranks | mutexes | mutexes | `MPI_Win_lock` (of memory, not of code) | `shmem_set_lock` |
//! | [active message](crate::active) | a message whose handler runs at its target, in a call of it | – | GPC | – | – |
//! | [mailbox](crate::mailbox) | messages from anybody, by sender and tag | `SND_`, `RCV_` of TCGMSG | – | `MPI_Send`, `MPI_Recv` | – |
//! | [channel](crate::channel) | slots of a receiver that one sender fills | – | – | `MPI_Send_init`, `MPI_Recv_init` | – |
//! | [`Signal`](crate::Signal) | a count that others raise after their data have arrived | – | `ARMCI_Put_flag`, notify | – | `shmem_put_signal` |
//!
//! # Completion
//!
//! | here | is | GA | ARMCI | MPI | OpenSHMEM |
//! |---|---|---|---|---|---|
//! | local completion | the caller's buffer may be reused; blocking calls return at this point | the same | local completion | `MPI_Win_flush_local` | return of the call |
//! | visible | a get by any rank would see it | remote completion | remote completion | `MPI_Win_flush` | after `shmem_quiet` |
//! | fence | waits until everything that this rank wrote is visible | `GA_Init_fence` … `GA_Fence` | `ARMCI_Fence`, `ARMCI_AllFence` | `MPI_Win_flush`, `MPI_Win_flush_all` (an MPI *fence* is a collective) | `shmem_quiet` (an OpenSHMEM *fence* only orders) |
//! | flush | what a conduit does for a fence, for one target | – | – | `MPI_Win_flush` | – |
//! | barrier | waits for all members; completes nothing | `GA_Msg_sync` | `armci_msg_barrier` | `MPI_Barrier` | `shmem_sync` |
//! | sync | a fence of everything and a barrier | `GA_Sync` | `ARMCI_Barrier` | `MPI_Win_fence` | `shmem_barrier_all` |
//! | agreement | a barrier that also compares a fingerprint of the call; every collective starts with one | – | – | – | – |
//! | epoch | a period in which a rank's part is plain memory for its owner, and no other rank writes it | from `NGA_Access` to `NGA_Release`, but unchecked | – | access or exposure epoch (something else) | – |
//! | collective | all members call it, in the same order, with the same arguments | collective | collective | collective | collective |
