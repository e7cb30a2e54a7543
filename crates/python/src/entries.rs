//! Keys and entries of a [`Store`](crate::store::Store), in memory of their own.

use std::collections::TryReserveError;

/// A borrowed key.
#[derive(Clone, Copy, Debug)]
pub enum Key<'a> {
    /// The key of a number.
    Word(u64),
    /// The key of a string or a tuple.
    Block(&'a [u8]),
}

/// A copied key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnedKey {
    /// The key of a number.
    Word(u64),
    /// The key of a string or a tuple.
    Block(Vec<u8>),
}

impl OwnedKey {
    /// Borrows the key.
    pub fn borrow(&self) -> Key<'_> {
        match self {
            Self::Word(word) => Key::Word(*word),
            Self::Block(block) => Key::Block(block),
        }
    }
}

/// Many keys.
#[derive(Debug)]
pub enum Keys {
    /// The keys of numbers.
    Words(Vec<u64>),
    /// The keys of strings or tuples, one after another.
    Blocks {
        /// The bytes of all keys.
        bytes: Vec<u8>,
        /// The end of each key in these bytes.
        ends: Vec<usize>,
    },
}

impl Keys {
    /// No keys, in the form of words or of blocks.
    pub fn empty(are_words: bool) -> Self {
        if are_words {
            Self::Words(Vec::new())
        } else {
            Self::Blocks { bytes: Vec::new(), ends: Vec::new() }
        }
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        match self {
            Self::Words(words) => words.len(),
            Self::Blocks { ends, .. } => ends.len(),
        }
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all keys.
    pub fn clear(&mut self) {
        match self {
            Self::Words(words) => words.clear(),
            Self::Blocks { bytes, ends } => {
                bytes.clear();
                ends.clear();
            }
        }
    }

    /// The key at a position.
    #[inline]
    pub fn get(&self, at: usize) -> Key<'_> {
        match self {
            Self::Words(words) => Key::Word(words[at]),
            Self::Blocks { .. } => Key::Block(self.block(at)),
        }
    }

    /// The bytes of the key at a position; none of a number.
    #[inline]
    pub fn block(&self, at: usize) -> &[u8] {
        match self {
            Self::Words(_) => &[],
            Self::Blocks { bytes, ends } => {
                let start = if at == 0 { 0 } else { ends[at - 1] };
                &bytes[start..ends[at]]
            }
        }
    }

    /// Adds a key, or nothing if the allocation fails. All keys have one form.
    #[inline]
    pub fn push(&mut self, key: Key<'_>) -> Result<(), TryReserveError> {
        match (self, key) {
            (Self::Words(words), Key::Word(word)) => {
                words.try_reserve(1)?;
                words.push(word);
            }
            (Self::Blocks { bytes, ends }, Key::Block(block)) => {
                bytes.try_reserve(block.len())?;
                ends.try_reserve(1)?;
                bytes.extend_from_slice(block);
                ends.push(bytes.len());
            }
            _ => debug_assert!(false, "all keys of a store have one form"),
        }
        Ok(())
    }

    /// A copy of the last key.
    pub fn last(&self) -> Option<OwnedKey> {
        Some(match self.get(self.len().checked_sub(1)?) {
            Key::Word(word) => OwnedKey::Word(word),
            Key::Block(block) => OwnedKey::Block(block.to_vec()),
        })
    }
}

/// Many entries.
#[derive(Debug)]
pub struct Entries {
    /// Their keys.
    pub keys: Keys,
    /// Their words.
    pub words: Vec<u64>,
}

impl Entries {
    /// No entries.
    pub fn empty(are_words: bool) -> Self {
        Self { keys: Keys::empty(are_words), words: Vec::new() }
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.words.clear();
    }

    /// Adds an entry, or nothing if the allocation fails.
    pub fn push(&mut self, key: Key<'_>, word: u64) -> Result<(), TryReserveError> {
        self.words.try_reserve(1)?;
        self.keys.push(key)?;
        self.words.push(word);
        Ok(())
    }
}

impl From<u64> for Key<'_> {
    fn from(word: u64) -> Self {
        Self::Word(word)
    }
}

impl<'a> From<&'a [u8]> for Key<'a> {
    fn from(block: &'a [u8]) -> Self {
        Self::Block(block)
    }
}
