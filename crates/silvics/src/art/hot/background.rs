//! Reorganization from time to time.

use super::super::ArtKey;
use super::super::ArtTree;
use super::{Policy, ReorganizeError, Report};
use silvics_pool::Placement;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A thread that reorganizes a tree from time to time. Dropping it ends the thread and waits for it.
pub struct Reorganizer {
    /// Dropped first: the thread waits for that.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    last: Arc<Mutex<Option<Result<Report, ReorganizeError>>>>,
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// Starts a thread that calls [`reorganize`](Self::reorganize) after each period; a period without samples passes.
    /// [`sample`](Self::sample) is left to the caller. The thread keeps the index alive.
    ///
    /// ```
    /// use silvics::art::hot::{Policy, Sampling};
    /// use silvics::{ArtTree, Options, OrderedIndex};
    /// use std::{sync::Arc, time::Duration};
    ///
    /// let tree: Arc<ArtTree> = Arc::new(ArtTree::with_options(&Options::default())?);
    /// tree.sample(Some(Sampling::default()));
    /// let reorganizer = tree.reorganize_every(Duration::from_secs(60), Policy::default())?;
    /// assert_eq!(reorganizer.last(), None); // not yet
    /// drop(reorganizer);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reorganize_every(
        self: &Arc<Self>,
        period: Duration,
        policy: Policy,
    ) -> io::Result<Reorganizer> {
        let (stop, stopped) = channel::<()>();
        let last = Arc::new(Mutex::new(None));
        let (tree, reports) = (Arc::clone(self), Arc::clone(&last));
        let work = move || {
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(period) {
                let outcome = tree.reorganize(policy);
                if outcome != Err(ReorganizeError::NoSamples) {
                    *reports.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
                }
            }
        };
        let thread = Builder::new().name("silvics-reorganize".into()).spawn(work)?;
        Ok(Reorganizer { stop: Some(stop), thread: Some(thread), last })
    }
}

impl Reorganizer {
    /// What came of the last period that had samples.
    pub fn last(&self) -> Option<Result<Report, ReorganizeError>> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reorganizer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // A panic there has been printed, and is not to be one in a drop.
            let _ = thread.join();
        }
    }
}
