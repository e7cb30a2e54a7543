//! Lock-free contention adapting search tree.
//!
//! # Source
//! Winblad, Sagonas and Jonsson, "Lock-free contention adapting search trees", SPAA 2018 (the tree,
//! its joins and its ranges); Winblad, "Faster concurrent range queries with contention adapting
//! search trees using immutable data", ICCSW 2017 (immutable containers). The constants are those
//! of [`ca`](crate::ca), and the paper's for ranges. The container is the B⁺-tree of `ca`, copied
//! along a path as in Driscoll, Sarnak, Sleator and Tarjan, "Making data structures persistent",
//! JCSS 1989.
//!
//! # Algorithm
//! *Base nodes* divide the keys among them, and *route nodes* form a binary search tree above them.
//! A base node never changes: it has a *container*, a sorted map that never changes either. A
//! writer makes a new base node, and exchanges the word of the place that leads to the old one. If
//! the exchange fails, another thread has come first: this is contention, and many such failures
//! split the base node. Writes that succeed at once join it with its neighbour.
//! ```text
//! get(k):    descend from the root: left at a bound that is larger than k, else right
//!            search the container
//! update(k): descend to the place of the base node B
//!            if a join has claimed the place: help it (below), and begin again
//!            N := a copy of B with the change (`edit.rs`)
//!            exchange the word of the place, from B to N; if it is another one, begin again
//!            count whether this was the first attempt; split or join N (`adapt.rs`)
//! join(B):   P := the route node of B; M := the base node beside B, in the subtree of P
//!            J := a join of B and M, with a base node N that has the entries of both
//!            claim: exchange the words of four places for words that lead to J:
//!                Main: the place of B       Neighbour: the place of M
//!                Other: the other child of P, if that is a route node      Above: that of P
//!            commit J, unless another thread has aborted it
//!            exchange Above for Past, which leads to the other child of P, or to N if that is M
//!            set J to passed; then exchange Past for this node, and Neighbour for N
//! help(J):   abort J unless it is decided. If it is aborted, give the place its old word back
//!            if it is committed: take the last two steps, the second for this place
//! ```
//! For readers, a claimed place leads to the node that it had before, with two exceptions: `Past`
//! leads past the parent, and `Neighbour` leads to N once J is committed. So readers never wait and
//! never restart.
//!
//! # Departures
//! 1. **A join claims places, not nodes.** The paper replaces B and M by copies with a pointer to
//!    the join, and route nodes have `valid` and `join_id`. There, a node of a join that has ended
//!    still refers to it, which needs a garbage collector. Here the word of a claimed place leads
//!    to the join, and no node does. A place of an unlinked route node stays claimed for ever, so
//!    that an exchange there fails: that is the paper's `valid`.
//! 2. **The joined container is made before the first claim**, since containers do not change. So a
//!    committed join needs no memory, and each of its words is known from the beginning.
//! 3. **A snapshot puts no nodes into the tree.** The paper puts nodes with a common result in the
//!    place of the base nodes of a range, and writers help to complete it. Here a snapshot collects
//!    the base nodes and validates that their places still lead to them: the containers are the
//!    result. If writers disturb it for long, it joins base nodes, the first of its range with its
//!    neighbour. So in the end it has few of them to validate.
//! 4. **Statistics of a base node change in place**, when an operation uses several base nodes.
//!    Updates may get lost.
//! 5. **A base node that has lost its last entry is joined at once**, as in `ca`, and one write in
//!    512 takes a part off the statistics of a random base node.
//!
//! # Invariants
//! * C1: A container never changes after it was linked. An object that leaves with a replaced base
//!   node (`gone` of an [edit](self#files)) is in no later container. It is retired once, by the
//!   thread whose exchange has unlinked it, or by the owner of the join that did.
//! * C2: The keys of a container ascend, its nodes are not empty, and all leaves are equally deep
//!   (N2 and N4 of [`ca`](crate::ca)).
//! * C3: Keys of [`OrdMap`](crate::OrdMap) have no bounds of their own. There, each bound within a
//!   container is the key of the first entry below its child, and so a key of the container. A
//!   change of the first entry of a node renews the bound above it, which is found by its position.
//!   The keys of route nodes are held (`bounds.rs`).
//! * T1: Each way from the root ends at a base node. A word that was replaced never comes back,
//!   except that a claim may be taken back. (A guard keeps the address from being used again.)
//! * T2: A base node has the keys between two bounds, which do not change while it is linked.
//! * J1: Only the owner of a join claims places for it, each once. It commits the join only when
//!   all are claimed, and only aborted joins lose claims before. So at the commit all places have
//!   the words that the join names. The parent is linked then, and the neighbour is beside the base
//!   node: only a join removes what is between two places, and only a split of one of the two base
//!   nodes adds something.
//! * J2: All places of an unlinked route node are claimed, by the committed join that has it as its
//!   parent. So a route node with a place that is free, or that another join has claimed, is
//!   linked.
//! * J3: The owner finishes its join before it returns: its own attempts fail only where others
//!   have done the step. Then no linked place leads to the join, and the owner retires it. If it
//!   was committed, the owner also retires the parent, the two base nodes, and `gone`.
//! * J4: The place above stays claimed until the join is passed. So a thread that finds a join
//!   committed, and not passed, may use the place above: its route node is linked at that moment.
//! * Q1: An object that a thread reaches under a guard is not reclaimed while the guard lives.
//!
//! # Why nothing is reclaimed too early
//! Q1 follows from this: each object on the way of a thread was linked at some moment since its
//! guard was taken, where a join counts as linked while a linked place leads to it, and a claimed
//! place links the node that readers find there. Objects are retired after they are unlinked for
//! good. By induction along the way, let x be linked at a moment t₁ of the guard, and let its word
//! that leads to y be read at t₂.
//!
//! * If x is linked at t₂, so is y.
//! * Else x was unlinked in between. If x is a base node or a container node, the word never
//!   changes, and y was linked with x (C1). If x is a route node, a join J has unlinked it, and
//!   claimed its places before (J2). So the word leads to J, which was linked when x was unlinked.
//! * If x is a join, y is one of its nodes, named by the role of the place where x was found. The
//!   place led to x at t₁, or was in a route node that x unlinked after the guard was taken.
//!   `Main`, `Other`, `Above`, and `Neighbour` before the commit: a claimed place keeps the node
//!   that it had, because an exchange that would replace it fails. `Past`, and `Neighbour` after
//!   the commit: the node is linked there by the claim, and can be replaced only after the claim,
//!   or if the place is one of the parent, only after the parent was unlinked, so after t₁.
//!
//! | pointer | why its target is there |
//! |---|---|
//! | child of a route node, root | the word was read under the guard: above |
//! | container of a base node, children and keys in it | C1: it leaves with the base node, or later |
//! | bound of a route node | the object is retired with the route node, or moves to the container of the join, and no base node in the place of that one is linked before the route node is unlinked. A key of `OrdMap` is held until then (L1) |
//! | `main`, `neighbour`, `parent`, `rest`, `joined` of a join | only that of the place's role is followed: above |
//! | `above` of a join | it is followed only as J4 says; the root is always there |
//! | places, route nodes and base nodes of the owner | it has read them under the guard that it still has |
//!
//! A node has no pointer upwards, and none to a join.
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | root, children of route nodes | load, exchange | `SeqCst` | each other | linearization points are in one order |
//! | state of a join | load, exchange | `SeqCst` | each other | a reader that finds a place past the parent also finds the join committed |
//! | children of container nodes | load, store | Acquire, Release | each other | as in `ca`; the exchange of the place publishes all that was made before |
//! | fields of container nodes | all | Relaxed | – | they do not change after the exchange that publishes them. Copies of them are plain: the node that is read never changes, and no other thread has the one that is written |
//! | statistics | all | Relaxed | – | a guide: every value is a right one |
//! | `lines` | add | Relaxed | – | all results differ |
//!
//! The object behind a place is initialised before the exchange. Under exclusive access
//! (`bulk_load`, `OrdMap::from_sorted`), a place is stored with Release and loaded with Acquire, as
//! no other thread has an order to see.
//!
//! # Linearization points
//! | method, outcome | point |
//! |---|---|
//! | `update` that changes a key, `pop_first`, `pop_last` | the exchange of the place |
//! | `get`, `update` that keeps the state | the load of the word that leads to the base node, or just before its route node was unlinked |
//! | `first`, `last` | as `get`, for the base node at the end; if that is empty, as a snapshot |
//! | `collect_range` | between the last base node that is collected and the first that is validated; of one base node, as `get` |
//! | `pop_first`, `pop_last` of an empty tree | as a snapshot |
//!
//! The base node that a lookup finds was linked at some moment of the call, with the key in its
//! range (see above): that moment is the point. A base node that was replaced since then was
//! replaced during the call, so the answer is that of a lookup just before. While a join is
//! committed and not passed, the base nodes B and N are both linked, and have the same entries for
//! the keys of B: N is replaced only after the join has passed.
//!
//! A snapshot reads the place of each base node twice. If both words are the same free word, the
//! base node was linked in between (T1, J2). So all were linked between the two passes. Each was
//! found as the one that has the key where the one before it ends, by a bound that may be too small
//! if its route node is unlinked. Then both would have this key, and T2 makes them the same base
//! node. So together they have all keys of the range.
//!
//! # Progress
//! Updates are lock-free among themselves: an exchange fails only because another thread has
//! replaced a base node, or has claimed a place for a join, and each join of an update follows a
//! write. A claim is taken back or finished by the next thread that comes, so nobody waits for a
//! thread that has stopped. Atomic ranges that are disturbed again and again, and pops at an empty
//! base node, join base nodes until they succeed. Two of them may abort each other's joins, and
//! disturb writers. So they are obstruction-free only; between attempts they wait for longer and
//! longer times. `first` and `last` at an empty base node need a small list, and try again until it
//! can be allocated. Lookups and ranges never wait and never restart. A lookup takes
//! one step for each route node, and others can make its way longer only by splits below it. Splits
//! and joins need memory, and do not take place without.
//!
//! A range follows the route node whose bound it has reached. So it ends even if comparisons
//! contradict each other: it goes on to the right in the tree, or another thread has unlinked the
//! route node.
//!
//! With keys of `OrdMap`, splits and joins, and removals of a key that a route node may have, take
//! a lock for some instructions (`bounds.rs`).
//!
//! # Complexity and footprint
//! A way has at most 16 route nodes when a base node is split. A write copies one leaf, and the
//! inner nodes above it: up to 1 KiB each, O(log n) of them for n entries in the base node. The
//! copy has no room for more than the last line, unless the tree is small (`is_small` in
//! `edit.rs`). A base node takes 24 bytes, a route node 24 (32
//! with slots of 16 bytes: `u128`, byte strings, and keys of `OrdMap` with heads), and a join 64
//! while it lasts. Removals need memory, too.
//!
//! # Checked by
//! The conformance suite (`tests/conformance.rs`); [`crate::Check::check`], which verifies C2, T1
//! and T2 in a quiescent tree, and that no place is claimed; schedules (`tests/schedules.rs`), in
//! which stopped threads show the progress of others. C3 and L1 to L3 are verified by the check of
//! [`OrdMap`](crate::OrdMap), and by its tests in `api-tests`.
//!
//! # Files
//! | file | content |
//! |---|---|
//! | `node.rs` | base nodes, route nodes, joins and their states |
//! | `edit.rs`, `walk.rs` | changed copies of a container; walks along one |
//! | `ops.rs`, `adapt.rs` | lookups, `update` and helping; splits and joins |
//! | `bounds.rs` | keys that are bounds of route nodes |
//! | `scan.rs`, `ends.rs`, `bulk.rs` | ranges and snapshots, both ends, building a tree from sorted entries |
//! | `observe.rs` | the shape of a tree, for [`Adapts`](crate::Adapts) |
//! | `check.rs` | verification |

