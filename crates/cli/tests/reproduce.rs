//! `silvics reproduce`: the findings of the studies that it shows, its output, and its refusals.

mod common;

use common::{refused, run, stderr, stdout};
use serde_json::Value;

/// Runs an experiment with a sixteenth of the model's last level, and returns its report.
fn quick(args: &[&str]) -> Value {
    let output = run(&[&["reproduce", "--quick", "--format", "json"], args].concat());
    assert_eq!(output.status.code(), Some(0), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON object and nothing else")
}

/// The names and verdicts of the lines on which the report's verdict rests.
fn decisive(report: &Value) -> Vec<(&str, &str)> {
    let lines = report["evidence"].as_array().unwrap();
    let decides = lines.iter().filter(|line| line["decides"] == true);
    decides
        .map(|line| (line["what"].as_str().unwrap(), line["verdict"].as_str().unwrap()))
        .collect()
}

/// Runs an experiment with as few keys as show its claim. At least `lines` lines must confirm it.
fn confirmed(name: &str, keys: &str, level: &str, lines: usize) -> Value {
    let report = quick(&[name, "--keys", keys, "--level", level]);
    assert_eq!(report["verdict"], "confirmed", "{report:#}");
    let decisive = decisive(&report);
    assert!(decisive.len() >= lines, "{decisive:#?}");
    assert!(decisive.iter().all(|(_, verdict)| *verdict == "confirmed"), "{decisive:#?}");
    report
}

/// The line of evidence whose name contains `what`.
fn line<'r>(report: &'r Value, what: &str) -> &'r Value {
    let lines = report["evidence"].as_array().unwrap();
    let line = lines.iter().find(|line| line["what"].as_str().unwrap().contains(what));
    line.unwrap_or_else(|| panic!("no `{what}`: {report:#}"))
}

#[test]
fn fixed_nodes_are_smaller_and_read_in_other_lines() {
    let report = confirmed("bst/1.3", "2000", "facts", 12);
    assert_eq!(report["except"], serde_json::json!([]));
}

#[test]
fn nodes_of_48_bytes_straddle() {
    let report = confirmed("bst/1.4", "8000", "facts,model", 18);
    assert_eq!(report["except"], serde_json::json!([]));
}

#[test]
fn nodes_between_descriptors_use_half_of_the_sets() {
    confirmed("bst/1.5", "26k", "facts,model", 12);
}

#[test]
fn nodes_between_rows_use_a_third_of_a_sliced_cache() {
    let report = confirmed("bst/1.6", "12k", "facts,model", 13);
    // Nearer caches are not in slices, so part of the claim does not hold there.
    assert_eq!(report["except"].as_array().unwrap().len(), 1, "{report:#}");
    assert_eq!(report["cannot_show"].as_array().unwrap().len(), 1, "{report:#}");
}

/// The whole claim is seen except for the odd lines, so the verdict is that it is not seen.
#[test]
fn leaves_lie_beside_their_parents_by_luck() {
    // A machine with a smaller last level than haswell's, which fewer keys fill.
    let args = ["bst/1.7", "--keys", "10k", "--level", "facts,model", "--machine", "i7-2630qm"];
    let report = quick(&args);
    assert_eq!(report["verdict"], "not seen", "{report:#}");
    let mut against = decisive(&report);
    assert_eq!(against.len(), 4, "{against:#?}");
    against.retain(|(_, verdict)| *verdict != "confirmed");
    assert_eq!(against, [("edge-ext-lf:shifted: of those, begin on an odd line", "not seen")]);
    let odd = line(&report, "odd line")["value"].as_f64().unwrap();
    assert!((odd - 0.5).abs() < 0.02, "{report:#}");
    assert_eq!(report["except"], serde_json::json!([]));
    // The source makes no claim about a build of ours: one insert allocates a block.
    let block = line(&report, "edge-ext-lf:collocated: inserts");
    assert_eq!((&block["value"], &block["decides"]), (&1.0.into(), &false.into()), "{block}");
    assert_eq!(line(&report, "LLC misses")["verdict"], "confirmed", "{report:#}");
}

