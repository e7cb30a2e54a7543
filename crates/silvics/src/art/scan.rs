//! Ranges in both directions.

use super::ArtKey;
use super::ArtTree;
use super::ahead::{Ahead, Upcoming};
use super::key::Digit;
use super::leaf::LeafOf;
use super::node::{NodeRef, Visit};
use super::run::Run;
use super::seek::{End, Patience, Trail};
use super::stack::{Frame, Occupant, Stack, StackKey};
use super::word::{Kind, Word};
use crate::domain::Guard;
use silvics_pool::{Placement, Pooled};
use silvics_sync::atomic::Ordering;
use std::ops::Bound;

/// An ascending scan of an [`ArtTree`]; see [`crate::OrderedScan`] for what it promises.
pub struct Range<'g, K: ArtKey + ?Sized = u64, P: Placement = Pooled>(Walk<'g, K, P>);

/// A descending scan of an [`ArtTree`]; see [`crate::OrderedScan`] for what it promises.
pub struct RangeRev<'g, K: ArtKey + ?Sized = u64, P: Placement = Pooled>(Walk<'g, K, P>);

/// Where a scan begins and where it ends.
type Bounds<'g, K> =
    (Bound<<K as crate::IndexKey>::Ref<'g>>, Bound<<K as crate::IndexKey>::Ref<'g>>);

impl<'g, K: ArtKey + ?Sized, P: Placement> Range<'g, K, P> {
    pub(super) fn new(
        tree: &'g ArtTree<K, P>,
        (from, to): Bounds<'g, K>,
        guard: &'g Guard,
    ) -> Self {
        Self(Walk::new::<false>(tree, from, to, guard))
    }
}

impl<'g, K: ArtKey + ?Sized, P: Placement> RangeRev<'g, K, P> {
    pub(super) fn new(
        tree: &'g ArtTree<K, P>,
        (to, from): Bounds<'g, K>,
        guard: &'g Guard,
    ) -> Self {
        Self(Walk::new::<true>(tree, from, to, guard))
    }
}

impl<'g, K: ArtKey + ?Sized, P: Placement> Iterator for Range<'g, K, P> {
    type Item = (K::Ref<'g>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next::<false>()
    }
}

impl<'g, K: ArtKey + ?Sized, P: Placement> Range<'g, K, P> {
    /// Gives `each` the next entries, `most` of them if there are so many.
    pub(crate) fn read_some(mut self, most: usize, each: impl FnMut(K::Ref<'g>, u64)) {
        self.0.read_some::<false>(most, each);
    }
}

impl<'g, K: ArtKey + ?Sized, P: Placement> RangeRev<'g, K, P> {
    /// As [`Range::read_some`].
    pub(crate) fn read_some(mut self, most: usize, each: impl FnMut(K::Ref<'g>, u64)) {
        self.0.read_some::<true>(most, each);
    }
}

impl<'g, K: ArtKey + ?Sized, P: Placement> Iterator for RangeRev<'g, K, P> {
    type Item = (K::Ref<'g>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next::<true>()
    }
}

/// A stack that follows the path of a descent.
struct Placing<'a, K: StackKey + ?Sized, const REV: bool>(&'a mut Stack<K>);

impl<K: StackKey + ?Sized, const REV: bool> Trail for Placing<'_, K, REV> {
    fn begin(&mut self) {
        self.0.clear();
    }

    #[inline(always)]
    fn pass(&mut self, at: Word, digit: Digit) {
        self.0.pass::<REV>(at, digit);
    }
}

/// A scan, down the tree and up again.
///
/// Every node it stands in was reachable when it came there, and what it reads in one that is not any
/// more was so at one moment since (see the module docs): so it sees each key that was there throughout,
/// and none that never was. Nodes divide the keys among their digits, and it takes these in order.
///
/// A path can be longer than what the stack remembers (byte strings, of which one is the prefix of the
/// next). When the stack is used up and has forgotten something, the scan goes down again: to above the
/// node it has left last, on the path of the last key it has given, which passed there. But if since that
/// key it has gone down somewhere else so far that it has forgotten where that was, and found nothing, then
/// as far as that key. That happens only where all keys below so many nodes have been removed and nobody
/// has taken the nodes away yet, and again until somebody does.
struct Walk<'g, K: ArtKey + ?Sized, P: Placement> {
    tree: &'g ArtTree<K, P>,
    stack: Stack<K>,
    /// The depth of the node it has left last.
    left: usize,
    /// Whether it may have forgotten where it has parted from the path of `from`.
    astray: bool,
    /// What comes before what is on the stack, if such keys are looked for ahead.
    ahead: Ahead<K>,
    /// The leaf where it stands, and how many of its keys are still to come.
    leaf: Option<(K::Leaf<'g>, usize)>,
    /// The values among which it stands, if they have no leaves.
    run: Run<'g>,
    /// The last key it has given; before that, where it begins.
    from: Bound<K::Ref<'g>>,
    to: Bound<K::Ref<'g>>,
}

