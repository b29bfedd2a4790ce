mod foreign;

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use serde_json::{Value, json};

use foreign::array_of_version_3;

use super::{steps::TIMES, *};
use crate::file::chunks::{self, Codec};
use crate::{
    file::{runs::for_each_run, variable::Attribute},
    portable::Portable,
};

/// A path for a store, which is removed with what is there.
struct Store(PathBuf);

impl Store {
    fn new() -> Store {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("ga-zarr-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Store(std::env::temp_dir().join(name))
    }

    /// With one file of metadata, and chunks.
    fn made_of(metadata: &str, json: &Value, chunks: &[(&str, Vec<u8>)]) -> Store {
        let store = Store::new();
        fs::create_dir_all(&store.0).unwrap();
        fs::write(store.0.join(metadata), json.to_string()).unwrap();
        for (key, bytes) in chunks {
            let file = store.0.join(key);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, bytes).unwrap();
        }
        store
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Numbers that are the same each time (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next() as u8).collect()
    }

    fn patch(&mut self, shape: &[usize]) -> [Vec<usize>; 2] {
        let start: Vec<usize> = shape.iter().map(|&extent| self.below(extent)).collect();
        let count = shape.iter().zip(&start).map(|(extent, start)| 1 + self.below(extent - start)).collect();
        [start, count]
    }
}

fn text(failure: Failure) -> String {
    match failure {
        Failure::Format(what) => what,
        Failure::System(error) => error.to_string(),
    }
}

/// As another member has it.
fn told<R: Portable + PartialEq + std::fmt::Debug>(value: &R) -> R {
    let mut bytes = Vec::new();
    value.write(&mut bytes).unwrap();
    let there = R::read(&mut &bytes[..]).unwrap();
    assert_eq!(there, *value);
    there
}

fn whole(placed: &Placed) -> Vec<u8> {
    let mut bytes = vec![0xee; placed.bytes(&placed.shape)];
    placed.open(false).unwrap().read(&vec![0; placed.shape.len()], &placed.shape, &mut bytes).unwrap();
    bytes
}

fn fill_all(placed: &Placed, bytes: &[u8]) {
    let opened = placed.open(true).unwrap();
    opened.write(&vec![0; placed.shape.len()], &placed.shape, bytes).unwrap();
    opened.sync().unwrap();
}

/// Copies a patch between an array in memory and its own bytes.
fn copy(model: &mut [u8], shape: &[usize], size: usize, [start, count]: &[Vec<usize>; 2], patch: &mut [u8], writes: bool) {
    for_each_run([shape, start], [count, &vec![0; count.len()]], count, |there, here, len| {
        let (model, patch) = (&mut model[there * size..(there + len) * size], &mut patch[here * size..(here + len) * size]);
        if writes {
            model.copy_from_slice(patch)
        } else {
            patch.copy_from_slice(model)
        }
        Ok::<(), ()>(())
    })
    .unwrap();
}

const KINDS: [&str; 13] = ["|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f4", "<f8", "<c8", "<c16", "|V24"];

fn kind(descr: &str) -> Kind {
    Kind::named(descr).unwrap().0
}

fn described(name: &str, shape: &[usize]) -> Variable {
    let mut variable = Variable::new(name, Kind::Float(8), shape);
    variable.axes = ["z", "y", "x"][3 - shape.len()..].iter().map(|axis| (*axis).to_owned()).collect();
    variable.units = Some("Pa".into());
    variable.spacing = vec![0.5; shape.len()];
    variable.origin = vec![-1.0; shape.len()];
    variable
}

