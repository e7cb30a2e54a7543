//! Damaged, cut, foreign and missing files: a store is opened with a prefix of its transactions, or
//! is refused with one sentence, and then its files are as they were.

use super::disk::Disk;
use super::power::{content, open};
use super::support::{Model, Op, Person, World};
use silvics_memtable::WriteBatch;
use silvics_memtable::log::{LogError, LogStorage, LogWriter, read_log};
use silvics_store::durability::{CheckpointError, Durability, OpenError, StoreFolder};
use silvics_store::index::Points;
use silvics_store::{Error, IndexSpec, Optimistic, Schema, Store, StoreOptions, Table, Type};
use std::sync::Arc;

type Subject = Optimistic;

fn person(code: u64) -> Person {
    Person { code, town: code as u8 % 3, balance: 7 * code as i64 }
}

/// A disk with a checkpoint of three people, and two transactions behind it. Returns the states
/// after each transaction, the first of them in the checkpoint.
fn small() -> (Disk, Vec<Model>) {
    let disk = Disk::default();
    let (world, _) = open::<Subject>(&disk, true).unwrap();
    let mut model = Model::default();
    let mut states = Vec::new();
    let people = (0..3).map(|id| Op::Insert(id, person(id))).collect::<Vec<_>>();
    for ops in [people, vec![Op::Move(1, 5), Op::Mark(1, 2)], vec![Op::Delete(2), Op::Mark(2, 3)]] {
        assert_eq!(world.transaction_strict(&mut model, &ops), None);
        if states.is_empty() {
            let written = world.store.checkpoint().unwrap();
            assert_eq!((written.number, written.rows, &*written.removed), (2, 3, &[1][..]));
        }
        states.push(model.clone());
    }
    (disk, states)
}

/// Opens a disk that was damaged, and checks that a refusal changes nothing.
fn opened(disk: &Disk) -> Result<Model, OpenError> {
    let before = disk.content();
    match open::<Subject>(disk, true) {
        Ok((world, _)) => Ok(content(&world)),
        Err(error) => {
            assert_eq!(disk.content(), before, "{error}");
            let text = error.to_string();
            assert!(!text.contains('\n') && text.len() < 500, "{text}");
            Err(error)
        }
    }
}

#[test]
fn damaged_checkpoints_are_refused() {
    let (disk, _) = small();
    let bytes = disk.checkpoint(2);
    let check = |damaged: Vec<u8>, what: &str| {
        let lost = disk.power_loss(1);
        lost.overwrite_checkpoint(2, damaged);
        let error = opened(&lost).expect_err(what);
        let is_due =
            matches!(error, OpenError::Damaged { checkpoint: 2, .. } | OpenError::Version { .. });
        assert!(is_due, "{what}: {error}");
    };
    for len in 0..bytes.len() {
        check(bytes[..len].to_vec(), &format!("cut at {len}"));
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        check(damaged, &format!("byte {at} of {}", bytes.len()));
    }
    let more = [&*bytes, b"x"].concat();
    check(more, "one byte more");
}

#[test]
fn damaged_logs_are_cut_at_a_record_or_refused() {
    let (disk, states) = small();
    let bytes = disk.0.read(2).unwrap();
    let (mut cut, mut refused) = (0, 0);
    let mut check = |damaged: Vec<u8>, what: &str| {
        let lost = disk.power_loss(1);
        lost.0.overwrite(2, damaged);
        match opened(&lost) {
            Ok(found) => {
                assert!(states.contains(&found), "{what}: {found:?}");
                cut += u32::from(found != states[2]);
            }
            Err(OpenError::Log(LogError::Header { log: 2, .. }) | OpenError::Missing { .. }) => {
                refused += 1;
            }
            Err(error) => panic!("{what}: {error}"),
        }
    };
    for len in 0..bytes.len() {
        check(bytes[..len].to_vec(), &format!("cut at {len}"));
    }
    for at in 0..bytes.len() {
        let mut damaged = bytes.clone();
        damaged[at] ^= 1 << (at % 8);
        check(damaged, &format!("byte {at} of {}", bytes.len()));
    }
    assert!(cut > 100 && refused > 100, "{cut} {refused}");
}

