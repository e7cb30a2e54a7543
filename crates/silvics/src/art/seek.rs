//! Paths of keys, as writers and scans follow them.

use super::ArtKey;
use super::ArtTree;
use super::key::Digit;
use super::kinds::layout;
use super::leaf::LeafOf;
use super::node::{AnyPlace, PREFIX, Visit, header, place};
use super::search::reads;
use super::stack::any_leaf;
use super::word::{ABSENT, Content, Kind, Word};
use silvics_layout::record::Why;
use silvics_pool::Placement;
use silvics_sync::atomic::AtomicU64;
use silvics_sync::backoff::Backoff;

/// Where the path of a key ends.
#[derive(Clone, Copy)]
pub(super) enum End {
    /// At a place where there is nothing, or at none.
    Nothing,
    /// At a value.
    Value(u64),
    /// At a leaf, in which the key is here, if it is.
    Leaf(Word, Option<usize>),
    /// At a node or leaf whose keys part from this one at a depth above it, where they have this digit.
    Parting(Word, usize, Digit),
}

/// Who is told of the nodes on a path.
pub(super) trait Trail {
    /// The path begins, once more if it has before.
    fn begin(&mut self);
    /// It goes through a node, at this digit.
    fn pass(&mut self, at: Word, digit: Digit);
}

/// The way down that a key's digits show.
pub(super) struct Descent<'g> {
    pub(super) at: Visit<'g>,
    /// The first depth that no node on the way was at, if there is one: keys below may differ there.
    skipped: usize,
    pub(super) end: Lead<'g>,
}

/// What the last node of a descent leads to.
#[derive(Clone, Copy)]
pub(super) enum Lead<'g> {
    Nothing,
    /// A place that has a value, or has had one.
    Place(&'g AtomicU64),
    Leaf(Word),
    /// A node deeper than the descent goes, or seen not to have the key below.
    Node(Word),
}

/// Whether the keys below a node agree with another one in all bytes before its depth.
enum Agree {
    Yes,
    /// They part here, where the node's keys have this.
    No(usize, Digit),
    /// There is no key below that would tell.
    Empty,
}

/// Who follows a path that nothing below tells the prefix of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Patience {
    /// Waits until the node is taken away: a writer.
    Waits,
    /// Goes on as if it were: a reader.
    GoesOn,
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// Follows a key's digits down, to nodes of at most this depth. Looks at what is skipped only where every
    /// prefix is known as a whole.
    #[inline(always)]
    pub(super) fn descend<'g>(
        &'g self,
        key: K::Ref<'_>,
        limit: usize,
        trail: &mut impl Trail,
    ) -> Descent<'g> {
        let (mut at, mut skipped) = (self.root_word(), usize::MAX);
        trail.begin();
        loop {
            let (depth, digit) = (at.depth(), K::digit(key, at.depth()));
            // SAFETY: read under the guard.
            let visit = || unsafe { Visit::of(at) };
            let ends = |end| Descent { at: visit(), skipped, end };
            trail.pass(at, digit);
            // SAFETY: read under the guard.
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
            let below = word.depth();
            if below > limit {
                return ends(Lead::Node(word));
            }
            if below > depth + 1 {
                // SAFETY: read under the guard.
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

    /// The path of a key, to the last node of at most a depth that can have it below, and where it ends: if a
    /// deeper node agrees with the key, at nothing.
    pub(super) fn seek<'g>(
        &'g self,
        key: K::Ref<'_>,
        deepest: usize,
        patience: Patience,
        trail: &mut impl Trail,
    ) -> (Visit<'g>, End) {
        let descent = self.descend(key, deepest, trail);
        self.seek_on(descent, key, deepest, patience, trail)
    }

    /// The same, from a descent of the key.
    ///
    /// Digits have led down, whatever was skipped; now all that was skipped is compared at once, with the
    /// prefix of the last node, or where that does not reach far enough back with any key below it. If they
    /// part, the path ends further up, where the nodes become deeper than that: to there it goes down again.
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
                        backoff.wait(); // others have changed the way, or are about to
                    }
                    descent = self.descend(key, limit, trail);
                }
            }
        }
    }

    /// Where the path of a key ends, if a descent has come to its last node; else the depth down to which it
    /// must go again.
    #[inline]
    fn resolve(
        Descent { at, skipped, end }: Descent<'_>,
        key: K::Ref<'_>,
        deepest: usize,
        patience: Patience,
    ) -> Result<End, usize> {
        let end = match end {
            Lead::Leaf(word) => return Self::at_leaf(key, at.depth(), skipped, word),
            Lead::Node(word) => {
                // SAFETY: read under the guard.
                let child = unsafe { Visit::of(word) };
                match Self::agree(key, child, skipped.min(at.depth() + 1)) {
                    Agree::No(depth, digit) if depth > at.depth() => {
                        return Ok(End::Parting(word, depth, digit));
                    }
                    Agree::No(depth, _) => return Err(depth),
                    Agree::Yes if child.depth() > deepest => End::Nothing,
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
            Agree::Empty => Err(at.depth() - 1),
        }
    }

    /// A path that ends at a leaf; or the depth, further up, where the key parts from the keys there.
    fn at_leaf(key: K::Ref<'_>, depth: usize, skipped: usize, word: Word) -> Result<End, usize> {
        // SAFETY: read under the guard.
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

    /// Whether all keys below a node agree with this one from a depth on.
    #[inline]
    fn agree(key: K::Ref<'_>, at: Visit<'_>, from: usize) -> Agree {
        let depth = at.depth();
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
        // SAFETY: read under the guard.
        let other = unsafe { K::Leaf::from_word(leaf) }.key(0);
        match K::parting(K::shorten(other), key) {
            parting if parting < depth => Agree::No(parting, K::digit(other, parting)),
            _ => Agree::Yes,
        }
    }
}
