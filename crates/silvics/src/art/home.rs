//! The objects of a tree: a pool for each kind, and what is made of what.

use super::leaf::{Entries, LEAF_KEYS, LEAVES, Leaf, typed};
use super::node::{
    AnySize, LAST, NODES, Node, Node4, Node14, Node56, Node256, NodeRef, byte_at, parting,
};
use super::word::{Content, Kind, Word};
use crate::domain::{Domain, Guard, Reclaim, Retired};
use silvics_pool::{AllocError, Config, Placement, PoolStats, SlotAlloc};
use std::ptr::NonNull;
use std::sync::Arc;

/// Where nodes are whose places hold `C`.
pub(super) struct Family<C: Content + 'static, P: Placement>
where
    C::Atomic: Send,
{
    four: P::Slots<Node4<C>>,
    fourteen: P::Slots<Node14<C>>,
    fifty_six: P::Slots<Node56<C>>,
    full: P::Slots<Node256<C>>,
}

/// What a node's places can hold, and what such nodes are called.
pub(super) trait Placed: Content + 'static {
    /// By the number of places; of values there is none of four, as a leaf has as many.
    const KINDS: [Kind; 4];
}

impl Placed for Word {
    const KINDS: [Kind; 4] = [Kind::Node4, Kind::Node14, Kind::Node56, Kind::Node256];
}

impl Placed for u64 {
    const KINDS: [Kind; 4] = [Kind::Values14, Kind::Values14, Kind::Values56, Kind::Values256];
}

impl<C: Placed, P: Placement> Family<C, P>
where
    C::Atomic: Send,
{
    fn new(config: &Config) -> Self {
        let kind = |of: usize| NODES[C::KINDS[of] as usize - 1].kind;
        Self {
            four: P::Slots::new(kind(0), config),
            fourteen: P::Slots::new(kind(1), config),
            fifty_six: P::Slots::new(kind(2), config),
            full: P::Slots::new(kind(3), config),
        }
    }
}

/// A pool for each kind of object.
pub(super) struct Slots<P: Placement> {
    words: Family<Word, P>,
    values: Family<u64, P>,
    leaf1: P::Slots<Leaf<1>>,
    leaf2: P::Slots<Leaf<2>>,
    leaf3: P::Slots<Leaf<3>>,
    leaf4: P::Slots<Leaf<4>>,
}

/// All objects of a tree. What is retired, of whatever kind, is one batch for each thread: of a word its
/// tag says what it leads to.
pub(super) struct Home<P: Placement> {
    slots: Arc<Slots<P>>,
    retired: Retired<Slots<P>>,
}

/// Calls something with the pool a word's object is in, and the object.
macro_rules! pool_of {
    ($slots:expr, $word:expr, |$pool:ident, $object:ident| $do:expr) => {{
        let (home, word) = ($slots, $word);
        let object = NonNull::new(word.object()).expect("the word leads to an object");
        match word.kind() {
            Kind::Node4 => {
                let ($pool, $object) = (&home.words.four, object.cast());
                $do
            }
            Kind::Node14 => {
                let ($pool, $object) = (&home.words.fourteen, object.cast());
                $do
            }
            Kind::Node56 => {
                let ($pool, $object) = (&home.words.fifty_six, object.cast());
                $do
            }
            Kind::Node256 => {
                let ($pool, $object) = (&home.words.full, object.cast());
                $do
            }
            Kind::Values14 => {
                let ($pool, $object) = (&home.values.fourteen, object.cast());
                $do
            }
            Kind::Values56 => {
                let ($pool, $object) = (&home.values.fifty_six, object.cast());
                $do
            }
            Kind::Values256 => {
                let ($pool, $object) = (&home.values.full, object.cast());
                $do
            }
            Kind::Leaf => match word.keys() {
                1 => {
                    let ($pool, $object) = (&home.leaf1, typed::<1>(word));
                    $do
                }
                2 => {
                    let ($pool, $object) = (&home.leaf2, typed::<2>(word));
                    $do
                }
                3 => {
                    let ($pool, $object) = (&home.leaf3, typed::<3>(word));
                    $do
                }
                _ => {
                    let ($pool, $object) = (&home.leaf4, typed::<4>(word));
                    $do
                }
            },
        }
    }};
}

