//! Long scans on threads of the module: beside writers, in transactions, and for clients that go.

use super::{Running, fill, run};
use redis::Value;
use std::thread::{scope, sleep};
use std::time::Duration;

const LEN: u64 = 200_000;

/// A server with a map whose entries have the numbers from 0 on as values.
fn start(arguments: &str) -> Running {
    let mut running = Running::start(arguments, "");
    fill(&mut running.connection, "m", LEN, |number| (format!("{number:09}"), number.to_string()));
    running
}

fn sum() -> String {
    format!("[{}]", LEN * (LEN - 1) / 2)
}

#[test]
fn long_commands_leave_the_loop_and_reply_the_same() {
    let mut running = start("");
    let mut inline = start("threads 0");
    let all = format!("LIMIT 0 {LEN}");
    for (command, jobs) in [
        ("OM.AGG m - + SUM MIN MAX".to_string(), 1),
        ("OM.COUNT m (000000010 +".to_string(), 1),
        (format!("OM.RANGE m - + {all}"), 1),
        ("OM.RANGE m [000001 (0001 KEYSONLY".to_string(), 1),
        (format!("OM.REVRANGE m + - {all} KEYSONLY"), 1),
        ("OM.REVRANGE m + - LIMIT 150000 3".to_string(), 1),
        ("OM.PREFIX m 0001 LIMIT 99990 -1".to_string(), 1),
        ("OM.RANGE m - + LIMIT 100 900".to_string(), 0),
        ("OM.COUNT m - [000000500".to_string(), 0),
        ("OM.RANGE m [000199999 +".to_string(), 0),
    ] {
        let before = running.info("silvics_jobs_done");
        assert_eq!(running.run(&command), inline.run(&command), "{command}");
        assert_eq!(running.info("silvics_jobs_done") - before, jobs, "{command}");
    }
    assert_eq!(inline.info("silvics_jobs_done"), 0);
    running.run_all(&["OM.SET m 000100000 text"]);
    let sentence =
        "!ERR the value of key '000100000' is not a number: aggregate a range of numbers";
    assert_eq!(running.run("OM.AGG m - + SUM"), sentence);
}

#[test]
fn transactions_and_scripts_stay_on_the_loop() {
    let mut running = start("");
    running.run_all(&["MULTI", "OM.AGG m - + SUM"]);
    assert_eq!(running.run("EXEC"), format!("[{}]", sum()));
    let mut script = redis::cmd("EVAL");
    script.arg("return redis.call('OM.AGG', KEYS[1], '-', '+', 'SUM')").arg(1).arg("m");
    assert_eq!(super::text(&script.query::<Value>(&mut running.connection).unwrap()), sum());
    assert_eq!(running.info("silvics_jobs_done"), 0);
}

#[test]
fn a_watched_key_is_modified_by_changes_alone() {
    let mut running = Running::start("", "");
    let mut other = running.server.connect().unwrap();
    running.run_all(&["OM.SET m a 1"]);
    for (command, changes) in [
        ("OM.SET m a 2 NX", false),
        ("OM.CAS m a VALUE 7 VALUE 8", false),
        ("OM.DEL m x", false),
        ("OM.DELRANGE m [x +", false),
        ("OM.CAS m x ABSENT ABSENT", false),
        ("OM.SET m a 1", true),
        ("OM.CAS m a VALUE 1 VALUE 2", true),
        ("OM.DELRANGE m - +", true),
        ("OM.SET m a 1", true),
        ("OM.POP m", true),
    ] {
        running.run_all(&["WATCH m", "MULTI", "PING"]);
        run(&mut other, command);
        let reply = running.run("EXEC");
        assert_eq!(reply, if changes { "nil" } else { "[PONG]" }, "{command}");
    }
}

