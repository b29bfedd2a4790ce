//! What is written is read again, and what is broken is refused.

mod broken;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{self, Command},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{begin_step, create, end_step, open, read::CHUNKED};
use crate::file::{
    contents::Contents,
    kind::Kind,
    libhdf5::{DEFAULT, turn},
    placed::{Place, Placed},
    variable::{Attribute, Variable},
    visit::Failure,
};
use crate::portable::Portable;

/// A file or folder that is removed when the test ends.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Self {
        Temporary(env::temp_dir().join(format!("ga-hdf5-{}-{name}.h5", process::id())))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0).or_else(|_| fs::remove_dir_all(&self.0));
    }
}

/// Without the library, a test says so and passes.
fn is_missing() -> bool {
    let missing = turn().map(drop);
    if let Err(Failure::System(why)) = &missing {
        eprintln!("skipped: no libhdf5: {why}");
    }
    missing.is_err()
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::System(error) => error.to_string(),
        Failure::Format(what) => what,
    }
}

fn pattern(placed: &Placed, seed: usize) -> Vec<u8> {
    (0..placed.bytes(&placed.shape)).map(|k| (k * 7 + seed * 13) as u8).collect()
}

fn fill(placed: &[Placed], seed: usize) {
    for (k, placed) in placed.iter().enumerate() {
        let start = vec![0; placed.shape.len()];
        let opened = placed.open(true).unwrap();
        opened.write(&start, &placed.shape, &pattern(placed, seed + k)).unwrap();
        opened.sync().unwrap();
    }
}

fn elements(placed: &Placed) -> Result<Vec<u8>, Failure> {
    let mut bytes = vec![0; placed.bytes(&placed.shape)];
    placed.open(false)?.read(&vec![0; placed.shape.len()], &placed.shape, &mut bytes)?;
    Ok(bytes)
}

fn found<'c>(contents: &'c Contents, name: &str) -> &'c (Variable, Placed) {
    contents.arrays.iter().find(|(variable, _)| variable.name == name).unwrap()
}

const KINDS: [Kind; 13] = [
    Kind::Signed(1),
    Kind::Signed(2),
    Kind::Signed(4),
    Kind::Signed(8),
    Kind::Unsigned(1),
    Kind::Unsigned(2),
    Kind::Unsigned(4),
    Kind::Unsigned(8),
    Kind::Float(4),
    Kind::Float(8),
    Kind::Complex(8),
    Kind::Complex(16),
    Kind::Opaque(24),
];

#[test]
fn arrays_come_back() {
    if is_missing() {
        return;
    }
    let file = Temporary::new("arrays");
    let mut variables = Vec::new();
    for kind in KINDS {
        for (name, shape) in [("scalar", &[][..]), ("line", &[5]), ("groups/inside/box", &[3, 4, 5]), ("empty", &[3, 0, 2])] {
            variables.push(Variable::new(format!("{}{name}", kind.descr().replace(['<', '|'], "")), kind, shape));
        }
    }
    let placed = create(&file.0, &variables, &Vec::new()).unwrap();
    fill(&placed, 0);
    let contents = open(&file.0).unwrap();
    assert_eq!((contents.arrays.len(), &contents.attributes, &contents.times), (variables.len(), &Vec::new(), &None));
    for (k, (variable, placed)) in variables.iter().zip(&placed).enumerate() {
        let (again, there) = found(&contents, &variable.name);
        assert_eq!((again, there), (variable, placed));
        assert_eq!(elements(there).unwrap(), pattern(placed, k), "{}", variable.name);
    }
}

