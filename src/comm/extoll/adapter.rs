//! RMA as an adapter.

use super::engines::{CommandBytes, Engines, LONGEST_COMMAND, NotedCommand, Notification, PACKET};
use crate::comm::{
    am::wire::{Broken, Key, Result},
    kit::{peers::Peers, slab::Slab, slots::Slots},
    rma::{
        adapter::{RmaAccess, RmaAdapter, RmaDone, RmaLimits, RmaRegion, RmaWork},
        road::OF_ROAD,
    },
    start::devices::directory::Words,
};

/// Commands under way, which have room in the queue of notifications, and those of them that are not for marks.
const COMMANDS: usize = 256;
const BUT_MARKS: usize = 192;

const WORD: usize = size_of::<u64>();

/// A command under way.
#[derive(Clone, Copy, Debug)]
struct Command {
    id: u64,
    peer: usize,
    /// Where what a get brings ends here. None for a put.
    end: Option<u64>,
    len: usize,
    /// The word that a mark reads into.
    word: Option<usize>,
}

/// Registered memory: where it begins, its network address, and what the engines know it by.
#[derive(Clone, Copy, Debug)]
struct RmaMemory {
    start: usize,
    address: u64,
    handle: u64,
}

/// The engines of a rank, and what was begun by them.
#[derive(Debug)]
pub(super) struct ExtollAdapter<E: Engines> {
    engines: E,
    limits: RmaLimits,
    /// In the order of their posts.
    commands: Vec<Command>,
    /// Packets that were refused.
    refused: Vec<RmaDone>,
    regions: Slab<RmaMemory>,
    /// The place of the first word of each peer, which marks read.
    peers: Peers<u64>,
    /// A word that peers read, and those that marks of this rank read into.
    _words: Slots,
    words_at: u64,
    free_words: Vec<usize>,
    is_closed: bool,
}

impl<E: Engines> ExtollAdapter<E> {
    /// # Errors
    /// What the engines say.
    pub(super) fn new(mut engines: E) -> std::result::Result<Self, String> {
        let words = Slots::new(1, (1 + COMMANDS - BUT_MARKS) * WORD);
        let (start, len) = words.memory();
        // SAFETY: freed behind the engines.
        let (_, words_at) = unsafe { engines.register(start, len, RmaAccess::Remote) }?;
        let limits = RmaLimits {
            inline: 0,
            longest: LONGEST_COMMAND,
            unit: 1,
            local_regions: true,
            marks: true,
            put_put: true,
            put_get: true,
            frame_behind_write: false,
            atomics: false,
        };
        Ok(ExtollAdapter {
            engines,
            limits,
            commands: Vec::new(),
            refused: Vec::new(),
            regions: Slab::default(),
            peers: Peers::default(),
            _words: words,
            words_at,
            free_words: (1..=COMMANDS - BUT_MARKS).collect(),
            is_closed: false,
        })
    }

    /// The engines, for what only one kind of them needs.
    pub(super) fn engines(&mut self) -> &mut E {
        &mut self.engines
    }

    /// Sends a packet. False if the peer has no room. None if it was refused, which counts as a frame that failed.
    pub(super) fn send(&mut self, to: usize, packet: &[u8]) -> Option<bool> {
        if self.is_closed {
            return Some(false);
        }
        let refused = |why| self.refused.push(RmaDone::Fails { id: Some(OF_ROAD), peer: Some(to), why });
        self.engines.send(to, packet).map_err(refused).ok()
    }

    /// Takes the next packet.
    pub(super) fn receive(&mut self, packet: &mut [u8; PACKET]) -> Option<(usize, usize)> {
        if self.is_closed { None } else { self.engines.receive(packet) }
    }

    /// Begins a command for a work. False if there is no room.
    ///
    /// # Safety
    /// As [`Engines::put`] or [`Engines::get`].
    unsafe fn begin(&mut self, peer: usize, work: &RmaWork, reads: bool) -> Result<bool> {
        if self.is_closed || self.commands.len() >= BUT_MARKS {
            return Ok(false);
        }
        let RmaWork { here, len, local, there, id, .. } = *work;
        let known = local.and_then(|id| self.regions.get(id));
        let &RmaMemory { start, address, .. } = known.ok_or_else(|| Broken("memory that RMA does not know".to_owned()))?;
        let bytes = CommandBytes { here: address + (here.addr() - start) as u64, there, len };
        // SAFETY: the caller's promise.
        unsafe { if reads { self.engines.get(peer, bytes) } else { self.engines.put(peer, bytes) } }.map_err(Broken)?;
        let end = reads.then_some(bytes.here + len as u64);
        self.commands.push(Command { id, peer, end, len, word: None });
        Ok(true)
    }

