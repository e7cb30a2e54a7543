//! The descents of readers and of writers. Writers unlink the marked nodes on their way.

use super::Skip;
use super::key::SkipKey;
use super::node::{Link, MAX_HEIGHT, NodeRef};
use super::references::Dropped;
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering as Memory;
use std::cmp::Ordering;
use std::mem::MaybeUninit;

/// The end of a reader's descent.
pub(super) enum Found<'g, K: ?Sized> {
    /// A node with the target's key, present at that moment.
    Present(NodeRef<'g, K>),
    /// No such node: the key's position is between `before` and the node that `link`, its link at
    /// the floor, leads to.
    Absent { before: NodeRef<'g, K>, link: Link<'g, K> },
}

/// The result of a writer's descent: its places on the lowest levels, at least on the number of
/// levels that the writer asked for (paper: `preds`, `succs`).
pub(super) struct Splice<'g, K: SkipKey + ?Sized> {
    places: [MaybeUninit<Place<'g, K>>; MAX_HEIGHT],
    /// The number of lowest levels whose places are initialised.
    recorded: usize,
    /// The node with the target's key, unmarked at level 0.
    pub(super) found: Option<NodeRef<'g, K>>,
}

/// A place on one level.
pub(super) struct Place<'g, K: SkipKey + ?Sized> {
    /// The last node before the target.
    pub(super) pred: NodeRef<'g, K>,
    /// The link of `pred` on this level. It does not lead to a node before the target.
    pub(super) link: Link<'g, K>,
    /// The probe of the search when it stood at `pred`.
    probe: K::Probe<'g>,
}

impl<'g, K: SkipKey + ?Sized> Place<'g, K> {
    /// A link from `pred` to `node`, which has the target's key.
    pub(super) fn link_to(&self, node: NodeRef<'g, K>) -> Link<'g, K> {
        Link::to(node, K::hint_to_target(&self.probe))
    }

    /// A link from a node with the target's key to the node that `link` leads to.
    pub(super) fn link_from_target(&self) -> Link<'g, K> {
        self.link.node().map_or(Link::END, |next| {
            Link::to(next, K::hint_from_target(&self.probe, self.link.hint(), next))
        })
    }
}

impl<'g, K: SkipKey + ?Sized> Splice<'g, K> {
    pub(super) fn new() -> Self {
        Self { places: [const { MaybeUninit::uninit() }; MAX_HEIGHT], recorded: 0, found: None }
    }

    /// The place at `level`, if the descent has recorded it.
    #[inline]
    pub(super) fn at(&mut self, level: usize) -> Option<&mut Place<'g, K>> {
        if level >= self.recorded {
            return None;
        }
        // SAFETY: `recorded` levels are initialised.
        Some(unsafe { self.places[level].assume_init_mut() })
    }
}

/// The number of levels whose places a writer's descent records at least, even if it needs none for
/// a tower of its own. Most nodes that it may remove are not higher.
const RECORDED: usize = 4;

/// The error of a descent that met a removed node and cannot continue from there.
struct Restart;

