//! Every command, with each of its options and each way to be wrong.

use super::{Running, fill, run};
use redis::Value;

fn check(running: &mut Running, dialogue: &[(&str, &str)]) {
    for (line, reply) in dialogue {
        assert_eq!(running.run(line), *reply, "{line}");
    }
}

#[test]
fn commands_on_keys() {
    let mut running = Running::start("", "");
    check(
        &mut running,
        &[
            ("OM.GET m a", "nil"),
            ("OM.MGET m a b", "[nil nil]"),
            ("OM.LEN m", "0"),
            ("OM.FIRST m", "nil"),
            ("OM.DEL m a", "0"),
            ("OM.SET m a 1 XX", "nil"),
            ("EXISTS m", "0"),
            ("OM.SET m a 1", "OK"),
            ("OM.SET m a 2 NX", "nil"),
            ("OM.SET m a 2 NX GET", "1"),
            ("OM.SET m b a-value-that-needs-a-block GET", "nil"),
            ("OM.SET m b 12345678901 XX GET", "a-value-that-needs-a-block"),
            ("OM.SET m c 00000000001 nx", "OK"),
            ("OM.MGET m c a x b", "[00000000001 1 nil 12345678901]"),
            ("OM.LEN m", "3"),
            ("OM.FIRST m", "[a 1]"),
            ("OM.LAST m", "[c 00000000001]"),
            ("OM.CAS m d ABSENT ABSENT", "1"),
            ("OM.CAS m d VALUE 1 VALUE 2", "0"),
            ("OM.CAS m d ABSENT VALUE ABSENT", "1"),
            ("OM.CAS m d ABSENT VALUE 1", "0"),
            ("OM.CAS m d VALUE ABSENT VALUE 9", "1"),
            ("OM.CAS m d VALUE 9 ABSENT", "1"),
            ("OM.CAS new d ABSENT ABSENT", "1"),
            ("OM.CAS new d VALUE 1 ABSENT", "0"),
            ("EXISTS new", "0"),
            ("OM.CAS new d ABSENT VALUE 1", "1"),
            ("OM.CAS new d VALUE 1 ABSENT", "1"),
            ("EXISTS new", "0"),
            ("OM.DEL m a a x", "1"),
            ("OM.POP m", "[b 12345678901]"),
            ("OM.SET m d 4", "OK"),
            ("OM.SET m e 5", "OK"),
            ("OM.POP m LAST COUNT 2", "[e 5 d 4]"),
            ("OM.POP m COUNT 0", "[]"),
            ("OM.POP m COUNT 9", "[c 00000000001]"),
            ("EXISTS m", "0"),
            ("OM.POP m", "nil"),
            ("OM.POP m COUNT 2", "[]"),
            ("TYPE m", "none"),
        ],
    );
}

#[test]
fn commands_on_ranges() {
    let mut running = Running::start("", "");
    fill(&mut running.connection, "m", 10, |number| (format!("k{number}"), number.to_string()));
    check(
        &mut running,
        &[
            ("OM.RANGE m [k2 (k5", "[k2 2 k3 3 k4 4]"),
            ("OM.RANGE m (k2 [k5 KEYSONLY", "[k3 k4 k5]"),
            ("OM.RANGE m - + LIMIT 1 2 KEYSONLY", "[k1 k2]"),
            ("OM.RANGE m - + LIMIT 8 -1", "[k8 8 k9 9]"),
            ("OM.RANGE m - + LIMIT 100 5", "[]"),
            ("OM.RANGE m + -", "[]"),
            ("OM.RANGE m [k5 [k2", "[]"),
            ("OM.RANGE none - +", "[]"),
            ("OM.REVRANGE m (k5 [k2", "[k4 4 k3 3 k2 2]"),
            ("OM.REVRANGE m + - LIMIT 1 2 KEYSONLY", "[k8 k7]"),
            ("OM.REVRANGE m - +", "[]"),
            ("OM.SET m k 10", "OK"),
            ("OM.SET m l 11", "OK"),
            ("OM.PREFIX m k1", "[k1 1]"),
            ("OM.PREFIX m k LIMIT 0 3 KEYSONLY", "[k k0 k1]"),
            ("OM.PREFIX m x", "[]"),
            ("OM.COUNT m - +", "12"),
            ("OM.COUNT m (k3 +", "7"),
            ("OM.COUNT none - +", "0"),
            ("OM.AGG m [k0 [k9 sum MIN max", "[45 0 9]"),
            ("OM.AGG none - + SUM MIN", "[0 nil]"),
            ("OM.AGG m [x + SUM MIN", "[0 nil]"),
            ("OM.SET m k5 1.5", "OK"),
            ("OM.AGG m [k4 [k6 SUM MIN MAX", "[11.5 1.5 6]"),
            ("OM.SCAN m 0 COUNT 100 KEYSONLY", "[0 [k k0 k1 k2 k3 k4 k5 k6 k7 k8 k9 l]]"),
            ("OM.SCAN none 0", "[0 []]"),
            ("OM.DELRANGE m [k3 + COUNT 2", "2"),
            ("OM.DELRANGE m (k1 [k6", "3"),
            ("OM.RANGE m - + KEYSONLY", "[k k0 k1 k7 k8 k9 l]"),
            ("OM.DELRANGE m - +", "7"),
            ("EXISTS m", "0"),
            ("OM.DELRANGE m - +", "0"),
        ],
    );
}

