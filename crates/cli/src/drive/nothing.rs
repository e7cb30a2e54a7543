//! An index that does nothing, which shows the cost of the loops that measure.

use crate::contender::{Contender, Session};
use crate::drive::keys::BenchKey;
use silvics::AllocError;
use std::hint::black_box;
use std::marker::PhantomData;

/// An index that takes every call and holds no key. It reads the key of each call as cheaply as
/// possible, and compares it with a word that the compiler does not know; for that word alone it
/// answers as if it held the key.
pub struct Nothing<K: ?Sized>(PhantomData<fn(&K)>);

impl<K: ?Sized> Default for Nothing<K> {
    fn default() -> Self {
        Self(PhantomData)
    }
}

impl<K: BenchKey + ?Sized> Contender for Nothing<K> {
    type Key = K;
    type Session<'a> = NothingSession<K>;

    fn session(&self) -> NothingSession<K> {
        NothingSession { held: black_box(u64::MAX), answer: black_box(None), key: PhantomData }
    }
}

/// A thread's session with [`Nothing`].
pub struct NothingSession<K: ?Sized> {
    held: u64,
    /// The answer of all other lookups: none.
    answer: Option<u64>,
    key: PhantomData<fn(&K)>,
}

impl<K: BenchKey + ?Sized> NothingSession<K> {
    #[inline(always)]
    fn holds(&self, key: K::Ref<'_>) -> bool {
        K::glance(key) == self.held
    }
}

#[cold]
#[inline(never)]
fn value_of<K: BenchKey + ?Sized>(key: K::Ref<'_>) -> u64 {
    K::value_of(key)
}

impl<K: BenchKey + ?Sized> Session for NothingSession<K> {
    type Key = K;
    type Lent = K;

    #[inline(always)]
    fn get(&mut self, key: K::Ref<'_>) -> Option<u64> {
        if self.holds(key) { Some(value_of::<K>(key)) } else { self.answer }
    }

    #[inline(always)]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        black_box(value);
        Ok(self.holds(key))
    }

    #[inline(always)]
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        self.insert(key, value)
    }

    #[inline(always)]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool, AllocError> {
        Ok(self.holds(key))
    }

    #[inline(always)]
    fn scan(
        &mut self,
        from: K::Ref<'_>,
        _limit: usize,
        _visit: &mut impl FnMut(K::Ref<'_>, u64),
    ) -> usize {
        black_box(from);
        black_box(0)
    }
}