mod adapt;
mod bounds;
mod bulk;
mod check;
mod edit;
mod ends;
mod node;
mod observe;
mod ops;
mod scan;
mod walk;

pub(crate) use ops::Address;
pub use scan::Range;
pub(crate) use scan::Scan;
pub(crate) use walk::from_bound;

use crate::ca::build::{Adaptive, Build, Sound};
use crate::ca::key::{CaKey, Slots};
use crate::ca::node::NodeRef;
use crate::ca::objects::{self, Fresh, May, Objects};
use crate::ca::observe::Changes;
use crate::ca::word::{Kind, Place, Word};
use crate::cursor::KeyCursor;
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, Violation};
use crate::frame::{
    Algorithm, AlgorithmBounds, AlgorithmKey, Atomic, Ended, Frame, Index, Ordered, See,
};
use crate::memory::Memory;
use crate::update::Update;
use bounds::Bounds;
use node::{Base, Free, FreeRoute, base, new_base};
use silvics_layout::NodeLayout;
use silvics_pool::{Budget, Placement, Pooled};
use silvics_sync::atomic::{AtomicU64, Ordering};
use std::marker::PhantomData;
use std::num::NonZeroUsize;
use std::sync::Arc;

/// Lock-free contention adapting search tree: see the [module](self).
///
/// ```
/// use silvics::{LfcaTree, Options, OrderedIndex, OrderedScan};
///
/// let tree: LfcaTree<u64> = LfcaTree::with_options(&Options::default())?;
/// let tree = tree.pin();
/// for key in [3, 1 << 40, 2] {
///     tree.insert(key, 10 * key)?;
/// }
/// assert_eq!(tree.range(..100).collect::<Vec<_>>(), [(2, 20), (3, 30)]);
/// assert_eq!(tree.remove(1 << 40)?, Some(10 << 40));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub type LfcaTree<K = u64, P = Pooled, B = Adaptive> = Index<Lfca<K, P, B>>;

