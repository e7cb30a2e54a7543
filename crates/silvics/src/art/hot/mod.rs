//! Workload-conscious reorganization: what lookups read most is moved together, into as few pages as it can be in.
//!
//! # Source
//! Stoica and Ailamaki, "Enabling efficient OS paging for main-memory OLTP databases", DaMoN 2013: log accesses,
//! rank by frequency, move what is hot together; applied to the nodes of a radix tree by Wong, Feng, Xu, Lo, Kao,
//! "TLB misses: the missing issue of adaptive radix tree?", DaMoN 2015. Both rank offline; here everything happens while
//! readers and writers go on.
//!
//! # Algorithm
//! ```text
//! sample:     of every N lookups of a thread one notes its key in the thread's own memory       (sample.rs)
//! reorganize: take the notes; follow each key down, and count accesses of objects and pages      (rank.rs)
//!             order objects by accesses for each byte; take from the hottest down, until the share asked for is
//!             covered, or the bytes allowed are full
//!             map a region for them; move each into it, in this order                            (here)
//!             move what is left in older regions to the pools of their kinds
//!             follow the keys once more, for the report
//! move:       lock the node that leads to the object, and the object if it is a node; copy it; change the one word;
//!             mark the old node obsolete; unlock; retire the old object
//! ```
//! The order is that of the fractional knapsack: the first page has the accesses that a page can have, at most,
//! the first two what two can have, and so on, but for objects that lie across two. Objects of all kinds are mixed:
//! a `Node256` of which lookups read one word may be colder, for each byte, than a hundred leaves.
//!
//! # Departures
//! 1. Samples are keys, not nodes: an address is nothing without a guard, and a key finds the node that is there now.
//! 2. What has become cold is not looked for: a new region is made of what is hot now, and all else in old ones goes back to
//!    the pools; the last object that goes takes the region with it ([`Packed`](silvics_pool::Packed)). Finding it
//!    takes a walk that reads the words of all nodes, but of leaves nothing.
//! 3. The root stays: that no page holds more accesses is no reason to move the one object that every writer knows.
//!
//! # Invariants
//! Those of the [tree](super), and
//! * H1: an object's address says whether it is in a hot region, as long as it is not freed; so does the address of
//!   one that is retired. `home.rs` frees it accordingly.
//! * H2: a copy is of the same kind and depth, and has the same contents, as what it replaces had under the locks.
//!
//! # Memory ordering
//! That of writers that change a word (see [`super`]); moving an object is growing it to its own size.
//!
//! # Progress
//! Readers go on: they take no lock, and what they have found stays as it is until their guard goes. Writers wait
//! while an object that they change is copied. Pins are short, but for the walk (departure 2), which holds one for
//! each digit of the root.
//!
//! # Costs
//! With sampling off a lookup has one branch more, on a word beside the root's address. On, a thread counts in a variable of
//! its own, and of every 64 lookups one writes some bytes to the thread's own cell: no line that other threads write, no
//! lock it could wait for, and no allocation after the thread's first note.
//! `reorganize` takes O(samples × depth) steps, and if there is an older region O(nodes); for its counts some 200 bytes
//! for each object seen, from the global allocator, outside the budget. The region is in the budget.
//! Objects in a region count with their kind in [`pool_stats`](crate::OrderedIndex::pool_stats), the regions with the last kind's.
//!
//! # Checked by
//! `tests/hot.rs`, `tests/dropped_regions.rs`, `tests/drops_return_everything.rs`; the modules' tests.

mod background;
mod rank;
pub(super) mod sample;

pub use background::Reorganizer;
pub use sample::{MOST_BYTES, Sampling};

use super::ArtTree;
use super::key::{ArtKey, Digit};
use super::node::NodeRef;
use super::seek::Visit;
use super::word::{Kind, Word};
use crate::domain::Guard;
use rank::{PINNED, Seen};
use silvics_pool::{AllocError, Packer, Pages, Placement};
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::fmt;
use std::time::{Duration, Instant};

/// What to move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    /// The share of accesses to cover, more than 0 and at most 1.
    pub share: f64,
    /// The most bytes to move.
    pub most_bytes: usize,
    /// Nothing is moved unless the small pages that cover 90 % of the accesses are at least so many times those that the
    /// hot region would have, and the root's.
    pub least_gain: f64,
    /// What the break-even estimate is made of.
    pub translation: Translation,
}

