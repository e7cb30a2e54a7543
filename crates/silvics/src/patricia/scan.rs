//! Ranges.
//!
//! # Algorithm
//! ```text
//! next:   the next entry of the run; at its end, gather another run
//! gather: seek the place behind the last entry; walk the trie in order from there, with a stack of
//!         the nodes above that have more to come; stop at a number of entries, the stack goes
//! ```
//! A walk is a section: it enters a child before it leaves the node above, and validates each node
//! when it reads its next child, its entry, or that there is none. So between two entries of a
//! run there was no other key, at the moment of that validation. A run that is aborted keeps what
//! it has, and goes on behind it. No lock is held between two calls of `next`.

use super::Patricia;
use super::build::Build;
use super::digits::{chars, digit, put_digit};
use super::key::PatriciaKey;
use super::node::{Node, Nodes, PathOf};
use super::policy::Policy;
use super::retry::{Abort, Level, Section, Tries};
use super::search::NodesOf;
use super::sync::{Coupled, Held, Mode};
use crate::domain::Guard;
use crate::frame::AlgorithmBounds;
use silvics_pool::Placement;
use std::fmt;
use std::iter::FusedIterator;
use std::ops::Bound;

/// The most entries of a run.
const RUN: usize = 32;
/// The entries of the first run. Most scans are short.
const FIRST: usize = 4;
/// The nodes on a stack that does not grow. If more have something to come, the uppermost are
/// sought again.
const DEPTH: usize = 32;

/// The position of a node's own entry, before its children.
const ENTRY: i32 = -1;

/// A node with something to come.
struct Pending<'g, N: Nodes> {
    held: Held<'g, N::Lock>,
    node: Node<'g, N>,
    /// The next position to look at: `ENTRY` or a digit.
    next: i32,
}

/// The nodes on the way to the place where a walk stands, the lowest ones of them.
struct Stack<'g, N: Nodes> {
    levels: [Option<Pending<'g, N>>; DEPTH],
    depth: usize,
    /// Those above them, if the stack grows.
    oldest: Vec<Pending<'g, N>>,
    grows: bool,
    /// Whether nodes above were dropped.
    is_cut: bool,
}

impl<'g, N: Nodes> Stack<'g, N> {
    fn new(grows: bool) -> Self {
        let levels = [const { None }; DEPTH];
        Self { levels, depth: 0, oldest: Vec::new(), grows, is_cut: false }
    }

    fn push(&mut self, level: Pending<'g, N>) {
        if let Some(oldest) = self.levels[self.depth % DEPTH].replace(level) {
            if self.grows && self.oldest.try_reserve(1).is_ok() {
                self.oldest.push(oldest);
            } else {
                self.is_cut = true;
            }
        }
        self.depth += 1;
    }

    fn top(&mut self) -> Option<&mut Pending<'g, N>> {
        let top = &mut self.levels[self.depth.wrapping_sub(1) % DEPTH];
        if top.is_none() {
            *top = self.oldest.pop();
        }
        top.as_mut()
    }

    fn pop(&mut self) {
        self.depth = self.depth.wrapping_sub(1);
        self.levels[self.depth % DEPTH] = None;
    }
}

/// The beginning of a walk.
#[derive(Clone, Copy)]
enum Start<K> {
    /// With the first entry on the way.
    All,
    /// At a key, or behind it.
    At(K, bool),
    /// With the first entry on the way of those that begin with these bytes.
    Within(K),
}

impl<K> Start<K> {
    fn of(bound: Bound<K>) -> Self {
        match bound {
            Bound::Unbounded => Self::All,
            Bound::Included(key) => Self::At(key, true),
            Bound::Excluded(key) => Self::At(key, false),
        }
    }
}

/// The place in a node where a walk begins.
enum Begin {
    /// At this position, if there is one from there on.
    At(i32),
    /// In the child for this digit, and behind it.
    Below(u32),
    /// All of the node is before the place.
    Nowhere,
}

/// The next position of a node from one on: its entry, or a child.
fn next_at<N: Nodes, const DOWN: bool>(
    node: Node<'_, N>,
    from: i32,
) -> Option<(i32, Option<Node<'_, N>>)> {
    let entry = || N::value(node).map(|_| (ENTRY, None));
    let child = || N::child::<DOWN>(node, from).map(|(digit, child)| (digit as i32, Some(child)));
    if DOWN {
        let child = if from >= 0 { child() } else { None };
        child.or_else(|| if from >= ENTRY { entry() } else { None })
    } else {
        let entry = if from <= ENTRY { entry() } else { None };
        entry.or_else(child)
    }
}

/// A scan of a [`PatriciaTree`](super::PatriciaTree), in descending order if it is `DOWN`.
pub struct Range<'g, K, B, S, P, const DOWN: bool = false>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    trie: &'g Patricia<K, B, S, P>,
    guard: &'g Guard,
    start: Start<K::Ref<'g>>,
    end: Bound<K::Ref<'g>>,
    /// The entries of the run are `run[at..len]`.
    run: [Option<(K::Ref<'g>, u64)>; RUN],
    at: usize,
    len: usize,
    /// The entries that the next run may have.
    room: usize,
    /// Whether the walk has come to its end.
    is_done: bool,
}

/// A descending scan of a [`PatriciaTree`](super::PatriciaTree).
pub type RangeRev<'g, K, B, S, P> = Range<'g, K, B, S, P, true>;

impl<K, B, S, P, const DOWN: bool> fmt::Debug for Range<'_, K, B, S, P, DOWN>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Range").field("end", &self.end).finish_non_exhaustive()
    }
}