#[test]
fn a_scan_reads_all_and_its_cursor_belongs_to_its_map() {
    let mut running = Running::start("", "");
    fill(&mut running.connection, "m", 1000, |number| (format!("{number:04}"), "1".into()));
    let (mut cursor, mut keys) = (b"0".to_vec(), Vec::new());
    loop {
        let mut command = redis::cmd("OM.SCAN");
        command.arg("m").arg(&cursor).arg("COUNT").arg(7).arg("KEYSONLY");
        let (next, some): (Vec<u8>, Vec<String>) = command.query(&mut running.connection).unwrap();
        keys.extend(some);
        if next == b"0" {
            break;
        }
        cursor = next;
    }
    assert!(keys.iter().map(|key| key.parse::<u32>().unwrap()).eq(0..1000));
    let cursor = String::from_utf8(cursor).unwrap();
    running.run_all(&["COPY m copy", "DEL m"]);
    let gone = "!ERR the cursor is of a map that was deleted, or of another process: begin with \
                0, or go on behind the last key with OM.RANGE map (key +";
    check(
        &mut running,
        &[
            (&format!("OM.SCAN m {cursor}"), gone),
            (&format!("OM.SCAN copy {cursor}"), gone),
            ("RENAME copy m", "OK"),
            (&format!("OM.SCAN m {cursor}"), gone),
        ],
    );
}

