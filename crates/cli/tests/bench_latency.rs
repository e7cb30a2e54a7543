//! `silvics bench --latency`.

mod common;

use common::{assert_sound, bench, bench_json, command, field, number, refused, rows, stdout};

/// Each verb of the mix has percentiles, and the rounds that measure throughput are all there.
#[test]
fn each_verb_has_percentiles() {
    let args = ["--index", "skiplist,art", "--keys", "2k", "--threads", "2", "--latency"];
    let result = bench_json(&[&args[..], &["--mix", "40/20/20/20,0/0/0/0/100"]].concat());
    for row in rows(&result) {
        assert_sound(row, 2);
        let latencies = field(row, "latency").as_array().unwrap();
        let verbs: Vec<_> = latencies.iter().map(|latency| latency["verb"].as_str()).collect();
        let expected = match row["mix"].as_str() {
            Some("40/20/20/20") => vec!["lookup", "insert", "remove", "scan"],
            _ => vec!["upsert"],
        };
        assert_eq!(verbs, expected.into_iter().map(Some).collect::<Vec<_>>());
        for latency in latencies {
            let (samples, mean) = (number(latency, "samples"), number(latency, "mean_ns"));
            let points = field(latency, "points").as_array().unwrap();
            let at: Vec<f64> = points.iter().map(|point| number(point, "percentile")).collect();
            let ns: Vec<f64> = points.iter().map(|point| number(point, "ns")).collect();
            assert!(at.is_sorted() && ns.is_sorted() && at[0] == 0.0, "{latency}");
            assert!(samples >= 64.0 && at.contains(&50.0), "{latency}");
            // The histogram has three digits.
            let (least, max) = (ns[0] * 0.998, number(latency, "max_ns"));
            assert!((least..=max).contains(&mean) && ns[ns.len() - 1] <= max * 1.002, "{latency}");
        }
    }
}

#[test]
fn without_the_flag_nothing_is_timed() {
    let result = bench_json(&["--index", "skiplist", "--keys", "1k"]);
    assert!(rows(&result).iter().all(|row| row["latency"].as_array().unwrap().is_empty()));
    let table = bench(&["--index", "skiplist", "--keys", "1k"]);
    assert!(!stdout(&table).contains("latency"));
}

/// Each latency has its keys, its calls, and the cost of the clock in its configuration.
#[test]
fn a_sample_has_keys_calls_and_a_clock() {
    let args = ["--index", "art,map,ordmap", "--keys", "2k", "--threads", "1", "--latency"];
    let more = ["--mix", "40/20/10/30", "--scan-by", "range,next,whole", "--batch", "1,16"];
    let more = [&more[..], &["--scan-length", "5", "--loads", "1"]].concat();
    let result = bench_json(&[&args[..], &more].concat());
    assert!(field(&result, "config").get("clock_ns").is_none(), "the cost differs by call");
    assert_eq!(rows(&result).len(), 3 * 6);
    for row in rows(&result) {
        let index = row["index"].as_str().unwrap();
        let batch = row["batch"].as_u64().unwrap();
        let scanned = match row["scan_by"].as_str() {
            Some("range") => Some(5),
            Some("next") => Some(1),
            _ => None,
        };
        for latency in field(row, "latency").as_array().unwrap() {
            let verb = latency["verb"].as_str().unwrap();
            let is_loop = match verb {
                "lookup" => index == "ordmap",
                "insert" => index != "art",
                _ => false,
            };
            let keys = match verb {
                "lookup" | "insert" => Some(batch),
                "remove" => Some(1),
                _ => scanned,
            };
            assert_eq!(latency["keys"].as_u64(), keys, "{index} {latency}");
            let calls = if is_loop { batch } else { 1 };
            assert_eq!(latency["calls"].as_u64(), Some(calls), "{index} {latency}");
            assert!(latency.get("clock_ns").is_some(), "{latency}");
        }
    }
}

#[test]
fn the_table_says_what_a_time_is_and_what_the_clock_costs() {
    let args = ["--index", "art,ordmap", "--keys", "1k", "--mix", "90/5/5", "--latency"];
    let text = stdout(&bench(&[&args[..], &["--batch", "16"]].concat()));
    for part in [
        "latency in ns; of each time, the clock and its loop take ",
        " (lookup), ",
        " p99.99 |",
        "| remove ",
        "16 in 16 calls |",
        "   16 |",
        "makes one call after the other",
    ] {
        assert!(text.contains(part), "`{part}` is not in {text}");
    }
}

#[test]
fn csv_has_no_latencies() {
    let args = ["--keys", "1k", "--index", "skiplist", "--format", "csv"];
    refused(&bench(&[&args[..], &["--latency"]].concat()), &["--format", "csv", "--latency"]);
    assert!(command(&["bench", "--help"]).output().unwrap().status.success());
}