#[test]
fn missing_files_are_refused() {
    let (disk, states) = small();
    let without_log = disk.power_loss(1);
    without_log.0.remove(2).unwrap();
    let error = opened(&without_log).unwrap_err();
    assert!(matches!(error, OpenError::Missing { checkpoint: Some(2), .. }), "{error}");

    let without_checkpoint = disk.power_loss(1);
    silvics_store::durability::CheckpointStorage::remove(&without_checkpoint, 2).unwrap();
    let error = opened(&without_checkpoint).unwrap_err();
    assert!(matches!(error, OpenError::Missing { checkpoint: None, wanted: 1, .. }), "{error}");

    // A log that the checkpoint replaces may come back, and is not read.
    let with_older = disk.power_loss(1);
    with_older.0.overwrite(1, b"no log".to_vec());
    assert_eq!(opened(&with_older).unwrap(), states[2]);
}

/// A log that ends before the last record that the checkpoint may contain.
#[test]
fn a_checkpoint_without_its_log_is_refused() {
    let disk = Disk::default();
    let (world, _) = open::<Subject>(&disk, true).unwrap();
    let mut model = Model::default();
    assert_eq!(world.transaction_strict(&mut model, &[Op::Mark(1, 1)]), None);
    world.store.checkpoint().unwrap();
    let name = {
        let bytes = disk.0.read(2).unwrap();
        silvics_memtable::log::read_log(&bytes).unwrap().header().comparator.to_string()
    };
    drop(world);
    // The same log, which begins later.
    disk.0.remove(2).unwrap();
    LogWriter::create(&disk, 2, 9, &name).unwrap();
    let error = opened(&disk).unwrap_err();
    assert!(
        matches!(error, OpenError::Missing { checkpoint: Some(2), wanted: 2, found: 9 }),
        "{error}"
    );
}

