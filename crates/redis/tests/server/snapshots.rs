//! Snapshots, the log, copies, and replicas.

use super::{Running, fill};
use redis::Value;
use silvics_sync::atomic::{AtomicBool, Ordering};
use std::thread::scope;

/// Maps with all forms of values.
fn fill_all(running: &mut Running) {
    let value = |number: u64| match number % 4 {
        0 => format!("{number}"),
        1 => format!("{}", number * 1_000_000_007),
        2 => format!("the value with the number {number}, in a block of its own"),
        _ => String::new(),
    };
    fill(&mut running.connection, "large", 70_000, |number| {
        (format!("a/long/path/{number:07}"), value(number))
    });
    fill(&mut running.connection, "small", 10, |number| (format!("{number}"), value(number)));
    let mut binary = redis::cmd("OM.SET");
    binary.arg("bytes").arg(&[0_u8, 255, 13, 10][..]).arg(&[0_u8; 100][..]);
    binary.query::<()>(&mut running.connection).unwrap();
    binary = redis::cmd("OM.SET");
    binary.arg("bytes").arg("").arg(vec![b'x'; 100_000]);
    binary.query::<()>(&mut running.connection).unwrap();
}

#[test]
fn all_ways_to_write_a_map_out_bring_it_back() {
    let mut running = Running::start("", "--aof-use-rdb-preamble no");
    fill_all(&mut running);
    let before = running.run("DEBUG DIGEST");
    assert_ne!(before, "0".repeat(40));
    let bytes = running.info("used_memory");
    running.run_all(&["DEBUG RELOAD"]);
    assert_eq!(running.run("DEBUG DIGEST"), before);
    assert!(running.info("used_memory") < bytes + bytes / 10);
    // The log, written anew: commands.
    running.run_all(&["CONFIG SET appendonly yes"]);
    running.wait_for("aof_rewrite_in_progress", |number| number == 0);
    running.wait_for("aof_rewrite_scheduled", |number| number == 0);
    running.run_all(&["OM.SET small new 1", "OM.POP small", "DEBUG LOADAOF"]);
    assert_eq!(running.run("OM.FIRST small"), "[1 1000000007]");
    running.run_all(&["OM.DEL small new", "OM.SET small 0 0"]);
    assert_eq!(running.run("DEBUG DIGEST"), before);
    // Copies, and payloads of single keys.
    running.run_all(&["COPY large copy"]);
    assert_eq!(running.run("DEBUG DIGEST-VALUE copy"), running.run("DEBUG DIGEST-VALUE large"));
    let payload: Vec<u8> = redis::cmd("DUMP").arg("large").query(&mut running.connection).unwrap();
    let mut restore = redis::cmd("RESTORE");
    restore.arg("restored").arg(0).arg(&payload);
    restore.query::<()>(&mut running.connection).unwrap();
    assert_eq!(running.run("DEBUG DIGEST-VALUE restored"), running.run("DEBUG DIGEST-VALUE large"));
    running.run_all(&["OM.SET restored other 1"]);
    assert_ne!(running.run("DEBUG DIGEST-VALUE restored"), running.run("DEBUG DIGEST-VALUE large"));
}

