//! A clock that a test moves.

use std::{
    ops::Range,
    sync::{Mutex, atomic::AtomicU32},
    time::Duration,
};

use crate::comm::{Events, VirtualTime, WaitWord};

#[derive(Debug, Default)]
pub(in crate::comm) struct Clock(Mutex<Duration>);

impl Clock {
    pub(in crate::comm) fn add(&self, time: Duration) {
        *self.0.lock().unwrap() += time;
    }
}

impl VirtualTime for Clock {
    fn enter(&self) {}

    fn leave(&self) {}

    fn now(&self) -> Duration {
        *self.0.lock().unwrap()
    }

    fn read(&self) {}

    fn compute(&self, _: f64, _: f64) {}

    fn skips(&self) -> bool {
        false
    }

    fn set_contents(&self, _: Range<usize>, _: bool) {}

    fn poll(&self, _: &mut Events, _: &mut Option<Duration>, _: Duration) {}

    fn wait(&self, _: Option<(&WaitWord, u32)>) {}

    fn pause(&self, limit: Duration) {
        self.add(limit);
    }

    fn over<'a>(&'a self, of_job: &'a AtomicU32) -> &'a AtomicU32 {
        of_job
    }

    fn over_cause(&self) -> String {
        String::new()
    }

    fn wake_all(&self) {}
}
