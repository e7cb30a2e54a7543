//! Workload-conscious reorganization: the objects that lookups read most are moved together, into
//! as few pages as possible.
//!
//! Trees that ask for it have the type parameter [`Sampled`]. Others pay nothing.
//!
//! # Source
//! Stoica and Ailamaki, "Enabling efficient OS paging for main-memory OLTP databases", DaMoN 2013:
//! log accesses, rank by frequency, move hot objects together. Wong, Feng, Xu, Lo, Kao, "TLB
//! misses: the missing issue of adaptive radix tree?", DaMoN 2015, apply this to the nodes of a
//! radix tree. Both rank offline; here everything happens while readers and writers go on.
//!
//! # Algorithm
//! ```text
//! sample:     one of every N lookups of a thread notes its key in a ring  (sample.rs, notes.rs)
//! reorganize: take the notes; follow each key down, and count accesses of objects and
//!             pages                                                        (rank.rs)
//!             order objects by accesses for each byte; take from the hottest down, until the share
//!             asked for is covered, or the bytes allowed are full
//!             map a region for them; move each into it, in order (relocate.rs, regions.rs)
//!             move the objects of older regions to the pools of their kinds
//!             follow the keys once more, for the report
//! move:       lock the node that leads to the object, and the object if it is a node; copy it;
//!             change the one word; mark the old node obsolete; unlock; retire the old object
//! ```
//! The order is that of the fractional knapsack. The first page has the most accesses that one page
//! can have, the first two the most that two can have, and so on, except for objects that lie
//! across two. Objects of all kinds are mixed: a `Node256` of which lookups read one word may be
//! colder, for each byte, than a hundred leaves.
//!
//! # Departures
//! 1. Samples are keys, not nodes: an address is invalid without a guard, and a key leads to the
//!    node that is there now.
//! 2. Objects that have become cold are not looked for. A new region is made of the objects that
//!    are hot now, and all others in old regions go back to the pools. The last object that leaves
//!    a region unmaps it ([`Packed`](silvics_pool::Packed)). A walk that reads the words of all
//!    nodes, but no leaf, finds them.
//! 3. The root does not move, although its page has the most accesses: every writer keeps its
//!    address.
//!
//! # Invariants
//! Those of the [tree](super), and
//! * H1: An object's address says whether it is in a hot region, until the object is freed. This
//!   includes retired objects. `Pools::free` of `objects.rs` frees it accordingly.
//! * H2: A copy has the kind, depth and contents that the object it replaces had under the locks.
//!
//! # Memory ordering
//! That of writers that change a word (see [`super`]): to move an object is to grow it to its own
//! size.
//!
//! # Progress
//! Readers take no lock and go on: the objects that they have found stay as they are until their
//! guards are dropped. Writers wait while an object that they change is copied. Pins are short,
//! except for the walk (departure 2), which holds one for each digit of the root: one for all of it
//! if all keys begin with the same digit.
//!
//! # Costs
//! A lookup of a tree that is not [`Sampled`] costs nothing. With sampling off, a lookup of a
//! sampled tree has one branch more, on a word beside the root's address. With sampling on, a
//! thread subtracts from a variable of its own, and one lookup in 256, on average, writes some
//! words to the thread's ring: no line that other lookups write, no lock, and no allocation after
//! the thread's first note. The notes' memory stays until the tree is dropped.
//! (`examples/sampling.rs` measures it.)
//!
//! While a sampled tree has a hot region, a thread that frees an object reads eight words.
//! `reorganize` takes O(samples × depth) steps, and if there is an older region O(nodes). For its
//! counts it takes some 200 bytes for each object seen, from the global allocator and outside the
//! budget. The notes that it works on are there, too, and stay for the next attempt if it fails.
//! Regions and the notes of threads are in the budget. Objects in a region count with their kind in
//! [`pool_stats`](crate::Lookup::pool_stats), the regions with the last kind.
//!
//! # Checked by
//! `hot.rs`, `dropped_regions.rs` and, for every list without memory, `out_of_memory.rs` of
//! `crates/api-tests`; schedules in which others change moving objects (`HOT` of
//! `tests/scenarios/radix.rs`), which must find the mistakes of `canary.rs`;
//! `tests/drops_return_everything.rs`; the modules' tests.

mod background;
mod notes;
mod rank;
pub(super) mod regions;
mod relocate;
pub(super) mod sample;
pub(super) mod sampler;

pub use background::Reorganizer;
pub use sample::{MOST_BYTES, Sampling};
pub use sampler::{Sampled, Sampler, Unsampled};

