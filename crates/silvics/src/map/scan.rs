//! Ranges of a map.

use super::key::{AsKey, AsPrefix, Form, FormRef, Key};
use super::lend::Pin;
use super::ops::short;
use super::outcome::is_shortage;
use super::value::{fetch, inline};
use super::{Entry, Map, MapIndex, RemoveIfError, Value, ValueRef};
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::AllocError;
use crate::index::KeyRef;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{
    self, Bound, RangeBounds, RangeFrom, RangeFull, RangeInclusive, RangeTo, RangeToInclusive,
};

/// Copies of the bounds of a range. Their keys stay at their addresses when this value is moved.
pub(super) type Kept<K> =
    (Bound<<<K as Key>::Form as Form>::Kept>, Bound<<<K as Key>::Form as Form>::Kept>);

fn keep<K: Key>(bound: Bound<&impl AsKey<K>>) -> Bound<<K::Form as Form>::Kept> {
    bound.map(|key| key.with_form(<K::Form as Form>::keep))
}

/// A range of keys of type `K`: `a..b`, `a..=b`, `a..`, `..b`, `..=b`, `..`, or a pair of
/// [`Bound`]s. The bounds have any type that stands for a key ([`AsKey`]).
///
/// The standard library's [`RangeBounds`] does not suit: it is implemented twice for `&a..&b`.
pub trait KeyRange<K: Key> {
    #[doc(hidden)]
    fn keep(self) -> Kept<K>;
}

macro_rules! ranges {
    ($($range:ty),*) => {$(
        impl<K: Key, Q: AsKey<K>> KeyRange<K> for $range {
            fn keep(self) -> Kept<K> {
                (keep::<K>(RangeBounds::<Q>::start_bound(&self)), keep::<K>(RangeBounds::<Q>::end_bound(&self)))
            }
        }
    )*};
}

ranges!(
    ops::Range<Q>,
    RangeInclusive<Q>,
    RangeFrom<Q>,
    RangeTo<Q>,
    RangeToInclusive<Q>,
    (Bound<Q>, Bound<Q>)
);

impl<K: Key> KeyRange<K> for RangeFull {
    fn keep(self) -> Kept<K> {
        (Bound::Unbounded, Bound::Unbounded)
    }
}

/// Borrows a copied bound for the index.
///
/// # Safety
/// The copy lives as long as `'g`. It may be moved meanwhile.
pub(super) unsafe fn lend<'g, K: Key>(
    kept: &Bound<<K::Form as Form>::Kept>,
) -> Bound<<K::Form as IndexKey>::Ref<'g>> {
    // SAFETY: the caller's promise.
    kept.as_ref().map(|kept| unsafe { <K::Form as Form>::lengthen(<K::Form as Form>::kept(kept)) })
}

/// The bound before the first string that is greater than all strings with this prefix; unbounded
/// if there is no such string.
fn behind(prefix: &[u8]) -> Bound<Vec<u8>> {
    let Some(last) = prefix.iter().rposition(|&byte| byte != u8::MAX) else {
        return Bound::Unbounded;
    };
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Bound::Excluded(end)
}

/// The most entries that are read ahead.
const AHEAD: usize = 8;

/// An entry as the index returns it.
type Raw<'g, K> = (<<K as Key>::Form as IndexKey>::Ref<'g>, u64);

/// The entries of a scan of the index. If values are not in the index's words, some entries are
/// read ahead and their values prefetched: the longer the scan, the more, up to [`AHEAD`].
struct Fetched<'g, E, K: Key, V> {
    entries: E,
    /// The entries read ahead, as a ring buffer.
    read: [Option<Raw<'g, K>>; AHEAD],
    first: usize,
    len: usize,
    given: usize,
    values: PhantomData<V>,
}

impl<'g, E: Iterator<Item = Raw<'g, K>>, K: Key, V: Value> Fetched<'g, E, K, V> {
    fn new(entries: E) -> Self {
        Self { entries, read: [None; AHEAD], first: 0, len: 0, given: 0, values: PhantomData }
    }

    #[inline(always)]
    fn next(&mut self) -> Option<Raw<'g, K>> {
        if inline::<V>() {
            return self.entries.next();
        }
        self.given += 1;
        // Reads two entries for each one returned, until enough are ahead.
        for _ in 0..2 {
            if self.len >= AHEAD.min(self.given) {
                break;
            }
            let Some(entry) = self.entries.next() else { break };
            fetch::<V>(entry.1);
            self.read[(self.first + self.len) % AHEAD] = Some(entry);
            self.len += 1;
        }
        self.len = self.len.checked_sub(1)?;
        let at = self.first;
        self.first = (at + 1) % AHEAD;
        self.read[at]
    }
}

