//! Jobs on communicators of the program, and communicators of groups.

use global_arrays::{Bootstrap, Meeting, prelude::*};
use mpi::{
    Threading,
    datatype::PartitionMut,
    topology::{Color, SimpleCommunicator},
    traits::{Communicator, CommunicatorCollectives},
};

use super::turn;

/// Halves of the processes run jobs of their own, twice, while the program's own messages are under way.
pub(crate) fn of_the_program() {
    let (universe, threading) = mpi::initialize_with_threading(Threading::Multiple).expect("the first use of MPI");
    assert_eq!(threading, Threading::Multiple);
    let world: SimpleCommunicator = universe.world();
    let rank = world.rank();
    let half = world.split_by_color(Color::with_value(rank % 2)).expect("a colour was named");
    for round in 0..2 {
        let body = |job: &Job| {
            assert_eq!((job.size(), job.rank()), (2, rank as usize / 2));
            // Both jobs are running, and the program uses MPI meanwhile.
            world.barrier();
            turn(job)?;
            let mut all = [0; 4];
            world.all_gather_into(&(10 * round + rank), &mut all);
            assert_eq!(all, [0, 1, 2, 3].map(|other| 10 * round + other));
            turn(job)
        };
        Launch::new().run_on(&half, body).expect("a job of half the processes");
        // The others go on without.
        if rank % 2 == 0 {
            Launch::new().run_on(&half, turn).expect("a job of one half alone");
        }
        world.barrier();
    }
    Launch::new().run_on(&world, turn).expect("a job of all");
    drop((half, world));
    drop(universe);
    let late = Launch::new().network("mpi").run(turn).expect_err("MPI has ended").to_string();
    assert!(late.contains("finalised"), "{late}");
}

/// Members and processes are the same, in the same order, whatever the network.
fn members_are_processes(job: &Job) -> Result<(), Error> {
    let reversed = job.split_ordered(job.rank() % 2, -(job.rank() as isize))?;
    for group in [&**job, &reversed, &job.node_group()?] {
        let comm = group.mpi_comm()?;
        assert_eq!((comm.rank(), comm.size()), (group.member() as i32, group.size() as i32));
        let mut ranks = vec![0; group.size()];
        comm.all_gather_into(&job.rank(), &mut ranks);
        assert!(group.ranks().eq(ranks));
    }
    turn(job)
}

pub(crate) fn of_groups() {
    for network in ["mpi", "ib", "mpi+hidden"] {
        let launch = Launch::new().network(network).bootstrap(Bootstrap::Mpi);
        launch.run(members_are_processes).unwrap_or_else(|error| panic!("{network}: {error}"));
    }
    // In another order than MPI's, so that only the middle rank is where MPI has it.
    let world = SimpleCommunicator::world();
    struct Reversed(SimpleCommunicator);
    // SAFETY: MPI was initialized for many threads.
    unsafe impl Send for Reversed {}
    impl Meeting for Reversed {
        fn rank(&self) -> usize {
            (self.0.size() - 1 - self.0.rank()) as usize
        }
        fn size(&self) -> usize {
            self.0.size() as usize
        }
        fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
            let count = bytes.len() as i32;
            let mut counts = vec![0; self.size()];
            self.0.all_gather_into(&count, &mut counts);
            let starts: Vec<i32> = counts.iter().scan(0, |start, count| Some(std::mem::replace(start, *start + count))).collect();
            let mut all = vec![0; counts.iter().sum::<i32>() as usize];
            self.0.all_gather_varcount_into(bytes, &mut PartitionMut::new(&mut all[..], &counts[..], &starts[..]));
            Ok(starts
                .iter()
                .zip(&counts)
                .rev()
                .map(|(&start, &count)| all[start as usize..][..count as usize].to_vec())
                .collect())
        }
    }
    let job = Launch::new().start_with(Reversed(world)).expect("a job that meets by MPI");
    let refused = job.mpi_comm().map(drop).expect_err("another order").to_string();
    assert!(refused.contains("MPI's order"), "{refused}");
    turn(&job).and_then(|()| job.finish()).expect("a good end");
    let forked = Launch::new().network("threads").ranks(4).run(|job| job.mpi_comm().map(drop)).expect_err("threads").to_string();
    assert!(forked.contains("not the processes of MPI"), "{forked}");
}

/// Jobs are values; halves of the processes have their own, at the same time.
pub(crate) fn starts() {
    let (universe, _) = mpi::initialize_with_threading(Threading::Multiple).expect("the first use of MPI");
    let world: SimpleCommunicator = universe.world();
    let half = world.split_by_color(Color::with_value(world.rank() % 2)).expect("a colour was named");
    for _ in 0..2 {
        let job = Launch::new().ranks_per_node(1).start_on(&half).expect("a job of half the processes");
        let other = Launch::new().start_on(&half).expect_err("one job at a time").to_string();
        assert!(other.contains("is a rank of a running job"), "{other}");
        world.barrier();
        members_are_processes(&job).and_then(|()| job.finish()).expect("a good end");
    }
    let job = Launch::new().start_on(&world).expect("a job of all");
    if world.rank() == 2 {
        drop(job);
    } else {
        let failure = job.sync().and_then(|()| job.finish()).expect_err("a rank dropped its job").to_string();
        assert!(failure.contains("rank 2 dropped the job without finish"), "{failure}");
    }
    world.barrier();
}
