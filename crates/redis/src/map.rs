//! The type behind a key of the server: an ordered map from byte strings to byte strings.

use crate::value::{Digits, OutOfMemory, Value};
use silvics::error::{AllocError, BulkLoadError};
use silvics::map::{Map, Rejected, TryInsertError, Unprotected, ValueRef, View};
use silvics::{BlockTree, Heap, Shared};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::alloc::Layout;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

type Index = BlockTree<[u8], Shared>;
type Entries = Map<Vec<u8>, Value, Index>;

/// The two ends of a range of keys.
pub type Bounds<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// An entry that borrows a view.
pub type Entry<'v> = (&'v [u8], ValueRef<'v, Value>);

/// An ordered map with byte keys, whose memory comes from a heap of the server, object by object.
///
/// Any thread may read it at any time. All writes come from one thread, the server's event loop;
/// the methods of [`ByteView`] that decide by an entry's state rely on this.
pub struct ByteMap {
    entries: Entries,
    heap: Arc<dyn Heap>,
    /// The bytes of the blocks of present values, as the heap counts them.
    blocks: AtomicUsize,
    id: u64,
}

/// A [`ByteMap`] with its domain pinned.
pub struct ByteView<'m> {
    map: &'m ByteMap,
    view: View<'m, Vec<u8>, Value, Index>,
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

/// What [`ByteView::set`] has done.
#[derive(Debug)]
pub struct Set<'v> {
    /// Whether it has written.
    pub written: bool,
    /// The value before the call.
    pub old: Option<ValueRef<'v, Value>>,
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

impl<V> From<Rejected<V>> for WriteError {
    fn from(rejected: Rejected<V>) -> Self {
        rejected.error.into()
    }
}

/// The use of the bytes that a map holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// All bytes, as the heap counts them.
    pub total: usize,
    /// The bytes of nodes, blocks and keys.
    pub index: usize,
    /// The bytes of values and of their blocks.
    pub values: usize,
}

impl ByteMap {
    /// Makes an empty map whose memory comes from `heap`. The id tells maps apart, so that a cursor
    /// is not used with another map.
    pub fn new(heap: Arc<dyn Heap>, id: u64) -> Result<Self, WriteError> {
        let entries = Entries::builder().heap(Arc::clone(&heap)).build()?;
        Ok(Self { entries, heap, blocks: AtomicUsize::new(0), id })
    }

    /// Makes a map with the entries of another one.
    pub fn copy_of(other: &Self, id: u64) -> Result<Self, WriteError> {
        let mut load = Load::new(Self::new(Arc::clone(&other.heap), id)?);
        let (view, mut digits) = (other.pin(), Digits::default());
        for (key, value) in &view.view {
            load.push(key.to_vec(), value.bytes(&mut digits))?;
        }
        load.finish()
    }

    /// Pins the map for calls of this thread. Entries that are removed meanwhile are not freed.
    #[inline]
    pub fn pin(&self) -> ByteView<'_> {
        ByteView { map: self, view: self.entries.pin() }
    }

    /// A face for scans that pin nothing: [`Map::unprotected`].
    ///
    /// # Safety
    /// The contract is that of [`Map::unprotected`].
    pub unsafe fn unprotected(&self) -> Unprotected<'_, Vec<u8>, Value, Index> {
        // SAFETY: the caller's promise.
        unsafe { self.entries.unprotected() }
    }

    /// The number of entries. O(1).
    pub fn len(&self) -> usize {
        self.entries.len()
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
    ///
    /// Objects of the index and values that were removed, but that a scan may still read, are
    /// included. The blocks of such values are not.
    pub fn memory(&self) -> Memory {
        let held = self.entries.memory();
        let blocks = self.blocks.load(Ordering::Relaxed);
        let own = self.heap.bytes(Layout::new::<Self>());
        let (total, values) = (held.bytes + blocks + own, held.values + blocks);
        Memory { total, index: held.index, values }
    }

    /// The bytes that the value's block takes from the heap.
    fn block_bytes(&self, value: &Value) -> usize {
        match Layout::array::<u64>(value.block_bytes() / 8) {
            Ok(layout) if layout.size() > 0 => self.heap.bytes(layout),
            _ => 0,
        }
    }

    // Relaxed: one thread changes the count, and others read it as a number alone.
    fn count(&self, value: &Value) {
        self.blocks.fetch_add(self.block_bytes(value), Ordering::Relaxed);
    }

    fn discount(&self, value: &Value) {
        self.blocks.fetch_sub(self.block_bytes(value), Ordering::Relaxed);
    }
}

impl fmt::Debug for ByteMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.pin().range((Bound::Unbounded, Bound::Unbounded))).finish()
    }
}

