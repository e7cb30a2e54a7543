//! The memory of all objects. The lock-free tree ([`crate::lfca`]) has its own nodes above the same
//! containers: see [`Upper`].

use super::avl::{self, AVL};
use super::build::{Build, Form};
use super::key::{LENGTH_BYTES, Slots, object_word};
use super::node::{self, INNER, LEAF, NodeRef};
use super::route::{BASE, BASE_BYTES, Base, BaseRef, ROUTE, Route, RouteRef};
use super::word::{Kind, Word};
use crate::domain::Guard;
use crate::error::reserved;
use crate::frame::Frame;
use crate::memory::Memory;
use crate::memory::late::{LatePools, PoolSet};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_pool::{AllocError, BytesAlloc, BytesPool, Config, Placement, PoolStats};
use silvics_sync::version::VersionLock;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// The layout of the shortest key: the length, then the bytes.
pub(crate) const KEY: NodeLayout = NodeLayout {
    kind: "key",
    size: LENGTH_BYTES,
    align: 8,
    search: &[],
    found: &[Field::new("key", 0, LENGTH_BYTES)],
};

/// The nodes above the containers of a tree, and its containers.
pub(crate) trait Upper<K: Slots + ?Sized>: 'static {
    /// The kinds of objects: route nodes, base nodes, the nodes of containers ([`INNER`] and
    /// [`LEAF`], or [`AVL`]), then joins if there are any, then [`KEY`].
    const KINDS: &'static [NodeLayout];

    /// The bytes of a route node, a base node or a join.
    fn bytes(kind: Kind) -> usize;

    /// Adds the objects that such a node owns, and those below it.
    ///
    /// # Safety
    /// Nobody else has an object of the tree. The word leads to such a node.
    unsafe fn below(word: Word, open: &mut Vec<Word>);
}

/// Each build of [`CaTree`](crate::CaTree) has nodes with locks.
impl<K: Slots + ?Sized, B: Build> Upper<K> for B {
    const KINDS: &'static [NodeLayout] = match B::FORM {
        Form::Blocks => &[ROUTE, BASE, INNER, LEAF, KEY],
        Form::Avl => &[ROUTE, BASE, AVL, KEY],
    };

    fn bytes(kind: Kind) -> usize {
        if kind == Kind::Base { BASE_BYTES } else { size_of::<Route<K>>() }
    }

    unsafe fn below(word: Word, open: &mut Vec<Word>) {
        // SAFETY: our contract.
        unsafe {
            if word.kind() == Kind::Base {
                open.push(BaseRef::new(word).get().container.word());
            } else {
                let route = RouteRef::<K>::new(word);
                open.extend([false, true].map(|right| route.child(right).word()));
                open.extend(K::object(route.bound()).map(Word::key));
            }
        }
    }
}

/// The pools, in the order of [`Upper::KINDS`]. A retired word says of which kind its object is.
struct Pools<K: ?Sized, P: Placement, U> {
    pools: Vec<P::Bytes>,
    marker: PhantomData<fn(&K, U)>,
}

/// The number of a kind's pool.
fn number<K: Slots + ?Sized, U: Upper<K>>(kind: Kind) -> usize {
    match kind {
        Kind::Route | Kind::None => 0,
        Kind::Base => 1,
        Kind::Inner | Kind::Avl => 2,
        Kind::Leaf => 3,
        Kind::Join => 4,
        Kind::Key => U::KINDS.len() - 1,
    }
}

/// The kinds that trees of such keys have.
pub(crate) const fn kinds<K: Slots + ?Sized, U: Upper<K>>() -> &'static [NodeLayout] {
    if K::HAS_OBJECTS { U::KINDS } else { U::KINDS.split_at(U::KINDS.len() - 1).0 }
}

// SAFETY: the pools may be shared by all threads. `free` gives an object to the pool of its kind:
// the word says of which kind it is (N1, R1), and the word or the object says how many bytes it
// has.
unsafe impl<K: Slots + ?Sized, P: Placement, U: Upper<K>> PoolSet for Pools<K, P, U> {
    type Placement = P;
    const KINDS: &'static [NodeLayout] = kinds::<K, U>();

    fn new(config: &Config) -> Self {
        let pools = Self::KINDS.iter().map(|of| P::Bytes::new(of.kind, config)).collect();
        Self { pools, marker: PhantomData }
    }

    unsafe fn extent(object: NonNull<u8>) -> (NonNull<u8>, usize) {
        let word = Word::from_raw(object);
        let object = word.object();
        match word.kind() {
            Kind::Route | Kind::Base | Kind::Join | Kind::None => (object, U::bytes(word.kind())),
            Kind::Inner | Kind::Leaf | Kind::Avl => NodeRef::<K>::extent(word),
            // SAFETY: our contract: the object is not reclaimed. Its length never changes.
            Kind::Key => (object, LENGTH_BYTES + unsafe { object.cast::<u64>().read() } as usize),
        }
    }

