//! The verbs.

use super::ArtTree;
use super::home::{Children, Place, Spare, contents};
use super::layout;
use super::leaf::{Entries, LEAF_KEYS, LeafRef};
use super::node::{AnySize, Header, LINE, NodeRef, PREFIX, agree, byte_at, parting};
use super::word::{ABSENT, Content, Kind, Word};
use crate::canary::{Canary, planted};
use crate::domain::Guard;
use crate::update::{Step, Update};
use silvics_layout::record::{Read, Why};
use silvics_pool::{AllocError, Placement};
use silvics_sync::version::VersionLock;

/// Where the path of a key ends, as it was found.
#[derive(Clone, Copy)]
pub(super) enum End<'g> {
    /// At a place where there is nothing, or at none.
    Nothing,
    /// At a value.
    Value(u64),
    /// At a leaf, in which the key is here, if it is.
    Leaf(LeafRef<'g>, Option<usize>),
    /// At a child whose prefix is not the key's.
    Parting(&'g Header),
}

impl End<'_> {
    /// The key's value.
    #[inline(always)]
    fn state(self) -> Option<u64> {
        match self {
            Self::Value(value) => Some(value),
            Self::Leaf(leaf, at) => at.map(|at| leaf.value(at)),
            Self::Nothing | Self::Parting(_) => None,
        }
    }
}

/// A node on a path.
#[derive(Clone, Copy)]
pub(super) struct Visit<'g> {
    pub(super) node: NodeRef<'g>,
    pub(super) word: Word,
}

impl Visit<'_> {
    /// # Safety
    /// The word leads to a node, which is not reclaimed as long as `'g` lasts.
    #[inline(always)]
    pub(super) unsafe fn of(word: Word) -> Self {
        // SAFETY: the caller's promise.
        Self { node: unsafe { NodeRef::from_word(word) }, word }
    }

    #[inline(always)]
    pub(super) fn depth(self) -> usize {
        self.word.depth()
    }

    /// What a search reads of the node: the place it comes to, and the keys in its line.
    fn reads<A>(self, place: Option<&A>, why: Why) -> impl Iterator<Item = Read> + use<A> {
        let (layout, object) = (layout(self.word), self.word.object());
        let place = place.map(|place| std::ptr::from_ref(place).addr() - object.addr());
        let keys = match self.word.kind() {
            Kind::Node256 | Kind::Values256 => None,
            Kind::Node4 => Some(layout.search[0].offset),
            // Where there is no place the search has read keys of a line, of which it is not told.
            _ => place.map(|offset| offset / LINE * LINE),
        };
        let keys = keys.map(|offset| layout.read(object, offset, 8, Why::Step));
        keys.into_iter().chain(place.map(|offset| layout.read(object, offset, 8, why)))
    }
}

/// The next step of a path.
enum Next<'g> {
    Ends(End<'g>),
    Child(Visit<'g>),
}

/// The path of a key: the node where it ends and the one above that, which the root has not.
struct Path<'g> {
    parent: Option<Visit<'g>>,
    node: Visit<'g>,
    end: End<'g>,
}

/// A node's lock, which is given back even if an allocator panics.
struct Locked<'g>(&'g VersionLock);

impl<'g> Locked<'g> {
    /// Nothing, if the node is obsolete.
    fn new(at: Visit<'g>) -> Option<Self> {
        let lock = &at.node.header().lock;
        lock.lock().ok().map(|()| Self(lock))
    }

    /// Gives it back, and marks the node as unlinked for good.
    fn obsolete(self) {
        if planted(Canary::ReplacedNotObsolete) {
            return;
        }
        // SAFETY: locked in `new`.
        unsafe { self.0.unlock_obsolete() };
        std::mem::forget(self);
    }
}

impl Drop for Locked<'_> {
    fn drop(&mut self) {
        // SAFETY: locked in `new`.
        unsafe { self.0.unlock() };
    }
}

/// What came of an attempt.
enum Attempt {
    Done(Option<u64>),
    /// The node has no place for the key, or must hold words instead of values.
    Rebuild {
        boxed: bool,
    },
    Restart,
    /// Done, and the node may be larger than what is in it asks for.
    Shrunk(Option<u64>),
}

