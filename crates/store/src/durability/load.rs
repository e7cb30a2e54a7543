//! Loads rows into a store that nobody else uses: the direct path of recovery.
//!
//! Rows are made committed, without transactions, locks and copies. At first only the primary
//! indexes are filled: while changes are replayed over a fuzzy image, two rows may have one key of
//! a unique index for a while (W8). At the end, each row is placed in the other indexes.

use super::redo::{self, Change};
use crate::index::ErasedIndex;
use crate::key::KeyRef;
use crate::policy::Policy;
use crate::rows::{Address, RowRef};
use crate::schema::Place;
use crate::store::StoreCore;
use crate::table::TableCore;
use silvics::{AllocError, Guard};
use silvics_memtable::BatchRef;
use std::collections::HashSet;
use std::ops::Bound;
use std::sync::Arc;

/// The changes under one pin: replaced nodes of indexes are freed between pins.
const PINNED: u32 = 4096;

/// The bytes of a word.
const WORD: usize = size_of::<u64>();

/// The rows that are placed in the other indexes at a time.
const ROWS: usize = 1024;

/// Why rows were not loaded.
#[derive(Debug)]
pub(super) enum Fail {
    Alloc(AllocError),
    /// The bytes do not suit the tables.
    Wrong,
    /// Two rows have one key of a unique index.
    Unique {
        table: String,
        index: String,
    },
}

impl From<AllocError> for Fail {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// Fills the tables of a store. Nobody else uses the store meanwhile.
pub(super) struct Loader<'a, P: Policy> {
    tables: &'a [Arc<TableCore<P>>],
    /// The rows of the tables whose primary index cannot walk over them.
    unordered: Vec<Option<HashSet<u64>>>,
    /// The words of each table in which the primary key lies, with the bits that belong to it.
    masks: Vec<Vec<(usize, u64)>>,
    guard: Guard,
    left: u32,
}

impl<'a, P: Policy> Loader<'a, P> {
    pub(super) fn new(store: &'a StoreCore<P>, tables: &'a [Arc<TableCore<P>>]) -> Self {
        let needs_list = |table: &TableCore<P>| {
            let has_others = table.indexes.len() > 1;
            (has_others && !table.indexes[0].can_scan()).then(HashSet::new)
        };
        let unordered = tables.iter().map(|table| needs_list(table)).collect();
        let masks =
            tables.iter().map(|table| key_masks(&table.indexes[0].core().columns)).collect();
        Self { tables, unordered, masks, guard: store.domain.pin(), left: PINNED }
    }

    /// Loads rows of a checkpoint.
    pub(super) fn rows(&mut self, table: u32, rows: &[u8]) -> Result<u64, Fail> {
        let number = table as usize;
        let bytes = self.tables.get(number).ok_or(Fail::Wrong)?.places.words * 8;
        if !rows.len().is_multiple_of(bytes) {
            return Err(Fail::Wrong);
        }
        for row in rows.chunks_exact(bytes) {
            self.put(number, row)?;
        }
        Ok((rows.len() / bytes) as u64)
    }

    /// Applies a record of the log.
    pub(super) fn record(&mut self, record: BatchRef<'_>) -> Result<(), Fail> {
        for op in record {
            let (number, change) = redo::change(op).ok_or(Fail::Wrong)?;
            let table = &**self.tables.get(number).ok_or(Fail::Wrong)?;
            match change {
                Change::Row(row) => self.put(number, row)?,
                Change::Runs(key, runs) => {
                    let key = redo::key(table, key).ok_or(Fail::Wrong)?;
                    self.pin();
                    // If the row is not there, a later record inserts or deletes it (W6).
                    if let Some(row) = find(table, key, &self.guard) {
                        // The row keeps the primary key under which the index has it.
                        let mask = |at| self.masks[number].iter().find(|(of, _)| *of == at);
                        let mut keeps_key = true;
                        let is_valid = runs.each(row.words, |at, word| {
                            let differs =
                                mask(at).map_or(0, |(_, mask)| (row.get(at) ^ word) & mask);
                            if differs == 0 {
                                row.set(at, word);
                            } else {
                                keeps_key = false;
                            }
                        });
                        (is_valid && keeps_key).then_some(()).ok_or(Fail::Wrong)?;
                    }
                }
                Change::Gone(key) => {
                    let key = redo::key(table, key).ok_or(Fail::Wrong)?;
                    self.remove(number, key)?;
                }
            }
        }
        Ok(())
    }

    /// Renews the pin from time to time.
    #[inline]
    fn pin(&mut self) {
        self.left -= 1;
        if self.left == 0 {
            self.left = PINNED;
            self.guard.repin();
        }
    }

    /// Loads a row, in place of the one with its primary key if there is one.
    fn put(&mut self, number: usize, image: &[u8]) -> Result<(), Fail> {
        let table = &*self.tables[number];
        let words = table.places.words;
        if image.len() != words * 8 {
            return Err(Fail::Wrong);
        }
        self.pin();
        let memory = table.rows.owner();
        let new = memory.alloc(P::loaded_header())?;
        // SAFETY: the row was made above, for this number of words.
        let row = unsafe { RowRef::<P::Rows>::new(new, words) };
        row.fill(image);
        let primary = &*table.indexes[0];
        let placed =
            primary.core().with_key(image, |key| primary.place(key, new.word(), &self.guard));
        match placed {
            Ok(None) => {
                if let Some(list) = &mut self.unordered[number] {
                    let requested = size_of::<u64>() * 2;
                    list.try_reserve(1).map_err(|_| AllocError::System { requested })?;
                    list.insert(new.word());
                }
                return Ok(());
            }
            Ok(Some(present)) => {
                // SAFETY: R1: the word is one of an index, and nobody frees its row meanwhile.
                unsafe { RowRef::<P::Rows>::new(Address::of(present), words) }.fill(image);
            }
            Err(error) => {
                // SAFETY: the row was made above, and no index leads to it.
                unsafe { memory.dealloc(new) };
                return Err(error.into());
            }
        }
        // SAFETY: the row was made above, and no index leads to it.
        unsafe { memory.dealloc(new) };
        Ok(())
    }

