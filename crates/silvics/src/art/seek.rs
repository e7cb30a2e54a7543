//! Paths of keys, as writers and scans follow them.

use super::hot::sampler::Sampler;
use super::key::Digit;
use super::kinds::layout;
use super::leaf::LeafOf;
use super::node::{AnyPlace, PREFIX, Visit, header, place};
use super::search::reads;
use super::stack::any_leaf;
use super::word::{ABSENT, Content, Kind, Word};
use super::{Art, ArtKey};
use silvics_layout::record::Why;
use silvics_pool::Placement;
use silvics_sync::atomic::AtomicU64;
use silvics_sync::backoff::Backoff;

/// The end of a key's path.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// An empty place, or no place.
    Nothing,
    /// A place with this value.
    Value(u64),
    /// A leaf, and the key's place in it if the leaf has the key.
    Leaf(Word, Option<usize>),
    /// A node or leaf whose keys part from this key at a depth above it. They have this digit
    /// there.
    Parting(Word, usize, Digit),
}

/// A record of the nodes on a path.
pub(super) trait Trail {
    /// The path begins, perhaps not for the first time.
    fn begin(&mut self);
    /// The path goes through a node, at this digit.
    fn pass(&mut self, at: Word, digit: Digit);
}

/// The way down that a key's digits show.
pub(super) struct Descent<'g> {
    /// The last node.
    pub(super) at: Visit<'g>,
    /// The first depth at which no node was passed, or `usize::MAX`. Keys below may differ from
    /// this key there.
    skipped: usize,
    pub(super) end: Lead<'g>,
}

/// The object that the last node of a descent leads to.
#[derive(Clone, Copy)]
pub(super) enum Lead<'g> {
    Nothing,
    /// A place that has a value, or has had one.
    Place(&'g AtomicU64),
    Leaf(Word),
    /// A node that is deeper than the descent may go, or whose prefix is not the key's.
    Node(Word),
}

/// Whether all keys below a node agree with a key in all bytes before the node's depth.
enum Agree {
    Yes,
    /// They part at this depth, at which the node's keys have this digit.
    No(usize, Digit),
    /// The node has no key below it that would tell.
    Empty,
}

