//! Leaves and nodes that come next in a scan, prefetched before they are needed.
//!
//! # Algorithm
//! A scan that goes down and up again waits for each node and leaf in turn. A scan of byte strings
//! has a second stack with the leaves and nodes that come next. All of them have been prefetched,
//! and the next one is on top:
//! ```text
//! if the stack is empty: push the next children of the nodes on the scan's path, as many as are
//!                        wanted; prefetch each
//! next: pop one; if it is a leaf, return it
//!       it is a node: push its children, or a few of a large node; prefetch each
//!       prefetch the children of the node that will be popped soon
//! ```
//! The entries on this stack come before those left on the path. As scans may end soon, they read
//! their first entries without it.

use super::node::{Visit, four, prefetch_whole};
use super::stack::{Frame, Occupant, StackKey};
use super::word::{Kind, Word};
use std::mem::MaybeUninit;

/// A key type with room for the leaves and nodes ahead of a scan.
#[doc(hidden)]
pub trait AheadKey: StackKey {
    /// Whether scans look ahead. They do where every key has a leaf of its own.
    const LOOKS_AHEAD: bool;
    /// The leaves and nodes that there is room for.
    type Ahead: AsRef<[MaybeUninit<Pending>]> + AsMut<[MaybeUninit<Pending>]>;
    /// Uninitialised room.
    const NOTHING_AHEAD: Self::Ahead;
}

impl AheadKey for u64 {
    const LOOKS_AHEAD: bool = false;
    type Ahead = [MaybeUninit<Pending>; 0];
    const NOTHING_AHEAD: Self::Ahead = [];
}

impl AheadKey for u128 {
    const LOOKS_AHEAD: bool = false;
    type Ahead = [MaybeUninit<Pending>; 0];
    const NOTHING_AHEAD: Self::Ahead = [];
}

impl AheadKey for [u8] {
    const LOOKS_AHEAD: bool = true;
    type Ahead = [MaybeUninit<Pending>; ROOM];
    const NOTHING_AHEAD: Self::Ahead = [const { MaybeUninit::uninit() }; ROOM];
}

/// A leaf, or the children of a node beyond an edge.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Pending {
    word: Word,
    edge: u16,
    /// Whether the children of the node have been prefetched.
    known: bool,
}

impl Pending {
    #[inline(always)]
    fn whole<const REV: bool>(word: Word) -> Self {
        Self { word, edge: Frame::start::<REV>(), known: false }
    }
}

/// The number of entries that a scan reads before it looks ahead.
const WITHOUT: usize = 2;
/// The number of children that a scan first looks ahead.
const FIRST: usize = 4;
/// The most children that a scan takes from its path at once.
const MOST: usize = 24;
/// The room of the stack.
const ROOM: usize = 64;
/// The most children of a node that are pushed at once.
const CHILDREN: usize = 16;
/// The distance from the top of the node whose children are prefetched.
const SOON: usize = 2;

/// The outcome of [`Ahead::next`].
pub(super) enum Upcoming {
    Leaf(Word),
    /// The stack is empty.
    Nothing,
    /// The children of the first node do not fit: many others lie beside the path to the next leaf.
    Crowded,
}

/// The stack of leaves and nodes that come next: see the [module](self).
pub(super) struct Ahead<K: AheadKey + ?Sized> {
    /// The first `len` are initialised.
    parts: K::Ahead,
    len: usize,
    /// The number of children to take from the path next time, once `passed` is [`WITHOUT`].
    wanted: usize,
    passed: usize,
}

impl<K: AheadKey + ?Sized> Ahead<K> {
    pub(super) fn new() -> Self {
        Self { parts: K::NOTHING_AHEAD, len: 0, wanted: FIRST, passed: 0 }
    }

    /// Counts a leaf that the scan has come to.
    #[inline(always)]
    pub(super) fn pass(&mut self) {
        self.passed += 1;
    }

    /// The number of children to take from the path: none while the scan may be a short one.
    #[inline(always)]
    pub(super) fn missing(&mut self) -> usize {
        if self.passed < WITHOUT || self.len > 0 {
            return 0;
        }
        let wanted = self.wanted;
        self.wanted = (2 * wanted).min(MOST);
        wanted
    }