impl Default for Policy {
    /// 95 % of the accesses, 16 MiB, a quarter fewer pages, and translations as [`Translation::default`] has them.
    fn default() -> Self {
        let translation = Translation::default();
        Self { share: 0.95, most_bytes: 16 << 20, least_gain: 1.25, translation }
    }
}

/// A processor's translations of addresses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Translation {
    /// Pages whose translations it keeps.
    pub entries: usize,
    /// What another one costs, in nanoseconds.
    pub walk_ns: f64,
}

impl Default for Translation {
    /// 1536 entries, as second-level TLBs of the last ten years have, and 10 ns: a walk whose page-table entry is in a
    /// cache.
    fn default() -> Self {
        Self { entries: 1536, walk_ns: 10.0 }
    }
}

/// Pages that cover 50, 90 and 99 % of the accesses of sampled lookups: of each object on a lookup's path, the root
/// included, the line that is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Of 4 KiB.
    pub small: [usize; 3],
    /// Of 2 MiB.
    pub huge: [usize; 3],
}

/// What a reorganization did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Report {
    /// The lookups it went by.
    pub samples: u64,
    /// Their accesses: objects on their paths.
    pub accesses: u64,
    /// Where the accesses were …
    pub before: Coverage,
    /// … and where those of the same lookups are now.
    pub after: Coverage,
    /// Nodes moved together.
    pub nodes: usize,
    /// Leaves moved together.
    pub leaves: usize,
    /// The bytes of both.
    pub bytes: usize,
    /// Hot objects that others had replaced meanwhile: they stay where they are.
    pub missed: usize,
    /// Objects of older hot regions that went back to their pools.
    pub returned: usize,
    /// The time all that took.
    pub took: Duration,
    /// Translations missed for each lookup, before less after: accesses to other pages than the `entries` that are
    /// read most, over lookups. Pages are those that the tree asks for.
    pub misses_saved: f64,
    /// Lookups after which the time is saved: `took / (misses_saved × walk_ns)`. None, if none are.
    pub break_even: Option<u64>,
}

/// Why nothing, or not everything, was reorganized. The contents of the index are what they were.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReorganizeError {
    /// No lookup has been sampled.
    NoSamples,
    /// Somebody else reorganizes the index.
    Running,
    /// The share of accesses to cover is none.
    Share {
        /// What was asked for.
        share: f64,
    },
    /// Older hot regions are all still in use.
    Regions,
    /// Memory could not be had. What has been moved stays where it is now.
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
                "{share} is no share of accesses to cover: use more than 0 and at most 1"
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

/// The only reorganization of a tree.
struct Only<'t>(&'t AtomicBool);

impl<'t> Only<'t> {
    fn new(running: &'t AtomicBool) -> Option<Self> {
        (!running.swap(true, Ordering::Acquire)).then_some(Self(running))
    }
}

