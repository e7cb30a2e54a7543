//! The tree of a map of any order: one whose nodes have numbers, or one whose nodes have addresses
//! of keys, with their heads or without.
//!
//! Integers in their natural order are kept as [`LfcaTree`](crate::LfcaTree) keeps them: nodes have
//! the numbers themselves, and no function compares them. The compiler knows which of the three a
//! map has.

use super::numbers::{self, Position};
use super::order::{Comparator, Compares, Natural};
use super::slot::{ByOrder, Head, Keys, Memo, Probe, Slot};
use crate::ca::build::Build;
use crate::domain::{Domain, Guard, Under};
use crate::error::{AllocError, Violation, reserved};
use crate::frame::{Frame, See};
use crate::lfca::{self, Lfca, from_bound};
use crate::map::value::{Draft, Value, ValueRef, Values};
use crate::memory::Memory;
use crate::update::Update;
use silvics_pool::Placement;
use std::any::TypeId;
use std::cmp::Ordering;
use std::ops::Bound;

/// An entry: the word of its key, and that of its value.
pub(super) type Words = (u64, u64);

/// Keys in slots of their own.
type Keyed<K, C, P, H> = ByOrder<K, C, Values<K, P>, H>;

/// See the [module](self).
#[allow(clippy::large_enum_variant)] // a map has one of them for its life
pub(super) enum Tree<K: Value, C: Comparator<K>, P: Placement, B: Build> {
    Numbers(Lfca<u64, P, B>, C),
    Headed(Lfca<Keyed<K, C, P, u64>, P, B>),
    Plain(Lfca<Keyed<K, C, P, ()>, P, B>),
}

/// Whether nodes have the keys themselves. The compiler evaluates it.
#[inline(always)]
fn are_numbers<K: 'static, C: 'static>() -> bool {
    TypeId::of::<C>() == TypeId::of::<Natural>() && numbers::is_number::<K>()
}

/// Evaluates an expression with the tree of a map, one for numbers and one for addresses of keys.
macro_rules! with {
    ($of:expr, $numbers:ident => $of_numbers:expr, $keys:ident => $of_keys:expr) => {
        match $of {
            Self::Numbers($numbers, ..) if are_numbers::<K, C>() => $of_numbers,
            Self::Headed($keys) if !are_numbers::<K, C>() => $of_keys,
            Self::Plain($keys) if !are_numbers::<K, C>() => $of_keys,
            _ => unreachable!("as `Tree::new` has made it"),
        }
    };
}

/// A key that is searched.
pub(super) enum Asked<'q, K, C> {
    Number(Position),
    Key(Probe<'q, K, C>),
}

impl<'q, K, C> Asked<'q, K, C> {
    fn position(&self) -> Position {
        match self {
            Self::Number(position) => *position,
            Self::Key(_) => unreachable!("as `asking` has made it"),
        }
    }

    fn probe(&self) -> Probe<'q, K, C> {
        match self {
            Self::Key(probe) => *probe,
            Self::Number(_) => unreachable!("as `asking` has made it"),
        }
    }
}

/// A key on its way into a map.
pub(super) enum New<'m, K: Value, P: Placement> {
    /// A number, which is as good as any equal one.
    Number(u64),
    Key(Draft<'m, K, P>, u64),
}

impl<K: Value, P: Placement> New<'_, K, P> {
    /// The key is in the tree.
    #[inline(always)]
    pub(super) fn placed(self) {
        if let Self::Key(draft, _) = self {
            draft.placed();
        }
    }

    fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            Self::Key(..) => unreachable!("as `Tree::draft` has made it"),
        }
    }

    #[inline(always)]
    fn slot<H: Head>(&self) -> Slot<H> {
        match self {
            Self::Key(draft, head) => Slot::new(*head, draft.word()),
            Self::Number(_) => unreachable!("as `Tree::draft` has made it"),
        }
    }

    /// Compares two keys that are to be inserted.
    pub(super) fn compare<C: Comparator<K>>(&self, other: &Self, order: &C) -> Ordering {
        match (self, other) {
            (Self::Number(number), Self::Number(other)) => number.cmp(other),
            (Self::Key(key, _), Self::Key(other, _)) => {
                // SAFETY: the words are those of keys, which the drafts keep.
                let [key, other] =
                    [key, other].map(|draft| unsafe { ValueRef::<K>::new(draft.word()) });
                order.compare(&key, &other)
            }
            _ => unreachable!("as `Tree::draft` has made them"),
        }
    }

    /// The key, which is not in the tree.
    #[cold]
    pub(super) fn into_key(self) -> K {
        match self {
            Self::Number(number) => {
                let word = numbers::word_of::<K>(number);
                // SAFETY: the word is that of an integer of this type, which is `Copy`.
                unsafe { std::ptr::from_ref(numbers::key_in::<K>(&word)).read() }
            }
            Self::Key(draft, _) => draft.into_value(),
        }
    }
}

