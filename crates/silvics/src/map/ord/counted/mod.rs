//! Maps whose entries are counted: what the crate `silvics-skipmap` is made of.
//!
//! An entry that an operation returns holds a count of the object that has its key and its value.
//! So it needs no pin: it may be kept, sent, and read after its removal. A pin costs less, and an
//! [`OrdMap`](crate::OrdMap) has no counts; this map is for programs that expect those of
//! `crossbeam-skiplist`.
//!
//! # Algorithm
//! The map is a tree as that of [`OrdMap`](crate::OrdMap), whose nodes have the head and the
//! address of each entry, and no values. The head of an integer is the integer.
//! ```text
//! insert: make the object with two counts, those of the map and of the result; one exchange puts
//!         it into the tree, in the place of an object with an equal key
//! get:    under a pin, find the object and add a count
//! remove: one exchange; mark the object as removed; when no pin is older, take off the map's count
//! drop of an entry: take off its count; the last one drops the key and the value
//! ```
//!
//! # Invariants
//! * E1: An object that an operation finds in the tree under a guard has the count of the map while
//!   the guard lives: it is taken off by `take_back`, after the guard (Q1 of `lfca`). So a reader
//!   adds its count to a live object.
//! * E2: Only the map's objects are compared, with each other and with keys that the caller asks
//!   for. All are of one `Shape`, whose functions the map was made with.
//! * E3: Each [`Entry`] has one count, and borrows the map. So when the map is dropped, none is
//!   left but those that were forgotten.
//! * E4: Destructors of keys and values run while no lock is held: in the drop of an entry, in a
//!   step along a range when it has unpinned, or where V2 of maps says.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | `state` | add a count | Relaxed | – | the one who adds has a count, or a guard (E1) |
//! | `state` | take off a count | AcqRel | each other | what others did with the object happens before its drop |
//! | `state` | mark, load of the mark | `SeqCst` | each other | a hint. A thread that finds no mark looks for the entry in the tree |

mod object;
mod steps;

pub use steps::Ends;

use super::numbers::{self, is_number, key_in, word_of};
use super::order::{borrowed_bytes_of, head_of, is_text};
use super::slot::{ByOrder, Keys, Memo, Probe, Slot};
use crate::ca::build::{Adaptive, Build};
use crate::domain::Guard;
use crate::error::{AllocError, Violation};
use crate::frame::Frame;
use crate::index::Options;
use crate::lfca::{Lfca, Scan, from_bound};
use crate::map::kept::{Kept, Objects};
use crate::update::Update;
use object::{ByFunction, EntrySlot, Header, ObjectMemory, Shape, address, header};
use silvics_pool::Pooled;
use std::borrow::Borrow;
use std::cell::Cell;
use std::cmp::Ordering;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::ops::Bound;

/// The entries in the nodes of the tree.
type InNodes = ByOrder<Header, ByFunction, Kept<ObjectMemory>, u64>;
type Tree<B> = Lfca<InNodes, Pooled, B>;
type Sought<'q> = Probe<'q, Header, ByFunction>;

/// See the [module](self). It is made for keys that are ordered when it is made. Keys and values
/// need not be `'static`: none outlives the map.
pub struct Map<K, V, B: Build = Adaptive> {
    tree: Tree<B>,
    /// Whether the entries belong to an [`IntoEntries`].
    is_moved_out: bool,
    /// It owns keys and values. A map of keys that live longer is no map of these keys, to which
    /// shorter-lived ones may be added.
    content: PhantomData<Cell<(K, V)>>,
}

// SAFETY: the objects have the keys and values, and their counts are atomics. A thread may drop
// those that another one has inserted.
unsafe impl<K: Send + Sync, V: Send + Sync, B: Build> Send for Map<K, V, B> {}
// SAFETY: likewise.
unsafe impl<K: Send + Sync, V: Send + Sync, B: Build> Sync for Map<K, V, B> {}

