//! The policies of synchronisation.

use super::sync::{AtOnce, Coupled, Mode, NodeLock, Optimistic, Plain};
use super::transaction::{ByCpu, BySoftware, None, Transactions};
use silvics_sync::lock::SpinLock;
use silvics_sync::pthread::{AdaptiveLock, PthreadLock};
use silvics_sync::version::VersionLock;

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
    impl Sealed for super::Teleport {}
    impl Sealed for super::Hardware {}
    impl Sealed for super::StandIn {}
}

macro_rules! hand_over_hand {
    ($($(#[$doc:meta])* $name:ident: $lock:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Debug)]
        pub struct $name;

        impl private::Sealed for $name {}

        impl Policy for $name {
            type Lock = Plain<$lock>;
            type Fast = Coupled;
            type InTransaction = Coupled;
            type Transactions = None;
        }
    )*};
}

hand_over_hand! {
    /// Hand-over-hand locking with spin locks, which an atomic exchange takes: the paper's slow
    /// path. Lookups lock, too.
    Spin: SpinLock;
    /// Hand-over-hand locking with the C library's mutex.
    Pthread: PthreadLock;
    /// Hand-over-hand locking with glibc's adaptive mutex, which spins before it sleeps.
    Adaptive: AdaptiveLock;
}

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
