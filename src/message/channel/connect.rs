//! Creation: the ends of all members find each other, and get their places in one block.
//!
//! 1. One agreement carries the sum of a hash of each outlet, less that of each inlet. It is zero if every end has its partner. Only if it is
//!    not, all members learn all ends, to name those without one.
//! 2. Each outlet mails its number and its longest message to its inlet.
//! 3. All members take a block of one size, which has first the words of their own ends, then the slots of their inlets.
//! 4. Each inlet mails the place of its slots to its outlet. So nobody can put before the words of the other end are zero.

use std::{
    any::type_name,
    collections::HashSet,
    marker::PhantomData,
    sync::{Arc, atomic::Ordering},
};

use super::{
    super::Block,
    Channels, Inlet, Outlet, Peer, Waiting,
    slot::{End, LONGEST},
};
use crate::{
    comm::engine::Label,
    element::Element,
    error::{Error, Result},
    memory::{heap::ALIGN, word::WaitWord},
    sync::{Op, fingerprint, text_fingerprint},
};

/// The operation, for errors.
const OPERATION: &str = "channels";
/// Bytes from which a message is long.
const LONG: usize = 4096;
/// Ends without a partner that an error names.
const SAID: usize = 8;

/// An outlet to be created; see [`to`].
#[derive(Clone, Copy, Debug)]
pub struct OutletEnd<T> {
    member: usize,
    tag: u64,
    most: usize,
    element: PhantomData<T>,
}

/// An inlet to be created; see [`from`].
#[derive(Clone, Copy, Debug)]
pub struct InletEnd<T> {
    member: usize,
    tag: u64,
    element: PhantomData<T>,
}

/// An outlet to a member, with a tag that tells it from other channels between the two, for messages of up to `most` elements.
pub fn to<T>(member: usize, tag: u64, most: usize) -> OutletEnd<T> {
    OutletEnd { member, tag, most, element: PhantomData }
}

/// An inlet from a member, with the tag of its outlet there.
pub fn from<T>(member: usize, tag: u64) -> InletEnd<T> {
    InletEnd { member, tag, element: PhantomData }
}

/// A list of ends: an array or a `Vec`. Sealed.
pub trait Ends<E>: AsRef<[E]> + sealed::Sealed {
    /// The same kind of list, of what is created.
    type Of<C>;

    #[doc(hidden)]
    fn of<C>(list: Vec<C>) -> Self::Of<C>;
}

mod sealed {
    pub trait Sealed {}
    impl<E, const N: usize> Sealed for [E; N] {}
    impl<E> Sealed for Vec<E> {}
}

/// The outlets and the inlets that are created, as the kinds of lists that `O` and `I` are.
pub type Connected<T, O, I> = (<O as Ends<OutletEnd<T>>>::Of<Outlet<T>>, <I as Ends<InletEnd<T>>>::Of<Inlet<T>>);

impl<E, const N: usize> Ends<E> for [E; N] {
    type Of<C> = [C; N];

    fn of<C>(list: Vec<C>) -> [C; N] {
        let Ok(array) = list.try_into() else { unreachable!("as many as were asked for") };
        array
    }
}

impl<E> Ends<E> for Vec<E> {
    type Of<C> = Vec<C>;

    fn of<C>(list: Vec<C>) -> Vec<C> {
        list
    }
}

/// Where things are in the block of a creation.
struct Layout<T> {
    slots: u32,
    /// Slots have no contents, because nothing is computed: their words have lines of their own.
    empty: bool,
    element: PhantomData<T>,
}

impl<T> Layout<T> {
    /// Bytes of a slot before its data. A short message shares its first line with the word; copies of a long one are faster to whole lines.
    fn front(&self, most: usize) -> usize {
        match most.saturating_mul(size_of::<T>()) {
            _ if self.empty => 0,
            LONG.. => ALIGN,
            _ => size_of::<WaitWord>().max(align_of::<T>()),
        }
    }

    /// Bytes of a slot for messages of up to `most` elements.
    fn step(&self, most: usize) -> usize {
        (self.front(most) + most * size_of::<T>()).next_multiple_of(ALIGN)
    }

    /// Bytes of the slots of an inlet. What nobody has room for is refused when memory is asked for it.
    fn data(&self, most: usize) -> usize {
        self.step(most).saturating_mul(self.slots as usize)
    }

