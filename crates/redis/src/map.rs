//! The type behind a key of the server: an ordered map from byte strings to byte strings.
//!
//! # Invariants
//! * B1: every word in the tree is that of a value whose block belongs to the tree (T1 of
//!   [`value`](crate::value)). The call that takes a word out of the tree retires its block, under
//!   the guard of the call.
//! * B2: views borrow the map, so none is left when the map is dropped.

use crate::value::{Digits, OutOfMemory, Value, Values, block_of};
use silvics::domain::{Garbage, Owner, Unprotected};
use silvics::error::{AllocError, BulkLoadError, TryInsertError};
use silvics::{
    BlockTree, Budget, Heap, Lookup, Options, OrderedIndex, OrderedScan, Pinned, Shared,
};
use std::fmt;
use std::num::NonZeroUsize;
use std::ops::Bound;
use std::sync::Arc;

type Tree = BlockTree<[u8], Shared>;

/// The two ends of a range of keys.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// An entry that borrows a view.
pub type Entry<'v> = (&'v [u8], Value<'v>);

/// An ordered map with byte keys, whose memory comes from a heap of the server, object by object.
///
/// Any thread may read it at any time. All writes come from one thread, the server's event loop;
/// the methods of [`ByteView`] that decide by an entry's state rely on this.
pub struct ByteMap {
    tree: Tree,
    /// The blocks of the values, and those that wait to be freed.
    values: Garbage<Values>,
    heap: Arc<dyn Heap>,
    id: u64,
}

/// A [`ByteMap`] with its domain pinned.
pub struct ByteView<'m> {
    map: &'m ByteMap,
    tree: Pinned<'m, Tree>,
}

/// When [`ByteView::set`] writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Condition {
    /// Always.
    #[default]
    Always,
    /// Only if the key is absent.
    Absent,
    /// Only if the key is present.
    Present,
}

/// The outcome of [`ByteView::set`].
#[derive(Debug)]
pub struct Set<'v> {
    /// Whether it has written.
    pub written: bool,
    /// The value before the call.
    pub old: Option<Value<'v>>,
}

/// The reason why an entry was not written. The map is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WriteError {
    /// An allocation failed.
    OutOfMemory,
    /// The key is too long.
    KeyLength {
        /// The bytes of the key.
        bytes: usize,
        /// The most bytes that a key can have.
        limit: usize,
    },
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfMemory => {
                write!(
                    f,
                    "the server has no memory for the entry: free some, and repeat the command"
                )
            }
            Self::KeyLength { bytes, limit } => {
                write!(f, "the key has {bytes} bytes: use keys of at most {limit} bytes")
            }
        }
    }
}

impl std::error::Error for WriteError {}

impl From<OutOfMemory> for WriteError {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<AllocError> for WriteError {
    fn from(error: AllocError) -> Self {
        match error {
            AllocError::KeyLength { bytes, limit } => Self::KeyLength { bytes, limit },
            _ => Self::OutOfMemory,
        }
    }
}

/// The use of the bytes that a map holds. Nodes and blocks that were removed are included while a
/// scan may read them. The fixed parts of a map, some hundred bytes, are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All bytes, as the heap counts them.
    pub total: usize,
    /// The bytes of the tree: nodes, keys, and words.
    pub tree: usize,
    /// The bytes of values that are not in the words of the tree.
    pub values: usize,
}

impl ByteMap {
    /// Makes an empty map whose memory comes from `heap`. The id tells maps apart, so that a cursor
    /// is not used with another map.
    pub fn new(heap: Arc<dyn Heap>, id: u64) -> Result<Self, WriteError> {
        let budget = Arc::new(Budget::new(None));
        let options = Options {
            heap: Some(Arc::clone(&heap)),
            budget: Some(Arc::clone(&budget)),
            ..Options::default()
        };
        let tree = Tree::with_options(&options)?;
        let values = Values::new(Arc::clone(&heap));
        let values = Garbage::new(values, tree.domain().clone(), &budget);
        Ok(Self { tree, values, heap, id })
    }

