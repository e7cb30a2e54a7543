//! `seek` and the verbs, with the paper's names. `help.rs` carries out the fates that they decide.

use super::super::side::Side;
use super::Ramachandran;
use super::build::Build;
use super::canaries::{is_certainly_linked, is_own_fate, is_retired_at_claim};
use super::node::{AtomicEdge, Draft, Edge, Mark, NODE, Node};
use crate::domain::Guard;
use crate::memory::Spare;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use std::hint::black_box;
use std::ptr::NonNull;

/// The part of its path that a descent keeps.
pub(super) trait Recorder<'g>: Copy {
    /// Records that the descent has passed `node`, which does not have the key, and continues by
    /// its edge on `side`.
    fn step(&mut self, node: &'g Node, side: Side);
}

/// Lookups keep nothing.
impl<'g> Recorder<'g> for () {
    #[inline(always)]
    fn step(&mut self, _: &'g Node, _: Side) {}
}

/// The place at which a node is linked, or would be linked: the record of updates.
#[derive(Clone, Copy)]
pub(super) struct Place<'g> {
    /// The edge at this place.
    pub(super) edge: &'g AtomicEdge,
    /// The node that has the edge, or `None` for the root edge, which is never marked.
    pub(super) owner: Option<&'g Node>,
}

impl<'g> Recorder<'g> for Place<'g> {
    #[inline(always)]
    fn step(&mut self, node: &'g Node, side: Side) {
        *self = Self { edge: node.edge(side), owner: Some(node) };
    }
}

