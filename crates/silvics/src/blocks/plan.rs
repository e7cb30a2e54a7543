//! Plans of nodes: the content of a node to be made.
//!
//! A plan has one child, or one bit, more than a node can have, so that a change can be made before
//! the node is divided.

use super::key::{Bit, BlockKey};
use super::node::{MAX_CHILDREN, NodeRef, Windows};
use super::word::Word;

/// The most children of a plan.
const CHILDREN: usize = MAX_CHILDREN + 1;

/// A child, and those bits of the plan that are set on its path. The first bit is the highest.
#[derive(Clone, Copy, Debug)]
struct Child {
    path: u64,
    word: Word,
}

/// The bits and children of a node to be made.
#[derive(Clone)]
pub(super) struct Plan {
    bits: [Bit; CHILDREN],
    bit_count: usize,
    children: [Child; CHILDREN],
    len: usize,
}

/// The bit where two neighbouring paths part, as a weight.
fn parting(a: u64, b: u64) -> u64 {
    1 << (a ^ b).ilog2()
}

impl Plan {
    /// A plan of one child, which no node can have.
    pub(super) fn one(word: Word) -> Self {
        let none = Child { path: 0, word: Word::NONE };
        let mut plan =
            Self { bits: [0; CHILDREN], bit_count: 0, children: [none; CHILDREN], len: 1 };
        plan.children[0].word = word;
        plan
    }