    /// The command that a notification ends.
    fn ended(&mut self, is: impl Fn(&Command) -> bool) -> Result<Command> {
        let at = self.commands.iter().position(is);
        let at = at.ok_or_else(|| Broken("a notification of a command that was not given".to_owned()))?;
        let command = self.commands.remove(at);
        self.free_words.extend(command.word);
        Ok(command)
    }
}

impl<E: Engines> RmaAdapter for ExtollAdapter<E> {
    fn limits(&self) -> &RmaLimits {
        &self.limits
    }

    fn address(&self) -> Words {
        [self.words_at, self.engines.address(), 0, 0, 0, 0, 0, 0]
    }

    fn meet(&mut self, peer: usize, at: &Words) -> Result<()> {
        *self.peers.meet(peer) = at[0];
        self.engines.meet(peer, at[1]).map_err(Broken)
    }

    unsafe fn register(&mut self, start: *mut u8, len: usize, access: RmaAccess) -> std::result::Result<RmaRegion, String> {
        if self.is_closed {
            return Err("the port is closed".to_owned());
        }
        // SAFETY: the caller's promise.
        let (handle, address) = unsafe { self.engines.register(start, len, access) }?;
        let id = self.regions.add(RmaMemory { start: start.addr(), address, handle });
        Ok(RmaRegion { address, key: Key([0; 2]), id })
    }

    fn deregister(&mut self, region: u64) -> Result<()> {
        if let Some(RmaMemory { handle, .. }) = self.regions.remove(region).filter(|_| !self.is_closed) {
            self.engines.unregister(handle);
        }
        Ok(())
    }

    unsafe fn write(&mut self, to: usize, work: &RmaWork) -> Result<bool> {
        // SAFETY: the caller's promise.
        unsafe { self.begin(to, work, false) }
    }

    unsafe fn read(&mut self, from: usize, work: &RmaWork) -> Result<bool> {
        // SAFETY: the caller's promise.
        unsafe { self.begin(from, work, true) }
    }

    fn mark(&mut self, peer: usize, id: u64) -> Result<bool> {
        let (Some(&word), Some(&there), false) = (self.free_words.last(), self.peers.get(peer), self.is_closed) else {
            return Ok(false);
        };
        let here = self.words_at + (word * WORD) as u64;
        // SAFETY: a word of this value, which nobody looks at.
        unsafe { self.engines.get(peer, CommandBytes { here, there, len: WORD }) }.map_err(Broken)?;
        self.free_words.pop();
        self.commands.push(Command { id, peer, end: Some(here + WORD as u64), len: WORD, word: Some(word) });
        Ok(true)
    }

    fn poll(&mut self, done: &mut Vec<RmaDone>) -> Result<()> {
        if self.is_closed {
            return Ok(());
        }
        self.engines.go_on();
        done.append(&mut self.refused);
        for _ in 0..COMMANDS {
            let Some(Notification { of, refused }) = self.engines.notification().map_err(Broken)? else { break };
            let Command { id, peer, len, .. } = match of {
                NotedCommand::Put { to } => self.ended(|command| command.end.is_none() && command.peer == to),
                NotedCommand::Get { end } => self.ended(|command| command.end == Some(end)),
            }?;
            done.push(match refused {
                None => RmaDone::Ends { id, len },
                Some(why) => RmaDone::Fails { id: Some(id), peer: Some(peer), why },
            });
        }
        Ok(())
    }

    fn close(&mut self) {
        if !std::mem::replace(&mut self.is_closed, true) {
            self.commands.clear();
            self.engines.close();
        }
    }
}

impl<E: Engines> Drop for ExtollAdapter<E> {
    fn drop(&mut self) {
        self.close();
    }
}
