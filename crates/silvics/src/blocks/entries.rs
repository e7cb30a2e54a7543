//! Keys that lie in the caller's memory.
//!
//! The value of an entry leads to memory that has the entry's key, and more if the caller likes: a
//! version, a record. So a block has tags and gaps of its keys, but not the keys. A search compares
//! its key with one entry of a block, as a rule ([`order`](super::order)), and follows one value.
//!
//! Entries are neither removed nor replaced: a block reads the keys of removed entries, too, until
//! it is copied, and the caller could not know when to free them.

use super::Blocks;
use super::key::{Bit, BlockKey, BytesProbe, LENGTH, LENGTH_WINDOW, private};
use crate::domain::{Domain, Guard};
use crate::encoding::IndexKey;
use crate::error::{AllocError, TryInsertError, Violation};
use crate::frame::Index;
use crate::index::{Check, Lookup, Options, OrderedEnds, OrderedIndex, OrderedScan};
use silvics_pool::{Placement, PoolStats, Pooled};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Range, RangeBounds};

/// A handle of an entry whose memory has its key, such as a pointer into an arena.
///
/// [`Entry::key`] is called under locks of the set, so it must not use the set.
///
/// # Safety
/// * Each value of the type leads to an entry that lives as long as the value can be used, and as
///   long as a set that it was put into. (So a safe function makes no handle of memory that can be
///   freed.)
/// * An entry has the same key as long as it lives.
/// * `from_word` of what `into_word` returned is the same entry.
pub unsafe trait Entry: Copy + Send + Sync + 'static {
    /// The entry as a word.
    fn into_word(self) -> u64;
    /// The entry of a word.
    ///
    /// # Safety
    /// [`Entry::into_word`] has returned the word, and the entry lives.
    unsafe fn from_word(word: u64) -> Self;
    /// The key.
    ///
    /// # Safety
    /// The entry lives as long as the result is used.
    unsafe fn key<'g>(self) -> EntryKey<'g>;
}

/// The key of an entry: bytes, and a number that orders entries with the same bytes.
///
/// The number is 0 if there are no such entries. Versions of which the newest comes first have the
/// inverted sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EntryKey<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// The number.
    pub number: u64,
}

impl<'a> EntryKey<'a> {
    /// A key.
    pub fn new(bytes: &'a [u8], number: u64) -> Self {
        Self { bytes, number }
    }
}

/// The keys of entries, as a tree takes them. Not public: by this type, anyone could put any word
/// into a tree.
pub(super) struct InEntries<E>(PhantomData<fn() -> E>);

impl<E: Entry> private::Sealed for InEntries<E> {}

impl<E: Entry> IndexKey for InEntries<E> {
    type Ref<'a> = EntryKey<'a>;
    type Owned = (Box<[u8]>, u64);

    fn to_owned(key: EntryKey<'_>) -> (Box<[u8]>, u64) {
        (key.bytes.into(), key.number)
    }
    fn borrow((bytes, number): &(Box<[u8]>, u64)) -> EntryKey<'_> {
        EntryKey { bytes, number: *number }
    }
    #[inline(always)]
    fn shorten<'short, 'long: 'short>(key: EntryKey<'long>) -> EntryKey<'short> {
        key
    }
}

/// The first bit of the number, behind the length.
const NUMBER: Bit = LENGTH + 64;
const NUMBER_WINDOW: u32 = LENGTH_WINDOW + 8;

impl<E: Entry> BlockKey for InEntries<E> {
    type Probe<'k> = (BytesProbe<'k>, u64);
    const FIXED: usize = 0;
    const WINDOWS: usize = super::node::MAX_WINDOWS;
    const IN_ENTRIES: bool = true;
    // The bytes of a key, and one more, have bits below those of the length. No block has them.
    const LONGEST: usize = LENGTH_WINDOW as usize - 2;

    #[inline(always)]
    fn probe<'k>(key: EntryKey<'k>, buffer: &'k mut [u8; 8]) -> Self::Probe<'k> {
        (<[u8]>::probe(key.bytes, buffer), key.number)
    }
    #[inline(always)]
    fn window((bytes, number): &Self::Probe<'_>, offset: u32) -> u64 {
        if offset == NUMBER_WINDOW { *number } else { <[u8]>::window(bytes, offset) }
    }
    #[inline(always)]
    fn window_of(bit: Bit) -> u32 {
        if bit >= NUMBER { NUMBER_WINDOW } else { <[u8]>::window_of(bit) }
    }
    #[inline(always)]
    fn hash(key: EntryKey<'_>) -> u64 {
        <[u8]>::hash(key.bytes) ^ <u64 as BlockKey>::hash(key.number)
    }
    #[inline]
    fn difference(a: EntryKey<'_>, b: EntryKey<'_>) -> Option<Bit> {
        let of_bytes = <[u8]>::difference(a.bytes, b.bytes);
        of_bytes.or_else(|| Some(NUMBER + <u64 as BlockKey>::difference(a.number, b.number)?))
    }
    #[inline]
    fn has(key: EntryKey<'_>, bit: Bit) -> bool {
        match bit.checked_sub(NUMBER) {
            Some(bit) => <u64 as BlockKey>::has(key.number, bit),
            None => <[u8]>::has(key.bytes, bit),
        }
    }
    #[inline(always)]
    fn len(key: EntryKey<'_>) -> usize {
        key.bytes.len()
    }
    #[inline]
    fn cut(key: Self::Ref<'_>) -> Self::Ref<'_> {
        EntryKey { bytes: &key.bytes[..key.bytes.len().min(Self::LONGEST + 1)], ..key }
    }
    unsafe fn read(_: &[u8], _: *const u8, _: usize) -> EntryKey<'_> {
        unreachable!("the key is not in the block")
    }
    #[inline(always)]
    unsafe fn write(_: EntryKey<'_>, _: Range<usize>, _: *mut u8) {}
    #[inline(always)]
    unsafe fn behind<'g>(word: u64) -> EntryKey<'g> {
        // SAFETY: the caller's promise: the word is that of an entry, which lives.
        unsafe { E::from_word(word).key() }
    }
}

