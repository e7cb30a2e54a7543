//! Lookups: from a key to a row that the transaction may use.

use super::arena::Stored;
use super::state::{IndexPtr, Inner, WriteKind, bytes};
use crate::index::{ErasedIndex, FormOf, IndexCore, Search, Typed};
use crate::key::{KeyForm, KeyRef};
use crate::policy::{Policy, Seen, Stop};
use crate::rows::{Address, RowRef};
use crate::schema::Kind;
use silvics_sync::backoff::Backoff;
use std::ptr::NonNull;

/// The lookups of a key whose row is about to leave or to enter the index, before the key counts as
/// absent.
const TRIES: usize = 8;

/// The words of a row whose lines the processor asks for at once.
const SHORT: usize = 16;

/// A row that a lookup has found.
pub(crate) struct Found<P: Policy> {
    pub row: RowRef<P::Rows>,
    /// The columns as the transaction sees them.
    pub image: NonNull<u64>,
    pub seen: Seen,
}

impl<P: Policy> Clone for Found<P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Policy> Copy for Found<P> {}

/// The row that an entry of an index leads to.
pub(crate) enum Opened<P: Policy> {
    Row(Found<P>),
    /// The row is not there, or does not have the key of the entry.
    Gone,
    /// This transaction has deleted the row, or has given it another key.
    OwnGone,
}

