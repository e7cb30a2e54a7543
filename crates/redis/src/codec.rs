//! The entries of a map in a snapshot.
//!
//! # Format
//! A map is written as a number and byte strings, which the server frames:
//! ```text
//! the number of entries
//! pieces:  one entry or more, in ascending order of their keys, of some [`PIECE`] bytes
//! the empty string
//! entry:   the bytes that its key shares with the key before it in this piece; the number of the
//!          other bytes, and these; the length of the value, and the value
//! ```
//! Numbers in a piece are in base 128, the lowest digits first; each digit but the last one has its
//! highest bit set. The first key of a piece shares nothing, and later ones at most [`SHARED`]
//! bytes. So a piece becomes at most some hundred times as large in memory.

use std::fmt;

/// The version of the format.
pub const VERSION: i32 = 1;

/// A piece ends with the entry that reaches this size.
pub const PIECE: usize = 16 << 10;

/// The most bytes that a key shares with the one before it.
pub const SHARED: usize = 255;

/// Writes entries as pieces.
#[derive(Default)]
pub struct Encoder {
    piece: Vec<u8>,
    last: Vec<u8>,
}

fn put_number(piece: &mut Vec<u8>, mut number: usize) {
    while number >= 0x80 {
        piece.push(number as u8 | 0x80);
        number >>= 7;
    }
    piece.push(number as u8);
}

impl Encoder {
    /// Adds an entry. Its key is greater than all keys before. Calls `write` with the piece that it
    /// completes, if it does.
    pub fn add(&mut self, key: &[u8], value: &[u8], write: impl FnOnce(&[u8])) {
        let shared = self.last.iter().zip(key).take(SHARED).take_while(|(a, b)| a == b).count();
        put_number(&mut self.piece, shared);
        put_number(&mut self.piece, key.len() - shared);
        self.piece.extend_from_slice(&key[shared..]);
        put_number(&mut self.piece, value.len());
        self.piece.extend_from_slice(value);
        self.last.truncate(shared);
        self.last.extend_from_slice(&key[shared..]);
        if self.piece.len() >= PIECE {
            self.end_piece(write);
        }
    }

    fn end_piece(&mut self, write: impl FnOnce(&[u8])) {
        write(&self.piece);
        self.piece.clear();
        self.last.clear();
    }

    /// Calls `write` with the rest, and with the empty string.
    pub fn finish(mut self, mut write: impl FnMut(&[u8])) {
        if !self.piece.is_empty() {
            self.end_piece(&mut write);
        }
        write(&[]);
    }
}

/// The reason why pieces are not those of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Corrupt {
    /// There are no entries.
    Empty,
    /// A piece ends within an entry, or has a number beyond its end.
    Cut,
    /// A piece goes on behind its end, or a key shares more than [`SHARED`] bytes.
    Size,
    /// A key is not greater than the one before it.
    Order,
    /// There are more or fewer entries than announced.
    Count {
        /// The number of entries that was written first.
        announced: u64,
        /// The number of entries in the pieces; of those read so far, if there are too many.
        found: u64,
    },
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "it has no entries"),
            Self::Size => write!(f, "a piece is too large"),
            Self::Cut => write!(f, "an entry is cut off"),
            Self::Order => write!(f, "its keys are not in ascending order"),
            Self::Count { announced, found } => {
                write!(f, "it has {found} entries instead of {announced}")
            }
        }
    }
}

impl std::error::Error for Corrupt {}

/// Reads pieces as entries, and trusts nothing in them.
pub struct Decoder {
    announced: u64,
    found: u64,
    last: Vec<u8>,
}

/// Takes the first `len` bytes off the rest of a piece.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Result<&'a [u8], Corrupt> {
    let (taken, behind) = rest.split_at_checked(len).ok_or(Corrupt::Cut)?;
    *rest = behind;
    Ok(taken)
}

fn take_number(rest: &mut &[u8]) -> Result<usize, Corrupt> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let digit = take(rest, 1)?[0];
        number |= usize::from(digit & 0x7f) << shift;
        if digit < 0x80 {
            return Ok(number);
        }
    }
    Err(Corrupt::Cut)
}

impl Decoder {
    /// Begins to read a map with this number of entries, which is not 0.
    pub fn new(announced: u64) -> Result<Self, Corrupt> {
        match announced {
            0 => Err(Corrupt::Empty),
            _ => Ok(Self { announced, found: 0, last: Vec::new() }),
        }
    }

