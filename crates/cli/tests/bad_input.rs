//! Bad input is answered with one sentence that names the flag, the value and the remedy, with exit
//! code 2, and with nothing on standard output.

mod common;

use common::{Files, bench, command, refused, run, stderr, stdout};

/// Whether the answer is one sentence with all of `parts`.
fn refuses(args: &[&str], parts: &[&str]) {
    let args = [&["--keys", "1k", "--index", "skiplist"], args].concat();
    refuses_plain(&args, parts);
}

/// Checks that the command refuses these arguments, without the default index and number of keys.
#[track_caller]
fn refuses_plain(args: &[&str], parts: &[&str]) {
    refused(&bench(args), parts);
}

#[test]
fn names() {
    let keys = ["--keys", "1k", "--index"];
    let refuses = |index, parts| refuses_plain(&[&keys[..], &[index]].concat(), parts);
    refuses("btree", &["--index", "`btree`", "silvics list"]);
    refuses("skipplist", &["`skipplist`", "did you mean `skiplist`?"]);
    refuses("skiplist,", &["``"]);
    refuses("skiplist:fast", &["`skiplist`", "`fast`", "choose default"]);
    refuses("peer:nothing", &["`peer:nothing`"]);
    refuses("bts", &["did you mean `bst`?"]);
}

#[test]
#[cfg(feature = "peers")]
fn names_of_peers() {
    refuses_plain(&["--index", "congee"], &["did you mean `peer:congee`?"]);
    refuses_plain(&["--index", "peer:congee:x"], &["`peer:congee`", "`x`"]);
}

#[test]
fn placements_and_pages() {
    refuses(
        &["--placement", "heap"],
        &["--placement", "`heap`", "choose pooled, shared, size-class"],
    );
    refuses(&["--pages", "2m"], &["--pages", "`2m`", "choose 4k, thp or hugetlb"]);
}

#[test]
fn synchronisation() {
    refuses(&["--sync", "mcs"], &["--sync", "`mcs`", "choose optimistic, rtm, spin"]);
    refuses(&["--sync", "spin"], &["--sync", "`skiplist` has no build for spin", "patricia-16"]);
    let two = ["--sync", "spin", "--index", "patricia-2,patricia-16", "--key-type", "u128"];
    refuses(&two, &["--sync", "`patricia-2` has no build for spin"]);
    refuses(&["--fallback"], &["--fallback", "for --sync rtm"]);
    let both = ["--sync", "spin", "--variant", "compact", "--index", "patricia-16"];
    refuses(&both, &["--sync", "--variant", "leave one out"]);
}

#[test]
fn mixes() {
    refuses(&["--mix", "90/5/6"], &["--mix", "`90/5/6`", "sums to 101", "sum to 100"]);
    refuses(&["--mix", "90/10"], &["--mix", "`90/10`", "for example 90/5/5"]);
    refuses(&["--mix", "100/0/0,x"], &["--mix", "`x`"]);
    refuses(&["--mix", "99.5/0/0"], &["--mix", "`99.5/0/0`", "sums to 99.5"]);
    refuses(&["--mix", "0.00001/0/100"], &["--mix", "`0.00001/0/100`", "4 decimals"]);
    refuses(&["--scan-by", "leap"], &["--scan-by", "`leap`", "range, next or whole"]);
    refuses(&["--counting", "twice"], &["--counting", "`twice`", "striped or single"]);
    let output = run(&["verify", "--mix", "49.5/30/20.5"]);
    refused(&output, &["--mix", "49.5/30/20.5", "whole percent"]);
}

#[test]
fn numbers() {
    refuses(&["--threads", "0"], &["--threads", "`0`", "from 1"]);
    refuses(&["--threads", "1,two"], &["--threads", "`two`"]);
    refuses_plain(&["--keys", "0"], &["--keys", "`0`", "100k"]);
    refuses_plain(&["--keys", "1Q"], &["--keys", "`1Q`"]);
    refuses_plain(&["--keys", "3G"], &["--keys", "`3G`", "2147483648"]);
    refuses(&["--batch", "0"], &["--batch", "`0`"]);
    refuses(&["--scan-length", "0"], &["--scan-length", "`0`"]);
    refuses(&["--seed", "-1"], &["--seed", "`-1`"]);
    refuses(&["--memory-limit", "lots"], &["--memory-limit", "`lots`", "64M"]);
    for value in ["0", "nan", "-1", "x", "1e9"] {
        let output = run(&["bench", "--seconds", value]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(&format!("--seconds: `{value}`")), "{}", stderr(&output));
    }
    assert!(stderr(&run(&["bench", "--rounds", "0"])).contains("--rounds: `0`"));
}