    unsafe fn free(&self, object: NonNull<u8>) {
        // SAFETY: our contract.
        unsafe {
            let (memory, bytes) = Self::extent(object);
            self.pools[number::<K, U>(Word::from_raw(object).kind())].free(memory, bytes);
        }
    }

    fn stats(&self) -> Vec<PoolStats> {
        self.pools.iter().map(BytesAlloc::stats).collect()
    }

    fn shrink(&self) -> usize {
        self.pools.iter().map(BytesAlloc::shrink).sum()
    }
}

/// The objects of a tree, and those that wait to be freed.
pub(crate) struct Objects<K: Slots + ?Sized, P: Placement, U: Upper<K>>(LatePools<Pools<K, P, U>>);

impl<K: Slots + ?Sized, P: Placement, U: Upper<K>> Objects<K, P, U> {
    pub(crate) fn new(frame: Frame) -> Result<Self, AllocError> {
        LatePools::new(frame).map(Self)
    }

    #[inline(always)]
    pub(crate) fn frame(&self) -> &Frame {
        &self.0.frame
    }

    pub(crate) fn memory(&self) -> &dyn Memory {
        &self.0
    }

    pub(crate) fn memory_mut(&mut self) -> &mut dyn Memory {
        &mut self.0
    }

    fn alloc(&self, kind: Kind, bytes: usize, may: May<'_>) -> Result<NonNull<u8>, AllocError> {
        let number = number::<K, U>(kind);
        let of = |pools: &Pools<K, P, U>| pools.pools[number].alloc(bytes);
        match may {
            May::Flush(guard) => self.0.alloc((number, BytesPool::slot(bytes)), of, guard),
            May::Fail => {
                let found = self.0.alloc_at_hand((number, BytesPool::slot(bytes)), of);
                found.ok_or(AllocError::System { requested: bytes })
            }
        }
    }

    /// Retires an object, but not the objects that it leads to.
    ///
    /// # Safety
    /// No new reader can reach the object. It is retired once.
    pub(crate) unsafe fn retire(&self, word: Word, guard: &Guard) {
        // SAFETY: our contract.
        unsafe { self.0.retire(word.into_raw(), guard) };
    }

    /// Frees an object, but not the objects that it leads to.
    ///
    /// # Safety
    /// Nobody else has the object. It is freed once.
    pub(crate) unsafe fn free(&self, word: Word) {
        // SAFETY: our contract.
        unsafe { self.0.free(word.into_raw()) };
    }

    /// Frees a subtree with all its keys.
    ///
    /// # Safety
    /// Nobody else has an object of it. Each is freed once.
    pub(crate) unsafe fn free_all(&self, root: Word) {
        if cfg!(silvics_shuttle) && std::thread::panicking() {
            return; // a model has found a mistake, after which objects may be freed already
        }
        let mut open = vec![root];
        while let Some(word) = open.pop() {
            // SAFETY: our contract.
            unsafe {
                match word.kind() {
                    Kind::None => continue,
                    Kind::Key => {}
                    Kind::Route | Kind::Base | Kind::Join => U::below(word, &mut open),
                    Kind::Inner => {
                        let node = NodeRef::<K>::new(word);
                        open.extend((0..node.len()).map(|at| node.child(at)));
                        let bounds = (1..node.len()).filter_map(|at| K::object(node.key(at)));
                        open.extend(bounds.map(Word::key));
                    }
                    Kind::Avl => {
                        let node = NodeRef::<K>::new(word);
                        open.extend([false, true].map(|right| node.link(right).word()));
                        open.extend(object_word::<K>(node.key(0)));
                    }
                    Kind::Leaf => {
                        let node = NodeRef::<K>::new(word);
                        let keys = (0..node.len()).filter_map(|at| K::object(node.key(at)));
                        open.extend(keys.map(Word::key));
                    }
                }
                self.free(word);
            }
        }
    }
}

/// The remedy of an allocation if memory is short.
#[derive(Clone, Copy)]
pub(crate) enum May<'g> {
    /// Flush what this thread has retired, and try again.
    Flush(&'g Guard),
    /// Fail: the caller can do without.
    Fail,
}

/// Objects that are made for a change. Dropping the list frees them.
pub(crate) struct Fresh<'t, K: Slots + ?Sized, P: Placement, U: Upper<K>> {
    objects: &'t Objects<K, P, U>,
    may: May<'t>,
    /// The first of them, so that most changes need no list in the heap.
    few: [Word; FEW],
    len: usize,
    more: Vec<Word>,
}

/// The objects that a list has in itself.
const FEW: usize = 12;

impl<'t, K: Slots + ?Sized, P: Placement, U: Upper<K>> Fresh<'t, K, P, U> {
    pub(crate) fn new(objects: &'t Objects<K, P, U>, may: May<'t>) -> Self {
        Self { objects, may, few: [Word::NONE; FEW], len: 0, more: Vec::new() }
    }