#[test]
fn a_replica_has_what_its_primary_has() {
    let mut primary = Running::start("", "");
    fill_all(&mut primary);
    let mut replica = Running::start("", "");
    replica.run_all(&[&format!("REPLICAOF 127.0.0.1 {}", primary.server.port)]);
    replica.wait_for("master_sync_in_progress", |number| number == 0);
    for number in 0..2000 {
        primary.run_all(&[
            &format!("OM.SET m {} {number}", number % 300),
            &format!("OM.SET m {} {number} NX", number % 200),
            &format!("OM.CAS m {} VALUE {} VALUE x", number % 300, number),
            &format!("OM.CAS m y{number} ABSENT VALUE 1"),
        ]);
        match number % 10 {
            3 => primary.run_all(&["OM.POP m", "OM.POP m LAST COUNT 2"]),
            5 => primary
                .run_all(&["OM.DELRANGE m [y (z COUNT 3", "OM.DEL large a/long/path/0000007"]),
            7 => primary.run_all(&["MULTI", "OM.SET m multi 1", "OM.DEL m multi 17", "EXEC"]),
            _ => {}
        }
    }
    assert_eq!(primary.run("WAIT 1 20000"), "1");
    assert_eq!(replica.run("DEBUG DIGEST"), primary.run("DEBUG DIGEST"));
    assert_eq!(replica.run("OM.LEN m"), primary.run("OM.LEN m"));
    assert!(replica.run("OM.SET m a 1").starts_with("!READONLY"));
    assert_eq!(replica.run("OM.AGG large - (a/long/path/0000001 SUM"), "[0]");
}

/// Snapshots are written by a child of `fork`, while threads of the parent read the maps and free
/// what the event loop removes. That the child's scan neither pins nor waits is checked by
/// `tests/unprotected.rs` of `silvics`: a child that pins waits for a lock only now and then.
#[test]
fn a_child_saves_beside_scans_and_frees() {
    const STAY: u64 = 50_000;
    let mut running = Running::start("threads 2", "--dbfilename dump.rdb");
    let value = |number: u64| format!("the value with the number {number}, in a block of its own");
    fill(&mut running.connection, "m", STAY, |number| (format!("{number:09}"), value(number)));
    fill(&mut running.connection, "n", STAY, |number| (format!("{number:09}"), number.to_string()));
    let stops = AtomicBool::new(false);
    let connections: Vec<_> = (0..3).map(|_| running.server.connect().unwrap()).collect();
    scope(|scope| {
        for (index, mut connection) in connections.into_iter().enumerate() {
            let stops = &stops;
            scope.spawn(move || {
                let mut round = 0;
                while !stops.load(Ordering::SeqCst) {
                    if index > 0 {
                        for command in ["OM.COUNT m - +", "OM.AGG n - + SUM MAX"] {
                            let reply = super::run(&mut connection, command);
                            assert!(!reply.starts_with('!'), "{reply}");
                        }
                        continue;
                    }
                    // Replaces blocks, and makes and removes keys behind those that stay.
                    fill(&mut connection, "m", 2000, |number| {
                        (format!("{number:09}"), value(number))
                    });
                    fill(&mut connection, "m", 500, |number| {
                        (format!("x{number:09}"), value(round))
                    });
                    assert_eq!(super::run(&mut connection, "OM.DELRANGE m [x +"), "500");
                    round += 1;
                }
            });
        }
        for _ in 0..30 {
            running.run_all(&["BGSAVE"]);
            running.wait_for("rdb_bgsave_in_progress", |number| number == 0);
            assert!(running.run("INFO persistence").contains("rdb_last_bgsave_status:ok"));
        }
        stops.store(true, Ordering::SeqCst);
    });
    // The last snapshot under load, and then one of the quiet server.
    for quiet in [false, true] {
        if quiet {
            running.run_all(&["BGSAVE"]);
            running.wait_for("rdb_bgsave_in_progress", |number| number == 0);
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::copy(running.folder.path().join("dump.rdb"), folder.path().join("dump.rdb"))
            .unwrap();
        let mut loaded = Running::start_in(folder, "", "--dbfilename dump.rdb");
        assert_eq!(loaded.run("OM.COUNT m - (x"), STAY.to_string());
        for number in (0..STAY).step_by(997) {
            assert_eq!(loaded.run(&format!("OM.GET n {number:09}")), number.to_string());
            let reply: Value = redis::cmd("OM.GET")
                .arg("m")
                .arg(format!("{number:09}"))
                .query(&mut loaded.connection)
                .unwrap();
            assert_eq!(super::text(&reply), value(number));
        }
        if quiet {
            assert_eq!(loaded.run("DEBUG DIGEST"), running.run("DEBUG DIGEST"));
        }
    }
}
