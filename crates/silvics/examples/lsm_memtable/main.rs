//! The memtable of an LSM tree, as a storage engine would write it on the public API:
//! `cargo run --release -p silvics --example lsm_memtable`.
//!
//! An internal key is a user key and a sequence number, and the newest version comes first. Writers
//! insert versions and tombstones, and readers see a snapshot. A memtable at its memory limit is
//! frozen and written to a sorted file, and the version that it refused goes to the next memtable.
//! `main` compares all of it with a `BTreeMap`, and panics if something differs.
//!
//! * `memtable.rs`: the memtable, its lookups and its double-ended `Send` range.
//! * `engine.rs`: several memtables in turn, with many writers.
//! * `sorted_file.rs`: the file that a memtable becomes.

mod engine;
mod memtable;
mod sorted_file;

use engine::Engine;
use sorted_file::Error;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;
use std::thread;
use std::time::Instant;

const WRITERS: u64 = 4;
const WRITES: u64 = 45_000;
const USERS: u64 = 20_000;
const LIMIT: usize = 8 << 20;

/// All versions that were written, in the order of internal keys.
type Model = BTreeMap<(Vec<u8>, Reverse<u64>), Option<Vec<u8>>>;

fn user(number: u64) -> Vec<u8> {
    format!("user {number:011}").into_bytes()
}

/// The writes of one thread: eleven puts for each delete, on user keys that all threads write.
fn write_many(engine: &Engine, writer: u64) -> Result<Model, Error> {
    let mut random = writer + 1;
    let mut written = Model::new();
    for number in 0..WRITES {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let user = user((random >> 33) % USERS);
        let value = (number % 12 > 0).then(|| vec![writer as u8; (random >> 20) as usize % 200]);
        let sequence = engine.write(&user, value.as_deref())?;
        written.insert((user, Reverse(sequence)), value);
    }
    Ok(written)
}

/// Reads a snapshot from both ends while other threads write: the entries are the same.
fn read_both_ways(engine: &Engine) -> usize {
    let (memtable, snapshot) = engine.snapshot();
    let forwards: Vec<_> = memtable.range((Unbounded, Unbounded), snapshot).collect();
    let mut backwards: Vec<_> = memtable.range((Unbounded, Unbounded), snapshot).rev().collect();
    backwards.reverse();
    assert!(forwards == backwards, "a snapshot differs by the end that is read first");
    for (user, value) in forwards.iter().step_by(16) {
        // The memtable may be a file by now.
        let found = engine.get(user, snapshot);
        assert!(found.is_none_or(|found| found.as_ref() == Some(value)), "a value has changed");
    }
    forwards.len()
}

/// Compares lookups and ranges of the active memtable with the model, at some snapshots.
fn check_memtable(engine: &Engine, model: &Model) {
    let (memtable, last) = engine.snapshot();
    for snapshot in [last, last.midpoint(memtable.first), memtable.first] {
        let mut newest: BTreeMap<&[u8], Option<&[u8]>> = BTreeMap::new();
        for ((user, Reverse(sequence)), value) in model {
            if (memtable.first..=snapshot).contains(sequence) {
                newest.entry(user).or_insert(value.as_deref());
            }
        }
        for user in (0..USERS).map(user) {
            let found = memtable.get(&user, snapshot);
            assert_eq!(found.as_ref().map(Option::as_deref), newest.get(&*user).copied());
        }
        let ranges = (0..USERS).step_by(100).map(|number| {
            let (from, to) = (user(number), user(number + 100));
            let bounds = (Included(&*from), Excluded(&*to));
            let versions = newest.range::<[u8], _>(bounds);
            let live =
                versions.filter_map(|(&user, value)| Some((user.to_vec(), (*value)?.into())));
            (memtable.range(bounds, snapshot), live.collect::<Vec<(_, Arc<[u8]>)>>())
        });
        let ranges: Vec<_> = ranges.collect();
        // Another thread takes entries from both ends in turn, until they meet.
        let read = move || {
            for (mut range, wanted) in ranges {
                let (mut front, mut back) = (Vec::new(), Vec::new());
                while let Some(entry) = range.next() {
                    front.push(entry);
                    back.extend(range.next_back());
                }
                assert!(front.into_iter().chain(back.into_iter().rev()).eq(wanted));
            }
        };
        thread::spawn(read).join().expect("the ranges are those of the model");
    }
}

/// Compares all files together with the model: no version is missing, and none is there twice.
fn check_files(engine: &Engine, model: &Model) -> Result<u64, Box<dyn std::error::Error>> {
    let (mut found, mut bytes) = (Model::new(), 0);
    let tables = engine.tables.read().expect("no thread panicked");
    for path in &tables.files {
        bytes += path.metadata()?.len();
        for (key, value) in sorted_file::read(path)? {
            let value = value.map(|value| value.to_vec());
            let twice = found.insert((key.user, Reverse(key.sequence)), value);
            assert!(twice.is_none(), "a version is in two files");
        }
    }
    assert!(found == *model, "the files are not what was written");
    // A copy with one wrong bit is refused.
    let copy = engine.folder.join("damaged");
    let mut content = fs::read(&tables.files[0])?;
    content[1000] ^= 1;
    fs::write(&copy, content)?;
    assert!(matches!(sorted_file::read(&copy), Err(Error::Damaged(..))));
    Ok(bytes)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let engine = &Engine::new(folder.path(), LIMIT)?;
    let start = Instant::now();
    let (model, reads) = thread::scope(|scope| {
        let begin = |writer| scope.spawn(move || write_many(engine, writer));
        let writers: Vec<_> = (0..WRITERS).map(begin).collect();
        let mut reads = 0;
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            reads += read_both_ways(engine);
        }
        let written = writers.into_iter().map(|writer| writer.join().expect("it writes"));
        let model = written.collect::<Result<Vec<_>, _>>().map(|all| all.into_iter().flatten());
        model.map(|model| (model.collect::<Model>(), reads))
    })?;
    let files = engine.tables.read().expect("no thread panicked").files.len();
    println!("{} writes by {WRITERS} threads in {:.2?}", model.len(), start.elapsed());
    println!("{files} memtables were full and became files; {reads} entries were read meanwhile");

    let (active, _) = engine.snapshot();
    assert!(active.bytes() <= LIMIT);
    println!("the active memtable has {} versions in {} bytes", active.map.len(), active.bytes());
    check_memtable(engine, &model);

    engine.freeze(&active)?;
    engine.flush()?;
    let bytes = check_files(engine, &model)?;
    println!("the files hold all {} versions in {bytes} bytes", model.len());
    Ok(())
}
