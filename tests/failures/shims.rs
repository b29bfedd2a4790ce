//! Networks whose libraries users compile: what is said without one, and of a process that is not what its library says.

use std::{fs, path::Path, process::Command};

use crate::{
    checks::{SOON, run, says},
    runner::{self, Case, case},
};

pub(crate) fn cases() -> Vec<Case> {
    let missing =
        [("gemini", "GA_DMAPP", "-ldmapp"), ("extoll", "GA_EXTOLL", "-lrma2 -lvelo2")].map(|(network, option, libraries)| {
            case(format!("{network}_without_its_library"), move || {
                let (status, text) = run("does_nothing", &[("GA_NETWORK", network), ("GA_RANKS", "2")], SOON);
                assert_eq!(status, Some(1), "{text}");
                let names = format!("cannot start a job: GA_NETWORK={network}: {option} names no library; ");
                says(&text, &[&names, &format!("src/comm/{network}/shim.c {libraries}")]);
            })
        });
    let other = case("a_rank_that_is_another_pe", || {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let library = std::env::temp_dir().join(format!("case-{}-dmapp.so", std::process::id()));
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-I"]).arg(root.join("runner/stubs")).arg("-o").arg(&library);
        compiler.arg(root.join("../src/comm/gemini/shim.c")).arg(root.join("runner/stubs/dmapp_stub.c"));
        match compiler.status() {
            Ok(status) => assert!(status.success()),
            Err(error) => runner::skip(&format!("no C compiler cc ({error})")),
        }
        let path = library.to_str().expect("a path of ours");
        let (status, text) = run("does_nothing", &[("GA_NETWORK", "gemini+hidden"), ("GA_RANKS", "2"), ("GA_DMAPP", path)], SOON);
        // With STUB_PES=1 the stub is PE 0 of 1.
        let alone = [("GA_NETWORK", "gemini+hidden"), ("GA_RANKS", "1"), ("GA_DMAPP", path), ("STUB_PES", "1")];
        let (good, of_one) = run("does_nothing", &alone, SOON);
        fs::remove_file(&library).expect("a file of ours");
        assert_eq!((status, good), (Some(1), Some(0)), "{text}{of_one}");
        says(
            &text,
            &["GA_NETWORK=gemini: this process is PE 3 of 7 to DMAPP, and rank ", " of 2; start one process for each rank"],
        );
    });
    missing.into_iter().chain([other]).collect()
}
