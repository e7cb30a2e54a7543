//! Ranges of a map of any order.

use super::order::{Comparator, Compares};
use super::slot::Memo;
use super::tree::{Asked, Ends, Scan, Words};
use super::{Entry, OrdMap};
use crate::ca::build::Build;
use crate::domain::{Guard, Under};
use crate::error::AllocError;
use crate::map::value::{Value, ValueRef, fetch, inline};
use crate::update::Update;
use silvics_pool::Placement;
use std::cmp::Ordering;
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::mem::replace;
use std::ops::{Bound, RangeBounds, RangeFull};

/// The most entries that are read ahead.
const AHEAD: usize = 16;

/// A scan from one end of a range. It reads some entries ahead, the longer it is the more, and
/// prefetches what they lead to.
struct Side<'g, K: Value, C: Comparator<K>, P: Placement, B: Build, const DESCENDS: bool> {
    scan: Scan<'g, K, C, P, B, DESCENDS>,
    read: [Words; AHEAD],
    at: usize,
    len: usize,
    /// The number of entries to read next.
    wanted: usize,
}

impl<'g, K: Value, C: Comparator<K>, P: Placement, B: Build, const DESCENDS: bool>
    Side<'g, K, C, P, B, DESCENDS>
{
    fn new(scan: Scan<'g, K, C, P, B, DESCENDS>) -> Self {
        Self { scan, read: [(0, 0); AHEAD], at: 0, len: 0, wanted: 1 }
    }

    /// Reads entries ahead.
    #[inline(never)]
    fn read<V: Value>(&mut self, ends: Ends<'_, '_, K, C>) {
        (self.at, self.len) = (0, 0);
        while self.len < self.wanted {
            let Some((key, value)) = self.scan.next(ends) else { break };
            if !inline::<K>() {
                fetch::<K>(key);
            }
            if !inline::<V>() {
                fetch::<V>(value);
            }
            self.read[self.len] = (key, value);
            self.len += 1;
        }
        self.wanted = (4 * self.wanted).min(AHEAD);
    }

    /// The next entry among those that were read.
    #[inline(always)]
    fn next(&mut self) -> Option<Words> {
        let next = *self.read[..self.len].get(self.at)?;
        self.at += 1;
        Some(next)
    }
}

/// The scans that a range has begun.
#[allow(clippy::large_enum_variant)] // a range is made once and read many times
enum State<'g, K: Value, C: Comparator<K>, P: Placement, B: Build> {
    /// No entry has been taken.
    Fresh,
    /// All entries have been taken from the front.
    Ascends(Side<'g, K, C, P, B, false>),
    /// All entries have been taken from the back.
    Descends(Side<'g, K, C, P, B, true>),
    /// Entries have been taken from both ends.
    Meets(Box<Meeting<'g, K, C, P, B>>),
    /// No entry is left.
    Over,
}

/// An ascending and a descending scan of one range.
///
/// `head` and `tail` are the next entry of each scan, which the range has not returned. The range
/// returns `head` from the front and `tail` from the back while `head` is not behind `tail`. Each
/// scan passes every key that stays present. So a key that stays present and has not been returned
/// is neither before `head` nor behind `tail`, and the range is not over.
struct Meeting<'g, K: Value, C: Comparator<K>, P: Placement, B: Build> {
    ascent: Side<'g, K, C, P, B, false>,
    descent: Side<'g, K, C, P, B, true>,
    head: Words,
    tail: Words,
}

/// A scan of an [`OrdView`](super::OrdView), with the guarantee of
/// [`OrdView::range`](super::OrdView::range).
///
/// A range descends into the map when its first entry is taken from either end. It stays on the
/// thread of its view.
///
/// ```compile_fail,E0277
/// let map: silvics::OrdMap<String, u64> = silvics::OrdMap::new();
/// let view = map.pin();
/// let range = view.iter();
/// std::thread::scope(|scope| {
///     scope.spawn(move || range.count());
/// });
/// ```
pub struct Range<
    'g,
    K: Value,
    V: Value,
    C: Comparator<K>,
    P: Placement,
    B: Build,
    Q: ?Sized = K,
    R = RangeFull,
> {
    map: &'g OrdMap<K, V, C, P, B>,
    guard: Under<'g>,
    bounds: R,
    state: State<'g, K, C, P, B>,
    form: PhantomData<fn(&Q)>,
}

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build, Q: ?Sized, R> fmt::Debug
    for Range<'_, K, V, C, P, B, Q, R>
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_over = matches!(self.state, State::Over);
        f.debug_struct("Range").field("is_over", &is_over).finish_non_exhaustive()
    }
}

