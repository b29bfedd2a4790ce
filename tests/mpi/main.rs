//! What only a job under MPI can be asked: the network that it picks, the number of ranks, whose communicator it is, what other
//! libraries do on one, and which library the launcher belongs to.

mod communicators;
#[path = "../runner/mod.rs"]
mod runner;
mod scalapack;

use std::{process::ExitCode, time::Duration};

use global_arrays::{Bootstrap, prelude::*};
use mpi::{
    Threading,
    topology::SimpleCommunicator,
    traits::{Communicator, CommunicatorCollectives},
};
use rustix::thread::sched_getaffinity;

fn main() -> ExitCode {
    runner::main(vec![
        runner::case("mpi::is_chosen_by_itself", chosen).ranks(3),
        runner::case("mpi::ranks_are_the_launchers", counted).ranks(3),
        runner::case("mpi::jobs_on_communicators_of_the_program", communicators::of_the_program).ranks(4),
        runner::case("mpi::communicators_of_groups", communicators::of_groups).ranks(5),
        runner::case("mpi::jobs_that_start_on_communicators", communicators::starts).ranks(6),
        runner::case("mpi::two_threads_do_not_wait_for_each_other", threads).ranks(2),
        runner::case("mpi::ranks_of_another_network_meet_by_it", of_another_network).ranks(9),
        runner::case("mpi::ranks_of_shared_memory_meet_by_it", of_shared_memory).ranks(3),
        runner::case("mpi::a_rank_of_another_network_fails", || ends(3, "fails_over_another_network", "rank 1", false)),
        runner::program("fails_over_another_network", fails_over_another_network),
        runner::case("mpi::one_rank_alone", chosen_alone).ranks(1),
        runner::case("mpi::settings_of_ranks_differ", different_settings).ranks(3),
        runner::case("mpi::a_program_goes_on_after_a_failed_job", || ends(3, "goes_on", "goes on", true)),
        runner::program("goes_on", goes_on),
        runner::case("mpi::cores_are_given_back", cores_come_back).ranks(2),
        runner::case("mpi::a_transfer_that_takes_too_long", || ends(2, "waits_too_long", "the words of rank 0", false)),
        runner::case("mpi::exit_between_jobs", || ends(3, "exits_between_jobs", "", false)),
        runner::program("waits_too_long", waits_too_long),
        runner::program("exits_between_jobs", exits_between_jobs),
        runner::case("mpi::long_and_strided_transfers_keep_their_order", order_of_long_transfers).ranks(2),
        runner::case("mpi::a_get_that_was_given_up_holds_nobody", || ends(2, "gives_a_get_up", "ends well", true)),
        runner::program("gives_a_get_up", gives_a_get_up),
        runner::case("mpi::scalapack_on_one_rank", || scalapack::of_all([1, 1])).ranks(1),
        runner::case("mpi::scalapack_on_two_ranks", || scalapack::of_all([2, 1])).ranks(2),
        runner::case("mpi::scalapack_on_three_ranks", || scalapack::of_all([1, 3])).ranks(3),
        runner::case("mpi::scalapack_on_four_ranks_of_five", || scalapack::of_all([2, 2])).ranks(5),
        runner::case("mpi::elpa_on_one_rank", || scalapack::by_elpa([1, 1])).ranks(1),
        runner::case("mpi::elpa_on_two_ranks", || scalapack::by_elpa([2, 1])).ranks(2),
        runner::case("mpi::elpa_on_four_ranks_of_five", || scalapack::by_elpa([2, 2])).ranks(5),
        runner::case("mpi::transfers_beyond_2_gib", beyond_2_gib).ranks(2),
        runner::case("mpi::a_launcher_of_another_library", another_library),
        runner::case("mpi::jobs_between_nodes_end", jobs_end).within(600),
        runner::program("works_between_nodes", works_between_nodes),
        runner::program("says_its_size", || {
            if let Err(error) = run(|job| job.sync()) {
                eprintln!("Error: {error}");
                std::process::exit(1);
            }
        }),
    ])
}