/// The reaction to a node whose prefix is unknown because it has no keys below.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// A writer waits until the node is removed.
    Waits,
    /// A reader goes on as if it were removed.
    GoesOn,
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// Follows a key's digits down from the root, whose word the caller has read under its guard,
    /// to nodes of depth `limit` at most. Skipped bytes are compared only in trees with nodes of
    /// values, whose prefixes are complete.
    #[inline(always)]
    #[expect(clippy::unused_self, reason = "the nodes live as long as the tree")]
    pub(super) fn descend<'g>(
        &'g self,
        root: Word,
        key: K::Ref<'_>,
        limit: usize,
        trail: &mut impl Trail,
    ) -> Descent<'g> {
        let (mut at, mut skipped) = (root, usize::MAX);
        trail.begin();
        loop {
            let depth = at.depth_for::<K, true>();
            let digit = K::digit(key, depth);
            // SAFETY: I7: `at` leads to the root, or its kind is a node's (below). I8: it was read
            // under the caller's guard.
            let visit = || unsafe { Visit::of(at) };
            let ends = |end| Descent { at: visit(), skipped, end };
            trail.pass(at, digit);
            // SAFETY: I7, I8: as for `visit`, `at` leads to a node that is not reclaimed.
            let word = match unsafe { place(at, digit) } {
                AnyPlace::Value(place) => {
                    P::saw(|| reads::<K, _>(at, place, Why::Found));
                    return ends(place.map_or(Lead::Nothing, Lead::Place));
                }
                AnyPlace::Word(place) => {
                    P::saw(|| reads::<K, _>(at, place, Why::Step));
                    place.map_or(Word::NONE, Word::load)
                }
            };
            if word.kind() == Kind::Leaf {
                return ends(if word.is_none() { Lead::Nothing } else { Lead::Leaf(word) });
            }
            let below = word.depth_for::<K, true>();
            if below > limit {
                return ends(Lead::Node(word));
            }
            if below > depth + 1 {
                // SAFETY: I7: the word's kind is a node's. I8: it was read under the caller's
                // guard.
                let prefix = || unsafe { header(word) }.prefix;
                if K::DIRECT && K::before(key, below) != prefix() {
                    return ends(Lead::Node(word));
                }
                if !K::DIRECT {
                    skipped = skipped.min(depth + 1);
                }
            }
            at = word;
        }
    }

    /// The path of a key: the last node that can have the key below it and is at most as deep as
    /// `deepest`, and the path's end there. If a deeper node agrees with the key, the end is
    /// [`End::Nothing`]. There is no path in a tree without a root.
    pub(super) fn seek<'g>(
        &'g self,
        key: K::Ref<'_>,
        deepest: usize,
        patience: Patience,
        trail: &mut impl Trail,
    ) -> Option<(Visit<'g>, End)> {
        let root = self.root.word();
        if root.is_none() {
            return None;
        }
        let descent = self.descend(root, key, deepest, trail);
        Some(self.seek_on(descent, key, deepest, patience, trail))
    }

    /// The path of a key, as [`Art::seek`] returns it, from a descent for this key.
    ///
    /// The descent followed digits only. This compares all skipped bytes at once, with the prefix
    /// of the last node, or with any key below it if the prefix does not reach back far enough. If
    /// they differ, the path ends further up, above the first node deeper than the difference, and
    /// this descends again to there.
    #[inline]
    pub(super) fn seek_on<'g>(
        &'g self,
        mut descent: Descent<'g>,
        key: K::Ref<'_>,
        deepest: usize,
        patience: Patience,
        trail: &mut impl Trail,
    ) -> (Visit<'g>, End) {
        let mut backoff = Backoff::new();
        loop {
            let at = descent.at;
            match Self::resolve(descent, key, deepest, patience) {
                Ok(end) => return (at, end),
                Err(limit) => {
                    if limit == deepest {
                        backoff.wait(); // other writers have changed the path, or are about to
                    }
                    descent = self.descend(self.root.word(), key, limit, trail);
                }
            }
        }
    }

    /// The end of a key's path if the descent has come to its last node, else the depth to which
    /// the next descent must go.
    #[inline]
    fn resolve(
        Descent { at, skipped, end }: Descent<'_>,
        key: K::Ref<'_>,
        deepest: usize,
        patience: Patience,
    ) -> Result<End, usize> {
        let end = match end {
            Lead::Leaf(word) => return Self::at_leaf(key, at.depth_for::<K>(), skipped, word),
            Lead::Node(word) => {
                // SAFETY: I7: `descend` saw that the word's kind is a node's. I8: it was read under
                // the caller's guard.
                let child = unsafe { Visit::of(word) };
                match Self::agree(key, child, skipped.min(at.depth_for::<K>() + 1)) {
                    Agree::No(depth, digit) if depth > at.depth_for::<K>() => {
                        return Ok(End::Parting(word, depth, digit));
                    }
                    Agree::No(depth, _) => return Err(depth),
                    Agree::Yes if child.depth_for::<K>() > deepest => End::Nothing,
                    Agree::Empty if patience == Patience::GoesOn => End::Nothing,
                    Agree::Yes | Agree::Empty => return Err(deepest),
                }
            }
            Lead::Nothing => End::Nothing,
            Lead::Place(place) => match u64::load(place) {
                ABSENT => End::Nothing,
                value => End::Value(value),
            },
        };
        match Self::agree(key, at, skipped) {
            Agree::Yes => Ok(end),
            Agree::No(depth, _) => Err(depth),
            Agree::Empty if patience == Patience::Waits => Err(deepest),
            Agree::Empty => Err(at.depth_for::<K>() - 1),
        }
    }

    /// The end of a path at a leaf, or the depth further up at which the key parts from those
    /// there.
    fn at_leaf(key: K::Ref<'_>, depth: usize, skipped: usize, word: Word) -> Result<End, usize> {
        // SAFETY: I7: `descend` saw that the word leads to a leaf. I8: it was read under the
        // caller's guard.
        let leaf = unsafe { K::Leaf::from_word(word) };
        let found = leaf.find(key);
        if found.is_some() || K::LEAF_KEYS > 1 && skipped == usize::MAX {
            return Ok(End::Leaf(word, found));
        }
        let other = leaf.key(0);
        let parting = K::parting(K::shorten(other), key);
        if parting < depth {
            return Err(parting);
        }
        if K::LEAF_KEYS > 1 {
            return Ok(End::Leaf(word, None));
        }
        Ok(End::Parting(word, parting, K::digit(other, parting)))
    }

    /// Whether all keys below a node agree with this key in the bytes from depth `from` up to the
    /// node's depth.
    #[inline]
    fn agree(key: K::Ref<'_>, at: Visit<'_>, from: usize) -> Agree {
        let depth = at.depth_for::<K>();
        if from >= depth {
            return Agree::Yes;
        }
        if depth - from <= 8 {
            P::saw(|| [layout::<K>(at.word).read(at.word.object(), PREFIX, 8, Why::Step)]);
            let prefix = at.header().prefix;
            if K::len(key) >= depth && K::before(key, depth) == prefix {
                return Agree::Yes;
            }
            let theirs = |depth_of: usize| Some((prefix >> (8 * (depth - 1 - depth_of))) as u8);
            let parting = (from..depth).find(|&depth| K::digit(key, depth) != theirs(depth));
            return parting.map_or(Agree::Yes, |depth| Agree::No(depth, theirs(depth)));
        }
        let Some(leaf) = any_leaf::<K>(at) else { return Agree::Empty };
        // SAFETY: I7: `any_leaf` returns the word of a leaf. I8: it was read under the caller's
        // guard.
        let other = unsafe { K::Leaf::from_word(leaf) }.key(0);
        match K::parting(K::shorten(other), key) {
            parting if parting < depth => Agree::No(parting, K::digit(other, parting)),
            _ => Agree::Yes,
        }
    }
}
