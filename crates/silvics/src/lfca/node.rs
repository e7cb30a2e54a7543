//! Base nodes, route nodes and joins.

use crate::ca::key::{Slots, object_word};
use crate::ca::node::{INNER, LEAF};
use crate::ca::objects::{Fresh, KEY, Upper};
use crate::ca::route::{Route, RouteRef, route_layout};
use crate::ca::word::{Kind, Place, Word};
use crate::error::AllocError;
use silvics_layout::record::{Read, Why};
use silvics_layout::{Field, NodeLayout, Placed};
use silvics_pool::Placement;
use silvics_sync::atomic::{AtomicI64, AtomicU64, Ordering};
use silvics_sync::model::touch;
use std::mem::offset_of;

/// The lock of a route node that has none.
#[repr(C)]
pub(super) struct NoLock;

/// A route node that is not reclaimed during `'g`.
pub(super) type FreeRoute<'g, K> = RouteRef<'g, K, NoLock>;

const ROUTE: NodeLayout = route_layout::<NoLock>();

/// A base node. Only its statistics ever change.
pub(super) struct Base {
    /// The root of the container, or nothing if it is empty.
    pub(super) container: Word,
    statistics: AtomicI64,
    /// No other base node of the tree has it: its upper bits are new after a split or a join, and
    /// the lower ones count the writes since then.
    pub(super) serial: u64,
}

/// The bits of a serial number that count writes. After as many writes without a split or a join,
/// two base nodes may have the same number, on which no memory access depends.
const WRITES: u32 = 36;

/// The layout of a base node.
const BASE: NodeLayout = NodeLayout {
    kind: "base",
    size: size_of::<Base>(),
    align: 8,
    search: &[Field::links("container", offset_of!(Base, container), 1)],
    found: &[],
};

impl Base {
    /// A base node that is the first one with the upper bits of its serial number.
    pub(super) fn first(container: Word, line: u64) -> Self {
        Self { container, statistics: AtomicI64::new(0), serial: line << WRITES }
    }

    /// A base node after a write to another one.
    pub(super) fn after(old: &Self, container: Word, statistics: i64) -> Self {
        let serial = old.serial.wrapping_add(1);
        Self { container, statistics: AtomicI64::new(statistics), serial }
    }

    /// The number of writes before it, since the last split or join.
    pub(super) fn writes(&self) -> u64 {
        self.serial % (1 << WRITES)
    }

    /// The contention that the base node and those before it have seen.
    pub(super) fn statistics(&self) -> i64 {
        self.statistics.load(Ordering::Relaxed) // Relaxed: a guide, on which nothing depends
    }

    /// Another thread may change the statistics meanwhile, and one of the changes is lost.
    pub(super) fn set_statistics(&self, statistics: i64) {
        self.statistics.store(statistics, Ordering::Relaxed); // Relaxed: a guide
    }

    /// The bytes that a search reads.
    pub(super) fn looked_at(&self) -> impl Iterator<Item = Read> {
        let (layout, base): (&'static NodeLayout, _) =
            (&BASE, std::ptr::from_ref(self).cast::<u8>());
        layout.search.iter().map(move |of| layout.read(base, of.offset, of.bytes, Why::Step))
    }

    pub(super) fn placed(&self) -> Placed {
        Placed::new(&BASE, std::ptr::from_ref(self).addr())
    }
}

/// The base node that a word leads to.
///
/// # Safety
/// The word leads to a base node that is initialised and not reclaimed during `'g`.
#[inline(always)]
pub(super) unsafe fn base<'g>(word: Word) -> &'g Base {
    debug_assert!(word.kind() == Kind::Base);
    // SAFETY: our contract.
    unsafe { &*touch(word.address()).cast::<Base>() }
}

/// The state of a join. It only ever rises, but an aborted join is never committed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum State {
    /// The owner claims places. Any thread may abort the join.
    Claiming,
    /// It does not take place. Its claims are taken back.
    Aborted,
    /// It takes place: all its places are claimed.
    Committed,
    /// In addition, the place above leads past the parent.
    Passed,
}

/// The role of a place that a join has claimed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    /// It led to the base node that is joined.
    Main,
    /// It led to the neighbour.
    Neighbour,
    /// The other child of the parent, if that is a route node.
    Other,
    /// It leads to the parent.
    Above,
    /// It led to the parent, and leads past it now.
    Past,
}

/// A join of two base nodes. Only its state changes.
pub(super) struct Join {
    state: AtomicU64,
    pub(super) main: Word,
    pub(super) neighbour: Word,
    /// The base node with the entries of both.
    pub(super) joined: Word,
    pub(super) parent: Word,
    /// The node that comes in the place of the parent: its other child, or `joined` if that child
    /// is the neighbour.
    pub(super) rest: Word,
    /// The place above the parent. It may be used while the join is committed: see J4.
    pub(super) above: *const Place,
}

/// The layout of a join.
const JOIN: NodeLayout =
    NodeLayout { kind: "descriptor", size: size_of::<Join>(), align: 8, search: &[], found: &[] };

impl Join {
    pub(super) fn state(&self) -> State {
        // SeqCst: the commit is in one order with the words of places (see the module docs).
        match self.state.load(Ordering::SeqCst) {
            0 => State::Claiming,
            1 => State::Aborted,
            2 => State::Committed,
            _ => State::Passed,
        }
    }