impl<K: SkipKey + ?Sized, P: Placement> Skip<K, P> {
    /// The node with key `target`, if it is present.
    #[inline(always)]
    pub(super) fn find<'g>(
        &'g self,
        target: K::Ref<'_>,
        guard: &'g Guard,
    ) -> Option<NodeRef<'g, K>> {
        match self.search::<true, 0>(target, 0, &mut [], guard) {
            Found::Present(node) => {
                P::saw(|| node.ended());
                Some(node)
            }
            Found::Absent { .. } => None,
        }
    }

    /// Descends to level `floor`. With `STOP` it ends as soon as it meets the target's key, else at
    /// the last node before it. It writes the nodes that it stood at on the lowest levels into
    /// `trail`: each was linked there during this call.
    ///
    /// It moves only to nodes that are unmarked on the level where it meets them. Such a node was
    /// in the list during this call, and so was every node that its links lead to after they are
    /// frozen.
    #[inline(always)]
    pub(super) fn search<'g, const STOP: bool, const TRAIL: usize>(
        &'g self,
        target: K::Ref<'_>,
        floor: usize,
        trail: &mut [NodeRef<'g, K>; TRAIL],
        guard: &'g Guard,
    ) -> Found<'g, K> {
        let mut probe = K::probe(target);
        let mut before = self.head();
        let mut level = self.height.load(Memory::Relaxed).max(floor + 1);
        loop {
            level -= 1;
            let mut link = before.next(level);
            loop {
                let guess = link.hint().cmp(&K::hint_to_target(&probe));
                if guess == Ordering::Greater {
                    break;
                }
                let Some(next) = link.node() else { break };
                P::saw(|| next.passed(level));
                let after = next.next(level);
                if after.is_marked() {
                    return self.search_past_marks::<STOP, TRAIL>(target, floor, trail, guard);
                }
                if guess == Ordering::Less {
                    K::pass(&mut probe, next);
                } else {
                    P::saw(|| next.looked_at());
                    match K::look(&mut probe, link.hint(), next) {
                        Ordering::Less => {}
                        Ordering::Equal if STOP => {
                            // It was unmarked at `level` just now. LP(get, found): that load, or
                            // the load of the link at level 0.
                            if level > 0 && next.next(0).is_marked() {
                                return self
                                    .search_past_marks::<STOP, TRAIL>(target, floor, trail, guard);
                            }
                            // It is unmarked here, so it is linked here and below.
                            trail.iter_mut().take(level + 1).for_each(|stood| *stood = next);
                            return Found::Present(next);
                        }
                        Ordering::Equal | Ordering::Greater => break,
                    }
                }
                (before, link) = (next, after);
            }
            if let Some(stood) = trail.get_mut(level) {
                *stood = before;
            }
            if level == floor {
                // LP(get, absent): the load of `link`, or the moment it was frozen.
                return Found::Absent { before, link: link.unmarked() };
            }
        }
    }

    /// Does what `search` does by full comparisons, and steps over marked nodes without moving to
    /// them.
    #[cold]
    #[inline(never)]
    fn search_past_marks<'g, const STOP: bool, const TRAIL: usize>(
        &'g self,
        target: K::Ref<'_>,
        floor: usize,
        trail: &mut [NodeRef<'g, K>; TRAIL],
        _guard: &'g Guard,
    ) -> Found<'g, K> {
        let mut before = self.head();
        for level in (floor..self.height.load(Memory::Relaxed).max(floor + 1)).rev() {
            let mut link = before.next(level).unmarked();
            while let Some(next) = link.node() {
                let after = next.next(level);
                if after.is_marked() {
                    link = after.unmarked();
                    continue;
                }
                let order = K::shorten(next.key()).cmp(&K::shorten(target));
                if order == Ordering::Equal && STOP && level == 0 {
                    trail.iter_mut().take(1).for_each(|stood| *stood = next);
                    return Found::Present(next);
                }
                if order != Ordering::Less {
                    break;
                }
                (before, link) = (next, after);
            }
            if let Some(stood) = trail.get_mut(level) {
                *stood = before;
            }
            if level == floor {
                return Found::Absent { before, link };
            }
        }
        unreachable!("the loop ends at the floor")
    }

    /// Descends to level 0 as a writer. It unlinks every marked node that it meets, and records at
    /// least the places on the levels below `height`.
    pub(super) fn seek<'g>(
        &'g self,
        target: K::Ref<'g>,
        height: usize,
        splice: &mut Splice<'g, K>,
        guard: &'g Guard,
    ) {
        while self.try_seek(target, height, splice, guard).is_err() {}
    }

    #[inline(always)]
    fn try_seek<'g>(
        &'g self,
        target: K::Ref<'g>,
        height: usize,
        splice: &mut Splice<'g, K>,
        guard: &'g Guard,
    ) -> Result<(), Restart> {
        (splice.found, splice.recorded) = (None, 0);
        let mut met = None;
        let top = self.height.load(Memory::Relaxed).max(height);
        let recorded = height.max(RECORDED).min(top);
        let mut probe = K::probe(target);
        let mut pred = self.head();
        for level in (0..top).rev() {
            let mut link = pred.next(level);
            loop {
                if link.is_marked() {
                    return Err(Restart); // `pred` was removed: nothing can be linked behind it
                }
                let guess = link.hint().cmp(&K::hint_to_target(&probe));
                if guess == Ordering::Greater {
                    break;
                }
                let Some(next) = link.node() else { break };
                P::saw(|| next.passed(level));
                let after = next.next(level);
                if after.is_marked() {
                    link = self.unlink(level, pred, link, next, after, guard)?;
                    continue;
                }
                if guess == Ordering::Less {
                    K::pass(&mut probe, next);
                } else {
                    P::saw(|| next.looked_at());
                    match K::look(&mut probe, link.hint(), next) {
                        Ordering::Less => {}
                        Ordering::Greater => break,
                        Ordering::Equal => {
                            if level == 0 {
                                splice.found = Some(next);
                            } else {
                                met = Some(next);
                            }
                            break;
                        }
                    }
                }
                (pred, link) = (next, after);
            }
            if level < recorded {
                splice.places[level].write(Place { pred, link, probe });
            }
        }
        splice.recorded = recorded;
        // If an upper level has a node with the key that is not the one at level 0, that node has
        // been removed since. A place before it must not be used: a new node would stand before it
        // on that level.
        if met.is_some() && met != splice.found { Err(Restart) } else { Ok(()) }
    }

    /// Unlinks `node`, which `link` of `pred` leads to, and whose own link `after` is marked.
    /// Returns the new link of `pred`.
    #[cold]
    fn unlink<'g>(
        &self,
        level: usize,
        pred: NodeRef<'g, K>,
        link: Link<'g, K>,
        node: NodeRef<'g, K>,
        after: Link<'g, K>,
        guard: &Guard,
    ) -> Result<Link<'g, K>, Restart> {
        let new = Self::past(pred, link, after);
        if !pred.try_link(level, link, new) {
            return Err(Restart);
        }
        self.unrefer(node, 1, guard);
        Ok(new)
    }

    /// Unlinks `node`, whose links are all marked, at the places of a descent that met it. Returns
    /// false if that is not possible on every level: then another descent must unlink it. On the
    /// levels where this call has unlinked it, the places are right afterwards.
    pub(super) fn unlink_at<'g>(
        &'g self,
        splice: &mut Splice<'g, K>,
        node: NodeRef<'g, K>,
        guard: &'g Guard,
    ) -> bool {
        for level in (0..node.height()).rev() {
            let Some(place) = splice.at(level) else { return false };
            // This check comes before the node's own link is followed. If the descent did not meet
            // the node on this level, the node may never have been linked there, and its link may
            // lead to a node that is reclaimed.
            if place.link.node() != Some(node) {
                return false;
            }
            let new = Self::past(place.pred, place.link, node.next(level));
            if !place.pred.try_link(level, place.link, new) {
                return false;
            }
            place.link = new;
            self.unrefer(node, 1, guard);
        }
        true
    }

    /// The link that leads from `pred` past the removed node at the end of `link`. The removed
    /// node's own link is `after`.
    fn past<'g>(pred: NodeRef<'g, K>, link: Link<'g, K>, after: Link<'g, K>) -> Link<'g, K> {
        after.node().map_or(Link::END, |succ| {
            let keys = || (pred.key(), succ.key());
            Link::to(succ, K::hint_past(link.hint(), after.hint(), keys))
        })
    }

    /// Gives up `count` references to `node`, and retires it with the last one.
    pub(super) fn unrefer(&self, node: NodeRef<'_, K>, count: usize, guard: &Guard) {
        if node.unrefer(count) == Dropped::Last {
            // SAFETY: I4: no level links the node and no cursor stands at it, now or later.
            unsafe { self.nodes.retire(node.as_non_null().cast(), guard) };
        }
    }
}
