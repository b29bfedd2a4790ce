//! Simulated jobs as processes: what stops them, and what two of them have in common.

use std::time::Duration;

use crate::{
    checks::{SOON, run, says},
    runner::{Case, case},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    cases.push(case("a_lock_of_the_program_stops_all_simulated_ranks", || {
        let variables = [("GA_NETWORK", "simulated:gemini"), ("GA_RANKS", "2")];
        let (status, text) = run("holds_a_lock_of_its_own_in_a_call", &variables, Duration::from_secs(30));
        assert_eq!(status, Some(0), "{text}");
        says(&text, &["simulated rank 1 has been blocked outside of the library", "std::sync::Mutex"]);
    }));
    cases.push(case("simulated_runs_of_two_processes_are_the_same", || {
        let told = |seed: &str| {
            let variables = [("GA_NETWORK", "simulated:gemini"), ("GA_RANKS", "30"), ("GA_STATS", "1"), ("GA_SEED", seed)];
            let (status, text) = run("says_its_size", &variables, SOON);
            assert_eq!(status, Some(0), "{text}");
            let line = text.lines().find(|line| line.contains("digest")).unwrap_or_else(|| panic!("{text}"));
            line.to_owned()
        };
        assert_eq!(told("3"), told("3"));
        assert_ne!(told("3"), told("4"));
    }));
    cases.push(case("faults_are_for_simulated_networks", || {
        let (status, text) = run("does_nothing", &[("GA_NETWORK", "threads"), ("GA_FAULTS", "die:1@2")], SOON);
        assert_eq!(status, Some(1), "{text}");
        says(&text, &["cannot start a job", "GA_FAULTS", "\"threads\" is not simulated"]);
    }));
    cases
}