#[test]
fn the_library_reads_patches() {
    if is_missing() {
        return;
    }
    let file = Temporary::new("library");
    let variables = [Variable::new("in/a", Kind::Float(8), &[4, 5]), Variable::new("scalar", Kind::Complex(8), &[])];
    let placed = create(&file.0, &variables, &Vec::new()).unwrap();
    fill(&placed, 0);
    for (variable, placed) in variables.iter().zip(&placed) {
        let there = Placed {
            place: Place::Library { file: file.0.clone(), dataset: variable.name.clone(), chunk: None },
            ..placed.clone()
        };
        assert_eq!(elements(&there).unwrap(), elements(placed).unwrap());
        assert!(text(there.open(true).unwrap_err()).contains("can only be read"));
        let [mut one, mut other] = [[0; 48]; 2];
        if variable.shape.len() == 2 {
            there.open(false).unwrap().read(&[1, 2], &[2, 3], &mut one).unwrap();
            placed.open(false).unwrap().read(&[1, 2], &[2, 3], &mut other).unwrap();
            assert_eq!(one, other);
            there.open(false).unwrap().read(&[1, 2], &[0, 3], &mut []).unwrap();
            let beyond = there.open(false).unwrap().read(&[3, 2], &[2, 3], &mut one).unwrap_err();
            assert!(text(beyond).contains("is refused by HDF5"));
        }
        let portable = |placed: &Placed| {
            let mut bytes = Vec::new();
            placed.write(&mut bytes).unwrap();
            Placed::read(&mut &bytes[..]).unwrap()
        };
        assert_eq!(portable(&there), there);
    }
}

#[test]
fn types_of_other_programs_are_known() {
    let Ok(hdf5) = turn() else { return };
    for (name, kind, is_swapped) in [
        ("IEEE_F64BE", Kind::Float(8), Some(true)),
        ("STD_I16BE", Kind::Signed(2), Some(true)),
        ("STD_U32LE", Kind::Unsigned(4), Some(false)),
        ("NATIVE_DOUBLE", Kind::Float(8), Some(false)),
        ("NATIVE_SCHAR", Kind::Signed(1), Some(false)),
    ] {
        let known = hdf5.known(&hdf5.standard(name).unwrap()).unwrap().unwrap();
        assert_eq!((known.kind, known.is_swapped), (kind, is_swapped), "{name}");
    }
    for name in ["C_S1", "STD_REF_OBJ", "NATIVE_LDOUBLE", "UNIX_D32LE"] {
        assert!(hdf5.known(&hdf5.standard(name).unwrap()).unwrap().is_none(), "{name}");
    }
}

#[test]
fn large_arrays_begin_at_pages() {
    if is_missing() {
        return;
    }
    let file = Temporary::new("pages");
    let variables = ["a", "b", "c"].map(|name| Variable::new(name, Kind::Float(8), &[100, 100]));
    for placed in create(&file.0, &variables, &Vec::new()).unwrap() {
        assert!(matches!(placed.place, Place::Contiguous { begin, .. } if begin % 4096 == 0), "{placed:?}");
    }
}

#[test]
fn what_is_said_of_arrays_comes_back() {
    if is_missing() {
        return;
    }
    let file = Temporary::new("attributes");
    let attributes = vec![
        ("title".to_owned(), Attribute::Text("Grüße from ψ".into())),
        ("nothing".into(), Attribute::Text(String::new())),
        ("count".into(), Attribute::Integer(-7)),
        ("time".into(), Attribute::Real(0.25)),
        ("list".into(), Attribute::Integers(vec![1, i64::MIN, i64::MAX])),
        ("none".into(), Attribute::Integers(vec![])),
        ("reals".into(), Attribute::Reals(vec![1.5, f64::INFINITY])),
        // More than eight are stored in another way.
        ("h".into(), Attribute::Integer(8)),
        ("i".into(), Attribute::Integer(9)),
        ("j".into(), Attribute::Integer(10)),
        ("a".into(), Attribute::Integer(11)),
    ];
    let mut pressure = Variable::new("flow/pressure", Kind::Float(8), &[3, 4]);
    pressure.axes = vec!["y".into(), "x".into()];
    pressure.units = Some("Pa".into());
    (pressure.origin, pressure.spacing) = (vec![1.0, -2.0], vec![0.5, 0.25]);
    pressure.attributes = attributes.clone();
    let mut density = Variable::new("flow/density", Kind::Float(4), &[4]);
    density.axes = vec!["x".into()];
    let mut level = Variable::new("level", Kind::Signed(4), &[6]);
    level.axes = vec!["level".into()];
    let mut wind = Variable::new("wind", Kind::Float(4), &[2, 6, 3]);
    wind.axes = vec!["side".into(), "level".into(), String::new()];
    let variables = [wind, level, pressure, density];
    let placed = create(&file.0, &variables, &attributes).unwrap();
    fill(&placed, 0);
    let contents = open(&file.0).unwrap();
    assert_eq!(contents.attributes, attributes);
    for variable in &variables {
        assert_eq!(&found(&contents, &variable.name).0, variable);
    }
    let names: Vec<&str> = contents.arrays.iter().map(|(variable, _)| variable.name()).collect();
    assert_eq!(names, ["wind", "level", "flow/pressure", "flow/density", "flow/y", "flow/x"]);
    let x = elements(&found(&contents, "flow/x").1).unwrap();
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, f64>(&x), [-2.0, -1.75, -1.5, -1.25]);
}

