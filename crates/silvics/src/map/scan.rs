//! Ranges of a map.

use super::key::{AsKey, AsPrefix, Form, FormRef, Key};
use super::lend::{Lends, Pin};
use super::ops::short;
use super::outcome::is_shortage;
use super::value::{fetch, inline};
use super::{Entry, Map, MapIndex, RemoveIfError, Value, ValueRef};
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::AllocError;
use crate::index::{KeyRef, OrderedScan};
use std::fmt;
use std::iter::Rev;
use std::marker::PhantomData;
use std::mem::replace;
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

    /// Calls `then` with the bounds.
    #[doc(hidden)]
    fn with_bounds<R>(
        self,
        then: impl for<'a> FnOnce((Bound<FormRef<'a, K>>, Bound<FormRef<'a, K>>)) -> R,
    ) -> R
    where
        Self: Sized,
    {
        let (from, to) = self.keep();
        then((kept::<K>(&from), kept::<K>(&to)))
    }
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

/// Borrows a copied bound.
pub(super) fn kept<K: Key>(bound: &Bound<<K::Form as Form>::Kept>) -> Bound<FormRef<'_, K>> {
    bound.as_ref().map(<K::Form as Form>::kept)
}

/// Borrows a copied bound for the index.
///
/// # Safety
/// The copy lives as long as `'g`. It may be moved meanwhile.
pub(super) unsafe fn lend<'g, K: Key>(
    kept: &Bound<<K::Form as Form>::Kept>,
) -> Bound<<K::Form as IndexKey>::Ref<'g>> {
    // SAFETY: the caller's promise.
    self::kept::<K>(kept).map(|form| unsafe { lengthen::<K>(form) })
}

/// Extends the lifetime of a borrowed bound, for the index.
///
/// # Safety
/// The scan that takes the bound ends while the bound is borrowed.
#[inline(always)]
pub(super) unsafe fn lengthen<'a, K: Key>(form: FormRef<'_, K>) -> FormRef<'a, K> {
    // SAFETY: the caller's promise.
    unsafe { <K::Form as Form>::lengthen(form) }
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
///
/// Entries are read in bursts, each time that half of those ahead have been returned. So the steps
/// in between are a few instructions, and a processor overlaps the cache misses of a caller that
/// looks into several values.
struct Fetched<'g, E, K: Key, V> {
    entries: E,
    /// The entries ahead, as a ring buffer.
    read: [Option<Raw<'g, K>>; AHEAD],
    first: usize,
    len: usize,
    /// A burst is due when no more entries than this are ahead.
    low: usize,
    /// The number of entries that the next burst reads ahead; 0 if there are no more.
    wanted: usize,
    values: PhantomData<V>,
}

impl<'g, E: Iterator<Item = Raw<'g, K>>, K: Key, V: Value> Fetched<'g, E, K, V> {
    fn new(entries: E) -> Self {
        let read = [None; AHEAD];
        Self { entries, read, first: 0, len: 0, low: 0, wanted: 1, values: PhantomData }
    }

    /// Reads entries until there are enough ahead.
    #[inline(never)]
    fn burst(&mut self) {
        while self.len < self.wanted {
            let Some(entry) = self.entries.next() else {
                (self.low, self.wanted) = (0, 0);
                return;
            };
            fetch::<V>(entry.1);
            self.read[(self.first + self.len) % AHEAD] = Some(entry);
            self.len += 1;
        }
        self.low = self.wanted / 2;
        self.wanted = (2 * self.wanted).clamp(4, AHEAD);
    }
}

impl<'g, E: Iterator<Item = Raw<'g, K>>, K: Key, V: Value> Iterator for Fetched<'g, E, K, V> {
    type Item = Raw<'g, K>;

    #[inline(always)]
    fn next(&mut self) -> Option<Self::Item> {
        if inline::<V>() {
            return self.entries.next();
        }
        if self.len <= self.low {
            self.burst();
        }
        self.len = self.len.checked_sub(1)?;
        let at = self.first % AHEAD;
        self.first = at + 1;
        self.read[at]
    }
}

