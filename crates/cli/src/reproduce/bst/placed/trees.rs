//! The trees of the study, and the locks of its rows.

use silvics::bst::{bronson, build, ellen, natarajan, ticket};
use silvics::frame::Algorithm;
use silvics::{
    BronsonTree, CitrusTree, DrachslerTree, EllenTree, HowleyTree, Index, NatarajanTree, Pooled,
    RamachandranTree, TicketTree,
};
use silvics_store::index::{Lists, Points};
use silvics_store::lock::{Latched, Padded};
use silvics_sync::pthread::PthreadLock;
use std::marker::PhantomData;

/// The locks of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// The study's locks, of 48 bytes.
    Bare,
    /// The study's locks with padding, of 192 bytes.
    Padded,
}

impl Lock {
    /// The bytes of a lock.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bare => size_of::<BareLock>(),
            Self::Padded => size_of::<PaddedLock>(),
        }
    }
}

/// The bytes of a lock that its holders read and write.
pub const LOCK_BYTES: usize = size_of::<BareLock>();

/// The study's lock.
pub type BareLock = Latched<PthreadLock>;
/// The study's lock with padding.
pub type PaddedLock = Padded<BareLock>;

/// The purpose of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The times of its lookups are taken.
    Clock,
    /// The reads of its lookups are recorded.
    Trace,
}

/// A tree of the study over a placement.
pub type Placed<A, P> = Points<Index<<A as Algorithm>::At<P>>>;

/// The study's index over a tree: a key leads to a list of rows.
pub type Listed<A, P> = Lists<Placed<A, P>>;

/// Makes something of a tree, whose type it gets.
pub trait Visit {
    type Made;
    fn over<A: Algorithm<Key = u64>>(self) -> Self::Made;
}

/// Calls `visit` with the algorithm of an index type.
fn over<A: Algorithm<Key = u64>, V: Visit>(visit: V, _index: PhantomData<Index<A>>) -> V::Made {
    visit.over::<A>()
}

/// A tree of the study.
#[derive(Clone, Copy)]
pub struct Tree {
    /// Its name in the catalogue, with its build.
    pub name: &'static str,
    kind: Kind,
}

impl Tree {
    /// The tree with this name.
    pub fn named(name: &str) -> Option<Self> {
        TREES.iter().find(|tree| tree.name == name).copied()
    }
}

macro_rules! trees {
    ($($kind:ident $name:literal: $tree:ty,)+) => {
        #[derive(Clone, Copy)]
        enum Kind {
            $($kind),+
        }

        /// The ten trees, in the order of their speed in the microbenchmark of the study.
        pub const TREES: &[Tree] = &[$(Tree { name: $name, kind: Kind::$kind }),+];

        impl Tree {
            /// Calls `visit` with the type of this tree.
            pub fn visit<V: Visit>(self, visit: V) -> V::Made {
                match self.kind {
                    $(Kind::$kind => over(visit, PhantomData::<$tree>)),+
                }
            }
        }
    };
}

trees! {
    OccAvl "occ-avl:fixed": BronsonTree<Pooled, build::Fixed>,
    OccAvl2 "occ-avl-2:fixed": BronsonTree<Pooled, bronson::build::Fixed2>,
    LogInt "log-int:fixed": DrachslerTree<Pooled, build::Fixed>,
    EdgeIntLf "edge-int-lf:fixed": RamachandranTree<Pooled, build::Fixed>,
    Citrus "citrus:fixed": CitrusTree<Pooled, build::Fixed>,
    IntLf "int-lf:fixed": HowleyTree<Pooled, build::Fixed>,
    EdgeExtLf2 "edge-ext-lf-2:fixed": NatarajanTree<Pooled, natarajan::build::Fixed2>,
    EdgeExtLf "edge-ext-lf:fixed": NatarajanTree<Pooled, natarajan::build::Fixed>,
    Ticket "ticket:fixed": TicketTree<Pooled, ticket::build::Fixed>,
    ExtLf "ext-lf:fixed": EllenTree<Pooled, ellen::build::Fixed>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics::structures::STRUCTURES;

    /// The table of structures has the same trees in the group `bst`.
    #[test]
    fn each_tree_of_the_study_is_here() {
        let is_tree = |groups: &[&str]| groups.contains(&"bst");
        let all = STRUCTURES.iter().filter(|structure| is_tree(structure.groups));
        let mut all: Vec<String> = all.map(|tree| format!("{}:fixed", tree.name)).collect();
        let mut here: Vec<&str> = TREES.iter().map(|tree| tree.name).collect();
        all.sort();
        here.sort_unstable();
        assert_eq!(here, all);
        assert!(Tree::named("occ-avl:fixed").is_some() && Tree::named("art").is_none());
    }
}
