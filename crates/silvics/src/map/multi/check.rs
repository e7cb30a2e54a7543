//! Verification of a multimap at rest, and its drop: both walk over all lists.

use super::MultiMap;
use super::edit::FEW;
use super::node::{Entry, MOST, Node, is_list};
use super::order::{Held, Listed, Order};
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::Violation;
use crate::index::Check;
use crate::map::key::Key;
use crate::map::{MapIndex, Value};
use silvics_pool::Placement;
use std::ops::Bound;

/// The number of keys that a walk reads at once.
const AT_ONCE: usize = 64;

/// A key of the index that owns its bytes.
type OwnedKey<K> = <<K as Key>::Form as IndexKey>::Owned;

/// The objects that a walk has found.
#[derive(Default)]
struct Found {
    pairs: usize,
    nodes: usize,
}

fn violated<T>(invariant: &'static str, detail: String) -> Result<T, Violation> {
    Err(Violation { invariant, detail })
}

/// Verifies the nodes of a list (L5), and counts them.
fn check_nodes(node: Node<'_>, found: &mut Found) -> Result<(), Violation> {
    found.nodes += 1;
    if node.level() == 0 {
        return match node.words().len() {
            1..=MOST => Ok(()),
            len => violated("L5", format!("a leaf has {len} words")),
        };
    }
    let entries = node.entries();
    if !(1..=MOST).contains(&entries.len()) {
        return violated("L5", format!("a branch has {} children", entries.len()));
    }
    let total: u64 = entries.iter().map(|entry| entry.count).sum();
    if total != node.total() {
        return violated("L5", format!("a branch has {total} values and counts {}", node.total()));
    }
    let mut before = MOST;
    for (child, entry) in node.children().zip(entries) {
        let items = if child.level() == 0 { child.words().len() } else { child.entries().len() };
        if child.level() + 1 != node.level() || Entry::of(child) != *entry {
            return violated("L5", format!("{entry:?} is not the entry of its child"));
        }
        if before.max(items) <= FEW {
            return violated("L5", format!("neighbours have {before} and {items} items"));
        }
        before = items;
        check_nodes(child, found)?;
    }
    Ok(())
}

impl<K: Key, V: Value, O, I: MapIndex<Key = K::Form>> MultiMap<K, V, O, I> {
    /// Reads the words of the next keys behind a key. Returns the last one of these, unless there
    /// are no more.
    fn next_words(
        &self,
        after: Option<&OwnedKey<K>>,
        words: &mut Vec<u64>,
        guard: &Guard,
    ) -> Option<OwnedKey<K>> {
        words.clear();
        let last = after.map(<K::Form as IndexKey>::borrow);
        let bounds = (last.map_or(Bound::Unbounded, Bound::Excluded), Bound::Unbounded);
        let mut next = None;
        self.map.index.read_ahead(bounds, false, AT_ONCE, guard, |key, word| {
            words.push(word);
            if words.len() == AT_ONCE {
                next = Some(<K::Form as IndexKey>::to_owned(key));
            }
        });
        next
    }

    /// Verifies the lists, and counts pairs and nodes.
    fn check_lists(&mut self) -> Result<Found, Violation>
    where
        O: Order<V>,
    {
        let (mut found, mut words, mut after) = (Found::default(), Vec::new(), None);
        loop {
            let guard = self.map.index.domain().pin();
            after = self.next_words(after.as_ref(), &mut words, &guard);
            for &word in &words {
                let list: Listed<'_, V> = self.listed(word, (&guard).into());
                found.pairs += list.count() as usize;
                if let Held::List(root) = list.held {
                    check_nodes(root, &mut found)?;
                    match (root.level(), root.total()) {
                        (0, 1) if !is_list(root.words()[0]) => {
                            return violated("L1", "a list has one value".to_string());
                        }
                        (1.., _) if root.entries().len() == 1 => {
                            return violated("L5", "a root has one child".to_string());
                        }
                        _ => {}
                    }
                }
                let mut values = list.values();
                let mut one = values.next();
                for next in values {
                    if one.is_some_and(|one| !O::agrees(&one, &next)) {
                        return violated("order", "values are not in their order".to_string());
                    }
                    one = Some(next);
                }
            }
            if after.is_none() {
                return Ok(found);
            }
        }
    }
}

impl<K: Key, V: Value, O: Order<V>, I: MapIndex<Key = K::Form> + Check> Check
    for MultiMap<K, V, O, I>
{
    /// Verifies the index and the lists, and returns the number of pairs.
    fn check(&mut self) -> Result<usize, Violation> {
        self.map.check()?;
        let found = self.check_lists()?;
        if found.pairs != self.len() {
            let (pairs, counted) = (found.pairs, self.len());
            return violated("len", format!("there are {pairs} pairs, and {counted} are counted"));
        }
        Ok(found.pairs)
    }

    fn reachable(&mut self) -> Result<Vec<(&'static str, usize)>, Violation> {
        let mut reachable = self.map.index.reachable()?;
        let found = self.check_lists()?;
        reachable.push((self.lists.memory().stats().kind, found.nodes));
        reachable.extend(self.values.stats().map(|stats| (stats.kind, found.pairs)));
        Ok(reachable)
    }

    fn settle(&mut self) {
        self.map.settle();
        self.lists.settle();
        self.values.settle();
    }
}

impl<K: Key, V: Value, O, I: MapIndex<Key = K::Form>> Drop for MultiMap<K, V, O, I> {
    fn drop(&mut self) {
        let frees_nodes = !<I::Placement as Placement>::RELEASES_WHOLE;
        if !frees_nodes && !self.values.are_dropped_one_by_one() {
            return;
        }
        let (mut words, mut after) = (Vec::new(), None);
        loop {
            {
                let guard = self.map.index.domain().pin();
                after = self.next_words(after.as_ref(), &mut words, &guard);
            }
            // Destructors run without a pin, which would hold back what other maps free.
            for &word in &words {
                if !is_list(word) {
                    // SAFETY: L1: the word is that of a value. The map is borrowed exclusively, and
                    // each word comes once: the next ones are of greater keys.
                    unsafe { self.values.drop_with_map(word) };
                    continue;
                }
                // SAFETY: L1, L2: the list is freed below, by nobody else: access is exclusive.
                let root = unsafe { Node::of_word(word) };
                root.each(&mut |node| {
                    if node.level() == 0 {
                        for &word in node.words() {
                            // SAFETY: L3: each value comes once, and access is exclusive.
                            unsafe { self.values.drop_with_map(word) };
                        }
                    }
                    if frees_nodes {
                        // SAFETY: L2: no other list has the node. `each` does not use it again.
                        unsafe { self.lists.memory().free(node) };
                    }
                });
            }
            if after.is_none() {
                return;
            }
        }
    }
}
