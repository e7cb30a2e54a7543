//! What comes next in a scan, fetched before it is needed.
//!
//! # Algorithm
//! A scan that goes down and up again waits for each node and leaf in turn. Here it has a stack of what comes next, each part
//! a leaf or a node, the next one on top, and all of it has been asked for:
//! ```text
//! if it is empty: push the next children of the nodes on the scan's path, as many as are wanted; prefetch each
//! next:  pop a part; if it is a leaf, that is it
//!        it is a node: push its children, a few of a large one; prefetch each
//!        of a node that will be popped soon, prefetch the children
//! ```
//! What is in it comes before what is left on the path. As scans may end soon, the first entries are had without.

use super::key::Parts;
use super::node::{LINE, four};
use super::scan::{Found, Frame};
use super::seek::Visit;
use super::word::{Kind, Word};
use silvics_sync::prefetch;

/// A leaf, or what is beyond an edge of a node.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Part {
    word: Word,
    edge: u16,
    /// Whether the children of a node have been asked for.
    known: bool,
}

impl Part {
    #[inline(always)]
    fn whole<const REV: bool>(word: Word) -> Self {
        Self { word, edge: Frame::start::<REV>(), known: false }
    }
}

/// Entries that are had without.
const WITHOUT: usize = 2;
/// Parts that are wanted at first …
const FIRST: usize = 4;
/// … and at most.
const MOST: usize = 24;
/// As many as there is room for.
pub(super) const ROOM: usize = 64;
/// Children that are pushed at once.
const CHILDREN: usize = 16;
/// How far below the top the node is whose children are prefetched.
const SOON: usize = 2;

/// What is next.
pub(super) enum Next {
    Leaf(Word),
    /// Nothing that is ahead.
    Nothing,
    /// No room for what is below the first node: the path to the next leaf has many others beside it.
    Crowded,
}

/// See the module docs.
pub(super) struct Ahead<K: Parts + ?Sized> {
    /// The first `len` are there.
    parts: K::Ahead,
    len: usize,
    /// How many are wanted, once `passed` is [`WITHOUT`].
    wanted: usize,
    passed: usize,
}

impl<K: Parts + ?Sized> Ahead<K> {
    pub(super) fn new() -> Self {
        Self { parts: K::NOTHING_AHEAD, len: 0, wanted: FIRST, passed: 0 }
    }

    /// An entry has been had without.
    #[inline(always)]
    pub(super) fn pass(&mut self) {
        self.passed += 1;
    }

    /// How many are wanted: none as long as the scan may be a short one.
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
    fn put(&mut self, part: Part) {
        self.parts.as_mut()[self.len].write(part);
        self.len += 1;
    }

    /// A part, of those that are there.
    #[inline(always)]
    fn part(&mut self, at: usize) -> &mut Part {
        debug_assert!(at < self.len);
        // SAFETY: `put` has written it.
        unsafe { self.parts.as_mut()[at].assume_init_mut() }
    }

    /// Takes in what comes behind all others.
    #[inline(always)]
    pub(super) fn push<const REV: bool>(&mut self, word: Word) {
        prefetch_whole(word);
        self.put(Part::whole::<REV>(word));
    }

    /// All that is wanted has been pushed.
    pub(super) fn turn(&mut self) {
        self.parts.as_mut()[..self.len].reverse();
    }

    /// The next leaf, taken out.
    #[inline(always)]
    pub(super) fn next<const REV: bool>(&mut self) -> Next {
        while let Some(top) = self.len.checked_sub(1) {
            let part = *self.part(top);
            self.len = top;
            if part.word.kind() == Kind::Leaf {
                self.soon();
                return Next::Leaf(part.word);
            }
            if self.len > ROOM - CHILDREN - 1 {
                return Next::Crowded;
            }
            self.unfold::<REV>(part);
        }
        Next::Nothing
    }

    /// Asks for the children of a node that will be popped soon.
    #[inline(always)]
    fn soon(&mut self) {
        let Some(at) = self.len.checked_sub(SOON) else { return };
        let part = self.part(at);
        if part.word.kind() == Kind::Node4 && !part.known {
            part.known = true;
            // SAFETY: read under the scan's guard.
            unsafe { four(part.word) }.each_child(|_, word| prefetch_whole(word));
        }
    }

    /// Puts children into the place of a node.
    #[inline(never)]
    fn unfold<const REV: bool>(&mut self, part: Part) {
        if part.word.kind() == Kind::Node4 {
            self.unfold_four::<REV>(part.word);
            return;
        }
        let mut children = [Word::NONE; CHILDREN];
        let mut count = 0;
        // SAFETY: read under the scan's guard.
        let mut frame = Frame::from::<REV>(unsafe { Visit::of(part.word) }, part.edge);
        while count < CHILDREN {
            match frame.next::<REV>() {
                Some((_, Found::Word(word))) => {
                    prefetch_whole(word);
                    children[count] = word;
                    count += 1;
                }
                Some((_, Found::Value(_))) => unreachable!("such keys have leaves"),
                None => break,
            }
        }
        if count == CHILDREN {
            self.put(Part { edge: frame.edge(), ..part });
        }
        children[..count].iter().rev().for_each(|&word| self.put(Part::whole::<REV>(word)));
    }

    /// The same of the smallest node, as most are: without a set of digits.
    #[inline(always)]
    fn unfold_four<const REV: bool>(&mut self, node: Word) {
        let mut children = [(0, Word::NONE); 4];
        let mut count = 0;
        // SAFETY: read under the scan's guard.
        let node = unsafe { four(node) };
        node.each_child(|number, word| {
            prefetch_whole(word);
            // Sorted by insertion, what comes first last.
            let rank = if REV { !number } else { number };
            let mut at = count;
            while at > 0 && children[at - 1].0 < rank {
                children[at] = children[at - 1];
                at -= 1;
            }
            children[at] = (rank, word);
            count += 1;
        });
        children[..count].iter().for_each(|&(_, word)| self.put(Part::whole::<REV>(word)));
    }

    /// Begins again, as if nothing had been given.
    pub(super) fn reset(&mut self) {
        (self.len, self.wanted, self.passed) = (0, FIRST, 0);
    }
}

/// Asks for what a scan reads of a child first: a leaf, of which it is not known how long it is, or a node's keys.
#[inline(always)]
pub(super) fn prefetch_whole(word: Word) {
    let object = word.object().cast::<u8>();
    prefetch(object);
    match word.kind() {
        Kind::Node4 => {}
        Kind::Leaf => {
            prefetch(object.wrapping_add(LINE));
            prefetch(object.wrapping_add(2 * LINE - 1));
        }
        _ => {
            prefetch(object.wrapping_add(LINE));
            prefetch(object.wrapping_add(2 * LINE));
        }
    }
}
