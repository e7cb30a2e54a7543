//! Our own indexes as contenders.

use crate::contender::forms::Form;
use crate::contender::{Contender, Session};
use crate::interrupt;
use silvics::bst::bronson::build::Restarting2;
use silvics::error::TryInsertError;
use silvics::{
    Adaptation, Adapts, AllocError, AtomicRanges, Batches, BronsonTree, Check, Create, FrozenTree,
    Guard, IndexKey, KeyRef, Lookup, Options, OrderedEnds, OrderedScan, PinIndex, Pinned,
    Placement, PoolStats, Pooled, RangeUpdates,
};
use silvics_testkit::TestKey;
use silvics_testkit::clock::Clock;
use silvics_testkit::make;
use silvics_testkit::mapped::{Mapped, MappedKey};
use silvics_testkit::ordmapped::{OrdKey, OrdMapped};
use silvics_testkit::verify::{self, verify};
use std::marker::PhantomData;
use std::ops::Bound::{Included, Unbounded};

/// An index of ours. `S` says how it scans, if it does, and `A` whether it adapts.
pub struct Ours<I, S, A = Still> {
    index: I,
    marker: PhantomData<fn() -> (S, A)>,
}

impl<I, S> Ours<I, S> {
    /// The index under measurement, whose shape is not looked at.
    pub fn new(index: I) -> Self {
        Self::that(index)
    }
}

impl<I, S, A> Ours<I, S, A> {
    /// The index under measurement.
    pub fn that(index: I) -> Self {
        Self { index, marker: PhantomData }
    }
}

/// Whether an index adapts its shape to contention.
pub trait Shape<I>: 'static {
    /// Whether it does.
    const ADAPTS: bool;

    /// See [`Contender::adaptation`].
    fn adaptation(index: &I) -> Option<Adaptation>;

    /// See [`Contender::loaded`].
    fn loaded(_index: &mut I, _threads: usize) -> Result<(), AllocError> {
        Ok(())
    }
}

/// The shape depends on the keys alone.
pub struct Still;

impl<I> Shape<I> for Still {
    const ADAPTS: bool = false;

    fn adaptation(_index: &I) -> Option<Adaptation> {
        None
    }
}

/// The index tells its shape by [`Adapts`].
pub struct ByContention;

impl<I: Adapts> Shape<I> for ByContention {
    const ADAPTS: bool = true;

    fn adaptation(index: &I) -> Option<Adaptation> {
        Some(index.adaptation(&index.domain().pin()))
    }

    fn loaded(index: &mut I, threads: usize) -> Result<(), AllocError> {
        index.divide_for(threads)
    }
}

/// `Of::<I>::INDEX.shape()` is [`ByContention`] if the type `I` implements [`Adapts`], else
/// [`Still`]: an inherent method comes before that of a trait. `I` must not be a type parameter.
pub struct Of<I>(PhantomData<fn() -> I>);

impl<I> Of<I> {
    /// The question.
    pub const INDEX: Self = Self(PhantomData);
}

impl<I: Adapts> Of<I> {
    /// See [`Of`].
    #[allow(clippy::unused_self)] // a method, so that it comes before that of the trait
    pub fn shape(self) -> ByContention {
        ByContention
    }
}

/// The answer for all other types.
pub trait Otherwise: Sized {
    /// See [`Of`].
    fn shape(self) -> Still {
        Still
    }
}

impl<I> Otherwise for Of<I> {}

/// The way in which an index scans.
pub trait ScanBy<I: Lookup>: 'static {
    /// Whether the index scans at all.
    const SCANS: bool;

    /// See [`Session::scan`].
    fn scan(
        pinned: &Pinned<'_, I>,
        from: KeyRef<'_, I>,
        limit: usize,
        visit: &mut impl FnMut(KeyRef<'_, I>, u64),
    ) -> usize;
}

/// Records histories of an index and checks them. The type of the index is erased, so that the code
/// is compiled once for all indexes that scan alike.
pub trait Recorded<I>: 'static {
    /// See [`verify`].
    fn verify(plan: &verify::Plan, clock: &Clock) -> verify::Report;
}

/// The index does not scan. The catalogue says so, and `select` refuses mixes with scans.
pub struct NoScans;

impl<I: Lookup> ScanBy<I> for NoScans {
    const SCANS: bool = false;

    fn scan(
        _pinned: &Pinned<'_, I>,
        _from: KeyRef<'_, I>,
        _limit: usize,
        _visit: &mut impl FnMut(KeyRef<'_, I>, u64),
    ) -> usize {
        unreachable!("the catalogue says that it cannot scan")
    }
}

impl<I: Create + Batches + Check + Lookup<Key: TestKey> + 'static> Recorded<I> for NoScans {
    fn verify(plan: &verify::Plan, clock: &Clock) -> verify::Report {
        verify(make::points::<I>, plan, clock, verify::NoScans, interrupt::pending_beat)
    }
}