impl<P: Placement> ArtTree<P> {
    /// Goes on from a node towards a key.
    #[inline(always)]
    fn next(at: Visit<'_>, key: u64) -> Next<'_> {
        let byte = byte_at(key, at.depth());
        let word = match at.node {
            NodeRef::Values(node) => {
                let place = node.find(byte);
                P::saw(|| at.reads(place, Why::Found));
                let value = place.map_or(ABSENT, u64::load);
                return Next::Ends(if value == ABSENT { End::Nothing } else { End::Value(value) });
            }
            NodeRef::Words(node) => {
                let place = node.find(byte);
                P::saw(|| at.reads(place, Why::Step));
                place.map_or(Word::NONE, Word::load)
            }
        };
        if word.is_none() {
            return Next::Ends(End::Nothing);
        }
        if word.kind() == Kind::Leaf {
            // SAFETY: read under the guard.
            let leaf = unsafe { LeafRef::from_word(word) };
            let place = leaf.find(key);
            P::saw(|| {
                let (layout, object) = (layout(word), word.object());
                let keys = 8 * leaf.len();
                let value = place.map(|at| layout.read(object, keys + 8 * at, 8, Why::Found));
                std::iter::once(layout.read(object, 0, keys, Why::Found)).chain(value)
            });
            return Next::Ends(End::Leaf(leaf, place));
        }
        // SAFETY: read under the guard.
        let child = unsafe { Visit::of(word) };
        if child.depth() > at.depth() + 1 {
            let header = child.node.header();
            P::saw(|| [layout(word).read(word.object(), PREFIX, 8, Why::Step)]);
            if !agree(header.prefix, key, child.depth()) {
                return Next::Ends(End::Parting(header));
            }
        }
        Next::Child(child)
    }

    /// The value of a key. The same way as a writer goes; but whether there is a value is not decided by a
    /// branch, so that the next lookup can begin while this one waits for memory.
    #[inline(always)]
    pub(super) fn find(&self, key: u64, _guard: &Guard) -> Option<u64> {
        let mut at = self.root();
        loop {
            if let NodeRef::Values(node) = at.node {
                let place = node.find(byte_at(key, at.depth()));
                P::saw(|| at.reads(place, Why::Found));
                let value = place.map_or(ABSENT, u64::load); // LP(get)
                return (value != ABSENT).then_some(value);
            }
            match Self::next(at, key) {
                Next::Child(child) => at = child,
                Next::Ends(End::Leaf(leaf, _)) => return leaf.get(key), // LP(get)
                Next::Ends(_) => return None,
            }
        }
    }

    /// The path of a key.
    #[inline]
    fn seek<'g>(&'g self, key: u64, _guard: &'g Guard) -> Path<'g> {
        let (mut parent, mut node) = (None, self.root());
        loop {
            match Self::next(node, key) {
                Next::Child(child) => (parent, node) = (Some(node), child),
                Next::Ends(end) => return Path { parent, node, end },
            }
        }
    }

    #[inline]
    pub(super) fn do_update(
        &self,
        key: u64,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        loop {
            let path = self.seek(key, guard);
            let state = path.end.state();
            if verb.step(state) == Step::Keep {
                return Ok(state); // LP(kept): the last load
            }
            match self.attempt(&path, key, verb, guard)? {
                Attempt::Done(state) => return Ok(state),
                Attempt::Shrunk(state) => {
                    self.tidy(key, path.node.depth(), guard);
                    return Ok(state);
                }
                Attempt::Rebuild { boxed } => {
                    let parent = path.parent.expect("the root has a place for each byte");
                    self.rebuild(parent, path.node, key, boxed, guard)?;
                }
                Attempt::Restart => {}
            }
        }
    }

    /// Locks the node where a path has ended, looks again, and does what the verb wants.
    fn attempt(
        &self,
        path: &Path<'_>,
        key: u64,
        verb: Update,
        guard: &Guard,
    ) -> Result<Attempt, AllocError> {
        let at = path.node;
        let Some(_lock) = Locked::new(at) else { return Ok(Attempt::Restart) };
        if planted(Canary::SeenBeforeLocked) {
            return self.act(at, path.end, key, verb, guard);
        }
        match Self::next(at, key) {
            Next::Child(_) => Ok(Attempt::Restart),
            Next::Ends(end) => self.act(at, end, key, verb, guard),
        }
    }

    /// Does what the verb wants, under the lock of the node.
    fn act(
        &self,
        at: Visit<'_>,
        end: End<'_>,
        key: u64,
        verb: Update,
        guard: &Guard,
    ) -> Result<Attempt, AllocError> {
        let (state, byte) = (end.state(), byte_at(key, at.depth()));
        match (verb.step(state), at.node) {
            (Step::Keep, _) => return Ok(Attempt::Done(state)),
            (Step::Put(ABSENT), NodeRef::Values(_)) => return Ok(Attempt::Rebuild { boxed: true }),
            (Step::Put(value), NodeRef::Values(node)) => match end {
                End::Value(_) => node.replace(byte, value),
                _ if !node.put(byte, value) => return Ok(Attempt::Rebuild { boxed: false }),
                _ => self.len.add(1),
            },
            (Step::Take, NodeRef::Values(node)) => {
                node.take(byte);
                self.len.add(-1);
                return Ok(Attempt::Shrunk(state));
            }
            (Step::Put(value), NodeRef::Words(node)) => {
                return self.put(at, node, end, (key, value), guard);
            }
            (Step::Take, NodeRef::Words(node)) => {
                let End::Leaf(leaf, Some(place)) = end else { unreachable!("a present key") };
                let old = node.at(byte);
                if leaf.len() > 1 {
                    let rest = Entries::of(leaf).without(place);
                    node.replace(byte, self.home.leaf(rest.as_slice(), guard)?);
                } else {
                    node.take(byte);
                }
                self.len.add(-1);
                // SAFETY: unlinked by the store above, under the lock.
                unsafe { self.home.retire(old, guard) };
                return Ok(Attempt::Shrunk(state));
            }
        }
        Ok(Attempt::Done(state))
    }

    /// Makes a key present below a node of words, under its lock.
    fn put(
        &self,
        at: Visit<'_>,
        node: AnySize<'_, Word>,
        end: End<'_>,
        (key, value): (u64, u64),
        guard: &Guard,
    ) -> Result<Attempt, AllocError> {
        let byte = byte_at(key, at.depth());
        let state = end.state();
        match end {
            End::Leaf(leaf, Some(place)) => {
                leaf.set_value(place, value); // LP(insert, compare_exchange: replaced)
                return Ok(Attempt::Done(state));
            }
            End::Leaf(leaf, None) => {
                let entries = Entries::of(leaf).with(key, value);
                let old = node.at(byte);
                let new = if leaf.len() < LEAF_KEYS {
                    self.home.leaf(entries.as_slice(), guard)?
                } else {
                    self.home.burst(&entries, guard)?
                };
                node.replace(byte, new); // LP(inserted)
                // SAFETY: unlinked by the store above, under the lock.
                unsafe { self.home.retire(old, guard) };
            }
            End::Parting(header) => {
                let child = node.at(byte);
                let leaf = self.spare((key, value), guard)?;
                let depth = parting(header.prefix, key);
                let (other, own) = (byte_at(header.prefix, depth), byte_at(key, depth));
                let both = [(other, child), (own, leaf.word())];
                node.replace(byte, self.home.words(&both, Place::exact(key, depth), guard)?); // LP(inserted)
                leaf.linked();
            }
            End::Nothing | End::Value(_) => {
                let leaf = self.spare((key, value), guard)?;
                if !node.put(byte, leaf.word()) {
                    return Ok(Attempt::Rebuild { boxed: false });
                }
                leaf.linked();
            }
        }
        self.len.add(1);
        Ok(Attempt::Done(state))
    }

    /// A leaf of one entry.
    fn spare(&self, entry: (u64, u64), guard: &Guard) -> Result<Spare<'_, P>, AllocError> {
        Ok(Spare::new(&self.home, self.home.leaf(&[entry], guard)?))
    }

