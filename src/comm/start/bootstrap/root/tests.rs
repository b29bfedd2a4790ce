//! Ranks that are threads of the test meet at one of them.

use super::*;
use crate::comm::start::bootstrap::{key_values::KeyValues, pmi1::Pmi1};

const SECRET: &[u8] = b"a secret of the tests";

/// A port that is free now.
fn root() -> String {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("127.0.0.1:{port}")
}

fn join(root: &str, secret: &[u8], rank: usize, ranks: usize) -> Result<Pmi1> {
    let start = Instant::now();
    let mut idle = || if start.elapsed() < GREETING { Ok(()) } else { Err(ErrorKind::TimedOut.into()) };
    let line = RootMeeting { root, secret, rank, ranks, by_launcher: false }.join(&mut idle)?;
    Pmi1::start(line, &mut idle)
}

fn refusal(refused: Result<Pmi1>) -> String {
    refused.expect_err("a refusal").to_string()
}

#[test]
fn ranks_meet_and_rank_0_leaves_last() {
    const RANKS: usize = 9;
    let root = root();
    std::thread::scope(|scope| {
        for rank in 0..RANKS {
            let root = &root;
            scope.spawn(move || {
                let mut launcher = join(root, SECRET, rank, RANKS).unwrap();
                let idle: Idle<'_> = &mut || Ok(());
                for step in 0..20 {
                    let long = "x".repeat(launcher.longest());
                    launcher.put(&format!("k-{step}-{rank}"), &format!("{}{rank}", &long[2..]), idle).unwrap();
                    launcher.fence(idle).unwrap();
                    let other = (rank + step) % RANKS;
                    assert!(launcher.get(other, &format!("k-{step}-{other}"), idle).unwrap().ends_with(&format!("x{other}")));
                    assert!(launcher.get(other, &format!("no-{step}"), idle).is_err());
                }
                if rank > 0 {
                    std::thread::sleep(Duration::from_millis(50));
                }
                assert!(!launcher.is_gone());
                launcher.finish(idle).unwrap();
            });
        }
    });
}

#[test]
fn who_does_not_know_the_secret_is_sent_away_and_the_others_meet() {
    let root = root();
    let mut first = join(&root, SECRET, 0, 2).unwrap();
    let wrong = refusal(join(&root, b"another secret", 1, 2));
    assert!(wrong.contains("GA_TOKEN"), "{wrong}");
    let taken = refusal(join(&root, SECRET, 0, 2).or_else(|_| join_late(&root, 0, 2)));
    assert!(taken.contains("GA_ROOT") || taken.contains("GA_RANK"), "{taken}");
    let many = refusal(join_late(&root, 1, 3));
    assert!(many.contains("2 ranks (GA_RANKS)"), "{many}");
    // Noise, and a caller that sends nothing.
    for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 5000], b"ga-rank 1 2 00 00\n", b""] {
        let mut stream = TcpStream::connect(&root).unwrap();
        let _ = stream.write_all(noise);
        std::mem::forget(stream);
    }
    let mut second = join(&root, SECRET, 1, 2).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| first.fence(&mut || Ok(())).unwrap());
        second.fence(&mut || Ok(())).unwrap();
    });
}

/// Joins without listening, unlike rank 0.
fn join_late(root: &str, rank: usize, ranks: usize) -> Result<Pmi1> {
    let mut stream = TcpStream::connect(root)?;
    let mut line = [0; 256];
    let count = stream.read(&mut line)?;
    let hello = std::str::from_utf8(&line[..count]).unwrap();
    let (theirs, own) = (of_hex::<16>(hello.strip_prefix("ga-root 1 ").unwrap()).unwrap(), [7; 16]);
    let proof = proof_of_rank(SECRET, &theirs, &own, rank, ranks);
    stream.write_all(format!("ga-rank {rank} {ranks} {} {}\n", hex(&own), hex(&proof)).as_bytes())?;
    let count = stream.read(&mut line)?;
    Err(Refused::Said(String::from_utf8_lossy(&line[..count]).into_owned()))
}

/// A proof that was seen is of no use with another number of the root's.
#[test]
fn a_proof_is_good_once() {
    let root = root();
    let _first = join(&root, SECRET, 0, 2).unwrap();
    let old = proof_of_rank(SECRET, &[1; 16], &[2; 16], 1, 2);
    let mut stream = TcpStream::connect(&root).unwrap();
    stream.write_all(format!("ga-rank 1 2 {} {}\n", hex(&[2; 16]), hex(&old)).as_bytes()).unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.starts_with("ga-root 1 ") && said.lines().count() == 1, "{said}");
}

/// Another process at the port of rank 0 learns nothing, and is not believed.
#[test]
fn a_root_has_to_prove_that_it_is_one() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let root = listener.local_addr().unwrap().to_string();
    let thief = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(format!("ga-root 1 {}\n", hex(&[3; 16])).as_bytes()).unwrap();
        let mut bytes = [0; 256];
        let count = stream.read(&mut bytes).unwrap();
        stream.write_all(format!("ga-welcome {}\n", hex(&[4; 32])).as_bytes()).unwrap();
        String::from_utf8_lossy(&bytes[..count]).into_owned()
    });
    let refused = refusal(join(&root, SECRET, 1, 2));
    assert!(refused.contains("does not know the secret"), "{refused}");
    assert!(!thief.join().unwrap().contains("secret"));
}

