//! Databases over the study's trees whose objects lie mixed or segregated, as bst/1.9 and bst/1.10
//! have them.
//!
//! | module | holds |
//! |---|---|
//! | `heap` | the heap of all objects, mixed or segregated |
//! | `trees` | the ten trees, and the locks of rows |
//! | `facts` | the places of nodes and locks |
//! | `model` | translations, and the reads of a row |
//! | `lines` | evidence of facts and of the model |
//! | `clock` | the time in the index, and around it |
//! | `times` | evidence of the clock |

pub mod clock;
pub mod facts;
pub mod heap;
pub mod lines;
pub mod model;
pub mod times;
pub mod trees;

use crate::drive::run::Failure;
use heap::Divided;
use silvics::Options;
use silvics_store::{Error as StoreError, StoreOptions};
use std::sync::Arc;

/// The options of a store whose rows and indexes take their objects from `heap`.
pub fn options(heap: Arc<Divided>) -> StoreOptions {
    let indexes = Options { heap: Some(Arc::clone(&heap) as _), ..Options::default() };
    StoreOptions { indexes, indexes_in_heap: true, rows_in_heap: Some(heap) }
}

/// The reason why a store failed, for an error.
pub fn failed(error: StoreError) -> Failure {
    match error {
        StoreError::Alloc(error) => Failure::Alloc { error, done: 0 },
        other => Failure::Wrong(other.to_string()),
    }
}
