//! Ranks that meet by a launcher which is a thread of the test.

use std::{
    collections::HashMap,
    os::{fd::AsRawFd, unix::net::UnixStream},
    sync::{
        Arc, Barrier,
        atomic::{AtomicUsize, Ordering},
    },
};

use super::*;
use crate::comm::start::bootstrap::mapping;

/// A launcher's side of the lines to its processes, as far as meetings go.
struct Fake {
    values: Mutex<HashMap<String, String>>,
    /// Without one, it waits for a process that never comes.
    fence: Option<Barrier>,
    longest: usize,
    /// The version that it speaks.
    version: usize,
    /// The nodes of the ranks, as it gives them.
    mapping: &'static str,
    /// The most questions of one process.
    most: AtomicUsize,
}

impl Fake {
    /// Answers one process until it takes its leave or is gone.
    fn serve(&self, stream: &UnixStream) {
        // SAFETY: the stream is open during this call, and only this thread uses it.
        let line = unsafe { Line::new(stream.as_raw_fd()) };
        let field = |text: &str, name: &str| {
            let found = text.split([' ', ';']).find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
            found.unwrap_or_default().to_owned()
        };
        let (mut framed, mut gets) = (false, 0);
        while let Some(asked) = if framed { read_framed(&line) } else { line.read_line(|| Ok(())).ok() } {
            let (key, value) = (field(&asked, "key"), field(&asked, "value"));
            gets += usize::from(["get", "kvs-get"].contains(&&*field(&asked, "cmd")));
            self.most.fetch_max(gets, Ordering::Relaxed);
            let answer = match field(&asked, "cmd").as_str() {
                "get" if key == mapping::MAPPING && !self.mapping.is_empty() => {
                    format!("cmd=get_result rc=0 msg=success value={}", self.mapping)
                }
                "info-getjobattr" if self.mapping.is_empty() => "cmd=info-getjobattr-response;rc=0;found=FALSE;".into(),
                "info-getjobattr" => format!("cmd=info-getjobattr-response;rc=0;found=TRUE;value={};", self.mapping),
                "init" => {
                    let speaks = field(&asked, "pmi_version") == self.version.to_string();
                    let rc = if speaks { 0 } else { -1 };
                    line.write(
                        format!("cmd=response_to_init pmi_version={} pmi_subversion=0 rc={rc}\n", self.version).as_bytes(),
                    )
                    .unwrap();
                    framed = speaks && self.version == 2;
                    continue;
                }
                "get_maxes" => format!("cmd=maxes kvsname_max=64 keylen_max=64 vallen_max={}", self.longest),
                "get_my_kvsname" => "cmd=my_kvsname kvsname=job".into(),
                "fullinit" => "cmd=fullinit-response;rank=0;size=2;rc=0;".into(),
                put @ ("put" | "kvs-put") => {
                    assert!(key.len() < 64 && value.len() < self.longest, "{key}={value}");
                    assert_eq!(self.values.lock().unwrap().insert(key, value), None, "a key is used once");
                    if put == "put" { "cmd=put_result rc=0 msg=success".into() } else { "cmd=kvs-put-response;rc=0;".to_owned() }
                }
                "get" => match self.values.lock().unwrap().get(&key) {
                    Some(value) => format!("cmd=get_result rc=0 msg=success value={value}"),
                    None => "cmd=get_result rc=-1 msg=key_not_found value=unknown".into(),
                },
                "kvs-get" => match self.values.lock().unwrap().get(&key) {
                    Some(value) => format!("cmd=kvs-get-response;rc=0;found=TRUE;value={value};"),
                    None => "cmd=kvs-get-response;rc=0;found=FALSE;".into(),
                },
                "barrier_in" | "kvs-fence" => {
                    let Some(fence) = &self.fence else { continue };
                    fence.wait();
                    if framed { "cmd=kvs-fence-response;rc=0;" } else { "cmd=barrier_out" }.into()
                }
                "finalize" if framed => "cmd=finalize-response;rc=0;".into(),
                "finalize" => "cmd=finalize_ack".into(),
                other => panic!("asked {other}"),
            };
            let answer = if framed { format!("{:6}{answer}", answer.len()) } else { format!("{answer}\n") };
            if line.write(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

fn read_framed(line: &Line) -> Option<String> {
    let mut len = [0; 6];
    line.read(&mut len, || Ok(())).ok()?;
    let mut text = vec![0; std::str::from_utf8(&len).ok()?.trim().parse().ok()?];
    line.read(&mut text, || Ok(())).ok()?;
    String::from_utf8(text).ok()
}

/// Lets each of `ranks` ranks do something with a connection of its own.
fn meet<T: Send>(ranks: usize, version: usize, longest: usize, body: impl Fn(Connection) -> T + Sync) -> Vec<T> {
    meet_on("", ranks, version, longest, body).0
}

/// As [`meet`], on nodes as the launcher gives them. Also returns the most questions of one rank.
fn meet_on<T: Send>(
    mapping: &'static str,
    ranks: usize,
    version: usize,
    longest: usize,
    body: impl Fn(Connection) -> T + Sync,
) -> (Vec<T>, usize) {
    let (values, fence, most) = (Mutex::default(), Some(Barrier::new(ranks)), AtomicUsize::new(0));
    let fake = Arc::new(Fake { values, fence, longest, version, mapping, most });
    let met = std::thread::scope(|scope| {
        let rank = |rank| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let (fake, body) = (fake.clone(), &body);
            scope.spawn(move || fake.serve(&theirs));
            scope.spawn(move || {
                let started = Started::by_pmi(rank, ranks, ours.as_raw_fd());
                let launcher = connect(started, None, &mut || Ok(())).unwrap();
                body(Connection {
                    launcher,
                    started,
                    size: ranks,
                    nodes: None,
                    limit: None,
                    process: 0,
                    step: 0,
                    broken: false,
                    said: false,
                })
            })
        };
        let ranks: Vec<_> = (0..ranks).map(rank).collect();
        ranks.into_iter().map(|rank| rank.join().unwrap()).collect()
    });
    (met, fake.most.load(Ordering::Relaxed))
}

/// Both ways of a reduction, and values of more than one part.
#[test]
fn ranks_meet_by_either_version() {
    for (ranks, version, longest) in [(1, 1, 1024), (3, 1, 20), (3, 2, 1024), (FEW + 3, 1, 64), (FEW + 3, 2, 1024)] {
        let all = meet(ranks, version, longest, |mut connection| {
            let own = connection.rank() as u64;
            let gathered = connection.gather([own, u64::MAX - own]).unwrap();
            let greatest = connection.greatest([own, !own]).unwrap();
            let group = if own < 2 { vec![0, 1] } else { (2..ranks).collect() };
            let told = connection.tell(&group[..group.len().min(ranks)], [own + 7]).unwrap();
            connection.launcher.finish(&mut || Ok(())).unwrap();
            (gathered, greatest, told)
        });
        let last = ranks as u64 - 1;
        for (rank, (gathered, greatest, told)) in all.into_iter().enumerate() {
            assert_eq!(gathered, (0..=last).map(|rank| [rank, u64::MAX - rank]).collect::<Vec<_>>());
            assert_eq!(greatest, [last, !0]);
            assert_eq!(told, [if rank < 2 { 7 } else { 9 }]);
        }
    }
}

/// Only the first rank of a node asks for more than a few words, and for no more than there are ranks on a node, or nodes.
#[test]
fn what_a_rank_asks_for_does_not_grow_with_their_number() {
    for (version, mapping) in [(1, "(vector,(0,6,8))"), (2, "(vector,(0,6,8))"), (1, "(vector,(0,6,1))")] {
        let (all, most) = meet_on(mapping, 48, version, 1024, |mut connection| {
            let own = connection.rank();
            let nodes = Bootstrap::nodes(&mut connection).unwrap();
            assert_eq!(nodes.map(|nodes| nodes.len()), Some(48));
            let group: Vec<usize> = connection.nodes.as_ref().unwrap().group.clone();
            let near = connection.near(&group, [own as u64]).unwrap();
            (group, near, connection.greatest([own as u64, !(own as u64)]).unwrap())
        });
        for (rank, (group, near, greatest)) in all.into_iter().enumerate() {
            let is_near = |other: &usize| if mapping.contains(",1))") { other % 6 == rank % 6 } else { other / 8 == rank / 8 };
            assert_eq!(group, (0..48).filter(is_near).collect::<Vec<_>>());
            assert_eq!(greatest, [47, !0]);
            let of_first = group.iter().map(|&rank| [rank as u64]).collect();
            assert_eq!(near, if group[0] == rank { of_first } else { Vec::new() });
        }
        // Twice the words of a node and once those of its nodes, in two values each, the result, and the mapping; 48 ranks would be 96 each time.
        assert!(most <= 2 * (8 + 8 + 6 + 1) + 4, "{most}");
    }
}

fn refusal(refused: impl FnOnce(Connection) -> std::result::Result<(), Error> + Sync + Clone + Send) -> String {
    let mut said = meet(1, 1, 1024, |connection| refused.clone()(connection).unwrap_err().to_string());
    said.remove(0)
}

#[test]
fn what_the_launcher_does_not_do_is_an_error_that_names_it() {
    let started = Started::by_pmi(1, 4, 999_999);
    // No such descriptor, as a program that a rank starts finds it.
    let Err(none) = connect(started, None, &mut || Ok(())) else { panic!("a descriptor 999999") };
    assert!(failed(&started, &none).to_string().contains("GA_BOOTSTRAP=fork"), "{none}");
    // The launcher ends while ranks wait.
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    let Err(gone) = connect(Started::by_pmi(1, 4, ours.as_raw_fd()), None, &mut || Ok(())) else { panic!("nobody is there") };
    let gone = failed(&started, &gone).to_string();
    assert!(gone.contains("rank 1 of 4") && gone.contains("its connection is closed"), "{gone}");
    // A launcher that keeps next to nothing, and one that does not know a key.
    let short = meet(1, 1, 10, |mut connection| connection.gather([1]).unwrap_err().to_string());
    assert!(short[0].contains("values of 9 bytes at most"), "{short:?}");
    let unknown =
        refusal(|mut connection| connection.exchange(None, |launcher, prefix, idle| launcher.get(0, prefix, idle)).map(drop));
    assert!(unknown.contains("key_not_found"), "{unknown}");
}

#[test]
fn a_rank_that_never_comes_is_waited_for_until_the_limit() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let (values, most) = (Mutex::default(), AtomicUsize::new(0));
    let fake = Fake { values, fence: None, longest: 1024, version: 1, mapping: "", most };
    std::thread::scope(|scope| {
        scope.spawn(|| fake.serve(&theirs));
        let started = Started::by_pmi(0, 2, ours.as_raw_fd());
        let launcher = connect(started, None, &mut || Ok(())).unwrap();
        let mut connection = Connection {
            launcher,
            started,
            size: 2,
            nodes: None,
            limit: Some(0.05),
            process: 0,
            step: 0,
            broken: false,
            said: false,
        };
        let late = connection.gather([1]).unwrap_err().to_string();
        assert!(late.contains("the limit of 0.05 s (GA_TIMEOUT) is over") && late.contains("rank 0 of 2"), "{late}");
        // The launcher ends too.
        ours.shutdown(std::net::Shutdown::Both).unwrap();
    });
}
