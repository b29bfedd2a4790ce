//! `GA_BLAS`: a choice that cannot be followed is an error on all ranks, and the group goes on.

use global_arrays::{algebra::Matmul, prelude::*};
use ndarray::Array2;

use crate::{
    checks::{self, BOTH, PROCESSES, SOON},
    programs::{self, Body, CULPRIT},
    runner::{Case, case, program},
};

const MISSING: &str = "/nonexistent/libblas.so";

const BODIES: &[(&str, Body)] = &[
    ("multiplies", |job| {
        let a = GlobalArray::<f64, Ix2>::builder(job, [8, 8]).fill(1.0).create()?;
        let mut c = a.duplicate("c")?;
        let product = c.matmul(1.0, &a, &a, 0.0);
        job.sync()?;
        if product.is_ok() {
            assert_eq!(c.get(..)?, Array2::from_elem((8, 8), 8.0));
        }
        product
    }),
    // What programs call that distribute their factors by themselves.
    ("multiplies_views", |job| {
        let a = Array2::<f64>::eye(3);
        let mut c = Array2::zeros((3, 3));
        f64::multiply(c.view_mut(), 1.0, a.view(), a.view(), 0.0);
        job.sync()
    }),
    ("has_no_blas_on_one_rank", |job| {
        if job.rank() == CULPRIT {
            // SAFETY: this rank has no other thread.
            unsafe { std::env::set_var("GA_BLAS", MISSING) };
        }
        let a = GlobalArray::<f64, Ix2>::builder(job, [8, 8]).fill(1.0).create()?;
        let product = a.duplicate("c")?.matmul(1.0, &a, &a, 0.0).expect_err("one rank cannot multiply");
        job.sync()?;
        if job.rank() == CULPRIT { job.sync() } else { Err(product) }
    }),
];

pub(crate) fn programs() -> Vec<Case> {
    BODIES.iter().map(|&(name, body)| program(name, move || programs::end(global_arrays::run(body)))).collect()
}

/// Ranks, the library, what is said of it.
const REFUSED: &[(&str, &str, &[&str])] = if cfg!(feature = "blas") {
    &[
        ("1", MISSING, &["GA_BLAS=\"/nonexistent/libblas.so\" cannot be used: ", "No such file", "cblas_dgemm"]),
        ("2", MISSING, &["GA_BLAS=\"/nonexistent/libblas.so\" cannot be used: ", "No such file", "cblas_dgemm"]),
        ("2", "libc.so.6", &["GA_BLAS=\"libc.so.6\" cannot be used: it has no cblas_sgemm", "cblas_dgemm"]),
    ]
} else {
    const WORDS: &[&str] = &["GA_BLAS=\"libopenblas.so.0\" chooses a BLAS", "built without the feature \"blas\""];
    &[("1", "libopenblas.so.0", WORDS), ("2", "libopenblas.so.0", WORDS)]
};

pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for &network in BOTH {
        for &(ranks, library, words) in REFUSED {
            let place = library.trim_start_matches('/').replace(['/', '.'], "_");
            cases.push(case(format!("{network}::blas_is_{place}_on_{ranks}"), move || {
                let (status, text) = checks::run("multiplies", &variables(network, ranks, library), SOON);
                assert_eq!(status, Some(1), "{text}");
                checks::says(&text, words);
                checks::says(&text, &["matmul: GA_BLAS", "\"none\"", "unset it", "at tests/failures/blas.rs:"]);
                assert!(!text.contains("panicked"), "{text}");
            }));
        }
        cases.push(case(format!("{network}::blas_is_refused_for_views"), move || {
            let (status, text) = checks::run("multiplies_views", &variables(network, "2", MISSING), SOON);
            assert_eq!(status, Some(1), "{text}");
            checks::says(&text, &["panicked", "GA_BLAS=\"/nonexistent/libblas.so\" c"]);
        }));
        for (name, library) in [("none", "none"), ("not_chosen", "")] {
            cases.push(case(format!("{network}::blas_is_{name}"), move || {
                let (status, text) = checks::run("multiplies", &variables(network, "2", library), SOON);
                assert_eq!(status, Some(0), "{text}");
            }));
        }
        if PROCESSES.contains(&network) {
            cases.push(case(format!("{network}::blas_is_missing_on_one_rank"), move || {
                let (status, text) = checks::run("has_no_blas_on_one_rank", &variables(network, "3", ""), SOON);
                assert_eq!(status, Some(1), "{text}");
                checks::says(&text, &["matmul: 1 other member(s) could not multiply"]);
            }));
        }
    }
    cases
}

fn variables<'a>(network: &'a str, ranks: &'a str, library: &'a str) -> [(&'a str, &'a str); 3] {
    [("GA_NETWORK", network), ("GA_RANKS", ranks), ("GA_BLAS", library)]
}