/// What every job here does: each rank puts into its neighbour's element, and the sum is right.
fn turn(job: &Job) -> Result<(), Error> {
    let (rank, size) = (job.rank(), job.size());
    let a = GlobalArray::<u64, Ix1>::builder(job, [size]).zeros().create()?;
    a.put(s![(rank + 1) % size..=(rank + 1) % size], &Array1::from_elem(1, rank as u64 + 1))?;
    job.sync()?;
    assert_eq!(a.get(..)?.sum(), (size * (size + 1) / 2) as u64);
    job.sync()
}

fn chosen() {
    let body = |job: &Job| {
        assert_eq!((job.network(), job.size()), ("mpi", 3));
        turn(job)
    };
    run(body).expect("a job under MPI");
    // What a program names goes before.
    Launch::new().network("threads").ranks(2).run(|job| job.sync()).expect("a job of threads");
}

/// Where all ranks share memory, `ib` needs no adapter. MPI goes on behind it.
fn of_another_network() {
    for network in ["ib", "ib", "mpi"] {
        let body = |job: &Job| {
            assert_eq!((job.network(), job.size()), (network, 9));
            turn(job)
        };
        Launch::new().network(network).run(body).expect("a job that MPI's launcher started");
    }
    // They learn alike that they cannot start, and may go on.
    let refusal = Launch::new().network("ib").ranks(2).run(turn).expect_err("not the launcher's number").to_string();
    assert!(refusal.contains("2 ranks were asked for") && refusal.contains("started 9"), "{refusal}");
    Launch::new().network("ib").run(turn).expect("a job of the same processes");
}

fn of_shared_memory() {
    let body = |job: &Job| {
        assert_eq!((job.network(), job.size()), ("shared_memory", 3));
        turn(job)
    };
    Launch::new().network("shared_memory").bootstrap(Bootstrap::Mpi).run(body).expect("a job that MPI's launcher started");
    let refusal = Launch::new().network("ib").bootstrap(Bootstrap::Pmi).run(turn).expect_err("MPI's launcher").to_string();
    assert!(refusal.contains("GA_BOOTSTRAP=mpi"), "{refusal}");
}

fn fails_over_another_network() {
    let ended = Launch::new().network("ib").run(|job| {
        job.sync()?;
        if job.rank() == 1 {
            std::process::exit(3);
        }
        job.sync()
    });
    if let Err(error) = ended {
        eprintln!("Error: {error}");
        std::process::exit(1);
    }
}

fn chosen_alone() {
    let body = |job: &Job| {
        assert_eq!((job.network(), job.size()), ("mpi", 1));
        turn(job)
    };
    run(body).expect("a job of one rank");
}

fn counted() {
    let refusal = Launch::new().ranks(2).run(turn).expect_err("not the launcher's number").to_string();
    assert!(refusal.contains("2 ranks were asked for") && refusal.contains("started 3"), "{refusal}");
    Launch::new().ranks(3).run(turn).expect("the launcher's number");
}

/// Whichever thread of a rank polls finds what the other one waits for. How soon the other looks is a unit test's.
fn threads() {
    const GETS: usize = 20_000;
    let body = |job: &Job| {
        let a = GlobalArray::<u64, Ix1>::builder(job, [2]).fill(7).create()?;
        let gets = || (0..GETS).for_each(|_| assert_eq!(a.get(s![1..2]).expect("a get")[0], 7));
        if job.rank() == 0 {
            std::thread::scope(|scope| {
                let other = scope.spawn(gets);
                gets();
                other.join().expect("the other thread");
            });
        }
        job.sync()
    };
    Launch::new().ranks_per_node(1).run(body).expect("a job of two nodes");
}

