//! Changes of the directory: buckets, groups and sections are divided and joined. The caller has
//! the latch.

use super::Counted;
use super::clean::Place;
use super::key::CountedKey;
use super::node::{Level, NodeRef, Part, Separator};
use super::ops::Way;
use super::plan::{
    FEW_BUCKETS, FEW_GROUPS, Fresh, List, MOST_BUCKETS, MOST_GROUPS, MOST_KEYS, NEW_BUCKET, Parts,
    are_joined, fit,
};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::encoding::IndexKey;
use crate::error::AllocError;
use crate::frame::{AlgorithmBounds, AlgorithmKey, Ordered};
use silvics_sync::atomic::{Ordering, fence};
use std::ops::{Bound, Range};
use std::ptr::NonNull;

/// The part of the directory that has been replaced.
pub(super) enum Changed {
    /// Nothing, or a group.
    Nothing,
    /// A section.
    Section,
    /// The root.
    Root,
}

impl<A: Ordered<Key: CountedKey>> Counted<A> {
    /// Makes the directory of all keys, if there are enough of them.
    pub(super) fn found(&self, guard: &Guard) -> Result<(), AllocError> {
        self.seed.store(false, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let (mut fresh, mut buckets, mut groups) =
            (Fresh::new(self, guard), Parts::default(), Parts::default());
        let first = Separator { key: A::Key::of_bytes(&[]), bytes: 0 };
        let all = (Bound::Unbounded, Bound::Unbounded);
        self.scan((first, all), NEW_BUCKET, guard, |from, keys| {
            buckets.bucket(from, keys, false)?;
            if buckets.items().len() == MOST_BUCKETS - MOST_BUCKETS / 4 {
                fresh.nodes((Level::Group, MOST_BUCKETS), &buckets.take(), &mut groups)?;
            }
            Ok(())
        })?;
        if !buckets.items().is_empty() {
            fresh.nodes((Level::Group, MOST_BUCKETS), buckets.items(), &mut groups)?;
        }
        let mut sections = Parts::default();
        fresh.nodes((Level::Section, MOST_GROUPS), groups.items(), &mut sections)?;
        let root = fresh.node(Level::Root, sections.items())?;
        let buckets: usize = (0..root.len())
            .map(|at| root.child(at))
            .flat_map(|section| (0..section.len()).map(move |at| section.child(at).len()))
            .sum();
        self.marked.store(0, Ordering::Relaxed);
        self.buckets.store(buckets, Ordering::Relaxed);
        self.root.store(root.address().as_ptr(), Ordering::SeqCst);
        fresh.keep();
        if self.seed.load(Ordering::SeqCst) && !planted(Canary::MarksNotCarried) {
            Self::mark_below(root);
        }
        Ok(())
    }

    /// Marks a node and all below it.
    pub(super) fn mark_below(node: NodeRef<'_, A::Key>) {
        if node.level() != Level::Group {
            (0..node.len()).for_each(|at| Self::mark_below(node.child(at)));
        }
        node.mark_all();
    }

    /// Calls `each` with the separator and the keys of buckets of up to `size` keys that a range is
    /// divided into.
    ///
    /// If one scan finds a key, the key is in the count of one bucket. So an operation on a key
    /// that comes or goes meanwhile, and marks its bucket afterwards, marks every count that may be
    /// wrong.
    fn scan<'g>(
        &'g self,
        (mut from, bounds): (Separator<'g, A::Key>, AlgorithmBounds<'g, A>),
        size: u64,
        guard: &'g Guard,
        mut each: impl FnMut(Separator<'g, A::Key>, u64) -> Result<(), AllocError>,
    ) -> Result<(), AllocError> {
        let mut keys = List::default();
        for (key, _) in self.inner.range(bounds, guard) {
            if keys.items().len() as u64 == size {
                let next = self.separator((keys.items(), A::Key::shorten(key)), guard);
                let before = keys.items().partition_point(|key| *key < next.key);
                each(from, before as u64)?;
                keys.remove_first(before);
                from = next;
            }
            keys.push(key)?;
        }
        each(from, keys.items().len() as u64)
    }

    /// A separator of two neighbouring keys, the last one found and another one, or a separator
    /// before these that a leaf of the index begins with: a rank then scans one leaf.
    fn separator<'g>(
        &'g self,
        (found, key): (&[AlgorithmKey<'g, A>], AlgorithmKey<'g, A>),
        guard: &'g Guard,
    ) -> Separator<'g, A::Key> {
        let last = found[found.len() - 1];
        let start = self.inner.leaf_start(A::Key::shorten(key), guard);
        let divides = |start: &AlgorithmKey<'g, A>| *start > found[0] && *start <= last;
        if let (Some(bytes), Some(key)) = (A::Key::FIXED, start.filter(divides)) {
            return Separator { key, bytes };
        }
        let bytes = A::Key::separates(A::Key::shorten(last), A::Key::shorten(key));
        Separator { key, bytes }
    }

