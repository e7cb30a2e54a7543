//! Ranges in both directions.

use super::ArtTree;
use super::ahead::{Ahead, Next, prefetch_whole};
use super::digits::{Digits, NUMBERS, number};
use super::key::{ArtKey, Digit, Parts};
use super::leaf::LeafOf;
use super::node::NodeRef;
use super::run::Run;
use super::seek::{End, Patience, Trail, Visit};
use super::word::{ABSENT, Kind, Word};
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

/// A node of the path where a scan stands.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Frame {
    word: Word,
    /// The digits with something there when the scan came (or came back, if it has begun further down) …
    digits: Digits,
    /// … of which those from this number on are still to come, or of a descending scan those before it.
    edge: u16,
    /// Those up to here have been prefetched …
    ahead: u16,
    /// … which are so many children, or less.
    lead: u8,
    /// Of a node with a place for each byte: which sixteenths have been looked at, so that the set is of the
    /// digits that have something.
    looked: u16,
    /// Whether `digits` are known.
    known: bool,
}

/// How many children of a node are prefetched ahead of a scan.
const LEAD: u8 = 8;

/// What a place has that is not empty.
pub(super) enum Found {
    Value(u64),
    Word(Word),
}

impl Frame {
    /// A node, all of which is still to come.
    pub(super) fn whole<const REV: bool>(at: Visit<'_>) -> Self {
        Self::from::<REV>(at, Self::start::<REV>())
    }

    /// The edge beyond which everything is.
    #[inline(always)]
    pub(super) fn start<const REV: bool>() -> u16 {
        if REV { NUMBERS as u16 } else { 0 }
    }

    /// What is beyond it is still to come.
    pub(super) fn edge(&self) -> u16 {
        self.edge
    }

    /// A node, of which what is beyond an edge is still to come.
    #[inline(always)]
    pub(super) fn from<const REV: bool>(at: Visit<'_>, edge: u16) -> Self {
        Self { digits: at.node.digits(), known: true, ..Self::passed(at.word, edge) }
    }

    /// The same of a node that may not be come back to: so its digits are not known yet.
    #[inline(always)]
    fn passed(word: Word, edge: u16) -> Self {
        let looked = match word.kind() {
            Kind::Node256 | Kind::Values256 => 0,
            _ => u16::MAX,
        };
        Self { word, digits: Digits::default(), edge, ahead: edge, lead: 0, looked, known: false }
    }

    /// Learns its digits, before anything else is asked.
    #[inline(always)]
    fn know(&mut self) {
        if !self.known {
            self.learn();
        }
    }

    #[inline(never)]
    fn learn(&mut self) {
        self.known = true;
        // SAFETY: as in `next`.
        self.digits = unsafe { NodeRef::from_word(self.word) }.digits();
    }

    /// The digit beyond an edge, and the edge beyond that.
    #[inline(always)]
    fn beyond<const REV: bool>(&mut self, edge: u16) -> Option<(Digit, u16)> {
        loop {
            let (digits, edge) = (&self.digits, usize::from(edge));
            let digit = if REV { digits.last_before(edge) } else { digits.first_from(edge) }?;
            match digit {
                Some(byte) if self.looked >> (byte / 16) & 1 == 0 => self.look(byte),
                _ => return Some((digit, (number(digit) + usize::from(!REV)) as u16)),
            }
        }
    }

    /// Looks which bytes have something, of the sixteen that this one is of.
    #[inline(always)]
    fn look(&mut self, byte: u8) {
        let from = usize::from(byte & !15);
        // SAFETY: as in `next`.
        let present = match unsafe { NodeRef::from_word(self.word) } {
            NodeRef::Words(node) => node.present(from),
            NodeRef::Values(node) => node.present(from),
        };
        self.digits.keep(from, present.unwrap_or(u16::MAX));
        self.looked |= 1 << (byte / 16);
    }

    /// The scan has taken a child: prefetches others, two for one until the lead is won.
    #[inline(always)]
    fn scout<const REV: bool>(&mut self) {
        // SAFETY: as in `next`.
        let NodeRef::Words(node) = (unsafe { NodeRef::from_word(self.word) }) else { return };
        match self.lead.checked_sub(1) {
            Some(lead) => self.lead = lead,
            None => self.ahead = self.edge,
        }
        for _ in 0..2 {
            if self.lead >= LEAD {
                return;
            }
            let Some((digit, ahead)) = self.beyond::<REV>(self.ahead) else { return };
            self.ahead = ahead;
            let word = node.at(digit);
            if !word.is_none() {
                self.lead += 1;
                prefetch_whole(word);
            }
        }
    }