impl<'g, K, B, S, P, const DOWN: bool> Range<'g, K, B, S, P, DOWN>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    pub(super) fn new(
        trie: &'g Patricia<K, B, S, P>,
        (low, high): AlgorithmBounds<'g, Patricia<K, B, S, P>>,
        guard: &'g Guard,
    ) -> Self {
        let (start, end) = if DOWN { (high, low) } else { (low, high) };
        Self::from(trie, Start::of(start), end, guard)
    }

    /// The entries whose keys begin with `prefix`, if the scan is `DOWN`: those up to `prefix`,
    /// from the last one with the prefix on.
    pub(super) fn within(
        trie: &'g Patricia<K, B, S, P>,
        prefix: K::Ref<'g>,
        guard: &'g Guard,
    ) -> Self {
        const { assert!(DOWN) };
        Self::from(trie, Start::Within(prefix), Bound::Included(prefix), guard)
    }

    fn from(
        trie: &'g Patricia<K, B, S, P>,
        start: Start<K::Ref<'g>>,
        end: Bound<K::Ref<'g>>,
        guard: &'g Guard,
    ) -> Self {
        let run = [const { None }; RUN];
        Self { trie, guard, start, end, run, at: 0, len: 0, room: FIRST, is_done: false }
    }

    /// Whether the range ends before a key.
    #[inline]
    fn ends_before(&self, key: K::Ref<'g>) -> bool {
        let order = |end: K::Ref<'g>| if DOWN { end.cmp(&key) } else { key.cmp(&end) };
        match self.end {
            Bound::Unbounded => false,
            Bound::Included(end) => order(end).is_gt(),
            Bound::Excluded(end) => order(end).is_ge(),
        }
    }

    /// Gathers the next run, in as many sections as it takes.
    fn refill(&mut self) {
        (self.at, self.len) = (0, 0);
        let mut tries = Tries::new(Level::Optimistic);
        let (mut was_aborted, mut grows) = (false, false);
        while self.len == 0 && !self.is_done {
            let gathered = if tries.level == Level::Locked {
                self.gather::<Coupled>(grows)
            } else {
                self.gather::<S::Fast>(grows)
            };
            if let Err(abort) = gathered {
                was_aborted = true;
                self.trie.retries.aborted(&mut tries, Section::Read, abort);
            } else {
                // A walk that was cut and has found nothing would be the same once more.
                grows = true;
            }
        }
        if was_aborted {
            self.trie.retries.done(&tries);
        }
        self.room = (2 * self.room).min(RUN);
    }

    /// Adds an entry to the run. The next walk begins behind it.
    fn add(&mut self, key: K::Ref<'g>, value: u64) {
        self.run[self.len] = Some((key, value));
        self.len += 1;
        self.start = Start::At(key, false);
    }

    /// One section: a walk that adds entries to the run.
    fn gather<M: Mode<S::Lock>>(&mut self, grows: bool) -> Result<(), Abort> {
        let trie = self.trie;
        let mut path = PathOf::<NodesOf<K, B, S>>::default();
        let mut stack = Stack::new(grows);
        trie.seek::<M, DOWN>(&mut stack, self.start, &mut path, self.guard)?;
        while self.len < self.room {
            let Some(level) = stack.top() else {
                self.is_done = !stack.is_cut;
                return Ok(());
            };
            let node = level.node;
            let Some((at, child)) = next_at::<_, DOWN>(node, level.next) else {
                level.held.validate()?;
                stack.pop();
                continue;
            };
            level.next = if DOWN { at - 1 } else { at + 1 };
            let Some(child) = child else {
                let value = NodesOf::<K, B, S>::value(node);
                let key =
                    NodesOf::<K, B, S>::key(node).or_else(|| K::of_path(&path).map(K::shorten));
                level.held.validate()?;
                if let (Some(key), Some(value)) = (key, value) {
                    self.add(key, value);
                }
                continue;
            };
            let held = M::enter(NodesOf::<K, B, S>::lock(child))?;
            level.held.validate()?;
            let end = NodesOf::<K, B, S>::end(node);
            Patricia::<K, B, S, P>::note(child, (end, at as u32), &mut path);
            // A node with nothing more to come need not be held.
            if next_at::<_, DOWN>(node, level.next).is_none() {
                level.held.validate()?;
                stack.pop();
            }
            let next = if DOWN { i32::MAX } else { ENTRY };
            stack.push(Pending { held, node: child, next });
        }
        Ok(())
    }
}

