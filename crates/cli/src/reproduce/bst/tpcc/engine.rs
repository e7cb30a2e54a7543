//! The study's database of TPC-C, all of whose indexes are of one tree.

use super::erased::Erased;
use super::traced::{Traced, Tracer};
use crate::drive::run::Failure;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::interrupt;
use crate::reproduce::bst::placed::heap::Divided;
use crate::reproduce::bst::placed::trees::{Listed, PaddedLock, Placed, Tree, Visit};
use crate::reproduce::bst::placed::{failed, options};
use crate::store::timed::Timed;
use silvics::frame::Algorithm;
use silvics::{Recorded, Shared};
use silvics_store::index::{MultiLists, Search};
use silvics_store::{Error as StoreError, Locking, NoWait, Store, Study};
use silvics_sync::atomic::{AtomicUsize, Ordering};
use silvics_tpcc::{Database, Failure as Failed, Scrambled, Session, Structures, Unit};
use silvics_workload::Share;
use silvics_workload::tpcc::{Mix, Population, Scale, Terminal, Transaction};
use std::sync::{Arc, Barrier};

/// The policy of the study, with its layout of rows.
type Policy = Locking<NoWait, Study<PaddedLock>>;

/// The unique indexes. Those of lists are [`MultiLists`] of trees.
type Unique = Timed<Erased>;

/// The tables in the order in which their unique indexes are made.
pub const TABLES: [&str; 9] = [
    "warehouse",
    "district",
    "customer",
    "history",
    "new_order",
    "orders",
    "order_line",
    "item",
    "stock",
];

/// The time of all rows, in microseconds since 1970: results do not depend on the clock.
const NOW: u64 = 1_700_000_000_000_000;

/// A database of TPC-C.
pub struct Engine {
    tree: &'static str,
    database: Database<Policy, Unique>,
    scale: Scale,
    seed: u64,
}

/// A database that one thread has loaded, and the places of its objects.
pub struct Loaded {
    pub engine: Engine,
    pub heap: Arc<Divided>,
    pub tracer: Arc<Tracer>,
}

/// The number of transactions that each of some threads makes.
#[derive(Clone, Copy, Debug)]
pub struct Each(pub usize);

/// Makes the structures of the indexes of a tree.
struct Maker(Option<Arc<Tracer>>);

impl Visit for Maker {
    type Made = Structures<Unique>;

    fn over<A: Algorithm<Key = u64>>(self) -> Structures<Unique> {
        let Some(tracer) = self.0 else {
            return Structures::points(
                |options| Ok(Timed(Erased::of(Scrambled(Listed::<A, Shared>::make(options)?)))),
                |spec| {
                    spec.made_by(|options| {
                        let index = Scrambled(Placed::<A, Shared>::make(options)?);
                        MultiLists::around(Erased::of(index), options).map(Timed)
                    })
                },
            );
        };
        let (of_lists, next) = (Arc::clone(&tracer), AtomicUsize::new(0));
        Structures::points(
            move |options| {
                let index = Scrambled(Listed::<A, Recorded<Shared>>::make(options)?);
                let table = next.fetch_add(1, Ordering::Relaxed); // one thread makes all tables
                Ok(Timed(Erased::of(Traced::new(index, &tracer, Some(table)))))
            },
            move |spec| {
                let tracer = Arc::clone(&of_lists);
                spec.made_by(move |options| {
                    let index = Scrambled(Placed::<A, Recorded<Shared>>::make(options)?);
                    let lists = MultiLists::around(Erased::of(index), options)?;
                    Ok(Traced::new(lists, &tracer, None))
                })
            },
        )
    }
}

fn stopped(failure: Failed) -> Failure {
    match failure {
        Failed::Store(error) => failed(error),
        other => Failure::Wrong(other.to_string()),
    }
}

impl Engine {
    /// An empty database.
    fn new(
        (tree, tracer): (Tree, Option<Arc<Tracer>>),
        heap: Arc<Divided>,
        (scale, seed): (Scale, u64),
    ) -> Result<Self, Error> {
        let structures = tree.visit(Maker(tracer));
        let made = || -> Result<_, StoreError> {
            let store = Store::with_options(&options(heap))?;
            Database::create_tables(&store, &structures)?;
            Database::new(store)
        };
        let database = made().map_err(|error| failed(error).of(tree.name))?;
        Ok(Self { tree: tree.name, database, scale, seed })
    }

    /// A database that all threads of the crew have loaded.
    pub fn loaded(crew: &Crew, tree: Tree, heap: Divided, of: (Scale, u64)) -> Result<Self, Error> {
        let engine = Self::new((tree, None), Arc::new(heap), of)?;
        let next = AtomicUsize::new(0);
        let done = crew.work(crew.loaders, |_| engine.load(&next), || ());
        let done = done.and_then(|done| done.into_iter().collect::<Result<Vec<()>, _>>());
        done.map_err(|failure| failure.of(tree.name))?;
        Ok(engine)
    }