#[test]
fn distributions_formats_and_types() {
    refuses(&["--dist", "normal"], &["--dist", "`normal`", "choose uniform"]);
    refuses(&["--dist", "zipf:4"], &["--dist", "`zipf:4`", "zipf:0.99"]);
    refuses(&["--dist", "sparse+zipf"], &["--dist", "`sparse+zipf`", "sparse+zipf:0.99"]);
    refuses(&["--dist", "sparse+latest"], &["`sparse+latest`", "choose uniform, sparse"]);
    refuses(&["--format", "xml"], &["--format", "`xml`", "table, json or csv"]);
    refuses(&["--key-type", "text"], &["--key-type", "`text`", "u64, u128, bytes or string"]);
    refuses(&["--value-type", "box"], &["--value-type", "`box`", "u64 or arc"]);
    refuses(&["--key-format", "lines"], &["--key-format", "--key-file"]);
    let output = run(&["list", "--format", "xml"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`xml`"));
}

#[test]
fn key_files() {
    let files = Files::new();
    let refuses = |path: &str, more: &[&str], parts: &[&str]| {
        let args = [&["--index", "skiplist", "--key-file", path], more].concat();
        refuses_plain(&args, &[&["--key-file", path], parts].concat());
    };
    refuses(&files.missing(), &[], &["cannot be read", "name a file"]);
    refuses(&files.write("empty", ""), &[], &["has no keys"]);
    refuses(&files.write("empty.u64", ""), &[], &["has no keys"]);
    refuses(&files.sosd("short.u64", 3, [1, 2]), &[], &["announces 3 words", "has 24 bytes"]);
    refuses(&files.sosd("long.u64", 1, [1, 2]), &[], &["announces 1 words"]);
    refuses(&files.write("stub", "abc"), &["--key-format", "sosd"], &["3 bytes"]);
    let unsorted = files.write("unsorted", "a\nc\nb\n");
    let remedy = ["key 3", "--dist sequential", "LC_ALL=C sort"];
    refuses(&unsorted, &["--dist", "sequential"], &remedy);
    let unsorted = files.sosd("unsorted.u64", 3, [1, 3, 2]);
    refuses(&unsorted, &["--dist", "uniform,sequential"], &remedy);
}

#[test]
fn flags_that_exclude_each_other() {
    let files = Files::new();
    let lines = files.write("keys", "a\nb\n");
    let with_file = |more: &[&str], parts: &[&str]| {
        let args = [&["--index", "skiplist", "--key-file", &lines], more].concat();
        refuses_plain(&args, parts);
    };
    with_file(&["--keys", "5"], &["--keys and --key-file exclude each other"]);
    with_file(&["--dist", "sparse"], &["--dist sparse and --key-file", "--dist uniform"]);
    with_file(&["--dist", "sparse+zipf:1"], &["--dist sparse+zipf and --key-file", "--dist zipf"]);
    with_file(&["--key-type", "u64"], &["--key-type", "`u64`", "choose bytes"]);
    with_file(&["--key-type", "u128"], &["--key-type", "`u128`", "choose bytes"]);
    with_file(&["--key-format", "text"], &["--key-format", "`text`", "lines or sosd"]);
}

#[test]
fn key_sets() {
    refuses(&["--keyset", "word"], &["--keyset: `word`", "choose words, uuid, email or url"]);
    let files = Files::new();
    let lines = files.write("keys", "a\nb\n");
    let with_set = |more: &[&str], parts: &[&str]| {
        refuses(&[&["--keyset", "words"], more].concat(), parts);
    };
    with_set(&["--key-file", &lines], &["--keyset and --key-file exclude each other"]);
    with_set(&["--key-format", "lines"], &["--key-format", "--key-file"]);
    with_set(&["--dist", "uniform,sparse"], &["--dist sparse and --keyset", "--dist uniform"]);
    with_set(&["--dist", "sparse+zipf:1"], &["--dist sparse+zipf and --keyset", "--dist zipf"]);
    with_set(&["--key-type", "u64"], &["--key-type", "`u64`", "leave out --keyset"]);
    with_set(&["--key-type", "u128"], &["--key-type", "`u128`", "leave out --keyset"]);
    with_set(&["--index", "occ-avl"], &["--index", "`occ-avl` takes no byte keys"]);
}

#[test]
fn what_a_named_index_cannot_do() {
    refuses_plain(
        &["--index", "skiplist,occ-avl", "--key-type", "bytes"],
        &["--index", "`occ-avl` takes no byte keys", "--key-type"],
    );
    refuses_plain(
        &["--index", "art,skiplist", "--key-type", "u128"],
        &["--index", "`skiplist` takes no u128 keys", "--key-type"],
    );
    refuses_plain(
        &["--index", "map,art", "--value-type", "arc"],
        &["--index", "`art` stores 8-byte values only", "--value-type u64"],
    );
    refuses_plain(
        &["--index", "map,occ-avl", "--key-type", "string"],
        &["--index", "`occ-avl` takes no string keys"],
    );
    refuses_plain(
        &["--index", "occ-avl", "--mix", "100/0/0,90/0/0/10"],
        &["--index", "`occ-avl` cannot scan", "--mix 90/0/0/10"],
    );
    refuses_plain(
        &["--index", "occ-avl-2:unsafe", "--mix", "100/0/0,90/5/5"],
        &["--index", "`occ-avl-2:unsafe` only looks keys up", "--mix 90/5/5"],
    );
    refuses_plain(
        &["--index", "skiplist", "--variant", "baseline"],
        &["--variant", "`skiplist` has no variant `baseline`: choose default"],
    );
    refuses_plain(
        &["--index", "peers", "--variant", "baseline"],
        &["--variant", "nothing in `peers` has a variant `baseline`", "silvics list"],
    );
    refuses_plain(
        &["--index", "bst", "--key-type", "bytes"],
        &["no index of `bst` takes these keys, values and mixes (--key-type, --value-type, --mix)"],
    );
}

#[test]
#[cfg(unix)]
fn a_key_file_without_an_end() {
    refuses_plain(
        &["--index", "skiplist", "--key-file", "/dev/zero"],
        &["--key-file: `/dev/zero` has more than 16777216 bytes in line 1"],
    );
}

/// The system starts no thread with a stack that is larger than the address space.
#[test]
#[cfg(target_os = "linux")]
fn threads_that_the_system_does_not_start() {
    let output = command(&["bench", "--index", "skiplist", "--keys", "1k", "--threads", "4"])
        .env("RUST_MIN_STACK", (1_u64 << 60).to_string())
        .output()
        .unwrap();
    let text = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("--threads: the system started 0 of"), "{text}");
}

#[test]
fn upserts_where_there_are_none() {
    refuses_plain(
        &["--index", "skiplist", "--mix", "50/0/0/0/50", "--dist", "disjoint"],
        &["--mix: 50/0/0/0/50 has upserts", "--dist disjoint", "choose another"],
    );
    let output = run(&["verify", "--mix", "50/0/0/0/50"]);
    refused(&output, &["--mix: `50/0/0/0/50` has a share of upserts", "leave it out"]);
}

#[test]
fn limits_that_do_not_hold_the_keys() {
    refuses_plain(
        &["--index", "skiplist", "--keys", "200k", "--memory-limit", "4M"],
        &["--memory-limit 4 MiB", "`skiplist`", "of 200000 keys", "raise it to about"],
    );
    refuses_plain(
        &["--index", "occ-avl", "--keys", "1k", "--memory-limit", "1K"],
        &["--memory-limit 1 KiB", "`occ-avl`", "0 of 1000 keys"],
    );
}

#[test]
#[cfg(feature = "peers")]
fn limits_that_hold_for_nobody() {
    refuses_plain(
        &["--index", "peer:btreemap-rwlock", "--keys", "1k", "--memory-limit", "1G"],
        &["--memory-limit", "peers take no limit"],
    );
}

#[test]
fn unknown_flags_and_verbs() {
    for args in [&["bench", "--fast"][..], &["run"], &[], &["bench", "extra"]] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(stdout(&output), "");
        assert!(stderr(&output).contains("Usage"), "{args:?}");
    }
}
