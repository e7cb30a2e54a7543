//! Building a tree from sorted entries.
//!
//! # Algorithm
//! ```text
//! subtree of entries: few of them are a block; a quarter of 64 keys or more are slots; else a node
//! node:   its first bit is the first in which two keys differ. It has as many bits as its mean
//!         place then has entries for half a block, or as many as make its places those of slots;
//!         nine at most, and fewer if most places would lead nowhere
//! places: entries below an aligned run of places that fit in one block become it; those of a
//!         larger run are divided; those below one place are a subtree
//! ```
//! One thread makes the upper nodes. Then all threads take the parts below them.
//!
//! This takes O(entries) for each level, of which random keys have three at a million. Beside the
//! tree it takes eight to 24 bytes for each object.

use super::Words;
use super::block::{MAX_ENTRIES, exact_groups_for};
use super::edit::Fresh;
use super::key::WordKey;
use super::node::{MAX_BITS, Places};
use super::ops::ROOT_BITS;
use super::slots::{SLOT_BITS, SLOTS, SlotsRef};
use super::value::Marks;
use super::word::{Place, Word};
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, reserved};
use crate::threads::{Numbers, for_entries, share};
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering;
use std::num::NonZeroUsize;

/// The most entries of a block: it has room for more, so that the next inserts do not divide it.
const MOST: usize = 5 * MAX_ENTRIES / 6;
/// An array of slots has the values of a range of [`SLOTS`] keys if this many of them are there: a
/// quarter. In a tree that grows, fewer are enough: a block that was filled key by key has more
/// bytes than one that is made for its entries.
const DENSE: usize = if cfg!(silvics_shuttle) { MAX_ENTRIES } else { SLOTS / 4 };
/// The entries are divided into about this many parts for each thread.
const PARTS: usize = 8;
/// The mean entries below a place of a node.
const MEAN: usize = MAX_ENTRIES / 2;

/// The object that has some entries.
enum Form {
    Block(Marks),
    Slots(Marks),
    Node,
}

/// The highest bit in which two of some sorted keys differ.
fn span<K: WordKey>(entries: &[(K, u64)]) -> Option<u32> {
    entries.first()?.0.difference(entries.last()?.0)
}

/// Whether the keys below `2^(bit + 1)`, in which two of `len` entries differ, are so dense that
/// slots have their values.
fn is_dense(bit: u32, len: usize) -> bool {
    let arrays = (bit + 1).saturating_sub(SLOT_BITS);
    arrays < usize::BITS && len >> arrays >= DENSE
}

/// The form of the object that has some entries.
fn form<K: WordKey>(entries: &[(K, u64)]) -> Form {
    let marks = |entries: &[(K, u64)]| {
        let fit = |marks: &Marks| entries.iter().all(|(_, value)| marks.allow(*value));
        Marks::BOTH.into_iter().find(fit)
    };
    let is_slots = span(entries).is_some_and(|bit| is_dense(bit, entries.len()));
    let is_one = is_slots && span(entries).is_some_and(|bit| bit < SLOT_BITS);
    if is_one && let Some(marks) = marks(entries) {
        return Form::Slots(marks);
    }
    if (is_one || !is_slots)
        && entries.len() <= MOST
        && let Some(marks) = marks(entries)
    {
        return Form::Block(marks);
    }
    Form::Node
}

/// The bits of a node above some entries, which first differ in `bit`.
fn bits_for<K: WordKey>(entries: &[(K, u64)], bit: u32) -> u32 {
    let top = bit + 1;
    if is_dense(bit, entries.len()) && top > SLOT_BITS {
        return (top - SLOT_BITS).min(MAX_BITS);
    }
    let mut bits = (entries.len() / MEAN).max(2).ilog2().min(MAX_BITS).min(top);
    // If keys are crowded, most places would lead nowhere.
    while bits > 1 {
        let shift = top - bits;
        let parts = |pair: &[(K, u64)]| pair[0].0.above(shift) != pair[1].0.above(shift);
        let places = 1 + entries.windows(2).filter(|pair| parts(pair)).count();
        if 1 << bits <= 4 * (places + 1) {
            break;
        }
        bits -= 1;
    }
    bits
}

/// Entries below the places `at..at + len` of an object that is made already.
struct Part<'p, K: WordKey> {
    places: Places<'p, K>,
    at: usize,
    len: usize,
    entries: &'p [(K, u64)],
}

/// Parts that other builders shall build: those with at most this many entries.
struct Later<'p, K: WordKey> {
    most: usize,
    parts: Vec<Part<'p, K>>,
}

struct Builder<'t, 'p, K: WordKey, P: Placement> {
    fresh: Fresh<'t, K, P>,
    guard: &'p Guard,
    later: Option<Later<'p, K>>,
}