    /// Makes a map with the entries of another one.
    pub fn copy_of(other: &Self, id: u64) -> Result<Self, WriteError> {
        let mut load = Load::new(Self::new(Arc::clone(&other.heap), id)?);
        let (view, mut digits) = (other.pin(), Digits::default());
        for (key, value) in view.range((Bound::Unbounded, Bound::Unbounded)) {
            load.push(key, value.bytes(&mut digits))?;
        }
        load.finish()
    }

    /// Pins the map for calls of this thread. Entries that are removed meanwhile are not freed.
    #[inline]
    pub fn pin(&self) -> ByteView<'_> {
        ByteView { map: self, tree: self.tree.pin() }
    }

    /// A guard for [`ByteMap::scan_under`].
    ///
    /// # Safety
    /// No thread writes to the map until the last use of the guard. In a child of `fork`, no thread
    /// was writing to it when the process was forked: see [`silvics::Domain::unprotected`].
    pub unsafe fn unprotected(&self) -> Unprotected {
        // SAFETY: the caller's promise. `scan_under` only scans.
        unsafe { self.tree.domain().unprotected() }
    }

    /// All entries in ascending order, under a guard of this map that pins nothing.
    ///
    /// # Safety
    /// The guard is of this map.
    pub unsafe fn scan_under<'g>(
        &'g self,
        guard: &'g Unprotected,
    ) -> impl Iterator<Item = Entry<'g>> {
        // SAFETY: B1. Nobody writes while the guard lives, so no block is freed.
        self.tree.range(.., guard).map(|(key, word)| (key, unsafe { Value::new(word) }))
    }

    /// Removes the first `most` entries between two bounds, or all if there are fewer. Returns
    /// their number.
    pub fn remove_range(&self, bounds: Bounds<'_>, most: usize) -> Result<usize, WriteError> {
        self.in_steps(most, |view, step| {
            let mut removed = 0;
            for (key, _) in view.range(bounds).take(step) {
                removed += usize::from(view.remove(key)?.is_some());
            }
            Ok(removed)
        })
    }

    /// Removes the `most` smallest keys, or the largest ones if `last`, and calls `each` with their
    /// entries. Returns their number.
    pub fn pop(
        &self,
        last: bool,
        most: usize,
        mut each: impl FnMut(Entry<'_>),
    ) -> Result<usize, WriteError> {
        self.in_steps(most, |view, step| {
            let mut popped = 0;
            while popped < step
                && let Some(entry) = view.pop(last)?
            {
                each(entry);
                popped += 1;
            }
            Ok(popped)
        })
    }

    /// Calls `remove` with a view and a number of entries, until it has removed `most` entries or
    /// there are no more. It pins anew for each step, so that memory can be freed in between.
    fn in_steps(
        &self,
        most: usize,
        mut remove: impl FnMut(&ByteView<'_>, usize) -> Result<usize, WriteError>,
    ) -> Result<usize, WriteError> {
        /// The most entries that are removed under one pin.
        const STEP: usize = 256;
        let mut removed = 0;
        loop {
            let step = STEP.min(most - removed);
            let now = remove(&self.pin(), step)?;
            removed += now;
            if now < step || removed == most {
                break;
            }
        }
        Ok(removed)
    }

    /// Frees the memory of removed entries that no pin protects. Called by writers after removals
    /// of many entries, when they have no pin.
    pub fn settle(&self) {
        self.tree.shrink();
        self.values.flush();
    }

    /// The number of entries. O(1).
    pub fn len(&self) -> usize {
        self.tree.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number that tells this map from other ones.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The memory that the map holds. O(1).
    pub fn memory(&self) -> Memory {
        let (tree, values) = (self.tree.bytes(), self.values.owner().bytes());
        Memory { total: tree + values, tree, values }
    }
}

impl Drop for ByteMap {
    fn drop(&mut self) {
        let values = self.values.owner();
        if values.bytes() > 0 {
            for (_, word) in self.tree.pin().range(..) {
                // SAFETY: B1, and B2: nobody reads the tree any more, and the map drops it next.
                unsafe {
                    if let Some((block, _)) = block_of(word) {
                        values.free(block);
                    }
                }
            }
        }
    }
}

impl fmt::Debug for ByteMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pin().range((Bound::Unbounded, Bound::Unbounded))).finish()
    }
}

