//! Searches for a place in the order of keys, and the way from one block to the next.
//!
//! The way down takes each key to a block, but not to its place in the order: nodes test only some
//! bits. So a search compares its key with the most similar one of the block. They differ first at
//! some bit. If the path to the block tests no later bit, the key's place is in the block.
//! Otherwise it is at one end of the subtree that leaves the path at this bit: a second way down,
//! which takes one value for all bits from there on, leads to that end.

use super::Blocks;
use super::block::BlockRef;
use super::edit::Step;
use super::key::{Bit, BlockKey};
use super::node::NodeRef;
use super::order::{Order, Place};
use super::word::Word;
use crate::domain::Guard;
use silvics_pool::Placement;

/// The most nodes of a path that are kept: the last ones.
const KEPT: usize = if cfg!(silvics_shuttle) { 1 } else { 16 };

/// The way to a block: the nodes above it.
pub(super) struct Way<'g> {
    steps: [Option<Step<'g>>; KEPT],
    len: usize,
    /// The number of first steps that are no longer kept.
    lost: usize,
}

impl<'g> Way<'g> {
    pub(super) fn new() -> Self {
        Self { steps: [None; KEPT], len: 0, lost: 0 }
    }

    fn clear(&mut self) {
        (self.len, self.lost) = (0, 0);
    }

    #[inline]
    fn push(&mut self, step: Step<'g>) {
        self.steps[self.len % KEPT] = Some(step);
        self.len += 1;
        self.lost = self.lost.max(self.len.saturating_sub(KEPT));
    }

    /// Keeps one step alone, which `before` others precede.
    fn restart(&mut self, before: usize, step: Step<'g>) {
        (self.len, self.lost) = (before, before);
        self.steps[before % KEPT] = Some(step);
        self.len += 1;
    }

    #[inline]
    fn pop(&mut self) -> Option<Step<'g>> {
        if self.len == self.lost {
            return None;
        }
        self.len -= 1;
        self.steps[self.len % KEPT]
    }

    /// The next child of the last node on the way, in the direction of a walk.
    #[inline]
    pub(super) fn ahead<const DESCENDS: bool>(&self) -> Option<Word> {
        let last = self.len.checked_sub(1).filter(|last| *last >= self.lost)?;
        let Step { node, at } = self.steps[last % KEPT]?;
        following::<DESCENDS>(node, at).map(|next| node.child(next).word())
    }
}

/// The child after child `at` of a node, in the direction of a walk.
#[inline]
fn following<const DESCENDS: bool>(node: NodeRef<'_>, at: usize) -> Option<usize> {
    let next = if DESCENDS { at.checked_sub(1)? } else { at + 1 };
    (next < node.len()).then_some(next)
}

/// The bits of a key that a way down takes as they are, and the value that it takes for the others.
#[derive(Clone, Copy)]
struct Forced {
    from: Bit,
    ones: bool,
}

/// The block after another one.
pub(super) enum Next<'g, K: BlockKey + ?Sized> {
    Block(BlockRef<'g, K>),
    /// There is none.
    End,
    /// The way back is lost: [`Blocks::turn`] finds it.
    Lost,
}

/// The place of a key in the order.
pub(super) enum Found<'g, K: BlockKey + ?Sized> {
    /// In this block, at this place of its order.
    In(BlockRef<'g, K>, Order, Place),
    /// In front of this block's entries.
    Before(BlockRef<'g, K>),
    /// Behind this block's entries.
    Behind(BlockRef<'g, K>),
}

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    fn way_down<'g>(
        &'g self,
        key: K::Ref<'_>,
        forced: Option<Forced>,
        way: &mut Way<'g>,
        _guard: &'g Guard,
    ) -> Option<BlockRef<'g, K>> {
        way.clear();
        let mut buffer = [0; 8];
        let probe = K::probe(K::shorten(key), &mut buffer);
        let block = Self::walk(self.root.word(), |node| {
            let mut at = self.child_of(node, &probe);
            if let Some(Forced { from, ones }) = forced {
                let (first, last) = node.subtree(at, from);
                at = if ones { last } else { first };
            }
            way.push(Step { node, at });
            at
        })?;
        block.prefetch();
        Some(block)
    }

    /// Finds the way back to the last node before a block that has a next child, if the key of the
    /// block still leads there. Returns whether it does.
    pub(super) fn turn<'g, const DESCENDS: bool>(
        &'g self,
        block: BlockRef<'g, K>,
        way: &mut Way<'g>,
        _guard: &'g Guard,
    ) -> bool {
        let (mut buffer, mut nodes) = ([0; 8], 0);
        let probe = K::probe(block.key(0), &mut buffer);
        way.clear();
        let found = Self::walk(self.root.word(), |node| {
            let at = self.child_of(node, &probe);
            if following::<DESCENDS>(node, at).is_some() {
                way.restart(nodes, Step { node, at });
            }
            nodes += 1;
            at
        });
        found == Some(block)
    }

    /// The place of a key, and the way there.
    pub(super) fn seek<'g>(
        &'g self,
        key: K::Ref<'_>,
        way: &mut Way<'g>,
        guard: &'g Guard,
    ) -> Option<Found<'g, K>> {
        let (key, mut forced) = (K::cut(key), None);
        loop {
            let block = self.way_down(K::shorten(key), forced, way, guard)?;
            let order = block.order();
            let place = order.place(block, K::shorten(key));
            let bit = match place {
                Place::Between(_, bit) if bit < block.depth() => bit,
                _ => return Some(Found::In(block, order, place)),
            };
            let ones = K::has(K::shorten(key), bit);
            match forced {
                Some(Forced { from, .. }) if from == bit => {
                    return Some(if ones { Found::Behind(block) } else { Found::Before(block) });
                }
                // A block that was put beside the subtree meanwhile may be closer to the key.
                _ => forced = Some(Forced { from: bit, ones }),
            }
        }
    }

    /// The first block, or the last one if a walk `DESCENDS`, and the way there.
    pub(super) fn begin<'g, const DESCENDS: bool>(
        &'g self,
        way: &mut Way<'g>,
    ) -> Option<BlockRef<'g, K>> {
        way.clear();
        Self::down::<DESCENDS>(self.root.word(), way)
    }

    #[inline]
    fn down<'g, const DESCENDS: bool>(word: Word, way: &mut Way<'g>) -> Option<BlockRef<'g, K>> {
        Self::walk(word, |node| {
            let at = if DESCENDS { node.len() - 1 } else { 0 };
            way.push(Step { node, at });
            at
        })
    }

    /// The block that follows the one that a way leads to.
    #[inline]
    pub(super) fn next<'g, const DESCENDS: bool>(way: &mut Way<'g>) -> Next<'g, K> {
        while let Some(Step { node, at }) = way.pop() {
            if let Some(at) = following::<DESCENDS>(node, at) {
                way.push(Step { node, at });
                let block = Self::down::<DESCENDS>(node.child(at).word(), way);
                return block.map_or(Next::End, Next::Block);
            }
        }
        if way.len == 0 { Next::End } else { Next::Lost }
    }
}