#[test]
fn patches_of_all_kinds_are_as_in_memory() {
    let mut random = Random(1);
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[7, 9], &[3, 4]),
        (&[5, 6, 7], &[2, 6, 3]),
        (&[20], &[20]),
        (&[4, 4], &[1, 9]),
        (&[], &[]),
        (&[1, 1, 1, 3], &[1, 1, 1, 2]),
    ];
    for compression in [None, Some(Compression::Gzip(6)), Some(Compression::Zstd(3)), Some(Compression::Zstd(-5))] {
        for descr in KINDS {
            let (shape, chunk) = shapes[random.below(shapes.len())];
            let variable = Variable::new("group/inner/array", kind(descr), shape);
            let store = Store::new();
            let placed = create(&store.0, std::slice::from_ref(&variable), &vec![], &[chunk.to_vec()], compression).unwrap();
            let (placed, size) = (told(&placed[0]), variable.kind.size());
            let mut model = vec![0; placed.bytes(shape)];
            assert_eq!(whole(&placed), model, "nothing is written yet");
            let (writer, other) = (placed.open(true).unwrap(), placed.open(true).unwrap());
            for round in 0..30 {
                let patch = random.patch(shape);
                let mut bytes = random.bytes(placed.bytes(&patch[1]));
                if round % 3 == 0 {
                    [&writer, &other][random.below(2)].write(&patch[0], &patch[1], &bytes).unwrap();
                    copy(&mut model, shape, size, &patch, &mut bytes, true);
                } else {
                    let mut expected = bytes.clone();
                    copy(&mut model, shape, size, &patch, &mut expected, false);
                    other.read(&patch[0], &patch[1], &mut bytes).unwrap();
                    assert_eq!(bytes, expected);
                }
            }
            writer.sync().unwrap();
            other.sync().unwrap();
            let contents = told(&open(&store.0).unwrap());
            assert_eq!(contents.arrays, [(variable, placed.clone())]);
            assert_eq!(whole(&contents.arrays[0].1), model);
            let reader = placed.open(false).unwrap();
            for _ in 0..20 {
                let patch = random.patch(shape);
                let mut bytes = vec![0; placed.bytes(&patch[1])];
                let mut expected = bytes.clone();
                copy(&mut model, shape, size, &patch, &mut expected, false);
                reader.read(&patch[0], &patch[1], &mut bytes).unwrap();
                assert_eq!(bytes, expected);
            }
        }
    }
}

#[test]
fn many_write_one_chunk_at_once() {
    let store = Store::new();
    let variable = Variable::new("a", Kind::Unsigned(1), &[8, 64]);
    let placed = create(&store.0, &[variable], &vec![], &[vec![8, 50]], None).unwrap().remove(0);
    std::thread::scope(|scope| {
        for row in 0..8 {
            let placed = &placed;
            scope.spawn(move || {
                let opened = placed.open(true).unwrap();
                opened.write(&[row, 0], &[1, 64], &[row as u8 + 1; 64]).unwrap();
                opened.sync().unwrap();
            });
        }
    });
    assert_eq!(whole(&placed), (1..=8).flat_map(|row| [row; 64]).collect::<Vec<u8>>());
    let lengths = ["0", "1"].map(|key| fs::metadata(store.0.join("a/c/0").join(key)).unwrap().len());
    assert_eq!(lengths, [400, 400]);
}

#[test]
fn what_is_said_of_arrays_comes_back() {
    let store = Store::new();
    let mut pressure = described("flow/pressure", &[3, 4]);
    pressure.attributes = vec![
        ("a".into(), Attribute::Integers(vec![1, -2])),
        ("b".into(), Attribute::Reals(vec![0.5, f64::INFINITY])),
        ("c".into(), Attribute::Real(2.0)),
        ("d".into(), Attribute::Integer(i64::MIN)),
        ("e".into(), Attribute::Text("μ".into())),
    ];
    let mut half = Variable::new("half", Kind::Complex(8), &[2, 2]);
    half.axes = vec![String::new(), "k".into()];
    let empty = Variable::new("flow/deep/empty", Kind::Signed(4), &[0, 5]);
    let variables = [empty, pressure, half];
    let attributes: Attributes = vec![("title".into(), "a test".into())];
    let chunks = [vec![0, 2], vec![2, 2], vec![2, 2]];
    create(&store.0, &variables, &attributes, &chunks, None).unwrap();
    let contents = open(&store.0).unwrap();
    assert_eq!((&contents.attributes, &contents.times), (&attributes, &None));
    let names: Vec<&str> = contents.arrays.iter().map(|(variable, _)| variable.name()).collect();
    assert_eq!(names, ["flow/deep/empty", "flow/pressure", "flow/x", "flow/y", "half"]);
    for variable in &variables {
        let (found, placed) = contents.arrays.iter().find(|(found, _)| found.name == variable.name).unwrap();
        assert_eq!(found, variable);
        whole(placed);
    }
    let x: Vec<f64> = bytemuck::pod_collect_to_vec(&whole(&contents.arrays[2].1));
    assert_eq!(x, [-1.0, -0.5, 0.0, 0.5]);
    let root: Value = serde_json::from_slice(&fs::read(store.0.join("zarr.json")).unwrap()).unwrap();
    let all = root["consolidated_metadata"]["metadata"].as_object().unwrap();
    assert_eq!(all.len(), names.len() + 2);
    for (name, json) in all {
        let own: Value = serde_json::from_slice(&fs::read(store.0.join(name).join("zarr.json")).unwrap()).unwrap();
        assert_eq!(own, *json);
    }
    assert!(text(create(&store.0, &variables, &attributes, &chunks, None).unwrap_err()).contains("exists"));
}

