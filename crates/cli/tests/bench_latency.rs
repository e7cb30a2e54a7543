//! `silvics bench --latency`.

mod common;

use common::{assert_sound, bench, bench_json, command, field, number, refused, rows, stdout};

/// Each verb of the mix has percentiles, and the rounds that measure throughput are all there.
#[test]
fn each_verb_has_percentiles() {
    let args = ["--index", "skiplist,art", "--keys", "2k", "--threads", "2", "--latency"];
    let result = bench_json(&[&args[..], &["--mix", "40/20/20/20,0/0/0/0/100"]].concat());
    assert!(number(field(&result, "config"), "clock_ns") > 0.0);
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
    assert!(field(&result, "config")["clock_ns"].is_null());
    assert!(rows(&result).iter().all(|row| row["latency"].as_array().unwrap().is_empty()));
    let table = bench(&["--index", "skiplist", "--keys", "1k"]);
    assert!(!stdout(&table).contains("latency"));
}

/// Batches and scans entry by entry are calls, too. One of sixteen scans by range is a check.
#[test]
fn a_sample_is_a_call() {
    let args = ["--index", "art", "--keys", "2k", "--threads", "1", "--rounds", "1", "--latency"];
    let args = [&args[..], &["--seconds", "0.1"]].concat();
    let more = ["--mix", "50/0/0/50", "--scan-by", "range,next,whole", "--batch", "1,16"];
    let length = ["--scan-length", "5", "--loads", "1"];
    let result = bench_json(&[&args[..], &more, &length].concat());
    assert_eq!(rows(&result).len(), 6);
    for row in rows(&result) {
        let samples = |verb: &str| {
            let latencies = field(row, "latency").as_array().unwrap();
            number(latencies.iter().find(|latency| latency["verb"] == verb).unwrap(), "samples")
        };
        let scans = samples("scan") / samples("lookup");
        // A batch of 16 lookups is one call beside 16 scans.
        let batch = number(row, "batch");
        let expected = batch * if row["scan_by"] == "next" { 5.0 } else { 15.0 / 16.0 };
        // Kinds are drawn, and a busy machine leaves time for few batches.
        assert!((0.4..2.5).contains(&(scans / expected)), "{scans}, not {expected}: {row}");
    }
}

#[test]
fn the_table_says_what_the_clock_costs() {
    let args = ["--index", "skiplist", "--keys", "1k", "--mix", "90/5/5", "--latency"];
    let text = stdout(&bench(&args));
    for part in [
        "latency of each call in ns (each contains the ",
        " ns of the clock",
        " p99.99 |",
        "| remove ",
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
