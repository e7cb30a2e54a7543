//! A skip list whose scans each make one mistake with the references and pins they hold. The
//! property named beside a mistake finds it.

use crate::faulty::Faulty;
use silvics::index::Cursor;
use silvics::{
    AllocError, Batches, Check, Create, Domain, Guard, KeyRef, Lookup, Options, OrderedIndex,
    OrderedScan, PoolStats, SkipList, Update, Violation,
};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeBounds;
use std::sync::Arc;

slips! {
    /// A range that is dropped before its end keeps a reference to the entry it would have returned
    /// next. Found by `reclaim::unfinished_scans` and `memory::live_objects_after_scans`.
    LeakyRange,
    /// A descending range that is dropped before its end keeps a reference to the entry it returned
    /// last. Found by `reclaim::unfinished_scans` and `memory::live_objects_after_scans`.
    LeakyRangeRev,
    /// A range that is dropped before its end leaves a pin behind. Found by
    /// `reclaim::scans_under_churn`, `reclaim::unfinished_scans` and
    /// `memory::live_objects_after_scans`.
    PinnedRange,
    /// A range that is dropped by unwinding leaves a pin behind. Found by
    /// `faults::user_panics_in_scans`.
    PinnedByUnwinding,
    /// A cursor stays pinned between its moves. Found by `reclaim::parked_cursors`.
    PinningCursor,
    /// A cursor keeps every entry at which it has stood. Found by `reclaim::parked_cursors`.
    ChainedCursor,
    /// A dropped cursor keeps its entry. Found by `reclaim::unfinished_scans` and
    /// `memory::live_objects_after_scans`.
    ForgottenCursor,
    /// A removal leaves a pin behind. Found by `reclaim::garbage_under_a_held_pin`.
    PinnedRemove,
    /// One removal in a hundred forgets a reference that the node's tower holds. Found by
    /// `memory::live_objects_are_reachable`.
    LostReference,
}

type List = SkipList<u64, Faulty>;

/// A skip list with mistake `S`.
pub struct SlippingList<S: Slip> {
    list: Arc<List>,
    removals: AtomicUsize,
    slip: PhantomData<S>,
}

impl<S: Slip> fmt::Debug for SlippingList<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlippingList({:?})", S::KIND)
    }
}

/// Leaks a reference to the first entry from `key` on.
fn leak_reference(list: &Arc<List>, key: u64) {
    let mut cursor = list.cursor();
    cursor.seek(key);
    forget(list, cursor);
}

/// Forgets the reference that `cursor` holds to its entry, but not the one to `list`.
fn forget(list: &Arc<List>, cursor: <List as OrderedScan>::Cursor) {
    std::mem::forget(cursor);
    // SAFETY: the count was that of the cursor, which nobody will use.
    unsafe { Arc::decrement_strong_count(Arc::as_ptr(list)) };
}

impl<S: Slip> SlippingList<S> {
    /// Returns the list, which no cursor may share.
    fn exclusive(&mut self) -> Result<&mut List, Violation> {
        let shared = || Violation { invariant: "exclusive", detail: "a cursor is left".into() };
        Arc::get_mut(&mut self.list).ok_or_else(shared)
    }
}

impl<S: Slip> Create for SlippingList<S> {
    fn with_options(options: &Options) -> Result<Self, AllocError> {
        let list = Arc::new(List::with_options(options)?);
        Ok(Self { list, removals: AtomicUsize::new(0), slip: PhantomData })
    }
}

impl<S: Slip> Lookup for SlippingList<S> {
    type Key = u64;
    fn domain(&self) -> &Domain {
        self.list.domain()
    }
    fn get(&self, key: u64, guard: &Guard) -> Option<u64> {
        self.list.get(key, guard)
    }
    fn len(&self) -> usize {
        self.list.len()
    }
    fn bytes(&self) -> usize {
        self.list.bytes()
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        self.list.pool_stats()
    }
}

impl<S: Slip> OrderedIndex for SlippingList<S> {
    fn update(&self, key: u64, verb: Update, guard: &Guard) -> Result<Option<u64>, AllocError> {
        if verb == Update::Remove && S::KIND == Kind::PinnedRemove {
            std::mem::forget(self.domain().pin());
        }
        if verb == Update::Remove
            && S::KIND == Kind::LostReference
            && self.list.get(key, guard).is_some()
            && self.removals.fetch_add(1, Ordering::Relaxed) % 100 == 99
        {
            leak_reference(&self.list, key);
        }
        self.list.update(key, verb, guard)
    }

    fn shrink(&self) -> usize {
        self.list.shrink()
    }
}

impl<S: Slip> Batches for SlippingList<S> {}