// SAFETY: allocators are shared by all threads.
unsafe impl<P: Placement> Reclaim for Slots<P> {
    fn releases_whole(&self) -> bool {
        Home::<P>::RELEASES_WHOLE
    }

    unsafe fn reclaim(&self, object: NonNull<u8>) {
        // SAFETY: `Home::retire` has retired it; the caller's promise.
        unsafe { self.free(Word::from_raw(object)) };
    }
}

impl<P: Placement> Slots<P> {
    /// Takes back what a word leads to.
    ///
    /// # Safety
    /// It came from here, is taken back once, and nobody can reach it any more.
    unsafe fn free(&self, word: Word) {
        // SAFETY: the caller's promise.
        pool_of!(self, word, |pool, object| unsafe { pool.free(object) });
    }
}

impl<P: Placement> Home<P> {
    /// Whether dropping it releases every object.
    pub(super) const RELEASES_WHOLE: bool = <P::Slots<Leaf<1>> as SlotAlloc<_>>::RELEASES_WHOLE;

    pub(super) fn new(config: &Config, domain: &Domain) -> Self {
        let slots = Arc::new(Slots {
            words: Family::new(config),
            values: Family::new(config),
            leaf1: P::Slots::new(LEAVES[0].kind, config),
            leaf2: P::Slots::new(LEAVES[1].kind, config),
            leaf3: P::Slots::new(LEAVES[2].kind, config),
            leaf4: P::Slots::new(LEAVES[3].kind, config),
        });
        let retired = Retired::new(Arc::clone(&slots), domain.clone(), &config.budget);
        Self { slots, retired }
    }

