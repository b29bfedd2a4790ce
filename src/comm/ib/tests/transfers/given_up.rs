//! Straight transfers that are given up: their memory is the caller's again, whatever becomes of the connection.

use super::*;

/// Words of a transfer, and the first of them: two pieces that go straight, because they lie in two ranges.
const LONG: usize = 20_000;
const FIRST: usize = (OPEN / 2 - DATA) / 8 - LONG / 2;

/// What stands in memory that was given back. No rank sends it.
const OWN: u64 = u64::MAX;

/// The end of the only operation that is under way, whether it is done or was given up.
fn is_over(event: &Event) -> Option<()> {
    matches!(event, Event::LocalDone(TOKEN) | Event::Failed(TOKEN, _)).then_some(())
}

/// Begins, goes on for a while, gives up, and waits for the end. Returns two numbers: of connections that were opened again, and
/// of transfers that were given up while their memory was lent to the adapter.
fn give_up(puts: bool, seed: u64) -> [u64; 2] {
    let mut ranks = ranks_whose_waits_end(true, Rates { break_pair: 200, ..Rates::default() }, seed);
    let mut random = Random::new(seed);
    put_all(&mut ranks, 0, FIRST, &[0; LONG]);
    flush(&mut ranks, 0);
    settle(&mut ranks);
    let mut values = vec![OWN; LONG];
    let (own, mut lent) = ((ranks[0].posted)().regions, 0);
    for round in 1..=8 {
        if puts {
            values.fill(round);
        }
        let (place, local) =
            (Remote { rank: 1, offset: DATA + 8 * FIRST }, Local { ptr: values.as_mut_ptr().cast(), len: 8 * LONG });
        let issued = if puts {
            // SAFETY: nobody touches the values until the end was polled.
            unsafe { ranks[0].conduit.put(place, local, TOKEN) }
        } else {
            // SAFETY: as above.
            unsafe { ranks[0].conduit.get(place, local, TOKEN) }
        };
        if issued == Issued::Pending {
            for _ in 0..random.below(6) {
                let Rank { conduit, events, .. } = &mut ranks[random.below(2)];
                conduit.poll(events);
            }
            if ranks[0].events.iter().all(|event| is_over(event).is_none()) {
                lent += u64::from((ranks[0].posted)().regions > own);
                ranks[0].conduit.cancel(TOKEN);
            }
            until(&mut ranks, 0, is_over);
        }
        assert_eq!(
            (ranks[0].posted)().regions,
            own,
            "seed {seed}, round {round}: memory that was given back is still registered"
        );
        values.fill(OWN);
        // Whatever has to be posted again is, before this is done.
        flush(&mut ranks, 0);
        assert!(values.iter().all(|&value| value == OWN), "seed {seed}, round {round}: memory that was given back has changed");
        for word in FIRST..FIRST + LONG {
            let found = ranks[1].word(word);
            assert!(found <= round, "seed {seed}, round {round}: word {word} is {found:#x}");
        }
    }
    [ranks[0].conduit.connections().map_or(0, |connections| connections.reopened), lent]
}

#[test]
fn memory_of_a_transfer_that_was_given_up_is_left_alone() {
    for puts in [true, false] {
        let [reopened, lent] = (0..3).map(|seed| give_up(puts, seed)).fold([0; 2], |sum, one| [sum[0] + one[0], sum[1] + one[1]]);
        assert!(reopened > 0 && lent > 0, "{reopened} connections broke, {lent} times memory was lent");
    }
}

/// A signal of bytes that were given up must not come without them.
#[test]
fn no_signal_comes_without_its_bytes() {
    /// Words that would go straight, and the word of the signal behind them.
    const SIGNALED: usize = 8500;
    const WORD: usize = SIGNALED;
    let mut signals = 0;
    for seed in 0..3 {
        let mut ranks = ranks_whose_waits_end(true, Rates { break_pair: 200, ..Rates::default() }, seed);
        put_all(&mut ranks, 0, 0, &[0; SIGNALED + 1]);
        flush(&mut ranks, 0);
        settle(&mut ranks);
        for round in 1..=6 {
            let mut values = vec![round; SIGNALED];
            let local = Local { ptr: values.as_mut_ptr().cast(), len: 8 * SIGNALED };
            let signal = SignalWord { offset: DATA + 8 * WORD, value: round as u32, op: SignalOp::Set, patient: false };
            // SAFETY: nobody touches the values until the end was polled.
            let issued = unsafe {
                ranks[0].conduit.issue(&Operation::PutSignal { to: Remote { rank: 1, offset: DATA }, local, signal }, TOKEN)
            };
            if issued == Issued::Pending {
                if ranks[0].events.iter().all(|event| is_over(event).is_none()) {
                    ranks[0].conduit.cancel(TOKEN);
                }
                until(&mut ranks, 0, is_over);
            }
            values.fill(OWN);
            flush(&mut ranks, 0);
            if ranks[1].word(WORD) as u32 == round as u32 {
                signals += 1;
                assert!(
                    (0..SIGNALED).all(|word| ranks[1].word(word) == round),
                    "seed {seed}, round {round}: a signal without bytes"
                );
            }
        }
    }
    assert!(signals > 0, "no signal came");
}