#[test]
fn lookups_of_a_fixed_tree_read_a_word_less() {
    let report = quick(&["bst/1.8", "--keys", "10k", "--level", "facts"]);
    assert_eq!(report["verdict"], "confirmed", "{report:#}");
    let cannot = report["cannot_show"].to_string();
    assert!(cannot.contains("prefetch") && cannot.contains("loads of a node"), "{report:#}");
}

/// One thread joins what threads or a division have made.
#[test]
fn base_nodes_are_joined_by_one_thread() {
    let report = confirmed("ets/5.2", "20k", "facts", 1);
    assert_eq!(line(&report, "base nodes, after at most")["value"], 1.0, "{report:#}");
}

#[test]
fn ranges_join_base_nodes_and_their_histories_are_right() {
    let report = confirmed("ets/5.4", "20k", "facts", 4);
    assert_eq!(line(&report, "an update of all entries")["value"], 1.0, "{report:#}");
}

#[test]
fn striped_counts_write_no_shared_line() {
    let report = confirmed("ets/5.5", "20k", "facts", 8);
    assert_eq!(line(&report, "words, single: writes of the shared line")["value"], 1.0);
    assert_eq!(line(&report, "words, striped: writes of the shared line")["value"], 0.0);
}

/// Debug builds are slow, so the times say nothing here; but each table has its line.
#[test]
fn tables_are_filled_in_turns() {
    let report = quick(&["ets/5.2", "--keys", "5k", "--level", "clock"]);
    for table in ["ca-tree:avl-coarse: time", "ca-tree:avl: time", "ca-tree: time"] {
        assert_eq!(line(&report, table)["decides"], false);
    }
    assert_eq!(decisive(&report).len(), 4, "{report:#}");
}

/// The source's totals are those of a million keys, so they cannot be shown with fewer.
#[test]
fn nodes_of_tries_have_the_bytes_of_the_source() {
    let report = quick(&["trie/3.1", "--keys", "5k", "--level", "facts"]);
    for (alphabet, bytes) in [(2, 48.0), (4, 64.0), (16, 160.0), (256, 2080.0)] {
        let node = line(&report, &format!("alphabet {alphabet}: bytes of a node"));
        assert_eq!((&node["value"], &node["verdict"]), (&bytes.into(), &"confirmed".into()));
        let total = line(&report, &format!("alphabet {alphabet}: bytes of 5000 keys"));
        assert_eq!(total["verdict"], "cannot be shown here", "{total}");
    }
    let share = line(&report, "alphabet 16: nodes of the size of their content");
    assert_eq!(share["verdict"], "confirmed", "{share}");
}

#[test]
fn wide_characters_make_tries_shallow() {
    confirmed("trie/3.3", "20k", "facts", 4);
}

/// Debug builds are slow, so the rates say nothing here; but each number of threads has its lines.
#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn tries_run_with_more_threads_than_cores() {
    let report = quick(&["trie/3.5", "--keys", "2k", "--level", "clock"]);
    for locks in ["spin locks", "mutexes", "adaptive mutexes", "parking_lot"] {
        let found = line(&report, &format!("8 threads: teleportation / {locks}"));
        assert!(found["value"].as_f64().unwrap() > 0.0, "{found}");
    }
    assert!(
        line(&report, "spin locks: ")["what"].as_str().unwrap().contains("relative to its best")
    );
}

#[test]
fn limits_of_retries_have_a_map() {
    let report = quick(&["trie/3.6", "--keys", "2k", "--level", "facts"]);
    for limit in [0, 10] {
        let aborts = line(&report, &format!("injected aborts for each lookup, limit {limit}"));
        assert_eq!((&aborts["verdict"], &aborts["decides"]), (&"confirmed".into(), &false.into()));
    }
    let file = std::env::temp_dir().join(format!("silvics-map-{}.svg", std::process::id()));
    let path = file.to_str().expect("it is text");
    let report = quick(&["trie/3.6", "--keys", "2k", "--level", "clock", "--svg", path]);
    let maps = report["maps"].as_array().unwrap();
    assert_eq!((&maps[0]["keys"], &maps[1]["keys"]), (&2000.into(), &64.into()));
    for map in maps {
        let limits = map["read_limits"].as_array().unwrap();
        assert_eq!(limits, map["modify_limits"].as_array().unwrap());
        let rows: Vec<_> =
            map["rows"].as_array().unwrap().iter().filter_map(Value::as_array).collect();
        assert!(rows.iter().all(|row| row.len() == limits.len()) && rows.len() == limits.len());
        let throughputs =
            rows.into_iter().flatten().map(|cell| cell["throughput"].as_f64().unwrap());
        assert!(throughputs.into_iter().all(|throughput| throughput > 0.0), "{map}");
    }
    let picture = std::fs::read_to_string(&file).expect("it was written");
    std::fs::remove_file(&file).expect("it is there");
    assert!(picture.contains("reads 10") && picture.ends_with("</svg>\n"), "{picture}");
    assert_eq!(picture.matches("<rect class=\"h").count(), 2 * 36, "{picture}");
}