macro_rules! scans {
    ($($(#[$doc:meta])* $name:ident, $entries:ident, $scan:ident;)*) => {$(
        $(#[$doc])*
        pub struct $name<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
            // Dropped before the bounds, which the entries borrow.
            entries: Fetched<'g, I::$entries<'g>, K, V>,
            _bounds: Kept<K>,
            map: PhantomData<&'g Map<K, V, I>>,
        }

        impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> $name<'g, K, V, I> {
            pub(super) fn new(
                map: &'g Map<K, V, I>,
                bounds: Kept<K>,
                guard: &'g Guard,
            ) -> Self {
                // SAFETY: the bounds are moved into the scan together with the entries that borrow
                // them, and dropped after those.
                let lent = unsafe { (lend::<K>(&bounds.0), lend::<K>(&bounds.1)) };
                let entries = Fetched::new(map.index.$scan(lent, guard));
                Self { entries, _bounds: bounds, map: PhantomData }
            }
        }

        impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> Iterator for $name<'g, K, V, I> {
            type Item = Entry<'g, K, V>;

            #[inline]
            fn next(&mut self) -> Option<Self::Item> {
                let (form, word) = self.entries.next()?;
                // SAFETY: M1: the word is that of a value. It was read under the guard that the
                // scan was made with, which lives as long as `'g` (M3).
                Some((Map::<K, V, I>::key_of(form), unsafe { ValueRef::new(word) }))
            }
        }

        impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for $name<'_, K, V, I> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }
    )*};
}

