//! Keys as characters of an alphabet, and labels: the characters of a node.
//!
//! A character has 1, 2, 4 or 8 bits, so it never crosses a byte. Character 0 is the highest bits
//! of byte 0. Labels are kept by whole bytes of the key, at the key's own byte positions: the first
//! byte of a label may have characters before the label's first one, which are those of every key
//! below the node, and the bits behind its last character are 0. So a label is compared with a key
//! by bytes, and a label that begins later is a suffix of the same bytes.

use super::MAX_BYTES;
use crate::encoding::common_prefix;

/// The number of characters of a key of `bytes` bytes. A key that is too long for the trie counts
/// as one that is too long by a byte: no path has as many characters.
#[inline(always)]
pub(super) fn chars(bits: u32, bytes: usize) -> u32 {
    bytes.min(MAX_BYTES + 1) as u32 * 8 / bits
}

/// The byte that character `at` lies in.
#[inline(always)]
pub(super) fn byte_of(bits: u32, at: u32) -> usize {
    (at * bits) as usize / 8
}

/// The number of bytes that the characters before `end` take.
#[inline(always)]
pub(super) fn bytes_to(bits: u32, end: u32) -> usize {
    ((end * bits) as usize).div_ceil(8)
}

/// The position of the first byte of a label that has the characters `from..end`, and the number of
/// its bytes.
#[inline(always)]
pub(super) fn label_bytes(bits: u32, from: u32, end: u32) -> (usize, usize) {
    let behind = bytes_to(bits, end);
    let start = if from < end { byte_of(bits, from) } else { behind };
    (start, behind - start)
}

/// The distance of character `at` from the low end of its byte.
#[inline(always)]
fn shift(bits: u32, at: u32) -> u32 {
    8 - bits - (at * bits) % 8
}

/// The character in a byte of the key.
#[inline(always)]
fn of_byte(bits: u32, byte: u8, at: u32) -> u32 {
    u32::from(byte) >> shift(bits, at) & ((1 << bits) - 1)
}

/// Character `at` of a key that has it.
#[inline(always)]
pub(super) fn digit(bits: u32, key: &[u8], at: u32) -> u32 {
    of_byte(bits, key[byte_of(bits, at)], at)
}

/// Writes character `at` into a key.
#[inline(always)]
pub(super) fn put_digit(bits: u32, key: &mut [u8], at: u32, digit: u32) {
    let (byte, shift) = (&mut key[byte_of(bits, at)], shift(bits, at));
    let mask = (((1u32 << bits) - 1) << shift) as u8;
    *byte = *byte & !mask | (digit << shift) as u8;
}

/// The most bytes of a label that a node of the build `paper` holds itself.
pub(super) const HEAD: usize = 3;

/// The bytes of a label, in two parts: those that a node of the build `paper` holds itself, and the
/// others.
#[derive(Clone, Copy, Debug)]
pub struct Label<'g> {
    /// The position in the key of the first byte.
    pub(super) start: usize,
    pub(super) head: [u8; HEAD],
    /// The number of bytes in `head`.
    pub(super) heads: usize,
    pub(super) tail: &'g [u8],
}

impl<'g> Label<'g> {
    /// A label that lies in one part.
    #[inline(always)]
    pub(super) fn whole(start: usize, tail: &'g [u8]) -> Self {
        Self { start, head: [0; HEAD], heads: 0, tail }
    }

    /// The number of bytes.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.heads + self.tail.len()
    }

    /// The byte of the key at a position; 0 if the label does not have it.
    #[inline(always)]
    fn byte(&self, position: usize) -> u8 {
        let Some(at) = position.checked_sub(self.start) else { return 0 };
        let byte = match at.checked_sub(self.heads) {
            None => self.head.get(at),
            Some(at) => self.tail.get(at),
        };
        byte.copied().unwrap_or(0)
    }

    /// Character `at`, which the label has.
    #[inline]
    pub(super) fn digit(&self, bits: u32, at: u32) -> u32 {
        of_byte(bits, self.byte(byte_of(bits, at)), at)
    }

    /// The first of the characters `from..end` that the key does not have or that differs.
    ///
    /// An unvalidated label may be any bytes: the answer is then worthless, and nothing worse.
    #[inline]
    pub(super) fn differs(&self, bits: u32, key: &[u8], from: u32, end: u32) -> Option<u32> {
        let chars = chars(bits, key.len());
        let mut at = self.start;
        for part in [&self.head[..self.heads.min(HEAD)], self.tail] {
            let skipped = byte_of(bits, from).saturating_sub(at).min(part.len());
            let rest = key.get(at + skipped..).unwrap_or(&[]);
            let len = (part.len() - skipped).min(rest.len());
            let (ours, theirs) = (&part[skipped..skipped + len], &rest[..len]);
            let same = common_prefix(ours, theirs, 0);
            if same < len {
                let bit = (ours[same] ^ theirs[same]).leading_zeros();
                let differing = ((at + skipped + same) as u32 * 8 + bit) / bits;
                return (differing < end).then_some(differing);
            }
            at += part.len();
        }
        (end > chars).then_some(chars)
    }

    /// Writes the bytes of the key from `start` on that this label has. `target[0]` is at `start`.
    #[inline]
    pub(super) fn copy_to(&self, target: &mut [u8], start: usize) {
        for (at, byte) in target.iter_mut().enumerate() {
            if start + at >= self.start && start + at < self.start + self.len() {
                *byte = self.byte(start + at);
            }
        }
    }
}