impl<P: Policy> Inner<'_, P> {
    /// Begins to bring the row at an address of an index into the cache.
    #[inline]
    pub(crate) fn prefetch(word: u64, words: usize) {
        // SAFETY: R1 and R2: the word was read from an index of the table, under the guard.
        unsafe { RowRef::<P::Rows>::new(Address::of(word), words) }.prefetch();
    }

    /// Reads the row at an address that `index` has for `key`.
    #[inline]
    pub(crate) fn open(
        &mut self,
        index: &IndexCore,
        key: KeyRef<'_>,
        word: u64,
        words: usize,
        to_write: bool,
    ) -> Result<Opened<P>, Stop> {
        // SAFETY: R1 and R2: the word was read from an index of the table, under the guard.
        let row = unsafe { RowRef::<P::Rows>::new(Address::of(word), words) };
        let mark = self.work.arena.mark();
        let image = self.work.arena.alloc(words)?;
        // SAFETY: the arena has just returned these words, and nobody else uses them.
        let to = unsafe { std::slice::from_raw_parts_mut(image.as_ptr(), words) };
        let seen = if to_write { P::read_to_write(self, row, to) } else { P::read(self, row, to) }?;
        let (image, is_own) = match seen {
            Seen::Present(_) => (image, false),
            Seen::Absent => {
                // SAFETY: nobody uses the image.
                unsafe { self.work.arena.release(mark) };
                return Ok(Opened::Gone);
            }
            Seen::Own(at) => {
                let write = &self.work.writes.all()[at];
                if matches!(write.kind, WriteKind::Delete | WriteKind::Void) {
                    return Ok(Opened::OwnGone);
                }
                (write.new, true)
            }
        };
        if index.kind != Kind::Primary {
            // SAFETY: the image has as many words, which nobody writes now.
            let columns = unsafe { bytes(image, words) };
            if !index.with_key(columns, |of_row| of_row == key) {
                return Ok(if is_own { Opened::OwnGone } else { Opened::Gone });
            }
        }
        Ok(Opened::Row(Found { row, image, seen }))
    }

    /// Finds the row with a key of a unique index.
    #[inline]
    pub(crate) fn find<I: Search>(
        &mut self,
        typed: &Typed<I>,
        key: FormOf<'_, I>,
        to_write: bool,
    ) -> Result<Option<Found<P>>, Stop> {
        let words = typed.core.words;
        match typed.index.get(key, &self.guard) {
            Some(word) => {
                // The copy of a longer row would ask for its lines one after the other.
                if words > SHORT {
                    Self::prefetch(word, words);
                }
                match self.open(&typed.core, I::Form::erase(key), word, words, to_write)? {
                    Opened::Row(found) => Ok(Some(found)),
                    _ => self.find_again(typed_erased(typed), I::Form::erase(key), to_write),
                }
            }
            None => self.find_again(typed_erased(typed), I::Form::erase(key), to_write),
        }
    }

    /// Finds the row with a key for which a first lookup has found none.
    #[cold]
    pub(crate) fn find_again(
        &mut self,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
        to_write: bool,
    ) -> Result<Option<Found<P>>, Stop> {
        let words = index.core().words;
        let mut backoff = Backoff::new();
        let mut is_protected = false;
        for tries in 0.. {
            if let Some(word) = index.look(key, &self.guard) {
                match self.open(index.core(), key, word, words, to_write)? {
                    Opened::Row(found) => return Ok(Some(found)),
                    Opened::OwnGone => {
                        let taker = self.find_taken_over(index, key, word, to_write)?;
                        // SAFETY: R1: the word is one of an index.
                        let own = self.work.writes.find(unsafe { Address::of(word) });
                        if taker.is_some() || own.is_some_and(|at| self.had_key(at, index, key)) {
                            return Ok(taker);
                        }
                        // Another transaction has placed the entry, or its removal has failed.
                    }
                    Opened::Gone if tries < TRIES => {
                        backoff.wait();
                        continue;
                    }
                    Opened::Gone => {}
                }
            }
            if is_protected {
                break;
            }
            is_protected = P::missed(self, index, key)?;
            if !is_protected {
                break;
            }
        }
        Ok(None)
    }

    /// Finds the row that takes a key over from the row at `word`, which this transaction deletes
    /// or changes.
    pub(crate) fn find_taken_over(
        &mut self,
        index: &(dyn ErasedIndex + 'static),
        key: KeyRef<'_>,
        word: u64,
        to_write: bool,
    ) -> Result<Option<Found<P>>, Stop> {
        let this = IndexPtr::of(index);
        // SAFETY: R1: the word is one of an index.
        let row = unsafe { Address::of(word) };
        let next = self.work.takers(row).find(|taker| {
            // SAFETY: the arena is cleared after the transaction.
            taker.index.is(this) && unsafe { taker.key.get() } == key
        });
        let Some(word) = next.map(|placed| placed.row.word()) else { return Ok(None) };
        match self.open(index.core(), key, word, index.core().words, to_write)? {
            Opened::Row(found) => Ok(Some(found)),
            Opened::Gone | Opened::OwnGone => Ok(None),
        }
    }

    /// Whether a row that this transaction writes was committed with a key.
    pub(crate) fn had_key(&self, at: usize, index: &dyn ErasedIndex, key: KeyRef<'_>) -> bool {
        let write = &self.work.writes.all()[at];
        write.old.is_some_and(|old| {
            // SAFETY: the arena has the image, which nobody writes now.
            let old = unsafe { bytes(old, write.row.words) };
            index.core().with_key(old, |of_row| of_row == key)
        })
    }

    /// Whether this transaction has placed an entry.
    pub(crate) fn is_placed(&self, index: IndexPtr, key: Stored, row: Address) -> bool {
        // SAFETY: the arena is cleared after the transaction.
        self.is_placed_by_key(index, unsafe { key.get() }, row)
    }

    /// Whether this transaction has placed an entry.
    pub(crate) fn is_placed_by_key(&self, index: IndexPtr, key: KeyRef<'_>, row: Address) -> bool {
        if self.work.placed.is_empty() {
            return false;
        }
        let Some(at) = self.work.writes.find(row) else { return false };
        self.work.entries(at).any(|(_, placed)| {
            let is_this = placed.index.is(index) && placed.takes_over.is_none();
            // SAFETY: the arena is cleared after the transaction.
            is_this && unsafe { placed.key.get() } == key
        })
    }
}

/// The index behind a trait object.
#[inline(always)]
pub(crate) fn typed_erased<I: Search>(typed: &Typed<I>) -> &(dyn ErasedIndex + 'static) {
    typed
}