#[test]
fn writes_go_on_beside_a_scan() {
    let mut running = start("");
    let mut writer = running.server.connect().unwrap();
    scope(|scope| {
        let writes = scope.spawn(move || {
            for round in 0..20_u32 {
                for number in (0..LEN).step_by(997) {
                    // One value at a time is greater by one.
                    let _ = run(&mut writer, &format!("OM.SET m {:09} {}", number, number + 1));
                    let _ = run(&mut writer, &format!("OM.SET m x{number} text{round}"));
                    let _ = run(&mut writer, &format!("OM.SET m {number:09} {number}"));
                    let _ = run(&mut writer, &format!("OM.DEL m x{number}"));
                }
            }
        });
        let mut scans = 0;
        while scans < 5 || !writes.is_finished() {
            let reply = running.run("OM.AGG m - (x SUM");
            let found: u64 = reply.trim_matches(['[', ']']).parse().unwrap();
            let exact = LEN * (LEN - 1) / 2;
            // The scan may see each of the writer's values while it is greater.
            assert!((exact..=exact + LEN / 997 + 1).contains(&found), "{found} and {exact}");
            assert_eq!(running.run("OM.COUNT m - (x"), LEN.to_string());
            scans += 1;
        }
    });
    assert_eq!(running.run("OM.AGG m - + SUM"), sum());
}

#[test]
fn a_client_that_goes_ends_its_scan() {
    let mut running = start("threads 1");
    for _ in 0..10 {
        let mut client = running.server.connect().unwrap();
        let mut packed = Vec::new();
        for _ in 0..20 {
            packed.extend(redis::cmd("OM.AGG").arg(&["m", "-", "+", "SUM"]).get_packed_command());
        }
        client.send_packed_command(&packed).unwrap();
        sleep(Duration::from_millis(3));
        drop(client);
        running.wait_for("silvics_jobs_running", |running| running == 0);
    }
    assert!(running.info("silvics_jobs_abandoned") > 0);
    assert_eq!(running.run("OM.AGG m - + SUM"), sum());
}

#[test]
fn a_map_may_be_deleted_under_its_scan() {
    let mut running = start("");
    for remove in ["DEL m", "UNLINK m", "FLUSHALL", "FLUSHALL ASYNC"] {
        let before = running.info("used_memory");
        // Scans of the same map take turns. So some of them run at the moment of the removal.
        let mut clients: Vec<_> = (0..40).map(|_| running.server.connect().unwrap()).collect();
        let scan = redis::cmd("OM.AGG").arg(&["m", "-", "+", "SUM", "MAX"]).get_packed_command();
        for client in &mut clients {
            client.send_packed_command(&scan).unwrap();
        }
        running.run_all(&[remove]);
        let left = running.info("silvics_jobs_running");
        assert_eq!(running.run("EXISTS m"), "0");
        let (mut whole, mut none) = (0, 0);
        for client in &mut clients {
            let reply = super::text(&client.recv_response().unwrap());
            if reply == "[0 nil]" {
                none += 1;
            } else {
                assert_eq!(reply, format!("{} {}]", sum().trim_end_matches(']'), LEN - 1));
                whole += 1;
            }
        }
        assert_eq!(whole + none, 40);
        assert!(left > 0 && whole > 0, "{remove}: {left} of {whole} scans ran at that moment");
        running.wait_for("used_memory", |now| now < before - 5_000_000);
        let entry = |number: u64| (format!("{number:09}"), number.to_string());
        fill(&mut running.connection, "m", LEN, entry);
    }
}

/// Jobs take turns: a short one does not wait for those before it.
#[test]
fn short_scans_do_not_wait_for_long_ones() {
    let mut running = start("threads 1");
    let entry = |number: u64| (format!("{number:09}"), number.to_string());
    fill(&mut running.connection, "short", 2000, entry);
    let mut clients: Vec<_> = (0..100).map(|_| running.server.connect().unwrap()).collect();
    let scan = redis::cmd("OM.AGG").arg(&["m", "-", "+", "SUM"]).get_packed_command();
    for client in &mut clients {
        client.send_packed_command(&scan).unwrap();
    }
    assert_eq!(running.run("OM.COUNT short - +"), "2000");
    let done = running.info("silvics_jobs_done"); // of 101
    assert!(done < 80, "{done} scans ended, and the short one was the last of them");
    for client in &mut clients {
        assert_eq!(super::text(&client.recv_response().unwrap()), sum());
    }
}
