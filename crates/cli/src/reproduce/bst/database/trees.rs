//! The trees of the study as indexes of its database.

use super::engine::{Database, Engine};
use super::heap::Divided;
use crate::flags::error::Error;
use crate::store::timed::Timed;
use silvics::bst::{bronson, build, ellen, natarajan, ticket};
use silvics::structures::At;
use silvics::{
    BronsonTree, CitrusTree, DrachslerTree, EllenTree, HowleyTree, NatarajanTree, Pooled,
    RamachandranTree, Recorded, Shared, TicketTree,
};
use silvics_store::index::{Lists, Points};
use silvics_store::lock::{Latched, Padded};
use silvics_sync::pthread::PthreadLock;
use std::sync::Arc;

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

type BareLock = Latched<PthreadLock>;
type PaddedLock = Padded<BareLock>;

/// The purpose of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// The times of its lookups are taken.
    Clock,
    /// The reads of its lookups are recorded.
    Trace,
}

/// Makes an empty database.
type Make = fn(Purpose, Lock, Arc<Divided>) -> Result<Box<dyn Engine>, Error>;

/// A tree of the study.
#[derive(Clone, Copy)]
pub struct Tree {
    /// Its name in the catalogue, with its build.
    pub name: &'static str,
    make: Make,
}

impl Tree {
    /// An empty database over this tree.
    pub fn database(
        self,
        purpose: Purpose,
        lock: Lock,
        heap: Arc<Divided>,
    ) -> Result<Box<dyn Engine>, Error> {
        (self.make)(purpose, lock, heap)
    }

    /// The tree with this name.
    pub fn named(name: &str) -> Option<Self> {
        TREES.iter().find(|tree| tree.name == name).copied()
    }
}

/// The study's index over a tree: a key leads to a list of rows.
type Listed<T, P> = Lists<Points<At<T, P>>>;

macro_rules! trees {
    ($($name:literal: $tree:ty,)+) => {
        &[$(Tree {
            name: $name,
            make: |purpose, lock, heap| {
                type Clocked = Timed<Listed<$tree, Shared>>;
                type Traced = Listed<$tree, Recorded<Shared>>;
                match (purpose, lock) {
                    (Purpose::Clock, Lock::Bare) => Database::<Clocked, BareLock>::boxed($name, heap),
                    (Purpose::Clock, Lock::Padded) => {
                        Database::<Clocked, PaddedLock>::boxed($name, heap)
                    }
                    (Purpose::Trace, Lock::Bare) => Database::<Traced, BareLock>::boxed($name, heap),
                    (Purpose::Trace, Lock::Padded) => {
                        Database::<Traced, PaddedLock>::boxed($name, heap)
                    }
                }
            },
        }),+]
    };
}

/// The ten trees, in the order of their speed in the microbenchmark of the study.
pub const TREES: &[Tree] = trees! {
    "occ-avl:fixed": BronsonTree<Pooled, build::Fixed>,
    "occ-avl-2:fixed": BronsonTree<Pooled, bronson::build::Fixed2>,
    "log-int:fixed": DrachslerTree<Pooled, build::Fixed>,
    "edge-int-lf:fixed": RamachandranTree<Pooled, build::Fixed>,
    "citrus:fixed": CitrusTree<Pooled, build::Fixed>,
    "int-lf:fixed": HowleyTree<Pooled, build::Fixed>,
    "edge-ext-lf-2:fixed": NatarajanTree<Pooled, natarajan::build::Fixed2>,
    "edge-ext-lf:fixed": NatarajanTree<Pooled, natarajan::build::Fixed>,
    "ticket:fixed": TicketTree<Pooled, ticket::build::Fixed>,
    "ext-lf:fixed": EllenTree<Pooled, ellen::build::Fixed>,
};

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
