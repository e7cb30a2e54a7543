//! A map from words or bytes to words, over a structure chosen by name.
//!
//! It is an [`AnyMap`] with one of the two forms of keys that Python's keys are written in
//! ([`crate::key`]). No call runs foreign code, and no pin outlives a call.

pub use crate::entries::{Entries, Key, Keys, OwnedKey};
use silvics::AllocError;
use silvics::dynamic::{AnyMap, Structure, StructureError};
use silvics::map::{CompareExchangeError, Cursor, Entry, TryInsertError, View};
use silvics::structures::STRUCTURES;
use silvics::{AsKey, Options};
use std::collections::TryReserveError;
use std::ops::{Bound, Range};
use std::sync::Arc;

/// A map with keys `K`, all of whose values are words.
pub type Words<K> = AnyMap<K, u64>;

/// A cursor of such a map.
pub type Walk<K> = Cursor<K, u64, silvics::dynamic::AnyOrdered<<K as silvics::Key>::Form>>;

/// A map in one of two forms.
#[derive(Debug)]
pub enum Store {
    /// The keys are words.
    Words(Arc<Words<u64>>),
    /// The keys are byte strings.
    Blocks(Arc<Words<Vec<u8>>>),
}

/// Two bounds of copied keys.
pub type Bounds = (Bound<OwnedKey>, Bound<OwnedKey>);

/// The present word, after a failed compare-and-exchange; `None` if the key is absent.
pub type Found = Option<u64>;

/// The number of keys that are looked up together.
const GROUP: usize = 64;

/// Evaluates an expression on the map of either form.
macro_rules! either {
    ($store:expr, $map:ident => $body:expr) => {
        match $store {
            Store::Words($map) => $body,
            Store::Blocks($map) => $body,
        }
    };
}

/// Evaluates an expression on the map and a key of its form. Keys are written for the map they are
/// passed to, so the last arm is not reached.
macro_rules! keyed {
    ($store:expr, $key:expr, ($map:ident, $form:ident) => $body:expr, $other:expr) => {
        match ($store, $key) {
            (Store::Words($map), Key::Word($form)) => $body,
            (Store::Blocks($map), Key::Block($form)) => $body,
            _ => {
                debug_assert!(false, "a key of a store has its form");
                $other
            }
        }
    };
}

/// Evaluates an expression on the map and bounds of its form.
macro_rules! ranged {
    ($store:expr, $bounds:expr, ($map:ident, $range:ident) => $body:expr) => {
        match $store {
            Store::Words($map) => {
                let $range = (word_bound(&$bounds.0), word_bound(&$bounds.1));
                $body
            }
            Store::Blocks($map) => {
                let $range = (block_bound(&$bounds.0), block_bound(&$bounds.1));
                $body
            }
        }
    };
}

fn word_bound(bound: &Bound<OwnedKey>) -> Bound<u64> {
    bound.as_ref().map(|key| match key {
        OwnedKey::Word(word) => *word,
        OwnedKey::Block(_) => 0,
    })
}

fn block_bound(bound: &Bound<OwnedKey>) -> Bound<&[u8]> {
    bound.as_ref().map(|key| match key {
        OwnedKey::Word(_) => &[][..],
        OwnedKey::Block(block) => block,
    })
}

/// The greatest length of a byte string that is a key of a structure. Without a name, the structure
/// is the default one.
pub fn longest_key(structure: Option<&str>) -> usize {
    let name =
        structure.map_or(Ok("blocks"), |name| Structure::<[u8]>::named(name).map(|s| s.name()));
    let facts = name.ok().and_then(|name| STRUCTURES.iter().find(|facts| facts.name == name));
    facts.and_then(|facts| facts.max_key_bytes).unwrap_or(usize::MAX)
}

impl Store {
    /// An empty map with keys that are words or blocks. Without a name, its structure is the
    /// default one that counts its keys.
    pub fn new(
        are_words: bool,
        structure: Option<&str>,
        options: &Options,
    ) -> Result<Self, StructureError> {
        Ok(match (are_words, structure) {
            (true, None) => Self::Words(Arc::new(Words::counted(options)?)),
            (false, None) => Self::Blocks(Arc::new(Words::counted(options)?)),
            (true, Some(name)) => {
                Self::Words(Arc::new(Structure::<u64>::named(name)?.map(options)?))
            }
            (false, Some(name)) => {
                Self::Blocks(Arc::new(Structure::<[u8]>::named(name)?.map(options)?))
            }
        })
    }