    /// Divides the buckets of a group that are too large, and joins those of few keys with their
    /// neighbours; also the group with its neighbour, if it has few buckets.
    pub(super) fn even_out<'g>(
        &'g self,
        root: NodeRef<'g, A::Key>,
        (in_root, in_section): Place,
        guard: &'g Guard,
    ) -> Result<Changed, AllocError> {
        let section = root.child(in_root);
        let group = section.child(in_section);
        let mut groups = in_section..in_section + 1;
        if group.len() <= FEW_BUCKETS {
            let fits = |other: usize| fit(group.len(), section.child(other).len(), MOST_BUCKETS);
            if in_section + 1 < section.len() && fits(in_section + 1) {
                groups.end += 1;
            } else if in_section > 0 && fits(in_section - 1) {
                groups.start -= 1;
            }
        }
        let keys = |at: usize| group.count(at);
        let joins = (1..group.len()).any(|at| are_joined(keys(at - 1), keys(at)));
        let divides = (0..group.len()).any(|at| keys(at) > MOST_KEYS);
        if groups.len() == 1 && !joins && !divides {
            return Ok(Changed::Nothing);
        }
        let mut parts = Parts::default();
        let old = groups.clone().map(|at| section.child(at));
        let marks = old.clone().map(NodeRef::marked).sum();
        for in_section in groups.clone() {
            let group = section.child(in_section);
            for at in 0..group.len() {
                let (from, keys) = (group.separator(at), group.count(at));
                let is_marked = group.is_marked(at);
                if keys <= MOST_KEYS {
                    parts.bucket(from, keys, is_marked)?;
                    continue;
                }
                let pieces = 2 * keys / MOST_KEYS;
                let bounds = Way { root, section, group, at: [in_root, in_section, at] }.bounds();
                self.scan((from, bounds), keys.div_ceil(pieces), guard, |from, keys| {
                    parts.bucket(from, keys, is_marked)
                })?;
            }
        }
        parts.join();
        self.replace(root, in_root, (groups, marks), &parts, guard)
    }

    /// Replaces neighbouring groups of a section, which had some marks before they were read, by
    /// groups of these buckets.
    fn replace<'g>(
        &'g self,
        root: NodeRef<'g, A::Key>,
        in_root: usize,
        (groups, marks): (Range<usize>, usize),
        buckets: &Parts<'g, A::Key>,
        guard: &'g Guard,
    ) -> Result<Changed, AllocError> {
        let section = root.child(in_root);
        let mut old = groups.clone().map(|at| section.child(at));
        let old = [old.next(), old.next()]; // the section may get other children
        let mut fresh = Fresh::new(self, guard);
        let mut new = Parts::default();
        fresh.nodes((Level::Group, MOST_BUCKETS), buckets.items(), &mut new)?;
        let changed = if groups.len() == 1 && new.items().len() == 1 {
            let new = new.items()[0];
            section.set_count(groups.start, new.keys);
            root.set_count(in_root, section.count_all());
            section.set_child(groups.start, new.node());
            fresh.keep();
            Changed::Nothing
        } else {
            self.replace_section(root, (in_root, groups.clone()), &new, (&mut fresh, guard))?
        };
        let (came, went) = (buckets.items().len(), old.iter().flatten().map(|old| old.len()));
        let all = self.buckets.load(Ordering::Relaxed) + came - went.sum::<usize>();
        self.buckets.store(all, Ordering::Relaxed);
        // The operations that have marked an old group, and saw that it was linked, did so before
        // it was replaced.
        let now = old.into_iter().flatten().map(NodeRef::marked).sum::<usize>();
        if now != marks && !planted(Canary::MarksNotCarried) {
            let root = self.root(guard).unwrap_or(root);
            for part in new.items() {
                part.node().mark_all();
                Way::find(root, A::Key::shorten(part.from.key)).mark_above();
            }
        }
        // SAFETY: C3: each group was unlinked under the latch, so it is retired once.
        old.into_iter().flatten().for_each(|group| unsafe { self.objects.retire(group, guard) });
        Ok(changed)
    }

    /// Replaces a section by one, or two, in which other groups are in the place of some.
    fn replace_section<'g>(
        &'g self,
        root: NodeRef<'g, A::Key>,
        (in_root, groups): (usize, Range<usize>),
        new: &Parts<'g, A::Key>,
        (fresh, guard): (&mut Fresh<'g, A>, &'g Guard),
    ) -> Result<Changed, AllocError> {
        let section = root.child(in_root);
        let (before_in_root, mut before) = (root.marked(), section.marked());
        let mut parts = Parts::default();
        parts.keep(section, 0..groups.start)?;
        parts.extend(new)?;
        parts.keep(section, groups.end..section.len())?;
        let mut sections = in_root..in_root + 1;
        let len = parts.items().len();
        if len <= FEW_GROUPS {
            let fits = |other: usize| fit(len, root.child(other).len(), MOST_GROUPS);
            if in_root + 1 < root.len() && fits(in_root + 1) {
                sections.end += 1;
                let next = root.child(in_root + 1);
                before += next.marked();
                parts.keep(next, 0..next.len())?;
            } else if in_root > 0 && fits(in_root - 1) {
                sections.start -= 1;
                let previous = root.child(in_root - 1);
                before += previous.marked();
                let own = std::mem::take(&mut parts);
                parts.keep(previous, 0..previous.len())?;
                parts.extend(&own)?;
            }
        }
        let mut above = Parts::default();
        above.keep(root, 0..sections.start)?;
        fresh.nodes((Level::Section, MOST_GROUPS), parts.items(), &mut above)?;
        let made = sections.start..above.items().len();
        let other = sections.clone().find(|at| *at != in_root).map(|at| root.child(at));
        let old = [Some(section), other];
        let is_alone = sections.len() == 1 && above.items().len() == in_root + 1;
        if is_alone {
            let new = above.items()[in_root];
            root.set_count(in_root, new.keys);
            root.set_child(in_root, new.node());
            fresh.keep();
        } else {
            above.keep(root, sections.end..root.len())?;
            let new = fresh.node(Level::Root, above.items())?;
            self.root.store(new.address().as_ptr(), Ordering::SeqCst);
            fresh.keep();
        }
        // Marks of the old nodes that came after they were copied are in neither.
        if !planted(Canary::MarksNotCarried) {
            let now = old.into_iter().flatten().map(NodeRef::marked).sum::<usize>();
            if now != before {
                above.items()[made].iter().for_each(|part| part.node().mark_all());
            }
            if now != before || root.marked() != before_in_root {
                self.root(guard).unwrap_or(root).mark_all();
            }
        }
        // SAFETY: C3: they were unlinked under the latch, so each is retired once.
        unsafe {
            old.into_iter().flatten().for_each(|old| self.objects.retire(old, guard));
            if !is_alone {
                self.objects.retire(root, guard);
            }
        }
        Ok(if is_alone { Changed::Section } else { Changed::Root })
    }

    /// Frees all nodes. The access is exclusive.
    pub(super) fn free_directory(&mut self) {
        let root = self.root.swap(std::ptr::null_mut(), Ordering::SeqCst);
        let Some(root) = NonNull::new(root) else { return };
        // SAFETY: C2: the linked nodes are not reclaimed. Nobody else has them, and each has one
        // link.
        unsafe {
            let root = NodeRef::<A::Key>::new(root);
            for at in 0..root.len() {
                let section = root.child(at);
                (0..section.len()).for_each(|at| self.objects.free(section.child(at)));
                self.objects.free(section);
            }
            self.objects.free(root);
        }
    }
}

impl<'g, K: CountedKey + ?Sized> Part<'g, K> {
    /// The node of a part that is no bucket.
    fn node(&self) -> NodeRef<'g, K> {
        let node = self.child.expect("the part is a node");
        // SAFETY: the part was made of an initialised node, which is not reclaimed during `'g`: it
        // is linked, or belongs to this thread.
        unsafe { NodeRef::new(node) }
    }
}