    /// What is next in it.
    #[inline(always)]
    pub(super) fn next<const REV: bool>(&mut self) -> Option<(Digit, Found)> {
        debug_assert!(self.known);
        // SAFETY: whoever has the frame has the guard under which its word was read.
        let node = unsafe { NodeRef::from_word(self.word) };
        loop {
            let (digit, edge) = self.beyond::<REV>(self.edge)?;
            self.edge = edge;
            match node {
                NodeRef::Values(node) => {
                    let value = node.at(digit);
                    if value != ABSENT {
                        return Some((digit, Found::Value(value)));
                    }
                }
                NodeRef::Words(node) => {
                    let word = node.at(digit);
                    if !word.is_none() {
                        return Some((digit, Found::Word(word)));
                    }
                }
            }
        }
    }

    /// The digit that it has passed last is still to come.
    fn step_back<const REV: bool>(&mut self) {
        if REV {
            self.edge += 1;
        } else {
            self.edge -= 1;
        }
    }
}

/// The last nodes of a path, as many as it has room for.
pub(super) struct Stack<K: Parts + ?Sized> {
    frames: K::Frames,
    /// Where the first of `len` is, in a circle.
    first: usize,
    len: usize,
    cut: bool,
}

impl<K: Parts + ?Sized> Stack<K> {
    pub(super) fn new() -> Self {
        Self { frames: K::NO_FRAMES, first: 0, len: 0, cut: false }
    }

    fn room() -> usize {
        K::NO_FRAMES.as_ref().len()
    }

    /// Puts a frame on top; forgets the lowest one if there is no room.
    #[inline]
    pub(super) fn push(&mut self, frame: Frame) {
        if self.len == Self::room() {
            self.first = (self.first + 1) % Self::room();
            self.len -= 1;
            self.cut = true;
        }
        self.frames.as_mut()[(self.first + self.len) % Self::room()].write(frame);
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn top(&mut self) -> Option<&mut Frame> {
        let top = self.len.checked_sub(1)?;
        let frame = &mut self.frames.as_mut()[(self.first + top) % Self::room()];
        // SAFETY: written when it was pushed.
        Some(unsafe { frame.assume_init_mut() })
    }

    /// Goes back to the frame below, if there is one.
    pub(super) fn pop(&mut self) {
        self.len -= 1;
        self.top().into_iter().for_each(Frame::know);
    }

    /// Whether it has forgotten frames since it was asked last.
    pub(super) fn was_cut(&mut self) -> bool {
        std::mem::take(&mut self.cut)
    }
}

/// A stack that follows a path.
struct Placing<'a, K: Parts + ?Sized, const REV: bool>(&'a mut Stack<K>);

impl<K: Parts + ?Sized, const REV: bool> Trail for Placing<'_, K, REV> {
    fn begin(&mut self) {
        (self.0.len, self.0.cut) = (0, false);
    }

    /// What is at this digit has been passed, and what is before it.
    #[inline(always)]
    fn pass(&mut self, at: Word, digit: Digit) {
        self.0.push(Frame::passed(at, (number(digit) + usize::from(!REV)) as u16));
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
            (self.stack.len, self.stack.cut) = (0, false);
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
                    Next::Leaf(word) => {
                        self.enter::<REV>(word);
                        continue;
                    }
                    Next::Crowded => {
                        self.restart::<REV>();
                        continue;
                    }
                    Next::Nothing => {}
                }
            }
            let Some(frame) = self.stack.top() else {
                if self.resume::<REV>() {
                    continue;
                }
                return None;
            };
            let word = frame.word;
            if K::DIRECT && word.kind() == Kind::Values256 {
                // SAFETY: read under the guard.
                match unsafe { Run::beyond::<REV>(word, frame.edge) } {
                    Some((run, edge)) => (self.run, frame.edge) = (run, edge),
                    None => self.leave(word),
                }
                continue;
            }
            match frame.next::<REV>() {
                None => self.leave(word),
                Some((digit, Found::Value(value))) => {
                    // SAFETY: read under the guard.
                    let prefix = unsafe { NodeRef::from_word(word) }.header().prefix;
                    let byte = digit.expect("no value is at an end");
                    return self.give::<REV>(K::shorten(K::direct(prefix, byte)), value);
                }
                Some((_, Found::Word(word))) => {
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
                    let word = frame.word;
                    self.leave(word);
                }
                Some((_, Found::Word(word))) => {
                    self.ahead.push::<REV>(word);
                    missing -= 1;
                }
                Some((_, Found::Value(_))) => unreachable!("such keys have leaves"),
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
        self.astray |= self.stack.len == Stack::<K>::room();
        // SAFETY: read under the guard.
        self.stack.push(Frame::whole::<REV>(unsafe { Visit::of(word) }));
    }
}
