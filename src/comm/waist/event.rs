//! What `poll` reports.

use std::fmt;

/// Names an operation to the layer above; the conduit hands it back unchanged.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Token(pub u64);

/// The place in the table of requests, and how often it was used before.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({}#{})", self.0 & u64::from(u32::MAX), self.0 >> 32)
    }
}

/// Some that are no request's: a table of requests has no such places.
impl Token {
    /// Of what nobody waits for.
    pub(crate) const NOBODY: Token = Token(u64::MAX);
    /// Of a late put when it goes to its target at last ([`layers`](crate::comm::layers)).
    pub(crate) const LATE: Token = Token(u64::MAX - 1);
    /// A flush by which a rank learns that all it has sent was handled.
    pub(crate) const SETTLED: Token = Token(u64::MAX - 2);
    /// A flush by which a rank asks that what it has sent be acknowledged.
    pub(crate) const ACKNOWLEDGED: Token = Token(u64::MAX - 3);
}

/// One thing that happened.
#[derive(Debug)]
pub(crate) enum Event {
    /// The local memory of a put is free again, or that of a get is filled.
    LocalDone(Token),
    /// Everything put to the target before the flush is visible.
    RemoteDone(Token),
    /// The old value of an atomic operation; or a letter is in its ring.
    Value(Token, u64),
    /// The operation failed; its local memory is no longer touched.
    Failed(Token, Cause),
}

/// Why something failed, in the conduit's words.
#[derive(Clone, Debug)]
pub(crate) struct Cause(pub String);

/// Where `poll` appends.
pub(crate) type Events = Vec<Event>;