/// The fate of an entry with the key that is inserted.
pub enum IfPresent<'f, V> {
    /// It is replaced.
    Replace,
    /// It is kept.
    Keep,
    /// It is replaced if the function holds for its value.
    ReplaceIf(&'f dyn Fn(&V) -> bool),
}

/// An entry of a map, with a count. It can be kept for long.
pub struct Entry<'m, K, V, B: Build = Adaptive> {
    map: &'m Map<K, V, B>,
    slot: EntrySlot,
    /// The key, if it is a number.
    number: u64,
}

// SAFETY: a thread with the entry may read its key and value, and drop them. It uses the map.
unsafe impl<K: Send + Sync, V: Send + Sync, B: Build> Send for Entry<'_, K, V, B> {}
// SAFETY: likewise.
unsafe impl<K: Send + Sync, V: Send + Sync, B: Build> Sync for Entry<'_, K, V, B> {}

impl<'m, K, V, B: Build> Entry<'m, K, V, B> {
    /// An entry that has one of the object's counts.
    fn new(map: &'m Map<K, V, B>, slot: EntrySlot) -> Self {
        let number = if is_number::<K>() { word_of::<K>(slot.head()) } else { 0 };
        Self { map, slot, number }
    }

    /// An entry that was found in the tree of the map under a guard.
    fn held(map: &'m Map<K, V, B>, slot: EntrySlot) -> Self {
        // SAFETY: E1.
        unsafe { header(slot.word) }.hold(1);
        Self::new(map, slot)
    }

    /// The key.
    #[inline(always)]
    pub fn key(&self) -> &K {
        // SAFETY: the entry has a count of its object. A number is in the entry.
        unsafe {
            if is_number::<K>() { key_in(&self.number) } else { Shape::<K, V>::key(self.slot.word) }
        }
    }

    /// The value.
    #[inline(always)]
    pub fn value(&self) -> &V {
        // SAFETY: the entry has a count of its object.
        unsafe { Shape::<K, V>::value(self.slot.word) }
    }

    /// Whether a removal of the entry has noted itself, which it does after it has taken effect.
    pub fn is_marked(&self) -> bool {
        // SAFETY: the entry has a count of its object.
        unsafe { header(self.slot.word) }.is_removed()
    }

    /// Whether it is the same entry.
    pub fn is_same(&self, other: &Self) -> bool {
        self.slot.word == other.slot.word
    }

    /// Whether the entry is not in the map any more.
    pub fn is_removed(&self) -> bool {
        if self.is_marked() {
            return true;
        }
        // A removal may not have marked it yet.
        let guard = self.map.guard();
        let found = self.map.tree.look_up(&self.map.sought(self.slot, None), &guard);
        found.is_none_or(|(slot, _)| slot.word != self.slot.word)
    }

    /// Removes the entry, if it is still in the map. Returns whether it did.
    pub fn remove(&self) -> bool {
        let map = self.map;
        let found = map.with_memory(|guard| {
            let memo = Memo::default(); // its words are those of this guard
            let sought = map.sought(self.slot, Some(&memo));
            sought.search();
            let entry = (&sought, self.slot);
            let found = map.tree.change(entry, Some(self.slot), Update::Remove, guard)?;
            Ok(found.map(|(slot, _)| slot).filter(|slot| slot.word == self.slot.word))
        });
        if found.is_some() {
            // SAFETY: the entry has a count of its object.
            unsafe { header(self.slot.word) }.remove();
        }
        map.drop_some();
        found.is_some()
    }

    /// The next entry in the map, or the one before if `DESCENDS`. The entry itself may be removed.
    pub fn beside<const DESCENDS: bool>(&self) -> Option<Self> {
        let (map, guard) = (self.map, self.map.guard());
        let from = from_bound(Bound::Excluded(map.sought(self.slot, None)));
        let (slot, _) =
            Scan::<'_, _, _, _, DESCENDS>::new(&map.tree, &guard).next((&from, &None))?;
        Some(Self::held(map, slot))
    }
}

impl<K, V, B: Build> Clone for Entry<'_, K, V, B> {
    fn clone(&self) -> Self {
        Self::held(self.map, self.slot)
    }
}