    /// Replaces a node by a copy that has room for more, or by one that leads to leaves
    /// instead of values. Nothing, if somebody has changed the two nodes.
    fn rebuild(
        &self,
        parent: Visit<'_>,
        at: Visit<'_>,
        key: u64,
        boxed: bool,
        guard: &Guard,
    ) -> Result<(), AllocError> {
        self.replaced(parent, at, key, guard, |this| {
            let (prefix, depth) = (at.node.header().prefix, at.depth());
            let room = |len| Place::with_room(prefix, depth, len);
            Ok(Some(match at.node {
                NodeRef::Words(node) => {
                    let (contents, len) = contents(node);
                    this.home.words(&contents[..len], room(len), guard)?
                }
                NodeRef::Values(node) if boxed => {
                    let mut children = Children::<P, 256>::new(&this.home);
                    for (byte, value) in node.all() {
                        let entry = [(prefix | u64::from(byte), value)];
                        children.add(byte, this.home.leaf(&entry, guard)?);
                    }
                    children.node(Place::exact(prefix, depth), guard)?
                }
                NodeRef::Values(node) => {
                    let (contents, len) = contents(node);
                    this.home.values(&contents[..len], room(len), guard)?
                }
            }))
        })
    }

    /// Locks a node and its parent and puts what `make` makes in the node's place; nothing, if `make` has
    /// nothing, or if the two are not as they were.
    fn replaced(
        &self,
        parent: Visit<'_>,
        at: Visit<'_>,
        key: u64,
        guard: &Guard,
        make: impl FnOnce(&Self) -> Result<Option<Word>, AllocError>,
    ) -> Result<(), AllocError> {
        let NodeRef::Words(above) = parent.node else { unreachable!("values have no children") };
        let byte = byte_at(key, parent.depth());
        let Some(outer) = Locked::new(parent) else { return Ok(()) };
        if above.at(byte) != at.word && !planted(Canary::ParentWordTrusted) {
            return Ok(());
        }
        let (word, inner) = if planted(Canary::CopiedBeforeLocked) {
            let word = make(self)?;
            (word, Locked::new(at))
        } else {
            let Some(inner) = Locked::new(at) else { return Ok(()) };
            (make(self)?, Some(inner))
        };
        let (Some(word), Some(inner)) = (word, inner) else { return Ok(()) };
        if word.is_none() {
            above.take(byte);
        } else {
            above.replace(byte, word);
        }
        inner.obsolete();
        drop(outer);
        // SAFETY: unlinked above, by us alone.
        unsafe { self.home.retire(at.word, guard) };
        Ok(())
    }

