//! The inline skip list as an index, with the order chosen at run time.

use super::{Index, Setup, SetupError, Start};
use crate::entry::{Draft, Entry};
use crate::key::{ByteOrder, InternalKey};
use crate::skiplist::{Arena, ByBytes, ByComparator, InlineSkipList, Order, Position};
use silvics::{AllocError, Guard};
use silvics_pool::ConcurrentArena;
use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::Arc;

// SAFETY: the arena hands each byte out once, and frees them when it is dropped.
unsafe impl Arena for ConcurrentArena {
    #[inline]
    fn alloc(&self, layout: Layout) -> Result<NonNull<u8>, AllocError> {
        ConcurrentArena::alloc(self, layout)
    }
}

type List<O> = InlineSkipList<O, Arc<ConcurrentArena>>;

/// An [`InlineSkipList`] in any order. The orders that it knows cost no call of a comparator.
#[derive(Debug)]
pub struct SkipIndex(Ordered);

#[derive(Debug)]
enum Ordered {
    Forward(List<ByBytes<false>>),
    Reverse(List<ByBytes<true>>),
    Other(List<ByComparator>),
}

/// Calls a function with the list.
macro_rules! with {
    ($self:expr, $list:ident => $call:expr) => {
        match $self {
            Ordered::Forward($list) => $call,
            Ordered::Reverse($list) => $call,
            Ordered::Other($list) => $call,
        }
    };
}

fn add<O: Order>(list: &List<O>, draft: Draft<'_>, shared: bool) -> Result<bool, AllocError> {
    let place = list.allocate(draft.len())?;
    // SAFETY: the place has these bytes, and the entry is not written again. The caller of
    // `Index::add` promises that inserts of one writer run alone.
    unsafe {
        draft.write(place.entry());
        Ok(if shared { list.insert_concurrently(place) } else { list.insert(place) })
    }
}

/// Appends entries to `to`.
///
/// # Safety
/// The entry of [`Start::Beyond`] is one of the list.
unsafe fn scan<'t, O>(
    list: &'t List<O>,
    from: Start<'t, '_>,
    backwards: bool,
    count: usize,
    to: &mut Vec<Entry<'t>>,
) where
    O: for<'k> Order<Target<'k> = InternalKey<'k>>,
{
    // SAFETY: the caller's promise; the address of an entry in an inline list is that of its node.
    let position = |entry: Entry<'t>| unsafe { Position::from_raw(entry.as_ptr()) };
    let at = match (from, backwards) {
        (Start::End, false) => list.first(),
        (Start::End, true) => list.last(),
        (Start::Key(key), false) => list.seek(key),
        (Start::Key(key), true) => list.seek_for_prev(key),
        (Start::Beyond(entry), false) => list.next(position(entry)),
        (Start::Beyond(entry), true) => list.prev(position(entry)),
    };
    list.visit(at, backwards, count, |here| to.push(here.entry()));
}

// SAFETY: a list returns entries that were inserted, and they lie in its arena.
unsafe impl Index for SkipIndex {
    const NAME: &'static str = "skiplist";
    /// Each further entry costs a miss.
    const AHEAD: (usize, usize) = (2, 2);

    fn new(setup: &Setup) -> Result<Self, SetupError> {
        let arena = Arc::clone(&setup.arena);
        Ok(Self(match setup.comparator.byte_order() {
            Some(ByteOrder::Forward) => Ordered::Forward(List::new(ByBytes, arena)),
            Some(ByteOrder::Reverse) => Ordered::Reverse(List::new(ByBytes, arena)),
            None => Ordered::Other(List::new(ByComparator(Arc::clone(&setup.comparator)), arena)),
        }))
    }

    unsafe fn add(&self, draft: Draft<'_>, shared: bool, _: &Guard) -> Result<bool, AllocError> {
        with!(&self.0, list => add(list, draft, shared))
    }

    fn seek(&self, key: InternalKey<'_>, _: &Guard) -> Option<Entry<'_>> {
        with!(&self.0, list => list.seek(key).map(Position::entry))
    }

    unsafe fn scan<'t>(
        &'t self,
        from: Start<'t, '_>,
        backwards: bool,
        count: usize,
        to: &mut Vec<Entry<'t>>,
        _: &Guard,
    ) {
        // SAFETY: the caller's promise.
        with!(&self.0, list => unsafe { scan(list, from, backwards, count, to) });
    }

    fn bytes(&self) -> usize {
        0
    }

    fn retries(&self) -> u64 {
        with!(&self.0, list => list.retries())
    }

    fn check(&mut self) -> Result<usize, String> {
        with!(&mut self.0, list => list.check())
    }
}