    /// A new object. If memory is short, what this thread has retired is flushed and the attempt repeated
    /// once.
    #[inline]
    fn alloc<T: Send + 'static>(
        &self,
        slots: &P::Slots<T>,
        object: T,
        guard: &Guard,
    ) -> Result<NonNull<T>, AllocError> {
        const { assert!(!std::mem::needs_drop::<T>(), "objects are freed without being dropped") };
        let slot = match slots.alloc() {
            Ok(slot) => slot,
            Err(_) => self.alloc_after_flush(slots, guard)?,
        };
        // SAFETY: a fresh slot has room for a `T` and is ours alone.
        unsafe { slot.write(object) };
        Ok(slot)
    }

    #[cold]
    fn alloc_after_flush<T: Send + 'static>(
        &self,
        slots: &P::Slots<T>,
        guard: &Guard,
    ) -> Result<NonNull<T>, AllocError> {
        self.retired.flush(guard);
        slots.alloc()
    }

    /// The node that every tree begins with.
    pub(super) fn root(&self, guard: &Guard) -> Result<NonNull<Node256<Word>>, AllocError> {
        self.alloc(&self.slots.words.full, Node256::new(0), guard)
    }

    /// A node of words that has room for these, with them in it.
    pub(super) fn words(
        &self,
        contents: &[(u8, Word)],
        place: Place,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        self.sized(&self.slots.words, contents, place, guard)
    }

    /// The same of values.
    pub(super) fn values(
        &self,
        contents: &[(u8, u64)],
        place: Place,
        guard: &Guard,
    ) -> Result<Word, AllocError> {
        self.sized(&self.slots.values, contents, place, guard)
    }

    /// The smallest node with so many places.
    fn sized<C: Placed>(
        &self,
        family: &Family<C, P>,
        contents: &[(u8, C)],
        Place { prefix, depth, room }: Place,
        guard: &Guard,
    ) -> Result<Word, AllocError>
    where
        C::Atomic: Send,
    {
        let prefix = prefix & !(u64::MAX >> (8 * depth));
        // `node::limit` says how many go into nodes of lines.
        let size = match contents.len() + room {
            0..=4 if C::KINDS[0] != C::KINDS[1] => 0,
            0..=14 => 1,
            15..=48 => 2,
            _ => 3,
        };
        let kind = C::KINDS[size];
        Ok(match size {
            0 => Word::node(kind, self.filled(&family.four, contents, prefix, guard)?, depth),
            1 => Word::node(kind, self.filled(&family.fourteen, contents, prefix, guard)?, depth),
            2 => Word::node(kind, self.filled(&family.fifty_six, contents, prefix, guard)?, depth),
            _ => Word::node(kind, self.filled(&family.full, contents, prefix, guard)?, depth),
        })
    }

    fn filled<C: Placed, N: Node<C>>(
        &self,
        slots: &P::Slots<N>,
        contents: &[(u8, C)],
        prefix: u64,
        guard: &Guard,
    ) -> Result<NonNull<N>, AllocError> {
        let node = self.alloc(slots, N::new(prefix), guard)?;
        for (byte, content) in contents {
            // SAFETY: not linked yet.
            let added = unsafe { node.as_ref() }.add(*byte, *content);
            debug_assert!(added, "the node has room");
        }
        Ok(node)
    }

    /// A leaf of one to four entries.
    pub(super) fn leaf(&self, entries: &[(u64, u64)], guard: &Guard) -> Result<Word, AllocError> {
        let keys = entries.len();
        Ok(match entries {
            [a] => Word::leaf(self.alloc(&self.slots.leaf1, Leaf::new(&[*a]), guard)?, keys),
            [a, b] => Word::leaf(self.alloc(&self.slots.leaf2, Leaf::new(&[*a, *b]), guard)?, keys),
            [a, b, c] => {
                Word::leaf(self.alloc(&self.slots.leaf3, Leaf::new(&[*a, *b, *c]), guard)?, keys)
            }
            _ => {
                let four = entries.first_chunk().expect("a leaf of up to four");
                Word::leaf(self.alloc(&self.slots.leaf4, Leaf::new(four), guard)?, keys)
            }
        })
    }

    /// A subtree of five entries, which part below the byte before `depth`.
    pub(super) fn burst(&self, entries: &Entries, guard: &Guard) -> Result<Word, AllocError> {
        let entries = entries.as_slice();
        let [first, .., last] = entries else { unreachable!("five entries") };
        let depth = parting(first.0, last.0);
        let prefix = first.0;
        let direct = |(_, value): &(u64, u64)| *value != u64::EMPTY;
        if depth == LAST && entries.iter().all(direct) {
            let contents: Vec<_> =
                entries.iter().map(|(key, value)| (byte_at(*key, depth), *value)).collect();
            return self.values(&contents, Place::exact(prefix, depth), guard);
        }
        let mut children = Children::<P, { LEAF_KEYS + 1 }>::new(self);
        for group in entries.chunk_by(|a, b| byte_at(a.0, depth) == byte_at(b.0, depth)) {
            children.add(byte_at(group[0].0, depth), self.leaf(group, guard)?);
        }
        children.node(Place::exact(prefix, depth), guard)
    }

    /// Retires what a word leads to, without what is below.
    ///
    /// # Safety
    /// It is unlinked for new readers, is retired once, and the guard is of the tree's domain.
    pub(super) unsafe fn retire(&self, word: Word, guard: &Guard) {
        let bytes = super::layout(word).size;
        // SAFETY: the caller's promise.
        unsafe { self.retired.retire(word.into_raw(), bytes, guard) };
    }

    /// Frees what a word leads to, without what is below.
    ///
    /// # Safety
    /// Nobody else has it, or can reach it any more.
    pub(super) unsafe fn free(&self, word: Word) {
        // SAFETY: the caller's promise.
        unsafe { self.slots.free(word) };
    }

    /// Frees the subtree of a word.
    ///
    /// # Safety
    /// As for `free`, of all that is in it.
    pub(super) unsafe fn free_all(&self, root: Word) {
        let mut open = vec![root];
        while let Some(word) = open.pop() {
            if word.kind() != Kind::Leaf {
                // SAFETY: the caller's promise.
                if let NodeRef::Words(node) = unsafe { NodeRef::from_word(word) } {
                    open.extend(node.all().map(|(_, child)| child));
                }
            }
            // SAFETY: the caller's promise.
            unsafe { self.free(word) };
        }
    }

    pub(super) fn stats(&self) -> Vec<PoolStats> {
        let Slots { words, values, leaf1, leaf2, leaf3, leaf4 } = &*self.slots;
        vec![
            words.four.stats(),
            words.fourteen.stats(),
            words.fifty_six.stats(),
            words.full.stats(),
            values.fourteen.stats(),
            values.fifty_six.stats(),
            values.full.stats(),
            leaf1.stats(),
            leaf2.stats(),
            leaf3.stats(),
            leaf4.stats(),
        ]
    }

    pub(super) fn settle(&mut self) {
        self.retired.drain();
    }
}