#[test]
fn wrong_arguments_get_a_sentence_and_change_nothing() {
    let mut running = Running::start("", "");
    running.run_all(&["OM.SET m a 1", "SET s 1"]);
    let before = running.run("DEBUG DIGEST");
    let wrong_type = "!WRONGTYPE Operation against a key holding the wrong kind of value";
    for command in [
        "OM.SET s a 1",
        "OM.GET s a",
        "OM.MGET s a",
        "OM.DEL s a",
        "OM.CAS s a ABSENT VALUE 1",
        "OM.LEN s",
        "OM.FIRST s",
        "OM.LAST s",
        "OM.POP s",
        "OM.RANGE s - +",
        "OM.REVRANGE s + -",
        "OM.PREFIX s a",
        "OM.SCAN s 0",
        "OM.COUNT s - +",
        "OM.AGG s - + SUM",
        "OM.DELRANGE s - +",
        "OM.INFO s",
    ] {
        assert_eq!(running.run(command), wrong_type, "{command}");
        let name = command.split(' ').next().unwrap();
        assert!(running.run(name).starts_with("!ERR wrong number of arguments"), "{name}");
    }
    check(
        &mut running,
        &[
            ("GET m", wrong_type),
            ("OM.SET m a 2 NX XX", "!ERR NX and XX exclude each other: give one of them"),
            ("OM.SET m a 2 EX", "!ERR 'EX' is not an option here: give NX, XX or GET"),
            ("OM.CAS m a 1 2", "!ERR '1' is not an option here: give ABSENT, or VALUE and a value"),
            ("OM.CAS m a VALUE 1 VALUE", "!ERR the value behind VALUE is missing"),
            ("OM.CAS m a VALUE 1 ABSENT x", "!ERR 'x' is one argument too many"),
            ("OM.RANGE m a +", "!ERR the minimum is 'a': give - or + or [key or (key"),
            ("OM.REVRANGE m a -", "!ERR the maximum is 'a': give - or + or [key or (key"),
            ("OM.RANGE m - + LIMIT -1 2", "!ERR the offset is '-1': give 0 or more"),
            ("OM.RANGE m - + LIMIT 1", "!ERR the count behind LIMIT is missing"),
            (
                "OM.PREFIX m a NOKEYS",
                "!ERR 'NOKEYS' is not an option here: give LIMIT offset count, or KEYSONLY",
            ),
            ("OM.DELRANGE m - b", "!ERR the maximum is 'b': give - or + or [key or (key"),
            ("OM.DELRANGE m - + COUNT 0", "!ERR COUNT is 0: give 1 or more"),
            ("OM.POP m COUNT -1", "!ERR COUNT is '-1': give 0 or more"),
            ("OM.AGG m - + AVG", "!ERR 'AVG' is not an option here: give SUM, MIN or MAX"),
            ("OM.SCAN m 17", "!ERR '17' is not a cursor: give 0, or the cursor of the last reply"),
            ("OM.SET m b text", "OK"),
            (
                "OM.AGG m - + SUM",
                "!ERR the value of key 'b' is not a number: aggregate a range of numbers",
            ),
            ("OM.DEL m b", "1"),
        ],
    );
    assert_eq!(running.run("DEBUG DIGEST"), before);
    let mut long = redis::cmd("OM.SET");
    long.arg("m2").arg(vec![7_u8; 600 << 10]).arg(1);
    let error = long.query::<Value>(&mut running.connection).unwrap_err();
    let sentence = "the key has 614400 bytes: use keys of at most 524288 bytes";
    assert_eq!(error.detail(), Some(sentence));
    assert_eq!(running.run("EXISTS m2"), "0");
}

#[test]
fn the_server_knows_keys_categories_and_events() {
    let mut running = Running::start("", "--notify-keyspace-events KEgd");
    check(
        &mut running,
        &[
            ("COMMAND GETKEYS OM.SET m a 1", "[m]"),
            ("COMMAND GETKEYS OM.DELRANGE m - +", "[m]"),
            ("ACL SETUSER getter on nopass ~* -@all +om.get", "OK"),
            ("ACL DRYRUN getter OM.GET m a", "OK"),
            ("ACL SETUSER one on nopass +@all %R~* %W~w", "OK"),
            ("ACL DRYRUN one OM.RANGE m - +", "OK"),
            ("ACL DRYRUN one OM.DEL w a", "OK"),
            ("MULTI", "OK"),
            ("OM.GET m", "!ERR wrong number of arguments for 'OM.GET' command"),
            ("DISCARD", "OK"),
        ],
    );
    let refused = |running: &mut Running, user: &str, command: &str| {
        let reply = running.run(&format!("ACL DRYRUN {user} {command}"));
        assert!(reply.contains("no permissions"), "{user}: {command}: {reply}");
    };
    refused(&mut running, "getter", "OM.SET m a 1");
    // Redis 7.0 has no function by which a module could put its commands into categories.
    if !running.run("INFO server").contains("redis_version:7.0.") {
        check(
            &mut running,
            &[
                ("ACL SETUSER reader on nopass ~* -@all +@read", "OK"),
                ("ACL DRYRUN reader OM.GET m a", "OK"),
                ("ACL DRYRUN reader OM.AGG m - + SUM", "OK"),
                ("ACL SETUSER fast on nopass ~* -@all +@fast", "OK"),
                ("ACL DRYRUN fast OM.SET m a 1", "OK"),
            ],
        );
        refused(&mut running, "reader", "OM.SET m a 1");
        refused(&mut running, "reader", "OM.POP m");
        refused(&mut running, "fast", "OM.RANGE m - +");
    }
    let mut listener = running.server.connect().unwrap();
    let mut events = listener.as_pubsub();
    events.subscribe("__keyspace@0__:m").unwrap();
    running.run_all(&[
        "OM.SET m a 1",
        "OM.SET m a 1 NX",
        "OM.CAS m a VALUE 1 VALUE 2",
        "OM.CAS m a VALUE 1 VALUE 2",
        "OM.DEL m x",
        "OM.DEL m a",
        "OM.SET m a 1",
        "OM.POP m",
        "OM.SET m a 1",
        "OM.DELRANGE m - +",
    ]);
    let expected = [
        "om.set",
        "om.cas",
        "om.del",
        "del",
        "om.set",
        "om.pop",
        "del",
        "om.set",
        "om.delrange",
        "del",
    ];
    for event in expected {
        assert_eq!(events.get_message().unwrap().get_payload::<String>().unwrap(), event);
    }
}