/// The algorithm of [`LfcaTree`].
pub struct Lfca<K: Slots + ?Sized, P: Placement, B: Build> {
    root: Place,
    objects: Objects<K, P, Free>,
    pub(crate) order: K::Order,
    bounds: Bounds<K>,
    _reserve: Reserve,
    changes: Changes,
    /// The number of base nodes that splits, joins and bulk loads have made.
    lines: AtomicU64,
    build: PhantomData<B>,
}

/// The bytes that a tree with a memory limit reserves for removals: a way of nodes.
const RESERVE: usize = 16 << 10;

/// Memory below the limit of a budget, for removals alone.
struct Reserve {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Reserve {
    fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: budget.reserve(RESERVE) }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.budget.unreserve(self.bytes);
    }
}

impl<K: Slots + ?Sized, P: Placement, B: Build> Lfca<K, P, B> {
    /// An empty tree.
    pub(crate) fn ordered_by(frame: Frame, order: K::Order) -> Result<Self, AllocError> {
        let () = Sound::<B>::CHECKED;
        let objects = Objects::new(frame)?;
        let guard = objects.frame().domain.pin();
        let mut fresh = Fresh::new(&objects, May::Flush(&guard));
        let root = Place::new(new_base(&mut fresh, Base::first(Word::NONE, 0))?);
        fresh.linked();
        drop(fresh);
        drop(guard);
        let reserve = Reserve::new(&objects.frame().config.budget);
        let (bounds, changes, lines) = (Bounds::new(), Changes::new(), AtomicU64::new(0));
        let build = PhantomData;
        Ok(Self { root, objects, order, bounds, _reserve: reserve, changes, lines, build })
    }