#[test]
fn refusals_say_what_is_wrong() {
    if is_missing() {
        return;
    }
    let file = Temporary::new("refusals");
    let variable = |name: &str, shape: &[usize], axes: &[&str]| {
        let mut variable = Variable::new(name, Kind::Float(8), shape);
        variable.axes = axes.iter().map(|&axis| axis.to_owned()).collect();
        variable
    };
    let refusal = |variables: &[Variable]| text(create(&file.0, variables, &Vec::new()).unwrap_err());
    let said = refusal(&[variable("u", &[3], &["x"]), variable("v", &[4], &["x"])]);
    assert!(said.contains("the axis \"x\" of 4 elements and another of 3"), "{said}");
    let said = refusal(&[variable("u", &[3], &["x"]), variable("x", &[4, 3], &[])]);
    assert!(said.contains("not its coordinates"), "{said}");
    let (mut u, mut v) = (variable("u", &[3], &["x"]), variable("v", &[3], &["x"]));
    (u.origin, v.origin) = (vec![0.0], vec![0.5]);
    let said = refusal(&[u, v]);
    assert!(said.contains("other coordinates"), "{said}");
    for name in ["", "/a", "a//b", "./a", "a/"] {
        assert!(refusal(&[variable(name, &[3], &[])]).contains("use a name such as"), "{name}");
    }
    assert!(refusal(&[variable("a\0b", &[3], &[])]).contains("ends a text at"));
    assert!(refusal(&[variable("a", &[1; 33], &[])]).contains("33 axes"));
    assert!(refusal(&[variable("a", &[1], &[]), variable("a", &[1], &[])]).contains("name already exists"));
    fs::write(&file.0, "This is no HDF5 file.").unwrap();
    assert_eq!(text(open(&file.0).unwrap_err()), "is not an HDF5 file");
    fs::remove_file(&file.0).unwrap();
    assert!(matches!(open(&file.0), Err(Failure::System(error)) if error.kind() == std::io::ErrorKind::NotFound));
    let nowhere = Path::new("/nonexistent/a.h5");
    let failure = create(nowhere, &[], &Vec::new()).unwrap_err();
    assert!(matches!(failure, Failure::System(error) if error.kind() == std::io::ErrorKind::NotFound));
}