impl ByteView<'_> {
    /// The value of a word that was read under this view.
    #[inline]
    #[allow(clippy::unused_self)] // the value borrows the view
    fn read(&self, word: u64) -> Value<'_> {
        // SAFETY: B1: the block was in the tree under the view's guard. If it was taken out, it is
        // freed only after the view is gone.
        unsafe { Value::new(word) }
    }

    /// Retires the block of a word that this view has taken out of the tree, and returns its value.
    #[inline]
    fn taken(&self, word: u64) -> Value<'_> {
        // SAFETY: B1: the tree returned the word to this call alone, and later pins do not find it.
        // The guard is of the domain. B2: no guard protects the block when the map is dropped.
        unsafe {
            if let Some((block, bytes)) = block_of(word) {
                self.map.values.retire(block, bytes, self.tree.guard());
            }
        }
        self.read(word)
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<Value<'_>> {
        self.tree.get(key).map(|word| self.read(word))
    }

    /// The values of keys. The cache misses of the lookups overlap.
    pub fn get_many(&self, keys: &[&[u8]]) -> Vec<Option<Value<'_>>> {
        let mut words = vec![None; keys.len()];
        self.tree.get_many(keys, &mut words);
        words.into_iter().map(|word| word.map(|word| self.read(word))).collect()
    }

    /// Gives a key a value, if the condition holds.
    #[inline]
    pub fn set(
        &self,
        key: &[u8],
        value: &[u8],
        condition: Condition,
    ) -> Result<Set<'_>, WriteError> {
        if condition == Condition::Present && self.tree.get(key).is_none() {
            return Ok(Set { written: false, old: None });
        }
        let value = self.map.values.owner().store(value)?;
        if condition == Condition::Absent {
            return match self.tree.try_insert(key, value.word()) {
                Ok(()) => {
                    value.placed();
                    Ok(Set { written: true, old: None })
                }
                Err(TryInsertError::Occupied(word)) => {
                    Ok(Set { written: false, old: Some(self.read(word)) })
                }
                Err(TryInsertError::Alloc(error)) => Err(error.into()),
                Err(_) => Err(WriteError::OutOfMemory),
            };
        }
        let old = self.tree.insert(key, value.word())?;
        value.placed();
        Ok(Set { written: true, old: old.map(|word| self.taken(word)) })
    }

    /// Writes `new` if the key's value is `expected`. `None` stands for an absent key. Returns
    /// whether the value was as expected.
    pub fn compare_and_set(
        &self,
        key: &[u8],
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<bool, WriteError> {
        let as_expected = match (self.get(key), expected) {
            (Some(value), Some(expected)) => value == *expected,
            (None, None) => true,
            _ => false,
        };
        if !as_expected {
            return Ok(false);
        }
        if let Some(new) = new {
            self.set(key, new, Condition::Always)?;
        } else {
            self.remove(key)?;
        }
        Ok(true)
    }

    /// Removes a key, and returns its value.
    pub fn remove(&self, key: &[u8]) -> Result<Option<Value<'_>>, WriteError> {
        Ok(self.tree.remove(key)?.map(|word| self.taken(word)))
    }

    /// The entry with the smallest key, or with the largest one if `last`.
    pub fn end(&self, last: bool) -> Option<Entry<'_>> {
        let entry = if last { self.tree.last() } else { self.tree.first() };
        entry.map(|(key, word)| (key, self.read(word)))
    }

    /// Removes the entry with the smallest key, or with the largest one if `last`.
    fn pop(&self, last: bool) -> Result<Option<Entry<'_>>, WriteError> {
        let entry = if last { self.tree.pop_last() } else { self.tree.pop_first() };
        Ok(entry?.map(|(key, word)| (key, self.taken(word))))
    }

    /// The entries between two bounds, in ascending order.
    pub fn range<'v>(&'v self, bounds: Bounds<'v>) -> impl Iterator<Item = Entry<'v>> {
        self.tree.range(bounds).map(|(key, word)| (key, self.read(word)))
    }

    /// The entries between two bounds, in descending order.
    pub fn range_rev<'v>(&'v self, bounds: Bounds<'v>) -> impl Iterator<Item = Entry<'v>> {
        self.tree.range_rev(bounds).map(|(key, word)| (key, self.read(word)))
    }
}

