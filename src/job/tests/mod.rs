//! Tests of whole jobs.

mod apart;
mod islands;
mod simulated;

use super::*;

#[test]
fn a_machine_split_into_nodes_stays_one_machine() {
    let whole = std::sync::OnceLock::new();
    let threads = |job: &Job| {
        whole.get_or_init(|| job.threads());
        job.sync()
    };
    Launch::new().ranks(5).network("threads").run(threads).unwrap();
    let body = |job: &Job| {
        let conduit = job.inner.conduit();
        assert_eq!(job.node(), job.rank() / 2);
        assert_eq!([0, 1, 2].map(|node| job.node_ranks(node)), [vec![0, 1], vec![2, 3], vec![4]]);
        for rank in 0..5 {
            assert_eq!(conduit.mapped_segment(rank).is_some(), rank / 2 == job.node(), "{rank} from {}", job.rank());
            assert_eq!(conduit.topology().machine(rank), 0);
        }
        assert_eq!(Some(&job.threads()), whole.get());
        job.sync()
    };
    Launch::new().ranks(5).network("threads").ranks_per_node(2).run(body).unwrap();
}
