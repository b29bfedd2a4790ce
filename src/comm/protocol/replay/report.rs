//! When an end says which frames of its peer it has seen.
//!
//! Every frame says it. Where none leaves, a message of its own does, after [`UNSAID`] frames or [`UNSAID_FOR`]. The first message on a new
//! connection says it too, and *opens* it: no frame is posted before both ends have opened.
//!
//! ```text
//!  event                         | this end
//!  ------------------------------+----------------------------------------------------------------------
//!  a connection is ready         | has to open it
//!  a message can leave           | opens, or says what was not said, or nothing
//!  a frame leaves                | has said all
//!  the peer opens                | keeps its number, until this end has opened too
//!  a frame has come              | says so later, or at once if there are many
//!  the connection is over        | neither has opened
//! ```

use std::time::Duration;

use super::header::HeaderKind;

/// Acknowledges explicitly after this many frames, or this long after the first.
const UNSAID: u64 = 16;
const UNSAID_FOR: Duration = Duration::from_millis(1);

/// An end's reports of what it has seen.
#[derive(Debug, Default)]
pub(in crate::comm) struct EndReports {
    stage: ReportStage,
    /// The number of frames that the peer has seen. It has opened the connection, and this end has not yet.
    heard: Option<u64>,
    /// The frames that the peer was told, and the time since when there are more.
    said: u64,
    unsaid: Option<Duration>,
}

/// The state of a connection at this end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReportStage {
    /// There is none, or it is not ready.
    #[default]
    Closed,
    /// It is ready, and the peer was not told which frame was seen last.
    Opening,
    Open,
}

/// The time to say what has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::comm) enum When {
    /// It is planned already.
    Planned,
    /// [`EndReports::due`] tells when.
    Later,
    Now,
}

impl EndReports {
    /// A connection is ready.
    pub(in crate::comm) fn begins(&mut self) {
        self.stage = ReportStage::Opening;
    }

    /// The connection is over.
    pub(in crate::comm) fn is_over(&mut self) {
        (self.stage, self.heard) = (ReportStage::Closed, None);
    }

    /// The peer has opened the connection, and seen the frames up to a number.
    pub(in crate::comm) fn hears(&mut self, seen: u64) {
        self.heard = Some(seen);
    }

    /// The frames that the peer has seen: once, when both ends have opened the connection.
    pub(in crate::comm) fn take_heard(&mut self) -> Option<u64> {
        self.heard.take_if(|_| self.stage == ReportStage::Open)
    }

    /// A frame leaves, and says what was seen.
    #[inline]
    pub(in crate::comm) fn leaves(&mut self, seen: u64) {
        (self.said, self.unsaid) = (seen, None);
    }

    /// The message that has to leave on its own, if any. On a connection that is not `open` for frames only the first message
    /// leaves.
    pub(in crate::comm) fn says(&mut self, seen: u64, open: bool) -> Option<HeaderKind> {
        let what = match self.stage {
            ReportStage::Opening => HeaderKind::Opens,
            ReportStage::Open if seen != self.said && open => HeaderKind::Seen,
            ReportStage::Closed | ReportStage::Open => return None,
        };
        self.stage = ReportStage::Open;
        self.leaves(seen);
        Some(what)
    }

    /// A frame has come, the last that was seen.
    #[inline]
    pub(in crate::comm) fn arrives(&mut self, seen: u64, now: Duration) -> When {
        let when = if self.unsaid.is_none() { When::Later } else { When::Planned };
        self.unsaid.get_or_insert(now);
        if seen - self.said == UNSAID { When::Now } else { when }
    }

    /// The time to say something, if anything is unsaid.
    pub(in crate::comm) fn due(&self) -> Option<Duration> {
        self.unsaid.map(|since| since + UNSAID_FOR)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    #[test]
    fn the_first_message_opens_and_the_number_of_the_peer_waits_for_it() {
        let mut report = EndReports::default();
        assert_eq!(report.says(0, true), None);
        report.hears(4);
        assert_eq!(report.take_heard(), None, "the peer may be ready first");
        report.begins();
        assert_eq!(report.take_heard(), None);
        assert_eq!(report.says(0, false), Some(HeaderKind::Opens));
        assert_eq!((report.take_heard(), report.take_heard()), (Some(4), None));
        assert_eq!(report.says(0, true), None);
        report.begins();
        report.hears(5);
        report.is_over();
        assert_eq!((report.says(0, true), report.take_heard()), (None, None));
    }

    /// Of an end that has opened its connection.
    fn opened() -> EndReports {
        let mut report = EndReports::default();
        assert_eq!(report.says(1, true), None);
        report.begins();
        assert_eq!(report.says(0, true), Some(HeaderKind::Opens));
        report
    }

    #[test]
    fn what_no_frame_says_is_said_after_a_while() {
        let mut report = opened();
        assert_eq!((report.arrives(1, 5 * MILLISECOND), report.arrives(2, 6 * MILLISECOND)), (When::Later, When::Planned));
        assert_eq!(report.due(), Some(6 * MILLISECOND));
        assert_eq!(report.says(2, false), None, "the connection is not there");
        assert_eq!(report.due(), Some(6 * MILLISECOND));
        assert_eq!(report.says(2, true), Some(HeaderKind::Seen));
        assert_eq!((report.due(), report.says(2, true)), (None, None));
        assert_eq!(report.arrives(3, 9 * MILLISECOND), When::Later);
        report.leaves(3);
        assert_eq!((report.due(), report.says(3, true)), (None, None));
    }

    #[test]
    fn many_frames_are_said_at_once() {
        let mut report = opened();
        let at_once: Vec<u64> = (1..=40).filter(|&seen| report.arrives(seen, MILLISECOND) == When::Now).collect();
        assert_eq!(at_once, [UNSAID]);
        report.leaves(40);
        assert_eq!(report.arrives(41, MILLISECOND), When::Later);
    }
}