/// Calls `then` with both bounds of a range as a search takes them.
fn with_bounds<K, V, C, P, B, Q, T>(
    map: &OrdMap<K, V, C, P, B>,
    (low, high): (Bound<&Q>, Bound<&Q>),
    then: impl FnOnce(Bound<&Asked<'_, K, C>>, Bound<&Asked<'_, K, C>>) -> T,
) -> T
where
    K: Value,
    V: Value,
    C: Compares<K, Q>,
    P: Placement,
    B: Build,
    Q: ?Sized,
{
    map.with_bound(low, |low| map.with_bound(high, |high| then(low, high)))
}

impl<'g, K, V, C, P, B, Q, R> Range<'g, K, V, C, P, B, Q, R>
where
    K: Value,
    V: Value,
    C: Compares<K, Q>,
    P: Placement,
    B: Build,
    Q: ?Sized,
    R: RangeBounds<Q>,
{
    pub(super) fn new(
        map: &'g OrdMap<K, V, C, P, B>,
        range: R,
        guard: impl Into<Under<'g>>,
    ) -> Self {
        Self { map, guard: guard.into(), bounds: range, state: State::Fresh, form: PhantomData }
    }

    /// The next entry of a side.
    #[inline(always)]
    fn next_of<const DESCENDS: bool>(
        map: &OrdMap<K, V, C, P, B>,
        range: &R,
        side: &mut Side<'g, K, C, P, B, DESCENDS>,
    ) -> Option<Words> {
        side.next().or_else(|| {
            with_bounds(map, (range.start_bound(), range.end_bound()), |low, high| {
                side.read::<V>(if DESCENDS { [high, low] } else { [low, high] });
            });
            side.next()
        })
    }

    /// The next entry, from the back if `REV`.
    #[inline(always)]
    fn next_words<const REV: bool>(&mut self) -> Option<Words> {
        match &mut self.state {
            State::Ascends(side) if !REV => Self::next_of(self.map, &self.bounds, side),
            State::Descends(side) if REV => Self::next_of(self.map, &self.bounds, side),
            _ => self.turn::<REV>(),
        }
    }

    /// The next entry of a range that has not begun, or that is read from both ends.
    #[inline(never)]
    fn turn<const REV: bool>(&mut self) -> Option<Words> {
        let (map, range, guard) = (self.map, &self.bounds, self.guard);
        let ascent = || Side::new(map.tree.scan::<false>(guard));
        let descent = || Side::new(map.tree.scan::<true>(guard));
        let (mut ascent, mut descent) = match replace(&mut self.state, State::Over) {
            State::Over => return None,
            State::Fresh if REV => {
                self.state = State::Descends(descent());
                return self.next_words::<REV>();
            }
            State::Fresh => {
                self.state = State::Ascends(ascent());
                return self.next_words::<REV>();
            }
            State::Ascends(ascent) => (ascent, descent()),
            State::Descends(descent) => (ascent(), descent),
            State::Meets(meeting) => return self.meet::<REV>(meeting),
        };
        let head = Self::next_of(map, range, &mut ascent)?;
        let tail = Self::next_of(map, range, &mut descent)?;
        self.meet::<REV>(Box::new(Meeting { ascent, descent, head, tail }))
    }

    /// The next entry of a range that is read from both ends.
    fn meet<const REV: bool>(
        &mut self,
        mut meeting: Box<Meeting<'g, K, C, P, B>>,
    ) -> Option<Words> {
        let Meeting { ascent, descent, head, tail } = &mut *meeting;
        let order = self.map.compare_words(head.0, tail.0);
        if order == Ordering::Greater {
            return None;
        }
        let entry = if REV { *tail } else { *head };
        if order == Ordering::Equal {
            return Some(entry);
        }
        let next = if REV {
            Self::next_of(self.map, &self.bounds, descent)
        } else {
            Self::next_of(self.map, &self.bounds, ascent)
        };
        if let Some(next) = next {
            *(if REV { tail } else { head }) = next;
            self.state = State::Meets(meeting);
        }
        Some(entry)
    }
}

