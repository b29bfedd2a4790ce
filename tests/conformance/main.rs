//! One suite for every network: each topic on 1, 2, 3, 4 and 7 ranks, several jobs in a row in one process.

mod algebra;
mod channels;
mod collectives;
mod elements;
mod epochs;
mod ghosts;
mod groups;
mod memory;
mod messages;
mod patches;
#[cfg(feature = "rayon")]
mod pools;
#[path = "../random/mod.rs"]
mod random;
#[path = "../runner/mod.rs"]
mod runner;
mod statistics;
mod sync;

use std::process::ExitCode;

use global_arrays::{Connect, prelude::*};

const RANKS: [usize; 5] = [1, 2, 3, 4, 7];

/// What every rank of a job does.
type Topic = fn(&Job) -> Result<(), Error>;

const TOPICS: &[(&str, Topic)] = &[
    ("patches_of_one_axis", patches::one_axis),
    ("patches_of_two_axes", patches::two_axes),
    ("patches_of_three_axes", patches::three_axes),
    ("patches_of_four_axes", patches::four_axes),
    ("patches_of_five_axes", patches::five_axes),
    ("patches_of_six_axes", patches::six_axes),
    ("patches_of_seven_axes", patches::seven_axes),
    ("patches_of_64_axes", patches::most_axes),
    ("patches_are_named_as_in_ndarray", patches::named_as_in_ndarray),
    ("what_does_not_fit_is_refused", patches::refusals),
    ("patches_beyond_all_bounds_are_refused", patches::beyond_all_bounds),
    ("accumulates_of_all_ranks_add_up", patches::accumulates_add_up),
    ("many_accumulates_add_up", patches::many_accumulates),
    ("long_patches", patches::long_patches),
    ("long_blocks", patches::long_blocks),
    ("elements_of_every_type", elements::every_type),
    ("atomic_operations", elements::atomics),
    ("atomic_operations_of_all_ranks", elements::atomics_of_all_ranks),
    ("accesses_that_race", elements::racing),
    ("lists_of_elements", elements::lists),
    ("lists_accumulate", elements::lists_accumulate),
    ("lists_of_atomic_operations", elements::lists_of_atomics),
    ("owner_epochs", epochs::owner),
    ("read_epochs", epochs::read),
    ("epochs_begin_and_end_with_fences", epochs::fences),
    ("unchecked_access", epochs::access),
    ("epochs_of_several_arrays", epochs::several),
    ("owned_parts_cover_the_array", epochs::cover),
    ("parts_by_the_indices_of_the_array", epochs::by_index),
    ("arrays_in_one_call", epochs::constructors),
    ("epochs_of_groups", epochs::of_groups),
    ("arrays_that_nobody_writes", epochs::frozen),
    ("operations_that_share_a_sync", algebra::unsynced),
    ("conjugates_and_norms_of_patches", algebra::conjugates_and_norms),
    ("sums_along_an_axis", algebra::sums_along_an_axis),
    ("copies_into_another_shape", algebra::reshaped),
    ("copies_within_an_array", algebra::within),
    ("values_for_rows_and_diagonals", algebra::values),
    ("tiles_are_runs_of_memory", epochs::tiles),
    ("ghost_cells_are_updated", ghosts::updates),
    ("ghost_cells_of_one_side", ghosts::by_side),
    ("ghost_cells_without_blocking", ghosts::non_blocking),
    ("ghost_epochs", ghosts::epochs),
    ("cells_by_their_distance", ghosts::cells),
    ("ghost_cells_of_more_axes", ghosts::more_axes),
    ("ghost_cells_that_cannot_be", ghosts::refusals),
    ("periodic_patches", ghosts::periodic_patches),
    ("groups_split", groups::split),
    ("groups_three_deep", groups::three_deep),
    ("groups_of_nodes", groups::of_nodes),
    ("groups_in_another_order", groups::another_order),
    ("groups_know_ranks_and_nodes", groups::places),
    ("arrays_on_groups", groups::arrays),
    ("lists_in_groups_of_opposite_orders", groups::lists_in_groups_of_opposite_orders),
    ("groups_in_a_loop", groups::in_a_loop),
    ("broadcast", collectives::broadcast),
    ("reduce_and_all_reduce", collectives::reduce),
    ("gather_and_all_gather", collectives::gather),
    ("all_to_all", collectives::all_to_all),
    ("lists_of_any_lengths", collectives::lists),
    ("values_of_one_member", collectives::from_member),
    ("collectives_of_structs", collectives::structs),
    ("counters", sync::counters),
    ("locks_exclude", sync::locks_exclude),
    ("locks_hand_over_what_was_put", sync::locks_hand_over),
    ("locks_are_distinct", sync::locks_are_distinct),
    ("signals", sync::signals),
    ("signals_of_patches", sync::signals_of_patches),
    ("signals_of_many", sync::signals_of_many),
    ("fences", sync::fences),
    ("channels_in_a_ring", channels::ring),
    ("channels_of_views", channels::views),
    ("several_channels_of_two_ranks", channels::several),
    ("channels_in_place", channels::in_place),
    ("any_of_several_channels", channels::any),
    ("channels_behind_puts", channels::behind_puts),
    ("channels_of_groups", channels::of_groups),
    ("channels_without_a_partner", channels::refusals),
    ("channels_come_and_go", channels::come_and_go),
    ("messages_of_a_table", messages::table),
    ("messages_with_slices", messages::slices),
    ("messages_of_handlers", messages::handlers_that_send),
    ("messages_behind_puts", messages::behind_puts),
    ("messages_that_cannot_be", messages::refusals),
    ("messages_of_mailboxes", messages::mailbox),
    ("messages_of_groups", messages::of_groups),
    ("arrays_in_a_loop_take_no_more_memory", memory::in_a_loop),
    ("three_hundred_arrays", memory::many_arrays),
    ("arrays_of_groups_come_and_go", memory::in_groups),
    ("arrays_of_groups_lie_apart", memory::groups_that_overlap),
    ("dropped_arrays_are_reclaimed", memory::dropped),
    ("memory_is_used_again_after_its_puts", memory::used_again),
    ("memory_of_dropped_groups_is_used_again_after_its_puts", memory::of_groups_used_again),
    ("memory_of_many_dropped_groups_is_free_again", memory::of_many_groups),
    ("trimming_keeps_what_arrays_hold", memory::trimmed),
    ("a_limit_of_memory_is_an_error", memory::limit),
    #[cfg(feature = "rayon")]
    ("threads_of_a_rank", pools::parallel),
];