    /// A base node that does not come after a write to another one.
    fn first_base(&self, container: Word) -> Base {
        // Relaxed: the numbers differ, and nothing else depends on them.
        Base::first(container, 1 + self.lines.fetch_add(1, Ordering::Relaxed))
    }

    #[inline(always)]
    pub(crate) fn frame(&self) -> &Frame {
        self.objects.frame()
    }

    pub(crate) fn memory(&self) -> &dyn Memory {
        self.objects.memory()
    }

    pub(crate) fn memory_mut(&mut self) -> &mut dyn Memory {
        self.objects.memory_mut()
    }

    /// Calls `each` with all entries in the order of the tree. It reads no keys.
    ///
    /// # Safety
    /// No other thread changes the tree.
    pub(crate) unsafe fn each_entry(&self, mut each: impl FnMut(K::Slot, u64)) {
        let mut open = vec![self.root.word()];
        while let Some(word) = open.pop() {
            // SAFETY: our contract: the word is linked, and no call has claimed a place.
            unsafe {
                match word.kind() {
                    Kind::Base => open.push(base(word).container),
                    Kind::Route => {
                        let route = FreeRoute::<K>::new(word);
                        open.extend([true, false].map(|right| route.child(right).read()));
                    }
                    Kind::Inner => {
                        let node = NodeRef::<K>::new(word);
                        open.extend((0..node.len()).rev().map(|at| node.child(at)));
                    }
                    Kind::Leaf => {
                        let leaf = NodeRef::<K>::new(word);
                        (0..leaf.len()).for_each(|at| each(leaf.key(at), leaf.value(at)));
                    }
                    _ => {}
                }
            }
        }
    }

    /// The keys that are bounds of route nodes, and have no entry.
    pub(crate) fn bounds_without_entries(&self) -> Vec<K::Slot> {
        self.bounds.removed()
    }

    /// Frees all nodes, unless dropping the pools does so. Access is exclusive.
    pub(crate) fn free_nodes(&mut self) {
        if !P::RELEASES_WHOLE {
            // SAFETY: access is exclusive. C1, J3: each object is linked once, or retired.
            unsafe { self.objects.free_all(self.root.word()) };
        }
        self.objects.frame().config.budget.give(self.bounds.bytes());
    }
}

