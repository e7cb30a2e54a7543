//! Ranges in both directions.

use super::ahead::{Ahead, Upcoming};
use super::hot::sampler::{Sampler, Unsampled};
use super::key::Digit;
use super::leaf::LeafOf;
use super::node::{NodeRef, Visit};
use super::run::Run;
use super::seek::{End, Patience, Trail};
use super::stack::{Frame, Occupant, Stack, StackKey};
use super::word::{Kind, Word};
use super::{Art, ArtKey};
use crate::domain::Guard;
use silvics_pool::{Placement, Pooled};
use silvics_sync::atomic::Ordering;
use silvics_sync::thread::yield_now;
use std::ops::Bound;

/// An ascending scan of an [`ArtTree`](super::ArtTree). See [`crate::OrderedScan`] for its
/// guarantee.
pub struct Range<'g, K: ArtKey + ?Sized = u64, P: Placement = Pooled, S: Sampler = Unsampled>(
    Walk<'g, K, P, S>,
);

/// A descending scan of an [`ArtTree`](super::ArtTree). See [`crate::OrderedScan`] for its
/// guarantee.
pub struct RangeRev<'g, K: ArtKey + ?Sized = u64, P: Placement = Pooled, S: Sampler = Unsampled>(
    Walk<'g, K, P, S>,
);

/// The bounds where a scan begins and where it ends.
type Bounds<'g, K> =
    (Bound<<K as crate::IndexKey>::Ref<'g>>, Bound<<K as crate::IndexKey>::Ref<'g>>);

impl<'g, K: ArtKey + ?Sized, P: Placement, S: Sampler> Range<'g, K, P, S> {
    pub(super) fn new(tree: &'g Art<K, P, S>, (from, to): Bounds<'g, K>, guard: &'g Guard) -> Self {
        Self(Walk::new::<false>(tree, from, to, guard))
    }

    /// Passes the next `most` entries to `each`, or as many as there are.
    pub(crate) fn read_some(mut self, most: usize, each: impl FnMut(K::Ref<'g>, u64)) {
        self.0.read_some::<false>(most, each);
    }
}

impl<'g, K: ArtKey + ?Sized, P: Placement, S: Sampler> RangeRev<'g, K, P, S> {
    pub(super) fn new(tree: &'g Art<K, P, S>, (to, from): Bounds<'g, K>, guard: &'g Guard) -> Self {
        Self(Walk::new::<true>(tree, from, to, guard))
    }

