//! The builds of the tree: the limits at which it adapts, its locks and its containers.

use std::marker::PhantomData;

#[cfg(not(any(silvics_loom, silvics_shuttle)))]
use std::cell::Cell;

/// The limits at which a tree adapts. All numbers are those of ETS (`erl_db_catree.c` of
/// Erlang/OTP) and of the authors' Java code; `range` is that of the lock-free tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// A base node whose statistics are above this number is split.
    pub split: i64,
    /// A base node whose statistics are below this number is joined with a neighbour.
    pub join: i64,
    /// This is added when a lock was not free, or when a word had changed.
    pub contended: i64,
    /// This is taken off when the lock was free, or the word unchanged.
    pub uncontended: i64,
    /// This is taken off the statistics of each base node of an operation on several ones.
    /// The lock-free tree takes off ten times as much (SPAA 2018).
    pub range: i64,
    /// Statistics stay between this number and its negative.
    pub most: i64,
    /// A base node with this many route nodes above it is not split.
    pub depth: u32,
    /// One write in this many lets a random base node be joined earlier.
    pub gravity: u64,
    /// The number that this write takes off.
    pub gravity_off: i64,
}

/// The limits of ETS.
pub const ETS: Limits = Limits {
    split: 1000,
    join: -1000,
    contended: 250,
    uncontended: 1,
    range: 10,
    most: 20_000,
    depth: 16,
    gravity: 512,
    gravity_off: 500,
};

impl Limits {
    /// Whether the limits do not contradict each other.
    const fn are_sound(self) -> bool {
        self.join < 0
            && 0 < self.split
            && self.split < self.most
            && -self.most < self.join
            && self.most <= 1 << 32
            && 0 <= self.contended
            && self.contended <= self.most
            && 0 <= self.uncontended
            && self.uncontended <= self.most
            && 0 <= self.range
            && self.range <= self.most
            && 0 <= self.gravity_off
            && self.gravity_off <= self.most
            && self.depth <= 256
            && self.gravity > 0
    }
}

/// The lock of a base node. Writers always take it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// A version lock. Lookups and scans validate what they have read, and write nothing.
    Version,
    /// A readers–writer lock. Lookups and scans take it shared, so each writes to the base node.
    Shared,
    /// A spin lock. Lookups and scans take it alone, as writers do.
    Spin,
}

/// The container of a base node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A B⁺-tree of sorted blocks.
    Blocks,
    /// An AVL tree with a node for each entry. Its readers need a lock.
    Avl,
}

/// How a tree adapts, and what its base nodes are. The base nodes of the lock-free tree
/// ([`LfcaTree`](crate::LfcaTree)) have blocks and no lock, whatever the build says.
pub trait Build: Send + Sync + 'static {
    /// The limits at which the tree adapts.
    const LIMITS: Limits;
    /// Whether base nodes are ever split or joined.
    const ADAPTS: bool = true;
    /// The base nodes for each thread that
    /// [`Adapts::divide_for`](crate::Adapts::divide_for) makes; zero if it makes none.
    const DIVIDED: usize = 0;
    /// The lock of a base node.
    const LOCK: Lock = Lock::Version;
    /// The container of a base node.
    const FORM: Form = Form::Blocks;

    /// This is added to the statistics of a base node after its write with this number. Tests force
    /// splits and joins by it.
    #[doc(hidden)]
    fn nudge(_write: u64) -> i64 {
        0
    }
}

/// The check of a build. It is not part of [`Build`], which any crate may implement.
pub(crate) struct Sound<B>(PhantomData<B>);

impl<B: Build> Sound<B> {
    /// Limits that contradict each other do not compile, and neither does an AVL tree whose readers
    /// have no lock.
    pub(crate) const CHECKED: () = {
        assert!(B::LIMITS.are_sound(), "the limits contradict each other");
        assert!(
            !matches!((B::FORM, B::LOCK), (Form::Avl, Lock::Version)),
            "readers of an AVL tree need a lock"
        );
    };
}

/// A tree that adapts as the tables of ETS do.
#[derive(Debug)]
pub struct Adaptive;

impl Build for Adaptive {
    const LIMITS: Limits = ETS;
}

/// A tree of one base node: one lock for all entries.
#[derive(Debug)]
pub struct Coarse;

impl Build for Coarse {
    const LIMITS: Limits = ETS;
    const ADAPTS: bool = false;
}

/// A tree whose base nodes stay as [`CaTree::divide`](crate::CaTree::divide) or
/// [`Adapts::divide_for`](crate::Adapts::divide_for) has made them, 64 for each thread. Until then
/// it has one. Only base nodes without entries are joined, by calls that look for an end.
#[derive(Debug)]
pub struct Fine;

impl Build for Fine {
    const LIMITS: Limits = ETS;
    const ADAPTS: bool = false;
    const DIVIDED: usize = 64;
}

/// A tree that splits and joins base nodes without contention, for tests: one write in eight adds
/// twice the limit, and one takes it off, as the debug builds of ETS do. In schedules, which repeat
/// by their number, these are the second and the fourth write of a base node.
#[derive(Debug)]
pub struct Restless;

impl Build for Restless {
    const LIMITS: Limits = Limits { gravity: 5, ..ETS };

    fn nudge(write: u64) -> i64 {
        match draw(write) {
            0 => 2 * ETS.split,
            1 => 2 * ETS.join,
            _ => 0,
        }
    }
}

/// The tree of the papers, and of Erlang's tables with `write_concurrency`: AVL trees under
/// readers–writer locks.
#[derive(Debug)]
pub struct Avl;

impl Build for Avl {
    const LIMITS: Limits = ETS;
    const LOCK: Lock = Lock::Shared;
    const FORM: Form = Form::Avl;
}

/// Erlang's tables without `write_concurrency`: one AVL tree under one readers–writer lock.
#[derive(Debug)]
pub struct AvlCoarse;

impl Build for AvlCoarse {
    const LIMITS: Limits = ETS;
    const ADAPTS: bool = false;
    const LOCK: Lock = Lock::Shared;
    const FORM: Form = Form::Avl;
}

/// A tree as [`Avl`] that splits and joins base nodes as [`Restless`] does, for tests.
#[derive(Debug)]
pub struct AvlRestless;

impl Build for AvlRestless {
    const LIMITS: Limits = Restless::LIMITS;
    const LOCK: Lock = Lock::Shared;
    const FORM: Form = Form::Avl;

    fn nudge(write: u64) -> i64 {
        Restless::nudge(write)
    }
}

/// A tree as [`Adaptive`] whose lookups and scans take the lock alone, as writers do.
#[derive(Debug)]
pub struct Spin;

impl Build for Spin {
    const LIMITS: Limits = ETS;
    const LOCK: Lock = Lock::Spin;
}

/// A number below eight. In models it depends on the number of the write alone.
#[cfg(any(silvics_loom, silvics_shuttle))]
fn draw(write: u64) -> u64 {
    [2, 0, 2, 1][write as usize % 4]
}

/// A number below eight, without a pattern. Each thread begins anew, so that a test of one thread
/// repeats.
#[cfg(not(any(silvics_loom, silvics_shuttle)))]
fn draw(_write: u64) -> u64 {
    std::thread_local! {
        static DRAWS: Cell<u64> = const { Cell::new(1) };
    }
    let n = DRAWS.replace(DRAWS.get() + 1);
    // The finaliser of SplitMix64.
    let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (n ^ n >> 31) % 8
}