// SAFETY: the linearization points of the module docs give A2 to A5. A6: keys that are numbers are
// copied, and those that are byte strings lie in objects of the tree, which the guard protects
// (Q1). A1: nodes are shared (C1, T1), and there is no other state but atomics and pools. A7: no
// other algorithm is called.
unsafe impl<K: CaKey + ?Sized, P: Placement, B: Build> Algorithm for Lfca<K, P, B> {
    type Key = K;
    type Placement = P;
    type At<Q: Placement> = Lfca<K, Q, B>;
    const NAME: &'static str = "LfcaTree";
    const OBJECTS: &'static [NodeLayout] = objects::kinds::<K, Free>();

    fn new(frame: Frame) -> Result<Self, AllocError> {
        Self::ordered_by(frame, ())
    }

    #[inline(always)]
    fn frame(&self) -> &Frame {
        self.objects.frame()
    }

    #[inline]
    fn get(&self, key: K::Ref<'_>, guard: &Guard) -> Option<u64> {
        self.look_up(&K::probe(key), guard).map(|(_, value)| value)
    }

    #[inline]
    fn update(
        &self,
        key: K::Ref<'_>,
        verb: Update,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        let found = self.change((&K::probe(key), key), None, verb, guard)?;
        Ok(found.map(|(_, value)| value))
    }

    fn memory(&self) -> &dyn Memory {
        self.objects.memory()
    }

    fn memory_mut(&mut self) -> &mut dyn Memory {
        self.objects.memory_mut()
    }

    fn walk(&mut self, see: &mut See<'_>) -> Result<usize, Violation> {
        self.check_quiescent(see)
    }

    fn free_all(&mut self) {
        self.free_nodes();
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ordered for Lfca<K, P, B> {
    type OrderedAt<Q: Placement> = Lfca<K, Q, B>;
    type Range<'g> = Range<'g, K, P, B, false>;
    type RangeRev<'g> = Range<'g, K, P, B, true>;
    type Cursor = KeyCursor<Index<Self>>;

    fn range<'g>(&'g self, bounds: AlgorithmBounds<'g, Self>, guard: &'g Guard) -> Self::Range<'g> {
        Range::new(self, bounds, guard)
    }

    fn range_rev<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Self::RangeRev<'g> {
        Range::new(self, bounds, guard)
    }

    fn cursor(index: Arc<Index<Self>>) -> Self::Cursor {
        KeyCursor::new(index)
    }

    fn load(
        &mut self,
        entries: &[(AlgorithmKey<'_, Self>, u64)],
        _threads: NonZeroUsize,
    ) -> Option<Result<(), BulkLoadError>> {
        Some(self.load_sorted(entries))
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> LfcaTree<K, P, B> {
    /// Fills an empty tree with entries in ascending order of their keys. Its leaves are seven
    /// eighths full. On failure the tree stays empty.
    ///
    /// This takes O(entries), and beside the tree up to 16 bytes for each entry of byte strings,
    /// and for each leaf of numbers.
    ///
    /// ```
    /// use silvics::{LfcaTree, Options, OrderedIndex};
    ///
    /// let mut tree: LfcaTree<u64> = LfcaTree::with_options(&Options::default())?;
    /// let squares: Vec<(u64, u64)> = (0..1000).map(|n| (n, n * n)).collect();
    /// tree.bulk_load(&squares)?;
    /// assert_eq!(tree.pin().get(30), Some(900));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bulk_load(&mut self, entries: &[(K::Ref<'_>, u64)]) -> Result<(), BulkLoadError> {
        self.0.load_sorted(entries)
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Atomic for Lfca<K, P, B> {
    fn collect_range<'g>(
        &'g self,
        bounds: AlgorithmBounds<'g, Self>,
        guard: &'g Guard,
    ) -> Result<Vec<(K::Ref<'g>, u64)>, AllocError> {
        self.snapshot_of(bounds, guard)
    }
}

impl<K: CaKey + ?Sized, P: Placement, B: Build> Ended for Lfca<K, P, B> {
    fn end<'g, const LAST: bool>(&'g self, guard: &'g Guard) -> Option<(K::Ref<'g>, u64)> {
        let (slot, value) = self.end_entry::<LAST>(guard)?;
        // SAFETY: Q1: the entry was in the tree under the guard.
        Some((unsafe { K::key(slot) }, value))
    }

    fn pop<'g, const LAST: bool>(
        &'g self,
        guard: &'g Guard,
    ) -> Result<Option<(K::Ref<'g>, u64)>, AllocError> {
        let popped = self.pop_entry::<LAST>(guard)?;
        // SAFETY: Q1: the entry was in the tree under the guard.
        Ok(popped.map(|(slot, value)| (unsafe { K::key(slot) }, value)))
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests;
