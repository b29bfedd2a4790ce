//! Frames in mailboxes of a peer's memory, which are made at first contact (ARMCI-Gemini §III-C).
//!
//! Each rank has a *door*: memory whose place its address names. A rank that wants to send takes a ticket there, waits until it is its turn, and
//! leaves a card: its rank, and the mailbox that it has made for the other. The other leaves its own card in return. So each of the two leaves
//! one card, and nothing has the size of the job.
//!
//! Words of cards and of mailboxes are written in any order (`protocol::mailbox`). A writer that lacks room reads how far the reader has come.

use std::{
    collections::VecDeque,
    sync::atomic::{Ordering, fence},
};

use super::{
    adapter::{FarPlace, GeminiAdapter},
    dmapp::{Dmapp, DmappSegment},
};
use crate::{
    comm::{
        Atomic, AtomicOp,
        am::wire::{Broken, Class, Key, Result},
        kit::{peers::Peers, slots::Slots},
        protocol::mailbox::{MailboxReader, MailboxWriter, half_of, numbered, place, words_of},
        rma::{
            adapter::{RmaAccess, RmaAdapter, RmaDone, RmaRegion, RmaWork},
            road::{FrameRoad, OF_ROAD},
        },
    },
    memory::kernels,
};

const WORD: usize = size_of::<u64>();

/// Words of a mailbox, and bytes of a frame, of which a mailbox has room for four.
const MAILBOX: usize = 2048;
const FRAME: usize = 2040;

/// Words of a mailbox that requests leave to answers.
const FOR_ANSWERS: usize = MAILBOX / 4;

/// In front of a mailbox: how many words its reader has taken; what the reader of the other one has.
const TAKEN: usize = 0;
const TOLD: usize = 1;
const HEADER: usize = 8;

/// Mailboxes that are made together.
const TOGETHER: usize = 8;

/// Words of a door before its cards: the next ticket; how many cards were taken. Cards, and words of a card.
const TICKET: usize = 0;
const SERVED: usize = 1;
const CARDS: usize = 32;
const CARD: usize = 16;
const FIRST_CARD: usize = 8;
const DOOR: usize = FIRST_CARD + CARDS * CARD;

/// Frames that may be on their way.
const SENDS: usize = 32;

/// What the ids of works are for, beside their peer or slot.
const TO_FRAME: u64 = 0;
const TO_MEET: u64 = 1 << 32;
const TO_KNOW: u64 = 2 << 32;

/// How far this rank has come to leave its card.
#[derive(Clone, Copy, Debug)]
enum MeetingStep {
    /// It asks for a ticket.
    Ticket,
    /// It has a ticket, and asks whose turn it is.
    Turn(u64),
    /// It may leave the card of a ticket.
    Card(u64),
}

/// Memory of a mailbox of this rank: a slot of a block.
#[derive(Clone, Copy, Debug)]
struct OwnBox {
    block: usize,
    slot: usize,
}

/// What there is between this rank and a peer.
#[derive(Debug, Default)]
struct Contact {
    own: Option<OwnBox>,
    /// The peer's door.
    door: Option<FarPlace>,
    reader: MailboxReader,
    /// The peer's mailbox for this rank.
    far: Option<(FarPlace, MailboxWriter)>,
    /// A frame waits to be received.
    is_whole: bool,
    /// The peer's count is being read.
    asks: bool,
}

impl Contact {
    /// Looks for the next frame. Returns true if a whole one is there.
    fn look(&mut self, blocks: &[(Slots, RmaRegion)]) -> bool {
        let Some(OwnBox { block, slot }) = self.own else { return false };
        self.is_whole = self.reader.look(|word| load(&blocks[block].0, slot, HEADER + word));
        // What was written before the frame is there too.
        fence(Ordering::Acquire);
        self.is_whole
    }
}

/// Words of a slot of `sends` that go to a place of a peer.
#[derive(Clone, Copy, Debug)]
struct SentWords {
    to: usize,
    place: FarPlace,
    slot: usize,
    first: usize,
    words: usize,
}