scans! {
    /// An ascending scan of a [`View`](super::View), with the guarantee of
    /// [`View::range`](super::View::range).
    Range, Range, range;
    /// A descending scan of a [`View`](super::View), with the guarantee of
    /// [`View::range`](super::View::range).
    RangeRev, RangeRev, range_rev;
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    pub(super) fn do_range<'g>(
        &'g self,
        range: impl KeyRange<K>,
        guard: &'g Guard,
    ) -> Range<'g, K, V, I> {
        Range::new(self, range.keep(), guard)
    }

    pub(super) fn do_range_rev<'g>(
        &'g self,
        range: impl KeyRange<K>,
        guard: &'g Guard,
    ) -> RangeRev<'g, K, V, I> {
        RangeRev::new(self, range.keep(), guard)
    }

    /// Returns the first entry of a scan between two bounds; the last one of the range if `REV`.
    /// Copies no bound.
    fn first_between<'g, 'c, const REV: bool, Q>(
        &'g self,
        bounds: (Bound<FormRef<'_, K>>, Bound<FormRef<'_, K>>),
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> Option<(Q, ValueRef<'g, V>)> {
        let lend = |bound: Bound<FormRef<'_, K>>| {
            // SAFETY: the scan ends before the bounds do, and the keys that it returns are the
            // index's own and not its bounds (clause 4 of `MapIndex`).
            bound.map(|form| unsafe { <K::Form as Form>::lengthen(form) })
        };
        let bounds = (lend(bounds.0), lend(bounds.1));
        let (form, word) = if REV {
            self.index.range_rev(bounds, pin.guard).next()
        } else {
            self.index.range(bounds, pin.guard).next()
        }?;
        Some((key_of(form), self.lent(word, pin)))
    }

    pub(super) fn do_get_key_value<'g, 'c, Q>(
        &'g self,
        key: &impl AsKey<K>,
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> Option<(Q, ValueRef<'g, V>)> {
        key.with_form(|form| {
            let bound = || Bound::Included(short::<K>(form));
            self.first_between::<false, Q>((bound(), bound()), key_of, pin)
        })
    }

    pub(super) fn do_lower_bound<'g, 'c, Q>(
        &'g self,
        bound: Bound<impl AsKey<K>>,
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> Option<(Q, ValueRef<'g, V>)> {
        with_bound(bound, |from| {
            self.first_between::<false, Q>((from, Bound::Unbounded), key_of, pin)
        })
    }

    pub(super) fn do_upper_bound<'g, 'c, Q>(
        &'g self,
        bound: Bound<impl AsKey<K>>,
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> Option<(Q, ValueRef<'g, V>)> {
        with_bound(bound, |to| self.first_between::<true, Q>((Bound::Unbounded, to), key_of, pin))
    }
}

/// Calls `then` with the form of a bound.
fn with_bound<K: Key, R>(
    bound: Bound<impl AsKey<K>>,
    then: impl FnOnce(Bound<FormRef<'_, K>>) -> R,
) -> R {
    match bound {
        Bound::Included(key) => key.with_form(|form| then(Bound::Included(form))),
        Bound::Excluded(key) => key.with_form(|form| then(Bound::Excluded(form))),
        Bound::Unbounded => then(Bound::Unbounded),
    }
}

/// The number of entries that a sweep with its own pin passes before it pins anew, so that removed
/// entries can be freed.
const UNDER_A_PIN: usize = 1024;

/// The place where a sweep continues, and the error that stopped it there, if any.
type Paused<K> = (Bound<<<K as Key>::Form as Form>::Kept>, Option<AllocError>);

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> Range<'g, K, V, I> {
    /// The next entry as the index returns it.
    #[inline(always)]
    pub(super) fn next_word(&mut self) -> Option<(KeyRef<'g, I>, u64)> {
        self.entries.next()
    }

    /// Calls `each` for up to `most` entries, and counts those that it reports as removed. Returns
    /// the place to continue at, or nothing at the end of the range.
    fn sweep(
        &mut self,
        removed: &mut usize,
        mut each: impl FnMut(KeyRef<'_, I>, u64) -> Result<bool, AllocError>,
        most: usize,
    ) -> Option<Paused<K>> {
        for passed in 1.. {
            let (form, word) = self.next_word()?;
            match each(form, word) {
                Ok(gone) => *removed += usize::from(gone),
                Err(error) => {
                    return Some((Bound::Included(<K::Form as Form>::keep(form)), Some(error)));
                }
            }
            if passed >= most {
                return Some((Bound::Excluded(<K::Form as Form>::keep(form)), None));
            }
        }
        None
    }
}

/// Removal of the entries that a scan finds.
impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    /// Sweeps a range. Without a guard it pins anew after [`UNDER_A_PIN`] entries, and tries once
    /// more after a shrink if an allocation fails.
    fn sweep_all(
        &self,
        (mut from, to): Kept<K>,
        guard: Option<&Guard>,
        mut each: impl FnMut(KeyRef<'_, I>, u64, &Guard) -> Result<bool, AllocError>,
    ) -> Result<usize, AllocError> {
        let (mut removed, mut failed_at) = (0, usize::MAX);
        loop {
            let paused = {
                let own = guard.is_none().then(|| self.one_shot());
                let pinned = guard.or(own.as_ref()).expect("one of the two");
                let most = if guard.is_none() { UNDER_A_PIN } else { usize::MAX };
                let mut entries = Range::new(self, (from, to.clone()), pinned);
                let each = |form: KeyRef<'_, I>, word| each(form, word, pinned);
                entries.sweep(&mut removed, each, most)
            };
            let Some((place, error)) = paused else { return Ok(removed) };
            if let Some(error) = error {
                if guard.is_some() || failed_at == removed || !is_shortage(error) {
                    return Err(error);
                }
                failed_at = removed;
                self.shrink();
            }
            from = place;
        }
    }

    pub(super) fn do_retain(
        &self,
        mut keep: impl FnMut(&K::Ref<'_>, &V) -> bool,
        guard: Option<&Guard>,
    ) -> Result<usize, AllocError> {
        self.sweep_all((Bound::Unbounded, Bound::Unbounded), guard, |form, word, guard| {
            let key = Self::key_of(short::<K>(form));
            match self.remove_form_if(form, word, |value| !keep(&key, value), guard.into()) {
                Ok(value) => Ok(value.is_some()),
                Err(RemoveIfError::Kept(_)) => Ok(false),
                Err(RemoveIfError::Alloc(error)) => Err(error),
            }
        })
    }

    pub(super) fn do_remove_range(
        &self,
        range: impl KeyRange<K>,
        guard: Option<&Guard>,
    ) -> Result<usize, AllocError> {
        self.sweep_all(range.keep(), guard, |form, _, guard| {
            let removed = self.index.remove(form, guard)?;
            if let Some(word) = removed {
                self.taken(word, guard.into());
            }
            Ok(removed.is_some())
        })
    }
}

impl<K: Key<Form = [u8]>, V: Value, I: MapIndex<Key = [u8]>> Map<K, V, I> {
    fn prefixed(prefix: &impl AsPrefix<K>) -> Kept<K> {
        prefix.with_prefix(|bytes| (Bound::Included(bytes.to_vec()), behind(bytes)))
    }

    pub(super) fn do_prefix<'g>(
        &'g self,
        prefix: &impl AsPrefix<K>,
        guard: &'g Guard,
    ) -> Range<'g, K, V, I> {
        Range::new(self, Self::prefixed(prefix), guard)
    }

    pub(super) fn do_prefix_rev<'g>(
        &'g self,
        prefix: &impl AsPrefix<K>,
        guard: &'g Guard,
    ) -> RangeRev<'g, K, V, I> {
        RangeRev::new(self, Self::prefixed(prefix), guard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_a_prefix() {
        assert_eq!(behind(b""), Bound::Unbounded);
        assert_eq!(behind(b"\xff\xff"), Bound::Unbounded);
        assert_eq!(behind(b"a"), Bound::Excluded(b"b".to_vec()));
        assert_eq!(behind(b"a\xff"), Bound::Excluded(b"b".to_vec()));
        assert_eq!(behind(b"a\xffc\x00"), Bound::Excluded(b"a\xffc\x01".to_vec()));
    }
}
