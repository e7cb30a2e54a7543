//! Ranks of the keys of a map whose index counts them.

use super::key::{AsKey, Key};
use super::lend::Pin;
use super::scan::{KeyRange, kept, lengthen};
use super::{Map, MapIndex, Value, ValueRef};
use crate::index::{KeyRef, OrderStatistics};

impl<K: Key, V: Value, I: MapIndex<Key = K::Form> + OrderStatistics> Map<K, V, I> {
    pub(super) fn do_rank(&self, key: &impl AsKey<K>, pin: Pin<'_, '_>) -> usize {
        // SAFETY: the scan of the index ends before the form does.
        key.with_form(|form| self.index.rank(unsafe { lengthen::<K>(form) }, pin.guard))
    }

    pub(super) fn do_count(&self, range: impl KeyRange<K>, pin: Pin<'_, '_>) -> usize {
        let (from, to) = range.keep();
        // SAFETY: the scans of the index end before the bounds do.
        let lend = |bound| kept::<K>(bound).map(|form| unsafe { lengthen::<K>(form) });
        self.index.count((lend(&from), lend(&to)), pin.guard)
    }

    pub(super) fn do_nth<'g, 'c, Q>(
        &'g self,
        number: usize,
        key_of: impl FnOnce(KeyRef<'c, I>) -> Q,
        pin: Pin<'g, 'c>,
    ) -> Option<(Q, ValueRef<'g, V>)> {
        let (form, word) = self.index.nth(number, pin.guard)?;
        Some((key_of(form), self.values.lent(word, pin)))
    }
}

/// Draws `most` different numbers below `len`, or all if there are fewer, in ascending order.
/// Each set of such numbers is equally likely if `below(n)` returns each number below `n` equally
/// often (Bentley, Floyd, CACM 1987).
pub(super) fn draw(most: usize, len: usize, mut below: impl FnMut(usize) -> usize) -> Vec<usize> {
    let most = most.min(len);
    let mut drawn = std::collections::BTreeSet::new();
    for top in len - most..len {
        let number = below(top + 1).min(top);
        if !drawn.insert(number) {
            drawn.insert(top);
        }
    }
    drawn.into_iter().collect()
}