#[test]
fn an_array_without_a_name_is_the_store() {
    let store = Store::new();
    let variable = described("", &[3]);
    let placed = create(&store.0, &[variable], &vec![("title".into(), "one".into())], &[vec![2]], None).unwrap();
    fill_all(&placed[0], &[7; 24]);
    let contents = open(&store.0).unwrap();
    assert_eq!((contents.arrays.len(), contents.arrays[0].0.name()), (1, ""));
    assert_eq!(contents.arrays[0].0.attributes, [("title".into(), "one".into())]);
    assert_eq!(whole(&contents.arrays[0].1), [7; 24]);
}

#[test]
fn what_cannot_be_written_is_said() {
    let refusal = |variables: &[Variable]| {
        let store = Store::new();
        let chunks: Vec<Vec<usize>> = variables.iter().map(|variable| vec![2; variable.shape.len()]).collect();
        let refusal = text(create(&store.0, variables, &vec![], &chunks, None).unwrap_err());
        assert!(!store.0.exists(), "{refusal}");
        refusal
    };
    let plain = |name: &str| Variable::new(name, Kind::Float(4), &[2]);
    for name in ["/a", "a/", "a//b", "..", "a/../b", ".", "__x", "a/zarr.json", "a\0"] {
        assert!(refusal(&[plain(name)]).contains("with the name"), "{name}");
    }
    assert!(refusal(&[plain("a"), plain("a")]).contains("two arrays"));
    assert!(refusal(&[plain("a/b"), plain("a")]).contains("inside"));
    assert!(refusal(&[plain("a"), plain("a/b")]).contains("inside"));
    assert!(refusal(&[plain(""), plain("a")]).contains("beside"));
    assert!(refusal(&[described("a", &[2, 3]), described("b", &[2, 4])]).contains("axis x with 3 and with 4"));
    let mut other = described("b", &[2, 3]);
    other.origin[1] = 7.0;
    assert!(refusal(&[described("a", &[2, 3]), other.clone()]).contains("two origins"));
    other.name = "group/b".into();
    let store = Store::new();
    create(&store.0, &[described("a", &[2, 3]), other], &vec![], &[vec![2, 2], vec![2, 2]], None).unwrap();
    assert!(refusal(&[Variable::new("a", Kind::Float(8), &[usize::MAX, 2])]).contains("too large"));
    let store = Store::new();
    let wide = [Variable::new("a", Kind::Float(8), &[1 << 29])];
    let refused = create(&store.0, &wide, &vec![], &[vec![1 << 29]], Some(Compression::Zstd(1))).unwrap_err();
    assert!(text(refused).contains("4294967296 bytes"));
}

