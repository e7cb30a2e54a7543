//! The `arctic-map` crate's `ConcurrentMap`: a lock-free adaptive radix tree.
//!
//! # How it is driven
//! Through `get`, `insert` (put-if-absent) and `remove_non_recursive`, with the default reclamation
//! (`seize`). Every call pins inside, because the crate documents no guard to keep over many calls.
//! Values are `u64`, which the tree stores inline.
//!
//! `remove_non_recursive` leaves emptied nodes in the tree. Its docs recommend it if removed keys
//! come again, as they do in a benchmark, and call `remove` slow. For byte strings `remove` also
//! has a fault, described below.
//!
//! # Keys
//! Integers are `u64` and `u128`. No key may be a prefix of another one, so byte strings are the
//! crate's `BoxedSlice<NonNull>`: the tree ends them with a zero byte, and they must contain none.
//! The adapter therefore escapes the bytes 0 and 1 (`0` becomes `1 1`, `1` becomes `1 2`), which
//! keeps the order. Keys that contain neither byte are stored as they are. The search for these two
//! bytes replaces the search for a zero byte in the crate's own constructor.
//!
//! # Scans
//! `range`, then `try_fold` over its `entries`: the crate's internal iteration, which copies no
//! keys and was level with `lend` or ahead.
//!
//! # Known fault of version 0.1.4
//! `remove` of a byte string panics ("Prefix condition") if a concurrent removal replaces the node
//! that it is about to compress by a value. Two threads that insert and remove the same 48 keys
//! meet this within some thousand calls, and two on 1000 keys within some ten thousand. Debug
//! builds fail an assertion near this place for integers too; in release builds their answers were
//! right.

use crate::contender::peer::Peer;
use crate::contender::recorded::Recorded;
use crate::contender::{Contender, Session};
use crate::drive::keys::BenchKey;
use arctic::key::{BoxedSlice, NonNull, Slice};
use arctic::{ConcurrentMap, Key, Order};
use silvics::AllocError;
use silvics_testkit::history::Op;
use silvics_testkit::verify::Write;
use std::borrow::Borrow;
use std::ops::ControlFlow;

/// A key that `arctic-map` can store.
pub trait ArcticKey: BenchKey {
    /// The stored type.
    type Stored: Key + Send + Sync + 'static;

    /// Calls `with` with the form of `key` that the map takes.
    fn with<R>(key: Self::Ref<'_>, with: impl FnOnce(Taken<'_, Self>) -> R) -> R;
    /// Calls `with` with the key that the map returned as `taken`.
    fn show<R>(taken: Taken<'_, Self>, with: impl FnOnce(Self::Ref<'_>) -> R) -> R;
}

/// The form in which the map takes and returns keys.
type Taken<'k, K> = <<K as ArcticKey>::Stored as Key>::Insert<'k>;

/// Declares integers, which the map takes as they are.
macro_rules! taken_as_they_are {
    ($($key:ident)*) => {$(
        impl ArcticKey for $key {
            type Stored = $key;

            #[inline(always)]
            fn with<R>(key: $key, with: impl FnOnce($key) -> R) -> R {
                with(key)
            }
            #[inline(always)]
            fn show<R>(taken: $key, with: impl FnOnce($key) -> R) -> R {
                with(taken)
            }
        }
    )*};
}

taken_as_they_are! { u64 u128 }

/// The greatest byte that is escaped, and the one that marks an escape.
const ESCAPE: u8 = 1;

impl ArcticKey for [u8] {
    type Stored = BoxedSlice<NonNull>;

    #[inline]
    fn with<R>(key: &[u8], with: impl FnOnce(&Slice<NonNull>) -> R) -> R {
        if least(key) <= ESCAPE {
            with(without_zeros(&escape(key)))
        } else {
            with(without_zeros(key))
        }
    }

    #[inline]
    fn show<R>(taken: &Slice<NonNull>, with: impl FnOnce(&[u8]) -> R) -> R {
        let stored = taken.as_bytes();
        if least(stored) <= ESCAPE { with(&unescape(stored)) } else { with(stored) }
    }
}

/// The least byte. It has no early exit, so that the compiler compares many bytes at once.
#[inline(always)]
fn least(bytes: &[u8]) -> u8 {
    bytes.iter().fold(u8::MAX, |least, &byte| least.min(byte))
}

