//! The path where a scan stands: its nodes, as many as fit, and what is still to come in each.

use super::digits::{Digits, NUMBERS, number};
use super::key::Digit;
use super::leaf::LeafKey;
use super::node::{NodeRef, Visit, prefetch_whole};
use super::word::{ABSENT, Kind, Word};
use silvics_sync::thread::yield_now;
use std::mem::MaybeUninit;

/// A key type with room for the nodes on a scan's path.
#[doc(hidden)]
pub trait StackKey: LeafKey {
    /// The frames that a stack has room for.
    type Frames: AsRef<[MaybeUninit<Frame>]> + AsMut<[MaybeUninit<Frame>]>;
    /// Uninitialised frames.
    const NO_FRAMES: Self::Frames;
}

/// The number of nodes on the path of a byte string that a scan remembers. It is small in
/// schedules, so that scans there lose their way.
const REMEMBERED: usize = if cfg!(silvics_shuttle) { 2 } else { 16 };

impl StackKey for u64 {
    type Frames = [MaybeUninit<Frame>; 8];
    const NO_FRAMES: Self::Frames = [const { MaybeUninit::uninit() }; 8];
}

impl StackKey for u128 {
    type Frames = [MaybeUninit<Frame>; 16];
    const NO_FRAMES: Self::Frames = [const { MaybeUninit::uninit() }; 16];
}

impl StackKey for [u8] {
    type Frames = [MaybeUninit<Frame>; REMEMBERED];
    const NO_FRAMES: Self::Frames = [const { MaybeUninit::uninit() }; REMEMBERED];
}

/// A node of the path where a scan stands.
#[doc(hidden)]
#[derive(Clone, Copy)]
pub struct Frame {
    word: Word,
    /// The digits that had something when the scan came, or when it came back if it began further
    /// down.
    digits: Digits,
    /// The digits from this number on are still to come. In a descending scan those before it are.
    edge: u16,
    /// Children up to this number have been prefetched.
    ahead: u16,
    /// The number of prefetched children that are still to come, at most.
    lead: u8,
    /// A bit for each sixteenth of a node with a place for each byte: whether `digits` has been
    /// reduced to the places there that are not empty.
    looked: u16,
    /// Whether `digits` is known.
    known: bool,
}

/// The number of a node's children that are prefetched ahead of a scan.
const LEAD: u8 = 8;

/// The occupant of a place that is not empty.
pub(super) enum Occupant {
    Value(u64),
    Word(Word),
}

impl Frame {
    /// A frame of a node that is still to come as a whole.
    pub(super) fn whole<const REV: bool>(at: Visit<'_>) -> Self {
        Self::from::<REV>(at, Self::start::<REV>())
    }

    /// The edge beyond which all digits lie.
    #[inline(always)]
    pub(super) fn start<const REV: bool>() -> u16 {
        if REV { NUMBERS as u16 } else { 0 }
    }

    #[inline(always)]
    pub(super) fn word(&self) -> Word {
        self.word
    }

    /// The edge beyond which the digits are still to come.
    #[inline(always)]
    pub(super) fn edge(&self) -> u16 {
        self.edge
    }

    /// Moves the edge.
    #[inline(always)]
    pub(super) fn set_edge(&mut self, edge: u16) {
        self.edge = edge;
    }

    /// A frame of a node whose digits beyond an edge are still to come.
    #[inline(always)]
    pub(super) fn from<const REV: bool>(at: Visit<'_>, edge: u16) -> Self {
        Self { digits: at.node.digits(), known: true, ..Self::passed(at.word, edge) }
    }

    /// A frame whose digits are not known yet, as the scan may never come back to the node.
    #[inline(always)]
    fn passed(word: Word, edge: u16) -> Self {
        let looked = match word.kind() {
            Kind::Node256 | Kind::Values256 => 0,
            _ => u16::MAX,
        };
        Self { word, digits: Digits::default(), edge, ahead: edge, lead: 0, looked, known: false }
    }

    /// The frame's node.
    #[inline(always)]
    fn node<'g>(&self) -> NodeRef<'g> {
        // SAFETY: frames are made of nodes only (`Visit`, `Trail::pass`). I8: the owner of the
        // frame holds the guard under which the word was read; the reference is not kept beyond a
        // call.
        unsafe { NodeRef::from_word(self.word) }
    }

    /// Reads the digits, if they are not known yet. This comes before all other calls.
    #[inline(always)]
    pub(super) fn know(&mut self) {
        if !self.known {
            self.learn();
        }
    }

    #[inline(never)]
    fn learn(&mut self) {
        self.known = true;
        self.digits = self.node().digits();
    }

    /// The next digit beyond an edge, and the edge beyond that digit.
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