/// The program's MPI is its own: it is used, and finalised, after a job in which one rank gave up with transfers under way.
fn goes_on() {
    let (universe, _) = mpi::initialize_with_threading(Threading::Multiple).expect("the first use of MPI");
    let world: SimpleCommunicator = universe.world();
    let body = |job: &Job| {
        let n = 1 << 20;
        let a = GlobalArray::<u8, Ix1>::builder(job, [3 * n]).zeros().create()?;
        job.sync()?;
        let _under_way = a.get_nb(s![2 * n..])?;
        if job.rank() == 1 { Err(Error::other("gives up")) } else { job.sync() }
    };
    let failure = Launch::new().ranks_per_node(1).run_on(&world, body).expect_err("a rank gave up").to_string();
    assert!(failure.contains("rank 1") && failure.contains("gives up"), "{failure}");
    world.barrier();
    drop((world, universe));
    println!("goes on");
}

/// A thread that runs a job has the cores that it had.
fn cores_come_back() {
    let cores = || sched_getaffinity(None).expect("the cores of this thread");
    let before = cores();
    run(turn).expect("a job under MPI");
    assert_eq!(cores(), before);
}

/// A rank that is stopped answers nobody; the buffer of who gives up waiting is its own again, and the error an error.
fn waits_too_long() {
    let body = |job: &Job| {
        let n = 1 << 20;
        let a = GlobalArray::<u8, Ix1>::builder(job, [2 * n]).zeros().create()?;
        job.sync()?;
        if job.rank() == 1 {
            let stop = format!("kill -STOP {0}; sleep 6; kill -CONT {0}", std::process::id());
            let stopper = std::process::Command::new("sh").args(["-c", &stop]).spawn();
            stopper.expect("a shell").wait().expect("its end");
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(500));
        // Its bytes have left this buffer, if not the process.
        a.accumulate(s![n..], 1, &Array1::ones(n))?;
        let late = a.get_into(s![n..;2], &mut Array1::zeros(n / 2)).expect_err("nobody answers").to_string();
        assert!(late.contains("GA_TIMEOUT") && late.contains("get"), "{late}");
        for bytes in [8, n] {
            let mut buffer = Array1::<u8>::zeros(bytes);
            let late = a.get_into(s![n..n + bytes], &mut buffer).expect_err("nobody answers").to_string();
            assert!(late.contains("GA_TIMEOUT") && late.contains("get"), "{late}");
        }
        Err(Error::other("the words of rank 0"))
    };
    let failure = Launch::new().ranks_per_node(1).timeout(1.0).run(body).expect_err("rank 0 gave up");
    eprintln!("Error: {failure}");
    std::process::exit(1);
}

/// Who exits with an error waits for nobody, and is no reason for others to wait.
fn exits_between_jobs() {
    let mut rank = 0;
    let number = std::sync::Mutex::new(&mut rank);
    run(|job| {
        **number.lock().expect("one thread") = job.rank();
        turn(job)
    })
    .expect("the first job");
    if rank == 1 {
        std::process::exit(7);
    }
    let _ = run(turn);
    unreachable!("the launcher ends the others");
}

/// A program under the launcher ends soon, says `words` and does not abort.
fn ends(ranks: usize, name: &str, words: &str, well: bool) {
    let output = runner::scratch();
    let mut launcher = runner::launched::start(ranks, name, &[], &output);
    let status = runner::finish_before(&mut launcher, Duration::from_secs(30));
    let said = runner::text(&output);
    let Some(status) = status else {
        runner::launched::end(&mut launcher);
        panic!("still running:\n{said}");
    };
    assert_eq!(status.success(), well, "{said}");
    assert!(said.contains(words) && !said.contains("aborted:") && !said.contains("panicked"), "{said}");
}