/// A scan of a [`View`](super::View), with the guarantee of [`View::range`](super::View::range).
///
/// A range descends into the map when its first entry is taken from either end. One whose entries
/// are all taken from one end is a scan in that direction, and `rev()` costs nothing.
pub struct Range<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> {
    // Dropped before the bounds, which its entries borrow.
    state: State<'g, K, V, I>,
    bounds: Kept<K>,
    map: &'g Map<K, V, I>,
    guard: &'g Guard,
}

/// A descending scan of a [`View`](super::View), with the guarantee of
/// [`View::range`](super::View::range).
pub type RangeRev<'g, K, V, I> = Rev<Range<'g, K, V, I>>;

/// The ascending scan of the index below a range.
type Ascent<'g, K, V, I> = Fetched<'g, <I as OrderedScan>::Range<'g>, K, V>;
/// The descending scan of the index below a range.
type Descent<'g, K, V, I> = Fetched<'g, <I as OrderedScan>::RangeRev<'g>, K, V>;

/// The scans of the index that a range has begun.
#[allow(clippy::large_enum_variant)] // a range is made once and read many times
enum State<'g, K: Key, V: Value, I: MapIndex<Key = K::Form> + 'g> {
    /// No entry has been taken.
    Fresh,
    /// All entries have been taken from the front.
    Ascends(Ascent<'g, K, V, I>),
    /// All entries have been taken from the back.
    Descends(Descent<'g, K, V, I>),
    /// Entries have been taken from both ends.
    Meets(Box<Meeting<'g, K, V, I>>),
    /// No entry is left.
    Over,
}

/// An ascending and a descending scan of one range.
///
/// `head` and `tail` are the next entry of each scan, which the range has not returned. The range
/// returns `head` from the front and `tail` from the back while `head` is not behind `tail`. Each
/// scan passes every key that stays present. So a key that stays present and has not been returned
/// is neither before `head` nor behind `tail`, and the range is not over.
struct Meeting<'g, K: Key, V: Value, I: MapIndex<Key = K::Form> + 'g> {
    ascent: Ascent<'g, K, V, I>,
    descent: Descent<'g, K, V, I>,
    head: Raw<'g, K>,
    tail: Raw<'g, K>,
}

/// Takes an entry of a scan out of line, so that the scan is compiled into its other caller.
#[inline(never)]
fn one<T>(entries: &mut dyn Iterator<Item = T>) -> Option<T> {
    entries.next()
}

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> Meeting<'g, K, V, I> {
    /// The range that has begun these scans; over if one of them has no entry left.
    fn begin(
        mut ascent: Ascent<'g, K, V, I>,
        mut descent: Descent<'g, K, V, I>,
    ) -> State<'g, K, V, I> {
        match (one(&mut ascent), one(&mut descent)) {
            (Some(head), Some(tail)) => {
                State::Meets(Box::new(Self { ascent, descent, head, tail }))
            }
            _ => State::Over,
        }
    }

    /// Returns the next entry, and whether there may be more.
    fn next<const REV: bool>(&mut self) -> (Option<Raw<'g, K>>, bool) {
        if self.head.0 > self.tail.0 {
            return (None, false);
        }
        let last = self.head.0 == self.tail.0;
        let (end, entries): (_, &mut dyn Iterator<Item = _>) = if REV {
            (&mut self.tail, &mut self.descent)
        } else {
            (&mut self.head, &mut self.ascent)
        };
        let entry = *end;
        let next = if last { None } else { one(entries) };
        (Some(entry), next.map(|next| *end = next).is_some())
    }
}

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> Range<'g, K, V, I> {
    pub(super) fn new(map: &'g Map<K, V, I>, bounds: Kept<K>, guard: &'g Guard) -> Self {
        Self { state: State::Fresh, bounds, map, guard }
    }

    /// Borrows the bounds for scans that are put into `state`.
    fn lend(&self) -> (Bound<KeyRef<'g, I>>, Bound<KeyRef<'g, I>>) {
        // SAFETY: the bounds are never changed, they are moved only together with the scans that
        // borrow them, and they are dropped after those. No entry is a bound (clause 5 of
        // `MapIndex`).
        unsafe { (lend::<K>(&self.bounds.0), lend::<K>(&self.bounds.1)) }
    }