#[test]
fn steps_are_there_when_they_are_ended() {
    for compression in [None, Some(Compression::Zstd(3))] {
        let store = Store::new();
        let path = &store.0;
        let variables = [described("flow/p", &[3, 4]), Variable::new("energy", Kind::Float(8), &[])];
        let chunks = [vec![2, 2], vec![]];
        let begin = |time| begin_step(path, time, &variables, &vec![("title".into(), "run".into())], &chunks, compression);
        let step = |time: f64, value: u8| {
            let placed = begin(time)?;
            fill_all(&placed[0], &[value; 96]);
            fill_all(&placed[1], &[value; 8]);
            end_step(path, time)
        };
        let check = |times: &[f64], values: &[u8]| {
            let contents = open(path).unwrap();
            assert_eq!(contents.times.as_deref(), Some(times));
            assert_eq!(contents.attributes, [("title".into(), "run".into())]);
            let names: Vec<&str> = contents.arrays.iter().map(|(variable, _)| variable.name()).collect();
            assert_eq!(names, ["energy", "flow/p", "flow/x", "flow/y"]);
            let (energy, p) = (&contents.arrays[0], &contents.arrays[1]);
            assert_eq!((energy.0.axes(), p.0.axes().len(), p.0.spacing()), (&["time".to_owned()][..], 3, &[0.5, 0.5][..]));
            assert_eq!(p.0.shape(), [times.len(), 3, 4]);
            assert_eq!(whole(&energy.1), values.iter().flat_map(|&value| [value; 8]).collect::<Vec<u8>>());
            assert_eq!(whole(&p.1), values.iter().flat_map(|&value| [value; 96]).collect::<Vec<u8>>());
        };
        let placed = begin(0.0).unwrap();
        assert_eq!((&placed[0].shape[..], &placed[1].shape[..]), (&[3, 4][..], &[][..]));
        check(&[], &[]);
        for k in 0..4 {
            step(f64::from(k) * 0.5, k as u8 + 1).unwrap();
        }
        check(&[0.0, 0.5, 1.0, 1.5], &[1, 2, 3, 4]);
        // Not ended: the step is not there, and the next attempt does not see its chunks.
        let placed = begin(2.0).unwrap();
        fill_all(&placed[0], &[99; 96]);
        check(&[0.0, 0.5, 1.0, 1.5], &[1, 2, 3, 4]);
        assert_eq!(whole(&begin(2.0).unwrap()[0]), [0; 96]);
        // Shapes grew, the time did not.
        let p = path.join("flow/p/zarr.json");
        let longer = fs::read_to_string(&p).unwrap().replacen("    4,\n", "    5,\n", 1);
        fs::write(&p, longer).unwrap();
        check(&[0.0, 0.5, 1.0, 1.5], &[1, 2, 3, 4]);
        step(2.0, 5).unwrap();
        check(&[0.0, 0.5, 1.0, 1.5, 2.0], &[1, 2, 3, 4, 5]);
        // A run that goes back.
        step(0.75, 6).unwrap();
        check(&[0.0, 0.5, 0.75], &[1, 2, 6]);
        step(0.75, 7).unwrap();
        check(&[0.0, 0.5, 0.75], &[1, 2, 7]);
        let refusal = |variables: &[Variable]| text(begin_step(path, 9.0, variables, &vec![], &chunks, None).unwrap_err());
        assert!(refusal(&variables[..1]).contains("of \"energy\", of which none"));
        assert!(refusal(&[described("flow/p", &[3, 5])]).contains("[3, 4]"));
        assert!(refusal(&[Variable::new("q", Kind::Float(8), &[])]).contains("no time steps of \"q\""));
        assert!(refusal(&[Variable::new("energy", Kind::Float(4), &[])]).contains("<f4"));
        assert!(refusal(&[Variable::new("time", Kind::Float(8), &[])]).contains("with the name"));
        assert!(text(begin(f64::NAN).unwrap_err()).contains("no number"));
        check(&[0.0, 0.5, 0.75], &[1, 2, 7]);
    }
}

#[test]
fn many_steps_need_many_chunks_of_times() {
    let store = Store::new();
    let times: Vec<f64> = (0..TIMES + 3).map(|k| k as f64).collect();
    let variable = [Variable::new("a", Kind::Signed(1), &[])];
    begin_step(&store.0, 0.0, &variable, &vec![], &[vec![]], None).unwrap();
    // All but the last three at once.
    let nodes = nodes::walk(&store.0).unwrap();
    let mut placed = arrays(&nodes).unwrap().into_iter().find(|(variable, _)| variable.name == TIME).unwrap().1;
    placed.shape = vec![TIMES];
    fill_all(&placed, bytemuck::cast_slice(&times[..TIMES]));
    for name in ["a", "time"] {
        let file = store.0.join(name).join("zarr.json");
        let mut json: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        json["shape"] = json!([TIMES]);
        fs::write(file, json.to_string()).unwrap();
    }
    for &time in &times[TIMES..] {
        begin_step(&store.0, time, &variable, &vec![], &[vec![]], None).unwrap();
        end_step(&store.0, time).unwrap();
    }
    assert_eq!(open(&store.0).unwrap().times, Some(times));
}