use super::{Art, ArtKey, ArtTree};
use sample::Log;
use silvics_pool::{AllocError, Pages, Placement, SMALL_PAGE};
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::fmt;
use std::time::{Duration, Instant};

/// The objects to move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// The share of accesses to cover, more than 0 and at most 1.
    pub share: f64,
    /// The most bytes to move.
    pub most_bytes: usize,
    /// The least gain. The number of small pages that cover 90 % of the accesses is divided by the
    /// number that the hot region and the root would have. If the quotient is less than this,
    /// nothing is moved.
    pub least_gain: f64,
    /// The processor for which the break-even is estimated.
    pub translation: Translation,
}

impl Default for Policy {
    /// 95 % of the accesses, 16 MiB, a fifth fewer pages, and [`Translation::default`].
    fn default() -> Self {
        let translation = Translation::default();
        Self { share: 0.95, most_bytes: 16 << 20, least_gain: 1.25, translation }
    }
}

/// The address translation of a processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Translation {
    /// The number of pages whose translations it keeps.
    pub entries: usize,
    /// The cost of another translation in nanoseconds.
    pub walk_ns: f64,
}

impl Default for Translation {
    /// 1536 entries, as second-level TLBs of the last ten years have, and 10 ns, for a walk whose
    /// page-table entry is in a cache.
    fn default() -> Self {
        Self { entries: 1536, walk_ns: 10.0 }
    }
}

/// The numbers of pages that cover 50, 90 and 99 % of the accesses of sampled lookups. An access is
/// to the searched line of an object on a lookup's path, the root included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The pages of 4 KiB.
    pub small: [usize; 3],
    /// The pages of 2 MiB.
    pub huge: [usize; 3],
}

/// The report of a reorganization.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The number of sampled lookups.
    pub samples: u64,
    /// The number of objects on their paths.
    pub accesses: u64,
    /// The coverage of the accesses before the reorganization.
    pub before: Coverage,
    /// The coverage of the accesses of these lookups afterwards.
    pub after: Coverage,
    /// The number of nodes moved into the region.
    pub nodes: usize,
    /// The number of leaves moved into the region.
    pub leaves: usize,
    /// The bytes of these nodes and leaves.
    pub bytes: usize,
    /// The number of hot objects that other threads had replaced meanwhile. They stay where they
    /// are.
    pub missed: usize,
    /// The number of objects of older hot regions that went back to their pools.
    pub returned: usize,
    /// The time that the reorganization took.
    pub took: Duration,
    /// The translations saved for each lookup: those missed before less those missed after. A
    /// translation is missed by an access to a page that is not among the `entries` pages read
    /// most. The pages have the size that the tree asks for.
    pub misses_saved: f64,
    /// The number of lookups after which the time is saved: `took / (misses_saved × walk_ns)`. None
    /// if no translations are saved.
    pub break_even: Option<u64>,
}

impl Report {
    /// The report if nothing is moved.
    fn of(samples: u64, accesses: u64, before: Coverage) -> Self {
        Self {
            samples,
            accesses,
            before,
            after: before,
            nodes: 0,
            leaves: 0,
            bytes: 0,
            missed: 0,
            returned: 0,
            took: Duration::ZERO,
            misses_saved: 0.0,
            break_even: None,
        }
    }
}

/// The reason why nothing, or not everything, was reorganized. The contents of the index have not
/// changed, and the samples are kept for the next attempt.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReorganizeError {
    /// No lookup has been sampled.
    NoSamples,
    /// Another thread reorganizes the index.
    Running,
    /// The share of accesses to cover is not more than 0 and at most 1.
    Share {
        /// The share asked for.
        share: f64,
    },
    /// All older hot regions are still in use: by guards, or by threads that have replaced objects
    /// there and write no more. Such a thread holds back fewer than 64 objects, with their regions.
    Regions,
    /// Allocation failed. Objects that have been moved stay where they are now.
    Alloc(AllocError),
}

impl From<AllocError> for ReorganizeError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

impl fmt::Display for ReorganizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSamples => {
                f.write_str("no lookup has been sampled: call `sample` with a rate, and look keys up")
            }
            Self::Running => {
                f.write_str("another reorganization of the index is under way: wait for it")
            }
            Self::Share { share } => write!(
                f,
                "{share} is not a share of accesses to cover: use more than 0 and at most 1"
            ),
            Self::Regions => f.write_str(
                "eight hot regions are in use: drop guards that have been held for long, and try again",
            ),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ReorganizeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Alloc(error) => Some(error),
            _ => None,
        }
    }
}