    /// Reduces `digits` to the places that are not empty, among the sixteen that include a byte's.
    #[inline(always)]
    fn look(&mut self, byte: u8) {
        let from = usize::from(byte & !15);
        let present = match self.node() {
            NodeRef::Words(node) => node.present(from),
            NodeRef::Values(node) => node.present(from),
        };
        self.digits.keep(from, present.unwrap_or(u16::MAX));
        self.looked |= 1 << (byte / 16);
    }

    /// Prefetches children after the scan has taken one: two for each, until the lead is won.
    #[inline(always)]
    pub(super) fn scout<const REV: bool>(&mut self) {
        let NodeRef::Words(node) = self.node() else { return };
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

    /// The next digit that has something, and its occupant.
    #[inline(always)]
    pub(super) fn next<const REV: bool>(&mut self) -> Option<(Digit, Occupant)> {
        debug_assert!(self.known);
        let node = self.node();
        loop {
            let (digit, edge) = self.beyond::<REV>(self.edge)?;
            self.edge = edge;
            match node {
                NodeRef::Values(node) => {
                    let value = node.at(digit);
                    if value != ABSENT {
                        return Some((digit, Occupant::Value(value)));
                    }
                }
                NodeRef::Words(node) => {
                    let word = node.at(digit);
                    if !word.is_none() {
                        return Some((digit, Occupant::Word(word)));
                    }
                }
            }
        }
    }

    /// Makes the digit that was passed last come again.
    pub(super) fn step_back<const REV: bool>(&mut self) {
        if REV {
            self.edge += 1;
        } else {
            self.edge -= 1;
        }
    }
}

/// The last nodes of a path, as many as there is room for.
pub(super) struct Stack<K: StackKey + ?Sized> {
    frames: K::Frames,
    /// The position of the lowest frame. The frames lie in a circle.
    first: usize,
    len: usize,
    cut: bool,
}

impl<K: StackKey + ?Sized> Stack<K> {
    pub(super) fn new() -> Self {
        Self { frames: K::NO_FRAMES, first: 0, len: 0, cut: false }
    }

    /// The number of frames that there is room for.
    #[inline(always)]
    pub(super) fn room() -> usize {
        K::NO_FRAMES.as_ref().len()
    }

    #[inline(always)]
    pub(super) fn is_full(&self) -> bool {
        self.len == Self::room()
    }

    #[inline(always)]
    pub(super) fn clear(&mut self) {
        (self.len, self.cut) = (0, false);
    }

    /// Pushes a frame. If there is no room, the lowest frame is forgotten.
    #[inline]
    pub(super) fn push(&mut self, frame: Frame) {
        if self.is_full() {
            self.first = (self.first + 1) % Self::room();
            self.len -= 1;
            self.cut = true;
        }
        self.frames.as_mut()[(self.first + self.len) % Self::room()].write(frame);
        self.len += 1;
    }

    /// Pushes a node that a descent passes at a digit. The scan has passed this digit and those
    /// before it.
    #[inline(always)]
    pub(super) fn pass<const REV: bool>(&mut self, at: Word, digit: Digit) {
        self.push(Frame::passed(at, (number(digit) + usize::from(!REV)) as u16));
    }

    #[inline(always)]
    pub(super) fn top(&mut self) -> Option<&mut Frame> {
        let top = self.len.checked_sub(1)?;
        let frame = &mut self.frames.as_mut()[(self.first + top) % Self::room()];
        // SAFETY: `push` has written the `len` frames from `first` on.
        Some(unsafe { frame.assume_init_mut() })
    }

    /// Goes back to the frame below, if there is one.
    pub(super) fn pop(&mut self) {
        self.len -= 1;
        self.top().into_iter().for_each(Frame::know);
    }

    /// Whether frames have been forgotten since the last call.
    pub(super) fn was_cut(&mut self) -> bool {
        std::mem::take(&mut self.cut)
    }
}

/// The first leaf below a node, if there is one. The node's keys have leaves.
pub(super) fn any_leaf<K: StackKey + ?Sized>(at: Visit<'_>) -> Option<Word> {
    let mut stack = Stack::<K>::new();
    stack.push(Frame::whole::<false>(at));
    loop {
        let Some(frame) = stack.top() else {
            if !stack.was_cut() {
                return None;
            }
            // There are more levels than the stack remembers, and nothing below the last ones: they
            // are about to be removed.
            yield_now();
            stack.push(Frame::whole::<false>(at));
            continue;
        };
        match frame.next::<false>() {
            None => stack.pop(),
            Some((_, Occupant::Word(word))) if word.kind() == Kind::Leaf => return Some(word),
            Some((_, Occupant::Word(word))) => {
                // SAFETY: I7: the word's kind is a node's. I8: it was read under the guard under
                // which `at` was.
                let child = unsafe { Visit::of(word) };
                stack.push(Frame::whole::<false>(child));
            }
            Some((_, Occupant::Value(_))) => unreachable!("the keys have leaves"),
        }
    }
}