    /// Loads all parts of the population from the number `next` on, beside other threads.
    fn load(&self, next: &AtomicUsize) -> Result<(), Failure> {
        let (population, units) =
            (Population::new(self.scale, self.seed, NOW), Unit::all(self.scale));
        // Relaxed: each part is taken once, and says nothing about others.
        while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
            self.database.load(&population, unit).map_err(stopped)?;
            if interrupt::pending() {
                return Err(Failure::Interrupted);
            }
        }
        Ok(())
    }

    /// The name of its tree.
    pub fn tree(&self) -> &'static str {
        self.tree
    }

    /// The terminal of a thread.
    pub fn terminal(&self, share: Share) -> Terminal {
        self.scale.terminal(Mix::Half, self.seed, share)
    }

    /// Runs a transaction until it is committed or rolled back.
    #[inline]
    pub fn transact(
        &self,
        transaction: &Transaction,
        session: &mut Session,
    ) -> Result<(), Failure> {
        let outcome = self.database.run(transaction, session, NOW);
        outcome.map(|outcome| drop(std::hint::black_box(outcome))).map_err(stopped)
    }

    /// Runs transactions on all threads of the crew that run.
    pub fn run(&self, crew: &Crew, Each(each): Each) -> Result<(), Failure> {
        let barrier = Barrier::new(crew.runners);
        let work = |share: Share| {
            let (mut terminal, mut session) =
                (self.terminal(share).in_round(1), Session::default());
            barrier.wait();
            for _ in 0..each {
                if interrupt::pending() {
                    return Err(Failure::Interrupted);
                }
                self.transact(&terminal.draw(), &mut session)?;
            }
            Ok(())
        };
        crew.work(crew.runners, work, || ())?.into_iter().collect()
    }

    /// Checks the consistency conditions. No other thread may use the database.
    pub fn check(&self) -> Result<(), Failure> {
        let violations = self.database.check(self.scale).map_err(stopped)?;
        violations.first().map_or(Ok(()), |first| Err(Failure::Wrong(first.to_string())))
    }

    /// The attempts of transactions that were aborted.
    pub fn aborts(&self) -> u64 {
        self.database.store().stats().aborts.iter().map(|(_, count)| count).sum()
    }
}

impl Loaded {
    /// A database that one thread has loaded, with a record of all objects.
    pub fn new(tree: Tree, heap: Divided, of: (Scale, u64)) -> Result<Self, Error> {
        let heap = Arc::new(heap.recorded());
        let tracer = Arc::new(Tracer::new(Arc::clone(&heap)));
        let engine = Engine::new((tree, Some(Arc::clone(&tracer))), Arc::clone(&heap), of)?;
        engine.load(&AtomicUsize::new(0)).map_err(|failure| failure.of(tree.name))?;
        Ok(Self { engine, heap, tracer })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::bst::placed::heap::Places;
    use crate::reproduce::bst::tpcc::traced::{Found, Step};
    use std::collections::HashSet;

    fn loaded() -> Loaded {
        let tree = Tree::named("ticket:fixed").unwrap();
        let of = (Scale::reduced(2).unwrap(), 1);
        Loaded::new(tree, Divided::size_class(Places::Mixed), of).unwrap()
    }

    /// The tables of the rows that transactions find and insert are those that they name.
    #[test]
    fn tables_are_in_the_order_of_their_indexes() {
        let Loaded { engine, tracer, .. } = loaded();
        let (mut terminal, mut session) = (engine.terminal(Share::ALONE), Session::default());
        let (mut orders, mut payments) = (0, 0);
        for _ in 0..50 {
            let transaction = terminal.draw();
            let (done, steps) = tracer.of(|| engine.transact(&transaction, &mut session));
            done.unwrap();
            let of = |is_new: bool| -> HashSet<&str> {
                let rows = steps.iter().filter_map(|step| match step {
                    Step::Row(Found { table, is_new: new, row }) if *new == is_new => {
                        assert!(row.is_some(), "all objects are known");
                        Some(table.map_or("lists", |table| TABLES[table]))
                    }
                    _ => None,
                });
                rows.collect()
            };
            let found = &of(false) - &HashSet::from(["lists"]);
            match &transaction {
                Transaction::Payment(_) => {
                    assert_eq!(found, HashSet::from(["warehouse", "district", "customer"]));
                    assert_eq!(of(true), HashSet::from(["history"]));
                    payments += 1;
                }
                Transaction::NewOrder(order) if !order.rolls_back() => {
                    let read = ["warehouse", "district", "customer", "item", "stock"];
                    assert_eq!(found, HashSet::from(read));
                    let new = ["orders", "lists", "new_order", "order_line"];
                    assert_eq!(of(true), HashSet::from(new));
                    orders += 1;
                }
                _ => (),
            }
        }
        assert!(orders > 10 && payments > 10, "{orders} and {payments}");
    }

    #[test]
    fn a_violation_is_an_error() {
        let Loaded { mut engine, .. } = loaded();
        engine.check().unwrap();
        engine.scale = Scale::reduced(1).unwrap();
        let failed = engine.check();
        assert!(matches!(&failed, Err(Failure::Wrong(what)) if what.contains("condition")));
    }
}
