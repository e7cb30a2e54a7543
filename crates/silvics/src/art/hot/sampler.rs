//! Whether a tree samples its lookups: a type parameter, so that other trees do not pay for it.

use super::super::leaf::LeafKey;
use super::super::word::Word;
use super::regions::HotRegions;
use super::sample::{NoteKey, Samples};
use silvics_pool::{Budget, Config, PoolStats};
use std::sync::Arc;

/// Whether a tree samples its lookups and can be reorganized: [`Sampled`] or [`Unsampled`].
///
/// Sealed.
pub trait Sampler: Sized + Send + Sync + 'static + sealed::Sealed {
    /// The notes of lookups.
    #[doc(hidden)]
    type Samples<K: NoteKey + ?Sized>: Observer<K>;
    /// The regions of hot objects.
    #[doc(hidden)]
    type Regions: Regions;
}

/// The sampler of trees whose lookups are not sampled. It costs nothing.
#[derive(Clone, Copy, Debug)]
pub enum Unsampled {}

/// The sampler of trees that can be [reorganized](super): such a tree has memory for notes of its
/// lookups, and regions for hot objects.
#[derive(Clone, Copy, Debug)]
pub enum Sampled {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Unsampled {}
    impl Sealed for super::Sampled {}
}

impl Sampler for Unsampled {
    type Samples<K: NoteKey + ?Sized> = ();
    type Regions = ();
}

impl Sampler for Sampled {
    type Samples<K: NoteKey + ?Sized> = Samples<K>;
    type Regions = HotRegions;
}

/// The observer of a tree's lookups.
#[doc(hidden)]
pub trait Observer<K: NoteKey + ?Sized>: Send + Sync + Sized {
    fn new(budget: &Arc<Budget>) -> Self;
    /// Whether lookups are sampled at the moment.
    fn wanted(&self) -> bool;
    /// Notes a lookup of this key, if it is the turn of one.
    fn see(&self, key: K::Ref<'_>);
}

impl<K: NoteKey + ?Sized> Observer<K> for () {
    fn new(_budget: &Arc<Budget>) -> Self {}
    #[inline(always)]
    fn wanted(&self) -> bool {
        false
    }
    #[inline(always)]
    fn see(&self, _key: K::Ref<'_>) {}
}

/// The regions of a tree's hot objects.
#[doc(hidden)]
pub trait Regions: Send + Sync + Sized {
    fn new(config: &Config) -> Self;
    /// Frees the object that a word leads to, if it is in one of the regions. Returns whether it
    /// is.
    ///
    /// # Safety
    /// The object belongs to the tree of these regions, and is freed once. Nobody can reach it any
    /// more.
    unsafe fn free<K: LeafKey + ?Sized>(&self, word: Word) -> bool;
    /// Adds the objects and the regions to the statistics of the tree's pools.
    fn add_to(&self, stats: &mut [PoolStats]);
}

impl Regions for () {
    fn new(_config: &Config) -> Self {}
    #[inline(always)]
    unsafe fn free<K: LeafKey + ?Sized>(&self, _word: Word) -> bool {
        false
    }
    fn add_to(&self, _stats: &mut [PoolStats]) {}
}
