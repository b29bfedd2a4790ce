//! Mailboxes: messages from anybody, told apart by sender and tag.
//!
//! A long message goes in letters of 8 KiB and is put together by the receiver. A member that is reached by the network fetches one of more than two
//! letters in parts (`stage`). A rank that waits in a call of its mailbox takes in what comes for it, whatever
//! it waits for: so two ranks that send each other long messages never hang.
//!
//! # Source
//! MVICH's two-sided messages: J. Wu, J. Liu, P. Wyckoff, D. Panda, *Impact of On-Demand Connection Management in MPI over VIA*, Cluster 2002, §3.4.

use std::{collections::VecDeque, marker::PhantomData};

use rustc_hash::FxHashMap;

use super::{
    rings::{MOST_BYTES, Rings, SLOTS},
    stage::{PART, PARTS, Stage},
};
use crate::{
    calls::located,
    element::Element,
    error::{Error, Result},
    sync::{Group, Op, fingerprint, text_fingerprint},
};

/// Any sender, or any tag: see [`Mailbox::receive`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Any;

/// One value, or [`Any`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which<V>(Option<V>);

impl<V> From<V> for Which<V> {
    fn from(value: V) -> Self {
        Which(Some(value))
    }
}

impl From<Any> for Which<usize> {
    fn from(_: Any) -> Self {
        Which(None)
    }
}

impl From<Any> for Which<u64> {
    fn from(_: Any) -> Self {
        Which(None)
    }
}

impl<V: PartialEq> Which<V> {
    fn is(&self, value: &V) -> bool {
        self.0.as_ref().is_none_or(|wanted| wanted == value)
    }
}

/// A message that was received.
#[derive(Clone, Debug, PartialEq)]
pub struct Received<T> {
    /// The member that sent it.
    pub from: usize,
    /// What the sender called it.
    pub tag: u64,
    /// The elements.
    pub data: Vec<T>,
}

/// A member's mailbox, to which all members send.
///
/// Messages of one sender with one tag are received in the order in which they were sent. Long ones may be of any length.
///
/// # Examples
/// ```
/// use global_arrays::{mailbox::Any, prelude::*};
/// # fn main() -> Result<(), Error> {
/// const TASK: u64 = 0;
/// const RESULT: u64 = 1;
/// Launch::new().ranks(3).network("threads").run(|job| {
///     let mut mail = job.mailbox::<f64>()?;
///     if job.rank() == 0 {
///         for worker in 1..3 {
///             mail.send(worker, TASK, &[worker as f64, 2.0])?;
///         }
///         let mut sum = 0.0;
///         for _ in 1..3 {
///             sum += mail.receive(Any, RESULT)?.data[0]; // whoever is first
///         }
///         assert_eq!(sum, 6.0);
///     } else {
///         let task = mail.receive(0, TASK)?;
///         mail.send(task.from, RESULT, &[task.data.iter().product()])?;
///     }
///     Ok::<_, Error>(())
/// })
/// # }
/// ```
#[derive(Debug)]
pub struct Mailbox<T> {
    rings: Rings,
    /// None where the network reaches no member.
    stage: Option<Stage>,
    /// Messages that have come and nobody has received.
    waiting: VecDeque<Received<T>>,
    /// Messages of which letters are missing, by sender, and how many elements are.
    begun: FxHashMap<usize, (Received<T>, usize)>,
    element: PhantomData<T>,
}

impl Group {
    /// A mailbox of each member. Collective. It takes 64 KiB of each rank's memory, and 256 KiB more if the group is on several nodes.
    ///
    /// # Errors
    /// Elements without bytes, or aligned to more than 8; members with different types; too little memory; the end of the job.
    #[track_caller]
    pub fn mailbox<T: Element>(&self) -> Result<Mailbox<T>> {
        located(move || {
            const {
                assert!(
                    size_of::<T>() > 0 && size_of::<T>() <= MOST_BYTES && align_of::<T>() <= align_of::<u64>(),
                    "elements of 1 to 8192 bytes, aligned to 8 at most"
                )
            };
            let kinds = fingerprint(&[size_of::<T>() as u64, text_fingerprint(std::any::type_name::<T>())]);
            let rings = Rings::open(self, Op::Mailbox, "send", SLOTS, Stage::BYTES, kinds)?;
            let stage = rings.beside().map(|(near, offset)| Stage::new(near, offset));
            Ok(Mailbox { rings, stage, waiting: VecDeque::new(), begun: FxHashMap::default(), element: PhantomData })
        })
    }
}

