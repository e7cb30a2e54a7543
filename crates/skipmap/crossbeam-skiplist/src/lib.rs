//! The maps and sets of `crossbeam-skiplist` 0.1.3, over a tree of `silvics`: see
//! [`silvics_skipmap`]. The module `base` is not here.

pub use silvics_skipmap::{SkipMap, SkipSet, map, set};
