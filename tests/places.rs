//! An error ends with the line of the program that made the call, whatever the crate did inside.

use global_arrays::{FetchOp, prelude::*};

/// The call is refused, and the message ends with the line of the macro.
macro_rules! refused {
    ($call:expr) => {{
        let error = $call.map(|_| ()).expect_err("the call is wrong");
        let place = format!(", at {}:{}", file!(), line!());
        assert!(error.to_string().ends_with(&place), "line {}: {error}", line!());
        let location = error.operation().and_then(|operation| operation.location()).expect("a call of this program");
        assert_eq!((location.file(), location.line()), (file!(), line!()));
    }};
}

fn everywhere(body: impl Fn(&Job) -> Result<(), Error> + Sync) {
    for network in ["threads", "threads:unmapped"] {
        for ranks in [1, 2] {
            Launch::new()
                .ranks(ranks)
                .network(network)
                .run(&body)
                .unwrap_or_else(|error| panic!("{ranks} over {network}: {error}"));
        }
    }
}

#[test]
fn of_one_sided_calls() {
    everywhere(|job| {
        let a = GlobalArray2::<i64>::builder(job, [4, 6]).zeros().create()?;
        let (mut few, many) = (Array2::zeros((2, 2)), Array2::<i64>::zeros((4, 6)));
        let signal = Signal::new(job)?;
        refused!(a.load([4, 0]));
        refused!(a.store([0, 6], 1));
        refused!(a.fetch_add([9, 9], 1));
        refused!(a.fetch_op([9, 9], FetchOp::Xor, 1));
        refused!(a.compare_exchange([9, 9], 1, 2));
        refused!(a.get(s![..5, ..]));
        refused!(a.get_into(.., &mut few));
        refused!(a.put(s![..3, ..], &many));
        refused!(a.accumulate(s![.., 7], 1, &Array1::zeros(4)));
        refused!(a.put_signal(.., &many, signal.at(job.size(), 0)));
        refused!(a.gather(&[[0, 0], [4, 4]], &mut [0, 0]));
        refused!(a.scatter(&[[0, 0]], &[1, 2]));
        refused!(a.scatter_accumulate(&[[9, 0]], 1, &[1]));
        refused!(a.get_nb(s![..5, ..]));
        refused!(a.put_nb(.., few.clone()));
        refused!(a.accumulate_nb(.., 1, few.clone()));
        refused!(a.owner([4, 6]));
        refused!(a.periodic().get(0..3));
        refused!(a.periodic().load([1, 2, 3]));
        refused!(signal.at(0, 1).notify());
        refused!(signal.wait_at_least(1, 1));
        refused!(Locks::new(job)?.lock(1));
        refused!(job.fence(job.size()));
        job.scope(|s| {
            refused!(s.put(&a, s![..3, ..], &many));
            Ok(())
        })?;
        job.sync()
    });
}

#[test]
fn of_collective_calls() {
    everywhere(|job| {
        let mut a = GlobalArray2::<f64>::builder(job, [4, 6]).zeros().create()?;
        let b = GlobalArray2::<f64>::builder(job, [6, 4]).zeros().create()?;
        refused!(a.assign(&b));
        refused!(a.assign(b.at(s![..7, ..]).t()));
        refused!(a.scaled_add(1.0, &b));
        refused!(a.assign_zip(&b, &b, |x, y| x + y));
        refused!(a.dot(&b));
        refused!(a.matmul(1.0, &b, &b, 0.0));
        refused!(a.at_mut(s![5, ..]).fill(1.0));
        refused!(a.at_mut(s![..2, ..]).matmul(1.0, &b, &b, 0.0));
        refused!(a.at(s![.., 6..8]).write_to(Vec::new()));
        refused!(a.set_diagonal(&[]));
        refused!(a.symmetrize());
        refused!(a.update_ghosts_at(2, global_arrays::Side::Low));
        refused!(a.save("/no such folder/a.npy"));
        refused!(GlobalArray2::<f64>::builder(job, [4, 6]).block_cyclic([0, 1]).create());
        refused!(GlobalArray2::<f64>::builder(job, [1 << 40, 1 << 20]).create());
        refused!(Counter::with_owner(job, job.size()));
        refused!(job.subgroup(&[]));
        refused!(job.broadcast(job.size(), &mut [0]));
        job.sync()
    });
}