impl<'t: 'p, 'p, K: WordKey, P: Placement> Builder<'t, 'p, K, P> {
    /// The object that has some entries, below a place whose keys agree from bit `shift` up.
    fn subtree(&mut self, entries: &'p [(K, u64)], shift: u32) -> Result<Word, AllocError> {
        match form(entries) {
            Form::Block(marks) => self.block(entries, marks),
            Form::Slots(marks) => {
                let slots = self.slots(entries, marks)?;
                if shift <= SLOT_BITS {
                    return Ok(slots);
                }
                // The array does not check keys, so a node above it does.
                let shape = (entries[0].0.above(SLOT_BITS), SLOT_BITS, 0);
                let places = self.node(shape, true)?;
                places.1.list[0].link(slots);
                Ok(places.0)
            }
            Form::Node => {
                let Some(bit) = span(entries) else { unreachable!("one entry fits in a block") };
                let bits = bits_for(entries, bit);
                let shape = (entries[0].0.above(bit + 1), bit + 1 - bits, bits);
                let (word, places) = self.node(shape, bit + 1 < shift)?;
                self.fill(places, (0, places.list.len()), entries)?;
                Ok(word)
            }
        }
    }

    /// Puts objects with some entries below the run of `len` places from `at` on.
    fn fill(
        &mut self,
        places: Places<'p, K>,
        (at, len): (usize, usize),
        entries: &'p [(K, u64)],
    ) -> Result<(), AllocError> {
        if entries.is_empty() {
            return Ok(());
        }
        if let Some(later) = &mut self.later
            && entries.len() <= later.most
        {
            reserved(&mut later.parts, 1)?.push(Part { places, at, len, entries });
            return Ok(());
        }
        let word = match form(entries) {
            Form::Block(marks) => self.block(entries, marks)?,
            Form::Slots(_) | Form::Node if len > 1 => {
                let half = len / 2;
                let middle = places.start(at + half);
                let (low, high) = entries.split_at(entries.partition_point(|e| e.0 < middle));
                self.fill(places, (at, half), low)?;
                return self.fill(places, (at + half, half), high);
            }
            Form::Slots(_) | Form::Node => self.subtree(entries, places.shift)?,
        };
        places.list[at..at + len].iter().for_each(|place| place.link(word));
        Ok(())
    }

    fn block(&mut self, entries: &[(K, u64)], marks: Marks) -> Result<Word, AllocError> {
        let (groups, guard) = (exact_groups_for::<K>(entries.len()), self.guard);
        let block = self
            .fresh
            .add(|tree| tree.objects.block(groups, marks, guard), |block| block.word())?;
        block.fill(entries.iter().map(|(key, value)| (key, *value)), |_, _| ());
        Ok(block.word())
    }

    fn slots(&mut self, entries: &[(K, u64)], marks: Marks) -> Result<Word, AllocError> {
        let (base, guard) = (entries[0].0.above(SLOT_BITS), self.guard);
        let slots =
            self.fresh.add(|tree| tree.objects.slots(base, marks, guard), |slots| slots.word())?;
        for (key, value) in entries {
            slots.value(SlotsRef::slot_of(*key)).place.store(*value, Ordering::Relaxed);
        }
        Ok(slots.word())
    }

    fn node(
        &mut self,
        shape: (K, u32, u32),
        checks: bool,
    ) -> Result<(Word, Places<'p, K>), AllocError> {
        let guard = self.guard;
        let node =
            self.fresh.add(|tree| tree.objects.node(shape, checks, guard), |node| node.word())?;
        Ok((node.word(), node.places()))
    }
}

impl<K: WordKey, P: Placement> Words<K, P> {
    /// See [`WordTree::bulk_load`](super::WordTree::bulk_load).
    pub(super) fn load_sorted(
        &mut self,
        entries: &[(K, u64)],
        threads: NonZeroUsize,
    ) -> Result<(), BulkLoadError> {
        let present = self.objects.frame().len.sum();
        if present != 0 {
            return Err(BulkLoadError::NotEmpty { entries: present.max(0) as usize });
        }
        if entries.is_empty() {
            return Ok(());
        }
        for (position, pair) in (1..).zip(entries.windows(2)) {
            if pair[0].0 == pair[1].0 {
                return Err(BulkLoadError::Duplicate { position });
            }
            if pair[0].0 > pair[1].0 {
                return Err(BulkLoadError::Unsorted { position });
            }
        }
        let words: [Place; 1 << ROOT_BITS] = std::array::from_fn(|_| Place::new(Word::NONE));
        for made in self.subtrees(Places { list: &words, ..self.root() }, entries, threads)? {
            made.linked();
        }
        for (place, word) in self.roots.iter().zip(words) {
            // SAFETY: access is exclusive, and the objects of the empty tree are not linked any
            // more after this.
            unsafe { self.objects.free_all(place.word()) };
            place.link(word.word());
        }
        self.objects.frame().len.add(entries.len() as i64);
        Ok(())
    }

    /// Links objects that have the entries in `root`. Returns lists of them: one list of each
    /// thread and one of the objects above those.
    fn subtrees(
        &self,
        root: Places<'_, K>,
        entries: &[(K, u64)],
        threads: NonZeroUsize,
    ) -> Result<Vec<Fresh<'_, K, P>>, AllocError> {
        let guard = self.objects.frame().domain.pin();
        let threads = for_entries(entries.len(), threads);
        let later = (threads.get() > 1)
            .then(|| Later { most: entries.len() / (PARTS * threads.get()), parts: Vec::new() });
        let mut top = Builder { fresh: Fresh::new(self), guard: &guard, later };
        let mut rest = entries;
        for at in 0..root.list.len() {
            let end = root.end(at);
            let (own, others) = rest.split_at(rest.partition_point(|entry| entry.0 <= end));
            top.fill(root, (at, 1), own)?;
            rest = others;
        }
        let Some(Later { parts, .. }) = top.later.take() else { return Ok(vec![top.fresh]) };
        let build = |numbers: Numbers<'_>| {
            let guard = self.objects.frame().domain.pin();
            let mut builder = Builder { fresh: Fresh::new(self), guard: &guard, later: None };
            for number in numbers {
                let Part { places, at, len, entries } = parts[number];
                builder.fill(places, (at, len), entries)?;
            }
            Ok(builder.fresh)
        };
        let mut made =
            share(parts.len(), threads, build).into_iter().collect::<Result<Vec<_>, _>>()?;
        made.push(top.fresh);
        Ok(made)
    }
}
