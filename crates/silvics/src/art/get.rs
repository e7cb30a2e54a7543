//! Lookups.

use super::ArtTree;
use super::key::{ArtKey, Parts};
use super::layout;
use super::leaf::LeafOf;
use super::node::{LINE, Node, PREFIX, Place, full, header, line_of, place};
use super::word::{ABSENT, Content, Kind, Word};
use crate::domain::Guard;
use silvics_layout::record::{Read, Why};
use silvics_pool::Placement;
use silvics_sync::prefetch;

/// What a search reads of a node: the place it comes to, and the keys in its line.
pub(super) fn reads<K: Parts + ?Sized, A>(
    word: Word,
    place: Option<&A>,
    why: Why,
) -> impl Iterator<Item = Read> + use<K, A> {
    let (layout, object) = (layout::<K>(word), word.object());
    let place = place.map(|place| std::ptr::from_ref(place).addr() - object.addr());
    let keys = match word.kind() {
        Kind::Node256 | Kind::Values256 => None,
        Kind::Node4 => Some(layout.search[0].offset),
        // Where there is no place the search has read keys of a line, of which it is not told.
        _ => place.map(|offset| offset / LINE * LINE),
    };
    let keys = keys.map(|offset| layout.read(object, offset, 8, Why::Step));
    keys.into_iter().chain(place.map(|offset| layout.read(object, offset, 8, why)))
}

/// What a search for a key reads of the leaf where it ends.
fn leaf_reads<K: Parts + ?Sized>(word: Word, key: K::Ref<'_>) -> impl Iterator<Item = Read> {
    // SAFETY: read under the guard.
    let leaf = unsafe { K::Leaf::from_word(word) };
    let (layout, object) = (layout::<K>(word), word.object());
    let value = leaf.find(K::shorten(key)).map(|at| (leaf.value_offset(at), 8));
    let parts = [leaf.looked_at(key), value];
    parts
        .into_iter()
        .flatten()
        .map(move |(offset, bytes)| layout.read(object, offset, bytes, Why::Found))
}

/// What comes of a step of a lookup.
enum Next {
    Ends(Option<u64>),
    /// It goes on at a node or leaf.
    At(Word),
}

/// How many descents of a batch are under way at once: more than a core has line fill buffers (10 to 16).
pub(super) const GROUP: usize = 16;

/// A descent of a batch.
#[derive(Clone, Copy)]
struct Lane {
    /// Which key it is for.
    at: usize,
    /// What has been prefetched for it, and the depth of the node that leads there.
    word: Word,
    above: usize,
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// The value of a key.
    ///
    /// Where a leaf has the whole key at the end, what is skipped on the way is not looked at: a key that is
    /// elsewhere, or nowhere, is not in the leaf.
    #[inline(always)]
    pub(super) fn find(&self, key: K::Ref<'_>, _guard: &Guard) -> Option<u64> {
        let (mut word, mut above) = (self.first(key), 0);
        loop {
            // SAFETY: read under the guard.
            match unsafe { Self::step(word, above, key) } {
                Next::Ends(value) => return value,
                Next::At(next) => (word, above) = (next, word.depth()),
            }
        }
    }

    /// The same under a guard of its own.
    #[cold]
    #[inline(never)]
    pub(super) fn find_apart(&self, key: K::Ref<'_>) -> Option<u64> {
        self.find(key, &self.domain.pin())
    }

    /// What the root leads to.
    #[inline(always)]
    fn first(&self, key: K::Ref<'_>) -> Word {
        // SAFETY: it lives as long as the tree.
        let place = unsafe { self.root.as_ref() }.find(K::digit(key, 0));
        P::saw(|| reads::<K, _>(self.root_word(), place, Why::Step));
        place.map_or(Word::NONE, Word::load)
    }