/// What the standard tier runs where members of a node are not consecutive.
const OF_PLACES: &[&str] =
    &["groups_split", "groups_three_deep", "groups_in_another_order", "arrays_on_groups", "broadcast", "gather_and_all_gather"];

fn main() -> ExitCode {
    let mut cases = Vec::new();
    for network in runner::networks() {
        for &(name, topic) in TOPICS {
            let body = move || {
                for ranks in runner::ranks(network, &RANKS) {
                    let launch = runner::launch(network).ranks(ranks).memory(1 << 30);
                    launch.run(topic).unwrap_or_else(|error: Error| panic!("{ranks} ranks: {error}"));
                }
            };
            cases.push(runner::case(format!("{network}::{name}"), body).within(120));
        }
        let statistics = move || {
            for ranks in runner::ranks(network, &RANKS) {
                statistics::jobs(network, ranks).unwrap_or_else(|error| panic!("{ranks} ranks: {error}"));
            }
        };
        cases.push(runner::case(format!("{network}::statistics"), statistics).within(120));
        cases.push(runner::case(format!("{network}::more_than_two_billion_elements"), move || memory::huge(network)).within(600));
        cases.push(runner::case(format!("{network}::jobs_in_a_row"), move || jobs_in_a_row(network)));
    }
    cases.extend(launched());
    cases.push(runner::case("processes_after_threads", processes_after_threads));
    cases.push(runner::case("ib:soft::few_connections", few_connections).within(120));
    cases.push(runner::case("ib:soft::connections_are_counted", connections_are_counted).within(120));
    cases.push(runner::case("ib:soft::nodes_are_reached_by_their_agents", nodes_are_reached_by_their_agents).within(120));
    for network in ["threads", "threads:unmapped", "threads:nodes_of_3", "threads:packets+hidden"] {
        let body = move || {
            // Packets of 70 ranks take a minute.
            let few: &[usize] = if network.contains("packets") { &[17, 33] } else { &[17, 70] };
            for ranks in if runner::long() { &[17, 32, 33, 64, 70][..] } else { few } {
                let launch = runner::launch(network).ranks(*ranks).memory(1 << 30);
                let run = launch.run(collectives::all_gather_of_many);
                run.unwrap_or_else(|error: Error| panic!("{ranks} ranks: {error}"));
            }
        };
        cases.push(runner::case(format!("{network}::all_gather_of_many"), body).within(300));
    }
    let many =
        if runner::long() { [("threads", 8192), ("shared_memory", 2048)] } else { [("threads", 1024), ("shared_memory", 512)] };
    for (network, ranks) in many {
        let body = move || groups::of_many_ranks(&Launch::new().network(network).ranks(ranks).heap(1 << 20));
        // A build without optimization takes minutes for 8192.
        cases.push(runner::case(format!("{network}::{ranks}_ranks"), body).within(if runner::long() { 400 } else { 120 }));
    }
    // Not among those of the conduit: no wait is published where a checker has a thread of its own.
    cases.push(runner::case("a_deadlock_among_many", || groups::deadlock_among_many("threads", 1300)).within(120));
    runner::main_together(cases, 2)
}