/// The purpose of the command: each finding is named for the build that has it, and not for its
/// remedy.
#[test]
fn findings_are_named_where_they_are() {
    let report = confirmed("bst/1.11", "12500", "facts", 19);
    for finding in [
        "straddling",
        "set-underutilization",
        "useless-neighbours",
        "sliced-stride",
        "lost-collocation",
        "lock-false-sharing",
    ] {
        let lines = report["evidence"].as_array().unwrap().iter();
        let about = |expected: &str| {
            let found = lines.clone().filter(|line| line["expected"] == expected);
            found.map(|line| line["found"].as_str().unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(about(finding), [finding], "{report:#}");
        assert_eq!(about(&format!("no {finding}")), ["no such finding"], "{report:#}");
    }
}

/// The share of translations at each skew, with the source's machine and a part of its keys.
#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn translations_matter_most_between_uniform_and_very_skewed_lookups() {
    let report = quick(&["art/4.1", "--level", "facts,model"]);
    assert_eq!(report["model"]["name"], "i7-2630qm");
    assert_eq!(report["verdict"], "confirmed", "{report:#}");
    let decisive = decisive(&report);
    assert_eq!(decisive.len(), 4, "{decisive:#?}");
    let share = |what: &str| line(&report, what)["value"].as_f64().unwrap();
    // Uniform lookups wait for lines, and lookups of few keys wait for nothing.
    let [uniform, peak, few] = [0.0, 1.5, 3.0].map(|exponent: f64| {
        share(&format!("sparse, exponent {exponent}: share of cycles for translations"))
    });
    assert!(uniform < peak && few < 0.01, "{report:#}");
    // Hot keys that are neighbours share pages.
    let order = line(&report, "ranks in the order of the keys: the exponent");
    assert_eq!(order["decides"], false, "{order}");
    let nodes = line(&report, "dense: what the nodes here take")["found"].to_string();
    assert!(nodes.contains("MB of memory") && nodes.contains("256"), "{nodes}");
}

#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn huge_pages_need_fewer_translations() {
    let report = quick(&["art/4.2", "--level", "facts,model"]);
    let against: Vec<_> =
        decisive(&report).into_iter().filter(|(_, verdict)| *verdict != "confirmed").collect();
    // So few keys fill no huge page, so the system's figures about them prove nothing.
    assert!(against.iter().all(|(what, _)| what.contains("on thp: share")), "{against:#?}");
    for exponent in [0.0, 0.5, 1.0, 1.5] {
        let misses = line(&report, &format!("sparse, exponent {exponent}: TLB misses fall by"));
        assert!(misses["value"].as_f64() >= Some(0.8), "{misses}");
    }
    let table = line(&report, "sparse, exponent 1.5, where least: lines of the page table");
    assert_eq!(table["verdict"], "confirmed", "{table}");
}

#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn huge_pages_are_timed_by_skew() {
    let report = quick(&["art/4.2", "--level", "clock", "--keys", "20k"]);
    let lines = report["evidence"].as_array().unwrap();
    assert_eq!(lines.len(), 14, "{report:#}");
    for line in lines {
        assert_eq!((&line["level"], &line["decides"]), (&"clock".into(), &false.into()), "{line}");
        let what = line["what"].as_str().unwrap();
        assert!(what.contains("20000 keys") && what.contains("thp / on 4k"), "{line}");
    }
}