    #[inline(always)]
    fn put(&mut self, part: Pending) {
        self.parts.as_mut()[self.len].write(part);
        self.len += 1;
    }

    /// The leaf or node at a position below `len`.
    #[inline(always)]
    fn part(&mut self, at: usize) -> &mut Pending {
        debug_assert!(at < self.len);
        // SAFETY: `put` has written the first `len` parts, and `at` is below.
        unsafe { self.parts.as_mut()[at].assume_init_mut() }
    }

    /// Adds a child that comes after all others; [`Ahead::turn`] follows.
    #[inline(always)]
    pub(super) fn push<const REV: bool>(&mut self, word: Word) {
        prefetch_whole(word);
        self.put(Pending::whole::<REV>(word));
    }

    /// Reverses the children that were pushed, so that the next one is on top.
    pub(super) fn turn(&mut self) {
        self.parts.as_mut()[..self.len].reverse();
    }

    /// Takes out the next leaf.
    #[inline(always)]
    pub(super) fn next<const REV: bool>(&mut self) -> Upcoming {
        while let Some(top) = self.len.checked_sub(1) {
            let part = *self.part(top);
            self.len = top;
            if part.word.kind() == Kind::Leaf {
                self.soon();
                return Upcoming::Leaf(part.word);
            }
            if self.len > ROOM - CHILDREN - 1 {
                return Upcoming::Crowded;
            }
            self.unfold::<REV>(part);
        }
        Upcoming::Nothing
    }

    /// Prefetches the children of a node that will be popped soon.
    #[inline(always)]
    fn soon(&mut self) {
        let Some(at) = self.len.checked_sub(SOON) else { return };
        let part = self.part(at);
        if part.word.kind() == Kind::Node4 && !part.known {
            part.known = true;
            // SAFETY: the word's kind is `Node4`; I8: the scan's guard was held when it was read.
            unsafe { four(part.word) }.each_child(|_, word| prefetch_whole(word));
        }
    }

    /// Pushes the children of a node that was popped.
    #[inline(never)]
    fn unfold<const REV: bool>(&mut self, part: Pending) {
        if part.word.kind() == Kind::Node4 {
            self.unfold_four::<REV>(part.word);
            return;
        }
        let mut children = [Word::NONE; CHILDREN];
        let mut count = 0;
        // SAFETY: I7: the word's kind is a node's; I8: the scan's guard was held when it was read.
        let mut frame = Frame::from::<REV>(unsafe { Visit::of(part.word) }, part.edge);
        while count < CHILDREN {
            match frame.next::<REV>() {
                Some((_, Occupant::Word(word))) => {
                    prefetch_whole(word);
                    children[count] = word;
                    count += 1;
                }
                Some((_, Occupant::Value(_))) => unreachable!("the keys have leaves"),
                None => break,
            }
        }
        if count == CHILDREN {
            self.put(Pending { edge: frame.edge(), ..part });
        }
        children[..count].iter().rev().for_each(|&word| self.put(Pending::whole::<REV>(word)));
    }

    /// Pushes the children of a `Node4`, as most nodes are, without making a set of digits.
    #[inline(always)]
    fn unfold_four<const REV: bool>(&mut self, node: Word) {
        let mut children = [(0, Word::NONE); 4];
        let mut count = 0;
        // SAFETY: the caller has checked that the kind is `Node4`; I8: the scan's guard was held
        // when the word was read.
        let node = unsafe { four(node) };
        node.each_child(|number, word| {
            prefetch_whole(word);
            // Insertion sort, with the child that comes first at the end.
            let rank = if REV { !number } else { number };
            let mut at = count;
            while at > 0 && children[at - 1].0 < rank {
                children[at] = children[at - 1];
                at -= 1;
            }
            children[at] = (rank, word);
            count += 1;
        });
        children[..count].iter().for_each(|&(_, word)| self.put(Pending::whole::<REV>(word)));
    }

    /// Forgets everything, as at the beginning of a scan.
    pub(super) fn reset(&mut self) {
        (self.len, self.wanted, self.passed) = (0, FIRST, 0);
    }
}
