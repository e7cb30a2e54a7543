//! Small databases for the tests.

use silvics_store::index::{Scannable, Scans, Search};
use silvics_store::{Policy, Store};
use silvics_tpcc::{Database, Structures, Unit};
use silvics_workload::tpcc::{Population, Scale};

pub(crate) type Words = Scans<silvics::WordTree<u64>>;

pub(crate) const SEED: u64 = 7;
pub(crate) const NOW: u64 = 1_700_000_000_000_000;

pub(crate) fn scale(warehouses: u32) -> Scale {
    Scale::reduced(warehouses).unwrap()
}

pub(crate) fn words() -> Structures<Words> {
    Structures::scanning(|options| Ok(Words::make(options)?))
}

/// A loaded database.
pub(crate) fn loaded<P: Policy, I>(scale: Scale, structures: &Structures<I>) -> Database<P, I>
where
    I: Scannable + Search<Form = u64>,
{
    let store = Store::new().unwrap();
    Database::create_tables(&store, structures).unwrap();
    let database = Database::new(store).unwrap();
    load(&database, scale);
    database
}

/// Loads all parts of the population.
pub(crate) fn load<P: Policy, I>(database: &Database<P, I>, scale: Scale)
where
    I: Scannable + Search<Form = u64>,
{
    let population = Population::new(scale, SEED, NOW);
    for unit in Unit::all(scale) {
        assert!(database.load(&population, &unit).unwrap() > 0, "{unit:?}");
    }
}
