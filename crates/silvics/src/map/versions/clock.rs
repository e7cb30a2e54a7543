//! The numbers of versions: who draws them, which of them readers can see, and which of them
//! snapshots need.
//!
//! # Algorithm
//! [`Time::now`] is the number at which new snapshots read. A version becomes final after it is in
//! its chain, by one exchange of its stamp:
//! ```text
//! settle(version), Drawn:  now := now + 1; exchange the stamp, from tentative to final with `now`
//! settle(version), Given:  exchange the stamp, from tentative to final if its number is above
//!                          `now`, else to aborted
//! ```
//! Each reader that finds a tentative version settles it. So a reader at `s` finds each version in
//! the same state as all others at `s`: if it was final with a number up to `s`, `now` had that
//! number before the version became final, and the version was in its chain before that.
//!
//! # Invariants
//! * S1: A version that is final with the number `n` was in its chain before `now` reached `n`. So
//!   every reader at `s >= n` that chose `s` from `now` finds it, or a newer one up to `s`.
//! * S2: `oldest` is at most the number of each snapshot, from before the snapshot chose its number
//!   until it ends. So a pruner that reads the horizon, and then `oldest`, knows each snapshot
//!   below the horizon: one that it misses announced itself later, and chose its number later.
//! * S3: The numbers of a chain descend, aborted and tentative versions left out.
//!
//! # Memory ordering
//! All words here are `SeqCst`: S2 orders stores before loads of other words. S1 orders the link to
//! a version before the number of a reader. If numbers are drawn, the exchange of `now` does so. If
//! they are given, two `SeqCst` fences do: one between the link and the load of `now` by which a
//! version becomes final, and one between a reader's load of `now` and its first link.

use crate::canary::{Canary, planted};
use crate::error::{AllocError, reserved};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicU64, Ordering::SeqCst, fence};

/// The largest number of a version.
pub const MAX_VERSION: u64 = (1 << 62) - 1;

mod private {
    pub trait Sealed {}
    impl Sealed for super::Given {}
    impl Sealed for super::Drawn {}
}

/// The source of the numbers of a [`VersionedMap`](super::VersionedMap)'s versions: [`Drawn`] or
/// [`Given`]. The trait is sealed.
pub trait Clock: private::Sealed + Send + Sync + 'static {
    #[doc(hidden)]
    const IS_DRAWN: bool;
}

/// The map numbers versions: each write, or each batch of writes, draws the next number when it
/// takes effect. Numbers begin with 1.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drawn;

/// The caller numbers versions, and publishes a watermark. Versions above the watermark may arrive
/// in any order. Snapshots read at the watermark.
#[derive(Clone, Copy, Debug, Default)]
pub struct Given;

impl Clock for Drawn {
    const IS_DRAWN: bool = true;
}
impl Clock for Given {
    const IS_DRAWN: bool = false;
}

/// The versions that a map keeps, beside the newest one of each key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Retain {
    /// Those that a live snapshot can see. Writers drop the others.
    #[default]
    Snapshots,
    /// All versions, until [`VersionedMap::prune`](super::VersionedMap::prune) drops them.
    All,
}

/// The number at which new readers read, in a line of its own: each write of a map that draws
/// numbers changes it.
#[repr(align(128))]
struct Now(AtomicU64);

/// See the [module](self).
pub(super) struct Time {
    now: Now,
    /// With [`Retain::All`], the least number at which a reader without a snapshot can read.
    horizon: AtomicU64,
    /// The least number of a snapshot, or less (S2).
    oldest: AtomicU64,
    /// The numbers of the snapshots in ascending order, each with the number of its snapshots.
    snapshots: Mutex<Vec<(u64, usize)>>,
    retain: Retain,
}

impl Time {
    pub(super) fn new(retain: Retain) -> Self {
        Self {
            now: Now(AtomicU64::new(0)),
            horizon: AtomicU64::new(0),
            oldest: AtomicU64::new(u64::MAX),
            snapshots: Mutex::default(),
            retain,
        }
    }

    #[inline(always)]
    pub(super) fn now(&self) -> u64 {
        self.now.0.load(SeqCst)
    }

