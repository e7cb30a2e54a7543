//! Keys as the skip list stores and compares them, and the hints on its links.
//!
//! A link carries 16 bits about the key of the node that it leads to, relative to the key of the
//! node that it leaves. Mostly they tell whether that key is before or after the target. So a
//! search touches only the nodes that it moves to, not those that it stops before.
//!
//! If two links leave one node and their hints differ, the hints are ordered as the keys that the
//! links lead to. A search knows the hint that a link from its node to its target would have, and
//! compares each link's hint with that one:
//!
//! * `u64`: the distance between the two keys as a floating-point number of 6 bits exponent and 10
//!   bits mantissa (`magnitude`).
//! * `[u8]`: the length of the keys' common prefix, counted down from 255, and the first byte
//!   that differs (as in Ferragina and Grossi, "The string B-tree", JACM 1999, section 2). If two
//!   keys are larger than a third one, the key that leaves the third earlier is the larger one. If
//!   the search has to compare bytes, it begins after the prefix that it knows to be common. So it
//!   looks at every byte of the target about once. Keys that have 255 bytes or more in common have
//!   hint 0.

use super::node::{BYTES_NODE, INTEGER_NODE, Node, NodeRef};
use crate::encoding::{IndexKey, common_prefix};
use silvics_layout::NodeLayout;
use silvics_sync::model::touch;
use std::cmp::Ordering;
use std::ptr::NonNull;

/// A key type that the skip list can hold: `u64` or `[u8]`. The trait is sealed.
pub trait SkipKey: IndexKey + private::Sealed {
    /// The offset of the value in a node; the references follow it.
    #[doc(hidden)]
    const VALUE: usize;
    /// The smallest node.
    #[doc(hidden)]
    const NODE: NodeLayout;
    /// The level on which nodes are some eight entries apart.
    #[doc(hidden)]
    const RUN_LEVEL: usize;
    /// The bytes of a node without its tower and without the variable part of its key.
    #[doc(hidden)]
    const BODY: usize;
    /// The probability, out of 2^16, that a node has a second level.
    #[doc(hidden)]
    const SECOND_LEVEL: u16;
    /// The probability, out of 2^16, that a node with two or more levels has one more.
    #[doc(hidden)]
    const HIGHER_LEVEL: u16;
    /// The smallest key, which is the head's.
    #[doc(hidden)]
    const SMALLEST: Self::Ref<'static>;

    /// The target of a search, with facts about it relative to the node that the search stands at.
    #[doc(hidden)]
    type Probe<'k>: Copy;

