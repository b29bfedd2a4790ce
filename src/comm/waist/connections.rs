//! A rank's connections, where a network makes them: when, and their counts.

/// When and how a network that connects ranks makes their connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Connect {
    /// On demand, both sides at once.
    #[default]
    Overlapped,
    /// On demand, one side after the other.
    Serial,
    /// Asked for at the start, with all ranks of other nodes.
    Static,
}

impl Connect {
    /// What [`of_name`](Self::of_name) knows.
    pub(crate) const NAMES: &str = "overlapped, serial or static";

    pub(crate) fn of_name(name: &str) -> Option<Self> {
        match name {
            "overlapped" => Some(Connect::Overlapped),
            "serial" => Some(Connect::Serial),
            "static" => Some(Connect::Static),
            _ => None,
        }
    }
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