/// An ordered set of entries that have their keys in memory of their own: see
/// [`blocks`](super#departures).
///
/// Keys have less than 16 MiB. The set has some 16 bytes for each entry if keys are random,
/// whatever their length. Lookups, inserts and both ends are linearizable, as those of
/// [`BlockTree`](crate::BlockTree); ranges promise what [`OrderedScan`] says. Lookups and ranges
/// write nothing.
///
/// ```
/// use silvics::blocks::{Entry, EntryKey, EntrySet};
/// use silvics::Options;
///
/// struct Version {
///     key: &'static str,
///     sequence: u64,
///     text: &'static str,
/// }
///
/// #[derive(Clone, Copy)]
/// struct Handle(&'static Version);
///
/// // SAFETY: versions live forever, and do not change.
/// unsafe impl Entry for Handle {
///     fn into_word(self) -> u64 {
///         std::ptr::from_ref(self.0).expose_provenance() as u64
///     }
///     unsafe fn from_word(word: u64) -> Self {
///         Self(unsafe { &*std::ptr::with_exposed_provenance(word as usize) })
///     }
///     unsafe fn key<'g>(self) -> EntryKey<'g> {
///         EntryKey::new(self.0.key.as_bytes(), !self.0.sequence) // the newest first
///     }
/// }
///
/// static VERSIONS: [Version; 3] = [
///     Version { key: "a", sequence: 1, text: "old" },
///     Version { key: "a", sequence: 5, text: "new" },
///     Version { key: "b", sequence: 2, text: "other" },
/// ];
/// let set: EntrySet<Handle> = EntrySet::with_options(&Options::default())?;
/// let guard = set.domain().pin();
/// for version in &VERSIONS {
///     assert!(set.insert(Handle(version), &guard)?.is_none());
/// }
/// // The newest version of `a` that sequence 4 can see.
/// let seen = set.range(EntryKey::new(b"a", !4).., &guard).next();
/// assert_eq!(seen.map(|Handle(version)| version.text), Some("old"));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub struct EntrySet<E: Entry, P: Placement = Pooled>(Index<Blocks<InEntries<E>, P>>);

impl<E: Entry, P: Placement> EntrySet<E, P> {
    /// Makes an empty set.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        Index::with_options(options).map(Self)
    }

    /// The domain whose guards the operations take.
    pub fn domain(&self) -> &Domain {
        self.0.domain()
    }

    /// The number of entries: see [`Lookup::len`].
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the set holds, without the entries: see [`Lookup::bytes`].
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// See [`Lookup::pool_stats`].
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        self.0.pool_stats()
    }

    /// Puts an entry in, unless there is one with its key, which is returned then.
    pub fn insert(&self, entry: E, guard: &Guard) -> Result<Option<E>, AllocError> {
        // SAFETY: the entry lives as long as the caller has the handle (`Entry`).
        let key = unsafe { entry.key() };
        match self.0.try_insert(key, entry.into_word(), guard) {
            Ok(()) => Ok(None),
            Err(TryInsertError::Alloc(error)) => Err(error),
            Err(TryInsertError::Occupied(word)) => Ok(Some(Self::entry(word))),
        }
    }

    /// The entry with a key.
    pub fn get(&self, key: EntryKey<'_>, guard: &Guard) -> Option<E> {
        self.0.get(key, guard).map(Self::entry)
    }

    /// The entries whose keys are in a range, in ascending order: see [`OrderedScan`].
    pub fn range<'g>(
        &'g self,
        range: impl RangeBounds<EntryKey<'g>>,
        guard: &'g Guard,
    ) -> impl Iterator<Item = E> + 'g {
        OrderedScan::range(&self.0, range, guard).values().map(Self::entry)
    }

    /// The entries whose keys are in a range, in descending order.
    pub fn range_rev<'g>(
        &'g self,
        range: impl RangeBounds<EntryKey<'g>>,
        guard: &'g Guard,
    ) -> impl Iterator<Item = E> + 'g {
        OrderedScan::range_rev(&self.0, range, guard).values().map(Self::entry)
    }

    /// The entry with the smallest key, linearizable: see [`OrderedEnds`].
    pub fn first(&self, guard: &Guard) -> Option<E> {
        self.0.first(guard).map(|(_, word)| Self::entry(word))
    }

    /// The entry with the largest key.
    pub fn last(&self, guard: &Guard) -> Option<E> {
        self.0.last(guard).map(|(_, word)| Self::entry(word))
    }

    /// Verifies the invariants of the quiescent set: see [`Check::check`].
    pub fn check(&mut self) -> Result<usize, Violation> {
        self.0.check()
    }

    /// Reclaims the memory that the set has retired: see [`Check::settle`].
    pub fn settle(&mut self) {
        self.0.settle();
    }

    fn entry(word: u64) -> E {
        // SAFETY: the words of the set are those of entries, which live as long as it (`Entry`).
        unsafe { E::from_word(word) }
    }
}

impl<E: Entry, P: Placement> fmt::Debug for EntrySet<E, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EntrySet({} entries)", self.len())
    }
}