impl<K, V, B: Build> Drop for Entry<'_, K, V, B> {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the entry has a count of its object, and uses it no more.
        unsafe { self.map.objects().memory().release(address(self.slot.word)) };
    }
}

/// Any two numbers whose heads are equal are.
const EQUAL: &dyn Fn(&Header) -> Ordering = &|_| Ordering::Equal;

/// A number that is sought.
fn sought_number<'q>(number: u64) -> Sought<'q> {
    Probe::asked(Some(number), EQUAL, None)
}

impl<K: Ord, V, B: Build> Map<K, V, B> {
    /// An empty map.
    pub fn new() -> Result<Self, AllocError> {
        let mut options = Options::default();
        options.shared_budget();
        let frame = Frame::new(&options);
        let config = frame.config.clone().starting_small();
        let memory = ObjectMemory::new::<K, V>(config);
        let keys = Kept::new(memory, &frame.domain, &frame.config.budget);
        let order = ByFunction::new::<K, V>();
        let tree = Lfca::ordered_by(frame, Keys { order, keys })?;
        Ok(Self { tree, is_moved_out: false, content: PhantomData })
    }

    /// Inserts an entry, unless the key is present and `present` says to keep it. Returns the entry
    /// that has the key then. Another one is dropped.
    pub fn insert(&self, key: K, value: V, present: &IfPresent<'_, V>) -> Entry<'_, K, V, B> {
        let draft = self.draft(key, value);
        let slot = draft.slot;
        let outcome = self.with_memory(|guard| {
            let memo = Memo::default(); // its words are those of this guard
            let sought = self.sought(slot, Some(&memo));
            let put = |only, verb| {
                sought.search();
                self.tree.change((&sought, slot), only, verb, guard)
            };
            let found = match present {
                IfPresent::Replace => put(None, Update::Insert(0))?,
                IfPresent::Keep => put(None, Update::TryInsert(0))?,
                IfPresent::ReplaceIf(condition) => loop {
                    let found = put(None, Update::TryInsert(0))?;
                    let Some((old, _)) = found else { break None };
                    // SAFETY: E1: it was found under the guard.
                    if !condition(unsafe { Shape::<K, V>::value(old.word) }) {
                        return Ok(Err(Entry::held(self, old)));
                    }
                    let found = put(Some(old), Update::Insert(0))?;
                    if found.is_none_or(|(found, _)| found.word == old.word) {
                        break found;
                    }
                },
            };
            match found {
                Some((old, _)) if matches!(present, IfPresent::Keep) => {
                    return Ok(Err(Entry::held(self, old)));
                }
                // SAFETY: E1: it was replaced under the guard.
                Some((old, _)) => unsafe { header(old.word) }.remove(),
                None => {}
            }
            Ok(Ok(()))
        });
        let entry = match outcome {
            Ok(()) => draft.placed(),
            Err(present) => {
                drop(draft);
                present
            }
        };
        self.drop_some();
        entry
    }

    /// Makes the object of an entry.
    fn draft(&self, key: K, value: V) -> Draft<'_, K, V, B> {
        let object = self.with_memory(|guard| self.objects().made(guard, ObjectMemory::alloc));
        // SAFETY: the memory is fresh, and for such objects.
        let slot = unsafe { Shape::<K, V>::init(object, key, value) };
        Draft { map: self, slot }
    }
}

/// An entry that is not in the map yet. Dropping it drops the key and the value.
struct Draft<'m, K, V, B: Build> {
    map: &'m Map<K, V, B>,
    slot: EntrySlot,
}

impl<'m, K, V, B: Build> Draft<'m, K, V, B> {
    /// The entry, which is in the map now.
    fn placed(self) -> Entry<'m, K, V, B> {
        let draft = ManuallyDrop::new(self);
        Entry::new(draft.map, draft.slot)
    }
}

impl<K, V, B: Build> Drop for Draft<'_, K, V, B> {
    fn drop(&mut self) {
        // SAFETY: nobody else has the object.
        unsafe { self.map.objects().memory().end(address(self.slot.word)) };
    }
}

