//! An endpoint without any layer: what a program costs that calls libfabric itself.
#![allow(unsafe_code)]

use std::{ffi::c_void, ptr::NonNull};

use super::{
    ffi::*,
    port::{ADDRESS, LocalBytes, OfiPort, Polled, PortRegion, RemoteBytes, Unopened},
};

/// Bytes of a card: an address, and where memory is.
const CARD: usize = ADDRESS + 16;

/// An endpoint with one peer, and memory that the peer may read and write. One operation at a time.
#[derive(Debug)]
pub struct BareEndpoint {
    port: OfiPort,
    region: PortRegion,
    /// In words, so that it is aligned.
    memory: Vec<u64>,
    peer: RemoteBytes,
    /// What providers keep of an operation.
    context: Box<[u64; 8]>,
}

impl BareEndpoint {
    /// Opens an endpoint of a provider, with `bytes` of memory.
    ///
    /// # Errors
    /// What is missing, or what the library says.
    pub fn open(provider: &str, bytes: usize) -> Result<Self, String> {
        let port = OfiPort::open(provider, None, |_, _| Ok(()));
        let port = port.map_err(|(Unopened::Lacks(why) | Unopened::Fails(why))| why)?;
        let mut memory = vec![0_u64; bytes.div_ceil(8)];
        // SAFETY: freed behind the port.
        let region = unsafe { port.register(memory.as_mut_ptr().cast(), 8 * memory.len(), true, 1) }?;
        Ok(BareEndpoint { port, region, memory, peer: RemoteBytes { peer: 0, address: 0, key: 0 }, context: Box::default() })
    }

    /// What the peer needs to know: the endpoint's address, and where its memory is.
    ///
    /// # Errors
    /// What the library says.
    pub fn card(&mut self) -> Result<[u8; CARD], String> {
        let mut card = [0; CARD];
        card[..ADDRESS].copy_from_slice(&self.port.address()?.0);
        let (start, key) = self.port.named(self.region, self.memory.as_mut_ptr().cast());
        card[ADDRESS..ADDRESS + 8].copy_from_slice(&start.to_ne_bytes());
        card[ADDRESS + 8..].copy_from_slice(&key.to_ne_bytes());
        Ok(card)
    }

    /// Enters the peer.
    ///
    /// # Errors
    /// What the library says.
    pub fn meet(&mut self, card: &[u8; CARD]) -> Result<(), String> {
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|k| card[at + k]));
        let peer = self.port.enter(&std::array::from_fn(|k| card[k]))?;
        self.peer = RemoteBytes { peer, address: word(ADDRESS), key: word(ADDRESS + 8) };
        Ok(())
    }

    /// Writes the first bytes of this memory into the peer's, and waits until they are visible there.
    ///
    /// # Errors
    /// What the library says.
    pub fn put(&mut self, len: usize) -> Result<(), String> {
        let from = self.local(0, len);
        let is_ordered = self.port.offer().keeps(FI_ORDER_RAW);
        let flags = if is_ordered { FI_COMPLETION } else { FI_COMPLETION | FI_DELIVERY_COMPLETE };
        let context = self.context();
        // SAFETY: registered memory, which stays until the work is complete.
        while !unsafe { self.port.write(from, self.peer, flags, context) }? {
            self.poll()?;
        }
        self.complete()?;
        if is_ordered { self.get(8) } else { Ok(()) }
    }

    /// Reads the first bytes of the peer's memory, into the upper half of this one.
    ///
    /// # Errors
    /// What the library says.
    pub fn get(&mut self, len: usize) -> Result<(), String> {
        let to = self.local(self.memory.len() / 2, len);
        let context = self.context();
        // SAFETY: registered memory, which stays until the work is complete.
        while !unsafe { self.port.read(to, self.peer, context) }? {
            self.poll()?;
        }
        self.complete()
    }

    fn local(&mut self, word: usize, len: usize) -> LocalBytes {
        let start = self.memory[word..][..len.div_ceil(8)].as_mut_ptr().cast();
        LocalBytes { start, len, region: Some(self.region) }
    }

    fn context(&mut self) -> *mut c_void {
        NonNull::from(&mut *self.context).as_ptr().cast()
    }

    /// Waits for a completion.
    fn complete(&self) -> Result<(), String> {
        while !self.poll()? {}
        Ok(())
    }

    /// Looks at the queue, by which a provider without a thread of its own makes progress. True if an operation is complete.
    ///
    /// # Errors
    /// What the library says.
    pub fn poll(&self) -> Result<bool, String> {
        match self.port.poll(|_, _| ())? {
            Polled::Nothing => Ok(false),
            Polled::Ended => Ok(true),
            Polled::Failed { why, .. } => Err(format!("an operation: {why}")),
        }
    }
}

impl Drop for BareEndpoint {
    fn drop(&mut self) {
        self.port.close(std::iter::once(self.region));
    }
}
