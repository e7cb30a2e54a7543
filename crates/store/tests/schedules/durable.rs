//! A durable store whose transactions, readers and checkpoint run beside one another, on a disk
//! that may fail. Then the power fails. All transactions add 1 to both rows, so after the recovery
//! the rows must be equal, and have at least each value that a transaction has ended with.

use super::disk::Disk;
use silvics_store::durability::{CheckpointError, OpenError};
use silvics_store::index::Named;
use silvics_store::{Column, Error, Index, IndexSpec, Policy, Schema, Store, StoreOptions, Type};
use silvics_sync::atomic::{AtomicU64, Ordering};
use silvics_sync::model::{below, sequential};
use silvics_testkit::schedules::{Program, Task, beside_one_another};

const ROWS: [u64; 2] = [1, 2];

/// The calls of the disk that may succeed before one fails, and all later ones.
const CALLS: u64 = 12;

struct Counters<P: Policy> {
    store: Store<P>,
    by_id: Index<P, u64, Named<u64>>,
    value: Column<u64>,
    /// The greatest value that a transaction has ended with.
    told: AtomicU64,
}

/// Opens the store on a disk, and makes its rows if there are none.
fn open<P: Policy>(disk: &Disk) -> Result<Counters<P>, OpenError> {
    let create = |store: &Store<P>| {
        let schema = Schema::new("counters").column("id", Type::U64).column("value", Type::U64);
        store.create_table(schema.index(IndexSpec::primary(["id"]).named("words")))
    };
    let (store, table, _) = Store::open(&StoreOptions::default(), disk.durability(true), create)?;
    let by_id = table.index("primary").expect("the index");
    let id = table.column::<u64>("id").expect("the column");
    let value = table.column("value").expect("the column");
    if table.is_empty() {
        let rows = store.transact(|tx| {
            ROWS.iter().try_for_each(|&of| tx.insert(&table, |row| row.set(id, of)))
        });
        rows.expect("the disk works");
    }
    Ok(Counters { store, by_id, value, told: AtomicU64::new(0) })
}

impl<P: Policy> Counters<P> {
    /// Adds 1 to both rows. Returns the new value.
    fn add(&self) -> Result<u64, Error> {
        let tx = self.store.begin();
        let mut new = 0;
        for row in ROWS {
            tx.update(&self.by_id, row, |row| -> Result<(), Error> {
                new = row.get(self.value)? + 1;
                row.set(self.value, new)
            })?;
        }
        if below(3) == 0 {
            let ticket = tx.commit_deferred()?;
            self.store.wait(ticket)?;
        } else {
            tx.commit()?;
        }
        Ok(new)
    }

    /// The values of the rows.
    fn values(&self) -> Result<[u64; 2], Error> {
        let tx = self.store.begin();
        let mut values = [0; 2];
        for (value, row) in values.iter_mut().zip(ROWS) {
            let row = tx.get(&self.by_id, row)?.expect("both rows are there");
            *value = row.get(self.value)?;
        }
        tx.commit()?;
        Ok(values)
    }

    /// Runs a few transactions. An aborted one is tried again once.
    fn task(&self) {
        for _ in 0..4 {
            let ended = if below(3) == 0 {
                self.values().map(|values| {
                    assert_eq!(values[0], values[1], "a transaction is half there");
                    values[0]
                })
            } else {
                self.add()
            };
            match ended {
                Ok(value) => {
                    self.told.fetch_max(value, Ordering::SeqCst);
                }
                Err(Error::Aborted(_)) => {}
                Err(Error::Unacknowledged { .. } | Error::ReadOnly { .. }) => return,
                Err(error) => panic!("{error}"),
            }
        }
    }

    fn checkpoint(&self) {
        match self.store.checkpoint() {
            Ok(_)
            | Err(
                CheckpointError::Log { .. }
                | CheckpointError::Storage { .. }
                | CheckpointError::Removal { .. },
            ) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// Plays one schedule.
fn play<P: Policy>() {
    let (disk, counters) = sequential(|| {
        let disk = Disk::default();
        let counters = open::<P>(&disk).expect("the disk works");
        if below(2) == 0 {
            disk.stop(below(CALLS));
        }
        (disk, counters)
    });
    let task = |at| -> Task<Counters<P>> {
        Box::new(if at == 0 { Counters::checkpoint } else { Counters::task })
    };
    let counters = beside_one_another(counters, (0..4).map(task).collect());
    sequential(|| {
        let after = disk.power_loss(below(1 << 16));
        let told = counters.told.load(Ordering::SeqCst);
        drop((counters, disk));
        after.0.heal();
        let recovered = open::<P>(&after).expect("the disk works");
        let values = recovered.values().expect("nobody is in the way");
        assert_eq!(values[0], values[1], "a transaction is half there after the loss");
        let least = values[0];
        assert!(least >= told, "a transaction is lost: {least} of {told}");
    });
}

/// The program of a policy.
pub(super) fn program<P: Policy>() -> Program {
    Program { name: "durable", play: play::<P> }
}