/// Every topic on each of the numbers of ranks that the tier has; a launcher starts the ranks, so one case cannot have several numbers.
fn launched() -> Vec<runner::Case> {
    let mut cases = Vec::new();
    for (network, ranks) in runner::launched::starts() {
        let case = |name: &str, body: Box<dyn Fn()>| {
            runner::case(format!("{network}::{ranks}_ranks::{name}"), body).ranks(ranks).within(120)
        };
        let is_placed = network.contains("in_turn") && !runner::long();
        for &(name, topic) in TOPICS.iter().filter(|(name, _)| !is_placed || OF_PLACES.contains(name)) {
            let run = move || runner::launch(network).memory(1 << 30).run(topic).unwrap_or_else(|error: Error| panic!("{error}"));
            cases.push(case(name, Box::new(run)));
        }
        let statistics = move || statistics::jobs(network, ranks).unwrap_or_else(|error| panic!("{error}"));
        cases.push(case("statistics", Box::new(statistics)));
    }
    cases
}

/// A job of threads leaves none behind that would keep the next one from forking.
fn processes_after_threads() {
    for round in 0..50 {
        Launch::new().network("threads").ranks(4).run(|job| job.sync()).expect("a job of threads");
        let next = Launch::new().network("shared_memory").ranks(1).run(|job| job.sync());
        next.unwrap_or_else(|error| panic!("after {round} rounds: {error}"));
    }
}

/// With fewer connections than peers, nothing is lost, doubled or late.
fn few_connections() {
    const ROUNDS: u64 = 12;
    /// Of a patch: runs, and words of each.
    const ROWS: usize = 8;
    const RUN: usize = 128;
    for connections in [1, 2] {
        let body = |job: &Job| {
            let (rank, size) = (job.rank(), job.size());
            let a = GlobalArray::<u64, Ix1>::builder(job, [size]).zeros().create()?;
            let b = GlobalArray::<u64, Ix2>::builder(job, [ROWS * size, 2 * RUN]).grid([size, 1]).zeros().create()?;
            for round in 1..=ROUNDS {
                // Long runs, which are chains of writes: each to one, another one in each round.
                let place = |rank: usize| ROWS * rank..ROWS * (rank + 1);
                let shift = round as usize % size;
                b.put(s![place((rank + shift) % size), RUN..], &Array2::from_elem([ROWS, RUN], (size + rank) as u64 * round))?;
                // Each to all, in another order.
                for k in 0..size {
                    let at = (rank + k) % size;
                    a.accumulate(at..at + 1, 1, &Array1::from_elem(1, round))?;
                }
                job.sync()?;
                assert_eq!(a.get(..)?.to_vec(), vec![size as u64 * round * (round + 1) / 2; size]);
                let from = (rank + size - shift) % size;
                assert_eq!(b.get(s![place(rank), RUN..])?, Array2::from_elem([ROWS, RUN], (size + from) as u64 * round));
                job.sync()?;
            }
            Ok(())
        };
        let launch = Launch::new().network("ib:soft+hidden").ranks(7).connections(connections);
        launch.run(body).unwrap_or_else(|error: Error| panic!("{connections} connections: {error}"));
    }
}

/// Ranks connect with those that they need, or with all; each time once, and what they do is the same.
fn connections_are_counted() {
    const RANKS: usize = 7;
    // A put to the next rank, after the agreements that creation takes.
    let body = |job: &Job| {
        let (rank, size) = (job.rank(), job.size());
        let a = GlobalArray::<u64, Ix1>::builder(job, [size]).zeros().create()?;
        a.store([(rank + 1) % size], rank as u64)?;
        job.sync()?;
        assert_eq!(a.load([rank])? as usize, (rank + size - 1) % size);
        job.sync()?;
        let counts = job.stats().and_then(|stats| stats.connections()).expect("a network that connects, and a job that counts");
        assert!(counts.bytes >= 8, "the word that was put: {counts:?}");
        job.all_gather(&[counts.opened, counts.reopened, counts.closed, counts.live])
    };
    for connect in [Connect::Overlapped, Connect::Serial, Connect::Static] {
        let launch = Launch::new().network("ib:soft+hidden").ranks(RANKS).connect(connect).stats(true);
        let check = |job: &Job| -> Result<(), Error> {
            let counts = body(job)?;
            let sum: u64 = counts.chunks_exact(4).map(|counts| counts[0]).sum();
            let all = (RANKS * (RANKS - 1)) as u64;
            assert!((connect == Connect::Static) == (sum == all), "{connect}: {sum} connections of {all}");
            for counts in counts.chunks_exact(4) {
                let &[opened, reopened, closed, live] = counts else { unreachable!("chunks of four") };
                assert!(opened > 0 && live == opened, "{connect}: {counts:?}");
                assert_eq!((reopened, closed), (0, 0), "{connect}");
            }
            Ok(())
        };
        launch.run(check).unwrap_or_else(|error: Error| panic!("{connect}: {error}"));
    }
    let alone = |job: &Job| -> Result<(), Error> {
        assert_eq!(job.stats().expect("a job that counts").connections(), None);
        Ok(())
    };
    Launch::new().network("threads+hidden").ranks(2).stats(true).run(alone).expect("a network without connections");
    let both = |connections| Launch::new().network("ib:soft+hidden").ranks(4).connect(Connect::Static).connections(connections);
    both(3).run(|job| job.sync()).expect("room for all three");
    let error = both(2).run(|job| job.sync()).expect_err("three connections with room for two");
    assert!(matches!(error, Error::Launch(_)) && error.to_string().contains("with 3 ranks"), "{error}");
}