#[test]
fn steps_are_added_dropped_and_resumed() {
    if is_missing() {
        return;
    }
    let file = Temporary::new("steps");
    let mut wave = Variable::new("fields/wave", Kind::Complex(16), &[3, 4]);
    wave.axes = vec!["y".into(), "x".into()];
    wave.spacing = vec![0.1, 0.2];
    let variables = [wave, Variable::new("energy", Kind::Float(8), &[]), Variable::new("none", Kind::Float(8), &[0])];
    let attributes = vec![("time_units".to_owned(), Attribute::Text("s".into())), ("run".into(), Attribute::Integer(3))];
    let step = |time: f64, seed| {
        let placed = begin_step(&file.0, time, &variables, &attributes).unwrap();
        fill(&placed, seed);
        placed
    };
    let check = |times: &[f64], seeds: &[usize]| {
        let contents = open(&file.0).unwrap();
        assert_eq!(contents.times.as_deref(), Some(times));
        let mut sorted = contents.attributes.clone();
        sorted.sort_by(|(one, _), (other, _)| other.cmp(one));
        assert_eq!(sorted, attributes);
        for (k, variable) in variables.iter().enumerate() {
            let (again, placed) = found(&contents, &variable.name);
            assert_eq!(again.shape, [&[times.len()], variable.shape()].concat());
            assert_eq!(again.axes[0], "time");
            assert_eq!(again.spacing, variable.spacing);
            assert!(times.is_empty() || variable.bytes() == Some(0) || matches!(placed.place, Place::Chunks { .. }));
            let mut one = placed.clone();
            one.shape.remove(0);
            let expected: Vec<u8> = seeds.iter().flat_map(|seed| pattern(&one, seed + k)).collect();
            assert_eq!(elements(placed).unwrap(), expected);
        }
    };
    step(0.0, 1);
    check(&[], &[]);
    // A program that shows the file locks it.
    let shown = fs::File::open(&file.0).unwrap();
    if turn().unwrap().others.locking.is_some() {
        shown.lock_shared().unwrap();
    }
    // It did not end, so it is begun again.
    step(0.0, 2);
    end_step(&file.0, 0.0).unwrap();
    check(&[0.0], &[2]);
    step(0.5, 3);
    check(&[0.0], &[2]);
    end_step(&file.0, 0.5).unwrap();
    step(1.0, 4);
    end_step(&file.0, 1.0).unwrap();
    check(&[0.0, 0.5, 1.0], &[2, 3, 4]);
    // A run that resumes from 0.25.
    step(0.25, 5);
    check(&[0.0], &[2]);
    end_step(&file.0, 0.25).unwrap();
    step(0.75, 6);
    end_step(&file.0, 0.75).unwrap();
    check(&[0.0, 0.25, 0.75], &[2, 5, 6]);

    let refusal = |variables: &[Variable]| text(begin_step(&file.0, 2.0, variables, &attributes).unwrap_err());
    assert!(refusal(&variables[..1]).contains("has \"energy\" in each step, which this step leaves out"));
    let mut others = variables.to_vec();
    others.push(Variable::new("more", Kind::Float(4), &[2]));
    assert!(refusal(&others).contains("has no \"more\""));
    others.pop();
    others[0].shape = vec![4, 3];
    let said = refusal(&others);
    assert!(said.contains("<c16 of shape [3, 4] in each step as \"fields/wave\", and this step <c16 of shape [4, 3]"), "{said}");
    assert!(text(begin_step(&file.0, f64::NAN, &variables, &attributes).unwrap_err()).contains("NaN"));
    create(&file.0, &variables, &Vec::new()).unwrap();
    assert!(refusal(&variables).contains("no time steps"));
}

#[test]
fn a_large_step_has_several_chunks() {
    if is_missing() {
        return;
    }
    let file = Temporary::new("large");
    let variables = [Variable::new("large", Kind::Unsigned(1), &[5, 300 << 20])];
    for time in 0..2_u8 {
        let placed = begin_step(&file.0, time.into(), &variables, &Vec::new()).unwrap();
        assert!(matches!(&placed[0].place, Place::Chunks { chunk, begins, .. } if chunk == &[3, 300 << 20] && begins.len() == 2));
        placed[0].open(true).unwrap().write(&[2, (300 << 20) - 2], &[2, 2], &[time + 1, 2, 3, 4]).unwrap();
        end_step(&file.0, time.into()).unwrap();
    }
    let contents = open(&file.0).unwrap();
    let mut bytes = [0; 4];
    let (variable, placed) = &contents.arrays[0];
    assert_eq!(variable.shape(), [2, 5, 300 << 20]);
    for time in 0..2 {
        placed.open(false).unwrap().read(&[time, 2, (300 << 20) - 2], &[1, 2, 2], &mut bytes).unwrap();
        assert_eq!(bytes, [time as u8 + 1, 2, 3, 4]);
    }
}