    /// Changes the state. Returns whether it was the expected one.
    fn turn(&self, from: State, to: State) -> bool {
        let order = Ordering::SeqCst; // as in `state`
        self.state.compare_exchange(from as u64, to as u64, order, order).is_ok()
    }

    /// Aborts the join unless it is decided.
    pub(super) fn abort(&self) {
        let _ = self.turn(State::Claiming, State::Aborted);
    }

    /// Commits the join unless it is aborted. All its places are claimed. Returns whether it did.
    #[must_use]
    pub(super) fn commit(&self) -> bool {
        self.turn(State::Claiming, State::Committed)
    }

    /// Notes that the place above leads past the parent.
    pub(super) fn pass(&self) {
        let _ = self.turn(State::Committed, State::Passed);
    }

    /// Whether the neighbour is the other child of the parent.
    pub(super) fn is_short(&self) -> bool {
        self.rest == self.joined
    }

    /// The node that a claimed place leads to.
    #[inline]
    pub(super) fn resolve(&self, role: Role) -> Word {
        match role {
            Role::Main => self.main,
            Role::Neighbour if self.state() >= State::Committed => self.joined,
            Role::Neighbour => self.neighbour,
            Role::Other | Role::Past => self.rest,
            Role::Above => self.parent,
        }
    }

    /// The word that a place had before it was claimed.
    pub(super) fn before(&self, role: Role) -> Word {
        match role {
            Role::Main => self.main,
            Role::Neighbour => self.neighbour,
            Role::Other => self.rest,
            Role::Above | Role::Past => self.parent,
        }
    }
}

/// The join that the word of a claimed place leads to, and the place's role.
///
/// # Safety
/// The word leads to a join that is initialised and not reclaimed during `'g`.
pub(super) unsafe fn join<'g>(word: Word) -> (&'g Join, Role) {
    debug_assert!(word.kind() == Kind::Join);
    let role = match word.capacity() {
        0 => Role::Main,
        1 => Role::Neighbour,
        2 => Role::Other,
        3 => Role::Above,
        _ => Role::Past,
    };
    // SAFETY: our contract.
    (unsafe { &*touch(word.address()).cast::<Join>() }, role)
}

/// The word of a place that a join has claimed.
pub(super) fn claim(join: Word, role: Role) -> Word {
    Word::join(join.object(), role as usize)
}

/// The nodes of [`LfcaTree`](crate::LfcaTree).
pub(super) struct Free;

impl<K: Slots + ?Sized> Upper<K> for Free {
    const KINDS: &'static [NodeLayout] = &[ROUTE, BASE, INNER, LEAF, JOIN, KEY];

    fn bytes(kind: Kind) -> usize {
        match kind {
            Kind::Base => size_of::<Base>(),
            Kind::Join => size_of::<Join>(),
            _ => size_of::<Route<K, NoLock>>(),
        }
    }

    unsafe fn below(word: Word, open: &mut Vec<Word>) {
        // SAFETY: our contract. A join that is not linked anywhere was retired or freed.
        unsafe {
            match word.kind() {
                Kind::Base => open.push(base(word).container),
                Kind::Route => {
                    let route = FreeRoute::<K>::new(word);
                    open.extend([false, true].map(|right| route.child(right).read()));
                    open.extend(object_word::<K>(route.bound()));
                }
                _ => debug_assert!(false, "a claim without an operation"),
            }
        }
    }
}

/// Makes a base node.
pub(super) fn new_base<K: Slots + ?Sized, P: Placement>(
    fresh: &mut Fresh<'_, K, P, Free>,
    new: Base,
) -> Result<Word, AllocError> {
    fresh.add(Kind::Base, size_of::<Base>(), |object| {
        // SAFETY: fresh memory of the base node's size.
        unsafe { object.cast::<Base>().write(new) };
        Word::base(object)
    })
}

/// Makes a route node.
pub(super) fn new_route<K: Slots + ?Sized, P: Placement>(
    fresh: &mut Fresh<'_, K, P, Free>,
    left: Word,
    bound: K::Slot,
    right: Word,
) -> Result<Word, AllocError> {
    fresh.add(Kind::Route, <Free as Upper<K>>::bytes(Kind::Route), |object| {
        let route = Route::<K, NoLock>::new(NoLock, left, bound, right);
        // SAFETY: fresh memory of the route node's size.
        unsafe { object.cast::<Route<K, NoLock>>().write(route) };
        Word::route(object)
    })
}

impl Join {
    /// Makes the join of two base nodes, whose places are not claimed yet.
    pub(super) fn make<K: Slots + ?Sized, P: Placement>(
        fresh: &mut Fresh<'_, K, P, Free>,
        [main, neighbour, joined]: [Word; 3],
        [parent, rest]: [Word; 2],
        above: &Place,
    ) -> Result<Word, AllocError> {
        fresh.add(Kind::Join, size_of::<Self>(), |object| {
            let state = AtomicU64::new(State::Claiming as u64);
            let new = Self { state, main, neighbour, joined, parent, rest, above };
            // SAFETY: fresh memory of the join's size.
            unsafe { object.cast::<Self>().write(new) };
            Word::join(object, Role::Main as usize)
        })
    }
}

/// The statistics after a change.
pub(super) fn changed(statistics: i64, by: i64, most: i64) -> i64 {
    statistics.saturating_add(by).clamp(-most, most)
}
