//! A pool of rayon whose threads are gone when it is.
//!
//! Rayon alone would only ask them to end, so their handles are kept here and joined. A child that a rank forked has no threads, and forgets them.

use std::thread::JoinHandle;

use crate::{
    comm::kit::cores,
    error::{Error, Result},
};

/// A pool, and the handles of its threads, which end when this is dropped.
#[derive(Debug)]
pub(crate) struct Crew {
    /// There until this is dropped.
    pool: Option<rayon::ThreadPool>,
    handles: Vec<JoinHandle<()>>,
    process: u32,
}

impl Crew {
    /// `places` has the cores of the first thread, of the second and so on; a thread without any may use those of the calling one.
    pub(crate) fn new(rank: usize, threads: usize, places: &[Vec<usize>]) -> Result<Self> {
        let mut crew = Crew { pool: None, handles: Vec::new(), process: std::process::id() };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).spawn_handler(|thread| {
            let place = places.get(thread.index()).cloned();
            let builder = std::thread::Builder::new().name(format!("rank {rank}.{}", thread.index()));
            crew.handles.push(builder.spawn(move || {
                // A refusal costs speed only.
                let _ = place.map(|cores| cores::confine(&cores));
                thread.run();
            })?);
            Ok(())
        });
        let pool = pool.build().map_err(|error| Error::system("starting the threads of a pool", std::io::Error::other(error)))?;
        crew.pool = Some(pool);
        Ok(crew)
    }

    pub(crate) fn pool(&self) -> &rayon::ThreadPool {
        self.pool.as_ref().expect("it is there until it is dropped")
    }

    /// The threads are not waited for.
    pub(crate) fn forget(&mut self) {
        self.handles.clear();
    }
}

impl Drop for Crew {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget((self.pool.take(), std::mem::take(&mut self.handles)));
            return;
        }
        let pool = self.pool.take();
        // One of the threads may be the last to let go, and others may wait for it.
        if pool.as_ref().is_some_and(|pool| pool.current_thread_index().is_some()) {
            self.forget();
        }
        drop(pool);
        self.handles.drain(..).for_each(|handle| drop(handle.join()));
    }
}