impl<T: Element> Mailbox<T> {
    /// Elements of a letter.
    const PIECE: usize = MOST_BYTES / size_of::<T>();
    /// Elements that are fetched at once.
    const PART: usize = PART / size_of::<T>();
    /// A bit of the number of elements that are left, in a letter about a part.
    const STAGED: u64 = 1 << 63;

    /// Sends a message of any length. Returns when `data` may be used again; waits while the member's ring is full, and takes in what
    /// comes for this one meanwhile. Between nodes the member gets a message of more than 16 KiB from this one's memory: where the network answers
    /// only a rank that is in a call (an MPI library without threads), it has to wait for one.
    ///
    /// # Errors
    /// A member that does not exist, or has ended with a full ring; a deadlock; the end of the job.
    ///
    /// # Source
    /// `MPI_Send`.
    #[track_caller]
    pub fn send(&mut self, to: usize, tag: u64, data: &[T]) -> Result<()> {
        located(move || {
            self.rings.check("send", to)?;
            let (mut left, mut first) = (data, true);
            while first || !left.is_empty() {
                let part = &left[..left.len().min(Self::PART)];
                // More than two letters take longer than one that the member answers by a get.
                let stage = self.stage.filter(|_| left.len() > 2 * Self::PIECE && self.rings.is_far(to));
                let staged = stage.and_then(|stage| Some((stage, stage.fill(bytemuck::cast_slice(part))?)));
                let piece = if staged.is_some() { part } else { &left[..left.len().min(Self::PIECE)] };
                let sent = match staged {
                    Some((stage, number)) => self
                        .send_piece(to, &[tag, left.len() as u64 | Self::STAGED, number as u64], &[])
                        .inspect_err(|_| stage.release(number)),
                    None => self.send_piece(to, &[tag, left.len() as u64], bytemuck::cast_slice(piece)),
                };
                sent.inspect_err(|error| {
                    if !first {
                        let cause = format!("could not send all of a message to member {to}: {error}");
                        self.rings.engine().conduit().end(&cause);
                    }
                })?;
                (left, first) = (&left[piece.len()..], false);
            }
            Ok(())
        })
    }

    fn send_piece(&mut self, to: usize, words: &[u64], bytes: &[u8]) -> Result<()> {
        while !self.rings.send(to, words, bytes)? {
            if !self.take_in()? {
                self.rings.wait_for_room(to, words, bytes)?;
            }
        }
        self.rings.free();
        Ok(())
    }

    /// Sends a message of one letter, 8 KiB, unless the member's ring has no room: then false, and nothing was sent. Waits for nobody;
    /// long messages that have come are fetched.
    ///
    /// # Errors
    /// A member that does not exist; a longer message; the end of the job.
    #[track_caller]
    pub fn try_send(&mut self, to: usize, tag: u64, data: &[T]) -> Result<bool> {
        located(move || {
            self.rings.check("try_send", to)?;
            if data.len() > Self::PIECE {
                let most = Self::PIECE;
                return Err(Error::argument("try_send", format_args!("{} elements; up to {most} go at once", data.len())));
            }
            self.rings.progress();
            let (words, bytes) = ([tag, data.len() as u64], bytemuck::cast_slice(data));
            if self.rings.send(to, &words, bytes)? {
                return Ok(true);
            }
            // The member may wait for room in this one's ring.
            while self.take_in()? {}
            self.rings.send(to, &words, bytes)
        })
    }

    /// The first message from a member, or from [`Any`], with a tag, or with [`Any`]. Waits for it.
    ///
    /// # Errors
    /// A member that does not exist, or that has ended; a deadlock; the end of the job.
    ///
    /// # Source
    /// `MPI_Recv`; `MPI_ANY_SOURCE`, `MPI_ANY_TAG`.
    #[track_caller]
    pub fn receive(&mut self, from: impl Into<Which<usize>>, tag: impl Into<Which<u64>>) -> Result<Received<T>> {
        located(move || self.next("receive", from.into(), tag.into()))
    }