    /// Bytes of the words of some ends, apart from those in slots.
    fn words(&self, outlets: usize, inlets: usize) -> usize {
        let of_slots = if self.empty { inlets.saturating_mul(self.slots as usize) } else { 0 };
        outlets.saturating_add(of_slots).saturating_mul(ALIGN)
    }
}

/// Step by step as the module's essay says.
pub(super) fn connect<T: Element, O: Ends<OutletEnd<T>>, I: Ends<InletEnd<T>>>(
    options: &Channels<'_>,
    outlets: O,
    inlets: I,
) -> Result<Connected<T, O, I>> {
    let (outlets, inlets) = (outlets.as_ref(), inlets.as_ref());
    find_partners(options, outlets, inlets)?;
    let (group, inner) = (options.group, &*options.group.inner);
    let (engine, me) = (inner.engine(), group.member() as u64);
    // Letters of this creation, by its place among the group's agreements.
    let creation = fingerprint(&[inner.key, u64::from(inner.sequence.load(Ordering::Relaxed))]);
    let label = Label::new("(channels)", "creation of channels");
    let mail = |member, tag, key: &[u64], [a, b]: [usize; 2]| {
        let rank = inner.rank_of(member);
        let waiting = Waiting { group, sends: true, creates: true, peers: &[Peer { rank, tag }] };
        inner.job.mail.send(engine, rank, fingerprint(key), [a as u64, b as u64], &waiting)
    };
    let receive = |member, tag, key: &[u64]| {
        let waiting = Waiting { group, sends: false, creates: true, peers: &[Peer { rank: inner.rank_of(member), tag }] };
        inner.job.mail.receive(engine, fingerprint(key), &waiting).map(|(_, [a, b])| [a as usize, b as usize])
    };
    for (number, end) in outlets.iter().enumerate() {
        mail(end.member, end.tag, &[creation, 0, me, end.member as u64, end.tag], [number, end.most])?;
    }
    let partners = inlets.iter().map(|end| receive(end.member, end.tag, &[creation, 0, end.member as u64, me, end.tag]));
    let partners = partners.collect::<Result<Vec<_>>>()?;

    let empty = options.hollow && engine.conduit().skips();
    let layout = Layout::<T> { slots: options.slots, empty, element: PhantomData };
    let data = partners.iter().fold(0, |data: usize, &[_, most]| data.saturating_add(layout.data(most)));
    let most_of = |bytes: usize| group.agree_values(Op::Channels, 1, 0, 0, bytes as u64).map(|agreed| agreed.max as usize);
    let (all_words, all_data) = (most_of(layout.words(outlets.len(), inlets.len()))?, most_of(data)?);
    let (all, own) = (all_words.saturating_add(all_data), all_words.saturating_add(if empty { 0 } else { data }));
    let what = || format!("channels with {data} bytes of slots on this rank");
    let (offset, _) = inner.job.allocate(group, all, own, Op::Channels, 2, &what)?;
    let block = Arc::new(Block { group: group.clone(), offset });
    if empty {
        engine.conduit().set_contents(offset + all_words..offset + all, false);
    }
    let near = inner.segments.own(engine.conduit().segment());
    let zero = |word: usize| near.part::<u64>(word, 1).fill(0);
    (0..outlets.len()).for_each(|number| zero(offset + number * ALIGN));

    let end = |other, tag, most, number: usize, [word, data]: [usize; 2]| End {
        block: block.clone(),
        peer: Peer { rank: inner.rank_of(other), tag },
        other,
        most,
        slots: options.slots,
        word: [word, if empty { ALIGN } else { layout.step(most) }],
        data: [data, layout.step(most)],
        credit: offset + number * ALIGN,
        near,
        far: inner.segments.of(other),
        label: label.clone(),
        element: PhantomData,
    };
    let (mut words, mut data) = (offset + outlets.len() * ALIGN, offset + all_words);
    let mut receiving = Vec::with_capacity(inlets.len());
    for (&InletEnd { member, tag, .. }, &[number, most]) in inlets.iter().zip(&partners) {
        let place = [if empty { words } else { data }, data + layout.front(most)];
        let end = end(member, tag, most, number, place);
        (0..options.slots as usize).for_each(|slot| zero(end.word[0] + slot * end.word[1]));
        words += layout.words(0, 1);
        data += layout.data(most);
        receiving.push(Inlet::new(end));
        mail(member, tag, &[creation, 1, member as u64, me, tag], place)?;
    }
    let mut sending = Vec::with_capacity(outlets.len());
    for (number, &OutletEnd { member, tag, most, .. }) in outlets.iter().enumerate() {
        let place = receive(member, tag, &[creation, 1, me, member as u64, tag])?;
        sending.push(Outlet::new(end(member, tag, most, number, place)));
    }
    Ok((O::of(sending), I::of(receiving)))
}