/// A key of the map, from bytes that contain no zero.
#[inline(always)]
fn without_zeros(bytes: &[u8]) -> &Slice<NonNull> {
    debug_assert!(!bytes.contains(&0));
    // SAFETY: both callers have excluded or escaped zero bytes, the only bytes `NonNull` refuses.
    unsafe { Slice::new_unchecked(bytes) }
}

#[cold]
fn escape(key: &[u8]) -> Vec<u8> {
    let mut escaped = Vec::with_capacity(2 * key.len());
    for &byte in key {
        if byte <= ESCAPE {
            escaped.push(ESCAPE);
            escaped.push(byte + ESCAPE);
        } else {
            escaped.push(byte);
        }
    }
    escaped
}

#[cold]
fn unescape(stored: &[u8]) -> Vec<u8> {
    let mut key = Vec::with_capacity(stored.len());
    let mut bytes = stored.iter();
    while let Some(&byte) = bytes.next() {
        let escaped = if byte == ESCAPE { bytes.next() } else { None };
        key.push(escaped.map_or(byte, |code| code - ESCAPE));
    }
    key
}

/// `arctic::ConcurrentMap`.
pub struct ArcticMap<K: ArcticKey + ?Sized> {
    map: ConcurrentMap<K::Stored, u64>,
}

impl<K: ArcticKey + ?Sized> Default for ArcticMap<K> {
    fn default() -> Self {
        Self { map: ConcurrentMap::new() }
    }
}

impl<K: ArcticKey + ?Sized> Peer for ArcticMap<K> {
    const NAME: &'static str = "arctic-map";
    const CRATE: &'static str = "arctic-map 0.1.4";
    const PAPER: &'static str = "Arctic, OSDI 2026";
    const TOPOLOGY: &'static str = "adaptive radix tree";
    const SYNC: &'static str = "lock-free";
    const SCANS: bool = true;
    const MAX_KEY_BYTES: Option<usize> = None;
}

impl<K: ArcticKey + ?Sized> Contender for ArcticMap<K> {
    type Key = K;
    type Session<'a> = ArcticSession<'a, K>;

    fn session(&self) -> Self::Session<'_> {
        ArcticSession { map: &self.map }
    }
}

impl<K: ArcticKey + ?Sized> Recorded for ArcticMap<K> {
    fn write(session: &mut Self::Session<'_>, key: K::Ref<'_>, write: Write) -> Option<Op> {
        let map = session.map;
        K::with(key, |key| {
            Some(match write {
                Write::TryInsert { value } => {
                    let outcome = map.insert(key, value).map(|_| ()).map_err(|(old, _)| *old);
                    Op::TryInsert { value, outcome }
                }
                Write::Insert { value } => {
                    Op::Insert { value, old: map.upsert(key, value).old().copied() }
                }
                Write::Remove => {
                    Op::Remove { old: map.remove_non_recursive(key.borrow()).map(|old| *old) }
                }
                Write::CompareExchange { .. } => return None,
            })
        })
    }
}

/// A thread's session: it keeps nothing between calls.
pub struct ArcticSession<'a, K: ArcticKey + ?Sized> {
    map: &'a ConcurrentMap<K::Stored, u64>,
}

impl<K: ArcticKey + ?Sized> Session for ArcticSession<'_, K> {
    type Key = K;
    type Lent = K;

    #[inline]
    fn get(&mut self, key: K::Ref<'_>) -> Option<u64> {
        K::with(key, |key| self.map.get(key.borrow()).map(|value| *value))
    }

    #[inline]
    fn insert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        Ok(K::with(key, |key| self.map.insert(key, value).is_ok()))
    }

    #[inline]
    fn upsert(&mut self, key: K::Ref<'_>, value: u64) -> Result<bool, AllocError> {
        Ok(K::with(key, |key| self.map.upsert(key, value).old().is_none()))
    }

    #[inline]
    fn remove(&mut self, key: K::Ref<'_>) -> Result<bool, AllocError> {
        Ok(K::with(key, |key| self.map.remove_non_recursive(key.borrow()).is_some()))
    }

    fn scan(
        &mut self,
        from: K::Ref<'_>,
        limit: usize,
        visit: &mut impl FnMut(K::Ref<'_>, u64),
    ) -> usize {
        if limit == 0 {
            return 0;
        }
        let mut seen = 0;
        K::with(from, |from| {
            let range = self.map.range(K::Stored::insert_as_read(from)..);
            let _ = range.entries(Order::Ascend).try_fold((), |(), (key, value)| {
                K::show(key, |key| visit(key, *value));
                seen += 1;
                if seen < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            });
        });
        seen
    }
}