#[test]
fn a_new_chunk_keeps_the_value_to_fill_with() {
    let mut json = array_of_version_3(json!([4, 6]), json!([4, 4]), "int32", json!([{"name": "bytes"}]));
    json["fill_value"] = json!(-3);
    let store = Store::made_of("zarr.json", &json, &[]);
    let placed = open(&store.0).unwrap().arrays.remove(0).1;
    std::thread::scope(|scope| {
        for row in 0..4_usize {
            let placed = &placed;
            scope.spawn(move || {
                placed.open(true).unwrap().write(&[row, 1], &[1, 2], bytemuck::cast_slice(&[5, row as i32])).unwrap()
            });
        }
    });
    let expected: Vec<i32> = (0..4).flat_map(|row| [-3, 5, row, -3, -3, -3]).collect();
    assert_eq!(bytemuck::pod_collect_to_vec::<u8, i32>(&whole(&placed)), expected);
    assert_eq!(fs::read_dir(store.0.join("c/0")).unwrap().count(), 1);
}

#[test]
fn a_sync_that_failed_is_done_again() {
    let store = Store::new();
    let variable = Variable::new("a", Kind::Unsigned(1), &[4]);
    let placed = create(&store.0, &[variable], &vec![], &[vec![2]], None).unwrap().remove(0);
    let opened = placed.open(true).unwrap();
    opened.write(&[0], &[4], &[7; 4]).unwrap();
    let chunks = store.0.join("a/c");
    fs::rename(&chunks, store.0.join("a/away")).unwrap();
    assert!(opened.sync().is_err());
    assert!(opened.sync().is_err(), "the second sync still knows what was written");
    fs::rename(store.0.join("a/away"), &chunks).unwrap();
    opened.sync().unwrap();
}

#[test]
fn a_chunk_that_is_longer_than_a_file_may_be_is_refused() {
    const CHILD: &str = "GA_TEST_LIMITED";
    if std::env::var_os(CHILD).is_none() {
        let name = "file::zarr::tests::a_chunk_that_is_longer_than_a_file_may_be_is_refused";
        let mut child = std::process::Command::new(std::env::current_exe().unwrap());
        let ended = child.args(["--exact", name]).env(CHILD, "1").output().unwrap();
        return assert!(ended.status.success(), "{ended:?}");
    }
    let limit = rustix::process::Rlimit { current: Some(100_000), maximum: Some(100_000) };
    rustix::process::setrlimit(rustix::process::Resource::Fsize, limit).unwrap();
    for compression in [None, Some(Compression::Gzip(0))] {
        let store = Store::new();
        let variable = Variable::new("a", Kind::Unsigned(1), &[200_000]);
        let placed = create(&store.0, &[variable], &vec![], &[vec![200_000]], compression).unwrap().remove(0);
        let refusal = placed.open(true).unwrap().write(&[0], &[200_000], &[7; 200_000]).unwrap_err();
        assert!(text(refusal).contains("a file may have 100000 bytes"));
    }
}

#[test]
fn whole_chunks_and_long_runs_are_written_as_they_are() {
    for compression in [None, Some(Compression::Zstd(1)), Some(Compression::Gzip(1))] {
        let (store, half) = (Store::new(), 300 << 10);
        let variable = Variable::new("a", Kind::Unsigned(1), &[2 * half]);
        let placed = create(&store.0, &[variable], &vec![], &[vec![half]], compression).unwrap().remove(0);
        let bytes = Random(5).bytes(2 * half);
        let opened = placed.open(true).unwrap();
        for begin in [half, 0] {
            opened.write(&[begin], &[half], &bytes[begin..begin + half]).unwrap();
        }
        opened.sync().unwrap();
        assert!(whole(&placed) == bytes);
    }
}
