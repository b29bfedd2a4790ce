//! Words that all ranks keep for each other: a fence gathers what every rank has put since the last one, some hundred bytes of each. So
//! an answer takes no message, and any thread may ask.

use std::{io, mem::take};

use super::key_values::{Idle, KeyValues, Refused, Result};
use crate::error;

/// Longest value: none is cut.
const LONGEST: usize = 1 << 20;

/// How ranks that exist already meet, for [`Launch::start_with`](crate::Launch::start_with): a communicator of the program's own, such as one of
/// mpi4py, or the threads of a test.
///
/// The job calls it where it starts and where it ends, on the thread that starts and ends it. All that ranks send each other meanwhile goes by the
/// job's own network. An error or a panic of one rank is an error of its start or its end; the others wait in the meeting, as they do for a rank
/// that never comes or that dies there. [`Launch::timeout`](crate::Launch::timeout) does not end that wait, so let the meeting have a limit of its own.
///
/// # Examples
/// Threads of a process:
/// ```
/// use std::sync::{Arc, Barrier, Mutex};
///
/// use global_arrays::{Meeting, prelude::*};
///
/// struct Threads {
///     rank: usize,
///     barrier: Arc<Barrier>,
///     bytes: Arc<Mutex<Vec<Vec<u8>>>>,
/// }
///
/// impl Meeting for Threads {
///     fn rank(&self) -> usize {
///         self.rank
///     }
///
///     fn size(&self) -> usize {
///         self.bytes.lock().unwrap().len()
///     }
///
///     fn all_gather(&self, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
///         self.bytes.lock().unwrap()[self.rank] = bytes.to_vec();
///         self.barrier.wait();
///         let all = self.bytes.lock().unwrap().clone();
///         self.barrier.wait();
///         Ok(all)
///     }
/// }
///
/// # if std::env::var("GA_NETWORK").is_ok() { return; }
/// let (barrier, bytes) = (Arc::new(Barrier::new(2)), Arc::new(Mutex::new(vec![vec![]; 2])));
/// std::thread::scope(|scope| {
///     for rank in 0..2 {
///         let meeting = Threads { rank, barrier: barrier.clone(), bytes: bytes.clone() };
///         scope.spawn(move || {
///             let job = Launch::new().start_with(meeting)?;
///             assert_eq!(job.all_gather(&[job.rank()])?, [0, 1]);
///             job.finish()
///         });
///     }
/// });
/// ```
pub trait Meeting: Send {
    /// The calling rank, below [`size`](Self::size).
    fn rank(&self) -> usize;

    /// The number of ranks.
    fn size(&self) -> usize;

    /// The bytes of each rank, in the order of ranks. They need not be equally many. Collective.
    ///
    /// # Errors
    /// The program's own: see [`Error::other`](crate::Error::other).
    fn all_gather(&self, bytes: &[u8]) -> error::Result<Vec<Vec<u8>>>;
}

/// What ranks have put, as one of them keeps it.
#[derive(Debug, Default)]
pub(crate) struct GatheredKeys {
    /// `key value;` again and again: what this rank has put since the last fence.
    own: String,
    /// What each rank had put before the last fence before which any did.
    known: Vec<String>,
}

impl GatheredKeys {
    pub(crate) fn put(&mut self, key: &str, value: &str) {
        self.own += &format!("{key} {value};");
    }

    /// A fence: `all_gather` gets this rank's bytes, and returns those of all.
    pub(crate) fn fence(&mut self, all_gather: impl FnOnce(Vec<u8>) -> Result<Vec<Vec<u8>>>) -> Result<()> {
        let all = all_gather(take(&mut self.own).into_bytes())?;
        if all.iter().any(|bytes| !bytes.is_empty()) {
            let texts = all.into_iter().map(String::from_utf8).collect::<std::result::Result<_, _>>();
            self.known = texts.map_err(|error| Refused::Said(error.to_string()))?;
        }
        Ok(())
    }

    pub(crate) fn get(&self, from: usize, key: &str) -> Result<String> {
        let entries =
            self.known.get(from).map_or("", String::as_str).split_terminator(';').filter_map(|entry| entry.split_once(' '));
        let found = entries.into_iter().find_map(|(name, value)| (name == key).then_some(value));
        found.map(str::to_owned).ok_or_else(|| Refused::Said(format!("no {key} of rank {from}")))
    }
}

/// What ranks put that meet by the program.
pub(super) struct MeetingKeys {
    meeting: Box<dyn Meeting>,
    keys: GatheredKeys,
}

impl MeetingKeys {
    pub(super) fn new(meeting: Box<dyn Meeting>) -> Self {
        MeetingKeys { meeting, keys: GatheredKeys::default() }
    }
}

impl KeyValues for MeetingKeys {
    fn size(&self) -> Option<usize> {
        Some(self.meeting.size())
    }

    fn longest(&self) -> usize {
        LONGEST
    }

    fn put(&mut self, key: &str, value: &str, _: Idle<'_>) -> Result<()> {
        self.keys.put(key, value);
        Ok(())
    }

    fn fence(&mut self, _: Idle<'_>) -> Result<()> {
        let meeting = &self.meeting;
        self.keys.fence(|bytes| {
            let all = meeting.all_gather(&bytes).map_err(|error| Refused::System(io::Error::other(error)))?;
            match all.len() == meeting.size() {
                true => Ok(all),
                false => Err(Refused::Said(format!("the bytes of {} ranks, and there are {}", all.len(), meeting.size()))),
            }
        })
    }

    fn get(&mut self, from: usize, key: &str, _: Idle<'_>) -> Result<String> {
        self.keys.get(from, key)
    }

    fn finish(&mut self, _: Idle<'_>) -> Result<()> {
        Ok(())
    }

    /// The program alone can end the others, whose meeting it is.
    fn abort(&mut self, _: &str) {}

    fn is_gone(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_each_rank_are_found_by_their_keys() {
        let mut keys = GatheredKeys::default();
        let bytes = |texts: [&str; 3]| Ok(texts.map(|text| text.as_bytes().to_vec()).into());
        keys.fence(|_| bytes(["a 1;ab 2;", "", "a 3;"])).unwrap();
        let found = [(0, "a"), (0, "ab"), (0, "b"), (1, "a"), (2, "a"), (2, "ab"), (3, "a")];
        let found = found.map(|(from, key)| keys.get(from, key).ok());
        assert_eq!(found.each_ref().map(Option::as_deref), [Some("1"), Some("2"), None, None, Some("3"), None, None]);
        // A fence without words leaves those that are known.
        keys.put("c", "4");
        keys.fence(|own| Ok(vec![vec![]; usize::from(own == b"c 4;")])).unwrap();
        assert_eq!(keys.get(2, "a").unwrap(), "3");
    }
}