#[test]
fn what_is_beside_its_description_is_read() {
    if is_missing() {
        return;
    }
    const COMPACT: i32 = 0;
    let file = Temporary::new("compact");
    {
        let hdf5 = turn().unwrap();
        let made = hdf5.new_file(&file.0, &Vec::new()).unwrap();
        for (name, shape, bytes) in [("scalar", &[][..], &[1, 2, 3, 4][..]), ("line", &[2], &[5, 6, 7, 8, 9, 10, 11, 12])] {
            let properties = hdf5.properties("DATASET").unwrap();
            hdf5.H5Pset_layout(properties.raw, COMPACT).unwrap();
            let (of, space) = (hdf5.type_of(Kind::Signed(4)).unwrap(), hdf5.space(shape, shape).unwrap());
            let (name, links) = (crate::file::libhdf5::text(name).unwrap(), hdf5.links().unwrap());
            let name = (&*name).into();
            let dataset = hdf5.H5Dcreate2(made.raw, name, of.raw, space.raw, links.raw, properties.raw, DEFAULT).unwrap();
            hdf5.write(&dataset, &of, &vec![0; shape.len()], shape, bytes).unwrap();
        }
        made.close_file().unwrap();
    }
    let contents = open(&file.0).unwrap();
    assert_eq!(elements(&found(&contents, "scalar").1).unwrap(), [1, 2, 3, 4]);
    assert_eq!(elements(&found(&contents, "line").1).unwrap(), [5, 6, 7, 8, 9, 10, 11, 12]);
}

#[test]
fn whole_chunks_are_asked_for() {
    if is_missing() {
        return;
    }
    let file = Temporary::new("chunks");
    let cases = [
        ("large", vec![400, 1000], vec![300, 1000], Some(vec![300, 1000])),
        ("small", vec![400, 1000], vec![10, 10], Some(vec![130, 1000])),
        ("short", vec![3, 5], vec![1024, 1024], Some(vec![3, 5])),
        ("huge", vec![40_000, 1000], vec![35_000, 1000], None),
    ];
    {
        let hdf5 = turn().unwrap();
        let made = hdf5.new_file(&file.0, &Vec::new()).unwrap();
        for (name, shape, chunk, _) in &cases {
            let properties = hdf5.properties("DATASET").unwrap();
            hdf5.H5Pset_layout(properties.raw, CHUNKED).unwrap();
            hdf5.set_chunk(&properties, chunk).unwrap();
            let (of, space) = (hdf5.type_of(Kind::Float(8)).unwrap(), hdf5.space(shape, &[u64::MAX; 2]).unwrap());
            let (name, links) = (crate::file::libhdf5::text(name).unwrap(), hdf5.links().unwrap());
            let name = (&*name).into();
            hdf5.H5Dcreate2(made.raw, name, of.raw, space.raw, links.raw, properties.raw, DEFAULT).unwrap();
        }
        made.close_file().unwrap();
    }
    let contents = open(&file.0).unwrap();
    for (name, _, _, expected) in cases {
        let placed = &found(&contents, name).1;
        assert_eq!((placed.chunk(), placed.is_encoded()), (expected.as_deref(), expected.is_some()), "{name}");
        let mut bytes = Vec::new();
        placed.write(&mut bytes).unwrap();
        assert_eq!(Placed::read(&mut &bytes[..]).unwrap(), *placed);
    }
    assert!(elements(&found(&contents, "small").1).unwrap().iter().all(|&byte| byte == 0));
}
