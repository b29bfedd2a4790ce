//! Transfers that go straight and are given up: their memory is the caller's again, whatever becomes of the connection.

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

/// Begins, goes on for a while, gives up, and waits for the end. How often a connection was opened again.
fn give_up(puts: bool, seed: u64) -> u64 {
    let mut ranks = ranks(Rates { break_pair: 200, ..Rates::default() }, seed);
    let mut random = Random::new(seed);
    put_all(&mut ranks, 0, FIRST, &[0; LONG]);
    flush(&mut ranks, 0);
    settle(&mut ranks);
    let mut values = vec![OWN; LONG];
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
                ranks[0].conduit.cancel(TOKEN);
            }
            until(&mut ranks, 0, is_over);
        }
        values.fill(OWN);
        // Whatever has to be posted again is, before this is done.
        flush(&mut ranks, 0);
        assert!(values.iter().all(|&value| value == OWN), "seed {seed}, round {round}: memory that was given back has changed");
        for word in FIRST..FIRST + LONG {
            let found = ranks[1].word(word);
            assert!(found <= round, "seed {seed}, round {round}: word {word} is {found:#x}");
        }
    }
    ranks[0].conduit.connections().map_or(0, |connections| connections.reopened)
}

#[test]
fn memory_of_a_transfer_that_was_given_up_is_left_alone() {
    for puts in [true, false] {
        let reopened: u64 = (0..3).map(|seed| give_up(puts, seed)).sum();
        assert!(reopened > 0, "no connection broke");
    }
}