#[test]
fn the_server_counts_the_memory() {
    let mut running = Running::start("", "");
    let start = running.info("used_memory");
    let value = |number: u64| format!("the value with the number {number}, in a block of its own");
    fill(&mut running.connection, "m", 100_000, |number| {
        (format!("key/{number:08}"), value(number))
    });
    let grown = running.info("used_memory") - start;
    let bytes: u64 = info(&mut running, "bytes");
    let share = bytes as f64 / grown as f64;
    assert!((0.97..=1.001).contains(&share), "{bytes} of {grown}");
    let usage: u64 = running.run("MEMORY USAGE m").parse().unwrap();
    assert!((bytes..bytes + 200).contains(&usage), "{usage} and {bytes}");
    assert_eq!(info::<u64>(&mut running, "entries"), 100_000);
    assert!(bytes < 100_000 * 120, "{bytes} bytes for 100 000 entries");
    // Each value replaces a block. The maps of the process free old ones now and then.
    fill(&mut running.connection, "m", 100_000, |number| {
        (format!("key/{number:08}"), value(number + 1))
    });
    let again: u64 = info(&mut running, "bytes");
    assert!(again < bytes + bytes / 20, "{bytes}, then {again}");
    running.run_all(&["DEL m"]);
    // Valkey frees large values on a thread.
    running.wait_for("used_memory", |now| now.saturating_sub(start) < grown / 20);
}

/// Many maps of a few entries: the fixed parts of each are counted, too.
#[test]
fn the_server_counts_small_maps() {
    let mut running = Running::start("", "");
    for (values, writes) in [("1", 1), ("a-value-that-needs-a-block-of-its-own", 3)] {
        running.run_all(&["FLUSHALL SYNC"]);
        let start = running.info("used_memory");
        for map in 0..5000 {
            for write in 0..writes {
                running.run_all(&[&format!("OM.SET map:{map:05} key {values}{write}")]);
            }
        }
        let grown = running.info("used_memory") - start;
        let usage: u64 = running.run("MEMORY USAGE map:00007").parse().unwrap();
        let share = (5000 * usage) as f64 / grown as f64;
        assert!((0.9..1.05).contains(&share), "{usage} of {}, {writes} writes", grown / 5000);
    }
}

/// A number of `OM.INFO`.
fn info<T: std::str::FromStr<Err: std::fmt::Debug>>(running: &mut Running, name: &str) -> T {
    let reply: Vec<Value> = redis::cmd("OM.INFO").arg("m").query(&mut running.connection).unwrap();
    let texts: Vec<String> = reply.iter().map(super::text).collect();
    let at = texts.iter().position(|text| text == name).expect("the field");
    texts[at + 1].parse().unwrap()
}

#[test]
fn a_full_server_refuses_writes_and_serves_the_rest() {
    let mut running = Running::start("", "--maxmemory 20mb");
    let mut refused = None;
    for number in 0..1_000_000 {
        let reply =
            run(&mut running.connection, &format!("OM.SET m key/{number} {}", "v".repeat(500)));
        if reply != "OK" {
            refused = Some((number, reply));
            break;
        }
    }
    let (number, reply) = refused.expect("20 MB are full");
    assert!(reply.starts_with("!OOM"), "{reply}");
    assert_eq!(running.run("OM.LEN m"), number.to_string());
    assert!(running.run("OM.CAS m new ABSENT VALUE 1").starts_with("!OOM"));
    assert_eq!(running.run(&format!("OM.GET m key/{number}")), "nil");
    assert_eq!(running.run("OM.GET m key/7").len(), 500);
    assert_ne!(running.run("OM.DELRANGE m - + COUNT 5000"), "0");
    assert_eq!(running.run("OM.SET m key/7 1"), "OK");
}
