//! One end of one pair: its stage, its queue pair, and what it has to say.

use std::time::Duration;

use super::{
    Action, PairEvent, PairStep, SetupWay, Statistics,
    datagram::{NEVER, PairAddress, PairDatagram, PairStage},
    timer::{Estimate, LONGEST},
};

/// The time for which a pair is used before it may be closed for another: twenty set-ups of ARMCI-ODCM Fig. 12.
pub(in crate::comm) const RESIDENCE: Duration = Duration::from_millis(10);

/// The pause after a step failed, which doubles up to [`LONGEST`].
const PAUSE: Duration = Duration::from_millis(2);

/// The place of a pair in the queues of both of its endpoints: its wish, and its endpoints.
pub(super) type Claim = (u64, usize, usize);

/// A queue pair that this end holds.
#[derive(Clone, Debug)]
pub(super) struct HeldPair {
    /// What it was made for.
    pub(super) epoch: u32,
    /// What the driver does with it now.
    pub(super) step: Option<PairStep>,
    pub(super) address: PairAddress,
}

/// What an event needs of its endpoint.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    pub(super) now: Duration,
    pub(super) peer: usize,
    /// A wish of now.
    pub(super) wish: u64,
    pub(super) estimate: &'a mut Estimate,
    pub(super) statistics: &'a mut Statistics,
    pub(super) actions: &'a mut Vec<Action>,
}

#[derive(Clone, Debug)]
pub(super) struct PairEnd {
    pub(super) epoch: u32,
    pub(super) mine: PairStage,
    /// The highest stage of this epoch that the peer has told.
    pub(super) theirs: PairStage,
    pub(super) remote: Option<PairAddress>,
    pub(super) held: Option<HeldPair>,
    /// The times of this end's wish for the connection, and of the peer's.
    pub(super) wish: u64,
    pub(super) heard: u64,
    /// The time at which it became ready. It may be posted to until it is leaving.
    pub(super) since: Option<Duration>,
    pub(super) leaving: bool,
    /// Something posted is unacknowledged.
    pub(super) busy: bool,
    pub(super) used: Duration,
    /// A datagram of the peer has come since this end last asked again.
    pub(super) has_answered: bool,
    /// It was ready in an earlier epoch.
    was_ready: bool,
    /// The steps that failed since it was ready, and the time of the next try.
    failures: u32,
    retry_at: Duration,
    /// A datagram is to be sent, and asks for an answer.
    tell: bool,
    asks: bool,
    number: u32,
    /// The first datagram that came since the last one left.
    pub(super) asked: u32,
    /// The first datagram of this wait, and its time.
    first: Option<(u32, Duration)>,
    patience: Duration,
    resend_at: Option<Duration>,
    /// The place of this pair in the endpoint's indexes.
    pub(super) claim: Option<Claim>,
    pub(super) deadline: Option<Duration>,
}

impl Default for PairEnd {
    fn default() -> Self {
        PairEnd {
            epoch: 0,
            mine: PairStage::Idle,
            theirs: PairStage::Idle,
            remote: None,
            held: None,
            wish: NEVER,
            heard: NEVER,
            since: None,
            leaving: false,
            busy: false,
            used: Duration::ZERO,
            has_answered: false,
            was_ready: false,
            failures: 0,
            retry_at: Duration::ZERO,
            tell: false,
            asks: false,
            number: 0,
            asked: 0,
            first: None,
            patience: Duration::ZERO,
            resend_at: None,
            claim: None,
            deadline: None,
        }
    }
}