    /// The number at which a reader reads from now on. It sees each version that was final with a
    /// number up to it.
    pub(super) fn read_now<C: Clock>(&self) -> u64 {
        let now = self.now();
        if !C::IS_DRAWN {
            fence(SeqCst); // pairs with that of `is_above`
        }
        now
    }

    /// Whether a version in its chain has a number above all readers.
    pub(super) fn is_above(&self, number: u64) -> bool {
        // Either a reader at the number sees the link that led here, or this sees its number.
        fence(SeqCst);
        number > self.now()
    }

    /// Draws the next number.
    #[inline(always)]
    pub(super) fn draw(&self) -> u64 {
        self.now.0.fetch_add(1, SeqCst) + 1
    }

    /// Sets the watermark. Returns the present one if that is higher.
    pub(super) fn publish(&self, number: u64) -> Result<(), u64> {
        let before = self.now.0.fetch_max(number, SeqCst);
        if before > number { Err(before) } else { Ok(()) }
    }

    /// Whether writers drop versions that no snapshot can see.
    pub(super) fn prunes(&self) -> bool {
        self.retain == Retain::Snapshots
    }

    /// The least number at which a reader without a snapshot can read.
    pub(super) fn horizon(&self) -> u64 {
        if self.prunes() { self.now() } else { self.horizon.load(SeqCst) }
    }

    /// Raises the horizon.
    pub(super) fn raise_horizon(&self, number: u64) {
        self.horizon.fetch_max(number, SeqCst);
    }

    /// Whether a snapshot below a horizon may be live (S2).
    #[inline(always)]
    pub(super) fn has_snapshot_below(&self, horizon: u64) -> bool {
        self.oldest.load(SeqCst) < horizon && !planted(Canary::SnapshotNotSeen)
    }

    /// Adds the numbers of the live snapshots below a horizon to `numbers`, in ascending order.
    pub(super) fn snapshots_below(
        &self,
        horizon: u64,
        numbers: &mut Vec<u64>,
    ) -> Result<(), AllocError> {
        let list = self.snapshots.lock();
        let below = &list[..list.partition_point(|(number, _)| *number < horizon)];
        reserved(numbers, below.len())?.extend(below.iter().map(|(number, _)| *number));
        Ok(())
    }

    /// The number of live snapshots.
    pub(super) fn snapshot_count(&self) -> usize {
        self.snapshots.lock().iter().map(|(_, count)| count).sum()
    }

    /// Begins a snapshot at `number`, or now. Returns its number, or the horizon if the number is
    /// below it.
    pub(super) fn begin<C: Clock>(
        &self,
        number: Option<u64>,
    ) -> Result<Result<u64, u64>, AllocError> {
        let mut list = self.snapshots.lock();
        reserved(&mut *list, 1)?;
        let before = self.oldest.load(SeqCst);
        if !planted(Canary::AnnouncedLate) {
            self.oldest.store(before.min(number.unwrap_or_else(|| self.now())), SeqCst); // S2
        }
        let horizon = self.horizon();
        let now = self.read_now::<C>();
        let at = number.unwrap_or(now);
        if number.is_some_and(|number| number < horizon) {
            // A snapshot that lives at this very number keeps what the new one needs.
            if list.binary_search_by_key(&at, |(number, _)| *number).is_err() {
                self.oldest.store(before, SeqCst);
                return Ok(Err(horizon));
            }
        }
        match list.binary_search_by_key(&at, |(number, _)| *number) {
            Ok(found) => list[found].1 += 1,
            Err(place) => list.insert(place, (at, 1)),
        }
        self.oldest.store(list[0].0, SeqCst);
        Ok(Ok(at))
    }

    /// Ends a snapshot.
    pub(super) fn end(&self, number: u64) {
        let mut list = self.snapshots.lock();
        let Ok(found) = list.binary_search_by_key(&number, |(number, _)| *number) else {
            unreachable!("the snapshot has begun");
        };
        list[found].1 -= 1;
        if list[found].1 == 0 {
            list.remove(found);
        }
        self.oldest.store(list.first().map_or(u64::MAX, |(number, _)| *number), SeqCst);
    }
}
