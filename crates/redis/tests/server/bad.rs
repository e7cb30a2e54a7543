//! Snapshots that are damaged, modules that are loaded wrongly.

use super::server::Launch;
use super::{Running, fill, launch, log, run, start, start_as};
use std::path::Path;

/// A snapshot with one map of 5000 entries, without a checksum.
fn snapshot() -> Vec<u8> {
    let mut running =
        Running::start("", "--rdbchecksum no --rdbcompression no --dbfilename dump.rdb");
    fill(&mut running.connection, "a-map", 5000, |number| {
        (format!("key/{number:06}"), "value".into())
    });
    running.run_all(&["SAVE"]);
    std::fs::read(running.folder.path().join("dump.rdb")).unwrap()
}

/// Starts a server that loads this snapshot, and expects that it refuses. Returns its log.
fn refused(snapshot: &[u8]) -> String {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("dump.rdb"), snapshot).unwrap();
    let started = start(folder.path(), "", "--rdbchecksum no --dbfilename dump.rdb");
    assert!(started.is_err(), "the server has started");
    log(folder.path())
}

fn find(bytes: &[u8], part: &[u8]) -> usize {
    bytes.windows(part.len()).position(|window| window == part).expect("it is in the snapshot")
}

/// The id of our type with a version of its format: nine characters of six bits, and ten bits.
fn type_id(version: u64) -> [u8; 8] {
    let characters = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let place = |character| characters.iter().position(|&other| other == character).unwrap() as u64;
    let name = b"silvicsOM".iter().fold(0, |id, &character| id << 6 | place(character));
    (name << 10 | version).to_be_bytes()
}

#[test]
fn damaged_snapshots_are_refused_with_a_sentence() {
    let intact = snapshot();
    let at = find(&intact, &type_id(1));

    let mut newer = intact.clone();
    newer[at..at + 8].copy_from_slice(&type_id(2));
    let sentence = "it has version 2, and this module reads versions up to 1: load a newer module";
    assert!(refused(&newer).contains(sentence));

    let cut = find(&intact, b"key/000000") + 500;
    let sentence = "a map cannot be loaded: the snapshot ends within it: restore an intact one";
    let log = refused(&intact[..cut]);
    assert!(log.contains(sentence), "{log}");

    // The first key of the second piece is smaller than the keys before it.
    let mut unsorted = intact.clone();
    let first = find(&intact, b"key/000000") + 10;
    let second = first + find(&intact[first..], b"key/00");
    unsorted[second] = b'a';
    let log = refused(&unsorted);
    let sentence = "a map cannot be loaded: its keys are not in ascending order: restore an intact \
                    snapshot";
    assert!(log.contains(sentence), "{log}");
}

#[test]
fn a_snapshot_with_too_few_entries_is_refused() {
    let intact = snapshot();
    let at = find(&intact, &type_id(1)) + 8;
    // The opcode of an unsigned number, and 5000 = 0x1388 in 14 bits: the number of entries.
    assert_eq!(intact[at..at + 3], [2, 0x40 | 0x13, 0x88]);
    let mut more = intact.clone();
    more[at + 2] += 1;
    let log = refused(&more);
    assert!(log.contains("a map cannot be loaded: it has 5000 entries instead of 5001"), "{log}");
}

/// The payload of a map, as `DUMP` writes it, with a checksum that is right.
#[test]
fn a_payload_without_entries_is_refused() {
    let mut running = Running::start("", "");
    running.run_all(&["OM.SET m a 1"]);
    let payload: Vec<u8> = redis::cmd("DUMP").arg("m").query(&mut running.connection).unwrap();
    let at = find(&payload, &type_id(1)) + 8;
    let version = &payload[payload.len() - 10..payload.len() - 8];
    // An unsigned 0, the empty string, the end of the value.
    let mut empty = [&payload[..at], &[2, 0, 5, 0, 0], version].concat();
    let sum = crc64(&empty);
    empty.extend(sum.to_le_bytes());
    let mut restore = redis::cmd("RESTORE");
    restore.arg("n").arg(0).arg(&empty);
    assert!(restore.query::<()>(&mut running.connection).is_err());
    assert!(
        running.log().contains("a map cannot be loaded: it has no entries"),
        "{}",
        running.log()
    );
    assert_eq!(running.run("EXISTS n"), "0");
}