/// The index does not scan, but its histories have calls on its ends: a map as an index.
pub struct MapEnds;

impl<K: MappedKey + TestKey + ?Sized> Recorded<Mapped<K>> for MapEnds {
    fn verify(plan: &verify::Plan, clock: &Clock) -> verify::Report {
        verify(make::mapped::<K, Pooled>, plan, clock, verify::MapEnds, interrupt::pending_beat)
    }
}

impl<K: OrdKey + TestKey + ?Sized> Recorded<OrdMapped<K>> for MapEnds {
    fn verify(plan: &verify::Plan, clock: &Clock) -> verify::Report {
        verify(make::ordmapped::<K>, plan, clock, verify::MapEnds, interrupt::pending_beat)
    }
}

/// The index scans by [`OrderedScan::range`]. Its histories have the calls of `C`.
pub struct ByRange<C = verify::AllScans>(PhantomData<fn() -> C>);

/// Implements the records of histories with some calls.
macro_rules! recorded {
    ($($calls:ident: $make:ident, $($bound:ident)*;)*) => {$(
        impl<I> Recorded<I> for ByRange<verify::$calls>
        where
            I: Create + Batches + Check + OrderedScan<Key: TestKey> $(+ $bound)* + 'static,
        {
            fn verify(plan: &verify::Plan, clock: &Clock) -> verify::Report {
                verify(make::$make::<I>, plan, clock, verify::$calls, interrupt::pending_beat)
            }
        }
    )*};
}

recorded! {
    AllScans: scans,;
    ScansAndEnds: ends, OrderedEnds;
    RangesRead: atomic, OrderedEnds AtomicRanges;
    RangesUpdated: updates, OrderedEnds RangeUpdates;
}

impl<I: OrderedScan, C: 'static> ScanBy<I> for ByRange<C> {
    const SCANS: bool = true;

    #[inline]
    fn scan(
        pinned: &Pinned<'_, I>,
        from: KeyRef<'_, I>,
        limit: usize,
        visit: &mut impl FnMut(KeyRef<'_, I>, u64),
    ) -> usize {
        let from = <I::Key as IndexKey>::shorten(from);
        let mut seen = 0;
        for (key, value) in pinned.range((Included(from), Unbounded)).take(limit) {
            visit(key, value);
            seen += 1;
        }
        seen
    }
}

impl<I, S, A> Contender for Ours<I, S, A>
where
    I: Batches + Lookup<Key: Form> + 'static,
    S: ScanBy<I>,
    A: Shape<I>,
{
    type Key = Drawn<I>;
    type Session<'a> = OursSession<'a, I, S>;

    fn session(&self) -> OursSession<'_, I, S> {
        OursSession { pinned: self.index.pin(), replaced: Vec::new(), scans: PhantomData }
    }

    fn hold(&self) -> Option<Guard> {
        Some(self.index.domain().pin())
    }

    fn bytes(&self) -> Option<usize> {
        Some(self.index.bytes())
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        self.index.pool_stats()
    }

    fn adaptation(&self) -> Option<Adaptation> {
        A::adaptation(&self.index)
    }

    fn loaded(&mut self, threads: usize) -> Result<(), AllocError> {
        A::loaded(&mut self.index, threads)
    }
}

/// A thread's session: the index pinned.
pub struct OursSession<'a, I: Batches, S> {
    pinned: Pinned<'a, I>,
    /// A buffer for the values that a batch of upserts replaces.
    replaced: Vec<Option<u64>>,
    scans: PhantomData<fn() -> S>,
}

/// The keys that the command draws for an index.
type Drawn<I> = <<I as Lookup>::Key as Form>::Drawn;
type DrawnRef<'a, I> = <Drawn<I> as IndexKey>::Ref<'a>;