/// The connection of a rank that has proved what it is.
fn known(root: &str, secret: &[u8], rank: usize, ranks: usize) -> TcpStream {
    let mut stream = TcpStream::connect(root).unwrap();
    let mut line = [0; 256];
    let count = stream.read(&mut line).unwrap();
    let theirs = of_hex::<16>(std::str::from_utf8(&line[..count]).unwrap().strip_prefix("ga-root 1 ").unwrap()).unwrap();
    let proof = proof_of_rank(secret, &theirs, &[7; 16], rank, ranks);
    stream.write_all(format!("ga-rank {rank} {ranks} {} {}\n", hex(&[7; 16]), hex(&proof)).as_bytes()).unwrap();
    assert!(stream.read(&mut line).unwrap() > 0);
    stream
}

#[test]
fn a_rank_that_goes_without_a_word_ends_the_others() {
    let root = root();
    let first = join(&root, SECRET, 0, 3).unwrap();
    let second = join(&root, SECRET, 1, 3).unwrap();
    let third = known(&root, SECRET, 2, 3);
    assert!(!first.is_gone() && !second.is_gone());
    drop(third);
    let start = Instant::now();
    while !(first.is_gone() && second.is_gone()) {
        assert!(start.elapsed() < Duration::from_secs(20), "nobody hears of it");
        std::thread::yield_now();
    }
    for launcher in [first, second] {
        assert_eq!(launcher.last_words().map(|(rank, _)| rank), Some(2));
    }
}

/// The rank that has ended a launcher's meeting, and why.
fn lost(meeting: &LauncherMeeting) -> (usize, String) {
    let limit = Timespec { tv_sec: 20, tv_nsec: 0 };
    assert_eq!(poll(&mut [PollFd::new(meeting, PollFlags::IN)], Some(&limit)).unwrap(), 1, "the launcher hears of nothing");
    let (rank, why) = meeting.lost().expect("an end");
    (rank.expect("a rank"), why)
}

/// A rank of a launcher that listens.
fn come(meeting: &LauncherMeeting, rank: usize) -> Result<Pmi1> {
    let [(_, root), (_, ranks), (_, secret), _] = meeting.variables("127.0.0.1");
    let (secret, ranks) = (secret.as_bytes(), ranks.parse().unwrap());
    let idle: Idle<'_> = &mut || Ok(());
    let line = RootMeeting { root: &root, secret, rank, ranks, by_launcher: true }.join(idle)?;
    Pmi1::start(line, idle)
}

#[test]
fn a_launcher_listens_and_rank_0_may_leave_first() {
    let meeting = LauncherMeeting::open(2, true).unwrap();
    let [mut first, mut second] = [0, 1].map(|rank| come(&meeting, rank).unwrap());
    first.finish(&mut || Ok(())).unwrap();
    meeting.ended(0, None);
    assert!(!second.is_gone());
    second.finish(&mut || Ok(())).unwrap();
    meeting.ended(1, None);
    assert_eq!(meeting.lost(), None);
    while second.last_words().is_some() || !second.is_gone() {}
    assert!(come(&meeting, 1).is_err(), "nobody listens any more, and nobody waits for that");
}

#[test]
fn a_launcher_knows_why_a_connection_was_closed() {
    for (report, expected) in [(Some(Some("was killed")), "was killed"), (Some(None), "closed its connection"), (None, "closed")]
    {
        let meeting = LauncherMeeting::open(2, false).unwrap();
        let first = come(&meeting, 0).unwrap();
        let [(_, root), _, (_, secret), _] = meeting.variables("127.0.0.1");
        drop(known(&root, secret.as_bytes(), 1, 2));
        if let Some(why) = report {
            std::thread::sleep(Duration::from_millis(20));
            meeting.ended(1, why.map(str::to_owned));
        }
        let (rank, why) = lost(&meeting);
        assert!(rank == 1 && why.contains(expected), "{why}");
        while !first.is_gone() {}
        assert_eq!(first.last_words(), Some((1, why)));
    }
}

#[test]
fn a_process_that_ends_without_coming_is_missing_once_another_has_come() {
    for late in [false, true] {
        let meeting = LauncherMeeting::open(3, false).unwrap();
        let early = if late { None } else { Some(come(&meeting, 0).unwrap()) };
        meeting.ended(1, None);
        if late {
            std::thread::sleep(Duration::from_millis(50));
            assert_eq!(meeting.lost(), None);
        }
        let _here = early.map_or_else(|| come(&meeting, 2), Ok);
        let (rank, why) = lost(&meeting);
        assert!(rank == 1 && why.contains("never came"), "{why}");
    }
}
