//! The policies of synchronisation.

use super::sync::{AtOnce, Coupled, Mode, NodeLock, Optimistic, Plain};
use super::transaction::{ByCpu, BySoftware, None, Transactions};
use silvics_sync::lock::SpinLock;
use silvics_sync::pthread::{AdaptiveLock, PthreadLock};
use silvics_sync::version::VersionLock;
use std::marker::PhantomData;

/// A lock that [`HandOverHand`] can have in each node.
pub use silvics_sync::lock::RawLock;

/// How threads share a trie. Sealed.
pub trait Policy: private::Sealed + 'static {
    /// The lock of a node.
    #[doc(hidden)]
    type Lock: NodeLock;
    /// The mode of a section, until its tries are used up. Then it locks hand over hand.
    #[doc(hidden)]
    #[allow(private_bounds)]
    type Fast: Mode<Self::Lock>;
    /// The mode of a section in a transaction.
    #[doc(hidden)]
    #[allow(private_bounds)]
    type InTransaction: Mode<Self::Lock>;
    /// The transactions that sections run in first.
    #[doc(hidden)]
    #[allow(private_bounds)]
    type Transactions: Transactions;
}

mod private {
    pub trait Sealed {}
    impl<L> Sealed for super::HandOverHand<L> {}
    impl Sealed for super::Teleport {}
    impl Sealed for super::Hardware {}
    impl Sealed for super::StandIn {}
}

/// Hand-over-hand locking, the paper's slow path, with any lock. Lookups lock, too.
///
/// A lock has no destructor. In a trie of [`Compact`](super::build::Compact), it is aligned to 8
/// bytes at most. A trie with another lock does not compile.
#[derive(Debug)]
pub struct HandOverHand<L>(PhantomData<fn() -> L>);

impl<L: RawLock + 'static> Policy for HandOverHand<L> {
    type Lock = Plain<L>;
    type Fast = Coupled;
    type InTransaction = Coupled;
    type Transactions = None;
}

/// Hand-over-hand locking with spin locks, which an atomic exchange takes, as in the paper. A
/// thread that waits for long yields its processor.
pub type Spin = HandOverHand<SpinLock>;
/// Hand-over-hand locking with the C library's mutex.
pub type Pthread = HandOverHand<PthreadLock>;
/// Hand-over-hand locking with glibc's adaptive mutex, which spins before it sleeps.
pub type Adaptive = HandOverHand<AdaptiveLock>;

/// Lock teleportation, validated in software; hand-over-hand locking after the tries.
#[derive(Debug)]
pub struct Teleport;

impl Policy for Teleport {
    type Lock = VersionLock;
    type Fast = Optimistic;
    type InTransaction = Optimistic;
    type Transactions = None;
}

/// Lock teleportation by hardware transactions where the CPU has them; then as [`Teleport`].
#[derive(Debug)]
pub struct Hardware;

impl Policy for Hardware {
    type Lock = VersionLock;
    type Fast = Optimistic;
    type InTransaction = AtOnce;
    type Transactions = ByCpu;
}

/// As [`Hardware`], with a stand-in of transactions that runs on any CPU, for tests: a body runs
/// optimistically, and the odds of [`Injected`](super::Injected) decide whether it is aborted.
#[derive(Debug)]
pub struct StandIn;

impl Policy for StandIn {
    type Lock = VersionLock;
    type Fast = Optimistic;
    type InTransaction = AtOnce;
    type Transactions = BySoftware;
}