/// Strided and accumulated bytes go through the target's hands, a long contiguous put does not; it comes after them all the same.
fn order_of_long_transfers() {
    let n = 100_000;
    let body = |job: &Job| {
        let a = GlobalArray::<f64, Ix1>::builder(job, [2 * n]).zeros().create()?;
        job.sync()?;
        if job.rank() == 0 {
            let ones = Array1::from_elem(n / 2, 1.0);
            for (turn, len) in [8192, 65_536, 8192, 100_000, 30_000].repeat(10).into_iter().enumerate() {
                let new = Array1::from_elem(len, turn as f64 + 2.0);
                match turn % 3 {
                    0 => a.put(s![n..;2], &ones)?,
                    1 => a.accumulate(s![n..;2], 1.0, &ones)?,
                    _ => a.put(s![n..n + len], &(&new + 1.0))?,
                }
                a.put(s![n..n + len], &new)?;
                assert_eq!(a.get(s![n..n + len])?, new, "turn {turn}");
            }
        }
        job.sync()
    };
    Launch::new().ranks_per_node(1).run(body).expect("a job of two nodes");
}

/// A get whose target did not answer in time is an error of its caller, once; the job goes on, and later gets bring what is there.
fn gives_a_get_up() {
    let body = |job: &Job| {
        let n = 1 << 20;
        let a = GlobalArray::<u8, Ix1>::builder(job, [2 * n]).zeros().create()?;
        job.sync()?;
        if job.rank() == 1 {
            let stop = format!("kill -STOP {0}; sleep 5; kill -CONT {0}", std::process::id());
            let stopper = std::process::Command::new("sh").args(["-c", &stop]).spawn();
            stopper.expect("a shell").wait().expect("its end");
        } else {
            std::thread::sleep(Duration::from_millis(300));
            for bytes in [n, 8] {
                let late = a.get_into(s![n..n + bytes], &mut Array1::<u8>::zeros(bytes));
                assert!(late.expect_err("nobody answers").to_string().contains("GA_TIMEOUT"));
            }
            std::thread::sleep(Duration::from_millis(1300));
            a.put(s![n..], &Array1::from_elem(n, 7))?;
            assert!(a.get(s![n..])?.iter().all(|&x| x == 7));
        }
        job.sync()
    };
    Launch::new().ranks_per_node(1).timeout(2.0).run(body).unwrap_or_else(|error| panic!("{error}"));
    println!("ends well");
}

/// Counts of MPI are numbers of 32 bits: a contiguous transfer and a strided one of more bytes, between two nodes.
fn beyond_2_gib() {
    const ROWS: usize = (1 << 20) + 3;
    const COLUMNS: usize = 2056;
    if !runner::long() {
        runner::skip("needs GA_TEST_LONG=1: it takes 10 GiB of memory");
    }
    let value = |row: usize, column: usize| (row.wrapping_mul(31) ^ row >> 9 ^ column) as u8;
    let body = |job: &Job| {
        assert_eq!(job.node(), job.rank());
        let a = GlobalArray::<u8, Ix2>::builder(job, [2 * ROWS, COLUMNS]).grid([2, 1]).create()?;
        if job.rank() == 0 {
            let mut buffer = Array2::from_shape_fn([ROWS, COLUMNS], |(row, column)| value(row, column));
            assert!(buffer.len() > 1 << 31);
            // All rows of the other rank: one run. Then all but a column: as many runs as rows.
            for columns in [0..COLUMNS, 1..COLUMNS] {
                let mut part = buffer.slice_mut(s![.., columns.clone()]);
                a.put(s![ROWS.., columns.clone()], part.view())?;
                part.fill(0);
                a.get_into(s![ROWS.., columns.clone()], part.view_mut())?;
                assert!(part.indexed_iter().all(|((row, column), &x)| x == value(row, column + columns.start)));
            }
            a.accumulate(s![ROWS.., ..], 1, buffer.view())?;
            a.get_into(s![ROWS.., ..], buffer.view_mut())?;
            assert!(buffer.indexed_iter().all(|((row, column), &x)| x == value(row, column).wrapping_mul(2)));
        }
        job.sync()
    };
    Launch::new().heap(4 << 30).ranks_per_node(1).run(body).expect("a job of two nodes");
}