/// The last edges of the path, as the published seek keeps them: the record of the baseline's
/// lookups.
#[derive(Clone, Copy)]
pub(super) struct Published<'g> {
    last_but_one: (Option<&'g Node>, Side),
    last: (Option<&'g Node>, Side),
    injection: (Option<&'g Node>, Side),
}

impl<'g> Recorder<'g> for Published<'g> {
    #[inline(always)]
    fn step(&mut self, node: &'g Node, side: Side) {
        self.last_but_one = self.last;
        self.last = self.injection;
        self.injection = (Some(node), side);
    }
}

/// The end of a descent.
enum End<'g> {
    /// The node with the key.
    Node(&'g Node),
    /// An empty edge; `anchor` is the node where the descent turned right last, if any.
    Empty { edge: Edge, anchor: Option<&'g Node> },
}

/// The result of a seek for a key. `R` is the record of the path.
pub(super) enum Sought<'g, R> {
    /// The key is in this node.
    Node(&'g Node, R),
    /// The key is absent, and would be linked at this empty edge, where the path ended.
    Absent(Edge, R),
    /// The key is not larger than the successor of `anchor`, which is about to be replaced. `state`
    /// is the state of the key: that of the successor if the keys are equal.
    Promoted { anchor: &'g Node, state: Option<u64> },
}

/// The verdict of an anchor about a key that was missed below it.
enum Anchored {
    /// The anchor has been in the tree all the time: the result holds.
    Stays,
    /// The anchor may have left, so the result may not hold.
    Unsure,
    /// The key's state is decided by the promoted pair: see [`Sought::Promoted`].
    Promoted(Option<u64>),
}

impl Node {
    /// The verdict of this node, an anchor, about a larger key, after the key was missed.
    #[inline(always)]
    fn anchored(&self, key: u64) -> Anchored {
        if is_certainly_linked(self) {
            return Anchored::Stays;
        }
        self.anchored_with_fate(key)
    }

    #[cold]
    fn anchored_with_fate(&self, key: u64) -> Anchored {
        if self.fate() != Mark::Replace {
            return Anchored::Unsure;
        }
        // SAFETY: I7: the anchor was reached under the guard of the calling search, and its fate is
        // [`Mark::Replace`].
        let copy: &Self = unsafe { self.copy() };
        if copy.draft() == Draft::Wanting {
            return Anchored::Unsure;
        }
        // An update's copy has the key of the node, which is smaller.
        let promoted = copy.key();
        match key.cmp(&promoted) {
            std::cmp::Ordering::Less => Anchored::Promoted(None),
            std::cmp::Ordering::Equal => Anchored::Promoted(Some(copy.value())),
            std::cmp::Ordering::Greater => Anchored::Unsure,
        }
    }
}

impl<P: Placement, B: Build> Ramachandran<P, B> {
    fn root(&self) -> Place<'_> {
        Place { edge: &self.root, owner: None }
    }

    /// Descends towards `key`.
    #[inline(always)]
    fn descend<'g, R: Recorder<'g>>(
        &'g self,
        key: u64,
        recorder: &mut R,
        _guard: &'g Guard,
    ) -> End<'g> {
        let mut anchor = None;
        let mut edge = self.root.load();
        loop {
            // SAFETY: I7: the edge was read from the tree or from a node that was reached under the
            // guard.
            let Some(node) = (unsafe { edge.child() }) else {
                return End::Empty { edge, anchor };
            };
            let node_key = node.key();
            if node_key == key {
                P::saw(|| NODE.ended(node));
                return End::Node(node);
            }
            let side = Side::of(key, node_key);
            P::saw(|| NODE.passed(node, side.index()));
            if side == Side::RIGHT {
                anchor = Some(node);
            }
            recorder.step(node, side);
            edge = node.follow(side);
        }
    }

    /// Descends until the result is certain (paper: `seek`). A missed key may have been promoted
    /// past the search, and the anchor shows whether it has. If the anchor may have left the tree,
    /// a second descent decides. If that one meets the same anchor, the anchor was in the tree
    /// until the end of the first descent, so the first descent's result holds.
    #[inline(always)]
    fn seek<'g, R: Recorder<'g>>(&'g self, key: u64, start: R, guard: &'g Guard) -> Sought<'g, R> {
        let mut recorder = start;
        match self.descend(key, &mut recorder, guard) {
            End::Node(node) => Sought::Node(node, recorder),
            End::Empty { edge, anchor: None } => Sought::Absent(edge, recorder),
            End::Empty { edge, anchor: Some(anchor) } => {
                P::saw(|| [anchor.fate_read()]);
                match anchor.anchored(key) {
                    Anchored::Stays => Sought::Absent(edge, recorder),
                    Anchored::Promoted(state) => Sought::Promoted { anchor, state },
                    Anchored::Unsure => {
                        self.seek_again(key, start, (anchor, edge, recorder), guard)
                    }
                }
            }
        }
    }

    /// The further descents of `seek`. `former` is the anchor, the end and the record of the first
    /// descent.
    #[cold]
    fn seek_again<'g, R: Recorder<'g>>(
        &'g self,
        key: u64,
        start: R,
        mut former: (&'g Node, Edge, R),
        guard: &'g Guard,
    ) -> Sought<'g, R> {
        loop {
            let mut recorder = start;
            let (edge, anchor) = match self.descend(key, &mut recorder, guard) {
                End::Node(node) => return Sought::Node(node, recorder),
                End::Empty { edge, anchor: None } => return Sought::Absent(edge, recorder),
                End::Empty { edge, anchor: Some(anchor) } => (edge, anchor),
            };
            match anchor.anchored(key) {
                Anchored::Stays => return Sought::Absent(edge, recorder),
                Anchored::Promoted(state) => return Sought::Promoted { anchor, state },
                Anchored::Unsure if std::ptr::eq(anchor, former.0) => {
                    return Sought::Absent(former.1, former.2);
                }
                Anchored::Unsure => former = (anchor, edge, recorder),
            }
        }
    }

    #[inline(always)]
    pub(super) fn lookup(&self, key: u64, guard: &Guard) -> Option<u64> {
        if B::KEEPS_RECORDS {
            return self.lookup_by_records(key, guard);
        }
        Self::found(&self.seek(key, (), guard))
    }

    /// Looks up `key` with the published records. They are of no use here, and the compiler must
    /// not discover that.
    #[inline(never)]
    fn lookup_by_records(&self, key: u64, guard: &Guard) -> Option<u64> {
        let nowhere = (None, Side::RIGHT);
        let start = Published { last_but_one: nowhere, last: nowhere, injection: nowhere };
        let sought = self.seek(key, start, guard);
        if let Sought::Node(_, record) | Sought::Absent(_, record) = &sought {
            black_box((record.last_but_one, record.last, record.injection));
        }
        Self::found(&sought)
    }

    /// The state of a key that a seek has found.
    #[inline(always)]
    fn found<R>(sought: &Sought<'_, R>) -> Option<u64> {
        match sought {
            Sought::Node(node, _) => Some(node.value()), // LP(get, found): the load of its edge
            Sought::Absent(..) => None, // LP(get, absent): the load of the empty edge
            Sought::Promoted { state, .. } => *state, // LP(get): see `mod.rs`
        }
    }

    /// The place at which `node` is linked now, or `None` if it has left the tree.
    pub(super) fn locate<'g>(&'g self, node: &Node, guard: &'g Guard) -> Option<Place<'g>> {
        match self.seek(node.key(), self.root(), guard) {
            Sought::Node(found, place) if std::ptr::eq(found, node) => Some(place),
            _ => None,
        }
    }

    /// Moves `key` from its current state to the one that `verb` wants, and returns the former.
    #[inline]
    pub(super) fn update(
        &self,
        key: u64,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let mut spare = self.nodes.spare();
        loop {
            let sought = self.seek(key, self.root(), guard);
            let state = Self::found(&sought);
            let done = match (verb.step(state), sought) {
                (Step::Keep, _) | (Step::Take, Sought::Absent(..)) => true, // LP: as for `get`
                (Step::Put(value), Sought::Absent(empty, place)) => {
                    let leaf = spare.filled(Node::leaf(key, value), guard)?;
                    self.insert(empty, place, leaf, &mut spare, guard)
                }
                (Step::Put(value), Sought::Node(node, place)) => {
                    let copy = spare.filled(Node::for_update(key, value), guard)?;
                    self.replace(node, place, copy, &mut spare, guard)
                }
                (Step::Take, Sought::Node(node, place)) => {
                    self.remove(node, place, &mut spare, guard)?
                }
                (_, Sought::Promoted { anchor, .. }) => {
                    self.help_target(anchor, None, guard);
                    false
                }
            };
            if done {
                return Ok(state);
            }
        }
    }

    /// Links a new leaf at the empty edge that the seek found, unless the edge has changed since.
    fn insert<'g>(
        &'g self,
        empty: Edge,
        place: Place<'g>,
        leaf: NonNull<Node>,
        spare: &mut Spare<'_, Node, P>,
        guard: &'g Guard,
    ) -> bool {
        if !empty.is_marked() && place.edge.try_link(empty, leaf) {
            // LP(insert of an absent key): the exchange
            spare.linked();
            self.frame.len.add(1);
            return true;
        }
        if let Some(owner) = place.owner
            && place.edge.load().is_marked()
        {
            self.help(owner, guard);
        }
        false
    }

    /// Replaces `node` by `copy`, unless another fate comes first. From here on nothing allocates.
    fn replace<'g>(
        &'g self,
        node: &'g Node,
        place: Place<'g>,
        copy: NonNull<Node>,
        spare: &mut Spare<'_, Node, P>,
        guard: &'g Guard,
    ) -> bool {
        if !node.try_announce(copy) {
            self.help(node, guard);
            return false;
        }
        let fate = node.decide(Mark::Replace);
        let mine = is_own_fate(fate);
        if mine {
            spare.linked(); // or will be linked, or is retired in `remove`
        }
        // LP(insert, compare_exchange: replaced): in `cleanup`
        self.help_target(node, Some(place), guard);
        mine
    }

    /// Removes `node`, unless another fate comes first (paper: injection). With two children it
    /// needs a copy, which takes the successor's pair; otherwise it allocates nothing.
    fn remove<'g>(
        &'g self,
        node: &'g Node,
        place: Place<'g>,
        spare: &mut Spare<'_, Node, P>,
        guard: &'g Guard,
    ) -> Result<bool, AllocError> {
        let (left, right) = (node.left().load(), node.right().load());
        if left.is_marked() || right.is_marked() {
            self.help(node, guard);
            return Ok(false);
        }
        let mine = if left.is_empty() {
            // The edge is marked in one step, since another thread may have linked a child there.
            node.left().try_mark(left, Mark::SpliceLeft)
        } else if right.is_empty() {
            node.right().try_mark(right, Mark::Reserved)
                && node.decide(Mark::SpliceRight) == Mark::SpliceRight
        } else {
            let copy = spare.filled(Node::for_removal(), guard)?;
            let mine = self.replace(node, place, copy, spare, guard);
            if mine {
                self.frame.len.add(-1);
                // SAFETY: I7: the copy was linked under the guard, or this thread, the owner of the
                // fate, has not retired it yet (I4).
                if unsafe { copy.as_ref() }.draft() == Draft::Wanting {
                    // The node had one child when it left.
                    // SAFETY: I4: the owner of the fate alone retires a copy that is not linked.
                    unsafe { self.nodes.retire(copy, guard) };
                }
            }
            return Ok(mine);
        };
        if mine {
            self.frame.len.add(-1);
            if is_retired_at_claim() {
                // SAFETY: never reached without the planted mistake, which breaks I4.
                unsafe { self.nodes.retire(NonNull::from(node), guard) };
            }
        }
        if node.has_fate() {
            self.help_target(node, Some(place), guard); // LP(remove): in `cleanup`
        }
        Ok(mine)
    }
}