/// Implements the iterators of a range, whose entries come from the front by `next`, and from the
/// back by `back`.
macro_rules! iterators {
    (
        $range:ident<$K:ident $(, $V:ident)?>, $Item:ty,
        |$this:ident| next: $next:expr, back: $back:expr $(,)?
    ) => {
        impl<'g, $K, $($V,)? C, P, B, Q, R> Iterator for $range<'g, $K, $($V,)? C, P, B, Q, R>
        where
            $K: Value,
            $($V: Value,)?
            C: Compares<$K, Q>,
            P: Placement,
            B: Build,
            Q: ?Sized,
            R: RangeBounds<Q>,
        {
            type Item = $Item;

            #[inline]
            fn next(&mut self) -> Option<$Item> {
                let $this = self;
                $next
            }
        }

        impl<'g, $K, $($V,)? C, P, B, Q, R> DoubleEndedIterator
            for $range<'g, $K, $($V,)? C, P, B, Q, R>
        where
            $K: Value,
            $($V: Value,)?
            C: Compares<$K, Q>,
            P: Placement,
            B: Build,
            Q: ?Sized,
            R: RangeBounds<Q>,
        {
            #[inline]
            fn next_back(&mut self) -> Option<$Item> {
                let $this = self;
                $back
            }
        }

        impl<$K, $($V,)? C, P, B, Q, R> FusedIterator for $range<'_, $K, $($V,)? C, P, B, Q, R>
        where
            $K: Value,
            $($V: Value,)?
            C: Compares<$K, Q>,
            P: Placement,
            B: Build,
            Q: ?Sized,
            R: RangeBounds<Q>,
        {
        }
    };
}

pub(super) use iterators;

iterators!(
    Range<K, V>, Entry<'g, K, V>,
    // SAFETY: the entry was read under the guard.
    |this| next: this.next_words::<false>().map(|words| unsafe {
        OrdMap::<K, V, C, P, B>::entry_of(words)
    }),
    // SAFETY: likewise.
    back: this.next_words::<true>().map(|words| unsafe {
        OrdMap::<K, V, C, P, B>::entry_of(words)
    }),
);

impl<K: Value, V: Value, C: Comparator<K>, P: Placement, B: Build> OrdMap<K, V, C, P, B> {
    /// Calls `then` with a bound as a search takes it.
    fn with_bound<Q: ?Sized, T>(
        &self,
        bound: Bound<&Q>,
        then: impl FnOnce(Bound<&Asked<'_, K, C>>) -> T,
    ) -> T
    where
        C: Compares<K, Q>,
    {
        match bound {
            Bound::Unbounded => then(Bound::Unbounded),
            Bound::Included(key) => self.tree.with_asked(key, |key| then(Bound::Included(key))),
            Bound::Excluded(key) => self.tree.with_asked(key, |key| then(Bound::Excluded(key))),
        }
    }

    /// The order of two keys whose words were read under a pin that lives, or that stay in the
    /// tree.
    pub(super) fn compare_words(&self, a: u64, b: u64) -> Ordering {
        // SAFETY: O1: the words are those of keys, which were in the tree after the pin was taken.
        let (a, b) = unsafe { (ValueRef::<K>::new(a), ValueRef::<K>::new(b)) };
        self.tree.order().compare(&a, &b)
    }

    /// Removes the entries of a range for which `keep` does not hold, and returns their number.
    pub(super) fn do_retain<Q: ?Sized>(
        &self,
        bounds: (Bound<&Q>, Bound<&Q>),
        mut keep: impl FnMut(&K, &V) -> bool,
        guard: &Guard,
    ) -> Result<usize, AllocError>
    where
        C: Compares<K, Q>,
    {
        let mut scan = self.tree.scan::<false>(guard);
        let mut removed = 0;
        with_bounds(self, bounds, |low, high| {
            while let Some(words) = scan.next([low, high]) {
                removed += usize::from(self.remove_unless(words, &mut keep, guard)?);
            }
            Ok(removed)
        })
    }

    /// Removes an entry unless `keep` holds for it. Returns whether it did.
    fn remove_unless(
        &self,
        (mut key, mut value): Words,
        keep: &mut impl FnMut(&K, &V) -> bool,
        guard: &Guard,
    ) -> Result<bool, AllocError> {
        let memo = Memo::default();
        loop {
            // SAFETY: the entry was read under the guard.
            let entry = unsafe { Self::entry_of((key, value)) };
            if keep(&entry.0, &entry.1) {
                return Ok(false);
            }
            let verb = Update::CompareExchange { expected: Some(value), new: None };
            let remove =
                |asked: &Asked<'_, K, C>| self.tree.update(asked, None, Some(key), verb, guard);
            // SAFETY: likewise.
            match unsafe { self.tree.with_key(key, &memo, remove) }? {
                Some((same, found)) if same == key && found == value => {
                    self.values.taken(value, guard.into());
                    self.drop_some_keys();
                    return Ok(true);
                }
                // Another thread has replaced the value, or the whole entry by one that is equal.
                Some(now) => (key, value) = now,
                None => return Ok(false),
            }
        }
    }
}