/// Frames between the ranks of a job.
#[derive(Debug)]
pub(super) struct Mailboxes {
    rank: usize,
    ranks: usize,
    door: Slots,
    /// Where peers find it.
    place: FarPlace,
    /// Cards that were taken at the door.
    served: u64,
    /// Blocks of mailboxes, and where each begins for peers.
    blocks: Vec<(Slots, RmaRegion)>,
    made: usize,
    contacts: Peers<Contact>,
    /// Peers to whom a card is to go; the first one is being met, if that has begun. One more slot of `sends` is for that.
    to_meet: VecDeque<usize>,
    meeting: Option<MeetingStep>,
    /// A work for it is under way.
    is_asking: bool,
    /// Frames that leave, and how many works of each.
    sends: Slots,
    leaving: [u8; SENDS],
    free: Vec<usize>,
    /// Words of frames that the adapter was too full for.
    unwritten: VecDeque<SentWords>,
    arrived: VecDeque<usize>,
}

/// Where a word of a slot is.
fn word_at(slots: &Slots, slot: usize, word: usize) -> *mut u64 {
    slots.at(slot, (word + 1) * WORD).wrapping_add(word * WORD).cast()
}

/// A word that peers write.
fn load(slots: &Slots, slot: usize, word: usize) -> u64 {
    // SAFETY: inside the slots, and aligned; changed by atomic accesses only.
    unsafe { kernels::load(word_at(slots, slot, word)) }
}

fn store(slots: &Slots, slot: usize, word: usize, value: u64) {
    // SAFETY: as above.
    unsafe { kernels::store(word_at(slots, slot, word), value) };
}

impl FarPlace {
    fn word(self, word: usize) -> Self {
        FarPlace { address: self.address + (word * WORD) as u64, ..self }
    }
}

impl Mailboxes {
    /// Opens the door of a rank, and publishes it as the adapter's address.
    ///
    /// # Errors
    /// What the adapter says.
    pub(super) fn new(adapter: &mut GeminiAdapter<impl Dmapp>, rank: usize, ranks: usize) -> std::result::Result<Self, String> {
        let door = Slots::new(1, DOOR * WORD);
        let (start, len) = door.memory();
        // SAFETY: freed behind the adapter.
        let RmaRegion { address, key: Key([a, b]), .. } = unsafe { adapter.register(start, len, RmaAccess::Remote) }?;
        adapter.set_address([address, a, b, 0, 0, 0, 0, 0]);
        Ok(Mailboxes {
            rank,
            ranks,
            door,
            place: FarPlace { address, segment: DmappSegment([a, b]) },
            served: 0,
            blocks: Vec::new(),
            made: 0,
            contacts: Peers::default(),
            to_meet: VecDeque::new(),
            meeting: None,
            is_asking: false,
            sends: Slots::new(SENDS + 1, words_of(FRAME) * WORD),
            leaving: [0; SENDS],
            free: (0..SENDS).collect(),
            unwritten: VecDeque::new(),
            arrived: VecDeque::new(),
        })
    }

    /// Makes a mailbox for a peer, to whom a card is to go, unless that was done before.
    fn contact(&mut self, adapter: &mut GeminiAdapter<impl Dmapp>, peer: usize, door: FarPlace) -> Result<()> {
        if self.contacts.get(peer).is_some_and(|contact| contact.own.is_some()) {
            return Ok(());
        }
        let slot = self.made % TOGETHER;
        if slot == 0 {
            let block = Slots::new(TOGETHER, (HEADER + MAILBOX) * WORD);
            let (start, len) = block.memory();
            // SAFETY: freed behind the adapter.
            let region = unsafe { adapter.register(start, len, RmaAccess::Remote) };
            self.blocks.push((block, region.map_err(Broken)?));
        }
        self.made += 1;
        let contact = self.contacts.meet(peer);
        contact.door = Some(door);
        contact.own = Some(OwnBox { block: self.blocks.len() - 1, slot });
        contact.reader = MailboxReader::new(MAILBOX, FRAME);
        self.to_meet.push_back(peer);
        Ok(())
    }

    /// Writes or reads words, which lie in the slot for meetings.
    fn begins(
        adapter: &mut GeminiAdapter<impl Dmapp>,
        writes: bool,
        peer: usize,
        to: FarPlace,
        here: *mut u8,
        words: usize,
        id: u64,
    ) -> Result<bool> {
        let FarPlace { address: there, segment } = to;
        let len = words * WORD;
        let work = RmaWork { here, len, local: None, there, key: Key(segment.0), inline: false, id: OF_ROAD | id };
        // SAFETY: memory of this value, which lies where it is until the adapter is closed, and is not touched meanwhile.
        unsafe { if writes { adapter.write(peer, &work) } else { adapter.read(peer, &work) } }
    }

