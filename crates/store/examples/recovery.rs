//! Measures a durable store: commits, a checkpoint, and recoveries.
//!
//! ```sh
//! cargo run --release -p silvics-store --example recovery -- /dev/shm/store 1000000 100000
//! ```
//!
//! The arguments are a folder that does not exist, the number of small rows, and the number of rows
//! of 1 kB. Without arguments it makes a few rows in a temporary folder.

use silvics_store::durability::{Durability, Recovery};
use silvics_store::{Error, Schema, Store, StoreOptions, Table, Type};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

type Failure = Box<dyn std::error::Error>;

fn create(store: &Store) -> Result<[Table; 2], Error> {
    let small = Schema::new("small").column("id", Type::U64).column("value", Type::U64);
    let large = Schema::new("large").column("id", Type::U64).column("value", Type::Bytes(1000));
    Ok([store.create_table(small.primary(["id"]))?, store.create_table(large.primary(["id"]))?])
}

fn open(folder: &Path, sync: bool) -> Result<(Store, [Table; 2], Recovery), Failure> {
    let durability = Durability { sync, ..Durability::folder(folder)? };
    Ok(Store::open(&StoreOptions::default(), durability, create)?)
}

/// Inserts rows, each by a transaction that is not awaited, then updates them.
fn fill(folder: &Path, table: usize, rows: u64, value: &[u8]) -> Result<(), Failure> {
    let (store, tables, _) = open(folder, true)?;
    let table = &tables[table];
    let (id, by_id) = (table.column::<u64>("id")?, table.index::<u64>("primary")?);
    let number = table.column::<u64>("value").ok();
    let bytes = table.column::<[u8]>("value").ok();
    let begun = Instant::now();
    let mut last = None;
    // Neighbours of the index are far apart in the log.
    let key = |row: u64| row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for row in 0..rows {
        let insert = store.transact_deferred(|tx| {
            tx.insert(table, |to| {
                to.set(id, key(row))?;
                number.map_or(Ok(()), |number| to.set(number, row))?;
                bytes.map_or(Ok(()), |bytes| to.set(bytes, value))
            })
        });
        last = Some(insert?.1);
    }
    if let Some(number) = number {
        for row in 0..rows {
            let update = store
                .transact_deferred(|tx| tx.update(&by_id, key(row), |to| to.set(number, row + 1)));
            last = Some(update?.1);
        }
    }
    last.map_or(Ok(()), |ticket| store.wait(ticket))?;
    rate("committed without waiting", if number.is_some() { 2 * rows } else { rows }, begun);
    Ok(())
}

fn rate(what: &str, count: u64, begun: Instant) {
    let took = begun.elapsed();
    println!("{what}: {count} in {took:.2?}, {:.0} a second", per_second(count, took));
}

fn per_second(count: u64, took: Duration) -> f64 {
    count as f64 / took.as_secs_f64()
}

/// Recovers a store, and reports the speed.
fn recover(folder: &Path) -> Result<Store, Failure> {
    let (store, _, recovery) = open(folder, true)?;
    let bytes = recovery.checkpoint_bytes + recovery.log_bytes;
    println!(
        "recovered {} rows from {} records and {} rows of a checkpoint, {:.0} MB, in {:.2?}: \
         {:.0} records or rows a second, {:.0} MB/s",
        recovery.rows,
        recovery.records,
        recovery.checkpoint_rows,
        bytes as f64 / 1e6,
        recovery.took,
        per_second(recovery.records + recovery.checkpoint_rows, recovery.took),
        per_second(bytes, recovery.took) / 1e6,
    );
    Ok(store)
}

/// Commits updates of some threads, each of which waits.
fn awaited(folder: &Path, sync: bool, threads: u64, commits: u64) -> Result<(), Failure> {
    let (store, tables, _) = open(folder, sync)?;
    let table = &tables[0];
    let (by_id, id) = (table.index::<u64>("primary")?, table.column::<u64>("id")?);
    let value = table.column::<u64>("value")?;
    store.transact(|tx| {
        (0..threads).try_for_each(|thread| tx.insert(table, |row| row.set(id, thread + 1)))
    })?;
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (store, by_id) = (&store, &by_id);
            scope.spawn(move || {
                for number in 0..commits {
                    let update = store
                        .transact(|tx| tx.update(by_id, thread + 1, |row| row.set(value, number)));
                    update.unwrap_or_else(|error: Error| panic!("{error}"));
                }
            });
        }
    });
    rate(&format!("awaited, sync {sync}, {threads} threads"), threads * commits, begun);
    Ok(())
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let temporary = tempfile::tempdir()?;
    let folder = arguments.next().map_or_else(|| temporary.path().join("store"), PathBuf::from);
    let small: u64 = arguments.next().map_or(Ok(1000), |rows| rows.parse())?;
    let large: u64 = arguments.next().map_or(Ok(100), |rows| rows.parse())?;
    for (number, rows) in [(0, small), (1, large)] {
        let folder = folder.join(number.to_string());
        fill(&folder, number, rows, &[7; 1000])?;
        let store = recover(&folder)?;
        let checkpoint = store.checkpoint()?;
        println!(
            "checkpoint of {} rows in {:.2?}, {:.0} MB/s",
            checkpoint.rows,
            checkpoint.took,
            per_second(checkpoint.bytes, checkpoint.took) / 1e6
        );
        drop(store);
        drop(recover(&folder)?);
    }
    let mut part = 0;
    for sync in [true, false] {
        for threads in [1, 2, 8] {
            part += 1;
            awaited(&folder.join(format!("awaited {part}")), sync, threads, small / 50)?;
        }
    }
    Ok(())
}
