//! The skip list whose nodes lead to their entries, as an index: the memtable before D51123, to
//! compare with.

use silvics::{AllocError, Guard};
use silvics_memtable::index::{Setup, SetupError, Start};
use silvics_memtable::skiplist::{ByBytes, PointerSkipList, Position};
use silvics_memtable::{ByteOrder, Draft, Entry, Index, InternalKey};
use silvics_pool::ConcurrentArena;
use std::sync::Arc;

/// A [`PointerSkipList`] in the bytewise order.
#[derive(Debug)]
pub struct PointerIndex(PointerSkipList<ByBytes, Arc<ConcurrentArena>>);

// SAFETY: the list returns entries that were inserted, and `allocate` takes their bytes from the
// arena of the setup.
unsafe impl Index for PointerIndex {
    const AHEAD: (usize, usize) = (2, 2);
    const NAME: &'static str = "skiplist-pointer";

    fn new(setup: &Setup) -> Result<Self, SetupError> {
        if setup.comparator.byte_order() != Some(ByteOrder::Forward) {
            let comparator = setup.comparator.name().to_string();
            return Err(SetupError::Order { index: Self::NAME, comparator });
        }
        Ok(Self(PointerSkipList::new(ByBytes, Arc::clone(&setup.arena))))
    }

    unsafe fn add(&self, draft: Draft<'_>, shared: bool, _: &Guard) -> Result<bool, AllocError> {
        let place = self.0.allocate(draft.len())?;
        // SAFETY: the place has these bytes, and the entry is not written again. The caller
        // promises that inserts of one writer run alone.
        unsafe {
            draft.write(place.entry());
            Ok(if shared { self.0.insert_concurrently(place) } else { self.0.insert(place) })
        }
    }

    fn seek(&self, key: InternalKey<'_>, _: &Guard) -> Option<Entry<'_>> {
        self.0.seek(key).map(Position::entry)
    }

    unsafe fn scan<'t>(
        &'t self,
        from: Start<'t, '_>,
        backwards: bool,
        count: usize,
        to: &mut Vec<Entry<'t>>,
        _: &Guard,
    ) {
        let list = &self.0;
        let at = match (from, backwards) {
            (Start::End, false) => list.first(),
            (Start::End, true) => list.last(),
            (Start::Key(key), false) => list.seek(key),
            (Start::Key(key), true) => list.seek_for_prev(key),
            // An entry does not lead to its node.
            (Start::Beyond(entry), false) => list.seek(entry.key()).and_then(|at| list.next(at)),
            (Start::Beyond(entry), true) => list.seek_before(entry.key()),
        };
        list.visit(at, backwards, count, |here| to.push(here.entry()));
    }

    fn bytes(&self) -> usize {
        0
    }

    fn retries(&self) -> u64 {
        self.0.retries()
    }

    fn check(&mut self) -> Result<usize, String> {
        self.0.check()
    }
}