impl<K: Value, C: Comparator<K>, P: Placement, B: Build> Tree<K, C, P, B> {
    pub(super) fn new(frame: Frame, order: C) -> Result<Self, AllocError> {
        if are_numbers::<K, C>() {
            return Lfca::ordered_by(frame, ()).map(|tree| Self::Numbers(tree, order));
        }
        let keys = Values::new("key", || frame.config.clone(), &frame.domain);
        let held = Keys { order, keys };
        if C::has_heads() {
            Lfca::ordered_by(frame, held).map(Self::Headed)
        } else {
            Lfca::ordered_by(frame, held).map(Self::Plain)
        }
    }

    #[inline(always)]
    pub(super) fn frame(&self) -> &Frame {
        with!(self, tree => tree.frame(), tree => tree.frame())
    }

    #[inline(always)]
    pub(super) fn domain(&self) -> &Domain {
        &self.frame().domain
    }

    pub(super) fn memory(&self) -> &dyn Memory {
        with!(self, tree => tree.memory(), tree => tree.memory())
    }

    pub(super) fn memory_mut(&mut self) -> &mut dyn Memory {
        with!(self, tree => tree.memory_mut(), tree => tree.memory_mut())
    }

    /// The order and the keys, unless nodes have the keys.
    #[inline(always)]
    fn held(&self) -> Option<&Keys<C, Values<K, P>>> {
        with!(self, _tree => None, tree => Some(&tree.order))
    }

    /// The keys, unless nodes have them.
    #[inline(always)]
    pub(super) fn keys(&self) -> Option<&Values<K, P>> {
        self.held().map(|held| &held.keys)
    }

    pub(super) fn keys_mut(&mut self) -> Option<&mut Values<K, P>> {
        with!(self, _tree => None, tree => Some(&mut tree.order.keys))
    }

    #[inline(always)]
    pub(super) fn order(&self) -> &C {
        match (self, self.held()) {
            (_, Some(held)) => &held.order,
            (Self::Numbers(_, order), None) => order,
            _ => unreachable!("only numbers lie in nodes"),
        }
    }