    /// Goes on with the first card.
    fn meet_next(&mut self, adapter: &mut GeminiAdapter<impl Dmapp>) -> Result<()> {
        let Some(&peer) = self.to_meet.front() else { return Ok(()) };
        let Some(&Contact { own: Some(own), door: Some(door), .. }) = self.contacts.get(peer).filter(|_| !self.is_asking) else {
            return Ok(());
        };
        let here = self.sends.at(SENDS, CARD * WORD);
        self.is_asking = match *self.meeting.get_or_insert(MeetingStep::Ticket) {
            MeetingStep::Ticket => {
                let FarPlace { address: there, segment } = door.word(TICKET);
                let work =
                    RmaWork { here, len: WORD, local: None, there, key: Key(segment.0), inline: false, id: OF_ROAD | TO_MEET };
                // SAFETY: as in `begins`.
                unsafe { adapter.change(peer, &work, Atomic { op: AtomicOp::Add, width: WORD, operand: 1, comparand: 0 }) }?
            }
            MeetingStep::Turn(_) => Self::begins(adapter, false, peer, door.word(SERVED), here, 1, TO_MEET)?,
            MeetingStep::Card(ticket) => {
                let (at, lap) = place(ticket, CARDS);
                let (slots, region) = &self.blocks[own.block];
                let address = region.address + (slots.at(own.slot, 0).addr() - slots.memory().0.addr()) as u64;
                let (Key([a, b]), DmappSegment([c, d])) = (region.key, self.place.segment);
                let card = [self.rank as u64, address, a, b, self.place.address, c, d, 0];
                let halves = card.into_iter().flat_map(|word| [word as u32, (word >> 32) as u32]);
                halves.enumerate().for_each(|(word, half)| store(&self.sends, SENDS, word, numbered(lap, half)));
                Self::begins(adapter, true, peer, door.word(FIRST_CARD + at * CARD), here, CARD, TO_MEET)?
            }
        };
        Ok(())
    }

    /// A step of the first meeting is done.
    fn has_asked(&mut self) {
        let answer = load(&self.sends, SENDS, 0);
        self.is_asking = false;
        self.meeting = match self.meeting {
            Some(MeetingStep::Ticket) if answer < CARDS as u64 => Some(MeetingStep::Card(answer)),
            Some(MeetingStep::Ticket) => Some(MeetingStep::Turn(answer)),
            Some(MeetingStep::Turn(ticket)) if ticket < answer + CARDS as u64 => Some(MeetingStep::Card(ticket)),
            Some(MeetingStep::Turn(ticket)) => Some(MeetingStep::Turn(ticket)),
            Some(MeetingStep::Card(_)) | None => {
                self.to_meet.pop_front();
                None
            }
        };
    }

    /// Takes the cards at the door.
    fn serve(&mut self, adapter: &mut GeminiAdapter<impl Dmapp>) -> Result<()> {
        loop {
            let (at, lap) = place(self.served, CARDS);
            let mut halves = [0_u32; CARD];
            for (word, half) in halves.iter_mut().enumerate() {
                let Some(there) = half_of(lap, load(&self.door, 0, FIRST_CARD + at * CARD + word)) else { return Ok(()) };
                *half = there;
            }
            fence(Ordering::Acquire);
            self.served += 1;
            store(&self.door, 0, SERVED, self.served);
            let [peer, address, a, b, door, c, d, _] =
                std::array::from_fn(|at| u64::from(halves[2 * at]) | u64::from(halves[2 * at + 1]) << 32);
            let peer = peer as usize;
            if peer < self.ranks {
                self.contact(adapter, peer, FarPlace { address: door, segment: DmappSegment([c, d]) })?;
                let place = FarPlace { address, segment: DmappSegment([a, b]) };
                self.contacts.meet(peer).far = Some((place, MailboxWriter::new(MAILBOX)));
            }
        }
    }

    /// Writes what was sent, as far as the adapter has room.
    fn write_sent(&mut self, adapter: &mut GeminiAdapter<impl Dmapp>) -> Result<()> {
        while let Some(&SentWords { to, place, slot, first, words }) = self.unwritten.front() {
            let here = word_at(&self.sends, slot, first).cast();
            if !Self::begins(adapter, true, to, place, here, words, TO_FRAME | slot as u64)? {
                break;
            }
            self.unwritten.pop_front();
        }
        Ok(())
    }

