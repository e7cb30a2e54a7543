//! Scans: parts of an index, each protected as a whole.

use super::arena::Stored;
use super::read::Opened;
use super::state::{IndexPtr, Inner, push};
use super::{Tx, failed, row};
use crate::error::Error;
use crate::index::{Bounds, ErasedIndex};
use crate::key::KeyRef;
use crate::policy::{Policy, Scanned, Seen, Stop};
use crate::row::Row;
use crate::rows::Address;
use std::fmt;
use std::ops::{Bound, ControlFlow};
use std::ptr::NonNull;

/// The entries that a scan reads at first, and at most, at a time.
const FIRST: usize = 16;
const MOST: usize = 256;

/// The walks over a part whose rows come or go, before the transaction is aborted.
const TRIES: usize = 64;

/// The cache lines of rows that a scan fetches ahead of the row that it copies: a part of a core's
/// first cache, so that they are still there when their turn comes.
const AHEAD: usize = 64;

/// A scan, made by [`Tx::scan`] or [`Tx::find_all`].
///
/// The transaction commits only if no other transaction has changed, inserted or deleted a row of
/// the part that was scanned. Own writes from before the scan are visible. Those that the closure
/// of [`for_each`](Self::for_each) makes may be visible or not, and a row that gets a key from it
/// is left out at this key, unless the row was committed with it.
#[must_use = "a scan does nothing until its rows are requested"]
pub struct Scan<'t, 's, P: Policy> {
    pub(super) tx: &'t Tx<'s, P>,
    pub(super) index: &'t (dyn ErasedIndex + 'static),
    pub(super) bounds: Result<(Bound<Stored>, Bound<Stored>), Error>,
    pub(super) descending: bool,
    pub(super) limit: usize,
}

impl<P: Policy> fmt::Debug for Scan<'_, '_, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scan({})", self.index.core().name)
    }
}

impl<'t, P: Policy> Scan<'t, '_, P> {
    /// Scans in descending order.
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    /// Ends the scan after the given number of rows.
    pub fn limit(mut self, rows: usize) -> Self {
        self.limit = rows;
        self
    }

    /// Returns the rows.
    pub fn rows(self) -> Result<Vec<Row<'t>>, Error> {
        let mut rows = Vec::new();
        self.for_each(|row| {
            rows.try_reserve(1).map_err(|_| out_of_memory(&rows))?;
            rows.push(row);
            Ok::<_, Error>(ControlFlow::Continue(()))
        })?;
        Ok(rows)
    }

    /// Calls `visit` with each row until it returns [`ControlFlow::Break`]. `visit` may use the
    /// transaction.
    pub fn for_each<E: From<Error>>(
        self,
        mut visit: impl FnMut(Row<'t>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let core = self.index.core();
        let (mut low, mut high) = self.bounds.clone()?;
        let (mut left, mut images, mut since) = (self.limit, Vec::new(), None);
        let mut most = if left < MOST { left } else { FIRST };
        while left > 0 {
            let next = {
                let mut inner = self.tx.enter_scan()?;
                let since = *since.get_or_insert(inner.work.placements);
                let part = Part { bounds: (low, high), descending: self.descending, since };
                let next = inner.scan(self.index, part, most.min(left), &mut images);
                next.map_err(|stop| failed(&mut inner, stop))?
            };
            for &image in &images {
                left -= 1;
                if visit(row(core, image))?.is_break() {
                    return Ok(());
                }
            }
            let Some(last) = next else { return Ok(()) };
            *(if self.descending { &mut high } else { &mut low }) = Bound::Excluded(last);
            most = (most * 2).min(MOST);
        }
        Ok(())
    }
}

fn out_of_memory<T>(list: &[T]) -> Error {
    silvics::AllocError::System { requested: size_of_val(list) + size_of::<T>() }.into()
}

/// A part of an index that is to be scanned.
#[derive(Clone, Copy)]
pub(crate) struct Part {
    bounds: (Bound<Stored>, Bound<Stored>),
    descending: bool,
    /// The entries that the transaction had placed when the scan began.
    since: u64,
}