    /// The bytes of a node with this key, without its tower.
    #[doc(hidden)]
    fn body_bytes(key: Self::Ref<'_>) -> usize;
    /// Writes the key into a node.
    ///
    /// # Safety
    /// The node has `body_bytes` bytes behind it and is the caller's alone.
    #[doc(hidden)]
    unsafe fn write(node: NonNull<Node<Self>>, key: Self::Ref<'_>);
    /// Reads the key of a node.
    #[doc(hidden)]
    fn read(node: NodeRef<'_, Self>) -> Self::Ref<'_>;

    /// The probe of a search for `target` that stands at the head.
    #[doc(hidden)]
    fn probe(target: Self::Ref<'_>) -> Self::Probe<'_>;
    /// The hint for a link from the node that the search stands at to one with the target's key.
    #[doc(hidden)]
    fn hint_to_target(probe: &Self::Probe<'_>) -> u16;
    /// Moves the probe to a node whose hint said that it is before the target.
    #[doc(hidden)]
    fn pass(probe: &mut Self::Probe<'_>, to: NodeRef<'_, Self>);
    /// Compares the key of `next`, at the end of a link with `hint`, to the target. Moves the probe
    /// to `next` if its key is smaller.
    #[doc(hidden)]
    fn look(probe: &mut Self::Probe<'_>, hint: u16, next: NodeRef<'_, Self>) -> Ordering;

    /// The hint for a link from a node with the target's key to `next`. At present a link with
    /// `hint` leads to `next` from the node that the search stands at, and `next` is not before the
    /// target.
    #[doc(hidden)]
    fn hint_from_target(probe: &Self::Probe<'_>, hint: u16, next: NodeRef<'_, Self>) -> u16;
    /// The hint for a link between two keys, made of the hints of the two links that lead from one
    /// to the other through a node between them. Looks at the keys only if the hints do not decide.
    #[doc(hidden)]
    fn hint_past<'k>(
        first: u16,
        second: u16,
        keys: impl FnOnce() -> (Self::Ref<'k>, Self::Ref<'k>),
    ) -> u16;
    /// The hint for a link from key `from` to key `to`, which is not before `from`.
    #[doc(hidden)]
    fn hint(from: Self::Ref<'_>, to: Self::Ref<'_>) -> u16;
}

mod private {
    pub trait Sealed {}
    impl Sealed for u64 {}
    impl Sealed for [u8] {}
}

/// `percent` out of 2^16.
const fn percent(percent: u32) -> u16 {
    assert!(percent < 100);
    ((percent << 16) / 100) as u16
}

/// `distance` rounded down to 11 significant bits, in an order-preserving 16-bit form.
#[inline(always)]
fn magnitude(distance: u64) -> u16 {
    let zeros = (distance | 1).leading_zeros();
    let significand = (distance << zeros) >> 53; // 1024 … 2047
    (u64::from(63 - zeros) << 10 | (significand & 1023)) as u16
}

/// A `u64` target and its distance from the node that the search stands at.
#[derive(Clone, Copy, Debug)]
pub struct IntegerProbe {
    target: u64,
    magnitude: u16,
}

impl SkipKey for u64 {
    const NODE: NodeLayout = INTEGER_NODE;
    const VALUE: usize = 8;
    const BODY: usize = 24;
    const SECOND_LEVEL: u16 = percent(60);
    const HIGHER_LEVEL: u16 = percent(60);
    const RUN_LEVEL: usize = 4;
    const SMALLEST: u64 = 0;

    type Probe<'k> = IntegerProbe;

    #[inline(always)]
    fn body_bytes(_key: u64) -> usize {
        Self::BODY
    }
    #[inline(always)]
    unsafe fn write(node: NonNull<Node<u64>>, key: u64) {
        // SAFETY: the caller promises a node of `body_bytes` bytes that no other thread has. The
        // key is the first field of the node.
        unsafe { node.cast::<u64>().write(key) };
    }
    #[inline(always)]
    fn read(node: NodeRef<'_, u64>) -> u64 {
        // SAFETY: I1: the key was written before the node could be reached and never changes; the
        // node lives as long as its reference.
        unsafe { touch(node.as_ptr()).cast::<u64>().read() }
    }

    #[inline(always)]
    fn probe(target: Self::Ref<'_>) -> Self::Probe<'_> {
        IntegerProbe { target, magnitude: magnitude(target) }
    }
    #[inline(always)]
    fn hint_to_target(probe: &IntegerProbe) -> u16 {
        probe.magnitude
    }
    #[inline(always)]
    fn pass(probe: &mut IntegerProbe, to: NodeRef<'_, u64>) {
        probe.magnitude = magnitude(probe.target.wrapping_sub(u64::read(to)));
    }
    #[inline(always)]
    fn look(probe: &mut IntegerProbe, _hint: u16, next: NodeRef<'_, u64>) -> Ordering {
        let key = u64::read(next);
        if key < probe.target {
            probe.magnitude = magnitude(probe.target - key);
        }
        key.cmp(&probe.target)
    }

    #[inline(always)]
    fn hint_from_target(probe: &IntegerProbe, _hint: u16, next: NodeRef<'_, u64>) -> u16 {
        magnitude(u64::read(next) - probe.target)
    }
    #[inline]
    fn hint_past<'k>(_: u16, _: u16, keys: impl FnOnce() -> (Self::Ref<'k>, Self::Ref<'k>)) -> u16 {
        let (from, to) = keys();
        Self::hint(from, to)
    }
    fn hint(from: u64, to: u64) -> u16 {
        magnitude(to.wrapping_sub(from))
    }
}

/// The length from which on hints do not distinguish prefixes.
const LONG: usize = 255;

/// The hint for a key `to` that shares its first `common` bytes with the smaller one before it.
#[inline(always)]
fn prefix_hint(common: usize, to: &[u8]) -> u16 {
    if common >= LONG {
        return 0;
    }
    ((LONG - common) as u16) << 8 | u16::from(to.get(common).copied().unwrap_or(0))
}

/// The length of the common prefix that a hint encodes, at most [`LONG`].
#[inline(always)]
fn prefix_len(hint: u16) -> usize {
    LONG - usize::from(hint >> 8)
}

/// A byte-string target, the number of bytes that it shares with the node that the search stands
/// at, and the hint for a link from there.
#[derive(Clone, Copy, Debug)]
pub struct BytesProbe<'k> {
    target: &'k [u8],
    common: usize,
    hint: u16,
}

impl<'k> BytesProbe<'k> {
    #[inline(always)]
    fn new(target: &'k [u8], common: usize) -> Self {
        Self { target, common, hint: prefix_hint(common, target) }
    }
}

impl SkipKey for [u8] {
    const NODE: NodeLayout = BYTES_NODE;
    const VALUE: usize = 0;
    const BODY: usize = 12;
    const SECOND_LEVEL: u16 = percent(23);
    const HIGHER_LEVEL: u16 = percent(40);
    const RUN_LEVEL: usize = 2;
    const SMALLEST: &'static [u8] = &[];

    type Probe<'k> = BytesProbe<'k>;

    #[inline(always)]
    fn body_bytes(key: &[u8]) -> usize {
        let sevens = (usize::BITS - (key.len() | 1).leading_zeros()).div_ceil(7);
        Self::BODY + sevens as usize + key.len()
    }
    #[inline(always)]
    unsafe fn write(node: NonNull<Node<[u8]>>, key: &[u8]) {
        // SAFETY: the caller promises a node of `body_bytes` bytes that no other thread has. The
        // writes below end within them, since `body_bytes` counts the length's bytes and the key's.
        unsafe {
            let mut at = node.byte_add(Self::BODY).cast::<u8>();
            let mut len = key.len();
            while len >= 0x80 {
                at.write(len as u8 | 0x80);
                at = at.add(1);
                len >>= 7;
            }
            at.write(len as u8);
            at.add(1).as_ptr().copy_from_nonoverlapping(key.as_ptr(), key.len());
        }
    }
    #[inline(always)]
    fn read(node: NodeRef<'_, [u8]>) -> &[u8] {
        // SAFETY: I1: the key was written before the node could be reached and never changes; the
        // node lives as long as its reference.
        unsafe {
            let mut at = touch(node.as_ptr()).byte_add(Self::BODY).cast::<u8>();
            let mut len = usize::from(at.read());
            let mut bits = 7;
            while len >> bits != 0 {
                at = at.add(1);
                len = len & !(1 << bits) | usize::from(at.read()) << bits;
                bits += 7;
            }
            std::slice::from_raw_parts(at.add(1), len)
        }
    }

    #[inline(always)]
    fn probe(target: Self::Ref<'_>) -> Self::Probe<'_> {
        BytesProbe::new(target, 0)
    }
    #[inline(always)]
    fn hint_to_target(probe: &BytesProbe<'_>) -> u16 {
        probe.hint
    }
    #[inline(always)]
    fn pass(_probe: &mut BytesProbe<'_>, _to: NodeRef<'_, [u8]>) {
        // The target and `to` leave the present node at different positions or with different
        // bytes. So the target leaves `to` at the position where it left the present node, with the
        // same byte: the probe stays right.
    }
    #[inline(always)]
    fn look(probe: &mut BytesProbe<'_>, hint: u16, next: NodeRef<'_, [u8]>) -> Ordering {
        let key = <[u8]>::read(next);
        let known = probe.common.min(prefix_len(hint));
        let common = common_prefix(key, probe.target, known);
        let order = key.get(common).cmp(&probe.target.get(common)); // None, the end, comes first
        if order == Ordering::Less {
            *probe = BytesProbe::new(probe.target, common);
        }
        order
    }

    #[inline(always)]
    fn hint_from_target(probe: &BytesProbe<'_>, hint: u16, next: NodeRef<'_, [u8]>) -> u16 {
        if hint > probe.hint {
            return hint; // the next node leaves the target where it leaves the present node
        }
        let key = <[u8]>::read(next);
        let known = probe.common.min(prefix_len(hint));
        prefix_hint(common_prefix(key, probe.target, known), key)
    }
    #[inline]
    fn hint_past<'k>(first: u16, second: u16, keys: impl FnOnce() -> (&'k [u8], &'k [u8])) -> u16 {
        if prefix_len(first) < prefix_len(second) {
            return first; // the last key has the middle key's byte where this leaves the first key
        }
        if prefix_len(second) < LONG {
            return second; // the middle key has the first key's byte where the last leaves both
        }
        let (from, to) = keys();
        Self::hint(from, to)
    }
    fn hint(from: &[u8], to: &[u8]) -> u16 {
        prefix_hint(common_prefix(from, to, 0), to)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn magnitude_is_monotonic_and_exact_below_2048() {
        let mut numbers: Vec<u64> = (0..64)
            .flat_map(|e| [0u64, 1, 2].map(|d| (1u64 << e).wrapping_sub(1).wrapping_add(d)))
            .chain((0..5000).map(|i| i * 0x0003_1415_9265_3589))
            .chain([u64::MAX])
            .collect();
        numbers.sort_unstable();
        assert!(numbers.windows(2).all(|w| magnitude(w[0]) <= magnitude(w[1])));
        assert!((1..2047).all(|n| magnitude(n) < magnitude(n + 1)));
        assert_eq!(magnitude(u64::MAX), u16::MAX);
    }

    /// Sorted keys whose common prefixes have all interesting lengths.
    fn awkward_keys() -> Vec<Vec<u8>> {
        let long = |tail: &[u8]| [vec![7u8; 300], tail.to_vec()].concat();
        let mut keys: Vec<Vec<u8>> = vec![vec![], vec![0], vec![0, 0], vec![0, 1], vec![255]];
        for tail in [&b""[..], b"a", b"ab", b"b", b"\0", b"\xff\xff"] {
            keys.push(long(tail));
            keys.push([vec![7u8; 253], tail.to_vec()].concat());
            keys.push([vec![7u8; 254], tail.to_vec()].concat());
            keys.push([vec![7u8; 255], tail.to_vec()].concat());
            keys.push([b"/usr/lib/".to_vec(), tail.to_vec()].concat());
        }
        keys.sort();
        keys.dedup();
        keys
    }

    /// A guess never contradicts the keys, for any three keys.
    #[test]
    fn byte_guesses_are_right() {
        let keys = awkward_keys();
        let mut decided = 0;
        for (s, stand) in keys.iter().enumerate() {
            for next in &keys[s..] {
                for target in &keys[s..] {
                    if stand == target && !stand.is_empty() {
                        continue; // a search stands at smaller keys only, or at the head
                    }
                    let hint = <[u8]>::hint(stand, next);
                    let probe = BytesProbe::new(target, common_prefix(stand, target, 0));
                    let guess = hint.cmp(&<[u8]>::hint_to_target(&probe));
                    let order = next.cmp(target);
                    assert!(
                        guess == order || guess == Ordering::Equal,
                        "at {stand:?}, next {next:?}, target {target:?}: {guess:?}"
                    );
                    decided += usize::from(guess != Ordering::Equal);
                    if guess == Ordering::Less {
                        let after = BytesProbe::new(target, common_prefix(next, target, 0));
                        assert_eq!((probe.common, probe.hint), (after.common, after.hint), "pass");
                    }
                }
            }
        }
        assert!(decided > 1000, "{decided}");
    }

    #[test]
    fn hints_of_two_links_give_that_of_the_one_past_them() {
        let keys = awkward_keys();
        let mut looked = 0;
        for (f, from) in keys.iter().enumerate() {
            for (m, middle) in keys.iter().enumerate().skip(f) {
                for to in &keys[m..] {
                    let (first, second) = (<[u8]>::hint(from, middle), <[u8]>::hint(middle, to));
                    let past = <[u8]>::hint_past(first, second, || {
                        looked += 1;
                        (from, to)
                    });
                    assert_eq!(past, <[u8]>::hint(from, to), "{from:?}, {middle:?}, {to:?}");
                }
            }
        }
        assert!(looked > 0, "no keys with long common prefixes");
    }
}