impl<'m> ByteView<'m> {
    /// The map.
    pub fn map(&self) -> &'m ByteMap {
        self.map
    }

    /// The value of a key.
    #[inline]
    pub fn get(&self, key: &[u8]) -> Option<ValueRef<'_, Value>> {
        self.view.get(key)
    }

    /// Gives a key a value, if the condition holds.
    pub fn set(
        &self,
        key: &[u8],
        value: &[u8],
        condition: Condition,
    ) -> Result<Set<'_>, WriteError> {
        if condition == Condition::Present && self.get(key).is_none() {
            return Ok(Set { written: false, old: None });
        }
        let value = Value::new(value)?;
        if condition == Condition::Absent {
            return match self.view.try_insert(key, value) {
                Ok(value) => {
                    self.map.count(&value);
                    Ok(Set { written: true, old: None })
                }
                Err(TryInsertError::Occupied { present, .. }) => {
                    Ok(Set { written: false, old: Some(present) })
                }
                Err(TryInsertError::Alloc(rejected)) => Err(rejected.into()),
                Err(_) => Err(WriteError::OutOfMemory),
            };
        }
        let bytes = self.map.block_bytes(&value);
        let old = self.view.try_upsert(key, value)?;
        self.map.blocks.fetch_add(bytes, Ordering::Relaxed);
        if let Some(old) = &old {
            self.map.discount(old);
        }
        Ok(Set { written: true, old })
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
            (Some(value), Some(expected)) => *value == *expected,
            (None, None) => true,
            _ => false,
        };
        if !as_expected {
            return Ok(false);
        }
        match new {
            Some(new) => self.set(key, new, Condition::Always).map(|set| set.written),
            None => Ok(self.remove(key) || expected.is_none()),
        }
    }

    /// Removes a key, and returns whether it was present.
    pub fn remove(&self, key: &[u8]) -> bool {
        let old = self.view.remove(key);
        if let Some(old) = &old {
            self.map.discount(old);
        }
        old.is_some()
    }

    /// The entry with the smallest key, or with the largest one if `last`.
    pub fn end(&self, last: bool) -> Option<Entry<'_>> {
        if last { self.view.last() } else { self.view.first() }
    }

    /// Removes the entry with the smallest key, or with the largest one if `last`.
    pub fn pop(&self, last: bool) -> Option<Entry<'_>> {
        let entry = if last { self.view.pop_last() } else { self.view.pop_first() };
        if let Some((_, value)) = &entry {
            self.map.discount(value);
        }
        entry
    }

    /// The entries between two bounds, in ascending order, or in descending order from its back.
    /// Copies the bounds.
    pub fn range<'v>(&'v self, bounds: Bounds<'_>) -> impl DoubleEndedIterator<Item = Entry<'v>> {
        self.view.range(bounds)
    }

    /// Removes the first `most` entries between two bounds, or all if there are fewer. Returns
    /// their number.
    pub fn remove_range(&self, bounds: Bounds<'_>, most: usize) -> usize {
        self.range(bounds).take(most).filter(|(key, _)| self.remove(key)).count()
    }
}

/// Entries in ascending order on their way into a new map. Holds at most [`Load::PIECE`] of them
/// beside the map.
pub struct Load {
    map: ByteMap,
    piece: Vec<(Vec<u8>, Value)>,
}

impl Load {
    /// The number of entries that are loaded at once.
    pub const PIECE: usize = 1 << 16;

    /// Begins to load into an empty map.
    pub fn new(map: ByteMap) -> Self {
        Self { map, piece: Vec::new() }
    }

    /// Adds an entry. Its key is greater than all keys before.
    pub fn push(&mut self, key: Vec<u8>, value: &[u8]) -> Result<(), WriteError> {
        self.piece.try_reserve(1).map_err(|_| WriteError::OutOfMemory)?;
        self.piece.push((key, Value::new(value)?));
        if self.piece.len() < Self::PIECE { Ok(()) } else { self.load() }
    }

    /// Moves the piece into the map.
    fn load(&mut self) -> Result<(), WriteError> {
        let piece = std::mem::take(&mut self.piece);
        for (_, value) in &piece {
            self.map.count(value);
        }
        if self.map.is_empty() {
            let heap = Arc::clone(&self.map.heap);
            self.map.entries =
                Entries::builder().heap(heap).from_sorted(piece).map_err(|error| match error {
                    BulkLoadError::Alloc(error) => error.into(),
                    _ => WriteError::OutOfMemory,
                })?;
        } else {
            self.map.entries.pin().try_extend(piece).map_err(|error| error.error)?;
        }
        Ok(())
    }

    /// The map with all entries.
    pub fn finish(mut self) -> Result<ByteMap, WriteError> {
        if !self.piece.is_empty() {
            self.load()?;
        }
        Ok(self.map)
    }
}
