//! For users of Global Arrays: the equivalent of each call, and the differences.
//!
//! The tables list all operations of GA's C interface (version 5.8), and others that large programs call (in quantum chemistry, power
//! grids and subsurface flow). Each has its equivalent, which rustdoc's search finds by GA's name, or the reason why it is not here.
//! `NGA_`, `GA_` and `…64` variants count as one. `a`, `b` and `c` are arrays, `job` is the job, `group` a group. The job is the world
//! group; pass it wherever a group is expected. An operation that takes an array also takes a patch of one, `a.at(s![..])`; an
//! operation that changes an array can also change a patch, `a.at_mut(s![..])`.
//!
//! # Eight differences
//!
//! 1. **Nothing is global.** There is no default group and no implicit state, so the meaning of a call like `GA_Nodeid` cannot change:
//!    you pass the group explicitly. A job is a value. A program may run several, one after the other.
//! 2. **Ranges are half open, start at zero, and slower axes come first**, as in ndarray. GA's `lo = {2, 0}, hi = {4, 9}` is
//!    `s![2..5, 0..10]`. Fortran's one-based `(i, j)` of an `n × m` array becomes `[j - 1, i - 1]` of an `m × n` array. Or keep the order
//!    of axes and create the array with `Order::ColumnMajor` parts; patches do not depend on this order. There is no `ld[]`, because a
//!    view knows its strides.
//! 3. **Local access is an epoch**, not a pointer. `NGA_Access` may be called while others put. An epoch cannot run then: the compiler
//!    and the agreements at its start and end prevent it. An epoch is collective. Replace a lone `NGA_Access` with a `get` or a `put`,
//!    or with `load` and `store` for single elements, which cost a few nanoseconds where memory is mapped.
//! 4. **Errors are values.** The library does not print a message and abort. Wrong bounds and shapes, lack of memory and a lost rank
//!    are an [`Error`](crate::Error) with the array's name and the numbers. Where `GA_Create` returns 0, the error says how many bytes
//!    were needed and how many there are.
//! 5. **Types are checked.** An array of `f64` cannot be read as `i32`. Any plain struct can be an element, without registration.
//! 6. **Lengths have 64 bits everywhere.** There are no `64` variants.
//! 7. **Collectives are compared.** If ranks call different collectives, or with different arguments, they get an error that says
//!    which rank is in which call. GA hangs or corrupts data.
//! 8. **Less setup.** No rank is reserved for communication, a job may have a single rank, there is no second allocator (`MA_init`),
//!    and nothing is left behind in `/dev/shm`.
//!
//! # Start and end
//!
//! | GA | here | notes |
//! |---|---|---|
//! | `MPI_Init`, `GA_Initialize`, `GA_Initialize_args` … `GA_Terminate`, `MPI_Finalize` | [`run`](crate::run)`(\|job\| { … })` | the ranks run the closure. Over shared memory `run` forks them, so call it before anything starts threads |
//! | the same in a program that cannot put all in one closure | [`Launch::start`](crate::Launch::start) … [`job.finish()`](crate::Job::finish) | for ranks that exist: under `ga-run`, `mpirun`, `srun`, or one alone. It never forks |
//! | `GA_Initialize_comm` | `Launch::run_on`, `Launch::start_on` with the feature `mpi` | a job on a communicator of the program |
//! | `GA_Initialized` | not here, because a job is a value | a `&Job` exists only while its job runs |
//! | `mpirun -n 8` | `mpirun -n 8`, or without a launcher `GA_RANKS=8` or [`Launch::ranks`](crate::Launch::ranks) | several machines need the feature `mpi` |
//! | `GA_Initialize_ltd`, `GA_Set_memory_limit` | `GA_MEMORY`, [`Launch::memory`](crate::Launch::memory) | for all ranks on a machine together |
//! | `GA_Memory_limited` | not here, because memory is always limited | [`Error::OutOfMemory`](crate::Error::OutOfMemory) names the limit that binds |
//! | `GA_Memory_avail`, `GA_Inquire_memory` | [`Job::memory`](crate::Job::memory) | |
//! | `GA_Print_stats` | `GA_STATS=1`, [`Launch::stats`](crate::Launch::stats), [`Job::stats`](crate::Job::stats) | by peer and kind; for one phase, subtract with `since` |
//! | `GA_Uses_ma`, `GA_Register_stack_memory`, `MA_init`, `MA_push_get`, … | not here, because local memory is Rust's | |
//! | `GA_Getmem`, `GA_Freemem` | not here, because memory that ranks share is an array | a [`GlobalArray1`](crate::GlobalArray1) |
//! | `GA_Uses_fapi` | not here, because there is one interface | it counts from zero |
//! | `GA_Set_debug`, `GA_Get_debug` | not here, because no switch is needed: arguments are always checked | `GA_TRACE` writes a trace |
//! | `GA_Nodeid`, `GA_Nnodes` | `job.rank()`, `job.size()` | |
//! | `GA_Cluster_nodeid`, `GA_Cluster_nprocs`, `GA_Cluster_procid` | [`Job::node`](crate::Job::node), [`Job::node_ranks`](crate::Job::node_ranks) | |
//! | `GA_Cluster_nnodes`, `GA_Cluster_proc_nodeid` | `job.nodes()`, `job.node_of(rank)` | also on a group, whose members they count and take |
//! | `GA_List_nodeid` | `group.ranks()` | the ranks in the job of a group's members |
//! | `GA_MPI_Comm`, `GA_MPI_Comm_pgroup`, `GA_MPI_Comm_pgroup_default` | `group.mpi_comm()` with the feature `mpi` | a new communicator of the group's members, for libraries that take one |
//! | `GA_Error` | return an `Err` from the body, or panic | ends the job on all ranks, with rank and cause, and a non-zero exit status |
//! | `GA_Wtime` | `job.now()` | the virtual time of a simulated network, else real time |
//!
//! # Creating and asking
//!
//! | GA | here | notes |
//! |---|---|---|
//! | `NGA_Create` with `chunk`, `NGA_Create_config` with a group | [`GlobalArray::builder`](crate::GlobalArray::builder)`(job, [n, m]).min_block([64, 64]).create()` | an edge that equals the extent keeps an axis whole; for GA's −1 leave `min_block` out, or give 1 for that axis |
//! | `NGA_Create_irreg`, `NGA_Create_irreg_config`, `GA_Set_irreg_distr` | `.irregular(cuts)` | for each axis a `Vec` of cuts, ascending from 0 |
//! | `GA_Set_irreg_flag` | not here, because `.irregular(cuts)` is enough | |
//! | `GA_Create_handle`, `GA_Set_data`, `GA_Set_chunk`, `GA_Set_array_name`, `GA_Set_pgroup`, `GA_Allocate` | `GlobalArray::<T, D>::builder(group, extents)` … `.name("H")` … `.create()` | the builder fixes type and extents; nothing exists before `create` |
//! | `GA_Set_block_cyclic_proc_grid` | `.block_cyclic([64, 64]).grid([2, 2])` | ScaLAPACK's map on a row-major grid; the part has the order and leading dimension that ScaLAPACK expects |
//! | `GA_Set_block_cyclic` | `.block_cyclic(..)` without `.grid(..)` | dealt along each axis of a grid, not round-robin through the block numbers |
//! | `GA_Set_tiled_proc_grid`, `GA_Set_tiled_irreg_proc_grid` | `.tiled([64, 64]).grid([2, 2])`, `.tiled_irregular(cuts).grid([2, 2])` | each tile is contiguous; `.grid(..)` may be left out |
//! | `GA_Set_restricted`, `GA_Set_restricted_range` | `.restrict([0, 4])`, `.restrict(2..6)` | for any layout; queries take it into account |
//! | `NGA_Create_ghosts`, `NGA_Create_ghosts_config`, `NGA_Create_ghosts_irreg`, `NGA_Create_ghosts_irreg_config`, `GA_Set_ghosts` | `.ghosts([1, 1])` | any widths, even wider than blocks. `.boundaries([Boundary::Open, Boundary::Periodic])`; by default all are periodic, as in GA |
//! | `GA_Set_ghost_corner_flag` | `.corners(false)` | |
//! | `GA_Has_ghosts` | `a.distribution().ghosts()` | |
//! | `GA_Pgroup_get_mirror` | [`a.freeze_on_nodes()`](crate::GlobalArray::freeze_on_nodes) | a copy on each node, which nobody writes; [by hand](super::cookbook#keep-data-on-each-node) for data of each node |
//! | `GA_Is_mirrored`, `GA_Merge_mirrored`, `NGA_Merge_distr_patch` | not here, because copies on nodes cannot be written and need no merging | add up with `accumulate` into the array itself |
//! | `GA_Set_property` | `"read_only"`: [`a.freeze()`](crate::GlobalArray::freeze); `"read_cache"`: `frozen.cached(patch)` | the compiler refuses a write |
//! | `GA_Unset_property` | `frozen.thaw()` | |
//! | `GA_Set_memory_dev` | not here, because arrays lie in ordinary memory only | |
//! | `NGA_Register_type` | derive `bytemuck::Pod` | implement [`Additive`](crate::Additive) for arithmetic; GA has none for such types |
//! | `NGA_Deregister_type` | not here, because types need no registration | |
//! | `GA_Duplicate` | `a.duplicate("name")` | contents are not copied, as in GA |
//! | `GA_Assemble_duplicate` | not here, because all memory of arrays is the library's | create the array and copy into its part, in an epoch |
//! | `GA_Destroy` | drop it, or `a.destroy()` | dropping is local: a later creation in the same group reuses the memory. `destroy` is collective and frees it now |
//! | `GA_Deallocate` | not here, because an array has its memory as long as it exists | destroy it, and create it again |
//! | `GA_Overlay` | not here, because an array has memory of its own | a creation reuses that of arrays that were dropped in the same group |
//! | `GA_Check_handle`, `GA_Verify_handle`, `GA_Valid_handle` | not here, because an array that exists is valid | if it outlives its job, its methods return `Err` |
//! | `NGA_Inquire`, `GA_Inquire_name`, `GA_Ndim`, `GA_Get_dimension` | `a.shape()`, `a.name()`, `a.ndim()` | the last two are the number of axes |
//! | `GA_Get_pgroup`, `GA_Get_pgroup_size` | `a.group()`, `group.size()` | |
//! | `NGA_Distribution(g_a, p, lo, hi)` | `a.blocks(p)` | an iterator, for every distribution; a regular array has at most one block for each member |
//! | `NGA_Locate` | `a.owner([i, j])` | |
//! | `NGA_Locate_region`, `NGA_Locate_nnodes` | [`a.distribution().pieces(&patch)`](crate::distribution::Distribution::pieces) | each piece names its member and lies in one part |
//! | `NGA_Locate_num_blocks` | not here, because `pieces` merges blocks of one owner | count those of `a.blocks(p)` that meet the patch |
//! | `GA_Get_block_info`, `GA_Total_blocks` | `a.distribution().block_shape()`, the lengths of `a.blocks(p)` | the shape is `None` if blocks differ |
//! | `GA_Get_proc_grid`, `GA_Nblock` | `a.distribution().grid()` | the members along each axis, which are the blocks of a regular or irregular array |
//! | `GA_Get_proc_index`, `NGA_Proc_topology` | not here, because it is arithmetic | members lie on the grid in row-major order |
//! | `GA_Uses_proc_grid` | `a.distribution().kind()` | here every array has a grid |
//! | `GA_Compare_distr` | `a.distribution().fingerprint()` | compare the two numbers; local |
//!
//! # Moving data
//!
//! | GA | here | notes |
//! |---|---|---|
//! | `NGA_Get` | `a.get_into(s![2..5, ..], &mut view)` | directly into a view with any strides; `a.get(patch)` allocates |
//! | `NGA_Put` | `a.put(s![2..5, ..], &view)` | returns when the view may be reused, as in GA |
//! | `NGA_Acc` | `a.accumulate(patch, alpha, &view)` | all integers, floats and complex numbers; atomic for each element against other accumulates |
//! | `NGA_NbGet`, `NGA_NbWait` | `let handle = a.get_nb(patch)?; … let buffer = handle.wait()?` | the transfer owns the buffer until `wait`; any number may be in flight |
//! | `NGA_NbPut`, `NGA_NbAcc` | `a.put_nb(patch, array)`, `a.accumulate_nb(patch, alpha, array)` | take an owned array. To lend a buffer: `job.scope(\|s\| …)`, which ends when all its transfers have |
//! | `NGA_NbTest` | `handle.test()` | |
//! | `NGA_Gather`, `NGA_Scatter`, `NGA_Scatter_acc`, `NGA_Gather_flat`, `NGA_Scatter_flat`, `NGA_Scatter_acc_flat` | `a.gather(&subscripts, &mut values)`, `a.scatter(&subscripts, &values)`, `a.scatter_accumulate(&subscripts, alpha, &values)` | also `a.scatter_op(&subscripts, FetchOp::Xor, &values)`, atomic on integers, and `a.gather_plan(&subscripts)` for lists that are read again, both of which GA lacks |
//! | `NGA_Alloc_gatscat_buf`, `NGA_Free_gatscat_buf` | not here, because lists need no buffers that are set aside | |
//! | `NGA_Get_field`, `NGA_Put_field`, `NGA_Nbget_field`, `NGA_Nbput_field` | not here, because elements move as a whole | an array for each field, or another axis |
//! | `NGA_Strided_get`, `NGA_Strided_put`, `NGA_Strided_acc` | `a.get(s![0..100;3, ..])` | a step in the patch; negative ones walk backwards, as in ndarray |
//! | `NGA_Periodic_get`, `NGA_Periodic_put`, `NGA_Periodic_acc` | `a.periodic().get_into([-2..5, 0..n + 1], &mut view)`, `….put(..)`, `….accumulate(..)` | indices may wrap around any number of times |
//! | `NGA_Read_inc` | `a.fetch_add([i], 1)` | the element's full width; GA cuts the increment to 32 bits. Also `fetch_op`, `swap`, `compare_exchange` |
//! | a task counter by `NGA_Read_inc`, *nxtval* | [`Counter`](crate::Counter)`::new(job)?`, then `while let Some(task) = tasks.next_below(n)? { … }` | |
//! | `NGA_Access`, `NGA_Release` | `a.read_epoch(\|part, reader\| …)` | collective; see difference 3. `reader.get_into` reads other members' parts meanwhile |
//! | `NGA_Access`, `NGA_Release_update` | `a.owner_epoch(\|mut part\| …)` | collective; several arrays at once: `job.epoch((x.owned_mut(), f.owned()), \|(mut x, f)\| …)` |
//! | `NGA_Access` as it is | `unsafe { a.access()? }` | unchecked: you guarantee that no rank accesses the part from this call to the last use. There is nothing to release; others see what you wrote after a sync, a signal or a lock |
//! | `GA_Update_ghosts`, `ga_update5_ghosts` | `a.update_ghosts()` | collective; syncs at start and end |
//! | `NGA_Update_ghost_dir` | `a.update_ghosts_at(axis, Side::Low)` | |
//! | `NGA_Update_ghosts_nb` | `let update = a.update_ghosts_nb()?; … update.wait()?` | |
//! | `NGA_NbGet_ghost_dir` | not here, because `update_ghosts_nb` starts all directions together | |
//! | `NGA_Access_ghosts`, `NGA_Release_ghosts`, `NGA_Get_ghost_block` | `job.epoch(a.ghosts(), \|part\| …)` | the epoch updates the ghost cells when it starts; `part.view()` includes them, `part.interior()` does not |
//! | `NGA_Access_ghosts`, `NGA_Release_update_ghosts` | `job.epoch(a.ghosts_mut(), \|mut part\| …)` | writable, not updated; for boundary values |
//! | `NGA_Access_ghost_element`, `NGA_Release_ghost_element` | `part.cells().near(index, [-1, 0])` | a neighbor of an element, in such an epoch |
//! | `NGA_Release_update_ghost_element` | `part.view_mut()[..]` | in an epoch of `a.ghosts_mut()` |
//! | `NGA_Access_block_grid`, `NGA_Access_block`, `NGA_Access_block_segment`; `NGA_Release_block_grid`, `NGA_Release_block`, `NGA_Release_block_segment`, `NGA_Release_update_block_grid`, `NGA_Release_update_block`, `NGA_Release_update_block_segment` | inside an epoch `part.blocks()` and `part.block(&block)` or `part.block_mut(&block)`; the whole segment is `part.as_mut_slice()` | `part.leading_dimension()` is ScaLAPACK's LLD |
//!
//! # Synchronizing
//!
//! | GA | here | notes |
//! |---|---|---|
//! | `GA_Sync`, `GA_Pgroup_sync` | `job.sync()`, `group.sync()` | a fence of everything that members issued, and a barrier. If a transfer failed, the sync fails on all members |
//! | `ga_msg_sync` | `group.barrier()` | completes nothing |
//! | `GA_Fence` | `a.fence()`, `group.fence(member)` | for one array or one target |
//! | `GA_Init_fence` | not here, because a fence needs no beginning | |
//! | `GA_Mask_sync` | `job.unsynced(\|\| { … })` | operations on arrays in the closure share the sync at its end; those that need elements of other members still sync |
//! | `GA_Create_mutexes`, `GA_Lock`, `GA_Unlock` | [`Locks`](crate::Locks)`::with_count(job, n)?`, `let guard = locks.lock(k)?` | any number of sets, and distinct locks. (GA 5.9.2 computes a lock's location from the number of locks instead of the lock's index, so all locks are one.) Dropping the guard releases the lock; the next holder sees the last one's writes |
//! | `GA_Destroy_mutexes` | drop the [`Locks`](crate::Locks) | |
//! | – | [`Signal`](crate::Signal), `a.put_signal(patch, &view, signal.at(member, index))` | the data are visible before the signal |
//!
//! # Groups
//!
//! | GA | here | notes |
//! |---|---|---|
//! | `GA_Pgroup_create` | `group.subgroup(&[0, 2, 4])`, `group.subgroup_range(0..6, 2)` | collective over those members only |
//! | `GA_Pgroup_split_irreg` | `group.split(color)` | to reorder members: `group.split_ordered(color, key)` |
//! | `GA_Pgroup_split` into `n` groups | `group.split(group.member() * n / group.size())` | groups of groups to any depth |
//! | `GA_Pgroup_self`, `GA_Pgroup_duplicate` | `group.subgroup(&[group.member()])`, `group.split(0)` | |
//! | `GA_Pgroup_destroy` | drop it | |
//! | `GA_Pgroup_get_default`, `GA_Pgroup_set_default`, `GA_Pgroup_get_world` | not here, because there is no default group | pass `&group` or `job` |
//! | `GA_Pgroup_nodeid`, `GA_Pgroup_nnodes` | `group.member()`, `group.size()` | |
//! | `GA_Pgroup_absolute_id` | `group.rank_of(member)` | the other way: `group.member_of(rank)` |
//! | `GA_Brdcst`, `GA_Pgroup_brdcst` | `group.broadcast(root, &mut data)` | of what one member computes or reads, with its failure: `group.from_member(0, \|\| ..)` |
//! | `GA_Gop`, `GA_Igop`, `GA_Lgop`, `GA_Llgop`, `GA_Fgop`, `GA_Dgop`, `GA_Cgop`, `GA_Zgop`; `GA_Pgroup_igop`, `GA_Pgroup_lgop`, `GA_Pgroup_llgop`, `GA_Pgroup_fgop`, `GA_Pgroup_dgop`, `GA_Pgroup_cgop`, `GA_Pgroup_zgop` | `group.all_reduce(&mut data, ops::sum)` | a function in [`ops`](crate::ops), or any closure of two elements; bitwise equal results on all members. Also `reduce`, `gather`, `all_gather`, `all_to_all`, their forms for lists of any lengths (`all_to_all_v`, …) and `exclusive_scan`, which GA lacks |
//!
//! # Whole arrays and patches
//!
//! All of these are collective and sync at start and end, or [share one sync](crate::Group::unsynced). Arrays used together must belong to the same ranks; their distributions may
//! differ.
//!
//! | GA | here | notes |
//! |---|---|---|
//! | `GA_Zero`, `GA_Fill`, `NGA_Fill_patch`, `NGA_Zero_patch` | `a.zero()`, `a.fill(x)`, `a.at_mut(patch).fill(x)` | at creation: `.zeros()`, `.fill(x)` |
//! | `GA_Copy` | `b.assign(&a)` | the target always comes first |
//! | `NGA_Copy_patch` | `b.at_mut(patch).assign(a.at(a_patch))`, transposed: `a.at(a_patch).t()` | patches of equal shape, after a single index has removed its axis: `x.assign(a.at(s![3, ..]))`; of another shape: `assign_reshaped`; within one array: `a.copy_within(from, to)` |
//! | `GA_Scale`, `NGA_Scale_patch` | `a.scale(alpha)`, `a.at_mut(patch).scale(alpha)` | |
//! | `GA_Add`, `NGA_Add_patch` | `c.assign_sum(alpha, &a, beta, &b)`, `c.at_mut(patch).assign_sum(alpha, a.at(..), beta, b.at(..))` | `c` must differ from `a` and `b`; in place, use `c.axpby(alpha, &a, beta)` or `c.scaled_add(alpha, &a)` |
//! | `GA_Add_constant`, `GA_Add_constant_patch` | `a.add_constant(x)`, `a.at_mut(patch).add_constant(x)` | |
//! | `GA_Idot`, `GA_Ldot`, `GA_Lldot`, `GA_Fdot`, `GA_Ddot`, `GA_Cdot`, `GA_Zdot`; `NGA_Idot_patch`, `NGA_Ldot_patch`, `NGA_Lldot_patch`, `NGA_Fdot_patch`, `NGA_Ddot_patch`, `NGA_Cdot_patch`, `NGA_Zdot_patch` | `a.dot(&b)`, `a.at(patch).dot(b.at(b_patch))` | transposed: `b.at(b_patch).t()` |
//! | `GA_Norm_infinity`, `GA_Norm1` | `a.norm_infinity()`, `a.norm_1()` | also `norm_frobenius`, `max_abs`, `sum`, and `reduce`, `map_reduce`, `map_reduce_indexed` with closures; of patches: `a.at(patch).sum()` |
//! | `NGA_Select_elem` | `a.argmin()`, `a.argmax()` | of equal elements the first in row-major order; NaN precedes all others |
//! | `GA_Elem_multiply` | `c.assign_product(&a, &b)` | in place: `c.zip_with(&a, \|c, a\| c * a)` |
//! | `GA_Abs_value`, `GA_Recip`, `GA_Abs_value_patch`, `GA_Recip_patch` | `a.map(\|x\| 1.0 / x)`, `a.at_mut(patch).map(..)` | any closure; `map_indexed` also passes the index |
//! | `GA_Elem_divide`, `GA_Elem_maximum`, `GA_Elem_minimum`, `GA_Elem_multiply_patch`, `GA_Elem_divide_patch`, `GA_Elem_maximum_patch`, `GA_Elem_minimum_patch` | `c.assign_zip(&a, &b, f64::max)`, `c.at_mut(patch).assign_zip(..)` | any closure; in place `zip_with` and `zip_with2` |
//! | `GA_Median`, `GA_Median_patch` | `m.assign(&a)`, then `m.zip_with2(&b, &c, \|a, b, c\| …)` | |
//! | `GA_Randomize` | `a.map(\|_\| generator.random())` | a generator of your choice, with a seed of its own on each rank |
//! | `GA_Patch_enum` | `a.at_mut(s![lo..hi]).map_indexed(\|i, _\| start + i * inc)` | the index counts from the patch's first element |
//! | `GA_Step_max`, `GA_Step_max_patch`, `GA_Step_bound_info`, `GA_Step_bound_info_patch` | not here, because a few calls do it | `t.assign_zip(&a, &b, ..)`, then `t.reduce(f64::INFINITY, f64::min)` |
//! | `GA_Scan_add`, `GA_Scan_copy`, `GA_Pack`, `GA_Unpack` | not here, because no program that we know calls them | of one value for each member: `group.exclusive_scan(..)` |
//! | `GA_Transpose` | `b.assign(a.t())` | conjugated: `a.h()` |
//! | `GA_Symmetrize` | `a.symmetrize()` | in place; NWChem's `ga_antisymmetrize` is `a.antisymmetrize()` |
//! | `GA_Sgemm`, `GA_Dgemm`, `GA_Cgemm`, `GA_Zgemm`, `NGA_Matmul_patch` | `c.matmul(alpha, &a, &b, beta)`, `c.at_mut(patch).matmul(alpha, a.at(..), b.at(..), beta)` | transposes: `a.t()`; needs no external BLAS; the feature `blas` uses one. With a vector: `y.matvec(alpha, &a, &x, beta)` |
//! | `GA_Get_diag`, `GA_Set_diagonal`, `GA_Zero_diagonal`, `GA_Add_diagonal`, `GA_Shift_diagonal` | `a.diagonal()`, `a.set_diagonal(..)`, `a.add_diagonal(..)`, `a.shift_diagonal(x)` | NWChem's `ga_trace_diag` is `a.trace()` |
//! | `GA_Scale_rows`, `GA_Scale_cols` | `a.scale_rows(..)`, `a.scale_cols(..)` | |
//! | `GA_Print`, `GA_Print_file`, `NGA_Print_patch` | `a.print()`, `a.at(patch).print()`; to any writer: `write_to(&mut out)` | collective; the group's first member writes |
//! | `GA_Summarize`, `GA_Print_distribution` | `a.summary()` | local |
//!
//! # Eigenvalues and linear systems
//!
//! The elements are real or complex, in single or double precision. Eigenvalues need the feature `blas` or `faer`; see [`linalg`](crate::linalg).
//!
//! | GA | here | notes |
//! |---|---|---|
//! | `GA_Diag_std`, `GA_Diag_std_seq`, `ga_pdsyev`, `ga_pdsyevd`, `ga_pdsyevr`, `ga_pdsyevx`, `ga_pzheevd`, `ga_pzheevr` | `h.eigh()`, `h.eigh_of(Spectrum::Lowest(k))` | member 0 calls LAPACK or faer by all cores of its node |
//! | `GA_Diag`, `GA_Diag_reuse`, `GA_Diag_seq`, `ga_pdsygv` | `s.cholesky()?.eigh(&h)` | keep the factor to use it again |
//! | `GA_Solve`, `GA_Lu_solve`, `ga_lu_solve_seq` | `a.lu()?.solve(&b)` | GA's `GA_Solve` tries Cholesky first; here you choose |
//! | `GA_Llt_solve`, `ga_llt_i`, `GA_Spd_invert` | `s.cholesky()?.solve(&b)`, `.inverse()` | |
//!
//! ScaLAPACK and ELPA work on the parts of a matrix in place; see [the cookbook](super::cookbook#call-scalapack-or-elpa).
//!
//! | GA | here | notes |
//! |---|---|---|
//! | `ga_to_SL`, `ga_to_SL2`, `ga_from_SL`, `ga_from_SL2` | `a.scalapack()`, and the part in an epoch | nothing is copied: create the array block-cyclic and in column-major order |
//!
//! # What is not there
//!
//! | GA | here | notes |
//! |---|---|---|
//! | sparse arrays (`…sprs_array_…`) | [`SparseMatrix`](crate::SparseMatrix): `from_triplets`, `matvec`, `rows` | products with vectors, none of two sparse matrices |
//! | disk resident arrays: `DRA_Create`, `NDRA_Create`, `DRA_Open`, `DRA_Write`, `NDRA_Write_section`, `DRA_Read`, `NDRA_Read_section`, `DRA_Close` | `DiskArray::create`, `open`, `put`, `get`, `accumulate`, `write`, `read`, `close`; `a.save(..)`, `a.read(..)` | any member at any time, or collective between disk and memory; [formats](crate::guide::files) |
//! | shared files (SF), exclusive access files (EAF) | not here, because `std::os::unix::fs::FileExt` has `read_at` and `write_at` | |
//! | global pointer arrays (GP) | not here, because no program that we know uses them | |
//! | networks | shared memory and MPI | see [the crate's page](crate#conduits-and-features) |