    /// Passes the next `most` entries to `each`, or as many as there are.
    pub(crate) fn read_some(mut self, most: usize, each: impl FnMut(K::Ref<'g>, u64)) {
        self.0.read_some::<true>(most, each);
    }
}

impl<'g, K: ArtKey + ?Sized, P: Placement, S: Sampler> Iterator for Range<'g, K, P, S> {
    type Item = (K::Ref<'g>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.0.next::<false>()
    }
}

impl<'g, K: ArtKey + ?Sized, P: Placement, S: Sampler> Iterator for RangeRev<'g, K, P, S> {
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
/// Every node that it stands in was reachable when it came there. Words that it reads in a node
/// that is not reachable any more were right at one moment since then (see the module docs of
/// `art`). So it sees each key that is present throughout, and none that is absent throughout. The
/// nodes divide the keys among their digits, and the scan takes these in order.
///
/// The path of a byte string can be longer than the stack remembers. When the stack is empty and
/// has forgotten frames, the scan descends again on the path of the last key that it has returned,
/// to above the node that it has left last. If the scan has since descended past the stack's
/// capacity without finding an entry, it descends to the last key returned instead. That happens
/// only where writers have removed all keys below that many nodes and not yet the nodes. It happens
/// again until they have, so the scan lets them run first.
struct Walk<'g, K: ArtKey + ?Sized, P: Placement, S: Sampler> {
    tree: &'g Art<K, P, S>,
    stack: Stack<K>,
    /// The depth of the node that it has left last.
    left: usize,
    /// Whether it may have forgotten where it has left the path of `from`.
    astray: bool,
    /// The leaves and nodes that come before those on the stack, if the key type looks ahead.
    ahead: Ahead<K>,
    /// The leaf where it stands, and the number of the leaf's keys that are still to come.
    leaf: Option<(K::Leaf<'g>, usize)>,
    /// The values among which it stands, if they lie in a node.
    run: Run<'g>,
    /// The last key that it has returned, or the bound where it begins.
    from: Bound<K::Ref<'g>>,
    to: Bound<K::Ref<'g>>,
}

impl<'g, K: ArtKey + ?Sized, P: Placement, S: Sampler> Walk<'g, K, P, S> {
    fn new<const REV: bool>(
        tree: &'g Art<K, P, S>,
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

    /// Goes to the first key from `from` on, except those below nodes deeper than `deepest` on the
    /// path of `from`.
    fn place<const REV: bool>(&mut self, deepest: usize) {
        let (key, included) = match self.from {
            Bound::Unbounded => {
                Placing::<K, REV>(&mut self.stack).begin();
                if let Some(root) = self.tree.root() {
                    self.stack.push(Frame::whole::<REV>(root));
                }
                return;
            }
            Bound::Included(key) => (key, true),
            Bound::Excluded(key) => (key, false),
        };
        let mut trail = Placing::<K, REV>(&mut self.stack);
        let path = self.tree.seek(key, deepest, Patience::GoesOn, &mut trail);
        let Some((_, end)) = path else { return };
        self.stack.top().into_iter().for_each(Frame::know);
        match end {
            End::Nothing => {}
            End::Value(_) => {
                if let Some(frame) = self.stack.top().filter(|_| included) {
                    frame.step_back::<REV>();
                }
            }
            End::Leaf(word, _) => {
                // SAFETY: I7: the path ends at a leaf. I8: its word was read under the scan's
                // guard.
                let leaf = unsafe { K::Leaf::from_word(word) };
                let smaller = |at: &usize| {
                    let other = leaf.key(*at);
                    other < key || other == key && included == REV
                };
                let before = (0..leaf.len()).take_while(smaller).count();
                self.leaf = Some((leaf, if REV { before } else { leaf.len() - before }));
            }
            // The word that was seen, not the one that is there by now: that may have keys on both
            // sides.
            End::Parting(word, depth, digit) => {
                if if REV { digit < K::digit(key, depth) } else { digit > K::digit(key, depth) } {
                    self.enter::<REV>(word);
                }
            }
        }
    }

    /// Goes back to the nodes that the stack has forgotten, if it has forgotten any. The stack is
    /// empty.
    #[cold]
    fn resume<const REV: bool>(&mut self) -> bool {
        if !self.stack.was_cut() {
            return false;
        }
        let bounded = !matches!(self.from, Bound::Unbounded);
        let above = bounded && !std::mem::take(&mut self.astray);
        if !above {
            yield_now();
        }
        self.place::<REV>(if above { self.left - 1 } else { usize::MAX });
        true
    }

    /// Goes on behind the last key that it has returned, with nothing ahead.
    #[cold]
    fn restart<const REV: bool>(&mut self) {
        self.ahead.reset();
        self.astray = false;
        self.place::<REV>(usize::MAX);
    }

    /// Whether a key is not past the bound where the scan ends.
    #[inline(always)]
    fn is_within<const REV: bool>(&self, key: K::Ref<'g>) -> bool {
        match self.to {
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
        }
    }

    /// Returns an entry if it is within the scan's bounds, else ends the scan.
    #[inline(always)]
    fn give<const REV: bool>(&mut self, key: K::Ref<'g>, value: u64) -> Option<(K::Ref<'g>, u64)> {
        if !self.is_within::<REV>(key) {
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

    /// Passes the next `most` entries to `each`, or as many as there are. This is faster than to
    /// take them one by one.
    fn read_some<const REV: bool>(
        &mut self,
        mut most: usize,
        mut each: impl FnMut(K::Ref<'g>, u64),
    ) {
        while most > 0 {
            let Some((key, value)) = self.next::<REV>() else { return };
            each(key, value);
            most -= 1;
            if K::DIRECT {
                let mut run = self.run;
                while most > 0
                    && let Some((key, value)) = run.next::<REV, K>()
                {
                    if !self.is_within::<REV>(K::shorten(key)) {
                        return;
                    }
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
                // SAFETY: the word's kind is `Values256`. I8: it was read under the scan's guard.
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
                    // SAFETY: a frame's word leads to a node, and was read under the scan's guard
                    // (I7, I8).
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

    /// Leaves the node on top, in which nothing is left.
    fn leave(&mut self, top: Word) {
        self.left = top.depth();
        self.stack.pop();
    }

    /// Moves the next children of the nodes on the stack ahead, as many as are wanted.
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
                Some((_, Occupant::Value(_))) => unreachable!("the keys have leaves"),
            }
        }
        self.ahead.turn();
    }

    /// Goes on in a child.
    #[inline(always)]
    fn enter<const REV: bool>(&mut self, word: Word) {
        if word.kind() == Kind::Leaf {
            // SAFETY: I7: the word leads to a leaf. I8: it was read under the scan's guard.
            let leaf = unsafe { K::Leaf::from_word(word) };
            self.leaf = Some((leaf, leaf.len()));
            self.ahead.pass();
            return;
        }
        self.astray |= self.stack.is_full();
        // SAFETY: I7: the word's kind is a node's. I8: it was read under the scan's guard.
        self.stack.push(Frame::whole::<REV>(unsafe { Visit::of(word) }));
    }
}
