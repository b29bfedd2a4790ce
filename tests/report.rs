//! What a job tells about itself: traces, and statistics in files.

use std::{fs, path::PathBuf};

use global_arrays::{
    active::{Handlers, Short},
    prelude::*,
    simulation::Work,
};
use serde_json::Value;

/// A file of a test.
struct Written(PathBuf);

impl Written {
    fn new(name: &str) -> Self {
        Written(std::env::temp_dir().join(format!("global-arrays-{}-{name}", std::process::id())))
    }

    fn json(&self) -> Value {
        serde_json::from_str(&fs::read_to_string(&self.0).unwrap()).unwrap()
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// The line of the call of `get` in [`body`].
const GET: u32 = line!() + 9;

/// Rank 1 reads 100 elements of rank 0, in an epoch in which all compute.
fn body(job: &Job) -> Result<(), Error> {
    let mut a = GlobalArray::<f64, Ix1>::builder(job, [300]).zeros().create()?;
    job.phase("reading", || {
        a.read_epoch(|_, reader| {
            job.simulation().work(Work::flops(8.4e9));
            if job.rank() == 1 {
                reader.get(s![..100])?;
            }
            Ok::<(), Error>(())
        })
    })??;
    job.sync()
}

#[test]
fn a_trace_has_the_calls_of_all_ranks_with_their_waits_and_lines() {
    for network in ["threads", "threads:unmapped", "simulated:gemini"] {
        let file = Written::new(&format!("{}.json", network.replace(':', "-")));
        Launch::new().ranks(3).network(network).trace(&file.0).run(body).unwrap();
        let trace = file.json();
        let events: Vec<&Value> = trace["traceEvents"].as_array().unwrap().iter().filter(|event| event["ph"] == "X").collect();
        let of = |rank: u64, category: &str, name: &str| {
            let found = |event: &&&Value| event["tid"] == rank && event["cat"] == category && event["name"] == name;
            events.iter().filter(found).copied().collect::<Vec<_>>()
        };
        let span = |event: &Value| {
            let begin = event["ts"].as_f64().unwrap();
            (begin, begin + event["dur"].as_f64().unwrap())
        };
        for rank in 0..3 {
            let [phase] = of(rank, "phase", "reading")[..] else { panic!("{network}: {trace}") };
            // The epoch is two slices, and what the program does in between lies there.
            let [begins, ends] = of(rank, "call", "read_epoch")[..] else { panic!("{network}: {trace}") };
            let gets = of(rank, "call", "Reader::get");
            assert_eq!(gets.len(), usize::from(rank == 1), "{network}");
            assert!(span(phase).0 <= span(begins).0 && span(ends).1 <= span(phase).1 + 0.001, "{network}");
            for get in gets {
                assert_eq!(get["args"]["at"], format!("{}:{GET}", file!()), "{network}");
                assert!(span(begins).1 <= span(get).0 && span(get).1 <= span(ends).0, "{network}");
            }
            let [computes] = of(rank, "computing", "computing")[..] else { panic!("{network}: {trace}") };
            if network == "simulated:gemini" {
                assert_eq!(computes["dur"].as_f64(), Some(1e6));
            }
            assert_eq!(of(rank, "call", "Group::sync").len(), 1, "{network}");
        }
        for wait in events.iter().filter(|event| event["cat"] == "wait" && !event["args"].is_null()) {
            let lies_inside = |call: &&&Value| {
                call["cat"] == "call"
                    && call["tid"] == wait["tid"]
                    && span(call).0 <= span(wait).0
                    && span(wait).1 <= span(call).1 + 0.001
            };
            assert!(events.iter().any(|call| lies_inside(&call)), "{network}: {wait}");
        }
    }
}

/// A handler is a phase of its own.
#[test]
fn a_trace_has_handlers_by_their_names() {
    const TELL: Short<u64> = Short::new("tell");
    let file = Written::new("handlers.json");
    let body = |job: &Job| {
        let mut sums = Handlers::new(0).on(TELL, |sum, _, value| *sum += value).open(job)?;
        sums.send(1 - job.rank(), TELL, 3)?;
        sums.close().map(drop)
    };
    Launch::new().ranks(2).network("threads").trace(&file.0).run(body).unwrap();
    let trace = file.json();
    for rank in 0..2 {
        let is_told = |event: &&Value| event["tid"] == rank && event["cat"] == "phase" && event["name"] == "tell";
        assert_eq!(trace["traceEvents"].as_array().unwrap().iter().filter(is_told).count(), 1, "{trace}");
    }
}

#[test]
fn a_file_of_statistics_has_times_and_bytes() {
    let (json, svg) = (Written::new("stats.json"), Written::new("stats.svg"));
    for network in ["threads", "simulated:gemini", "ib:soft+hidden"] {
        Launch::new().ranks(3).network(network).stats_file(&json.0).run(body).unwrap();
        let stats = json.json();
        assert_eq!((&stats["ranks"], &stats["bytes"]), (&3.into(), &serde_json::json!([[1, 0, 800]])), "{network}: {stats}");
        let [other, phase] = stats["phases"].as_array().unwrap().as_slice() else { panic!("{stats}") };
        assert_eq!((other["name"].as_str(), phase["name"].as_str()), (Some(""), Some("reading")));
        let calls = phase["calls"].as_array().unwrap();
        let in_calls: f64 = calls.iter().map(|call| call["seconds"].as_f64().unwrap()).sum();
        let [seconds, computing] = ["seconds", "computing"].map(|name| phase[name].as_f64().unwrap());
        assert!((seconds - computing - in_calls).abs() < 1e-6, "{network}: {stats}");
        assert!(network != "simulated:gemini" || (1.0..1.001).contains(&computing), "{stats}");
        let gets = calls.iter().find(|call| call["name"] == "Reader::get").unwrap();
        assert_eq!(gets["calls"], 1, "{network}");
        if network != "ib:soft+hidden" {
            assert_eq!(stats.get("connections"), None, "{network}");
            continue;
        }
        let connections: Vec<[u64; 7]> = serde_json::from_value(stats["connections"].clone()).unwrap();
        assert_eq!(connections.len(), 3);
        for [opened, reopened, closed, live, bytes, _, refused] in connections {
            assert!((1..=2).contains(&opened), "{stats}");
            assert!(bytes > 0, "{stats}");
            assert_eq!((reopened, closed, live, refused), (0, 0, opened, 0), "{stats}");
        }
    }
    Launch::new().ranks(3).network("threads").stats_file(&svg.0).run(body).unwrap();
    assert!(fs::read_to_string(&svg.0).unwrap().contains("<title>rank 1 to rank 0: 800 bytes</title>"));
}