/// The right to reorganize a tree, which one thread has at a time.
struct Only<'t>(&'t AtomicBool);

impl<'t> Only<'t> {
    fn new(running: &'t AtomicBool) -> Option<Self> {
        (!running.swap(true, Ordering::Acquire)).then(|| Self(running))
    }
}

impl Drop for Only<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P, Sampled> {
    /// Begins to sample lookups (`get` and `get_many`) for [`reorganize`](Self::reorganize), or
    /// stops it. Earlier notes stay.
    pub fn sample(&self, sampling: Option<Sampling>) {
        self.0.samples.set(sampling);
    }

    /// Moves the objects that sampled lookups read most together, and takes the samples: see the
    /// [module](self).
    ///
    /// Readers and writers may go on meanwhile.
    ///
    /// ```
    /// use silvics::art::hot::{Policy, ReorganizeError, Sampled, Sampling};
    /// use silvics::{ArtTree, Options, OrderedIndex, Pooled};
    /// use std::num::NonZeroU32;
    ///
    /// let tree: ArtTree<u64, Pooled, Sampled> = ArtTree::with_options(&Options::default())?;
    /// let scattered = |n: u64| n.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    /// for n in 0..100_000 {
    ///     tree.pin().insert(scattered(n), n)?;
    /// }
    /// assert_eq!(tree.reorganize(Policy::default()), Err(ReorganizeError::NoSamples));
    /// tree.sample(Some(Sampling { every: NonZeroU32::MIN, ..Sampling::default() }));
    /// for n in 0..10_000 {
    ///     tree.pin().get(scattered(997 * (n % 100))); // a hundred are hot
    /// }
    /// let report = tree.reorganize(Policy::default())?;
    /// assert!(report.after.small[1] < report.before.small[1]); // pages of 90 % of the reads
    /// assert_eq!(tree.pin().get(scattered(7)), Some(7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reorganize(&self, policy: Policy) -> Result<Report, ReorganizeError> {
        self.0.reorganize(policy)
    }
}

impl<K: ArtKey + ?Sized, P: Placement> Art<K, P, Sampled> {
    fn reorganize(&self, policy: Policy) -> Result<Report, ReorganizeError> {
        let Policy { share, .. } = policy;
        if !(share > 0.0 && share <= 1.0) {
            return Err(ReorganizeError::Share { share });
        }
        let _only = Only::new(&self.samples.reorganizes).ok_or(ReorganizeError::Running)?;
        let log = self.samples.take()?;
        let done = self.reorganize_by(&log, &policy);
        if done.is_err() {
            self.samples.give_back(log);
        }
        done
    }

    fn reorganize_by(&self, log: &Log, policy: &Policy) -> Result<Report, ReorganizeError> {
        let began = Instant::now();
        let census = self.survey(log)?;
        if census.lookups == 0 {
            return Err(ReorganizeError::NoSamples);
        }
        let small = self.alloc.regions()?.packed().pages() == Pages::Small;
        let missed = census.missed(&policy.translation, small)?;
        let mut report = Report::of(census.lookups, census.accesses, census.coverage()?);
        let (mut hottest, bytes) = census.hottest(policy.share, policy.most_bytes)?;
        let pages = 1 + bytes.div_ceil(SMALL_PAGE);
        let gains = report.before.small[1] as f64 >= policy.least_gain * pages as f64;
        if !hottest.is_empty() && gains {
            let (mut packer, made_room) = self.region(bytes, &mut report)?;
            if made_room {
                (hottest, _) = self.survey(log)?.hottest(policy.share, policy.most_bytes)?;
            }
            self.pack(&hottest, &mut packer, &mut report)?;
            let census = self.survey(log)?;
            report.after = census.coverage()?;
            report.misses_saved = missed - census.missed(&policy.translation, small)?;
        }
        report.took = began.elapsed();
        let saved_ns = report.misses_saved * policy.translation.walk_ns;
        report.break_even =
            (saved_ns > 0.0).then(|| (report.took.as_nanos() as f64 / saved_ns).ceil() as u64);
        Ok(report)
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    /// A refused thread does not let another one in.
    #[test]
    fn one_thread_reorganizes() {
        let running = AtomicBool::new(false);
        let first = Only::new(&running);
        assert!(first.is_some());
        for _ in 0..2 {
            assert!(Only::new(&running).is_none());
        }
        drop(first);
        assert!(Only::new(&running).is_some());
    }
}