impl PairEnd {
    /// The driver says that something happened.
    pub(super) fn on_event(&mut self, turn: &mut Turn<'_>, event: PairEvent) {
        let (step, of) = self.held.as_ref().map_or((None, 0), |held| (held.step, held.epoch));
        match (step, event) {
            (_, PairEvent::Wanted) if !self.may_post() => self.wish = self.wish.min(turn.wish),
            (Some(PairStep::Prepare), PairEvent::Prepared { epoch, address }) if epoch == of => {
                self.held = Some(HeldPair { epoch, step: None, address });
                self.enter_if(epoch, PairStage::Initialized);
            }
            (Some(PairStep::Connect), PairEvent::Connected { epoch }) if epoch == of => {
                self.step_is_over();
                self.enter_if(epoch, PairStage::Connected);
            }
            (Some(PairStep::Release), PairEvent::Released { epoch } | PairEvent::Failed { epoch }) if epoch == of => {
                self.held = None
            }
            (Some(step), PairEvent::Failed { epoch }) if epoch == of => {
                self.step_is_over();
                if step == PairStep::Prepare {
                    self.held = None;
                }
                if epoch == self.epoch {
                    self.end(turn);
                }
                self.retry_at = turn.now + (PAUSE * (1 << self.failures.min(9))).min(LONGEST);
                self.failures += 1;
            }
            (_, PairEvent::Broken { epoch }) if epoch == self.epoch && self.mine >= PairStage::Initialized => self.end(turn),
            (_, PairEvent::Data { epoch }) if epoch == self.epoch && self.remote.is_some() => {
                self.theirs = self.theirs.max(PairStage::Connected);
            }
            (_, PairEvent::Used) if self.since.is_some() => (self.busy, self.used) = (true, turn.now),
            (_, PairEvent::Acknowledged) => self.busy = false,
            // Of an epoch that is over.
            _ => {}
        }
    }

    /// The peer says where it stands.
    pub(super) fn on_datagram(&mut self, turn: &mut Turn<'_>, datagram: &PairDatagram) {
        self.has_answered = true;
        if datagram.epoch < self.epoch {
            // It does not know that its epoch is over.
            self.tell = true;
            return;
        }
        if datagram.epoch > self.epoch {
            self.end(turn);
            (self.epoch, self.tell) = (datagram.epoch, false);
        }
        self.theirs = self.theirs.max(datagram.stage);
        self.heard = self.heard.min(datagram.wish);
        if datagram.stage >= PairStage::Initialized {
            self.remote.get_or_insert(datagram.address);
        }
        if let Some((number, at)) = self.first
            && number == datagram.answers
        {
            turn.estimate.measured(turn.now.saturating_sub(at));
            self.first = None;
        }
        if self.asked == 0 {
            self.asked = datagram.number;
        }
        self.tell |= datagram.asks && self.mine >= datagram.stage;
    }

    /// A deadline of this pair has passed.
    pub(super) fn on_timeout(&mut self, turn: &mut Turn<'_>) {
        if self.resend_at.is_some_and(|at| at <= turn.now) {
            (self.tell, self.asks) = (true, true);
            turn.statistics.resends += 1;
        }
    }

    /// It may hold a queue pair now.
    pub(super) fn begin(&mut self, turn: &mut Turn<'_>, way: SetupWay) {
        self.mine = PairStage::Asking;
        self.tell = way == SetupWay::Overlapped && self.theirs == PairStage::Idle;
        self.held = Some(HeldPair { epoch: self.epoch, step: None, address: PairAddress::default() });
        self.take_step(turn, PairStep::Prepare);
    }

    /// Its queue pair is needed for another.
    pub(super) fn make_room(&mut self, turn: &mut Turn<'_>) {
        if self.since.is_some() { self.leave(turn) } else { self.end(turn) }
    }

    /// Does what follows from where both ends stand.
    pub(super) fn advance(&mut self, turn: &mut Turn<'_>) {
        if self.mine == PairStage::Connected && self.theirs >= PairStage::Connected && self.since.is_none() {
            (self.since, self.used) = (Some(turn.now), turn.now);
            (self.wish, self.failures) = (NEVER, 0);
            turn.statistics.opened += 1;
            turn.statistics.reopened += u64::from(std::mem::replace(&mut self.was_ready, true));
            turn.actions.push(Action::Ready { peer: turn.peer, epoch: self.epoch });
        }
        if self.theirs == PairStage::Closing && self.may_leave(turn.now) {
            self.leave(turn);
        }
        if self.leaving && self.mine == PairStage::Connected && !self.busy {
            self.enter_if(self.epoch, PairStage::Closing);
        }
        if self.mine == PairStage::Closing && self.theirs == PairStage::Closing {
            self.end(turn);
        }
        match self.held {
            Some(HeldPair { epoch, step: None, .. }) if epoch != self.epoch => self.take_step(turn, PairStep::Release),
            Some(HeldPair { step: None, .. }) if self.mine == PairStage::Initialized && self.remote.is_some() => {
                self.take_step(turn, PairStep::Connect);
            }
            _ => {}
        }
        if self.theirs >= self.mine {
            (self.first, self.resend_at) = (None, None);
        }
    }