    fn ascent(&self) -> Ascent<'g, K, V, I> {
        Fetched::new(self.map.index.range(self.lend(), self.guard))
    }

    fn descent(&self) -> Descent<'g, K, V, I> {
        Fetched::new(self.map.index.range_rev(self.lend(), self.guard))
    }

    /// The next entry from the front, as the index returns it.
    #[inline(always)]
    pub(super) fn next_word(&mut self) -> Option<Raw<'g, K>> {
        if !matches!(self.state, State::Ascends(_))
            && let Some(met) = self.turn::<false>()
        {
            return met;
        }
        let State::Ascends(entries) = &mut self.state else { return None };
        entries.next()
    }

    /// The next entry from the back, as the index returns it.
    #[inline(always)]
    pub(super) fn next_back_word(&mut self) -> Option<Raw<'g, K>> {
        if !matches!(self.state, State::Descends(_))
            && let Some(met) = self.turn::<true>()
        {
            return met;
        }
        let State::Descends(entries) = &mut self.state else { return None };
        entries.next()
    }

    /// Begins the scan of a fresh range and returns nothing. Otherwise returns the next entry of a
    /// range that is read from both ends.
    #[inline(never)]
    #[allow(clippy::option_option)] // whether to go on, and an entry
    fn turn<const REV: bool>(&mut self) -> Option<Option<Raw<'g, K>>> {
        if matches!(self.state, State::Fresh) {
            self.state =
                if REV { State::Descends(self.descent()) } else { State::Ascends(self.ascent()) };
            return None;
        }
        if matches!(self.state, State::Ascends(_) | State::Descends(_)) {
            self.state = match replace(&mut self.state, State::Over) {
                State::Ascends(ascent) => Meeting::begin(ascent, self.descent()),
                State::Descends(descent) => Meeting::begin(self.ascent(), descent),
                other => other,
            };
        }
        let State::Meets(meeting) = &mut self.state else { return Some(None) };
        let (entry, more) = meeting.next::<REV>();
        if !more {
            self.state = State::Over;
        }
        Some(entry)
    }

    /// An entry that was read under the guard of this range.
    #[inline(always)]
    fn entry((form, word): Raw<'g, K>) -> Entry<'g, K, V> {
        // SAFETY: M1: the word is that of a value. It was read under the guard of the range, which
        // lives as long as `'g` (M3).
        (Map::<K, V, I>::key_of(form), unsafe { ValueRef::new(word) })
    }
}

impl<'g, K: Key, V: Value, I: MapIndex<Key = K::Form>> Iterator for Range<'g, K, V, I> {
    type Item = Entry<'g, K, V>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_word().map(Self::entry)
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> DoubleEndedIterator for Range<'_, K, V, I> {
    #[inline]
    fn next_back(&mut self) -> Option<Self::Item> {
        self.next_back_word().map(Self::entry)
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> fmt::Debug for Range<'_, K, V, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").finish_non_exhaustive()
    }
}

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Map<K, V, I> {
    pub(super) fn do_range<'g>(
        &'g self,
        range: impl KeyRange<K>,
        guard: &'g Guard,
    ) -> Range<'g, K, V, I> {
        Range::new(self, range.keep(), guard)
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
            // index's own and not its bounds (clause 5 of `MapIndex`).
            bound.map(|form| unsafe { <K::Form as Form>::lengthen(form) })
        };
        let bounds = (lend(bounds.0), lend(bounds.1));
        let (form, word) = if REV {
            self.index.range_rev(bounds, pin.guard).next()
        } else {
            self.index.range(bounds, pin.guard).next()
        }?;
        Some((key_of(form), self.values.lent(word, pin)))
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

impl<K: Key, V: Value, I: MapIndex<Key = K::Form>> Range<'_, K, V, I> {
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
    pub(super) fn sweep_all(
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
                self.values.taken(word, guard.into());
            }
            Ok(removed.is_some())
        })
    }
}

impl<K: Key<Form = [u8]>, V: Value, I: MapIndex<Key = [u8]>> Map<K, V, I> {
    pub(super) fn prefixed(prefix: &impl AsPrefix<K>) -> Kept<K> {
        prefix.with_prefix(|bytes| (Bound::Included(bytes.to_vec()), behind(bytes)))
    }

    pub(super) fn do_prefix<'g>(
        &'g self,
        prefix: &impl AsPrefix<K>,
        guard: &'g Guard,
    ) -> Range<'g, K, V, I> {
        Range::new(self, Self::prefixed(prefix), guard)
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
