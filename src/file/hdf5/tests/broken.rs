//! Files that are damaged, absurd or too long.

use super::*;

/// The number of the first broken file that a process tries.
const FROM: &str = "GA_TEST_BROKEN_FROM";

/// A process of its own tries them until one ends it, because libhdf5 itself may crash on broken files.
#[test]
fn broken_files_are_refused() {
    if is_missing() {
        return;
    }
    let is_long = env::var("GA_TEST_LONG").is_ok_and(|value| value == "1");
    let cases = if is_long { 5_000 } else { 400 };
    if let Ok(from) = env::var(FROM) {
        return try_broken_files(from.parse().unwrap(), cases);
    }
    // A process that crashes leaves its files.
    let folder = Temporary::new("folder");
    fs::create_dir(&folder.0).unwrap();
    let mut from = 0;
    let mut crashes = 0;
    while from < cases {
        let name = own("broken_files_are_refused");
        let child = Command::new(env::current_exe().unwrap())
            .args(["--exact", &name, "--nocapture"])
            .env(FROM, from.to_string())
            .env("TMPDIR", &folder.0)
            .output()
            .unwrap();
        if child.status.success() {
            assert!(String::from_utf8_lossy(&child.stdout).contains("1 passed"), "no test is named {name}");
            break;
        }
        let said = String::from_utf8_lossy(&child.stderr);
        assert!(child.status.code().is_none() && !said.contains("memory allocation") && !said.contains("panicked"), "{said}");
        from = said.lines().filter_map(|line| line.strip_prefix("case ")?.parse::<u64>().ok()).max().unwrap() + 1;
        crashes += 1;
    }
    eprintln!("libhdf5 crashed at {crashes} of {cases} broken files");
}

fn try_broken_files(from: u64, cases: u64) {
    let limit = |resource, most: u64| {
        let maximum = getrlimit(resource).maximum;
        let current = Some(maximum.map_or(most, |maximum| maximum.min(most)));
        setrlimit(resource, Rlimit { current, maximum }).unwrap();
    };
    limit(Resource::As, 2 << 30);
    limit(Resource::Core, 0);
    let (file, broken) = (Temporary::new("whole"), Temporary::new("broken"));
    let steps = Temporary::new("broken-steps");
    let mut u = Variable::new("flow/u", Kind::Float(8), &[3, 4]);
    u.axes = vec!["y".into(), "x".into()];
    u.spacing = vec![0.5, 0.5];
    u.attributes = vec![("title".into(), Attribute::Text("u".into())), ("list".into(), Attribute::Reals(vec![1.0, 2.0]))];
    let variables = [u, Variable::new("c", Kind::Complex(8), &[5])];
    fill(&create(&file.0, &variables, &Vec::new()).unwrap(), 0);
    for step in 0..3_u8 {
        fill(&begin_step(&steps.0, step.into(), &variables, &Vec::new()).unwrap(), 1);
        end_step(&steps.0, step.into()).unwrap();
    }
    let whole = [fs::read(&file.0).unwrap(), fs::read(&steps.0).unwrap()];
    for case in from..cases {
        eprintln!("case {case}");
        let mut state = case.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |below: usize| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as usize % below
        };
        let mut bytes = whole[random(2)].clone();
        if random(5) == 0 {
            bytes.truncate(random(bytes.len()));
        } else {
            for _ in 0..=random(6) {
                let place = random(bytes.len());
                bytes[place] = [0, 1, 0x7f, 0x80, 0xff, random(256) as u8][random(6)];
            }
        }
        fs::write(&broken.0, &bytes).unwrap();
        // A loop that does not end is a crash of the library, too.
        let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec as u64;
        limit(Resource::Cpu, used + 10);
        if let Ok(contents) = open(&broken.0) {
            for (_, placed) in contents.arrays.iter().filter(|(variable, _)| variable.bytes().unwrap() < 1 << 20) {
                let _ = elements(placed);
            }
        }
        let _ = begin_step(&broken.0, 1.5, &variables, &Vec::new()).and_then(|_| end_step(&broken.0, 1.5));
    }
}

#[test]
fn what_is_longer_than_a_file_may_be_is_refused() {
    const CHILD: &str = "GA_TEST_LIMITED";
    if is_missing() {
        return;
    }
    if env::var_os(CHILD).is_none() {
        let name = own("what_is_longer_than_a_file_may_be_is_refused");
        let ended = Command::new(env::current_exe().unwrap()).args(["--exact", &name]).env(CHILD, "1").output().unwrap();
        assert!(
            String::from_utf8_lossy(&ended.stdout).contains("1 passed") || !ended.status.success(),
            "no test is named {name}"
        );
        return assert!(ended.status.success(), "{ended:?}");
    }
    setrlimit(Resource::Fsize, Rlimit { current: Some(1 << 20), maximum: Some(1 << 20) }).unwrap();
    let file = Temporary::new("limited");
    let refusal = |made: Result<Vec<Placed>, Failure>| {
        assert!(text(made.unwrap_err()).contains("a file may have 1048576 bytes"));
    };
    let large = [Variable::new("a", Kind::Float(8), &[1 << 17])];
    refusal(create(&file.0, &large, &Vec::new()));
    refusal(begin_step(&file.0, 0.0, &large, &Vec::new()));
    assert!(!file.0.exists());
    let mut axis = [Variable::new("a", Kind::Unsigned(1), &[1 << 17])];
    (axis[0].axes, axis[0].spacing) = (vec!["x".into()], vec![0.5]);
    refusal(create(&file.0, &axis, &Vec::new()));
    // As many steps as there is room for.
    let small = [Variable::new("a", Kind::Float(8), &[1 << 14])];
    let mut steps = 0;
    let made = loop {
        match begin_step(&file.0, steps.into(), &small, &Vec::new()) {
            Ok(placed) => fill(&placed, 0),
            refused => break refused,
        }
        end_step(&file.0, steps.into()).unwrap();
        steps += 1;
    };
    refusal(made);
    assert!(steps > 4, "{steps}");
}

#[test]
fn absurdly_many_times_are_refused() {
    if is_missing() {
        return;
    }
    let file = Temporary::new("many-times");
    {
        let hdf5 = turn().unwrap();
        let properties = hdf5.properties("DATASET").unwrap();
        hdf5.H5Pset_layout(properties.raw, CHUNKED).unwrap();
        hdf5.set_chunk(&properties, &[1024]).unwrap();
        let made = hdf5.new_file(&file.0, &Vec::new()).unwrap();
        let (of, space) = (hdf5.type_of(Kind::Float(8)).unwrap(), hdf5.space(&[1 << 45], &[u64::MAX]).unwrap());
        let links = hdf5.links().unwrap();
        let times = hdf5.H5Dcreate2(made.raw, c"time".into(), of.raw, space.raw, links.raw, properties.raw, DEFAULT).unwrap();
        hdf5.put_label(&times, "CLASS", "DIMENSION_SCALE").unwrap();
        drop((times, properties, of, space, links));
        made.close_file().unwrap();
    }
    let refusal = text(open(&file.0).unwrap_err());
    assert!(refusal.contains("has 35184372088832 time steps; at most"), "{refusal}");
    let refusal = text(begin_step(&file.0, 1.0, &[], &Vec::new()).unwrap_err());
    assert!(refusal.contains("at most"), "{refusal}");
}

/// The name by which another process runs a test of this module.
fn own(test: &str) -> String {
    let (_, module) = module_path!().split_once("::").unwrap();
    format!("{module}::{test}")
}