/// Entries in ascending order on their way into a new map. The first ones, up to [`Load::PIECE`]
/// bytes of memory beside the map, are loaded at once; later ones are inserted.
pub struct Load {
    /// Taken by `finish`.
    map: Option<ByteMap>,
    keys: Vec<Vec<u8>>,
    /// The words of their values. The blocks belong to this list.
    words: Vec<u64>,
    /// The bytes of both lists, about.
    bytes: usize,
    most: usize,
}

impl Load {
    /// The most bytes of keys that wait, with those of their places in the lists.
    pub const PIECE: usize = 64 << 20;

    /// Begins to load into an empty map.
    pub fn new(map: ByteMap) -> Self {
        Self { map: Some(map), keys: Vec::new(), words: Vec::new(), bytes: 0, most: Self::PIECE }
    }

    fn values(&self) -> Option<&Values> {
        Some(self.map.as_ref()?.values.owner())
    }

    /// Adds an entry. Its key is greater than all keys before.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> Result<(), WriteError> {
        /// The bytes of an entry's places in the lists and of its copy's header.
        const PLACES: usize = 80;
        let mut copy = Vec::new();
        copy.try_reserve_exact(key.len()).map_err(|_| WriteError::OutOfMemory)?;
        copy.extend_from_slice(key);
        self.keys.try_reserve(1).map_err(|_| WriteError::OutOfMemory)?;
        self.words.try_reserve(1).map_err(|_| WriteError::OutOfMemory)?;
        let word = self.values().ok_or(WriteError::OutOfMemory)?.store(value)?.placed();
        self.words.push(word);
        self.keys.push(copy);
        self.bytes += key.len() + PLACES;
        if self.bytes < self.most { Ok(()) } else { self.load() }
    }

    /// Moves the entries into the map: the first piece at once, later ones key by key.
    fn load(&mut self) -> Result<(), WriteError> {
        let Self { map: Some(map), keys, words, bytes, .. } = self else { return Ok(()) };
        if map.is_empty() {
            let mut entries: Vec<(&[u8], u64)> = Vec::new();
            entries.try_reserve(keys.len()).map_err(|_| WriteError::OutOfMemory)?;
            entries.extend(keys.iter().map(Vec::as_slice).zip(words.iter().copied()));
            map.tree.bulk_load(&entries, NonZeroUsize::MIN).map_err(|error| match error {
                BulkLoadError::Alloc(error) => error.into(),
                _ => WriteError::OutOfMemory,
            })?;
            words.clear();
        } else {
            let mut loaded = 0;
            let result: Result<(), WriteError> =
                keys.iter().zip(words.iter()).try_for_each(|(key, &word)| {
                    map.tree.pin().insert(key, word)?;
                    loaded += 1;
                    Ok(())
                });
            words.drain(..loaded); // the tree has them
            result?;
        }
        keys.clear();
        *bytes = 0;
        Ok(())
    }

    /// The map with all entries.
    pub fn finish(mut self) -> Result<ByteMap, WriteError> {
        self.load()?;
        let map = self.map.take().ok_or(WriteError::OutOfMemory)?;
        map.settle();
        Ok(map)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let words = std::mem::take(&mut self.words);
        if let Some(values) = self.values() {
            for word in words {
                // SAFETY: B1: the tree does not have this word.
                unsafe {
                    if let Some((block, _)) = block_of(word) {
                        values.free(block);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
