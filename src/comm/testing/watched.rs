//! A network for tests that lists its operations. Each rank is a node of its own.

use std::{
    fmt,
    sync::{Arc, Mutex},
};

use crate::comm::{
    Capabilities, Conduit,
    layers::observed::{Observed, Observer},
    node::{Member, loopback::Loopback},
};

/// Operations that move or complete data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Put,
    Get,
    Block,
    /// A put with a signal, of this many bytes.
    Signal(usize),
    Flush,
}

/// The operations of a job's networks, by rank.
#[derive(Debug)]
pub(crate) struct Lists(Vec<Mutex<Vec<Asked>>>);

impl Lists {
    pub(crate) fn new(ranks: usize) -> Arc<Self> {
        Arc::new(Lists((0..ranks).map(|_| Mutex::default()).collect()))
    }

    /// The operations of a rank since the last call.
    pub(crate) fn take(&self, rank: usize) -> Vec<Asked> {
        std::mem::take(&mut self.0[rank].lock().unwrap())
    }
}

/// A network that notes the operations of one rank.
#[derive(Debug)]
pub(crate) struct Watched {
    lists: Arc<Lists>,
    rank: usize,
}

impl Watched {
    /// The conduit of a rank over a network whose capabilities `limit` has changed.
    pub(crate) fn conduit(member: Member, lists: Arc<Lists>, limit: impl Fn(&mut Capabilities)) -> Arc<Conduit> {
        let member = member.split(1, true);
        let below = Loopback::new(member.fabric().clone(), member.topology().clone()).limited(limit);
        let watched = Watched { lists, rank: member.topology().rank() };
        Arc::new(Conduit::with_network(member, Arc::new(Observed::new(Arc::new(below), watched))))
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