/// Needs only as many keys as put hot nodes on enough pages.
#[test]
fn hot_nodes_move_into_fewer_pages() {
    let report = quick(&["art/4.3", "--keys", "10k", "--level", "facts,model"]);
    let lines = report["evidence"].as_array().unwrap();
    for exponent in [1.2, 1.5, 1.8] {
        let of =
            |on: &str, what: &str| line(&report, &format!("{on}, exponent {exponent}: {what}"));
        for on in ["sparse on 4k", "dense on thp"] {
            let changed = of(on, "entries that are not what they were");
            assert_eq!(
                (&changed["verdict"], &changed["value"]),
                (&"confirmed".into(), &0.0.into())
            );
            // The lookups beside it may not have had a core. None failed.
            let missed = of(on, "lookups beside reorganizations that missed a key");
            assert!(
                missed["value"] == 0.0 || missed["verdict"] == "cannot be shown here",
                "{missed}"
            );
        }
        // With so few keys, the other nodes are on few pages, too.
        let (least, pages) =
            (if exponent < 1.5 { 1.5 } else { 3.0 }, of("sparse on 4k", "pages of 4 KiB"));
        assert!(pages["value"].as_f64() >= Some(least), "{pages}");
        let misses = of("sparse on 4k", "TLB misses fall by");
        assert!(exponent > 1.5 || misses["value"].as_f64() >= Some(0.2), "{misses}");
        let dense = of("dense on thp", "cycles per lookup change by");
        assert_eq!((&dense["decides"], &dense["level"]), (&true.into(), &"model".into()));
    }
    assert_eq!(lines.len(), 3 * 6 + 3 * 4, "{report:#}");
    assert!(report["cannot_show"].to_string().contains("never waits"), "{report:#}");
}

#[test]
fn reorganizations_are_timed() {
    let report = quick(&["art/4.3", "--level", "clock", "--keys", "1000"]);
    let lines = report["evidence"].as_array().unwrap();
    assert_eq!(lines.len(), 12, "{report:#}");
    assert!(lines.iter().all(|line| line["level"] == "clock" && line["decides"] == false));
    for on in ["sparse on 4k, exponent 1.2", "dense on thp, exponent 1.8"] {
        assert!(line(&report, &format!("{on}: lookups afterwards / before"))["value"].is_f64());
        let cost = line(&report, &format!("{on}: the reorganization"))["found"].to_string();
        assert!(cost.contains(" ms for ") && cost.contains("as it estimates"), "{cost}");
    }
}

#[test]
fn a_claim_about_slices_needs_a_machine_that_has_them() {
    let args = ["bst/1.6", "--keys", "4000", "--level", "model", "--machine", "i7-4770"];
    let report = quick(&args);
    let text = report["cannot_show"].to_string();
    assert!(text.contains("i7-4770 has not 12 slices"), "{report:#}");
    // Other evidence does not make up for it.
    assert_eq!(report["verdict"], "cannot be shown here", "{report:#}");
    assert!(decisive(&report).iter().any(|(_, verdict)| *verdict == "confirmed"), "{report:#}");
}

#[test]
fn a_report_has_all_it_takes_to_judge_it() {
    let output = run(&[
        "reproduce",
        "bst/1.7",
        "bst/1.2",
        "--keys",
        "2000",
        "--quick",
        "--format",
        "json",
        "--level",
        "facts,clock",
        "--seed",
        "7",
    ]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let reports: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("an object on a line")).collect();
    let names: Vec<&Value> = reports.iter().map(|report| &report["experiment"]).collect();
    assert_eq!(names, ["bst/1.2", "bst/1.7"]);
    for report in &reports {
        for field in ["title", "source", "claim", "verdict"] {
            assert!(!report[field].as_str().unwrap().is_empty(), "{field}: {report:#}");
        }
        assert!(report["machine"]["cores"].as_u64() > Some(0), "{report:#}");
        assert_eq!(report["model"]["name"], "haswell");
        assert_eq!(
            (&report["config"]["seed"], &report["config"]["keys"]),
            (&7.into(), &2000.into())
        );
        assert!(report["cannot_show"].is_array() && report["except"].is_array(), "{report:#}");
        let lines = report["evidence"].as_array().unwrap();
        assert!(lines.len() >= 4, "{report:#}");
        for line in lines {
            assert!(["fact", "clock"].contains(&line["level"].as_str().unwrap()), "{line}");
            assert!(!line["what"].as_str().unwrap().is_empty(), "{line}");
            assert!(!line["found"].as_str().unwrap().is_empty(), "{line}");
            assert!(line["expected"].is_string() && line["decides"].is_boolean(), "{line}");
            let verdicts = ["confirmed", "not seen", "contradicted", "cannot be shown here"];
            assert!(verdicts.contains(&line["verdict"].as_str().unwrap()), "{line}");
            // The clock does not decide a claim that another level can decide.
            let clock = line["level"] == "clock";
            assert!(
                !(clock && report["experiment"] == "bst/1.7" && line["decides"] == true),
                "{line}"
            );
        }
    }
}