    /// Looks into the mailboxes.
    fn look(&mut self) {
        for (peer, contact) in self.contacts.iter_mut() {
            if !contact.is_whole && contact.look(&self.blocks) {
                self.arrived.push_back(peer);
            }
        }
    }
}

impl<D: Dmapp> FrameRoad<GeminiAdapter<D>> for Mailboxes {
    fn longest(&self) -> usize {
        FRAME
    }

    fn send(&mut self, adapter: &mut GeminiAdapter<D>, to: usize, class: Class, frame: &[u8]) -> Result<bool> {
        self.contact(adapter, to, adapter.place_of(to))?;
        let contact = self.contacts.meet(to);
        let (Some((far, writer)), Some(&slot)) = (&mut contact.far, self.free.last()) else { return Ok(false) };
        let words = words_of(frame.len());
        let reserve = if class == Class::Request { FOR_ANSWERS } else { 0 };
        if writer.room() < words + reserve {
            if !contact.asks
                && let Some(OwnBox { block, slot }) = contact.own
            {
                let here = word_at(&self.blocks[block].0, slot, TOLD).cast();
                contact.asks = Self::begins(adapter, false, to, far.word(TAKEN), here, 1, TO_KNOW | to as u64)?;
            }
            return Ok(false);
        }
        let mut at = 0;
        let first = writer.write(frame, |word| {
            store(&self.sends, slot, at, word);
            at += 1;
        });
        let before_end = words.min(MAILBOX - first);
        let runs = [(first, 0, before_end), (0, before_end, words - before_end)];
        let runs = runs.into_iter().filter(|&(.., words)| words > 0);
        let sent = runs.map(|(place, first, words)| SentWords { to, place: far.word(HEADER + place), slot, first, words });
        self.unwritten.extend(sent);
        self.leaving[slot] = 1 + u8::from(before_end < words);
        self.free.pop();
        self.write_sent(adapter)?;
        Ok(true)
    }

    fn receive(&mut self, _: &mut GeminiAdapter<D>, frame: &mut [u8]) -> Result<Option<(usize, usize)>> {
        let Some(peer) = self.arrived.pop_front() else { return Ok(None) };
        let contact = self.contacts.meet(peer);
        let mut len = 0;
        contact.reader.frame(|bytes| {
            frame[..bytes.len()].copy_from_slice(bytes);
            len = bytes.len();
        });
        if let Some(OwnBox { block, slot }) = contact.own {
            store(&self.blocks[block].0, slot, TAKEN, contact.reader.taken());
        }
        if contact.look(&self.blocks) {
            self.arrived.push_back(peer);
        }
        Ok(Some((peer, len)))
    }

    fn ends(&mut self, done: &RmaDone) -> bool {
        let (RmaDone::Ends { id, .. } | RmaDone::Fails { id: Some(id), .. }) = *done else { return false };
        let (what, which) = (id & !OF_ROAD & !0xFFFF_FFFF, id as u32 as usize);
        let has_failed = matches!(done, RmaDone::Fails { .. });
        match what {
            TO_FRAME => {
                self.leaving[which] -= 1;
                if self.leaving[which] == 0 {
                    self.free.push(which);
                }
            }
            // It is tried again: others wait behind a ticket.
            TO_MEET if has_failed => self.is_asking = false,
            TO_MEET => self.has_asked(),
            _ => {
                let contact = self.contacts.meet(which);
                contact.asks = false;
                if let (Some((_, writer)), Some(OwnBox { block, slot })) = (&mut contact.far, contact.own) {
                    writer.has_taken(load(&self.blocks[block].0, slot, TOLD));
                }
            }
        }
        has_failed
    }

    fn tend(&mut self, adapter: &mut GeminiAdapter<D>) -> Result<bool> {
        let before = self.served;
        self.write_sent(adapter)?;
        self.serve(adapter)?;
        self.meet_next(adapter)?;
        self.look();
        // A card names a mailbox.
        Ok(self.served != before)
    }

    fn has_arrivals(&self) -> bool {
        !self.arrived.is_empty()
    }

    fn leaving(&self) -> usize {
        SENDS - self.free.len()
    }
}