    /// Calls `then` with what one search needs of a value that stands for a key.
    #[inline(always)]
    pub(super) fn with_asked<Q: ?Sized, R>(
        &self,
        asked: &Q,
        then: impl FnOnce(&Asked<'_, K, C>) -> R,
    ) -> R
    where
        C: Compares<K, Q>,
    {
        self.asking(asked, None, then)
    }

    /// Calls `then` with what repeated searches need of a value that stands for a key.
    #[inline(always)]
    pub(super) fn with_remembered<Q: ?Sized, R>(
        &self,
        asked: &Q,
        then: impl FnOnce(&Asked<'_, K, C>) -> R,
    ) -> R
    where
        C: Compares<K, Q>,
    {
        self.asking(asked, Some(&Memo::default()), then)
    }

    #[inline(always)]
    fn asking<Q: ?Sized, R>(
        &self,
        asked: &Q,
        memo: Option<&Memo>,
        then: impl FnOnce(&Asked<'_, K, C>) -> R,
    ) -> R
    where
        C: Compares<K, Q>,
    {
        let order = self.order();
        let compare = |key: &K| order.compare_with(key, asked);
        if are_numbers::<K, C>() {
            return then(&Asked::Number(numbers::position::<K, Q>(asked, compare)));
        }
        then(&Asked::Key(Probe::asked(order.head_of(asked), &compare, memo)))
    }

    /// Moves a key into its place, before it is inserted.
    #[inline(always)]
    pub(super) fn draft(&self, key: K, guard: &Guard) -> Result<New<'_, K, P>, (K, AllocError)> {
        let Some(held) = self.held() else { return Ok(New::Number(numbers::number_of(&key))) };
        let head = held.order.head(&key); // code of the user, which may panic
        held.keys.draft(key, guard).map(|draft| New::Key(draft, head))
    }

    /// Fills a new tree with entries whose keys ascend. It compares nothing.
    ///
    /// # Safety
    /// No other thread uses the tree, and nothing was inserted into it. If this succeeds, it owns
    /// the keys and values of the entries.
    pub(super) unsafe fn load(&self, entries: &[(New<'_, K, P>, u64)]) -> Result<(), AllocError> {
        // SAFETY: our contract.
        unsafe {
            with!(
                self,
                tree => tree.load_checked(&converted(entries, New::number)?, 1),
                tree => tree.load_checked(&converted(entries, New::slot)?, 1)
            )
        }
    }

    /// Calls `then` with what a search needs of a key of the map.
    ///
    /// # Safety
    /// The word of the key was read under a guard that lives during the call (O1).
    pub(super) unsafe fn with_key<R>(
        &self,
        word: u64,
        memo: &Memo,
        then: impl FnOnce(&Asked<'_, K, C>) -> R,
    ) -> R {
        // SAFETY: our contract: the word is that of a key, which stays readable.
        let key = unsafe { ValueRef::<K>::new(word) };
        let Some(held) = self.held() else {
            return then(&Asked::Number(Position::exactly(numbers::number_of(&*key))));
        };
        let head = held.order.head(&key);
        // SAFETY: our contract: likewise.
        then(&Asked::Key(unsafe { Probe::of_key(head, word, held, Some(memo)) }))
    }

    /// Calls `then` with what a search needs of a new key.
    #[inline(always)]
    pub(super) fn with_new<R>(
        &self,
        new: &New<'_, K, P>,
        then: impl FnOnce(&Asked<'_, K, C>) -> R,
    ) -> R {
        match (new, self.held()) {
            (New::Key(draft, head), Some(held)) => {
                let memo = Memo::default();
                // SAFETY: the draft lives as long as the call.
                then(&Asked::Key(unsafe { Probe::of_key(*head, draft.word(), held, Some(&memo)) }))
            }
            (New::Number(number), None) => then(&Asked::Number(Position::exactly(*number))),
            _ => unreachable!("as `draft` has made it"),
        }
    }

    /// The entry of a key.
    #[inline(always)]
    pub(super) fn get(&self, asked: &Asked<'_, K, C>, guard: &Guard) -> Option<Words> {
        with!(
            self,
            tree => {
                let (number, value) = tree.look_up(&asked.position().if_exact()?, guard)?;
                Some((numbers::word_of::<K>(number), value))
            },
            tree => {
                let (slot, value) = tree.look_up(&asked.probe(), guard)?;
                Some((slot.word, value))
            }
        )
    }

    /// See [`OrderedIndex::update`](crate::OrderedIndex::update). A verb that may put needs the new
    /// key. Returns the entry that was found. If it has another key than `only`, it stays.
    #[inline(always)]
    pub(super) fn update(
        &self,
        asked: &Asked<'_, K, C>,
        new: Option<&New<'_, K, P>>,
        only: Option<u64>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<Words>, AllocError> {
        with!(
            self,
            tree => {
                let Some(number) = asked.position().if_exact() else { return Ok(None) };
                let found = tree.change((&number, number), None, verb, guard)?;
                Ok(found.map(|(number, value)| (numbers::word_of::<K>(number), value)))
            },
            tree => {
                // Without a new key, nothing is put.
                let slot = new.map_or_else(|| Slot::new(0, 0), New::slot);
                let only = only.map(|word| Slot::new(0, word));
                let probe = asked.probe();
                probe.search();
                let found = tree.change((&probe, slot), only, verb, guard)?;
                Ok(found.map(|(slot, value)| (slot.word, value)))
            }
        )
    }

    /// The first entry, or the last one.
    pub(super) fn end<const LAST: bool>(&self, guard: &Guard) -> Option<Words> {
        with!(
            self,
            tree => {
                let (number, value) = tree.end_entry::<LAST>(guard)?;
                Some((numbers::word_of::<K>(number), value))
            },
            tree => {
                let (slot, value) = tree.end_entry::<LAST>(guard)?;
                Some((slot.word, value))
            }
        )
    }

    /// Removes the first entry, or the last one, and returns it.
    pub(super) fn pop<const LAST: bool>(&self, guard: &Guard) -> Result<Option<Words>, AllocError> {
        Ok(with!(
            self,
            tree => {
                let popped = tree.pop_entry::<LAST>(guard)?;
                popped.map(|(number, value)| (numbers::word_of::<K>(number), value))
            },
            tree => tree.pop_entry::<LAST>(guard)?.map(|(slot, value)| (slot.word, value))
        ))
    }

    #[inline(always)]
    pub(super) fn scan<'g, const DESCENDS: bool>(
        &'g self,
        guard: impl Into<Under<'g>>,
    ) -> Scan<'g, K, C, P, B, DESCENDS> {
        match self {
            Self::Numbers(tree, _) => Scan::Numbers(lfca::Scan::new(tree, guard)),
            Self::Headed(tree) => Scan::Headed(lfca::Scan::new(tree, guard)),
            Self::Plain(tree) => Scan::Plain(lfca::Scan::new(tree, guard)),
        }
    }

    /// Verifies what the tree relies on whatever the order of the keys is.
    pub(super) fn check_bounds(&mut self) -> Result<(), Violation> {
        with!(self, _tree => Ok(()), tree => tree.check_bounds())
    }

    pub(super) fn check(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        with!(self, tree => tree.check_quiescent(see), tree => tree.check_quiescent(see))
    }

    /// Calls `each` with all entries in the order of the tree. It reads no keys.
    ///
    /// # Safety
    /// No other thread changes the tree.
    pub(super) unsafe fn each_entry(&self, mut each: impl FnMut(Words)) {
        // SAFETY: our contract.
        unsafe {
            with!(
                self,
                tree => tree.each_entry(|number, value| {
                    each((numbers::word_of::<K>(number), value));
                }),
                tree => tree.each_entry(|slot, value| each((slot.word, value)))
            );
        }
    }

    /// The words of keys that are bounds of route nodes only.
    pub(super) fn bounds_without_entries(&self) -> Vec<u64> {
        with!(
            self,
            _tree => Vec::new(),
            tree => tree.bounds_without_entries().into_iter().map(|slot| slot.word).collect()
        )
    }

    /// Frees all nodes. Access is exclusive, and nothing uses the tree afterwards.
    pub(super) fn free_nodes(&mut self) {
        with!(self, tree => tree.free_nodes(), tree => tree.free_nodes());
    }
}

/// Entries with other forms of their keys.
fn converted<N, T>(
    entries: &[(N, u64)],
    convert: impl Fn(&N) -> T,
) -> Result<Vec<(T, u64)>, AllocError> {
    let mut list = Vec::new();
    let new = entries.iter().map(|(key, value)| (convert(key), *value));
    reserved(&mut list, entries.len())?.extend(new);
    Ok(list)
}

/// A scan of a tree, in descending order if it `DESCENDS`.
#[allow(clippy::large_enum_variant)] // a scan is one of them for its life
pub(super) enum Scan<'g, K: Value, C: Comparator<K>, P: Placement, B: Build, const DESCENDS: bool> {
    Numbers(lfca::Scan<'g, u64, P, B, DESCENDS>),
    Headed(lfca::Scan<'g, Keyed<K, C, P, u64>, P, B, DESCENDS>),
    Plain(lfca::Scan<'g, Keyed<K, C, P, ()>, P, B, DESCENDS>),
}

/// The two ends of a scan, in its direction.
pub(super) type Ends<'a, 'q, K, C> = [Bound<&'a Asked<'q, K, C>>; 2];

impl<K: Value, C: Comparator<K>, P: Placement, B: Build, const DESCENDS: bool>
    Scan<'_, K, C, P, B, DESCENDS>
{
    /// The next entry. Each call gets the same ends.
    #[inline(always)]
    pub(super) fn next(&mut self, [start, end]: Ends<'_, '_, K, C>) -> Option<Words> {
        with!(
            self,
            scan => {
                let number = |bound: Bound<&Asked<'_, K, C>>, is_low: bool| {
                    numbers::bound(bound.map(Asked::position), is_low)
                };
                let start = from_bound(number(start, !DESCENDS));
                let end = from_bound(number(end, DESCENDS));
                let (number, value) = scan.next((&start, &end))?;
                Some((numbers::word_of::<K>(number), value))
            },
            scan => {
                let (start, end) = (from_bound(start.map(Asked::probe)), from_bound(end.map(Asked::probe)));
                let (slot, value) = scan.next((&start, &end))?;
                Some((slot.word, value))
            }
        )
    }
}