impl<P: Policy> Inner<'_, P> {
    /// Scans up to `most` entries of a range, into `images`. Returns the key of the last entry,
    /// unless the range has no more entries.
    pub(crate) fn scan(
        &mut self,
        index: &(dyn ErasedIndex + 'static),
        part: Part,
        most: usize,
        images: &mut Vec<NonNull<u64>>,
    ) -> Result<Option<Stored>, Stop> {
        let Part { bounds: range, descending, since } = part;
        for tries in 0..TRIES {
            let last = self.collect(index, range, descending, most)?;
            let (low, high) = match last {
                None => range,
                Some(last) if descending => (Bound::Included(last), range.1),
                Some(last) => (range.0, Bound::Included(last)),
            };
            images.clear();
            // An entry whose removal was postponed stays: see `StoreCore::postpone`.
            let all_there = self.read_segment(index, since, tries > TRIES / 2, images)?;
            if !all_there {
                silvics_sync::hint::spin_loop();
                continue;
            }
            let index = IndexPtr::of(index);
            if P::scanned(self, Scanned { index, low, high, descending })? {
                return Ok(last);
            }
        }
        Err(crate::Conflict::RangeChanged.into())
    }

    /// Collects entries into the segment. Returns the last key if there may be more.
    fn collect(
        &mut self,
        index: &dyn ErasedIndex,
        range: (Bound<Stored>, Bound<Stored>),
        descending: bool,
        most: usize,
    ) -> Result<Option<Stored>, Stop> {
        // SAFETY: the arena is cleared after the transaction.
        let bounds: Bounds<'_> = unsafe { (range.0.map(|k| k.get()), range.1.map(|k| k.get())) };
        let work = &mut *self.work;
        work.segment.clear();
        let (words, ahead) = (index.core().words, Self::ahead(index.core().words));
        let mut failed = None;
        index.walk(bounds, descending, &self.guard, &mut |key: KeyRef<'_>, word| {
            // SAFETY: R1: the word is one of an index.
            let address = unsafe { Address::of(word) };
            if work.segment.len() < ahead {
                Self::prefetch(word, words);
            }
            let stored = work.arena.key(key);
            let pushed = stored.and_then(|key| push(&mut work.segment, (key, address)));
            if let Err(error) = pushed {
                failed = Some(error);
                return false;
            }
            work.segment.len() < most
        });
        match failed {
            Some(error) => Err(error.into()),
            None if self.work.segment.len() < most => Ok(None),
            None => Ok(self.work.segment.last().map(|&(key, _)| key)),
        }
    }

    /// The rows of `words` words that a scan fetches ahead.
    fn ahead(words: usize) -> usize {
        let lines = (size_of::<u64>() * (words + 1)).div_ceil(64); // with a header
        (AHEAD / lines).max(2)
    }

    /// Reads the rows of the segment. Returns false if a row is not there, unless `is_patient`.
    fn read_segment(
        &mut self,
        index: &(dyn ErasedIndex + 'static),
        since: u64,
        is_patient: bool,
        images: &mut Vec<NonNull<u64>>,
    ) -> Result<bool, Stop> {
        let core = index.core();
        let ahead = Self::ahead(core.words);
        for at in 0..self.work.segment.len() {
            if let Some((_, later)) = self.work.segment.get(at + ahead) {
                Self::prefetch(later.word(), core.words);
            }
            let (key, row) = self.work.segment[at];
            // SAFETY: the arena is cleared after the transaction.
            let key = unsafe { key.get() };
            let found = match self.open(core, key, row.word(), core.words, false)? {
                Opened::Row(found) => Some(found),
                // Another transaction has placed the entry and is not committed, or the entry is
                // about to leave. An optimistic scan goes on: the validation finds the difference.
                Opened::Gone if P::WAITS_FOR_ROWS && !is_patient => return Ok(false),
                Opened::Gone => None,
                // The key may be that of another row of this transaction.
                Opened::OwnGone => self.find_taken_over(index, key, row.word(), false)?,
            };
            let Some(found) = found else { continue };
            let is_new = |at| self.work.is_since(at, IndexPtr::of(index), key, since);
            if !matches!(found.seen, Seen::Own(at) if is_new(at)) {
                push(images, found.image)?;
            }
        }
        Ok(true)
    }
}
