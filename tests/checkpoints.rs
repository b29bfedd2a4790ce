//! Checkpoints: restored on any number of ranks, in any distribution; damage is found, and a failure leaves the one before.

mod place;

use std::fs;

use global_arrays::{file::Checkpoint, prelude::*};
use num_complex::Complex;

use crate::place::{Place, everywhere};

/// The state of a checkpoint, on any number of ranks.
fn checkpoint(place: &Place, ranks: usize) {
    Launch::new()
        .ranks(ranks)
        .network("threads")
        .run(|job| -> Result<(), Error> {
            let a = GlobalArray::<f64, Ix2>::from_fn(job, [30, 40], |(i, j)| (100 * i + j) as f64)?;
            let b = GlobalArray::<Complex<f32>, Ix1>::builder(job, [17]).fill(Complex::new(1.5, -2.0)).create()?;
            let values = vec![1.0, 2.5, -3.0];
            let saved = Checkpoint::new(place.file("c")).array("a", &a).array("b", &b).array("row", a.at(s![3, ..]));
            saved.value("values", &values).value("name", &"Größe".to_owned()).save()
        })
        .unwrap();
}

/// Reads all of a checkpoint.
fn restore(place: &Place, ranks: usize) -> Result<(), Error> {
    Launch::new().ranks(ranks).network("threads").run(|job| {
        let saved = Checkpoint::restore(job, place.file("c"))?.expect("a checkpoint");
        assert_eq!(saved.arrays().collect::<Vec<_>>(), ["a", "b", "row"]);
        let mut a = GlobalArray::<f64, Ix2>::builder(job, [30, 40]).block_cyclic([3, 7]).create()?;
        let mut b = GlobalArray::<Complex<f32>, Ix1>::builder(job, [17]).create()?;
        let mut row = GlobalArray::<f64, Ix2>::builder(job, [2, 40]).create()?;
        saved.read("a", a.at_mut(..))?;
        saved.read("b", b.at_mut(..))?;
        saved.read("row", row.at_mut(s![1, ..]))?;
        assert_eq!(a.get(..)?, Array2::from_shape_fn((30, 40), |(i, j)| (100 * i + j) as f64));
        assert!(b.get(..)?.iter().all(|value| *value == Complex::new(1.5, -2.0)));
        assert_eq!(row.get(s![1, 7])?.sum(), 307.0);
        assert_eq!(
            (saved.value::<Vec<f64>>("values")?, saved.value::<String>("name")?),
            (vec![1.0, 2.5, -3.0], "Größe".to_owned())
        );
        assert!(saved.value::<f64>("values").is_err());
        for said in [saved.value::<f64>("none").unwrap_err(), saved.read("none", a.at_mut(..)).unwrap_err()] {
            assert!(said.to_string().contains("\"none\""), "{said}");
        }
        let said = saved.read("b", row.at_mut(s![0, ..17])).unwrap_err().to_string();
        assert!(said.contains("<c8") && said.contains("<f8"), "{said}");
        job.sync()
    })
}

#[test]
fn checkpoints_are_restored_on_any_number_of_ranks_and_older_ones_go() {
    let place = Place::new("checkpoint");
    for (number, ranks) in [(1, 2), (2, 3), (3, 1)] {
        checkpoint(&place, ranks);
        let names: Vec<_> = fs::read_dir(place.file("c")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, [format!("checkpoint-{number}").as_str()]);
        (1..=5).for_each(|ranks| restore(&place, ranks).unwrap());
    }
    // NumPy reads the arrays.
    assert!(fs::read(place.file("c/checkpoint-3/row.npy")).unwrap().starts_with(b"\x93NUMPY"));
    let none = Launch::new()
        .network("threads")
        .ranks(2)
        .run(|job| Ok::<_, Error>(Checkpoint::restore(job, place.file("none"))?.is_none()));
    assert!(none.unwrap());
}

#[test]
fn each_flipped_byte_of_a_checkpoint_is_found_and_its_file_is_named() {
    let place = Place::new("flipped");
    checkpoint(&place, 2);
    let long = std::env::var("GA_TEST_LONG").is_ok();
    for name in ["a.npy", "b.npy", "row.npy", "values", "checkpoint"] {
        let path = place.file("c/checkpoint-1").join(name);
        let whole = fs::read(&path).unwrap();
        let step = if long { 1 } else { whole.len() / 40 };
        for at in (0..whole.len()).step_by(step).chain([whole.len() - 1]) {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << (at % 8);
            fs::write(&path, bytes).unwrap();
            let said = restore(&place, 2).expect_err("a flipped byte").to_string();
            assert!(said.contains(name), "{name}, byte {at}: {said}");
        }
        for len in [0, 1, whole.len() / 2, whole.len() - 1] {
            fs::write(&path, &whole[..len]).unwrap();
            let said = restore(&place, 2).expect_err("a truncated file").to_string();
            assert!(said.contains(name), "{name}, {len} bytes: {said}");
        }
        fs::write(&path, whole).unwrap();
    }
    restore(&place, 1).unwrap();
}

#[test]
fn a_checkpoint_that_fails_leaves_the_one_before() {
    let place = Place::new("failing-checkpoint");
    checkpoint(&place, 2);
    everywhere(|job| {
        let a = GlobalArray::<f64, Ix1>::builder(job, [5]).fill(3.0).create()?;
        for (names, word) in [(["a", "a"], "twice"), (["a", "../b"], "../b"), (["", "b"], "\"\"")] {
            let saved = Checkpoint::new(place.file("c")).array(names[0], &a).array(names[1], &a).save();
            let said = saved.unwrap_err().to_string();
            assert!(said.contains(word), "{said}");
        }
        let said = Checkpoint::new("/dev/null").array("a", &a).save().unwrap_err().to_string();
        assert!(said.contains("/dev/null"), "{said}");
        assert!(Checkpoint::new(place.file("c")).value("a", &1).save().unwrap_err().to_string().contains("no array"));
        job.sync()
    });
    assert_eq!((place.names(), fs::read_dir(place.file("c")).unwrap().count()), (vec!["c".to_owned()], 1));
    restore(&place, 2).unwrap();
}