    /// Makes the nodes on a key's path as small as what is in them, from that depth upwards, as far as
    /// they have become smaller; as far as there is memory for it.
    #[cold]
    fn tidy(&self, key: u64, mut depth: usize, guard: &Guard) {
        while depth > 0 {
            let (mut parent, mut at) = (self.root(), self.root());
            while at.depth() < depth {
                match Self::next(at, key) {
                    Next::Child(child) => (parent, at) = (at, child),
                    Next::Ends(_) => break,
                }
            }
            if at.depth() != depth {
                return;
            }
            if !is_large(at, at.node.header().live()) {
                return;
            }
            let smaller = |this: &Self| this.smaller(at, guard);
            if self.replaced(parent, at, key, guard, smaller).is_err() {
                return;
            }
            let NodeRef::Words(above) = parent.node else { return };
            if above.at(byte_at(key, parent.depth())) == at.word {
                continue; // somebody was in the way
            }
            depth = parent.depth();
        }
    }

    /// What a node can be replaced by, under its lock; nothing, if it is as it should be.
    fn smaller(&self, at: Visit<'_>, guard: &Guard) -> Result<Option<Word>, AllocError> {
        let live = at.node.header().live();
        if !is_large(at, live) {
            return Ok(None);
        }
        let (prefix, depth) = (at.node.header().prefix, at.depth());
        match at.node {
            NodeRef::Values(node) => {
                if live > LEAF_KEYS {
                    let (contents, len) = contents(node);
                    let exact = Place::exact(prefix, depth);
                    return self.home.values(&contents[..len], exact, guard).map(Some);
                }
                let mut entries = Entries::default();
                node.all().for_each(|(byte, value)| entries.push(prefix | u64::from(byte), value));
                self.as_leaf(&entries, guard).map(Some)
            }
            NodeRef::Words(node) => {
                if live == 0 {
                    return Ok(Some(Word::NONE));
                }
                let only = node.all().next().filter(|_| live == 1);
                if let Some((_, child)) = only {
                    return Ok(Some(child));
                }
                let (contents, len) = contents(node);
                self.home.words(&contents[..len], Place::exact(prefix, depth), guard).map(Some)
            }
        }
    }

    fn as_leaf(&self, entries: &Entries, guard: &Guard) -> Result<Word, AllocError> {
        match entries.as_slice() {
            [] => Ok(Word::NONE),
            entries => self.home.leaf(entries, guard),
        }
    }
}

/// The places of a node.
fn size(at: Visit<'_>) -> usize {
    match at.word.kind() {
        Kind::Leaf | Kind::Node4 => 4,
        Kind::Node14 | Kind::Values14 => 14,
        Kind::Node56 | Kind::Values56 => 56,
        Kind::Node256 | Kind::Values256 => 256,
    }
}

/// Whether a node with so many places that are not empty should be a smaller one: some places before one
/// would grow again.
fn is_large(at: Visit<'_>, live: usize) -> bool {
    live < match (size(at), at.node) {
        (4, _) => 2,
        (14, _) => LEAF_KEYS,
        (56, _) => 11,
        _ => 41,
    }
}
