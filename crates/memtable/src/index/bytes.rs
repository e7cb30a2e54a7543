//! The byte index: blocks of entries under a trie of bits.

use super::{Index, Setup, SetupError, Start, write_to};
use crate::entry::{Draft, Entry};
use crate::key::{ByteOrder, InternalKey};
use silvics::blocks::{Entry as SetEntry, EntryKey, EntrySet};
use silvics::{AllocError, Guard, Options};
use silvics_pool::ConcurrentArena;
use std::ops::Bound;
use std::ptr::NonNull;
use std::sync::Arc;

/// The address of an entry, as an element of an [`EntrySet`] in the order of bytes, or in the
/// reverse order.
///
/// B1: it leads to an entry that does not change, and that lives as long as the handle and the sets
/// that have it.
///
/// A set orders (bytes, number). In the order of bytes the number is the inverted trailer, so that
/// the newest version comes first. A set of the reverse order is read backwards, and the number is
/// the trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle<const REVERSE: bool>(NonNull<u8>);

// SAFETY: B1: the entry does not change, so any thread may read it.
unsafe impl<const REVERSE: bool> Send for Handle<REVERSE> {}
// SAFETY: B1: the entry does not change, so any thread may read it.
unsafe impl<const REVERSE: bool> Sync for Handle<REVERSE> {}

impl<const REVERSE: bool> Handle<REVERSE> {
    /// The handle of an entry.
    ///
    /// # Safety
    /// B1: an [`Entry`] begins at the address. It neither changes nor is freed while the handle, a
    /// copy of it, or a set with it can be used.
    #[inline(always)]
    pub unsafe fn new(entry: NonNull<u8>) -> Self {
        Self(entry)
    }

    /// The address of the entry.
    #[inline(always)]
    pub fn address(self) -> NonNull<u8> {
        self.0
    }

    /// An internal key, as a set of these handles orders it.
    #[inline(always)]
    pub fn ordered(key: InternalKey<'_>) -> EntryKey<'_> {
        EntryKey::new(key.user, if REVERSE { key.trailer } else { !key.trailer })
    }
}

// SAFETY: B1: a handle leads to an entry that lives as long as the set, with a key that does not
// change, and the word is its address.
unsafe impl<const REVERSE: bool> SetEntry for Handle<REVERSE> {
    #[inline(always)]
    fn into_word(self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    #[inline(always)]
    unsafe fn from_word(word: u64) -> Self {
        let at = std::ptr::with_exposed_provenance_mut(word as usize);
        // SAFETY: the word is the address of an entry, which is not null.
        Self(unsafe { NonNull::new_unchecked(at) })
    }

    #[inline(always)]
    unsafe fn key<'g>(self) -> EntryKey<'g> {
        // SAFETY: B1.
        Self::ordered(unsafe { Entry::from_raw(self.0) }.key())
    }
}

/// An [`EntrySet`] whose entries lie in the arena: it takes some 20 to 26 bytes for each.
#[derive(Debug)]
pub struct ByteIndex {
    // Dropped before the arena.
    set: Set,
    arena: Arc<ConcurrentArena>,
}

#[derive(Debug)]
enum Set {
    Forward(EntrySet<Handle<false>>),
    Reverse(EntrySet<Handle<true>>),
}

/// Inserts an entry, and returns whether its key was absent.
fn add<const REVERSE: bool>(
    set: &EntrySet<Handle<REVERSE>>,
    entry: Entry<'_>,
    guard: &Guard,
) -> Result<bool, AllocError> {
    // SAFETY: B1: the entry lies in the arena, which the index keeps until its set is dropped.
    let handle = unsafe { Handle::new(entry.as_ptr()) };
    Ok(set.insert(handle, guard)?.is_none())
}

/// The entry of a handle.
#[inline(always)]
fn entry<'t, const REVERSE: bool>(handle: Handle<REVERSE>) -> Entry<'t> {
    // SAFETY: B1, and the caller binds the lifetime to that of the index.
    unsafe { Entry::from_raw(handle.0) }
}

/// Appends entries in the order of a set.
fn scan<'t, const REVERSE: bool>(
    set: &'t EntrySet<Handle<REVERSE>>,
    from: Start<'t, '_>,
    backwards: bool,
    count: usize,
    to: &mut Vec<Entry<'t>>,
    guard: &Guard,
) {
    let bound = match from {
        Start::End => Bound::Unbounded,
        Start::Key(key) => Bound::Included(Handle::<REVERSE>::ordered(key)),
        Start::Beyond(entry) => Bound::Excluded(Handle::<REVERSE>::ordered(entry.key())),
    };
    if backwards == REVERSE {
        let range = set.range((bound, Bound::Unbounded), guard);
        to.extend(range.take(count).map(entry));
    } else {
        let range = set.range_rev((Bound::Unbounded, bound), guard);
        to.extend(range.take(count).map(entry));
    }
}

// SAFETY: a set returns words that were inserted, and they lead to entries of the arena.
unsafe impl Index for ByteIndex {
    const NAME: &'static str = "art";

    fn new(setup: &Setup) -> Result<Self, SetupError> {
        let options = Options { domain: Some(setup.domain.clone()), ..setup.options.clone() };
        let set = match setup.comparator.byte_order() {
            Some(ByteOrder::Forward) => Set::Forward(EntrySet::with_options(&options)?),
            Some(ByteOrder::Reverse) => Set::Reverse(EntrySet::with_options(&options)?),
            None => {
                let comparator = setup.comparator.name().to_string();
                return Err(SetupError::Order { index: Self::NAME, comparator });
            }
        };
        Ok(Self { set, arena: Arc::clone(&setup.arena) })
    }

    unsafe fn add(&self, draft: Draft<'_>, _: bool, guard: &Guard) -> Result<bool, AllocError> {
        let entry = write_to(&self.arena, draft)?;
        match &self.set {
            Set::Forward(set) => add(set, entry, guard),
            Set::Reverse(set) => add(set, entry, guard),
        }
    }

    fn seek(&self, key: InternalKey<'_>, guard: &Guard) -> Option<Entry<'_>> {
        match &self.set {
            Set::Forward(set) => {
                set.range(Handle::<false>::ordered(key).., guard).next().map(entry)
            }
            Set::Reverse(set) => {
                set.range_rev(..=Handle::<true>::ordered(key), guard).next().map(entry)
            }
        }
    }

    unsafe fn scan<'t>(
        &'t self,
        from: Start<'t, '_>,
        backwards: bool,
        count: usize,
        to: &mut Vec<Entry<'t>>,
        guard: &Guard,
    ) {
        match &self.set {
            Set::Forward(set) => scan(set, from, backwards, count, to, guard),
            Set::Reverse(set) => scan(set, from, backwards, count, to, guard),
        }
    }

    fn bytes(&self) -> usize {
        match &self.set {
            Set::Forward(set) => set.bytes(),
            Set::Reverse(set) => set.bytes(),
        }
    }

    fn check(&mut self) -> Result<usize, String> {
        let checked = match &mut self.set {
            Set::Forward(set) => set.check(),
            Set::Reverse(set) => set.check(),
        };
        checked.map_err(|violation| violation.to_string())
    }
}