/// A few rows lie in one region of 2 MiB, so all facts but those on regions are there.
#[test]
fn nodes_of_a_database_lie_together_in_a_heap_of_their_own() {
    let report = quick(&["bst/1.9", "--keys", "2000", "--level", "facts"]);
    assert_eq!(report["verdict"], "cannot be shown here", "{report:#}");
    let decisive = decisive(&report);
    assert!(decisive.len() > 50, "{decisive:#?}");
    for (what, verdict) in decisive {
        let few = what.contains("regions of 2 MiB");
        assert_eq!(verdict, if few { "cannot be shown here" } else { "confirmed" }, "{what}");
    }
}

/// All indexes of TPC-C are trees, and its conditions hold however their nodes lie.
#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn nodes_of_tpcc_lie_together_in_a_heap_of_their_own() {
    let report = quick(&["bst/1.10", "--keys", "2000", "--level", "facts"]);
    assert_eq!(report["verdict"], "confirmed", "{report:#}");
    let decisive = decisive(&report);
    let conditions = decisive.iter().filter(|(what, _)| what.contains("consistency conditions"));
    assert_eq!(conditions.count(), 10, "{decisive:#?}");
    assert!(decisive.len() >= 30, "{decisive:#?}");
    let cannot = report["cannot_show"].to_string();
    assert!(cannot.contains("descriptors of 112 bytes"), "{report:#}");
}

#[test]
fn a_level_that_carries_nothing_leaves_the_claim_open() {
    let report = quick(&["bst/1.4", "--level", "clock"]);
    assert_eq!(report["verdict"], "cannot be shown here", "{report:#}");
    assert!(report["cannot_show"].to_string().contains("--level"), "{report:#}");
}

