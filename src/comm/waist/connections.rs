//! A rank's connections, where a network makes them: when, and their counts.

/// When and how ranks of different nodes connect, for [`Launch::connect`](crate::Launch::connect).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Connect {
    /// `overlapped`, the default: when one of them first needs it; both make their queue pairs at the same time (ARMCI-ODCM, Fig. 4).
    #[default]
    Overlapped,
    /// `serial`: when one of them first needs it. The first rank makes its queue pair and sends its address; only then does the second make
    /// its own (Fig. 3).
    Serial,
    /// `static`: each rank asks for connections with all ranks of other nodes at the start. The program does not wait for them.
    Static,
}

/// The connections of one rank since the job began, over a network that connects ranks; see
/// [`Stats::connections`](crate::Stats::connections). A connection counts at both of its ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Connections {
    /// Connections that came to stand.
    pub opened: u64,
    /// Those of them that followed an earlier one with the same rank.
    pub reopened: u64,
    /// Connections that were closed.
    pub closed: u64,
    /// Those that stand now.
    pub live: u64,
    /// Bytes that this rank has sent, written and read by them. What was lost with a connection and done again counts twice.
    pub bytes: u64,
    /// Datagrams about connections that were sent again, because no answer had come.
    pub resends: u64,
    /// Datagrams that were refused: they do not carry the job's secret, are malformed, or name another rank.
    pub refused: u64,
}

impl Connections {
    /// Numbers of a rank's connections.
    pub(crate) const WORDS: usize = 7;

    pub(crate) fn to_words(self) -> [u64; Self::WORDS] {
        [self.opened, self.reopened, self.closed, self.live, self.bytes, self.resends, self.refused]
    }

    pub(crate) fn from_words([opened, reopened, closed, live, bytes, resends, refused]: [u64; Self::WORDS]) -> Self {
        Connections { opened, reopened, closed, live, bytes, resends, refused }
    }

    /// What happened from `earlier` to this. Those that stand now stay as they are.
    pub(crate) fn since(self, earlier: Connections) -> Connections {
        Connections {
            opened: self.opened.saturating_sub(earlier.opened),
            reopened: self.reopened.saturating_sub(earlier.reopened),
            closed: self.closed.saturating_sub(earlier.closed),
            live: self.live,
            bytes: self.bytes.saturating_sub(earlier.bytes),
            resends: self.resends.saturating_sub(earlier.resends),
            refused: self.refused.saturating_sub(earlier.refused),
        }
    }
}