impl<K, B, S, P> Patricia<K, B, S, P>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    /// Notes the digit at a position, and the label of the child that it leads to, in the path of
    /// a walk.
    fn note(
        child: Node<'_, NodesOf<K, B, S>>,
        (end, digit): (u32, u32),
        path: &mut PathOf<NodesOf<K, B, S>>,
    ) {
        let path = path.as_mut();
        let bits = NodesOf::<K, B, S>::BITS;
        // An unvalidated node may end anywhere.
        if !NodesOf::<K, B, S>::SKIPS && (end as usize) < path.len() * 8 / bits as usize {
            put_digit(bits, path, end, digit);
            NodesOf::<K, B, S>::label(child, end + 1).copy_to(path, 0);
        }
    }

    /// The place in a node, whose label begins at `from`, where a walk from `start` begins: at a
    /// key, or within the keys that begin with it. It may be wrong for an unvalidated node.
    fn begins<const DOWN: bool>(
        node: Node<'_, NodesOf<K, B, S>>,
        from: u32,
        start: Start<K::Ref<'_>>,
        key: &[u8],
    ) -> Begin {
        let bits = NodesOf::<K, B, S>::BITS;
        let all = if DOWN { i32::MAX } else { ENTRY };
        let (end, chars) = (NodesOf::<K, B, S>::end(node), chars(bits, key.len()));
        let label = NodesOf::<K, B, S>::label(node, from);
        match label.differs(bits, key, from, end) {
            Some(at) => {
                let is_past = at >= chars;
                let is_behind = is_past || label.digit(bits, at) > digit(bits, key, at);
                match start {
                    Start::Within(_) if is_past => Begin::At(all),
                    Start::At(..) if is_behind != DOWN => Begin::At(all),
                    _ => Begin::Nowhere,
                }
            }
            None if end >= chars => match start {
                Start::At(_, true) => Begin::At(ENTRY),
                Start::At(_, false) if DOWN => Begin::Nowhere,
                Start::At(_, false) => Begin::At(ENTRY + 1),
                _ => Begin::At(all),
            },
            None => Begin::Below(digit(bits, key, end)),
        }
    }

    /// Fills a stack with the nodes where a walk begins.
    fn seek<'g, M: Mode<S::Lock>, const DOWN: bool>(
        &'g self,
        stack: &mut Stack<'g, NodesOf<K, B, S>>,
        start: Start<K::Ref<'_>>,
        path: &mut PathOf<NodesOf<K, B, S>>,
        _guard: &'g Guard,
    ) -> Result<(), Abort> {
        let above = M::enter(&self.top.lock)?;
        // SAFETY: I4: the guard is of the trie's domain.
        let Some(mut node) = (unsafe { self.top.root.load::<NodesOf<K, B, S>>() }) else {
            return above.validate();
        };
        let bytes = match start {
            Start::All => None,
            Start::At(key, _) | Start::Within(key) => Some(K::bytes(key)),
        };
        let key = bytes.as_ref().map(AsRef::as_ref);
        let begin = if DOWN { i32::MAX } else { ENTRY };
        let mut from = 0;
        let mut held = M::enter(NodesOf::<K, B, S>::lock(node))?;
        above.validate()?;
        NodesOf::<K, B, S>::label(node, 0).copy_to(path.as_mut(), 0);
        loop {
            let end = NodesOf::<K, B, S>::end(node);
            let next = match key.map(|key| Self::begins::<DOWN>(node, from, start, key)) {
                None => begin,
                Some(Begin::At(next)) => next,
                Some(Begin::Nowhere) => return held.validate(),
                Some(Begin::Below(of_key)) => {
                    let next = of_key as i32 + if DOWN { -1 } else { 1 };
                    let slot = NodesOf::<K, B, S>::slot(node, of_key);
                    // SAFETY: I4: the slot is in a node that was found under the guard.
                    let child = slot.and_then(|slot| unsafe { slot.load() });
                    let has_more = !matches!(start, Start::Within(_))
                        && next_at::<_, DOWN>(node, next).is_some();
                    let below = match child {
                        Some(child) => Some((child, M::enter(NodesOf::<K, B, S>::lock(child))?)),
                        None => None,
                    };
                    held.validate()?;
                    if has_more {
                        stack.push(Pending { held, node, next });
                    }
                    let Some((child, entered)) = below else { return Ok(()) };
                    Self::note(child, (end, of_key), path);
                    (node, held, from) = (child, entered, end + 1);
                    continue;
                }
            };
            stack.push(Pending { held, node, next });
            return Ok(());
        }
    }
}

impl<'g, K, B, S, P, const DOWN: bool> Iterator for Range<'g, K, B, S, P, DOWN>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
    type Item = (K::Ref<'g>, u64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.len {
            self.refill();
        }
        let (key, value) = self.run[..self.len].get(self.at).copied().flatten()?;
        if self.ends_before(key) {
            (self.at, self.len, self.is_done) = (0, 0, true);
            return None;
        }
        self.at += 1;
        Some((key, value))
    }
}

impl<K, B, S, P, const DOWN: bool> FusedIterator for Range<'_, K, B, S, P, DOWN>
where
    K: PatriciaKey + ?Sized,
    B: Build,
    S: Policy,
    P: Placement,
{
}
