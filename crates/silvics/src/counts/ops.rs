//! Updates and pops: they mark the bucket of a key that came or went.

use super::Counted;
use super::key::CountedKey;
use super::node::NodeRef;
use super::plan::{MOST_KEYS, most_marked};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::AllocError;
use crate::frame::{AlgorithmKey, Ended, Ordered};
use crate::update::{Step, Update};
use silvics_sync::atomic::{Ordering, fence};
use std::ops::Bound;
use std::ptr::NonNull;

/// Whether some updates begin as a rank does. In debug builds they do, so that the conformance
/// suite, which asks for no rank, tests updates with a directory.
const ASKS: bool = cfg!(debug_assertions) && !cfg!(silvics_shuttle);
/// The multiplier of Fibonacci hashing (Knuth, volume 3, section 6.4).
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// The nodes on the way to a key's bucket.
pub(super) struct Way<'g, K: ?Sized> {
    pub(super) root: NodeRef<'g, K>,
    pub(super) section: NodeRef<'g, K>,
    pub(super) group: NodeRef<'g, K>,
    /// The number of the section in the root, that of the group in the section, and that of the
    /// bucket in the group.
    pub(super) at: [usize; 3],
}

impl<'g, K: CountedKey + ?Sized> Way<'g, K> {
    #[inline(always)]
    pub(super) fn find(root: NodeRef<'g, K>, key: K::Ref<'_>) -> Self {
        let in_root = root.search(K::shorten(key));
        let section = root.child(in_root);
        let in_section = section.search(K::shorten(key));
        let group = section.child(in_section);
        Self { root, section, group, at: [in_root, in_section, group.search(key)] }
    }

    /// The way to a key that is not larger than the one of another way, by the same nodes as far as
    /// they lead to the key.
    pub(super) fn find_beside(other: &Self, key: K::Ref<'_>) -> Self {
        let (root, in_root) = (other.root, other.root.search(K::shorten(key)));
        let section = if in_root == other.at[0] { other.section } else { root.child(in_root) };
        let in_section = section.search(K::shorten(key));
        let is_same = section == other.section && in_section == other.at[1];
        let group = if is_same { other.group } else { section.child(in_section) };
        Self { root, section, group, at: [in_root, in_section, group.search(key)] }
    }

    /// The bounds of the keys of the bucket.
    pub(super) fn bounds(&self) -> (Bound<K::Ref<'g>>, Bound<K::Ref<'g>>) {
        let [in_root, in_section, in_group] = self.at;
        let is_first = in_root + in_section + in_group == 0;
        let from = self.group.separator(in_group).key;
        let next = [(self.group, in_group), (self.section, in_section), (self.root, in_root)];
        let next = next.into_iter().find(|(node, at)| at + 1 < node.len());
        let end = next.map(|(node, at)| Bound::Excluded(node.separator(at + 1).key));
        (
            if is_first { Bound::Unbounded } else { Bound::Included(from) },
            end.unwrap_or(Bound::Unbounded),
        )
    }

    /// Marks the group of the bucket, and its section.
    pub(super) fn mark_above(&self) {
        self.section.mark(self.at[1]);
        self.root.mark(self.at[0]);
    }

    /// Marks the bucket, and what it is in. Returns whether the bucket was not marked.
    #[inline(always)]
    fn mark(&self) -> bool {
        let is_new = self.group.mark(self.at[2]);
        self.mark_above();
        is_new
    }

    /// Whether the nodes are linked.
    #[inline(always)]
    pub(super) fn is_linked(&self, root: NodeRef<'g, K>) -> bool {
        root == self.root
            && root.child(self.at[0]) == self.section
            && self.section.child(self.at[1]) == self.group
    }
}

impl<A: Ordered<Key: CountedKey>> Counted<A> {
    /// The root, if there is one.
    #[inline(always)]
    pub(super) fn root<'g>(&'g self, _guard: &'g Guard) -> Option<NodeRef<'g, A::Key>> {
        let root = NonNull::new(self.root.load(Ordering::SeqCst))?;
        // SAFETY: C2: it is a node that was read under the guard.
        Some(unsafe { NodeRef::new(root) })
    }

    /// The way to the bucket of a key, if there is a directory.
    #[inline(always)]
    fn way<'g>(&'g self, key: AlgorithmKey<'_, A>, guard: &'g Guard) -> Option<Way<'g, A::Key>> {
        self.root(guard).map(|root| Way::find(root, key))
    }

    /// See [`OrderedIndex::update`](crate::OrderedIndex::update).
    #[inline(always)]
    pub(super) fn change(
        &self,
        key: AlgorithmKey<'_, A>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        if ASKS
            && self.len() > MOST_KEYS as usize
            && A::Key::head(A::Key::shorten(key), 0).wrapping_mul(GOLDEN) >> 58 == 0
        {
            self.clean(guard);
        }
        if let Update::CompareExchange { expected: Some(_), new: Some(_) } = verb {
            return self.inner.update(key, verb, guard); // the key stays
        }
        // A processor searches the bucket while the update waits for the cache.
        let way = self.way(A::Key::shorten(key), guard);
        if planted(Canary::MarkedBefore) {
            self.mark(A::Key::shorten(key), None, guard);
            return self.inner.update(key, verb, guard);
        }
        let found = self.inner.update(A::Key::shorten(key), verb, guard)?;
        if let (Step::Put(_), None) | (Step::Take, Some(_)) = (verb.step(found), found) {
            self.mark(key, way, guard);
        }
        Ok(found)
    }

    /// Marks the bucket of a key that came or went.
    #[inline(always)]
    fn mark<'g>(
        &'g self,
        key: AlgorithmKey<'_, A>,
        mut way: Option<Way<'g, A::Key>>,
        guard: &'g Guard,
    ) {
        if !A::SEQUENTIAL {
            fence(Ordering::SeqCst);
        }
        let mut is_new = false;
        loop {
            match &way {
                Some(way) => is_new |= way.mark(),
                None if !self.seed.load(Ordering::SeqCst) => {
                    self.seed.store(true, Ordering::SeqCst);
                }
                None => {}
            }
            let root = self.root(guard);
            let is_done = match (&way, root) {
                (Some(way), Some(root)) => way.is_linked(root),
                (None, None) => true,
                _ => false,
            };
            if is_done || planted(Canary::OldNodeMarked) {
                break;
            }
            way = self.way(A::Key::shorten(key), guard);
        }
        if is_new {
            self.count_mark(guard);
        }
    }

    /// Counts a mark of a bucket, and drops the directory if half of the buckets are marked.
    #[inline(never)]
    fn count_mark(&self, guard: &Guard) {
        self.marked.fetch_add(1, Ordering::Relaxed);
        if self.is_mostly_marked() {
            self.drop_directory(guard);
        }
    }

    /// Whether a new directory takes no longer than to count the marked buckets.
    pub(super) fn is_mostly_marked(&self) -> bool {
        let buckets = self.buckets.load(Ordering::Relaxed);
        self.marked.load(Ordering::Relaxed) >= most_marked(buckets)
    }
}

impl<A: Ended<Key: CountedKey>> Counted<A> {
    /// Removes the first or the last entry.
    pub(super) fn pop_counted<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(AlgorithmKey<'g, A>, u64)>, AllocError> {
        let popped = self.inner.pop::<LAST>(guard)?;
        if let Some((key, _)) = popped {
            let way = self.way(A::Key::shorten(key), guard);
            self.mark(key, way, guard);
        }
        Ok(popped)
    }
}
