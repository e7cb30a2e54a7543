//! Building a tree from sorted entries: one base node, whose leaves are nearly full, or several
//! ones with the same number of entries.

use super::Ca;
use super::avl::Tree;
use super::build::{Build, Form};
use super::change::bound;
use super::key::{CaKey, MAX_BYTES, Slots};
use super::node::{NodeRef, max_entries, room_for};
use super::objects::{Fresh, May, Upper};
use super::word::Word;
use crate::error::{AllocError, BulkLoadError, reserved};
use crate::frame::Adapting;
use silvics_pool::Placement;
use std::cmp::Ordering;
use std::ops::Bound;

/// Fails if a key is too long.
pub(crate) fn check_len<K: Slots + ?Sized>(key: K::New<'_>) -> Result<(), AllocError> {
    let bytes = K::len(key);
    if K::HAS_OBJECTS && bytes > MAX_BYTES {
        return Err(AllocError::KeyLength { bytes, limit: MAX_BYTES });
    }
    Ok(())
}

/// Fails unless the keys ascend, none is too long, and a tree with `present` entries is empty.
pub(crate) fn check_sorted<K: CaKey + ?Sized>(
    entries: &[(K::Ref<'_>, u64)],
    present: i64,
) -> Result<(), BulkLoadError> {
    if present != 0 {
        return Err(BulkLoadError::NotEmpty { entries: present.max(0) as usize });
    }
    for (position, (key, _)) in entries.iter().enumerate() {
        check_len::<K>(K::shorten(*key))?;
        let Some((before, _)) = position.checked_sub(1).map(|at| &entries[at]) else {
            continue;
        };
        match before.cmp(key) {
            Ordering::Less => {}
            Ordering::Equal => return Err(BulkLoadError::Duplicate { position }),
            Ordering::Greater => return Err(BulkLoadError::Unsorted { position }),
        }
    }
    Ok(())
}

/// A container of these entries, which are sorted.
pub(crate) fn container_of<K: Slots + ?Sized, P: Placement, U: Upper<K>>(
    entries: &[(K::New<'_>, u64)],
    fresh: &mut Fresh<'_, K, P, U>,
) -> Result<Word, AllocError> {
    // A level of nodes, each with the bound before it.
    let mut level: Vec<(K::Slot, Word)> = Vec::new();
    let mut last: Option<NodeRef<'_, K>> = None;
    for entries in in_parts(entries, max_entries::<K>(true)) {
        let leaf = fresh.node(true, room_for::<K>(true, entries.len(), false))?;
        for (at, (key, value)) in entries.iter().enumerate() {
            leaf.insert(at, (fresh.key(*key, false)?, *value));
        }
        let bound = match last.replace(leaf) {
            Some(last) => bound(fresh, last, leaf, false)?,
            None => K::unused(),
        };
        reserved(&mut level, 1)?.push((bound, leaf.word()));
    }
    while level.len() > 1 {
        let mut above = Vec::new();
        for children in in_parts(&level, max_entries::<K>(false)) {
            let node = fresh.node(false, room_for::<K>(false, children.len(), false))?;
            for (at, child) in children.iter().enumerate() {
                node.insert_child(at, *child);
            }
            reserved(&mut above, 1)?.push((children[0].0, node.word()));
        }
        level = above;
    }
    Ok(level.first().map_or(Word::NONE, |(_, root)| *root))
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ca<K, P, B> {
    /// See [`CaTree::bulk_load`](super::CaTree::bulk_load).
    pub(super) fn load_sorted(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
    ) -> Result<(), BulkLoadError> {
        check_sorted::<K>(entries, self.objects.frame().len.sum())?;
        if entries.is_empty() {
            return Ok(());
        }
        let guard = self.objects.frame().domain.pin();
        let mut fresh = Fresh::new(&self.objects, May::Flush(&guard));
        let base = Self::base_of_entries(&mut fresh, entries)?;
        fresh.linked();
        self.changes.count_division(self.adaptation(&guard).base_nodes.len(), 1);
        let old = self.root.word();
        self.root.link(base);
        // SAFETY: access is exclusive, and the objects of the empty tree are no longer linked.
        unsafe { self.objects.free_all(old) };
        self.objects.frame().len.add(entries.len() as i64);
        Ok(())
    }

    /// A base node with sorted entries.
    fn base_of_entries(
        fresh: &mut Fresh<'_, K, P, B>,
        entries: &[(K::Ref<'_>, u64)],
    ) -> Result<Word, AllocError> {
        let container = match B::FORM {
            Form::Blocks => container_of(entries, fresh)?,
            Form::Avl => Tree::build(fresh, entries)?,
        };
        fresh.base(container)
    }

    /// See [`CaTree::divide`](super::CaTree::divide).
    pub(super) fn divide_evenly(&mut self, base_nodes: usize) -> Result<usize, AllocError> {
        let guard = self.objects.frame().domain.pin();
        let entries = self.collect((Bound::Unbounded, Bound::Unbounded), &guard)?;
        let before = self.adaptation(&guard).base_nodes.len();
        let parts = base_nodes.min(entries.len());
        if parts == 0 {
            return Ok(before);
        }
        let mut fresh = Fresh::new(&self.objects, May::Flush(&guard));
        let new = Self::parts(&mut fresh, &entries, parts)?;
        fresh.linked();
        let old = self.root.word();
        self.root.link(new);
        self.changes.count_division(before, parts);
        drop(entries);
        // SAFETY: access is exclusive, and the objects of the old tree are no longer linked. Those
        // of the new one have keys of their own.
        unsafe { self.objects.free_all(old) };
        Ok(parts)
    }

    /// A tree of base nodes that have the same number of sorted entries, or one more.
    fn parts(
        fresh: &mut Fresh<'_, K, P, B>,
        entries: &[(K::Ref<'_>, u64)],
        parts: usize,
    ) -> Result<Word, AllocError> {
        if parts == 1 {
            return Self::base_of_entries(fresh, entries);
        }
        let (before, behind) = entries.split_at(entries.len() * (parts / 2) / parts);
        let left = Self::parts(fresh, before, parts / 2)?;
        let right = Self::parts(fresh, behind, parts - parts / 2)?;
        let (last, first) = (before[before.len() - 1].0, behind[0].0);
        let bound = K::between(K::shorten(last), K::shorten(first), false);
        let bound = fresh.key(bound, true)?;
        fresh.route(left, bound, right)
    }
}

/// Divides a list into parts of about the same length, each at most seven eighths of a node.
fn in_parts<T>(list: &[T], most: usize) -> impl Iterator<Item = &[T]> {
    let most = (most * 7 / 8).max(2);
    let (len, parts) = (list.len(), list.len().div_ceil(most));
    (0..parts).map(move |part| &list[len * part / parts..len * (part + 1) / parts])
}
