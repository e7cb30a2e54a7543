//! Orders of entries, and the hints on links.
//!
//! A link carries 16 bits about the key of the node that it leads to, relative to the key of the
//! node that it leaves. Mostly they say whether that key is before or after the target, and the
//! search need not read it. They are those of [`silvics::SkipList`] for byte strings: the length of
//! the keys' common prefix, counted down from 255, and the first byte that differs.
//!
//! # Why hints decide
//! Let `a < x` and `a < y`, with `c` the common prefix of `a` and `x`, and `d` that of `a` and `y`.
//! If `c > d`, then `x` agrees with `a` where `y` leaves it, so `x < y`. If `c = d`, the next byte
//! of `x` and `y` decides. So the hints of `x` and `y` are ordered as `x` and `y` are, or equal. If
//! the hint of `x` is the smaller one, then `x` and `y` part exactly where `a` and `y` do. So the
//! hint from `x` to `y` is the hint from `a` to `y`.
//!
//! Keys with the same user key, or with 255 bytes or more in common, have hint 0, which decides
//! nothing against another 0.

#[cfg(doc)]
use crate::entry::EncodedKey;
use crate::entry::Entry;
use crate::key::{Comparator, InternalKey};
use std::cmp::Ordering;
use std::sync::Arc;

/// The facts about a target relative to the node that its search stands at.
#[derive(Clone, Copy, Debug, Default)]
pub struct Probe {
    /// The hint that a link from that node to the target would have.
    pub(super) hint: u16,
    /// The number of bytes in which that node's user key and the target's agree, at most 255.
    pub(super) common: usize,
}

/// An order of entries.
///
/// A list whose order is no total order returns wrong entries or none, and that is all.
pub trait Order: Send + Sync {
    /// The form of a key that searches compare entries with.
    type Target<'t>: Copy;

    /// Whether links have hints.
    #[doc(hidden)]
    const HINTS: bool = false;