/// The checksum of the servers: CRC-64 of Jones, its bits reflected.
fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |sum: u64, &byte| {
        (0..8).fold(sum ^ u64::from(byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0x95ac_9329_ac4b_c9b5 } else { 0 }
        })
    })
}

#[test]
fn a_payload_with_garbage_is_refused() {
    let mut running = Running::start("", "");
    running.run_all(&["OM.SET m a 1"]);
    let mut payload: Vec<u8> = redis::cmd("DUMP").arg("m").query(&mut running.connection).unwrap();
    let middle = payload.len() / 2;
    payload[middle] ^= 1;
    let restored =
        redis::cmd("RESTORE").arg("n").arg(0).arg(&payload).query::<()>(&mut running.connection);
    assert!(restored.is_err());
    assert_eq!(running.run("EXISTS n"), "0");
}

#[test]
fn the_module_is_loaded_once() {
    let mut running = Running::start("", "--enable-module-command yes");
    running.run_all(&["OM.SET m a 1"]);
    let module = std::env::var("SILVICS_MODULE").unwrap();
    let copy = running.folder.path().join("copy.so");
    std::fs::copy(&module, &copy).unwrap();
    for path in [Path::new(&module), &copy] {
        let reply = running.run(&format!("MODULE LOAD {}", path.display()));
        assert!(reply.starts_with("!ERR Error loading the extension"), "{reply}");
        let sentence = "a module with the name silvics is loaded already: load it once";
        assert!(running.log().contains(sentence), "{}", running.log());
        assert_eq!(running.run("OM.GET m a"), "1");
    }
    assert!(running.run("MODULE UNLOAD silvics").starts_with("!ERR"));
    assert_eq!(running.run("OM.SET m b 2"), "OK");
}

/// Other modules may delete a key when they hear of its change, in the middle of our command.
#[test]
fn a_key_may_be_deleted_by_those_who_hear_of_its_change() {
    let mut running = Running::start("", "--enable-module-command yes");
    let fill = |running: &mut Running| {
        fill(&mut running.connection, "m", 300, |number| (number.to_string(), "a".repeat(30)));
        fill(&mut running.connection, "one", 1, |number| (number.to_string(), "a".repeat(30)));
    };
    fill(&mut running);
    let listener = std::env::var("SILVICS_LISTENER").expect("check.sh sets SILVICS_LISTENER");
    running.run_all(&[&format!("MODULE LOAD {listener}")]);
    for (command, seen) in [
        ("OM.POP m COUNT 100", "[1 200]"),
        ("OM.POP one", "[0 0]"), // a map without entries does not exist at any moment
        ("OM.SET m a 1", "[1 1]"),
        ("OM.CAS m a ABSENT VALUE 1", "[1 1]"),
    ] {
        assert!(!running.run(command).starts_with('!'), "{command}");
        assert_eq!(running.run("LISTENER.SEEN"), seen, "{command}");
        assert_eq!(
            running.run("EXISTS m one"),
            if command.starts_with("OM.POP m") { "1" } else { "0" }
        );
    }
}

#[test]
fn a_module_that_was_refused_can_be_loaded() {
    let bare = Launch { module: None, ..launch("") };
    let folder = tempfile::tempdir().unwrap();
    let server = start_as(&bare, folder.path(), "--enable-module-command yes").unwrap();
    let mut connection = server.connect().unwrap();
    let module = std::env::var("SILVICS_MODULE").unwrap();
    let mut load =
        |arguments: &str| run(&mut connection, &format!("MODULE LOAD {module} {arguments}"));
    assert!(load("threads x").starts_with("!ERR"));
    assert!(log(folder.path()).contains("'threads' needs a number: give 0 or more"));
    assert_eq!(load("threads 2"), "OK");
    assert!(load("threads 2").starts_with("!ERR"));
    assert_eq!(run(&mut connection, "OM.SET m a 1"), "OK");
}

#[test]
fn wrong_arguments_of_the_module_are_refused_with_a_sentence() {
    for (arguments, sentence) in [
        ("threads x", "'threads' needs a number: give 0 or more"),
        ("threads", "'threads' needs a number: give 0 or more"),
        ("threads 65", "threads is 65: give at most 64"),
        ("speed 9", "'speed' is not an argument: give threads n, or threshold n"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        assert!(start(folder.path(), arguments, "").is_err());
        assert!(log(folder.path()).contains(sentence), "{}", log(folder.path()));
    }
}
