//! Waits for stripes of a mapped lock, in a call and in a handler of messages.
//!
//! A node's processors and the handlers take the same stripes ([`Stripes`]) to add to its memory. A handler runs inside
//! [`Conduit::poll`](crate::comm::Conduit::poll) or in a thread of the conduit, takes messages in order, and so waits where it is. It
//! must not wait for its own thread, or for one that waits for the right to poll. Hence the rule: **the holder of a stripe or a claim
//! does not poll**. Holders then depend only on holders of locks of higher ranks, and on nothing that arrives. A handler holds one set,
//! and only while it adds.

use std::sync::atomic::{AtomicU32, Ordering};

use super::{Engine, Label};
use crate::{
    error::Result,
    memory::stripes::{Held, Stripes},
};

/// Looks at a lock one after the other: some 10 µs, as long as a slab is added at most.
const LOOKS: usize = 400;

/// Pauses in vain before a claim: about a millisecond between processors. Everybody else waits while a claim stands.
const PATIENCE: usize = 10;

/// Waits for stripes of a mapped lock. Makes progress meanwhile, but not if the caller is `holding` stripes of other ranks.
#[cold]
pub(crate) fn lock_stripes<'a>(engine: &Engine, lock: &Stripes<'a>, mask: u64, holding: bool, label: &Label) -> Result<Held<'a>> {
    let looks = if engine.conduit().capabilities().crowded { 0 } else { LOOKS };
    let mut turns = engine.turns(label);
    insist(lock, mask, looks, |claimed| turns.pause(!claimed && !holding))
}

/// Waits for stripes in a handler; `None` when the job is over.
#[cfg_attr(not(any(feature = "mpi", test)), allow(dead_code, reason = "for networks with handlers at the target"))]
pub(super) fn lock_in_handler<'a>(lock: &Stripes<'a>, mask: u64, over: &AtomicU32) -> Option<Held<'a>> {
    let held = insist(lock, mask, LOOKS, |_| {
        // The holder may be a thread of this core.
        std::thread::yield_now();
        (0..LOOKS).for_each(|_| std::hint::spin_loop());
        if over.load(Ordering::Relaxed) == 0 { Ok(()) } else { Err(()) }
    });
    held.ok()
}

/// Looks until the stripes are free. `pause` lets others go between two looks, and may give up; its argument is true if the
/// waiter has a claim.
fn insist<'a, E>(
    lock: &Stripes<'a>,
    mask: u64,
    looks: usize,
    mut pause: impl FnMut(bool) -> std::result::Result<(), E>,
) -> std::result::Result<Held<'a>, E> {
    let spin = |looks: usize, look: &dyn Fn() -> Option<Held<'a>>| {
        (0..looks).find_map(|_| {
            let held = look();
            if held.is_none() {
                std::hint::spin_loop();
            }
            held
        })
    };
    if let Some(held) = spin(looks.max(1), &|| lock.try_lock(mask)) {
        return Ok(held);
    }
    for _ in 0..PATIENCE {
        pause(false)?;
        if let Some(held) = lock.try_lock(mask) {
            return Ok(held);
        }
    }
    let mut claim = None;
    loop {
        claim = claim.or_else(|| lock.claim());
        let held = match &claim {
            Some(claim) => spin(LOOKS, &|| claim.try_lock(mask)),
            None => lock.try_lock(mask),
        };
        if let Some(held) = held {
            return Ok(held);
        }
        pause(claim.is_some())?;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::memory::stripes::ALL;

    #[test]
    fn who_waits_long_claims_and_is_the_next_one() {
        let word = AtomicU64::new(0);
        let stripes = Stripes::new(&word);
        let (mut holder, mut pauses) = (stripes.try_lock(0b1), 0);
        let held = insist(&stripes, ALL, 1, |claimed| {
            pauses += 1;
            assert_eq!(claimed, pauses > PATIENCE, "after {pauses} pauses");
            // Free stripes are for others until a thread claims.
            assert_eq!(stripes.try_lock(0b10).is_some(), !claimed);
            if pauses == PATIENCE + 3 {
                holder = None;
            }
            if pauses < PATIENCE + 4 { Ok(()) } else { Err("nobody holds a stripe") }
        });
        let held = held.expect("all stripes are free");
        assert!(stripes.try_lock(0b10).is_none());
        drop(held);
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn who_gives_up_takes_the_claim_back() {
        let word = AtomicU64::new(0);
        let stripes = Stripes::new(&word);
        let (holder, mut pauses) = (stripes.try_lock(0b1), 0);
        let given_up = insist(&stripes, ALL, 1, |claimed| {
            pauses += 1;
            assert!(pauses <= PATIENCE + 1, "no claim");
            if claimed { Err(()) } else { Ok(()) }
        });
        assert!(given_up.is_err());
        drop(holder);
        assert_eq!(word.load(Ordering::Relaxed), 0);
    }
}
