//! How an index has adapted its shape to contention.

use crate::domain::Guard;
use crate::error::AllocError;
use crate::index::Lookup;

/// Indexes that divide their keys among more parts where threads contend, and among fewer where
/// they do not.
///
/// ```
/// use silvics::ca::build::Restless;
/// use silvics::{Adapts, CaTree, Lookup, Options, OrderedIndex, Pooled};
///
/// // This build splits and joins without contention, so one thread shows both.
/// let tree = CaTree::<u64, Pooled, Restless>::with_options(&Options::default())?;
/// let guard = tree.domain().pin();
/// for key in 0..1000 {
///     tree.insert(key, key, &guard)?;
/// }
/// let now = tree.adaptation(&guard);
/// assert_eq!(now.route_nodes as u64, now.splits - now.joins);
/// assert_eq!(now.base_nodes.len(), now.route_nodes + 1);
/// # Ok::<(), silvics::AllocError>(())
/// ```
pub trait Adapts: Lookup {
    /// Counts the nodes that divide the keys, and reads the statistics of each base node. O(base
    /// nodes). Takes no lock, and writes no memory of the index.
    ///
    /// It is not atomic: a node that is split or joined meanwhile may be counted before, after,
    /// or in parts. While no other call runs, all numbers are exact.
    fn adaptation(&self, guard: &Guard) -> Adaptation;

    /// Divides the entries evenly for this number of threads, if the index has a shape that is made
    /// after a load and stays: a [`CaTree`](crate::CaTree) of the build
    /// [`Fine`](crate::ca::build::Fine). Otherwise it does nothing. It fails, and the shape stays
    /// as it is, if memory is lacking for the new one beside the old one.
    fn divide_for(&mut self, _threads: usize) -> Result<(), AllocError> {
        Ok(())
    }
}

/// The shape of an index that adapts, and the changes that led to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adaptation {
    /// The splits since the index was made.
    pub splits: u64,
    /// The joins since the index was made.
    pub joins: u64,
    /// The route nodes: the inner nodes that lead to base nodes.
    pub route_nodes: usize,
    /// The base nodes in the order of their keys.
    pub base_nodes: Vec<BaseNode>,
}

/// A part of an index with keys between two bounds, and with contention of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BaseNode {
    /// The contention that it has seen: a high number leads to a split, a low one to a join.
    pub statistics: i64,
    /// The number of route nodes above it.
    pub depth: u32,
}

impl Adaptation {
    /// The most route nodes above a base node.
    pub fn deepest(&self) -> u32 {
        self.base_nodes.iter().map(|base| base.depth).max().unwrap_or(0)
    }
}