    fn remove(&mut self, number: usize, key: KeyRef<'_>) -> Result<(), Fail> {
        let table = &*self.tables[number];
        self.pin();
        let Some(row) = find(table, key, &self.guard) else { return Ok(()) };
        table.indexes[0].remove(key, &self.guard)?;
        if let Some(list) = &mut self.unordered[number] {
            list.remove(&row.address.word());
        }
        // SAFETY: the only index that has led to the row leads to it no more, and nobody else uses
        // the store.
        unsafe { table.rows.owner().dealloc(row.address) };
        Ok(())
    }

    /// Places all rows in the other indexes. Returns the number of rows of the store.
    pub(super) fn finish(mut self) -> Result<u64, Fail> {
        let mut count = 0;
        for (number, table) in self.tables.iter().enumerate() {
            count += table.indexes[0].count() as u64;
            if table.indexes.len() == 1 {
                continue;
            }
            let mut image = vec![0; table.places.words];
            if let Some(list) = self.unordered[number].take() {
                for &word in &list {
                    self.place(table, word, &mut image)?;
                }
                continue;
            }
            let mut rows = Vec::with_capacity(ROWS);
            let mut low = None;
            loop {
                low = self.walk(&*table.indexes[0], low.as_ref(), &mut rows);
                for &word in &rows {
                    self.place(table, word, &mut image)?;
                }
                if low.is_none() {
                    break;
                }
            }
        }
        Ok(count)
    }

    /// Collects the next rows of an index. Returns the key of the last one, if more may follow.
    fn walk(
        &mut self,
        index: &dyn ErasedIndex,
        low: Option<&KeyBuf>,
        rows: &mut Vec<u64>,
    ) -> Option<KeyBuf> {
        rows.clear();
        let low = low.map_or(Bound::Unbounded, |key| Bound::Excluded(key.get()));
        let mut last = None;
        index.walk((low, Bound::Unbounded), false, &self.guard, &mut |key, word| {
            rows.push(word);
            if rows.len() == ROWS {
                last = Some(KeyBuf::of(key));
            }
            last.is_none()
        });
        last
    }

    /// Places a row in all indexes but the primary one.
    fn place(&mut self, table: &TableCore<P>, word: u64, image: &mut [u64]) -> Result<(), Fail> {
        self.pin();
        // SAFETY: R1: the word is one of the primary index, and nobody frees its row.
        let row = unsafe { RowRef::<P::Rows>::new(Address::of(word), table.places.words) };
        row.copy_to(image);
        // SAFETY: the slice is one of words, which are eight bytes each.
        let image = unsafe { std::slice::from_raw_parts(image.as_ptr().cast(), image.len() * 8) };
        for index in &table.indexes[1..] {
            let placed = index.core().with_key(image, |key| index.place(key, word, &self.guard))?;
            if placed.is_some() {
                let (table, index) = (table.name.clone(), index.core().name.clone());
                return Err(Fail::Unique { table, index });
            }
        }
        Ok(())
    }
}

/// Finds the row with a primary key.
fn find<P: Policy>(
    table: &TableCore<P>,
    key: KeyRef<'_>,
    guard: &Guard,
) -> Option<RowRef<P::Rows>> {
    let word = table.indexes[0].look(key, guard)?;
    // SAFETY: R1: the word is one of the table's index, and nobody frees its row meanwhile.
    Some(unsafe { RowRef::new(Address::of(word), table.places.words) })
}

/// The words in which columns lie, with the bits that belong to them.
fn key_masks(columns: &[Place]) -> Vec<(usize, u64)> {
    let mut masks: Vec<(usize, [u8; WORD])> = Vec::new();
    let bytes = columns.iter().flat_map(|of| of.start..of.start + of.kind.width());
    for byte in bytes {
        let (at, within) = (byte / WORD, byte % WORD);
        if masks.iter().all(|(of, _)| *of != at) {
            masks.push((at, [0; WORD]));
        }
        for (_, mask) in masks.iter_mut().filter(|(of, _)| *of == at) {
            mask[within] = 0xFF;
        }
    }
    masks.into_iter().map(|(at, mask)| (at, u64::from_ne_bytes(mask))).collect()
}

/// A key that owns its bytes.
#[derive(Clone, Debug)]
pub(super) enum KeyBuf {
    Word(u64),
    Bytes(Box<[u8]>),
}

impl KeyBuf {
    pub(super) fn of(key: KeyRef<'_>) -> Self {
        match key {
            KeyRef::Word(word) => Self::Word(word),
            KeyRef::Bytes(bytes) => Self::Bytes(bytes.into()),
        }
    }

    pub(super) fn get(&self) -> KeyRef<'_> {
        match self {
            Self::Word(word) => KeyRef::Word(*word),
            Self::Bytes(bytes) => KeyRef::Bytes(bytes),
        }
    }
}