    /// The content of a node.
    pub(super) fn of(node: NodeRef<'_>) -> Self {
        let mut plan = Self::one(Word::NONE);
        for bit in node.bits() {
            plan.bits[plan.bit_count] = bit;
            plan.bit_count += 1;
        }
        plan.len = node.len();
        for (at, child) in plan.children[..plan.len].iter_mut().enumerate() {
            *child = Child { path: u64::from(node.path(at)), word: node.child(at).word() };
        }
        plan
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn child(&self, at: usize) -> Word {
        self.children[at].word
    }

    pub(super) fn set_child(&mut self, at: usize, word: Word) {
        self.children[at].word = word;
    }

    /// The children with their paths.
    pub(super) fn children(&self) -> impl Iterator<Item = (u32, Word)> {
        self.children[..self.len].iter().map(|child| (child.path as u32, child.word))
    }

    /// The windows of a node with this content, if one node can have it.
    pub(super) fn windows<K: BlockKey + ?Sized>(&self) -> Option<Windows> {
        if self.len > MAX_CHILDREN {
            return None;
        }
        Windows::of::<K>(&self.bits[..self.bit_count])
    }

    /// The children whose paths agree with that of child `at` in all bits before `bit`.
    fn subtree(&self, at: usize, before: usize) -> (usize, usize) {
        let ignored = (1u64 << (self.bit_count - before)) - 1;
        let path = self.children[at].path;
        let agrees = |child: &&Child| (child.path ^ path) & !ignored == 0;
        let less = self.children[..at].iter().rev().take_while(agrees).count();
        let more = self.children[at..self.len].iter().take_while(agrees).count();
        (at - less, at + more)
    }

    /// Adds a child beside the subtree that leaves the path of child `at` at `bit`: after it if the
    /// new child `has` the bit, else before it. Returns the position of the new child.
    pub(super) fn insert(&mut self, at: usize, bit: Bit, has: bool, word: Word) -> usize {
        let before = self.bits[..self.bit_count].iter().take_while(|other| **other < bit).count();
        if before == self.bit_count || self.bits[before] != bit {
            let low = (1u64 << (self.bit_count - before)) - 1;
            self.bits.copy_within(before..self.bit_count, before + 1);
            self.bits[before] = bit;
            self.bit_count += 1;
            for child in &mut self.children[..self.len] {
                child.path = (child.path & !low) << 1 | child.path & low;
            }
        }
        let (first, end) = self.subtree(at, before);
        let weight = 1u64 << (self.bit_count - 1 - before);
        let shared = self.children[at].path & !(2 * weight - 1);
        let (position, path) = if has { (end, shared | weight) } else { (first, shared) };
        if !has {
            self.children[first..end].iter_mut().for_each(|child| child.path |= weight);
        }
        self.children.copy_within(position..self.len, position + 1);
        self.children[position] = Child { path, word };
        self.len += 1;
        position
    }

    /// The bit where child `at` leaves the rest of the node, and whether it has that bit. The node
    /// has other children.
    fn leaves(&self, at: usize) -> (u64, bool) {
        let path = |at: usize| self.children[at].path;
        let left = (at > 0).then(|| parting(path(at - 1), path(at)));
        let right = (at + 1 < self.len).then(|| parting(path(at), path(at + 1)));
        match (left, right) {
            (Some(left), Some(right)) if left < right => (left, true),
            (Some(left), None) => (left, true),
            (_, Some(right)) => (right, false),
            (None, None) => unreachable!("the only child"),
        }
    }

    /// The only other child below the bit where child `at` leaves the rest, if there is one, and
    /// the bit.
    pub(super) fn sibling(&self, at: usize) -> Option<(usize, Bit)> {
        let (weight, has) = self.leaves(at);
        let other = if has { at - 1 } else { at + 1 };
        let bit = self.bits[self.bit_count - 1 - weight.ilog2() as usize];
        (self.leaves(other) == (weight, !has)).then_some((other, bit))
    }

    /// Removes a child. The bit where it left the rest is no longer tested there.
    pub(super) fn remove(&mut self, at: usize) {
        let (weight, has) = self.leaves(at);
        if !has {
            let path = self.children[at].path;
            for child in &mut self.children[at + 1..self.len] {
                if (child.path ^ path) & !(2 * weight - 1) != 0 {
                    break;
                }
                child.path &= !weight;
            }
        }
        self.children.copy_within(at + 1..self.len, at);
        self.len -= 1;
        self.prune();
    }

    /// Drops the bits that no path parts at.
    fn prune(&mut self) {
        let pairs = self.children[..self.len].windows(2);
        let used = pairs.fold(0, |used, pair| used | parting(pair[0].path, pair[1].path));
        let mut kept = 0;
        for at in 0..self.bit_count {
            let weight = 1u64 << (self.bit_count - 1 - at);
            if used & weight != 0 {
                self.bits[kept] = self.bits[at];
                kept += 1;
            }
        }
        for child in &mut self.children[..self.len] {
            let (mut path, mut weights) = (0, used);
            while weights != 0 {
                let highest = 1u64 << weights.ilog2();
                path = path << 1 | u64::from(child.path & highest != 0);
                weights ^= highest;
            }
            child.path = path;
        }
        self.bit_count = kept;
    }

    /// The children of two plans that part at a bit before all bits of both. Nothing if one node
    /// cannot have them.
    pub(super) fn joined<K: BlockKey + ?Sized>(
        left: &Self,
        right: &Self,
        bit: Bit,
    ) -> Option<Self> {
        let mut plan = Self::one(Word::NONE);
        let (mut bits, mut count) = ([0; 2 * CHILDREN + 1], 1);
        bits[0] = bit;
        for side in [left, right] {
            for other in &side.bits[..side.bit_count] {
                bits[count] = *other;
                count += 1;
            }
        }
        let bits = &mut bits[..count];
        bits.sort_unstable();
        for (at, bit) in bits.iter().enumerate() {
            if at == 0 || bits[at - 1] != *bit {
                *plan.bits.get_mut(plan.bit_count)? = *bit;
                plan.bit_count += 1;
            }
        }
        plan.len = 0;
        for (side, has) in [(left, false), (right, true)] {
            let weight = |bit: Bit| {
                let at = plan.bits[..plan.bit_count].partition_point(|other| *other < bit);
                1u64 << (plan.bit_count - 1 - at)
            };
            let first = if has { weight(bit) } else { 0 };
            let mut weights = [0; CHILDREN];
            for (to, bit) in weights.iter_mut().zip(&side.bits[..side.bit_count]) {
                *to = weight(*bit);
            }
            for child in &side.children[..side.len] {
                let set = |(at, weight): (usize, &u64)| {
                    if child.path >> (side.bit_count - 1 - at) & 1 == 1 { *weight } else { 0 }
                };
                let path = weights[..side.bit_count].iter().enumerate().map(set);
                let path = path.fold(first, |path, weight| path | weight);
                *plan.children.get_mut(plan.len)? = Child { path, word: child.word };
                plan.len += 1;
            }
        }
        plan.windows::<K>().is_some().then_some(plan)
    }

    /// Divides the plan at its first bit: the children without it, those with it, and the bit.
    pub(super) fn divide(&self) -> (Self, Self, Bit) {
        let first = 1u64 << (self.bit_count - 1);
        let middle = self.children[..self.len].partition_point(|child| child.path & first == 0);
        let (mut left, mut right) = (self.clone(), self.clone());
        left.len = middle;
        right.children.copy_within(middle..self.len, 0);
        right.len = self.len - middle;
        right.children[..right.len].iter_mut().for_each(|child| child.path ^= first);
        left.prune();
        right.prune();
        (left, right, self.bits[0])
    }
}