    /// Looks for a key at a node or leaf, or at none, that a node of depth `above` leads to.
    ///
    /// # Safety
    /// What the word leads to is not reclaimed meanwhile.
    #[inline(always)]
    unsafe fn step(word: Word, above: usize, key: K::Ref<'_>) -> Next {
        // The most frequent kind first: what is at its place can be loaded without another branch.
        if word.kind() == Kind::Node256 {
            // SAFETY: the caller's promise.
            let node = unsafe {
                if Self::parts(word, above, key) {
                    return Next::Ends(None);
                }
                full(word)
            };
            let place = node.find(K::digit(key, word.depth()));
            P::saw(|| reads::<K, _>(word, place, Why::Step));
            return Next::At(place.map_or(Word::NONE, Word::load));
        }
        if word.kind() == Kind::Leaf {
            if word.is_none() {
                return Next::Ends(None); // LP(get): the load of the word
            }
            P::saw(|| leaf_reads::<K>(word, key));
            // SAFETY: the caller's promise.
            return Next::Ends(unsafe { K::Leaf::from_word(word) }.get(key)); // LP(get)
        }
        let depth = word.depth();
        // SAFETY: the caller's promise.
        if unsafe { Self::parts(word, above, key) } {
            return Next::Ends(None);
        }
        // SAFETY: the caller's promise.
        match unsafe { place(word, K::digit(key, depth)) } {
            Place::Value(place) => {
                P::saw(|| reads::<K, _>(word, place, Why::Found));
                // Not decided by a branch: the next lookup can begin while this one waits for memory.
                let value = place.map_or(ABSENT, u64::load); // LP(get)
                Next::Ends((value != ABSENT).then_some(value))
            }
            Place::Word(place) => {
                P::saw(|| reads::<K, _>(word, place, Why::Step));
                Next::At(place.map_or(Word::NONE, Word::load))
            }
        }
    }

    /// Whether a key is seen to part from those below a node before its depth, where one of depth `above` leads to it.
    ///
    /// # Safety
    /// As for `step`.
    #[inline(always)]
    unsafe fn parts(word: Word, above: usize, key: K::Ref<'_>) -> bool {
        let depth = word.depth();
        if !K::DIRECT || depth <= above + 1 {
            return false;
        }
        P::saw(|| [layout::<K>(word).read(word.object(), PREFIX, 8, Why::Step)]);
        // SAFETY: the caller's promise.
        K::before(key, depth) != unsafe { header(word) }.prefix
    }

    /// Looks up many keys, a group of them at once: each in turn makes a step, and asks for the lines of its
    /// next one, which come while the others make theirs (asynchronous memory access chaining; Kocberber,
    /// Falsafi, Grot, VLDB 2015).
    pub(super) fn find_many<'k>(
        &self,
        len: usize,
        key: impl Fn(usize) -> K::Ref<'k>,
        _guard: &Guard,
        mut found: impl FnMut(usize, Option<u64>),
    ) {
        let mut lanes = [Lane { at: 0, word: Word::NONE, above: 0 }; GROUP];
        let mut busy = len.min(GROUP);
        for (at, lane) in lanes[..busy].iter_mut().enumerate() {
            *lane = self.enter(at, key(at));
        }
        let mut next = busy;
        while busy > 0 {
            let mut lane = 0;
            while lane < busy {
                let Lane { at, word, above } = lanes[lane];
                // SAFETY: read under the guard.
                match unsafe { Self::step(word, above, key(at)) } {
                    Next::At(next) => {
                        Self::prefetch(next, word.depth(), key(at));
                        lanes[lane] = Lane { at, word: next, above: word.depth() };
                        lane += 1;
                    }
                    Next::Ends(value) => {
                        found(at, value);
                        if next < len {
                            lanes[lane] = self.enter(next, key(next));
                            next += 1;
                            lane += 1;
                        } else {
                            busy -= 1;
                            lanes[lane] = lanes[busy];
                        }
                    }
                }
            }
        }
    }

    /// Begins a descent.
    #[inline(always)]
    fn enter(&self, at: usize, key: K::Ref<'_>) -> Lane {
        let word = self.first(key);
        Self::prefetch(word, 0, key);
        Lane { at, word, above: 0 }
    }

    /// Asks for the lines that `step` will read.
    #[inline(always)]
    fn prefetch(word: Word, above: usize, key: K::Ref<'_>) {
        let object = word.object().cast::<u8>();
        if word.kind() == Kind::Leaf {
            // None leads to address 0, which does no harm.
            prefetch(object);
            prefetch(object.wrapping_add(LINE - 1));
            return;
        }
        let depth = word.depth();
        if K::DIRECT && depth > above + 1 {
            prefetch(object);
        }
        prefetch(object.wrapping_add(line_of(word.kind(), K::digit(key, depth))));
    }
}