    /// The datagram to send, if any.
    pub(super) fn take_datagram(&mut self, turn: &Turn<'_>, from: usize) -> Option<PairDatagram> {
        let asks = std::mem::take(&mut self.asks);
        if !std::mem::take(&mut self.tell) {
            return None;
        }
        // Zero is no number.
        self.number = self.number.wrapping_add(1).max(1);
        if self.theirs < self.mine {
            self.has_answered &= !asks;
            self.patience = if asks { (2 * self.patience).min(LONGEST) } else { turn.estimate.patience() };
            self.first.get_or_insert((self.number, turn.now));
            self.resend_at = Some(turn.now + self.patience);
        }
        Some(PairDatagram {
            from: u32::try_from(from).ok()?,
            to: u32::try_from(turn.peer).ok()?,
            epoch: self.epoch,
            stage: self.mine,
            address: self.held.as_ref().map_or_else(PairAddress::default, |held| held.address),
            wish: self.wish,
            number: self.number,
            answers: std::mem::take(&mut self.asked),
            asks,
        })
    }

    pub(super) fn may_post(&self) -> bool {
        self.since.is_some() && !self.leaving
    }

    /// Returns true if it is past its residence and not leaving yet.
    pub(super) fn may_leave(&self, now: Duration) -> bool {
        self.may_post() && self.since.is_some_and(|since| now >= since + RESIDENCE)
    }

    /// Returns true if its queue pair will be free without another decision.
    pub(super) fn gives_back(&self) -> bool {
        self.leaving || self.held.as_ref().is_some_and(|held| held.epoch != self.epoch)
    }

    /// Returns true if the peer is not known to hold a queue pair for it.
    pub(super) fn is_alone(&self) -> bool {
        self.theirs < PairStage::Initialized
    }

    /// The oldest wish for it.
    pub(super) fn oldest_wish(&self) -> u64 {
        self.wish.min(self.heard)
    }

    /// Returns true if it needs a queue pair, now or after its pause.
    fn lacks(&self) -> bool {
        let is_wanted = self.wish != NEVER || self.theirs >= PairStage::Asking;
        is_wanted && self.mine == PairStage::Idle && self.held.is_none()
    }

    /// Returns true if it needs a queue pair now.
    pub(super) fn claims(&self, now: Duration) -> bool {
        self.lacks() && self.retry_at <= now
    }

    /// The time to look at it again.
    pub(super) fn next_timeout(&self, now: Duration) -> Option<Duration> {
        let retry = (self.lacks() && self.retry_at > now).then_some(self.retry_at);
        let leave = self.since.filter(|_| self.theirs == PairStage::Closing && !self.leaving).map(|since| since + RESIDENCE);
        [self.resend_at, retry, leave].into_iter().flatten().min()
    }

    /// Enters a stage, if its epoch is not over.
    fn enter_if(&mut self, epoch: u32, stage: PairStage) {
        if epoch == self.epoch {
            (self.mine, self.tell) = (stage, true);
        }
    }

    fn step_is_over(&mut self) {
        self.held.iter_mut().for_each(|held| held.step = None);
    }

    fn take_step(&mut self, turn: &mut Turn<'_>, step: PairStep) {
        if let Some(held) = &mut self.held {
            held.step = Some(step);
            let (peer, epoch, remote) = (turn.peer, held.epoch, self.remote.unwrap_or_default());
            turn.actions.push(match step {
                PairStep::Prepare => Action::Prepare { peer, epoch },
                PairStep::Connect => Action::Connect { peer, epoch, remote },
                PairStep::Release => Action::Release { peer, epoch },
            });
        }
    }

    /// Nothing more is posted.
    fn leave(&mut self, turn: &mut Turn<'_>) {
        self.leaving = true;
        turn.actions.push(Action::Hold { peer: turn.peer, epoch: self.epoch });
    }

    /// The epoch is over at this end, whatever the reason. A pair that could be posted to is wanted again.
    fn end(&mut self, turn: &mut Turn<'_>) {
        if self.may_post() {
            self.wish = self.wish.min(turn.wish);
        }
        turn.statistics.closed += u64::from(self.since.take().is_some());
        self.epoch = self.epoch.saturating_add(1);
        (self.mine, self.theirs, self.remote, self.heard) = (PairStage::Idle, PairStage::Idle, None, NEVER);
        (self.leaving, self.busy, self.tell, self.asked) = (false, false, true, 0);
    }
}