impl<K, V, B: Build> Map<K, V, B> {
    #[inline(always)]
    fn objects(&self) -> &Kept<ObjectMemory> {
        &self.tree.order.keys
    }

    /// A guard of the map's domain. No lock is held, so objects without guards are dropped.
    #[inline(always)]
    fn guard(&self) -> Guard {
        self.drop_some();
        self.tree.frame().domain.pin()
    }

    #[inline(always)]
    fn drop_some(&self) {
        self.objects().drop_some();
    }

    /// Runs an operation under a guard. If it fails for lack of memory, it is run once more, after
    /// the map has returned what it can. The second failure ends the process, as one of `Box` does.
    fn with_memory<T>(&self, operation: impl Fn(&Guard) -> Result<T, AllocError>) -> T {
        let first = operation(&self.guard());
        let result = first.or_else(|_| {
            self.shrink();
            operation(&self.guard())
        });
        result.unwrap_or_else(|_| std::alloc::handle_alloc_error(Shape::<K, V>::layout()))
    }

    /// The key of an entry.
    #[inline(always)]
    fn sought<'q>(&'q self, slot: EntrySlot, memo: Option<&'q Memo>) -> Sought<'q> {
        if is_number::<K>() {
            return sought_number(slot.head());
        }
        // SAFETY: the caller has the object of the slot, or a guard that keeps it.
        unsafe { Probe::of_key(slot.head(), slot.word, &self.tree.order, memo) }
    }

    /// Calls `then` with a value that stands for a key. No number may be equal to it: then the
    /// result is that of `none`.
    #[inline(always)]
    fn with_sought<Q: Ord + ?Sized, R>(
        asked: &Q,
        memo: Option<&Memo>,
        none: impl FnOnce() -> R,
        then: impl FnOnce(&Sought<'_>) -> R,
    ) -> R
    where
        K: Borrow<Q>,
    {
        if is_number::<K>() {
            let number = Self::position(asked).if_exact();
            return number.map_or_else(none, |number| then(&sought_number(number)));
        }
        let compare = |other: &Header| {
            let word = std::ptr::from_ref(other).addr() as u64;
            // SAFETY: E2, and the caller's guard keeps the object (E1).
            unsafe { Shape::<K, V>::key(word) }.borrow().cmp(asked)
        };
        then(&Probe::asked(Self::asked_head(asked), &compare, memo))
    }

    /// The place of a value among keys that are numbers.
    #[inline(always)]
    fn position<Q: Ord + ?Sized>(asked: &Q) -> numbers::Position
    where
        K: Borrow<Q>,
    {
        numbers::position::<K, Q>(asked, |key| key.borrow().cmp(asked))
    }

    /// The head of the key that a value stands for, if it is known.
    #[inline(always)]
    fn asked_head<Q: ?Sized>(asked: &Q) -> Option<u64> {
        if is_text::<K>() { borrowed_bytes_of(asked).map(head_of) } else { Some(0) }
    }

    /// The entry of a key.
    #[inline]
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<Entry<'_, K, V, B>>
    where
        K: Borrow<Q>,
    {
        let guard = self.guard();
        let look_up = |sought: &Sought<'_>| self.tree.look_up(sought, &guard);
        let (slot, _) = Self::with_sought(key, None, || None, look_up)?;
        Some(Entry::held(self, slot))
    }

    /// Whether a key is present. It adds no count.
    #[inline]
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let guard = self.guard();
        let look_up = |sought: &Sought<'_>| self.tree.look_up(sought, &guard);
        Self::with_sought(key, None, || None, look_up).is_some()
    }