/// The path of a label that is to be written: the characters of a key, one other character, and
/// then the label of a node.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    /// A key below the node, or one that shares its path up to the digit.
    pub(super) key: &'p [u8],
    /// A character in which the path differs from the key, and its position.
    pub(super) digit: Option<(u32, u32)>,
    /// The label of a node on the path, which decides where it has a byte.
    pub(super) label: Option<Label<'p>>,
}

impl Path<'_> {
    /// Writes the bytes of the path from `start` on, up to character `end`.
    pub(super) fn write(&self, bits: u32, target: &mut [u8], start: usize, end: u32) {
        debug_assert_eq!(start + target.len(), bytes_to(bits, end).max(start));
        for (at, byte) in target.iter_mut().enumerate() {
            *byte = self.key.get(start + at).copied().unwrap_or(0);
        }
        if let Some((at, digit)) = self.digit
            && let Some(byte) = byte_of(bits, at).checked_sub(start)
            && byte < target.len()
        {
            put_digit(bits, &mut target[byte..], at % (8 / bits), digit);
        }
        if let Some(label) = self.label {
            label.copy_to(target, start);
        }
        let behind = (8 - (end * bits) % 8) % 8;
        if let Some(last) = target.last_mut() {
            *last &= (0xFF_u32 << behind) as u8;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn characters(bits: u32, key: &[u8]) -> Vec<u32> {
        (0..chars(bits, key.len())).map(|at| digit(bits, key, at)).collect()
    }

    #[test]
    fn keys_that_are_too_long_have_more_characters_than_any_path() {
        for bits in [1, 2, 4, 8] {
            for bytes in [MAX_BYTES + 1, (1 << 29) + 3, usize::MAX] {
                assert!(chars(bits, bytes) > chars(bits, MAX_BYTES), "{bits} bits, {bytes} bytes");
            }
        }
    }

    #[test]
    fn characters_are_the_bits_from_the_highest() {
        let key = [0b1011_0001, 0x5A];
        assert_eq!(characters(1, &key[..1]), [1, 0, 1, 1, 0, 0, 0, 1]);
        assert_eq!(characters(2, &key[..1]), [2, 3, 0, 1]);
        assert_eq!(characters(4, &key), [0xB, 0x1, 0x5, 0xA]);
        assert_eq!(characters(8, &key), [0xB1, 0x5A]);
        let mut copy = [0xFF; 2];
        for (at, digit) in characters(2, &key).into_iter().enumerate() {
            put_digit(2, &mut copy, at as u32, digit);
        }
        assert_eq!(copy, key);
    }

    /// Compares each label of each of these keys with each of them, by characters.
    fn differences(bits: u32) {
        let keys: [&[u8]; 7] = [
            &[],
            &[0x5A],
            &[0x5A, 0],
            &[0x5A, 0x10, 7],
            &[0x5B, 0x10, 7],
            &[0x5A, 0x11, 7],
            &[0xDA],
        ];
        for of in keys {
            for end in 0..=chars(bits, of.len()) {
                for from in 0..=end {
                    let start = byte_of(bits, from);
                    let mut text = vec![0; bytes_to(bits, end).saturating_sub(start)];
                    Path { key: of, digit: None, label: None }.write(bits, &mut text, start, end);
                    let heads = text.len().min(HEAD);
                    let mut head = [0; HEAD];
                    head[..heads].copy_from_slice(&text[..heads]);
                    let split = Label { start, head, heads, tail: &text[heads..] };
                    for key in keys {
                        let (ours, theirs) = (characters(bits, of), characters(bits, key));
                        if theirs.get(..from as usize) != ours.get(..from as usize) {
                            continue;
                        }
                        let wanted = (from..end)
                            .find(|at| theirs.get(*at as usize) != ours.get(*at as usize));
                        for label in [split, Label::whole(start, &text)] {
                            let found = label.differs(bits, key, from, end);
                            assert_eq!(found, wanted, "{bits}: {of:?} {from}..{end} and {key:?}");
                        }
                    }
                    assert!(
                        (from..end)
                            .all(|at| split.digit(bits, at) == characters(bits, of)[at as usize])
                    );
                }
            }
        }
    }

    #[test]
    fn labels_differ_where_their_characters_do() {
        differences(1);
        differences(2);
        differences(4);
        differences(8);
    }

    #[test]
    fn a_path_joins_a_key_a_character_and_a_label() {
        // The path 5, A, 3, then the label 7, 1 from character 3 on: bytes 0x5A, 0x37, 0x10.
        let label = Label::whole(1, &[0x37, 0x10]);
        let path = Path { key: &[0x5A, 0xFF, 0xFF], digit: Some((2, 3)), label: Some(label) };
        let mut text = [0; 3];
        path.write(4, &mut text, 0, 5);
        assert_eq!(text, [0x5A, 0x37, 0x10]);
        // The label is empty, and the character is the last one.
        let path = Path { key: &[0x5A, 0xFF], digit: Some((2, 3)), label: None };
        let mut text = [0; 2];
        path.write(4, &mut text, 0, 3);
        assert_eq!(text, [0x5A, 0x30]);
    }
}
