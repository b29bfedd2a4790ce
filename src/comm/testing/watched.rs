//! A network for tests that lists what it is asked for. Each rank is a node of its own.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use crate::comm::{
    Capabilities, Conduit,
    layers::observed::{Observed, Observer},
    node::{Member, joined::Joined, loopback::Loopback},
};

/// What moves or completes data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Put,
    Get,
    Block,
    /// A put with a signal, of so many bytes.
    Signal(usize),
    Flush,
}

/// What the networks of a job were asked for, by rank.
#[derive(Debug)]
pub(crate) struct Lists(Vec<Mutex<Vec<Asked>>>);

impl Lists {
    pub(crate) fn new(ranks: usize) -> Arc<Self> {
        Arc::new(Lists((0..ranks).map(|_| Mutex::default()).collect()))
    }

    /// What a rank asked for since the last call.
    pub(crate) fn take(&self, rank: usize) -> Vec<Asked> {
        std::mem::take(&mut self.0[rank].lock().unwrap())
    }
}

/// Notes what one rank asks for.
#[derive(Debug)]
pub(crate) struct Watched {
    lists: Arc<Lists>,
    rank: usize,
}

impl Watched {
    /// The conduit of a rank over a network that announces what is left of its capabilities.
    pub(crate) fn conduit(member: Member, lists: Arc<Lists>, limit: impl Fn(&mut Capabilities)) -> Arc<dyn Conduit> {
        let member = member.split(1, true);
        let below = Loopback::new(member.fabric().clone(), member.topology().clone()).limited(limit);
        let watched = Watched { lists, rank: member.topology().rank() };
        Arc::new(Joined::new(member, Arc::new(Observed::new(Arc::new(below), watched))))
    }
}

impl Observer for Watched {
    fn called(&self, name: &'static str, bytes: usize, _text: fmt::Arguments<'_>) {
        let asked = match name {
            "put" => Asked::Put,
            "get" => Asked::Get,
            "put_block" => Asked::Block,
            "put_signal" => Asked::Signal(bytes),
            "flush" => Asked::Flush,
            _ => return,
        };
        self.lists.0[self.rank].lock().unwrap().push(asked);
    }
}