    /// The same, into memory of the caller, which is as long as the message at least. Returns the number of elements, and who sent them.
    ///
    /// # Errors
    /// Same as [`receive`](Self::receive); a longer message, which stays the first.
    #[track_caller]
    pub fn receive_into(
        &mut self,
        from: impl Into<Which<usize>>,
        tag: impl Into<Which<u64>>,
        to: &mut [T],
    ) -> Result<(usize, usize)> {
        located(move || {
            let mail = self.next("receive_into", from.into(), tag.into())?;
            let (len, from) = (mail.data.len(), mail.from);
            let Some(part) = to.get_mut(..len) else {
                self.waiting.push_front(mail);
                return Err(Error::argument("receive_into", format_args!("a message of {len} elements into {}", to.len())));
            };
            part.copy_from_slice(&mail.data);
            Ok((len, from))
        })
    }

    /// The first such message, if one is here.
    ///
    /// # Errors
    /// A member that does not exist; the end of the job.
    #[track_caller]
    pub fn try_receive(&mut self, from: impl Into<Which<usize>>, tag: impl Into<Which<u64>>) -> Result<Option<Received<T>>> {
        located(move || {
            let (from, tag) = (from.into(), tag.into());
            self.rings.check("try_receive", from.0.unwrap_or(0))?;
            self.rings.progress();
            loop {
                let mail = self.remove(from, tag);
                if mail.is_some() || !self.take_in()? {
                    return Ok(mail);
                }
            }
        })
    }

    fn next(&mut self, operation: &'static str, from: Which<usize>, tag: Which<u64>) -> Result<Received<T>> {
        loop {
            self.rings.check(operation, from.0.unwrap_or(0))?;
            if let Some(mail) = self.remove(from, tag) {
                self.rings.free();
                return Ok(mail);
            }
            if self.take_in()? {
                continue;
            }
            let what = |from: Option<usize>| {
                let tag = tag.0.map_or_else(|| "any tag".to_owned(), |tag| format!("tag {tag}"));
                let from = from.map_or_else(|| "any rank".to_owned(), |from| format!("rank {from}"));
                format!("a message of {tag} from {from}")
            };
            self.rings.wait(from.0, &|| operation.to_owned(), &what)?;
        }
    }

    fn remove(&mut self, from: Which<usize>, tag: Which<u64>) -> Option<Received<T>> {
        let at = self.waiting.iter().position(|mail| from.is(&mail.from) && tag.is(&mail.tag))?;
        self.waiting.remove(at)
    }

    /// Takes in a letter, if one is here.
    fn take_in(&mut self) -> Result<bool> {
        let Some(from) = self.rings.take() else { return Ok(false) };
        let wrong = || {
            self.rings.engine().conduit().end(&format!("got a letter of member {from} that cannot be: memory was damaged"));
            self.rings.engine().over("receive")
        };
        let &[tag, left, ref data @ ..] = self.rings.words() else { return Err(wrong()) };
        let (is_staged, left) = (left & Self::STAGED != 0, (left & !Self::STAGED) as usize);
        let begin = || (Received { from, tag, data: Vec::with_capacity(left.min(16 * Self::PART)) }, left);
        let (mail, missing) = self.begun.entry(from).or_insert_with(begin);
        if *missing != left || mail.tag != tag {
            return Err(wrong());
        }
        let before = mail.data.len();
        if is_staged {
            mail.data.resize(before + left.min(Self::PART), T::zeroed());
            let (&[number], Some(stage)) = (data, self.stage) else { return Err(wrong()) };
            if number >= PARTS as u64 {
                return Err(wrong());
            }
            self.rings.fetch(stage, from, number as usize, bytemuck::cast_slice_mut(&mut mail.data[before..]))?;
        } else {
            let bytes = bytemuck::cast_slice::<u64, u8>(data);
            let piece: &[T] = bytes.get(..left.min(Self::PIECE) * size_of::<T>()).map(bytemuck::cast_slice).ok_or_else(wrong)?;
            mail.data.extend_from_slice(piece);
        }
        *missing -= mail.data.len() - before;
        if *missing == 0 {
            self.waiting.extend(self.begun.remove(&from).map(|(mail, _)| mail));
        }
        Ok(true)
    }
}