/// As where a launcher does not hand on the environment to all machines.
fn different_settings() {
    let (universe, _) = mpi::initialize_with_threading(Threading::Multiple).expect("the first use of MPI");
    let world: SimpleCommunicator = universe.world();
    let last = world.rank() == 2;
    let launches = [
        ("GA_RANKS_PER_NODE", if last { Launch::new().ranks_per_node(1) } else { Launch::new() }),
        ("GA_STATS", Launch::new().stats(last)),
    ];
    for (name, launch) in launches {
        let refusal = launch.run_on(&world, turn).expect_err("not the same on all").to_string();
        assert!(refusal.contains("rank 2 has another") && refusal.contains(name), "{refusal}");
    }
    Launch::new().run_on(&world, turn).expect("a job");
}

/// A job whose work is done ends, also where its ranks are connected by a network: MPI's own end is no reason to wait forever, and
/// what is printed late is seen.
fn jobs_end() {
    let starts = if runner::long() { [(2, 60), (4, 60)] } else { [(2, 8), (4, 4)] };
    // As on separate machines: each library's ways inside one are closed.
    let apart = [
        ("GA_RANKS_PER_NODE", "1"),
        ("MPIR_CVAR_NOLOCAL", "1"),
        ("UCX_TLS", "tcp,self"),
        ("OMPI_MCA_pml", "ob1"),
        ("OMPI_MCA_btl", "self,tcp"),
    ];
    for (ranks, count) in starts {
        for start in 0..count {
            let output = runner::scratch();
            let mut launcher = runner::launched::start(ranks, "works_between_nodes", &apart, &output);
            let status = runner::finish_before(&mut launcher, Duration::from_secs(20));
            if status.is_none() {
                runner::launched::end(&mut launcher);
            }
            let said = runner::text(&output);
            let status = status.unwrap_or_else(|| panic!("start {start} of {ranks} ranks is still running:\n{said}"));
            assert!(status.success(), "start {start} of {ranks} ranks: {status}\n{said}");
            for words in ["work is done", "the last words"] {
                assert_eq!(said.matches(words).count(), ranks, "start {start} of {ranks} ranks: {words:?}\n{said}");
            }
        }
    }
}

fn works_between_nodes() {
    let n = 1 << 17;
    let body = |job: &Job| {
        let (rank, size) = (job.rank(), job.size());
        let a = GlobalArray::<f64, Ix1>::builder(job, [size * n]).zeros().create()?;
        job.sync()?;
        for turn in 1..=20 {
            let other = (rank + turn) % size;
            a.put(s![other * n..(other + 1) * n], &Array1::from_elem(n, rank as f64))?;
            job.sync()?;
            let from = (rank + size - turn % size) % size;
            assert!(a.get(s![rank * n..(rank + 1) * n])?.iter().all(|&x| x == from as f64));
            job.sync()?;
        }
        Ok::<_, Error>(())
    };
    run(body).expect("a job between nodes");
    println!("work is done");
    // Where output is a file or a pipe the C library writes it when the process ends.
    // SAFETY: a text that ends by zero.
    unsafe { libc::puts(c"the last words".as_ptr()) };
}

fn another_library() {
    let own = runner::launched::launcher();
    let other = if own.contains("mpich") { "mpirun.openmpi" } else { "mpirun.mpich" };
    if !own.contains("mpirun.") || std::process::Command::new(other).arg("--version").output().is_err() {
        runner::skip("needs Debian's launchers of two libraries");
    }
    let output = runner::scratch();
    let mut launcher = runner::launched::start_by(other, 2, "says_its_size", &[], &output);
    let status = runner::finish_before(&mut launcher, Duration::from_secs(20));
    let said = runner::text(&output);
    let Some(status) = status else {
        runner::launched::end(&mut launcher);
        panic!("still running:\n{said}");
    };
    assert!(!status.success(), "{said}");
    assert!(said.contains("Error: cannot start a job") && said.contains("another MPI"), "{said}");
    assert!(!said.contains("panicked"), "{said}");
}
