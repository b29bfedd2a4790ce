//! Sparse products against a loop in C over MPI, and planned gathers against gathers of the same list, on two ranks or more. Prints seconds, the
//! median and the best; the C program runs between the rounds of ours, so that both meet the same load.
//!
//! ```sh
//! make -C benches/peers spmv.openmpi spmv.mpich
//! cargo bench -p global-arrays-benches --bench sparse -- [ROUNDS [SIDE [RANKS]]]
//! ```

use std::{process::Command, time::Instant};

use global_arrays::prelude::*;

const TRIALS: usize = 11;

/// The entries of a row of a matrix of `side²` rows.
type Row = fn(usize, usize) -> Vec<(usize, f64)>;

/// The second differences of a grid's neighbors.
fn laplacian(side: usize, row: usize) -> Vec<(usize, f64)> {
    let (i, j) = (row / side, row % side);
    let before = [(i > 0, row.wrapping_sub(side), -1.0), (j > 0, row.wrapping_sub(1), -1.0)];
    let behind = [(true, row, 4.0), (j + 1 < side, row + 1, -1.0), (i + 1 < side, row + side, -1.0)];
    let inside = before.into_iter().chain(behind).filter(|&(is_inside, ..)| is_inside);
    inside.map(|(_, column, value)| (column, value)).collect()
}

/// Ten columns by splitmix64, as in `peers/spmv.c`.
fn scattered(side: usize, row: usize) -> Vec<(usize, f64)> {
    let column = |k: u64| {
        let z = (row as u64 * 10 + k + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % (side * side) as u64) as usize
    };
    (0..10).map(|k| (column(k), 1.0 / (k + 1) as f64)).collect()
}

fn main() -> Result<(), Error> {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let number = |k: usize, default: usize| words.get(k).and_then(|word| word.parse().ok()).unwrap_or(default);
    let (rounds, side, ranks) = (number(0, 3), number(1, 1000), number(2, 2));
    for (name, row_of) in [("laplacian", laplacian as Row), ("random", scattered)] {
        let (mut own, mut peers) = (Vec::new(), [("openmpi", Vec::new()), ("mpich", Vec::new())]);
        for _ in 0..rounds {
            own.push(Launch::new().ranks(ranks).run(|job| products(job, side, row_of))?);
            for (library, seconds) in &mut peers {
                seconds.extend(peer(library, name, side, ranks));
            }
        }
        let [own, best] = summary(own);
        println!("matvec {name} {side}²: {own:.6} s, best {best:.6}");
        for (library, seconds) in peers.into_iter().filter(|(_, seconds)| !seconds.is_empty()) {
            let [peer, peer_best] = summary(seconds);
            println!(
                "    C over {library}: {peer:.6} s, best {peer_best:.6}, ratio {:.2}, of the best {:.2}",
                peer / own,
                peer_best / best
            );
        }
    }
    for network in ["shared_memory", "shared_memory+hidden", "shared_memory:unmapped"] {
        for (name, row_of) in [("laplacian", laplacian as Row), ("random", scattered)] {
            let [[gather, _], [fetch, _]] = Launch::new().ranks(ranks).network(network).run(|job| lists(job, 300, row_of))?;
            println!("{network}, columns of {name} 300²: gather {gather:.6} s, fetch {fetch:.6} s, ratio {:.1}", gather / fetch);
        }
    }
    Ok(())
}

/// Seconds of a product, of the slowest rank.
fn products(job: &Job, side: usize, row_of: Row) -> Result<[f64; 2], Error> {
    let n = side * side;
    let mut y = GlobalArray1::<f64>::zeros(job, [n])?;
    let x = GlobalArray1::<f64>::from_fn(job, [n], |i| (i % 1001) as f64 - 500.0)?;
    let own = y.own_blocks().next().map_or(0..0, |block| block.patch.range(0));
    let triplets = own.clone().flat_map(|row| row_of(side, row).into_iter().map(move |(column, value)| (row, column, value)));
    let a = SparseMatrix::from_triplets(job, [n, n], triplets)?;
    let seconds = seconds(job, || a.matvec(&x, &mut y))?;
    for row in own.step_by(97) {
        let expected: f64 = row_of(side, row).into_iter().map(|(column, value)| value * ((column % 1001) as f64 - 500.0)).sum();
        assert!((y.load([row])? - expected).abs() < 1e-9, "row {row}");
    }
    job.sync()?;
    Ok(seconds)
}

/// Seconds of a gather, and of the fetch of a plan, of the columns of a rank's rows.
fn lists(job: &Job, side: usize, row_of: Row) -> Result<[[f64; 2]; 2], Error> {
    let x = GlobalArray1::<f64>::from_fn(job, [side * side], |i| i as f64)?;
    let own = x.own_blocks().next().map_or(0..0, |block| block.patch.range(0));
    let list: Vec<usize> = own.flat_map(|row| row_of(side, row)).map(|(column, _)| column).collect();
    let (mut gathered, mut fetched) = (vec![0.0; list.len()], vec![0.0; list.len()]);
    let gather = seconds(job, || x.gather(&list, &mut gathered))?;
    let plan = x.gather_plan(&list)?;
    let fetch = seconds(job, || plan.fetch(&x, &mut fetched))?;
    assert!(gathered == fetched && list.iter().zip(&fetched).all(|(&i, &value)| value == i as f64));
    job.sync()?;
    Ok([gather, fetch])
}

/// The median and the best of some calls on all ranks at a time, after three to warm up, of the slowest rank each.
fn seconds(job: &Job, mut call: impl FnMut() -> Result<(), Error>) -> Result<[f64; 2], Error> {
    let mut trials = Vec::new();
    for trial in 0..TRIALS + 3 {
        job.barrier()?;
        let start = Instant::now();
        call()?;
        let slowest = job.all_reduce_one(start.elapsed().as_secs_f64(), ops::max)?;
        trials.extend((trial >= 3).then_some(slowest));
    }
    Ok(summary(trials.into_iter().map(|seconds| [seconds; 2]).collect()))
}

/// The median of medians, and the best of all.
fn summary(rounds: Vec<[f64; 2]>) -> [f64; 2] {
    let [mut medians, bests] = [0, 1].map(|which| rounds.iter().map(|round| round[which]).collect::<Vec<_>>());
    medians.sort_by(f64::total_cmp);
    [medians[medians.len() / 2], bests.into_iter().fold(f64::INFINITY, f64::min)]
}

/// Seconds that the C program measures, if it was built.
fn peer(library: &str, name: &str, side: usize, ranks: usize) -> Option<[f64; 2]> {
    let program = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/peers/spmv.");
    let mut run = Command::new(format!("mpirun.{library}"));
    run.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    let output = run
        .args(["-n", &ranks.to_string()])
        .arg(format!("{program}{library}"))
        .arg(format!("n={side}"))
        .arg(name)
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let row = text.lines().find_map(|line| line.strip_prefix(&format!("spmv,{name},")));
    if row.is_none() || !output.status.success() {
        println!("    no result of spmv.{library}: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let words: Vec<&str> = row?.split(',').collect();
    let [median, _, best, ..] = words[..] else { return None };
    Some([median.parse::<f64>().ok()? * 1e-3, best.parse::<f64>().ok()? * 1e-3])
}
