//! Wrong values of variables: each is refused at the start, by its name, with what is allowed.

use crate::{
    checks::{SOON, heard, run, run_on, says},
    runner::{Case, case},
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (variable, value) in [
        ("GA_RANKS", "two"),
        ("GA_RANKS", "0"),
        ("GA_RANKS", "-1"),
        ("GA_RANKS", "9000"),
        ("GA_RANKS_PER_NODE", "all"),
        ("GA_RANKS_PER_NODE", "0"),
        ("GA_HEAP", "much"),
        ("GA_MEMORY", "12Q"),
        ("GA_MEMORY", "99999999999T"),
        ("GA_MEMORY", "-1"),
        ("GA_MEMORY", "0"),
        ("GA_MEMORY", "inf"),
        ("GA_HEAP", "0"),
        ("GA_HEAP", "1e9"),
        ("GA_HEAP", "16000000T"),
        ("GA_PIN", "perhaps"),
        ("GA_PIN", "7"),
        ("GA_PIN", "00"),
        ("GA_LARGE_PAGES", "x"),
        ("GA_LARGE_PAGES", "2"),
        ("GA_STATS", "2"),
        ("GA_STATS", "-1"),
        ("GA_STATS", "true"),
        ("GA_STATS", "run.txt"),
        ("GA_STATS", "/no/such/folder/run.svg"),
        ("GA_TRACE", "1"),
        ("GA_FAULTS", "die:1"),
        ("GA_FAULTS", "burn:1@2"),
        ("GA_BOOTSTRAP", "pigeons"),
        ("GA_COMPUTING", "guessed"),
        ("GA_COMPUTING", "measured:0"),
        ("GA_CONNECT", "late"),
        ("GA_CONNECTIONS", "0"),
        ("GA_CONNECTIONS", "few"),
        ("GA_TRACE", "run.svg"),
        ("GA_TRACE", "/no/such/folder/run.json"),
        ("GA_TIMEOUT", "0"),
        ("GA_TIMEOUT", "1e-300"),
        ("GA_TIMEOUT", "1e-9"),
        ("GA_TIMEOUT", "NaN"),
        ("GA_TIMEOUT", "inf"),
        ("GA_TIMEOUT", "1e19"),
        ("GA_TIMEOUT", "-3"),
        ("GA_TIMEOUT", "1e400"),
        ("GA_TIMEOUT", "1e300"),
    ] {
        cases.push(case(format!("wrong_value_of_{variable}_{value}"), move || {
            let (status, text) = run("does_nothing", &[(variable, value)], SOON);
            assert_eq!(status, Some(1), "{text}");
            says(&text, &["cannot start a job", &format!("{variable}={value:?} is not ")]);
            assert!(!text.contains("panicked"), "{text}");
        }));
    }
    cases.push(case("wrong_network", || {
        let (status, text) = run("does_nothing", &[("GA_NETWORK", "pigeons")], SOON);
        assert_eq!(status, Some(1), "{text}");
        says(&text, &["no network \"pigeons\"", "GA_NETWORK"]);
    }));
    if cfg!(feature = "mpi") {
        for (variable, value, words) in [
            ("GA_NETWORK", "pigeons", "no network \"pigeons\""),
            ("GA_RANKS_PER_NODE", "some", "GA_RANKS_PER_NODE=\"some\""),
            ("GA_RANKS_PER_NODE", "0", "GA_RANKS_PER_NODE=\"0\" is not "),
        ] {
            cases.push(case(format!("mpi::wrong_value_of_{variable}_{value}"), move || {
                let text = heard(true, &[words], || {
                    let (status, text) = run_on(Some(3), "does_nothing", &[(variable, value)], SOON);
                    assert_ne!(status, Some(0), "{text}");
                    text
                });
                says(&text, &["Error: cannot start a job", words]);
                assert!(!text.contains("panicked"), "{text}");
            }));
        }
    }
    cases
}