/// Whatever ranks do with all others, they connect with one rank of each node.
fn nodes_are_reached_by_their_agents() {
    const RANKS: usize = 7;
    const WORDS: usize = 1 << 14;
    for (per_node, connect) in [(2, Connect::Overlapped), (3, Connect::Overlapped), (3, Connect::Static)] {
        let body = |job: &Job| -> Result<(), Error> {
            let (rank, size) = (job.rank(), job.size());
            let a = GlobalArray::<u64, Ix1>::builder(job, [size * WORDS]).zeros().create()?;
            let (signal, counter) = (Signal::new(job)?, Counter::new(job)?);
            for k in 1..size {
                // A transfer, a record, a sum, a word that the owner's processors change too, a signal.
                let at = (rank + k) % size;
                // Each kind has words of its own: the sum of an accumulate and a fetch-add that meet is unspecified.
                let (first, marks) = (at * WORDS, (at + 1) * WORDS - size);
                a.accumulate(first + 1..marks, 1, &Array1::from_elem(marks - first - 1, rank as u64))?;
                a.fetch_add([first], 1)?;
                a.put(marks + rank..marks + rank + 1, &Array1::from_elem(1, 7))?;
                a.get(first..first + WORDS)?;
                signal.at(at, 0).notify()?;
                counter.fetch_add(1)?;
            }
            signal.wait_at_least(0, size - 1)?;
            job.sync()?;
            let others = (size * (size - 1) / 2 - rank) as u64;
            let own = a.get(rank * WORDS..(rank + 1) * WORDS)?;
            let (sums, marks) = (own.slice(s![1..WORDS - size]), own.slice(s![WORDS - size..]));
            assert_eq!(own[0], size as u64 - 1);
            assert!(sums.iter().all(|&sum| sum == others), "sums on rank {rank}");
            assert!(marks.iter().enumerate().all(|(k, &mark)| mark == if k == rank { 0 } else { 7 }), "marks on rank {rank}");
            assert_eq!(counter.get()?, size * (size - 1));
            let counts = job.stats().and_then(|stats| stats.connections()).expect("a network that connects");
            let nodes = size.div_ceil(per_node);
            let here = (size - rank / per_node * per_node).min(per_node);
            let partners = if rank.is_multiple_of(per_node) { size - here } else { nodes - 1 };
            assert_eq!((counts.opened, counts.live), (partners as u64, partners as u64), "rank {rank}, nodes of {per_node}");
            job.sync()
        };
        let launch = Launch::new().network("ib:soft").ranks(RANKS).ranks_per_node(per_node).connect(connect).stats(true);
        launch.run(body).unwrap_or_else(|error: Error| panic!("nodes of {per_node}, {connect}: {error}"));
    }
}

/// The same process starts one job after another; nothing of one is seen in the next.
fn jobs_in_a_row(network: &str) {
    let files = || std::fs::read_dir("/proc/self/fd").expect("the open files").count();
    let before = files();
    for round in 0..20_u64 {
        let body = |job: &Job| {
            let a = GlobalArray::<u64, Ix1>::builder(job, [10]).zeros().create()?;
            a.accumulate(.., 1, &Array1::from_elem(10, round))?;
            job.sync()?;
            assert_eq!(a.get(..)?.sum(), 10 * round * job.size() as u64);
            job.sync()
        };
        runner::launch(network).ranks(1 + round as usize % 4).run(body).expect("a job");
    }
    assert_eq!(files(), before, "files that jobs left open");
}
