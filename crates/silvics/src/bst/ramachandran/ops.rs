//! `seek` and the verbs, with the paper's names; what they have decided is carried out in `help.rs`.

use super::super::side::Side;
use super::Ramachandran;
use super::build::Build;
use super::node::{AtomicEdge, Draft, Edge, Mark, NODE, Node};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::memory::Spare;
use crate::update::{Step, Update};
use silvics_pool::{AllocError, Placement};
use std::hint::black_box;
use std::ptr::NonNull;

/// What a descent keeps of its way.
pub(super) trait Recorder<'g>: Copy {
    /// It has passed `node`, which has not the key, and goes on by its edge on `side`.
    fn step(&mut self, node: &'g Node, side: Side);
}

/// Nothing: lookups.
impl<'g> Recorder<'g> for () {
    #[inline(always)]
    fn step(&mut self, _: &'g Node, _: Side) {}
}

/// Where a node is linked, or would be: updates.
#[derive(Clone, Copy)]
pub(super) struct Place<'g> {
    /// The edge …
    pub(super) edge: &'g AtomicEdge,
    /// … and whose it is; none for the root's, which is never marked.
    pub(super) owner: Option<&'g Node>,
}

impl<'g> Recorder<'g> for Place<'g> {
    #[inline(always)]
    fn step(&mut self, node: &'g Node, side: Side) {
        *self = Self { edge: node.edge(side), owner: Some(node) };
    }
}

/// The last edges of the way, as the published seek keeps them: lookups of the baseline.
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

/// Where a descent ended.
enum End<'g> {
    /// At the node with the key.
    Node(&'g Node),
    /// At an empty edge, having turned right at `anchor` last, if anywhere.
    Empty { edge: Edge, anchor: Option<&'g Node> },
}

/// What a seek has found out about a key. `R` is what was kept of the way.
pub(super) enum Sought<'g, R> {
    /// It is in this node.
    Node(&'g Node, R),
    /// It is absent, and would be where the way ended, at this empty edge.
    Absent(Edge, R),
    /// It is not larger than the successor of `anchor`, which is about to be replaced, and in
    /// `state`: that of the successor if it is the successor's key.
    Promoted { anchor: &'g Node, state: Option<u64> },
}

/// What an anchor says of a key that was missed below it.
enum Anchored {
    /// The anchor has been in the tree all the time: what was seen holds.
    Stays,
    /// It may have left; or no, and what was seen holds.
    Unsure,
    /// See [`Sought::Promoted`].
    Promoted(Option<u64>),
}

impl Node {
    /// What this node, an anchor, says of a larger key, after the key was missed.
    #[inline(always)]
    fn anchored(&self, key: u64) -> Anchored {
        if !self.has_fate() || planted(Canary::AnchorUnchecked) {
            return Anchored::Stays;
        }
        self.anchored_with_fate(key)
    }

    #[cold]
    fn anchored_with_fate(&self, key: u64) -> Anchored {
        if self.fate() != Mark::Replace {
            return Anchored::Unsure;
        }
        // SAFETY: an anchor was reached under the guard of the search that asks.
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

    /// Goes down towards `key`.
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
            // SAFETY: read from a reachable edge under the guard.
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

    /// Goes down until what is found is certain (paper: `seek`). A key that is missed may have been
    /// promoted past the search; whether it has been, the anchor tells. If the anchor may have left
    /// the tree, a second descent decides: if it comes by the same anchor, the first one met it in
    /// the tree until its end, and what that one found holds.
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

    /// The further descents of `seek`; `former` is what the first one met: its anchor, and where it
    /// ended.
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

    /// The same with the published records. They are of no use here, which the compiler must not
    /// find out.
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

    /// A key's state as a seek has found it.
    #[inline(always)]
    fn found<R>(sought: &Sought<'_, R>) -> Option<u64> {
        match sought {
            Sought::Node(node, _) => Some(node.value()), // LP(get, found): the load of the edge to it
            Sought::Absent(..) => None, // LP(get, absent): the load of the empty edge
            Sought::Promoted { state, .. } => *state, // LP(get): see `mod.rs`
        }
    }

    /// Where `node` is linked now; none if it has left the tree.
    pub(super) fn locate<'g>(&'g self, node: &Node, guard: &'g Guard) -> Option<Place<'g>> {
        match self.seek(node.key(), self.root(), guard) {
            Sought::Node(found, place) if std::ptr::eq(found, node) => Some(place),
            _ => None,
        }
    }

    /// Brings `key` from the state it is found in to the one `verb` wants, and returns the state
    /// found.
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

    /// Links a new leaf where the seek has ended, unless something has come there since.
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

    /// Has `copy` take the place of `node`, unless another fate comes first. Nothing from here on
    /// needs memory.
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
        let mine = fate == Mark::Replace || planted(Canary::FateTakenForGranted);
        if mine {
            spare.linked(); // or will be, or retired below
        }
        self.help_target(node, Some(place), guard); // LP(insert, compare_exchange: replaced): in `cleanup`
        mine
    }

    /// Removes `node`, unless another fate comes first (paper: injection). With two children it needs
    /// a copy, which takes the successor's pair; else nothing that could be refused.
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
            // Taken in one step: somebody may have put a child there.
            node.left().try_mark(left, Mark::SpliceLeft)
        } else if right.is_empty() {
            node.right().try_mark(right, Mark::Reserved)
                && node.decide(Mark::SpliceRight) == Mark::SpliceRight
        } else {
            let copy = spare.filled(Node::for_removal(), guard)?;
            let mine = self.replace(node, place, copy, spare, guard);
            if mine {
                self.frame.len.add(-1);
                // SAFETY: linked, or known to those only who have helped `node`, which has left.
                if unsafe { copy.as_ref() }.draft() == Draft::Wanting {
                    // It had one child in the end.
                    // SAFETY: I4: the owner of the fate retires a copy that nobody has linked.
                    unsafe { self.nodes.retire(copy, guard) };
                }
            }
            return Ok(mine);
        };
        if mine {
            self.frame.len.add(-1);
            if planted(Canary::RetiredAtClaim) {
                // SAFETY: none: that is the mistake.
                unsafe { self.nodes.retire(NonNull::from(node), guard) };
            }
        }
        if node.has_fate() {
            self.help_target(node, Some(place), guard); // LP(remove): in `cleanup`
        }
        Ok(mine)
    }
}