    /// The key of an entry as a target.
    fn target(entry: Entry<'_>) -> Self::Target<'_>;

    /// Compares an entry with a target.
    fn compare(&self, entry: Entry<'_>, target: Self::Target<'_>) -> Ordering;

    /// The probe of a search that stands at the head.
    #[doc(hidden)]
    #[inline(always)]
    fn start(&self, _target: Self::Target<'_>) -> Probe {
        Probe::default()
    }

    /// Compares an entry with a target, and moves the probe to the entry if it is before the
    /// target. The entry agrees with the target in the bytes that the probe says.
    #[doc(hidden)]
    #[inline(always)]
    fn look(&self, _: &mut Probe, entry: Entry<'_>, target: Self::Target<'_>) -> Ordering {
        self.compare(entry, target)
    }

    /// The hint for a link from an entry to a later one.
    #[doc(hidden)]
    #[inline(always)]
    fn hint(_from: Entry<'_>, _to: Entry<'_>) -> u16 {
        0
    }
}

/// The order of byte slices, or its reverse; versions of a key come from the newest to the oldest.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByBytes<const REVERSE: bool = false>;

/// The hint for a link to a key that agrees with the one before it in `common` bytes.
#[inline(always)]
fn hint_at<const REVERSE: bool>(common: usize, from: &[u8], to: &[u8]) -> u16 {
    if common >= 255 || (common == from.len() && common == to.len()) {
        return 0;
    }
    let byte = match to.get(common) {
        Some(&byte) if REVERSE => u8::MAX - byte,
        Some(&byte) => byte,
        None => u8::MAX, // only in the reverse order, in which a prefix comes last
    };
    (255 - common as u16) << 8 | u16::from(byte)
}

/// The number of first bytes in which two keys agree. The first `known` do.
#[inline(always)]
fn common_prefix(a: &[u8], b: &[u8], known: usize) -> usize {
    let len = a.len().min(b.len());
    let mut at = known;
    while at + 8 <= len {
        let word = |key: &[u8]| u64::from_le_bytes(key[at..at + 8].try_into().expect("eight"));
        let different = word(a) ^ word(b);
        if different != 0 {
            return at + different.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < len && a[at] == b[at] {
        at += 1;
    }
    at
}

impl<const REVERSE: bool> Order for ByBytes<REVERSE> {
    type Target<'t> = InternalKey<'t>;
    const HINTS: bool = true;

    #[inline(always)]
    fn target(entry: Entry<'_>) -> InternalKey<'_> {
        entry.key()
    }

    #[inline(always)]
    fn compare(&self, entry: Entry<'_>, target: InternalKey<'_>) -> Ordering {
        self.look(&mut Probe::default(), entry, target)
    }

    #[inline(always)]
    fn start(&self, target: InternalKey<'_>) -> Probe {
        // The head's key is empty, and in the reverse order it is one that shares no byte.
        let hint = if REVERSE && target.user.is_empty() {
            255 << 8 | 255
        } else {
            hint_at::<REVERSE>(0, &[], target.user)
        };
        Probe { hint, common: 0 }
    }

    #[inline(always)]
    fn look(&self, probe: &mut Probe, entry: Entry<'_>, target: InternalKey<'_>) -> Ordering {
        let InternalKey { user, trailer } = entry.key();
        let common = common_prefix(user, target.user, probe.common);
        let of_users = user.get(common).cmp(&target.user.get(common));
        let of_users = if REVERSE { of_users.reverse() } else { of_users };
        let order = of_users.then_with(|| target.trailer.cmp(&trailer));
        if order.is_lt() {
            let hint = hint_at::<REVERSE>(common, user, target.user);
            // Hint 0 says no more than that 255 bytes agree.
            *probe = Probe { hint, common: common.min(255) };
        }
        order
    }

    #[inline(always)]
    fn hint(from: Entry<'_>, to: Entry<'_>) -> u16 {
        let (from, to) = (from.key().user, to.key().user);
        hint_at::<REVERSE>(common_prefix(from, to, 0), from, to)
    }
}

/// The order of a comparator of user keys that is chosen at run time.
#[derive(Clone)]
pub struct ByComparator(pub Arc<dyn Comparator>);

impl std::fmt::Debug for ByComparator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ByComparator({})", self.0.name())
    }
}

impl Order for ByComparator {
    type Target<'t> = InternalKey<'t>;

    #[inline(always)]
    fn target(entry: Entry<'_>) -> InternalKey<'_> {
        entry.key()
    }

    #[inline]
    fn compare(&self, entry: Entry<'_>, target: InternalKey<'_>) -> Ordering {
        let key = entry.key();
        let of_users = self.0.compare(key.user, target.user);
        of_users.then_with(|| target.trailer.cmp(&key.trailer))
    }
}

/// An order of whole entries that a function of another engine knows.
///
/// The function compares two entries; a search encodes its key with [`EncodedKey`].
#[derive(Clone, Copy, Debug)]
pub struct ByFunction<F>(pub F);

impl<F: Fn(Entry<'_>, Entry<'_>) -> Ordering + Send + Sync> Order for ByFunction<F> {
    type Target<'t> = Entry<'t>;

    #[inline(always)]
    fn target(entry: Entry<'_>) -> Entry<'_> {
        entry
    }

    #[inline]
    fn compare(&self, entry: Entry<'_>, target: Entry<'_>) -> Ordering {
        (self.0)(entry, target)
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::entry::Draft;
    use crate::key::pack;
    use std::ptr::NonNull;

    fn encoded(user: &[u8], seqno: u64) -> Vec<u8> {
        let draft = Draft::new(user, pack(seqno, 1), b"").unwrap();
        let mut bytes = vec![0; draft.len()];
        // SAFETY: the vector has these bytes.
        unsafe { draft.write(NonNull::from(&mut bytes[0])) };
        bytes
    }

    fn awkward() -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        let long = [7; 300];
        let tails: [&[u8]; 9] =
            [b"", b"\0", b"\0\0", b"a", b"a\0", b"ab", b"b", b"\xFE", b"\xFF\xFF"];
        for head in [&long[..0], &long[..7], &long[..8], &long[..254], &long[..255], &long] {
            for tail in tails {
                for seqno in [1, 2] {
                    all.push(encoded(&[head, tail].concat(), seqno));
                }
            }
        }
        all
    }

    /// Every triple `a < x < y` of awkward keys has hints in order, and hints that pass on.
    fn hints_decide<const REVERSE: bool>() {
        let all = awkward();
        // SAFETY: the vectors have entries, and live as long as `all`.
        let entry = |bytes: &Vec<u8>| unsafe { Entry::from_raw(NonNull::from(&bytes[0])) };
        let order = ByBytes::<REVERSE>;
        let mut sorted: Vec<Entry<'_>> = all.iter().map(entry).collect();
        sorted.sort_by(|a, b| order.compare(*a, b.key()));
        for (i, &y) in sorted.iter().enumerate() {
            let from_head = order.start(y.key()).hint;
            for (j, &x) in sorted[..i].iter().enumerate() {
                assert!(order.compare(x, y.key()).is_lt() && order.compare(y, x.key()).is_gt());
                assert!(order.start(x.key()).hint <= from_head, "{x:?} {y:?}");
                for &a in &sorted[..j] {
                    let (to_x, to_y) =
                        (ByBytes::<REVERSE>::hint(a, x), ByBytes::<REVERSE>::hint(a, y));
                    assert!(to_x <= to_y, "{a:?} {x:?} {y:?}");
                    if to_x < to_y {
                        assert_eq!(ByBytes::<REVERSE>::hint(x, y), to_y, "{a:?} {x:?} {y:?}");
                    }
                    let mut probe = Probe { hint: 0, common: 0 };
                    assert!(order.look(&mut probe, a, y.key()).is_lt());
                    assert_eq!(probe.hint, to_y);
                }
            }
        }
    }

    #[test]
    fn hints_decide_in_both_orders() {
        hints_decide::<false>();
        hints_decide::<true>();
    }
}