impl Drop for Only<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// Begins to sample lookups (`get` and `get_many`), for [`reorganize`](Self::reorganize), or stops it.
    /// Notes that there are stay.
    pub fn sample(&self, sampling: Option<Sampling>) {
        self.samples.set(sampling);
    }

    /// Moves together what sampled lookups read most, and takes the samples: see the [module](self).
    ///
    /// Readers and writers may go on meanwhile.
    ///
    /// ```
    /// use silvics::art::hot::{Policy, ReorganizeError, Sampling};
    /// use silvics::{ArtTree, Options, OrderedIndex};
    /// use std::num::NonZeroU32;
    ///
    /// let tree: ArtTree = ArtTree::with_options(&Options::default())?;
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
    /// assert!(report.after.small[1] < report.before.small[1]); // pages that have 90 % of what was read
    /// assert_eq!(tree.pin().get(scattered(7)), Some(7));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn reorganize(&self, policy: Policy) -> Result<Report, ReorganizeError> {
        let Policy { share, most_bytes, least_gain, translation } = policy;
        if !(share > 0.0 && share <= 1.0) {
            return Err(ReorganizeError::Share { share });
        }
        let _only = Only::new(&self.reorganizes).ok_or(ReorganizeError::Running)?;
        let began = Instant::now();
        let log = self.samples.take();
        let census = self.survey(&log);
        if census.lookups == 0 {
            return Err(ReorganizeError::NoSamples);
        }
        let small = self.pages() == Pages::Small;
        let (before, missed) = (census.coverage(), census.missed(&translation, small));
        let mut report = Report {
            samples: census.lookups,
            accesses: census.accesses,
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
        };
        let (hottest, bytes) = census.hottest(share, most_bytes);
        let pages = 1 + bytes.div_ceil(4096);
        if !hottest.is_empty() && before.small[1] as f64 >= least_gain * pages as f64 {
            self.pack(&hottest, bytes, &mut report)?;
            let census = self.survey(&log);
            report.after = census.coverage();
            report.misses_saved = missed - census.missed(&translation, small);
        }
        report.took = began.elapsed();
        let saved_ns = report.misses_saved * translation.walk_ns;
        report.break_even =
            (saved_ns > 0.0).then(|| (report.took.as_nanos() as f64 / saved_ns).ceil() as u64);
        Ok(report)
    }

    /// The pages that most of the tree is on, or would be.
    fn pages(&self) -> Pages {
        self.home.stats().first().map_or(Pages::Small, |stats| stats.pages)
    }

    /// Moves these into a new region, and what others have to pools.
    fn pack(
        &self,
        hottest: &[Seen<'_, K>],
        bytes: usize,
        report: &mut Report,
    ) -> Result<(), ReorganizeError> {
        let hot = self.home.hot();
        let mut packer = hot.region(bytes)?.ok_or(ReorganizeError::Regions)?;
        let mut guard = self.domain.pin();
        for (at, seen) in hottest.iter().enumerate() {
            if at % PINNED == PINNED - 1 {
                guard.repin();
            }
            if !self.relocate(seen, &mut packer, &guard)? {
                report.missed += 1;
                continue;
            }
            report.bytes += seen.bytes;
            match seen.word.kind() {
                Kind::Leaf => report.leaves += 1,
                _ => report.nodes += 1,
            }
        }
        drop(guard);
        if hot.regions().len() > 1 {
            report.returned = self.evacuate(packer.number())?;
        }
        Ok(())
    }

    /// Moves an object to a region, if it is where it was; whether it has.
    fn relocate(
        &self,
        seen: &Seen<'_, K>,
        packer: &mut Packer<'_>,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let mut found = None;
        self.path(seen.key, guard, |above, digit, word| {
            if word == seen.word {
                found = Some((above, digit));
            }
        });
        let Some((above, digit)) = found else { return Ok(false) };
        self.moved(above, digit, seen.word, guard, |this| Ok(this.home.packed(seen.word, packer)))
    }

    /// Puts the copy that `make` makes in an object's place, if it is still there; whether it has.
    fn moved(
        &self,
        above: Visit<'_>,
        digit: Digit,
        word: Word,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<bool, AllocError> {
        if word.kind() == Kind::Leaf {
            return self.replaced_leaf(above, digit, word, guard, make);
        }
        // SAFETY: read under the guard.
        let at = unsafe { Visit::of(word) };
        self.replaced_at(above, digit, at, guard, make)
    }

    /// Moves what is in hot regions other than this one to the pools; how many objects. Some may stay that others
    /// are writing: then the next time.
    fn evacuate(&self, kept: usize) -> Result<usize, AllocError> {
        let (mut returned, mut guard) = (0, self.domain.pin());
        let NodeRef::Words(root) = self.root().node else { unreachable!("a node of words") };
        for number in 0..super::node::NUMBERS {
            guard.repin();
            let digit = number.checked_sub(1).map(|byte| byte as u8);
            let word = root.at(digit);
            let mut open = vec![(self.root(), digit, word)];
            while let Some((above, digit, word)) = open.pop() {
                if word.is_none() {
                    continue;
                }
                let region = self.home.hot().find(word.address());
                if region.is_some_and(|region| region != kept) {
                    let make = |this: &Self| this.home.pooled(word, &guard).map(Some);
                    returned += usize::from(self.moved(above, digit, word, &guard, make)?);
                }
                let NodeRef::Words(node) = above.node else { continue };
                let word = node.at(digit); // the copy
                if !word.is_none() && word.kind() != Kind::Leaf {
                    // SAFETY: read under the guard.
                    let child = unsafe { Visit::of(word) };
                    if let NodeRef::Words(below) = child.node {
                        open.extend(below.all().map(|(digit, word)| (child, digit, word)));
                    }
                }
            }
        }
        Ok(returned)
    }
}