impl<S: Slip> Check for SlippingList<S> {
    fn check(&mut self) -> Result<usize, Violation> {
        self.exclusive()?.check()
    }
    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        self.exclusive()?.reachable()
    }
    fn settle(&mut self) {
        if let Ok(list) = self.exclusive() {
            list.settle();
        }
    }
}

/// A range of [`SlippingList`], in either direction.
pub struct SlippingRange<'g, S: Slip> {
    inner: Box<dyn Iterator<Item = (u64, u64)> + 'g>,
    list: &'g Arc<List>,
    descending: bool,
    last: u64,
    ended: bool,
    slip: PhantomData<S>,
}

impl<S: Slip> fmt::Debug for SlippingRange<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlippingRange({:?})", S::KIND)
    }
}

impl<S: Slip> Iterator for SlippingRange<'_, S> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let entry = self.inner.next();
        self.ended = entry.is_none();
        self.last = entry.map_or(self.last, |(key, _)| key);
        entry
    }
}

impl<S: Slip> Drop for SlippingRange<'_, S> {
    fn drop(&mut self) {
        match S::KIND {
            Kind::LeakyRange if !self.ended && !self.descending => {
                leak_reference(self.list, self.last);
            }
            Kind::LeakyRangeRev if !self.ended && self.descending => {
                leak_reference(self.list, self.last);
            }
            Kind::PinnedRange if !self.ended => std::mem::forget(self.list.domain().pin()),
            Kind::PinnedByUnwinding if std::thread::panicking() => {
                std::mem::forget(self.list.domain().pin());
            }
            _ => {}
        }
    }
}

impl<S: Slip> OrderedScan for SlippingList<S> {
    type Range<'g> = SlippingRange<'g, S>;
    type RangeRev<'g> = SlippingRange<'g, S>;
    type Cursor = SlippingCursor<S>;

    fn range<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Self::Range<'g> {
        let inner = Box::new(self.list.range(range, guard));
        let list = &self.list;
        SlippingRange { inner, list, descending: false, last: 0, ended: false, slip: PhantomData }
    }
    fn range_rev<'g, R: RangeBounds<KeyRef<'g, Self>>>(
        &'g self,
        range: R,
        guard: &'g Guard,
    ) -> Self::RangeRev<'g> {
        let inner = Box::new(self.list.range_rev(range, guard));
        let list = &self.list;
        SlippingRange { inner, list, descending: true, last: 0, ended: false, slip: PhantomData }
    }
    fn cursor(self: &Arc<Self>) -> SlippingCursor<S> {
        SlippingCursor {
            index: Arc::clone(self),
            inner: Some(self.list.cursor()),
            past: Vec::new(),
            pin: Pin(None),
        }
    }
}

/// A pin that moves between threads, which no pin may do.
struct Pin(Option<Guard>);

// SAFETY: this violates the contract of guards; the properties that use it move no cursor.
unsafe impl Send for Pin {}

/// A cursor of [`SlippingList`].
pub struct SlippingCursor<S: Slip> {
    index: Arc<SlippingList<S>>,
    inner: Option<<List as OrderedScan>::Cursor>,
    /// Cursors at entries at which this one has stood.
    past: Vec<<List as OrderedScan>::Cursor>,
    pin: Pin,
}

impl<S: Slip> fmt::Debug for SlippingCursor<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SlippingCursor({:?}, {} pasts)", S::KIND, self.past.len())
    }
}

impl<S: Slip> SlippingCursor<S> {
    fn go(&mut self, to: impl FnOnce(&mut <List as OrderedScan>::Cursor) -> bool) -> bool {
        if S::KIND == Kind::ChainedCursor
            && let Some(key) = self.key()
        {
            let mut past = self.index.list.cursor();
            past.seek(key);
            self.past.push(past);
        }
        if S::KIND == Kind::PinningCursor {
            self.pin.0 = Some(self.index.domain().pin());
        }
        self.inner.as_mut().is_some_and(to)
    }
}

impl<S: Slip> Drop for SlippingCursor<S> {
    fn drop(&mut self) {
        if S::KIND == Kind::ForgottenCursor {
            self.inner.take().into_iter().for_each(|cursor| forget(&self.index.list, cursor));
        }
    }
}

impl<S: Slip> Cursor for SlippingCursor<S> {
    type Key = u64;

    fn seek(&mut self, key: u64) -> bool {
        self.go(|cursor| cursor.seek(key))
    }
    fn seek_for_prev(&mut self, key: u64) -> bool {
        self.go(|cursor| cursor.seek_for_prev(key))
    }
    fn next(&mut self) -> bool {
        self.go(Cursor::next)
    }
    fn prev(&mut self) -> bool {
        self.go(Cursor::prev)
    }
    fn key(&self) -> Option<u64> {
        self.inner.as_ref().and_then(Cursor::key)
    }
    fn value(&self) -> Option<u64> {
        self.inner.as_ref().and_then(Cursor::value)
    }
}