    /// Whether the keys are words.
    pub fn are_words(&self) -> bool {
        matches!(self, Self::Words(_))
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        either!(self, map => map.len())
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes that the map holds.
    pub fn bytes(&self) -> usize {
        either!(self, map => map.bytes())
    }

    /// Returns unused memory to the system, and the number of its bytes.
    pub fn shrink(&self) -> usize {
        either!(self, map => map.shrink())
    }

    /// Whether the structure finds its first and its last entry at one moment.
    pub fn has_ends(&self) -> bool {
        either!(self, map => map.has_ends())
    }

    /// Whether the structure has ranks.
    pub fn has_ranks(&self) -> bool {
        either!(self, map => map.has_ranks())
    }

    /// The word of a key.
    #[inline]
    pub fn get(&self, key: Key<'_>) -> Option<u64> {
        keyed!(self, key, (map, key) => map.pin().get(key).map(|word| *word), None)
    }

    /// Gives a key a word, and returns its former word.
    #[inline]
    pub fn upsert(&self, key: Key<'_>, word: u64) -> Result<Option<u64>, AllocError> {
        keyed!(self, key, (map, key) => {
            let old = map.try_upsert(key, word).map_err(|rejected| rejected.error)?;
            Ok(old.map(|old| *old))
        }, Ok(None))
    }

    /// Gives a key a word unless it has one. Returns the word that it had.
    pub fn insert_absent(&self, key: Key<'_>, word: u64) -> Result<Option<u64>, AllocError> {
        keyed!(self, key, (map, key) => match map.try_insert(key, word) {
            Err(TryInsertError::Occupied { present, .. }) => Ok(Some(*present)),
            Err(TryInsertError::Alloc(rejected)) => Err(rejected.error),
            _ => Ok(None), // inserted; there is no other error
        }, Ok(None))
    }

    /// Removes a key, and returns its word.
    #[inline]
    pub fn remove(&self, key: Key<'_>) -> Result<Option<u64>, AllocError> {
        keyed!(self, key, (map, key) => Ok(map.try_remove(key)?.map(|word| *word)), Ok(None))
    }

    /// Brings a key from one state to another in one atomic step; `None` is *absent*. Returns
    /// whether it did, or the state that it found.
    pub fn compare_exchange(
        &self,
        key: Key<'_>,
        expected: Option<u64>,
        new: Option<u64>,
    ) -> Result<Result<(), Found>, AllocError> {
        keyed!(self, key, (map, key) => {
            match map.compare_exchange(key, expected.as_ref(), new) {
                Ok(_) => Ok(Ok(())),
                Err(CompareExchangeError::Mismatch { present, .. }) => {
                    Ok(Err(present.map(|word| *word)))
                }
                Err(CompareExchangeError::Alloc(rejected)) => Err(rejected.error),
                Err(_) => Ok(Err(None)), // there is no other variant
            }
        }, Ok(Err(None)))
    }

    /// The entry at one end. Without ends it is the first entry of a scan.
    pub fn end(&self, last: bool) -> Option<(OwnedKey, u64)> {
        match self {
            Self::Words(map) => {
                end(&map.pin(), last).map(|(key, word)| (OwnedKey::Word(key), *word))
            }
            Self::Blocks(map) => {
                end(&map.pin(), last).map(|(key, word)| (OwnedKey::Block(key.to_vec()), *word))
            }
        }
    }

    /// Removes the entry at one end and returns it. Without ends it removes the first entry of a
    /// scan, which may have become another one meanwhile.
    pub fn pop_end(&self, last: bool) -> Result<Option<(OwnedKey, u64)>, AllocError> {
        if !self.has_ends() {
            while let Some((key, _)) = self.end(last) {
                if let Some(word) = self.remove(key.borrow())? {
                    return Ok(Some((key, word)));
                }
            }
            return Ok(None);
        }
        Ok(match self {
            Self::Words(map) => {
                pop_end(&map.pin(), last)?.map(|(key, word)| (OwnedKey::Word(key), *word))
            }
            Self::Blocks(map) => {
                pop_end(&map.pin(), last)?.map(|(key, word)| (OwnedKey::Block(key.to_vec()), *word))
            }
        })
    }

    /// The number of smaller keys. `None` if the structure has no ranks.
    pub fn rank(&self, key: Key<'_>) -> Option<usize> {
        keyed!(self, key, (map, key) => map.pin().ranks().map(|ranks| ranks.rank(key)), None)
    }

    /// The number of keys between two bounds. `None` if the structure has no ranks.
    pub fn count(&self, bounds: &Bounds) -> Option<usize> {
        ranged!(self, bounds, (map, range) => map.pin().ranks().map(|ranks| ranks.count(range)))
    }

    /// The entry with the given number of smaller keys.
    pub fn nth(&self, number: usize) -> Option<(OwnedKey, u64)> {
        match self {
            Self::Words(map) => {
                let view = map.pin();
                view.ranks()?.nth(number).map(|(key, word)| (OwnedKey::Word(key), *word))
            }
            Self::Blocks(map) => {
                let view = map.pin();
                view.ranks()?.nth(number).map(|(key, word)| (OwnedKey::Block(key.to_vec()), *word))
            }
        }
    }

    /// Appends the first entries between two bounds, or the last ones in descending order. If an
    /// allocation fails, the entries before it have been appended.
    pub fn scan(
        &self,
        bounds: &Bounds,
        reverse: bool,
        most: usize,
        to: &mut Entries,
    ) -> Result<(), TryReserveError> {
        ranged!(self, bounds, (map, range) => {
            let view = map.pin();
            let mut range = view.range(range);
            if reverse {
                range.rev().take(most).try_for_each(|(key, word)| to.push(key.into(), *word))
            } else {
                range.by_ref().take(most).try_for_each(|(key, word)| to.push(key.into(), *word))
            }
        })
    }

    /// Looks up keys, and calls `each` with the word of each one, in their order.
    pub fn get_many(&self, keys: &Keys, mut each: impl FnMut(Option<u64>)) {
        for group in groups(0..keys.len()) {
            self.get_group(keys, group, &mut each);
        }
    }

    /// Looks up a group of keys. Their cache misses overlap.
    fn get_group(&self, keys: &Keys, group: Range<usize>, mut each: impl FnMut(Option<u64>)) {
        match (self, keys) {
            (Self::Words(map), Keys::Words(words)) => look_up(map, &words[group], each),
            (Self::Blocks(map), Keys::Blocks { .. }) => {
                let blocks: Vec<&[u8]> = group.map(|at| keys.block(at)).collect();
                look_up(map, &blocks, &mut each);
            }
            _ => debug_assert!(false, "keys of a store have its form"),
        }
    }

    /// Fails if a key is longer than `longest` bytes.
    pub fn check_lengths(keys: &Keys, longest: usize) -> Result<(), AllocError> {
        for at in 0..keys.len() {
            let bytes = keys.block(at).len();
            if bytes > longest {
                return Err(AllocError::KeyLength { bytes, limit: longest });
            }
        }
        Ok(())
    }

    /// Gives each key from a position on its word, in order, and passes each former word to `old`.
    /// Returns the position of the first entry that was refused, and the reason.
    pub fn insert_many(
        &self,
        keys: &Keys,
        words: &[u64],
        from: usize,
        mut old: impl FnMut(u64),
    ) -> Result<(), (usize, AllocError)> {
        for group in groups(from..words.len()) {
            // The lookups bring the nodes of the whole group into the cache.
            self.get_group(keys, group.clone(), |_| ());
            for at in group {
                match self.upsert(keys.get(at), words[at]) {
                    Ok(former) => former.into_iter().for_each(&mut old),
                    Err(error) => return Err((at, error)),
                }
            }
        }
        Ok(())
    }

    /// Inserts entries as [`Store::insert_many`] does, for words without references (numbers).
    pub fn extend(
        &self,
        keys: &Keys,
        words: &[u64],
        from: usize,
    ) -> Result<(), (usize, AllocError)> {
        let outcome = match (self, keys) {
            (Self::Words(map), Keys::Words(keys)) => {
                let entries = keys.iter().copied().zip(words.iter().copied()).skip(from);
                map.try_extend(entries).map_err(|error| (from + error.done, error.error))
            }
            (Self::Blocks(map), Keys::Blocks { bytes, ends }) => {
                let starts = std::iter::once(&0).chain(ends);
                let blocks = starts.zip(ends).map(|(start, end)| &bytes[*start..*end]);
                let entries = blocks.zip(words.iter().copied()).skip(from);
                map.try_extend(entries).map_err(|error| (from + error.done, error.error))
            }
            _ => return Ok(()),
        };
        outcome.map(drop)
    }

    /// Checks that the map is consistent: keys ascend, each is found with its word, and the ranks
    /// and the length count them. Returns the number of keys, or a sentence that names the mistake.
    /// Another thread that writes meanwhile can cause a false report.
    pub fn check(&self) -> Result<usize, String> {
        let mut entries = Entries::empty(self.are_words());
        let (mut from, mut count) = (Bound::Unbounded, 0);
        loop {
            entries.clear();
            let scanned = self.scan(&(from.clone(), Bound::Unbounded), false, 512, &mut entries);
            scanned.map_err(|error| error.to_string())?;
            for (at, word) in entries.words.iter().enumerate() {
                let key = entries.keys.get(at);
                if at > 0 && !ascends(entries.keys.get(at - 1), key) {
                    return Err(format!("entry {count} does not ascend: {key:?}"));
                }
                if self.get(key) != Some(*word) {
                    return Err(format!("a lookup of entry {count} finds another value: {key:?}"));
                }
                if self.rank(key).is_some_and(|rank| rank != count) {
                    return Err(format!("entry {count} has another rank: {key:?}"));
                }
                count += 1;
            }
            let Some(last) = entries.keys.last() else { break };
            from = Bound::Excluded(last);
        }
        let len = self.len();
        if len == count {
            Ok(count)
        } else {
            Err(format!("{count} entries, but a length of {len}"))
        }
    }
}

fn ascends(one: Key<'_>, two: Key<'_>) -> bool {
    match (one, two) {
        (Key::Word(one), Key::Word(two)) => one < two,
        (Key::Block(one), Key::Block(two)) => one < two,
        _ => false,
    }
}

/// The view of a map of either form.
type Pinned<'m, K> = View<'m, K, u64, silvics::dynamic::AnyOrdered<<K as silvics::Key>::Form>>;

fn end<'g, K: silvics::Key>(view: &'g Pinned<'_, K>, last: bool) -> Option<Entry<'g, K, u64>>
where
    K::Form: silvics::dynamic::InTable,
{
    match (view.ends(), last) {
        (Some(ends), false) => ends.first(),
        (Some(ends), true) => ends.last(),
        (None, false) => view.iter().next(),
        (None, true) => view.iter_rev().next(),
    }
}

fn pop_end<'g, K: silvics::Key>(
    view: &'g Pinned<'_, K>,
    last: bool,
) -> Result<Option<Entry<'g, K, u64>>, AllocError>
where
    K::Form: silvics::dynamic::InTable,
{
    let Some(ends) = view.ends() else { return Ok(None) };
    if last { ends.try_pop_last() } else { ends.try_pop_first() }
}

/// The positions of some keys, [`GROUP`] by [`GROUP`].
fn groups(all: Range<usize>) -> impl Iterator<Item = Range<usize>> {
    let end = all.end;
    all.step_by(GROUP).map(move |start| start..end.min(start + GROUP))
}

/// Looks up at most [`GROUP`] keys.
fn look_up<K: silvics::Key, Q: AsKey<K>>(
    map: &Words<K>,
    keys: &[Q],
    mut each: impl FnMut(Option<u64>),
) where
    K::Form: silvics::dynamic::InTable,
{
    let view = map.pin();
    let mut found = [const { None }; GROUP];
    view.get_many(keys, &mut found);
    found[..keys.len()].iter().for_each(|word| each(word.as_ref().map(|word| **word)));
}