    /// Reads a piece, and calls `each` with its entries, whose keys ascend.
    pub fn piece<E: From<Corrupt>>(
        &mut self,
        mut piece: &[u8],
        mut each: impl FnMut(&[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut first, len) = (true, piece.len());
        while !piece.is_empty() {
            if len - piece.len() >= PIECE {
                return Err(Corrupt::Size.into());
            }
            let shared = take_number(&mut piece)?;
            let others = take_number(&mut piece)?;
            let others = take(&mut piece, others)?;
            if shared > SHARED {
                return Err(Corrupt::Size.into());
            }
            if shared > if first { 0 } else { self.last.len() } {
                return Err(Corrupt::Cut.into());
            }
            if self.found > 0 && others <= &self.last[shared..] {
                return Err(Corrupt::Order.into());
            }
            let len = take_number(&mut piece)?;
            let value = take(&mut piece, len)?;
            self.last.truncate(shared);
            self.last.extend_from_slice(others);
            self.found += 1;
            if self.found > self.announced {
                return Err(self.miscounted().into());
            }
            each(&self.last, value)?;
            first = false;
        }
        Ok(())
    }

    fn miscounted(&self) -> Corrupt {
        Corrupt::Count { announced: self.announced, found: self.found }
    }

    /// Ends the map.
    pub fn finish(self) -> Result<(), Corrupt> {
        if self.found == self.announced { Ok(()) } else { Err(self.miscounted()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    type Model = BTreeMap<Vec<u8>, Vec<u8>>;

    fn pieces(entries: &Model) -> Vec<Vec<u8>> {
        let (mut encoder, mut pieces) = (Encoder::default(), Vec::new());
        for (key, value) in entries {
            encoder.add(key, value, |piece| pieces.push(piece.to_vec()));
        }
        encoder.finish(|piece| pieces.push(piece.to_vec()));
        assert_eq!(pieces.pop(), Some(Vec::new()));
        assert!(pieces.iter().all(|piece| !piece.is_empty()));
        pieces
    }

    fn read(announced: usize, pieces: &[Vec<u8>]) -> Result<Model, Corrupt> {
        let (mut decoder, mut entries) = (Decoder::new(announced as u64)?, Model::new());
        for piece in pieces {
            decoder.piece(piece, |key, value| {
                assert!(entries.last_key_value().is_none_or(|(last, _)| &last[..] < key));
                entries.insert(key.to_vec(), value.to_vec());
                Ok::<(), Corrupt>(())
            })?;
        }
        decoder.finish().map(|()| entries)
    }

    fn some() -> impl Strategy<Value = Model> {
        let bytes =
            |most| proptest::collection::vec(prop_oneof![Just(0), Just(255), any::<u8>()], 0..most);
        proptest::collection::btree_map(bytes(6), bytes(300), 1..200)
    }

    #[test]
    fn neighbours_share_their_prefix() {
        let path =
            |number: usize| format!("/usr/share/doc/package-{number:03}/copyright").into_bytes();
        let entries: Model = (0..100).map(|number| (path(number), b"1".to_vec())).collect();
        let bytes: usize = pieces(&entries).iter().map(Vec::len).sum();
        assert!(bytes < 100 * 20, "{bytes} bytes for 100 keys of 37 bytes");
    }

    #[test]
    fn keys_must_ascend_across_pieces() {
        let entries = |key: &str| pieces(&Model::from([(key.into(), b"v".to_vec())])).remove(0);
        assert_eq!(read(2, &[entries("b"), entries("a")]), Err(Corrupt::Order));
        assert_eq!(read(2, &[entries("b"), entries("b")]), Err(Corrupt::Order));
        assert!(read(2, &[entries("a"), entries("b")]).is_ok());
        let (announced, found) = (1, 2);
        let error = Corrupt::Count { announced, found };
        assert_eq!(read(1, &[entries("a"), entries("b")]), Err(error));
    }

    #[test]
    fn a_piece_has_its_size() {
        let long = |last| vec![b'k'; 400].into_iter().chain([last]).collect::<Vec<u8>>();
        let entries = Model::from([(long(1), vec![]), (long(2), vec![])]);
        let piece = pieces(&entries).remove(0);
        assert_eq!(piece.len(), 2 + 1 + 401 + 1 + 2 + 2 + (401 - SHARED) + 1);
        assert_eq!(read(2, &[piece]), Ok(entries));
        let mut entry = vec![0, 1, b'a', 0];
        entry.extend([0x80, 2, 0, 0]); // shares 256 bytes
        assert_eq!(read(2, &[entry]), Err(Corrupt::Size));
        let large: Vec<u8> = (0..=PIECE / 4)
            .flat_map(|number| [&[0, 8][..], &number.to_be_bytes(), &[0]].concat())
            .collect();
        assert_eq!(read(PIECE / 4 + 1, &[large]), Err(Corrupt::Size));
        assert_eq!(read(0, &[]), Err(Corrupt::Empty));
    }

    proptest! {
        #[test]
        fn entries_come_back(entries in some()) {
            prop_assert_eq!(read(entries.len(), &pieces(&entries)), Ok(entries));
        }

        #[test]
        fn what_is_cut_off_is_noticed(entries in some(), cut: prop::sample::Index) {
            let mut pieces = pieces(&entries);
            if let Some(last) = pieces.last_mut() {
                last.truncate(cut.index(last.len()));
                prop_assert!(read(entries.len(), &pieces).is_err());
            }
        }

        #[test]
        fn damage_never_yields_unsorted_keys(entries in some(), at: prop::sample::Index, byte: u8) {
            let mut pieces = pieces(&entries);
            if let Some(piece) = pieces.first_mut() {
                let at = at.index(piece.len());
                piece[at] = byte;
                let _ = read(entries.len(), &pieces); // which asserts the order
            }
        }
    }
}