    /// Allocates an object, which `init` initialises, and whose word it returns.
    pub(crate) fn add(
        &mut self,
        kind: Kind,
        bytes: usize,
        init: impl FnOnce(NonNull<u8>) -> Word,
    ) -> Result<Word, AllocError> {
        if self.len >= FEW {
            reserved(&mut self.more, 1)?;
        }
        let word = init(self.objects.alloc(kind, bytes, self.may)?);
        match self.few.get_mut(self.len) {
            Some(place) => *place = word,
            None => self.more.push(word),
        }
        self.len += 1;
        Ok(word)
    }

    /// A container node without entries.
    pub(crate) fn node(
        &mut self,
        is_leaf: bool,
        capacity: usize,
    ) -> Result<NodeRef<'t, K>, AllocError> {
        // SAFETY: it is initialised as a whole.
        unsafe { self.node_to_fill(is_leaf, capacity, 0) }
    }

    /// A container node without entries. The caller puts the given number of them there first.
    ///
    /// # Safety
    /// See [`NodeRef::init_from`].
    pub(crate) unsafe fn node_to_fill(
        &mut self,
        is_leaf: bool,
        capacity: usize,
        entries: usize,
    ) -> Result<NodeRef<'t, K>, AllocError> {
        let (kind, word): (_, fn(NonNull<u8>, usize) -> Word) =
            if is_leaf { (Kind::Leaf, Word::leaf) } else { (Kind::Inner, Word::inner) };
        let word = self.add(kind, node::bytes::<K>(is_leaf, capacity), |object| {
            // SAFETY: fresh memory of the node's size, and our contract.
            unsafe { NodeRef::<K>::init_from(word(object, capacity), entries) }.word()
        })?;
        // SAFETY: it was initialised above, and stays as long as the list or the tree.
        Ok(unsafe { NodeRef::new(word) })
    }

    /// The slot of a key, with an object if it needs one.
    pub(crate) fn key(&mut self, key: K::New<'_>, is_bound: bool) -> Result<K::Slot, AllocError> {
        let bytes = K::object_bytes(key, is_bound);
        if bytes == 0 {
            // SAFETY: the key needs no object.
            return Ok(unsafe { K::slot(key, None) });
        }
        let mut slot = None;
        self.add(Kind::Key, bytes, |object| {
            // SAFETY: fresh memory of the size that the key needs.
            slot = Some(unsafe { K::slot(key, Some(object)) });
            Word::key(object)
        })?;
        slot.map_or_else(|| unreachable!("`add` calls its argument"), Ok)
    }

    /// The objects are linked.
    pub(crate) fn linked(&mut self) {
        self.len = 0;
        self.more.clear();
    }
}

impl<'t, K: Slots + ?Sized, P: Placement, B: Build> Fresh<'t, K, P, B> {
    /// A node of an AVL tree, without children.
    pub(super) fn avl(&mut self, entry: (K::Slot, u64)) -> Result<NodeRef<'t, K>, AllocError> {
        let word = self.add(Kind::Avl, avl::bytes::<K>(), |object| {
            // SAFETY: fresh memory of the node's size.
            unsafe { NodeRef::<K>::init_avl(Word::avl(object), entry) }.word()
        })?;
        // SAFETY: it was initialised above, and stays as long as the list or the tree.
        Ok(unsafe { NodeRef::new(word) })
    }

    pub(crate) fn base(&mut self, container: Word) -> Result<Word, AllocError> {
        self.add(Kind::Base, BASE_BYTES, |object| {
            // SAFETY: fresh memory of the base node's size.
            unsafe { object.cast::<Base>().write(Base::new(container)) };
            Word::base(object)
        })
    }

    pub(crate) fn route(
        &mut self,
        left: Word,
        bound: K::Slot,
        right: Word,
    ) -> Result<Word, AllocError> {
        self.add(Kind::Route, size_of::<Route<K>>(), |object| {
            // SAFETY: fresh memory of the route node's size.
            unsafe {
                object.cast::<Route<K>>().write(Route::new(VersionLock::new(), left, bound, right));
            }
            Word::route(object)
        })
    }
}

impl<K: Slots + ?Sized, P: Placement, U: Upper<K>> Drop for Fresh<'_, K, P, U> {
    fn drop(&mut self) {
        for word in self.few[..self.len.min(FEW)].iter().chain(&self.more) {
            // SAFETY: the object was made for this change and never linked, so nobody else has it.
            unsafe { self.objects.free(*word) };
        }
    }
}

/// The position in memory of a key's object.
///
/// # Safety
/// The object is initialised and not reclaimed during the call.
pub(crate) unsafe fn placed_key(object: NonNull<u8>) -> Placed {
    // SAFETY: our contract.
    let len = unsafe { object.cast::<u64>().read() } as usize;
    let address = object.as_ptr().addr();
    Placed { layout: &KEY, address, before: 0, bytes: LENGTH_BYTES + len }
}