/// Where a new node goes, and how many places it has beside those that are filled.
#[derive(Clone, Copy)]
pub(super) struct Place {
    prefix: u64,
    depth: usize,
    room: usize,
}

impl Place {
    pub(super) fn exact(prefix: u64, depth: usize) -> Self {
        Self { prefix, depth, room: 0 }
    }

    /// With room for a quarter more, so that the node is not copied again soon.
    pub(super) fn with_room(prefix: u64, depth: usize, filled: usize) -> Self {
        Self { prefix, depth, room: (filled / 4).max(1) }
    }
}

/// Children for a new node, which are freed if it does not come to be.
pub(super) struct Children<'h, P: Placement, const N: usize> {
    home: &'h Home<P>,
    contents: [(u8, Word); N],
    len: usize,
}

impl<'h, P: Placement, const N: usize> Children<'h, P, N> {
    pub(super) fn new(home: &'h Home<P>) -> Self {
        Self { home, contents: [(0, Word::NONE); N], len: 0 }
    }

    /// Adds one that was made for this.
    pub(super) fn add(&mut self, byte: u8, word: Word) {
        self.contents[self.len] = (byte, word);
        self.len += 1;
    }

    /// The node with all of them.
    pub(super) fn node(mut self, place: Place, guard: &Guard) -> Result<Word, AllocError> {
        let node = self.home.words(&self.contents[..self.len], place, guard)?;
        self.len = 0;
        Ok(node)
    }
}

impl<P: Placement, const N: usize> Drop for Children<'_, P, N> {
    fn drop(&mut self) {
        for (_, word) in &self.contents[..self.len] {
            // SAFETY: leaves made for a node that has not come to be.
            unsafe { self.home.free(*word) };
        }
    }
}

/// A leaf that was made and is not linked yet; freed if it does not come to that.
pub(super) struct Spare<'h, P: Placement>(&'h Home<P>, Word);

impl<'h, P: Placement> Spare<'h, P> {
    pub(super) fn new(home: &'h Home<P>, word: Word) -> Self {
        Self(home, word)
    }

    pub(super) fn word(&self) -> Word {
        self.1
    }

    /// It is the tree's.
    pub(super) fn linked(self) {
        std::mem::forget(self);
    }
}

impl<P: Placement> Drop for Spare<'_, P> {
    fn drop(&mut self) {
        // SAFETY: not linked.
        unsafe { self.0.free(self.1) };
    }
}

/// What is in a node, for a copy of it.
pub(super) fn contents<C: Placed>(node: AnySize<'_, C>) -> ([(u8, C); 256], usize)
where
    C::Atomic: Send,
{
    let (mut contents, mut len) = ([(0, C::EMPTY); 256], 0);
    for content in node.all() {
        contents[len] = content;
        len += 1;
    }
    (contents, len)
}
