//! A tree that nobody can change any more: descents without versions.
//!
//! The study's `occ-avl-2-unsafe` left the version reads out of a tree that others could have
//! written to (Arbel-Raviv, Brown and Morrison, USENIX ATC 2018, section 3.2), to see what they
//! cost. Here the type makes it safe: the caller gives the tree up to freeze it.

use super::super::side::Side;
use super::build::{Build, Restarting, VERSION, Words};
use super::{Bronson, BronsonTree};
use crate::frame::Index;
use crate::index::Lookup;
use silvics_layout::NodeLayout;
use silvics_pool::{Placement, PoolStats, Pooled};
use std::fmt;
use std::ptr::NonNull;

/// A [`BronsonTree`] that takes lookups only.
///
/// ```
/// use silvics::{BronsonTree, Options, OrderedIndex};
///
/// let tree: BronsonTree = BronsonTree::with_options(&Options::default())?;
/// tree.pin().insert(3, 30)?;
/// let frozen = tree.freeze();
/// assert_eq!((frozen.get(3), frozen.get(4)), (Some(30), None));
/// assert_eq!(frozen.thaw().pin().remove(3)?, Some(30));
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub struct FrozenTree<P: Placement = Pooled, B: Build = Restarting>(BronsonTree<P, B>);

impl<P: Placement, B: Build> Index<Bronson<P, B>> {
    /// Gives the tree up for one that takes lookups only, which need no guard and read no version
    /// on their way.
    pub fn freeze(self) -> FrozenTree<P, B> {
        FrozenTree(self)
    }
}

impl<P: Placement, B: Build> FrozenTree<P, B> {
    /// The value of `key`. O(log n).
    #[inline]
    pub fn get(&self, key: u64) -> Option<u64> {
        // SAFETY: the tree is quiescent while it is borrowed: this type owns it and takes no
        // writes.
        let mut next = unsafe { self.0.0.holder().child(Side::RIGHT) };
        while let Some(node) = next {
            if node.key() == key {
                P::saw(|| B::Words::NODE.ended(node));
                return node.state();
            }
            let side = Side::of(key, node.key());
            P::saw(|| {
                let layout: &'static NodeLayout = &B::Words::NODE;
                let version = NonNull::from(node).addr().get() + layout.search[VERSION].offset;
                layout.passed(node, side.index()).filter(move |read| read.address != version)
            });
            // SAFETY: the tree is quiescent while it is borrowed: this type owns it and takes no
            // writes.
            next = unsafe { node.follow(side) };
        }
        None
    }

    /// The number of keys.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// See [`Lookup::bytes`].
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }

    /// See [`Lookup::pool_stats`].
    pub fn pool_stats(&self) -> Vec<PoolStats> {
        self.0.pool_stats()
    }

    /// The tree, which takes writes again.
    pub fn thaw(self) -> BronsonTree<P, B> {
        self.0
    }
}

impl<P: Placement, B: Build> fmt::Debug for FrozenTree<P, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FrozenTree({} keys)", self.len())
    }
}