    /// Removes a key, and returns its entry.
    pub fn remove<Q: Ord + ?Sized>(&self, key: &Q) -> Option<Entry<'_, K, V, B>>
    where
        K: Borrow<Q>,
    {
        let removed = self.with_memory(|guard| {
            let memo = Memo::default(); // its words are those of this guard
            let remove = |sought: &Sought<'_>| {
                sought.search();
                self.tree.change((sought, Slot::new(0, 0)), None, Update::Remove, guard)
            };
            let removed = Self::with_sought(key, Some(&memo), || Ok(None), remove)?;
            Ok(removed.map(|(slot, _)| self.taken_out(slot)))
        });
        self.drop_some();
        removed
    }

    /// The first entry, or the last one.
    pub fn end<const LAST: bool>(&self) -> Option<Entry<'_, K, V, B>> {
        let guard = self.guard();
        let (slot, _) = self.tree.end_entry::<LAST>(&guard)?;
        Some(Entry::held(self, slot))
    }

    /// Removes the first entry, or the last one, and returns it.
    pub fn pop<const LAST: bool>(&self) -> Option<Entry<'_, K, V, B>> {
        let popped = self.with_memory(|guard| {
            let popped = self.tree.pop_entry::<LAST>(guard)?;
            Ok(popped.map(|(slot, _)| self.taken_out(slot)))
        });
        self.drop_some();
        popped
    }

    /// An entry that the caller has taken out of the tree under a guard that still lives.
    fn taken_out(&self, slot: EntrySlot) -> Entry<'_, K, V, B> {
        // SAFETY: E1.
        unsafe { header(slot.word) }.remove();
        Entry::held(self, slot)
    }

    /// The number of entries: see [`OrdMap::len`](crate::OrdMap::len).
    pub fn len(&self) -> usize {
        self.tree.frame().len.sum().max(0) as usize
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the map holds from the system, exactly.
    pub fn bytes(&self) -> usize {
        self.tree.frame().config.budget.held()
    }

    /// Takes the map's counts off the removed entries that no pin protects: all that this thread or
    /// an ended one removed, and those of full batches of other threads. Then returns empty slabs
    /// to the system, and the number of their bytes.
    pub fn shrink(&self) -> usize {
        self.objects().flush();
        self.objects().memory().shrink() + self.tree.memory().shrink()
    }

    /// Verifies the invariants of the tree, and that the keys ascend. Returns the number of
    /// entries.
    pub fn check(&mut self) -> Result<usize, Violation> {
        self.tree.check_bounds()?;
        self.tree.check_quiescent(&mut |_| ())
    }

    /// Moves the entries out, in ascending order.
    pub fn into_entries(self) -> IntoEntries<K, V, B> {
        let mut slots = Vec::with_capacity(self.len());
        // SAFETY: access is exclusive.
        unsafe { self.tree.each_entry(|slot, _| slots.push(slot)) };
        let mut map = self;
        map.is_moved_out = true;
        IntoEntries { map, slots: slots.into_iter() }
    }
}

impl<K, V, B: Build> Drop for Map<K, V, B> {
    fn drop(&mut self) {
        let memory = self.objects().memory();
        if memory.has_destructors() {
            if !self.is_moved_out {
                // SAFETY: access is exclusive. E3: no entry is left, and each object comes once.
                unsafe { self.tree.each_entry(|slot, _| memory.drop_in_map(address(slot.word))) };
            }
            for slot in self.tree.bounds_without_entries() {
                // SAFETY: the entry is removed, and was not retired: the map still has its count.
                unsafe { memory.take_back(address(slot.word)) };
            }
        }
        self.tree.free_nodes();
    }
}

/// The entries of a map that is no more.
pub struct IntoEntries<K, V, B: Build = Adaptive> {
    map: Map<K, V, B>,
    slots: std::vec::IntoIter<EntrySlot>,
}

impl<K, V, B: Build> Iterator for IntoEntries<K, V, B> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        // SAFETY: E2, E3: nobody else uses the object, and the map drops no content.
        self.slots.next().map(|slot| unsafe { Shape::take(slot) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.slots.size_hint()
    }
}

impl<K, V, B: Build> Drop for IntoEntries<K, V, B> {
    fn drop(&mut self) {
        let memory = self.map.objects().memory();
        for slot in self.slots.by_ref() {
            // SAFETY: as in `next`.
            unsafe { memory.drop_in_map(address(slot.word)) };
        }
    }
}
