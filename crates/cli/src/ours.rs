//! Our own indexes as contenders.

use crate::contender::{Contender, Session};
use silvics::{
    AllocError, Key, KeyRef, OrderedIndex, OrderedScan, Pinned, PoolStats, TryInsertError,
};
use silvics_testkit::verify;
use std::marker::PhantomData;
use std::ops::Bound::{Included, Unbounded};

/// An index of ours. `S` says how it scans, if it does.
pub struct Ours<I, S> {
    index: I,
    scans: PhantomData<fn() -> S>,
}

impl<I, S> Ours<I, S> {
    /// The index under measurement.
    pub fn new(index: I) -> Self {
        let scans = PhantomData;
        Self { index, scans }
    }
}

/// How an index scans.
pub trait ScanBy<I: OrderedIndex>: 'static {
    /// The scans of its recorded histories.
    const RECORDED: Self::Recorded;
    /// Their type.
    type Recorded;

    /// See [`Session::scan`].
    fn scan(
        pinned: &Pinned<'_, I>,
        from: KeyRef<'_, I>,
        limit: usize,
        visit: &mut impl FnMut(KeyRef<'_, I>, u64),
    ) -> usize;
}

/// Not at all: the catalogue says so, and nothing calls it.
pub struct NoScans;

impl<I: OrderedIndex> ScanBy<I> for NoScans {
    const RECORDED: verify::NoScans = verify::NoScans;
    type Recorded = verify::NoScans;

    fn scan(
        _pinned: &Pinned<'_, I>,
        _from: KeyRef<'_, I>,
        _limit: usize,
        _visit: &mut impl FnMut(KeyRef<'_, I>, u64),
    ) -> usize {
        0
    }
}

/// By [`OrderedScan::range`].
pub struct ByRange;

impl<I: OrderedScan> ScanBy<I> for ByRange {
    const RECORDED: verify::AllScans = verify::AllScans;
    type Recorded = verify::AllScans;

    #[inline]
    fn scan(
        pinned: &Pinned<'_, I>,
        from: KeyRef<'_, I>,
        limit: usize,
        visit: &mut impl FnMut(KeyRef<'_, I>, u64),
    ) -> usize {
        let from = <I::Key as Key>::shorten(from);
        let mut seen = 0;
        for (key, value) in pinned.range((Included(from), Unbounded)).take(limit) {
            visit(key, value);
            seen += 1;
        }
        seen
    }
}

impl<I: OrderedIndex + 'static, S: ScanBy<I>> Contender for Ours<I, S> {
    type Key = I::Key;
    type Session<'a> = OursSession<'a, I, S>;

    fn session(&self) -> OursSession<'_, I, S> {
        OursSession { pinned: self.index.pin(), scans: PhantomData }
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.index.bytes())
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.index.pool_stats()
    }
}

/// A thread's session: the index pinned.
pub struct OursSession<'a, I: OrderedIndex, S> {
    pinned: Pinned<'a, I>,
    scans: PhantomData<fn() -> S>,
}

impl<I: OrderedIndex, S: ScanBy<I>> Session for OursSession<'_, I, S> {
    type Key = I::Key;

    #[inline]
    fn get(&mut self, key: KeyRef<'_, I>) -> Option<u64> {
        self.pinned.get(key)
    }

    #[inline]
    fn get_many(&mut self, keys: &[KeyRef<'_, I>], values: &mut [Option<u64>]) {
        self.pinned.get_many(keys, values);
    }

    #[inline]
    fn insert(&mut self, key: KeyRef<'_, I>, value: u64) -> Result<bool, AllocError> {
        match self.pinned.try_insert(key, value) {
            Ok(()) => Ok(true),
            Err(TryInsertError::Alloc(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    #[inline]
    fn remove(&mut self, key: KeyRef<'_, I>) -> Result<bool, AllocError> {
        Ok(self.pinned.remove(key)?.is_some())
    }

    #[inline]
    fn scan(
        &mut self,
        from: KeyRef<'_, I>,
        limit: usize,
        visit: &mut impl FnMut(KeyRef<'_, I>, u64),
    ) -> usize {
        S::scan(&self.pinned, from, limit, visit)
    }

    #[inline]
    fn refresh(&mut self) {
        self.pinned.repin();
    }
}