#[test]
fn tables_show_the_claim_the_evidence_and_the_verdict() {
    let output = run(&["reproduce", "bst/1.8", "--keys", "2000", "--level", "facts"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    for part in
        ["bst/1.8 bookkeeping", "claim (numbers are the source's)", "17 %", "verdict: confirmed"]
    {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
}

#[test]
fn without_a_name_it_lists_what_there_is() {
    let output = run(&["reproduce"]);
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let numbers = ["1.2", "1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9", "1.10", "1.11"];
    for number in numbers {
        assert!(text.contains(&format!("bst/{number} ")), "{text}");
    }
    let output = run(&["reproduce", "--format", "json"]);
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let list = list["experiments"].as_array().unwrap();
    let others = [
        ["art/4.1", "art/4.2", "art/4.3"].as_slice(),
        &["ets/5.2", "ets/5.3", "ets/5.4", "ets/5.5"],
        &["trie/3.1", "trie/3.2", "trie/3.3", "trie/3.4", "trie/3.5", "trie/3.6"],
        &["memtable/2.1", "memtable/2.2", "memtable/2.3"],
    ]
    .concat();
    assert_eq!(list.len(), numbers.len() + others.len());
    assert!(
        others.iter().all(|other| list.iter().any(|one| one["experiment"] == *other)),
        "{list:?}"
    );
}

#[track_caller]
fn refuses(args: &[&str], parts: &[&str]) {
    refused(&run(&[&["reproduce"], args].concat()), parts);
}

#[test]
fn values_that_make_no_sense() {
    refuses(&["bst/1.99"], &["`bst/1.99` is not an experiment", "lists all experiments"]);
    refuses(&["bst/1.4", "1.5"], &["`1.5` is not an experiment", "did you mean `bst/1.5`?"]);
    refuses(&["bst/1.4", "--level", "guess"], &["--level", "`guess`", "facts, model or clock"]);
    refuses(&["bst/1.4", "--keys", "12"], &["--keys", "`12`"]);
    refuses(&["bst/1.4", "--seed", "x"], &["--seed", "`x`"]);
    refuses(&["bst/1.4", "--machine", "pdp-11"], &["--machine", "pdp-11"]);
    refuses(&["bst/1.4", "--with-erlang"], &["--with-erlang", "only experiments of `ets`"]);
    refuses(&["bst/1.4", "--svg", "map.svg"], &["--svg", "only trie/3.6 has a picture"]);
    let facts = ["trie/3.6", "--level", "facts", "--svg", "map.svg"];
    refuses(&facts, &["--svg", "of the level clock"]);
    refuses(&["trie/3.1", "--sync", "rtm"], &["--sync", "only lines of the clock"]);
    refuses(&["--load-only", "16,0,1,pooled,4k"], &["--load-only", "`0`"]);
    refuses(&["--load-only", "3,9,1,pooled,4k"], &["--load-only", "`3` is not an alphabet"]);
    refuses(&["trie/3.6", "--svg", "no-folder/map.svg"], &["--svg", "no folder `no-folder`"]);
    refuses(&["bst/1.4", "--sync", "optimistic"], &["--sync", "only lines of the clock"]);
    refuses(&["trie/3.5", "--sync", "spin"], &["--sync", "choose optimistic or rtm"]);
    refuses(&["bst/1.4", "--format", "csv"], &["--format", "table or json"]);
}

#[test]
fn keys_inline_take_one_allocation() {
    confirmed("memtable/2.1", "20k", "facts", 4);
}

#[test]
fn concurrent_adds_lose_no_key_and_tear_no_batch() {
    let report = confirmed("memtable/2.2", "20k", "facts", 2 + 3 * 3);
    let mutexes = &line(&report, "ordmap, 8 threads: mutex acquisitions")["found"];
    assert!(mutexes.as_str().unwrap().contains("(0 of the buffer's"), "{report:#}");
}

/// Debug builds are slow, so the ratios say nothing here; but each comparison has its line.
#[test]
fn memtables_are_filled_in_turns() {
    let report = quick(&["memtable/2.1", "--keys", "1k", "--level", "clock"]);
    assert_eq!(line(&report, "values of 0 bytes: inline / pointer")["decides"], false);
    let report = quick(&["memtable/2.2", "--keys", "1k", "--level", "clock"]);
    for what in [
        "skiplist, 1 thread: concurrent / plain",
        "art: 8 threads / 2 threads",
        "ordmap, 8 threads: concurrent / plain",
        "skiplist, 8 threads: involuntary switches",
    ] {
        assert_eq!(line(&report, what)["decides"], false);
    }
}

#[test]
fn a_plug_in_is_judged_by_the_file_of_its_script() {
    let report = quick(&["memtable/2.3", "--level", "clock"]);
    assert_eq!(report["verdict"], "cannot be shown here", "{report:#}");
    assert!(report["cannot_show"].to_string().contains("--db-bench FILE"), "{report:#}");
    let files = common::Files::new();
    let mut runs = Vec::new();
    for workload in ["fillrandom", "readrandom", "readwhilewriting", "seekrandom"] {
        for (memtable, rate) in [("skip_list", 1.0), ("silvics_art", 2.0)] {
            runs.push(serde_json::json!({
                "memtable": memtable, "workload": workload, "threads": 2, "batch": 1,
                "ops_per_s": rate, "bytes": 1000,
            }));
        }
    }
    let file = files.write("runs.json", Value::Array(runs).to_string());
    let report = quick(&["memtable/2.3", "--level", "clock", "--db-bench", &file]);
    assert_eq!(line(&report, "seekrandom, 2 threads")["value"], 2.0, "{report:#}");
    let wrong = files.write("wrong.json", "{}");
    refused(&run(&["reproduce", "memtable/2.3", "--db-bench", &wrong]), &["--db-bench", "no list"]);
    let missing = files.missing();
    let parts = ["--db-bench", "cannot be read"];
    refused(&run(&["reproduce", "memtable/2.3", "--db-bench", &missing]), &parts);
    refused(&run(&["reproduce", "bst/1.3", "--db-bench", &file]), &["--db-bench", "memtable/2.3"]);
}
