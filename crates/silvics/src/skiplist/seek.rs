//! The descents: for readers, and for writers, who unlink what is marked on their way.

use super::SkipList;
use super::key::{Guess, SkipKey};
use super::node::{Dropped, Link, MAX_HEIGHT, NodeRef};
use crate::domain::Guard;
use silvics_pool::Placement;
use silvics_sync::atomic::Ordering as Memory;
use std::cmp::Ordering;

/// Where a reader's descent ended.
pub(super) enum Found<'g, K: ?Sized> {
    /// At a node with the target's key, present at that moment.
    Present(NodeRef<'g, K>),
    /// Nowhere: between `before` and what `link`, its link at the floor, leads to.
    Absent { before: NodeRef<'g, K>, link: Link<'g, K> },
}

/// Where a writer's descent ended: the predecessors on the levels asked for (paper: `preds`), each
/// with its link, which does not lead before the target, and the hint to the target.
pub(super) struct Splice<'g, K: ?Sized> {
    places: [Option<Place<'g, K>>; MAX_HEIGHT],
    /// The node with the target's key, unmarked at level 0.
    pub(super) found: Option<NodeRef<'g, K>>,
}

pub(super) struct Place<'g, K: ?Sized> {
    pub(super) pred: NodeRef<'g, K>,
    pub(super) link: Link<'g, K>,
    /// The hint for a link from `pred` to the target.
    pub(super) hint_to: u16,
    /// The hint for a link from the target to what `link` leads to.
    pub(super) hint_from: u16,
}

impl<K: ?Sized> Clone for Place<'_, K> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<K: ?Sized> Copy for Place<'_, K> {}

impl<'g, K: ?Sized> Splice<'g, K> {
    /// The place at `level`, which the descent was asked for.
    pub(super) fn at(&self, level: usize) -> Place<'g, K> {
        self.places[level].expect("the descent recorded every level below the height asked for")
    }
}

/// The descent met a removed node where it could not go on.
struct Restart;

impl<K: SkipKey + ?Sized, P: Placement> SkipList<K, P> {
    /// The node with key `target`, if it is present.
    #[inline(always)]
    pub(super) fn find<'g>(
        &'g self,
        target: K::Ref<'_>,
        guard: &'g Guard,
    ) -> Option<NodeRef<'g, K>> {
        match self.search::<true>(target, 0, guard) {
            Found::Present(node) => Some(node),
            Found::Absent { .. } => None,
        }
    }

    /// Descends to level `floor`. With `STOP`, ends as soon as it meets the target's key; else at
    /// the last node before it.
    ///
    /// Moves only to nodes that are unmarked at the level it meets them on: such a node was in the
    /// list during this call, so that whatever its frozen links lead to later was, too.
    #[inline(always)]
    pub(super) fn search<'g, const STOP: bool>(
        &'g self,
        target: K::Ref<'_>,
        floor: usize,
        guard: &'g Guard,
    ) -> Found<'g, K> {
        let mut probe = K::probe(target);
        let mut before = self.head();
        let mut level = self.height.load(Memory::Relaxed).max(floor + 1);
        loop {
            level -= 1;
            let mut link = before.next(level);
            loop {
                let guess = K::guess(&probe, link.hint());
                if guess == Guess::Larger {
                    break;
                }
                let Some(next) = link.node() else { break };
                let after = next.next(level);
                if after.is_marked() {
                    return self.search_past_marks::<STOP>(target, floor, guard);
                }
                if guess == Guess::Smaller {
                    K::pass(&mut probe, next);
                } else {
                    match K::look(&mut probe, link.hint(), next) {
                        Ordering::Less => {}
                        Ordering::Equal if STOP => {
                            // Unmarked at `level` just now. LP(get, found): this load.
                            if level > 0 && next.next(0).is_marked() {
                                return self.search_past_marks::<STOP>(target, floor, guard);
                            }
                            return Found::Present(next);
                        }
                        Ordering::Equal | Ordering::Greater => break,
                    }
                }
                (before, link) = (next, after);
            }
            if level == floor {
                // LP(get, absent): the load of `link`, or the moment it was frozen.
                return Found::Absent { before, link: link.unmarked() };
            }
        }
    }

    /// The same by full comparisons, stepping over marked nodes without moving to them.
    #[cold]
    #[inline(never)]
    fn search_past_marks<'g, const STOP: bool>(
        &'g self,
        target: K::Ref<'_>,
        floor: usize,
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
                    return Found::Present(next);
                }
                if order != Ordering::Less {
                    break;
                }
                (before, link) = (next, after);
            }
            if level == floor {
                return Found::Absent { before, link };
            }
        }
        unreachable!("the loop ends at the floor")
    }

    /// Descends to level 0 as a writer: unlinks every marked node it meets, and records the places
    /// on the levels below `height`.
    pub(super) fn seek<'g>(
        &'g self,
        target: K::Ref<'_>,
        height: usize,
        guard: &'g Guard,
    ) -> Splice<'g, K> {
        let mut splice = Splice { places: [None; MAX_HEIGHT], found: None };
        while self.try_seek(target, height, &mut splice, guard).is_err() {}
        splice
    }

    #[inline(always)]
    fn try_seek<'g>(
        &'g self,
        target: K::Ref<'_>,
        height: usize,
        splice: &mut Splice<'g, K>,
        guard: &'g Guard,
    ) -> Result<(), Restart> {
        splice.found = None;
        let mut met = None;
        let mut probe = K::probe(target);
        let mut pred = self.head();
        for level in (0..self.height.load(Memory::Relaxed).max(height)).rev() {
            let mut link = pred.next(level);
            loop {
                if link.is_marked() {
                    return Err(Restart); // `pred` was removed: nothing can be linked behind it
                }
                let guess = K::guess(&probe, link.hint());
                if guess == Guess::Larger {
                    break;
                }
                let Some(next) = link.node() else { break };
                let after = next.next(level);
                if after.is_marked() {
                    link = self.unlink(level, pred, link, next, after, guard)?;
                    continue;
                }
                if guess == Guess::Smaller {
                    K::pass(&mut probe, next);
                } else {
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
            if level < height {
                let hint_from = link
                    .node()
                    .map_or(K::END_HINT, |next| K::hint_from_target(&probe, link.hint(), next));
                let hint_to = K::hint_to_target(&probe);
                splice.places[level] = Some(Place { pred, link, hint_to, hint_from });
            }
        }
        // A node with the key on an upper level that is not the one at level 0 has been removed
        // since: a place before it must not be used, or a new node would stand before it there.
        if met.is_some() && met != splice.found { Err(Restart) } else { Ok(()) }
    }

    /// Unlinks `node`, which `link` of `pred` leads to and whose own link `after` is marked.
    /// Returns the link of `pred` as it is now.
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
        let new = after.node().map_or(Link::END, |succ| {
            Link::to(succ, K::hint(K::shorten(pred.key()), K::shorten(succ.key())))
        });
        if !pred.try_link(level, link, new) {
            return Err(Restart);
        }
        self.unrefer(node, 1, guard);
        Ok(new)
    }

    /// Gives up references to `node`, retiring it with the last.
    pub(super) fn unrefer(&self, node: NodeRef<'_, K>, count: usize, guard: &Guard) {
        if node.unrefer(count) == Dropped::Last {
            // SAFETY: I4: no level links it, no cursor stands at it, none will.
            unsafe { self.nodes.retire(node.as_non_null().cast(), guard) };
        }
    }
}
