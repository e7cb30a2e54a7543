//! Reorganization in the background.

use super::super::{ArtKey, ArtTree};
use super::sampler::Sampled;
use super::{Policy, ReorganizeError, Report};
use silvics_pool::Placement;
use std::io;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// A thread that reorganizes a tree after each period. Dropping it ends the thread and waits for
/// it.
pub struct Reorganizer {
    /// The thread ends when this is dropped.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
    last: Arc<Mutex<Option<Result<Report, ReorganizeError>>>>,
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P, Sampled> {
    /// Starts a thread that calls [`reorganize`](Self::reorganize) after each period. A period
    /// without samples is skipped. The caller switches sampling on with [`sample`](Self::sample).
    /// The thread keeps the index alive.
    ///
    /// ```
    /// use silvics::art::hot::{Policy, Sampled, Sampling};
    /// use silvics::{ArtTree, Options, OrderedIndex, Pooled};
    /// use std::{sync::Arc, time::Duration};
    ///
    /// let tree: ArtTree<u64, Pooled, Sampled> = ArtTree::with_options(&Options::default())?;
    /// let tree = Arc::new(tree);
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
    /// The outcome of the last period that had samples.
    pub fn last(&self) -> Option<Result<Report, ReorganizeError>> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Reorganizer {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // The panic hook has reported a panic of the thread. It must not unwind from a drop.
            let _ = thread.join();
        }
    }
}
