//! Databases that are loaded: by one thread with a record of all objects, or by several.

use super::engine::{Engine, empty};
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::bst::placed::heap::{Block, Divided};
use crate::reproduce::bst::placed::model::OfRow;
use crate::reproduce::bst::placed::trees::{Lock, Purpose, Tree};
use std::sync::Arc;

/// A database that one thread has loaded, and the places of its objects.
pub struct Recorded {
    pub engine: Box<dyn Engine>,
    pub heap: Arc<Divided>,
    /// The objects of each row, by its key.
    pub rows: Vec<OfRow>,
    /// The objects that the last insertion has allocated.
    pub last: Vec<Block>,
}

/// Inserts rows, one in each transaction.
fn load(
    engine: &dyn Engine,
    keys: impl Iterator<Item = u64>,
    mut after: impl FnMut(u64),
) -> Result<(), Failure> {
    for (done, key) in keys.enumerate() {
        engine.insert(key)?;
        after(key);
        if done.is_multiple_of(4096) && interrupt::pending() {
            return Err(Failure::Interrupted);
        }
    }
    Ok(())
}

impl Recorded {
    /// Loads a database over `tree` with these rows.
    pub fn new(tree: Tree, lock: Lock, heap: Divided, keys: &[u64]) -> Result<Self, Error> {
        let heap = Arc::new(heap.recorded());
        let engine = empty(tree, Purpose::Trace, lock, Arc::clone(&heap))?;
        let (mut rows, mut last) = (vec![None; keys.len()], Vec::new());
        let mut before = heap.allocated();
        let after = |key: u64| {
            last = heap.since(before);
            before += last.len();
            rows[key as usize] = OfRow::among(&last);
        };
        let loaded = load(&*engine, keys.iter().copied(), after);
        loaded.map_err(|failure| failure.of(tree.name))?;
        let lacks = || {
            let what = String::from("it did not allocate all objects of a row");
            Error::Wrong { index: tree.name.into(), what }
        };
        let rows = rows.into_iter().collect::<Option<Vec<_>>>().ok_or_else(lacks)?;
        Ok(Self { engine, heap, rows, last })
    }
}

/// Loads a database over `tree` with these rows, by all threads of the crew.
pub fn together(
    crew: &Crew,
    tree: Tree,
    lock: Lock,
    heap: Divided,
    keys: &[u64],
) -> Result<Box<dyn Engine>, Error> {
    let engine = empty(tree, Purpose::Clock, lock, Arc::new(heap))?;
    let parts = keys.len().div_ceil(crew.loaders);
    let work = |thread: usize| {
        let part = keys.chunks(parts).nth(thread).unwrap_or_default();
        load(&*engine, part.iter().copied(), |_| ())
    };
    let done = crew.work(crew.loaders, |share| work(share.thread), || ());
    let done = done.and_then(|done| done.into_iter().collect::<Result<Vec<()>, _>>());
    done.map_err(|failure| failure.of(tree.name))?;
    Ok(engine)
}