/// Agrees that every end has its partner.
fn find_partners<T: Element>(options: &Channels<'_>, outlets: &[OutletEnd<T>], inlets: &[InletEnd<T>]) -> Result<()> {
    let (group, me) = (options.group, options.group.member() as u64);
    let outlets_of_all: Vec<[u64; 4]> = outlets.iter().map(|end| [me, end.member as u64, end.tag, 0]).collect();
    let inlets_of_all: Vec<[u64; 4]> = inlets.iter().map(|end| [end.member as u64, me, end.tag, 1]).collect();
    let checked = check(options, outlets, inlets);
    let sum = |ends: &[[u64; 4]]| ends.iter().fold(0_u64, |sum, end| sum.wrapping_add(fingerprint(&end[..3])));
    let sum = sum(&outlets_of_all).wrapping_sub(sum(&inlets_of_all));
    let call = fingerprint(&[
        size_of::<T>() as u64,
        text_fingerprint(type_name::<T>()),
        u64::from(options.slots),
        u64::from(options.hollow),
    ]);
    let agreed = group.agree_values(Op::Channels, call, sum, u64::from(checked.is_err()), 0)?;
    checked?;
    let mismatch = |what| Err(Error::Mismatch { operation: OPERATION.into(), what });
    if agreed.union != 0 {
        return mismatch("other members named ends that cannot be; their errors say which".to_owned());
    }
    if agreed.sum == 0 {
        return Ok(());
    }
    let all = group.all_gather_v(&[outlets_of_all, inlets_of_all].concat())?.concat();
    let known: HashSet<[u64; 4]> = all.iter().copied().collect();
    let alone = all.iter().filter(|&&[from, to, tag, kind]| !known.contains(&[from, to, tag, 1 - kind]));
    let say = |&[from, to, tag, kind]: &[u64; 4]| match kind {
        0 => format!("to({to}, {tag}) of member {from} has no from({from}, {tag}) at member {to}"),
        _ => format!("from({from}, {tag}) of member {to} has no to({to}, {tag}) at member {from}"),
    };
    let mut said: Vec<String> = alone.map(say).collect();
    if let Some(more) = said.len().checked_sub(SAID).filter(|&more| more > 0) {
        said.truncate(SAID);
        said.push(format!("and {more} more"));
    }
    mismatch(said.join(", "))
}

/// What this member can see to be wrong.
fn check<T: Element>(options: &Channels<'_>, outlets: &[OutletEnd<T>], inlets: &[InletEnd<T>]) -> Result<()> {
    let wrong = |what: String| Err(Error::argument(OPERATION, what));
    let (size, bytes, align) = (options.group.size(), size_of::<T>(), align_of::<T>());
    if bytes == 0 || align > ALIGN {
        return wrong(format!("elements of {bytes} bytes aligned to {align}; from 1 byte and up to {ALIGN} are possible"));
    }
    if options.slots == 0 {
        return wrong("0 slots; a channel needs one".to_owned());
    }
    if let Some(end) = outlets.iter().find(|end| end.most > LONGEST) {
        return wrong(format!("messages of up to {} elements; up to {LONGEST} are possible", end.most));
    }
    let mut named = HashSet::new();
    let outlets = outlets.iter().map(|end| ("to", end.member, end.tag));
    for (kind, member, tag) in outlets.chain(inlets.iter().map(|end| ("from", end.member, end.tag))) {
        if member >= size {
            return wrong(format!("{kind}({member}, {tag}) in a group of {size}"));
        }
        if !named.insert((kind, member, tag)) {
            return wrong(format!("{kind}({member}, {tag}) twice"));
        }
    }
    Ok(())
}