impl<'g, K: ArtKey + ?Sized, P: Placement> Walk<'g, K, P> {
    fn new<const REV: bool>(
        tree: &'g ArtTree<K, P>,
        from: Bound<K::Ref<'g>>,
        to: Bound<K::Ref<'g>>,
        _guard: &'g Guard,
    ) -> Self {
        let (stack, ahead, run) = (Stack::new(), Ahead::new(), Run::none());
        let mut walk =
            Self { tree, stack, left: 0, astray: false, ahead, leaf: None, run, from, to };
        walk.place::<REV>(usize::MAX);
        walk
    }

    /// Goes to where keys from `from` on begin, but for those below nodes deeper than this on its path.
    fn place<const REV: bool>(&mut self, deepest: usize) {
        let (key, included) = match self.from {
            Bound::Unbounded => {
                Placing::<K, REV>(&mut self.stack).begin();
                self.stack.push(Frame::whole::<REV>(self.tree.root()));
                return;
            }
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        let mut trail = Placing::<K, REV>(&mut self.stack);
        let (_, end) = self.tree.seek(key, deepest, Patience::GoesOn, &mut trail);
        self.stack.top().into_iter().for_each(Frame::know);
        match end {
            End::Nothing => {}
            End::Value(_) => {
                if let Some(frame) = self.stack.top().filter(|_| included) {
                    frame.step_back::<REV>();
                }
            }
            End::Leaf(word, _) => {
                // SAFETY: read under the guard.
                let leaf = unsafe { K::Leaf::from_word(word) };
                let smaller = |at: &usize| {
                    let other = leaf.key(*at);
                    other < key || other == key && included == REV
                };
                let before = (0..leaf.len()).take_while(smaller).count();
                self.leaf = Some((leaf, if REV { before } else { leaf.len() - before }));
            }
            // What was seen, and not what may be there by now: that may have keys on both sides.
            End::Parting(word, depth, digit) => {
                if if REV { digit < K::digit(key, depth) } else { digit > K::digit(key, depth) } {
                    self.enter::<REV>(word);
                }
            }
        }
    }

    /// With the stack used up: goes back to what it has forgotten, if it has.
    #[cold]
    fn resume<const REV: bool>(&mut self) -> bool {
        if !self.stack.was_cut() {
            return false;
        }
        let bounded = !matches!(self.from, Bound::Unbounded);
        let above = bounded && !std::mem::take(&mut self.astray);
        self.place::<REV>(if above { self.left - 1 } else { usize::MAX });
        true
    }

    /// Goes on behind the last key it has given, with nothing ahead.
    #[cold]
    fn restart<const REV: bool>(&mut self) {
        self.ahead.reset();
        self.astray = false;
        self.place::<REV>(usize::MAX);
    }

    /// Gives an entry, if the scan goes that far.
    #[inline(always)]
    fn give<const REV: bool>(&mut self, key: K::Ref<'g>, value: u64) -> Option<(K::Ref<'g>, u64)> {
        let within = match self.to {
            Bound::Unbounded => true,
            Bound::Included(to) => {
                if REV {
                    key >= to
                } else {
                    key <= to
                }
            }
            Bound::Excluded(to) => {
                if REV {
                    key > to
                } else {
                    key < to
                }
            }
        };
        if !within {
            (self.leaf, self.run) = (None, Run::none());
            self.stack.clear();
            self.ahead.reset();
            return None;
        }
        if K::MAX_BYTES > Stack::<K>::room() {
            (self.from, self.astray) = (Bound::Excluded(key), false);
        }
        Some((key, value))
    }

    /// Gives `each` the next entries, `most` of them if there are so many: faster than one by one.
    fn read_some<const REV: bool>(
        &mut self,
        mut most: usize,
        mut each: impl FnMut(K::Ref<'g>, u64),
    ) {
        while most > 0 {
            let Some((key, value)) = self.next::<REV>() else { return };
            each(key, value);
            most -= 1;
            if K::DIRECT && matches!(self.to, Bound::Unbounded) {
                let mut run = self.run;
                while most > 0
                    && let Some((key, value)) = run.next::<REV, K>()
                {
                    each(K::shorten(key), value);
                    most -= 1;
                }
                self.run = run;
            }
        }
    }

    #[inline(always)]
    fn next<const REV: bool>(&mut self) -> Option<(K::Ref<'g>, u64)> {
        loop {
            if K::DIRECT
                && let Some((key, value)) = self.run.next::<REV, K>()
            {
                return self.give::<REV>(K::shorten(key), value);
            }
            if let Some((leaf, left)) = self.leaf {
                let Some(rest) = left.checked_sub(1) else {
                    self.leaf = None;
                    continue;
                };
                self.leaf = Some((leaf, rest));
                let at = if REV { rest } else { leaf.len() - left };
                if leaf.is_gone(at) {
                    continue;
                }
                return self.give::<REV>(leaf.key(at), leaf.value(at).load(Ordering::SeqCst));
            }
            if K::LOOKS_AHEAD {
                self.look_ahead::<REV>();
                match self.ahead.next::<REV>() {
                    Upcoming::Leaf(word) => {
                        self.enter::<REV>(word);
                        continue;
                    }
                    Upcoming::Crowded => {
                        self.restart::<REV>();
                        continue;
                    }
                    Upcoming::Nothing => {}
                }
            }
            let Some(frame) = self.stack.top() else {
                if self.resume::<REV>() {
                    continue;
                }
                return None;
            };
            let word = frame.word();
            if K::DIRECT && word.kind() == Kind::Values256 {
                // SAFETY: read under the guard.
                match unsafe { Run::beyond::<REV>(word, frame.edge()) } {
                    Some((run, edge)) => {
                        self.run = run;
                        frame.set_edge(edge);
                    }
                    None => self.leave(word),
                }
                continue;
            }
            match frame.next::<REV>() {
                None => self.leave(word),
                Some((digit, Occupant::Value(value))) => {
                    // SAFETY: read under the guard.
                    let prefix = unsafe { NodeRef::from_word(word) }.header().prefix;
                    let byte = digit.expect("no value is at an end");
                    return self.give::<REV>(K::shorten(K::direct(prefix, byte)), value);
                }
                Some((_, Occupant::Word(word))) => {
                    frame.scout::<REV>();
                    self.enter::<REV>(word);
                }
            }
        }
    }

    /// There is nothing left in the node on top.
    fn leave(&mut self, top: Word) {
        self.left = top.depth();
        self.stack.pop();
    }

    /// Takes children of the nodes on the stack to those ahead, as many as are wanted.
    #[inline(always)]
    fn look_ahead<const REV: bool>(&mut self) {
        let mut missing = self.ahead.missing();
        if missing == 0 {
            return;
        }
        while missing > 0 {
            let Some(frame) = self.stack.top() else { break };
            match frame.next::<REV>() {
                None => {
                    let word = frame.word();
                    self.leave(word);
                }
                Some((_, Occupant::Word(word))) => {
                    self.ahead.push::<REV>(word);
                    missing -= 1;
                }
                Some((_, Occupant::Value(_))) => unreachable!("such keys have leaves"),
            }
        }
        self.ahead.turn();
    }

    /// Goes on with a child.
    #[inline(always)]
    fn enter<const REV: bool>(&mut self, word: Word) {
        if word.kind() == Kind::Leaf {
            // SAFETY: read under the guard.
            let leaf = unsafe { K::Leaf::from_word(word) };
            self.leaf = Some((leaf, leaf.len()));
            self.ahead.pass();
            return;
        }
        self.astray |= self.stack.is_full();
        // SAFETY: read under the guard.
        self.stack.push(Frame::whole::<REV>(unsafe { Visit::of(word) }));
    }
}