impl<I: Batches + Lookup<Key: Form>, S: ScanBy<I>> Session for OursSession<'_, I, S> {
    type Key = Drawn<I>;
    type Lent = I::Key;
    const GETS_MANY: bool = true;
    const INSERTS_MANY: bool = true;

    #[inline]
    fn get(&mut self, key: DrawnRef<'_, I>) -> Option<u64> {
        self.pinned.get(I::Key::of(key))
    }

    #[inline]
    fn get_many(&mut self, keys: &[DrawnRef<'_, I>], values: &mut [Option<u64>]) {
        I::Key::all(keys, |keys| self.pinned.get_many(keys, values));
    }

    #[inline]
    fn insert_many(
        &mut self,
        entries: &[(DrawnRef<'_, I>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError> {
        self.replaced.resize(entries.len(), None);
        let (pinned, replaced) = (&self.pinned, &mut self.replaced);
        let inserted = I::Key::entries(entries, |entries| pinned.insert_many(entries, replaced));
        inserted.map_err(|refused| refused.error)?;
        for (absent, replaced) in absent.iter_mut().zip(&self.replaced) {
            *absent = replaced.is_none();
        }
        Ok(())
    }

    #[inline]
    fn insert(&mut self, key: DrawnRef<'_, I>, value: u64) -> Result<bool, AllocError> {
        match self.pinned.try_insert(I::Key::of(key), value) {
            Ok(()) => Ok(true),
            Err(TryInsertError::Alloc(error)) => Err(error),
            Err(_) => Ok(false),
        }
    }

    #[inline]
    fn upsert(&mut self, key: DrawnRef<'_, I>, value: u64) -> Result<bool, AllocError> {
        Ok(self.pinned.insert(I::Key::of(key), value)?.is_none())
    }

    #[inline]
    fn upsert_many(
        &mut self,
        entries: &[(DrawnRef<'_, I>, u64)],
        absent: &mut [bool],
    ) -> Result<(), AllocError> {
        self.insert_many(entries, absent) // upserts, too
    }

    #[inline]
    fn remove(&mut self, key: DrawnRef<'_, I>) -> Result<bool, AllocError> {
        Ok(self.pinned.remove(I::Key::of(key))?.is_some())
    }

    #[inline]
    fn scan(
        &mut self,
        from: DrawnRef<'_, I>,
        limit: usize,
        visit: &mut impl FnMut(KeyRef<'_, I>, u64),
    ) -> usize {
        S::scan(&self.pinned, I::Key::of(from), limit, visit)
    }

    #[inline]
    fn refresh(&mut self) {
        self.pinned.repin();
    }
}

/// `occ-avl-2:unsafe`: a tree that is frozen after its load.
pub enum Freezing<P: Placement> {
    /// The tree is being loaded.
    Open(BronsonTree<P, Restarting2>),
    /// The tree is frozen: it takes lookups only.
    Frozen(FrozenTree<P, Restarting2>),
    /// The state while `loaded` freezes the tree.
    Between,
}

impl<P: Placement> Freezing<P> {
    /// An empty tree.
    pub fn with_options(options: &Options) -> Result<Self, AllocError> {
        BronsonTree::with_options(options).map(Self::Open)
    }
}

impl<P: Placement> Contender for Freezing<P> {
    type Key = u64;
    type Session<'a> = FreezingSession<'a, P>;

    fn session(&self) -> FreezingSession<'_, P> {
        match self {
            Self::Open(tree) => FreezingSession::Open(tree.pin()),
            Self::Frozen(tree) => FreezingSession::Frozen(tree),
            Self::Between => unreachable!("`loaded` has ended"),
        }
    }

    fn hold(&self) -> Option<Guard> {
        match self {
            Self::Open(tree) => Some(tree.domain().pin()),
            Self::Frozen(_) | Self::Between => None,
        }
    }

    fn loaded(&mut self, _threads: usize) -> Result<(), AllocError> {
        *self = match std::mem::replace(self, Self::Between) {
            Self::Open(tree) => Self::Frozen(tree.freeze()),
            frozen => frozen,
        };
        Ok(())
    }

    fn bytes(&self) -> Option<usize> {
        match self {
            Self::Open(tree) => Some(tree.bytes()),
            Self::Frozen(tree) => Some(tree.bytes()),
            Self::Between => None,
        }
    }

    fn pool_stats(&self) -> Vec<PoolStats> {
        match self {
            Self::Open(tree) => tree.pool_stats(),
            Self::Frozen(tree) => tree.pool_stats(),
            Self::Between => Vec::new(),
        }
    }
}

/// A thread's session with [`Freezing`].
pub enum FreezingSession<'a, P: Placement> {
    /// The session during the load.
    Open(Pinned<'a, BronsonTree<P, Restarting2>>),
    /// The session after the load.
    Frozen(&'a FrozenTree<P, Restarting2>),
}

impl<P: Placement> Session for FreezingSession<'_, P> {
    type Key = u64;
    type Lent = u64;

    #[inline]
    fn get(&mut self, key: u64) -> Option<u64> {
        match self {
            Self::Open(tree) => tree.get(key),
            Self::Frozen(tree) => tree.get(key),
        }
    }

    fn insert(&mut self, key: u64, value: u64) -> Result<bool, AllocError> {
        match self {
            Self::Open(tree) => Ok(tree.insert(key, value)?.is_none()),
            Self::Frozen(_) => unreachable!("`select` refuses mixes with writes"),
        }
    }

    fn upsert(&mut self, _key: u64, _value: u64) -> Result<bool, AllocError> {
        unreachable!("`select` refuses mixes with writes")
    }

    fn remove(&mut self, _key: u64) -> Result<bool, AllocError> {
        unreachable!("`select` refuses mixes with writes")
    }

    fn scan(&mut self, _: u64, _: usize, _: &mut impl FnMut(u64, u64)) -> usize {
        unreachable!("the catalogue says that it cannot scan")
    }
}