/// A checkpoint that needs more of the log than is there: rows of a transaction are in it whose
/// record is lost.
#[test]
fn a_checkpoint_whose_log_is_cut_is_refused() {
    let (disk, _) = small();
    let mut bytes = disk.checkpoint(2);
    let number = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
    let header = 32 + number(28) as usize;
    let (seed, trailer) = (number(header), bytes.len() - 28);
    let end = u64::from_le_bytes(*bytes[trailer + 20..].first_chunk().unwrap());
    for (end, is_refused) in [(end, false), (1000, true)] {
        bytes[trailer + 20..].copy_from_slice(&end.to_le_bytes());
        let crc = crc32c::crc32c_append(seed, &bytes[trailer..trailer + 16]);
        let crc = crc32c::crc32c_append(crc, &bytes[trailer + 20..]);
        bytes[trailer + 16..trailer + 20].copy_from_slice(&crc.to_le_bytes());
        disk.overwrite_checkpoint(2, bytes.clone());
        match opened(&disk) {
            Ok(_) => assert!(!is_refused),
            Err(OpenError::Missing { checkpoint: Some(2), wanted: 1000, .. }) => {
                assert!(is_refused);
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// The log of a checkpoint without records may be lost. The next log began with the number 1, so
/// that a later recovery did not read it.
#[test]
fn a_new_log_follows_the_checkpoint() {
    let disk = Disk::default();
    let schema = || Schema::new("t").column("id", Type::U64).primary(["id"]);
    let (store, _) = table(schema(), disk.durability(true)).unwrap();
    assert_eq!(store.checkpoint().unwrap().number, 2);
    drop(store);
    disk.0.remove(2).unwrap();
    let (store, of) = table(schema(), disk.durability(true)).unwrap();
    let id = of.column::<u64>("id").unwrap();
    store.transact(|tx| tx.insert(&of, |row| row.set(id, 1))).unwrap();
    drop(store);
    let (_, of) = table(schema(), disk.durability(true)).unwrap();
    assert_eq!(of.len(), 1);
}

fn table(schema: Schema, durability: Durability) -> Result<(Store, Table), OpenError> {
    let options = StoreOptions::default();
    let (store, table, _) = Store::open(&options, durability, |store| store.create_table(schema))?;
    Ok((store, table))
}

#[test]
fn other_tables_are_refused() {
    let accounts = || {
        Schema::new("accounts")
            .column("id", Type::U64)
            .column("name", Type::Text(9))
            .primary(["id"])
    };
    let others = [
        Schema::new("account")
            .column("id", Type::U64)
            .column("name", Type::Text(9))
            .primary(["id"]),
        Schema::new("accounts")
            .column("id", Type::U64)
            .column("nam", Type::Text(9))
            .primary(["id"]),
        Schema::new("accounts")
            .column("id", Type::I64)
            .column("name", Type::Text(9))
            .primary(["id"]),
        Schema::new("accounts")
            .column("id", Type::U64)
            .column("name", Type::Text(8))
            .primary(["id"]),
        Schema::new("accounts")
            .column("id", Type::U64)
            .column("name", Type::Text(9))
            .primary(["name"]),
        accounts().column("more", Type::U8),
    ];
    for with_checkpoint in [false, true] {
        let disk = Disk::default();
        let (store, _) = table(accounts(), disk.durability(true)).unwrap();
        if with_checkpoint {
            store.checkpoint().unwrap();
        }
        drop(store);
        for other in &others {
            let before = disk.content();
            let error = table(other.clone(), disk.durability(true)).unwrap_err();
            assert!(matches!(error, OpenError::Schema { .. }), "{error}");
            let text = error.to_string();
            let file = if with_checkpoint { "checkpoint 2 has table" } else { "log 1 has table" };
            assert!(text.starts_with(file), "{text}");
            assert_eq!(disk.content(), before);
        }
        assert_eq!(
            table(others[3].clone(), disk.durability(true)).unwrap_err().to_string(),
            format!(
                "{} has table \"accounts\" (\"id\" u64, \"name\" text(9)) primary (\"id\" u64), and \
                 the program declares table \"accounts\" (\"id\" u64, \"name\" text(8)) primary \
                 (\"id\" u64): declare the tables of the file in their order, or open another \
                 folder",
                if with_checkpoint { "checkpoint 2" } else { "log 1" }
            )
        );
        // Other indexes may come and go.
        let with_index = accounts().index(IndexSpec::unique("by_name", ["name"]));
        table(with_index, disk.durability(true)).unwrap();
    }
}

#[test]
fn logs_of_other_programs_are_refused() {
    let disk = Disk::default();
    LogWriter::create(&disk, 1, 1, "leveldb.BytewiseComparator").unwrap();
    let error = opened(&disk).unwrap_err();
    assert!(matches!(error, OpenError::Version { found: None, .. }), "{error}");
    let disk = Disk::default();
    LogWriter::create(&disk, 1, 1, "silvics-store 9\ntable").unwrap();
    let error = opened(&disk).unwrap_err();
    assert!(error.to_string().contains("version 9"), "{error}");
}

#[test]
fn an_index_that_became_unique_is_refused_if_it_is_not() {
    let towns =
        || Schema::new("towns").column("id", Type::U64).column("zip", Type::U32).primary(["id"]);
    let disk = Disk::default();
    let (store, of) = table(towns(), disk.durability(true)).unwrap();
    let (id, zip) = (of.column::<u64>("id").unwrap(), of.column::<u32>("zip").unwrap());
    for number in 0..2 {
        let done = store.transact(|tx| {
            tx.insert(&of, |row| row.set(id, number).and_then(|()| row.set(zip, 89_073)))
        });
        done.unwrap();
    }
    drop(store);
    let unique = towns().index(IndexSpec::unique("by_zip", ["zip"]));
    let error = table(unique, disk.durability(true)).unwrap_err();
    assert!(matches!(error, OpenError::Unique { .. }), "{error}");
    let multi = towns().index(IndexSpec::multi("by_zip", ["zip"]));
    let (store, of) = table(multi, disk.durability(true)).unwrap();
    let by_zip = of.multi::<u32>("by_zip").unwrap();
    let found = store.transact(|tx| Ok::<_, Error>(tx.find_all(&by_zip, 89_073_u32).rows()?.len()));
    assert_eq!(found, Ok(2));
}

#[test]
fn a_table_that_cannot_scan_has_a_log_and_no_checkpoint() {
    type Tree = Points<silvics::words::WordTree<u64>>;
    let schema = || {
        Schema::new("points")
            .column("id", Type::U64)
            .column("code", Type::U64)
            .index(IndexSpec::primary(["id"]).points_only().over::<Tree>())
            .index(IndexSpec::unique("by_code", ["code"]))
    };
    let disk = Disk::default();
    let (store, of) = table(schema(), disk.durability(true)).unwrap();
    let (id, code) = (of.column::<u64>("id").unwrap(), of.column::<u64>("code").unwrap());
    let primary = of.index_over::<u64, Tree>("primary").unwrap();
    for number in 0..50 {
        let done = store.transact(|tx| {
            tx.insert(&of, |row| row.set(id, number).and_then(|()| row.set(code, number)))?;
            tx.delete(&primary, number / 2)
        });
        done.unwrap();
    }
    let refused = store.checkpoint().unwrap_err();
    assert!(matches!(refused, CheckpointError::PointsOnly { .. }), "{refused}");
    assert!(refused.to_string().contains("`points`"), "{refused}");
    let rows = of.len();
    drop(store);
    let (store, of) = table(schema(), disk.durability(true)).unwrap();
    let by_code = of.index::<u64>("by_code").unwrap();
    let codes = store.transact(|tx| Ok::<_, Error>(tx.scan(&by_code, ..).rows()?.len())).unwrap();
    assert_eq!((of.len(), codes), (rows, rows));
}

#[test]
fn rows_before_the_recovery_are_refused() {
    let create = |store: &Store| {
        let table = store.create_table(Schema::new("t").column("id", Type::U64).primary(["id"]))?;
        let id = table.column::<u64>("id")?;
        store.transact(|tx| tx.insert(&table, |row| row.set(id, 1)))
    };
    let opened = Store::open(&StoreOptions::default(), Disk::default().durability(true), create);
    assert!(matches!(opened, Err(OpenError::NotEmpty { .. })));
}

#[test]
fn a_folder_has_logs_and_checkpoints() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("a/b");
    let durability = || Durability::folder(&path).unwrap();
    let create = |store: &Store| World::<Subject>::create(store, ("words", "blocks"));
    let open = || Store::open(&StoreOptions::default(), durability(), create).unwrap();
    let mut model = Model::default();
    for round in 0..4_u64 {
        let (store, (), recovery) = open();
        assert_eq!(recovery.rows, round);
        let world = World::over(store).unwrap();
        assert_eq!(content(&world), model);
        let insert = [Op::Insert(round, person(round))];
        assert_eq!(world.transaction_strict(&mut model, &insert), None);
        if round % 2 == 1 {
            world.store.checkpoint().unwrap();
        }
    }
    let folder = Arc::new(StoreFolder::open(&path).unwrap());
    let logs = LogStorage::numbers(&*folder).unwrap();
    let newest = *logs.last().unwrap();
    assert!(folder.checkpoint(newest).exists() && folder.log(newest).exists());
    assert_eq!(logs.len(), 1, "{logs:?}");
    // The next checkpoint removes the file of one that was interrupted.
    let unfinished = path.join("0000000001.unfinished");
    std::fs::write(&unfinished, b"half").unwrap();
    std::fs::write(path.join("1.checkpoint"), b"of another program").unwrap();
    let (store, ..) = open();
    store.checkpoint().unwrap();
    assert!(!unfinished.exists() && path.join("1.checkpoint").exists());
}

/// A record with a right checksum could change the primary key of a row. Then an index led to the
/// row by a key that it does not have, also when the row was freed.
#[test]
fn a_record_that_changes_a_primary_key_is_refused() {
    let schema = || Schema::new("t").column("id", Type::U64).column("n", Type::U64).primary(["id"]);
    for (word, is_refused) in [(0_u8, true), (1, false)] {
        let disk = Disk::default();
        let (store, of) = table(schema(), disk.durability(true)).unwrap();
        let id = of.column::<u64>("id").unwrap();
        store.transact(|tx| tx.insert(&of, |row| row.set(id, 1))).unwrap();
        drop(store);
        let number = *disk.0.numbers().unwrap().last().unwrap();
        let bytes = disk.0.read(number).unwrap();
        let mut records = read_log(&bytes).unwrap();
        let name = records.header().comparator.to_string();
        while records.next().is_some() {}
        let next = records.next_seqno();
        // Table 0 with a key, the key 1, and one word that becomes 2.
        let (mut key, mut runs) = (vec![1], vec![word, 1]);
        key.extend(1_u64.to_le_bytes());
        runs.extend(2_u64.to_ne_bytes());
        let mut batch = WriteBatch::new();
        batch.put(&key, &runs).unwrap();
        let mut log = LogWriter::create(&disk, number + 1, next, &name).unwrap();
        log.append_group(&[(next, &batch)]).unwrap();
        log.sync().unwrap();
        let opened = table(schema(), disk.durability(true));
        let is_record = matches!(&opened, Err(OpenError::Record { .. }));
        assert_eq!((is_record, opened.is_ok()), (is_refused, !is_refused), "word {word}");
    }
}
