//! The workloads.

use super::told;
use crate::fault::{Fault, fault};
use std::fs;
use std::path::Path;
use std::process::Command;

/// A workload: what it is, and the flags of `silvics advise`.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    pub(crate) flags: &'static str,
}

const fn workload(name: &'static str, flags: &'static str) -> Workload {
    Workload { name, flags }
}

/// The workloads. `LINES` is a file with the lines of the sources, `TRACE` one with the trace of
/// the example `recorded`.
pub(crate) const WORKLOADS: [Workload; 17] = [
    workload("integers, lookups", "--keys 1M --mix 100/0/0"),
    workload("random integers, some updates", "--keys 1M --dist sparse --mix 90/5/5"),
    workload("integers, calls of many keys", "--keys 1M --mix 100/0/0 --batch 64"),
    workload("integers, a load", "--keys 300k --mix 0/100/0"),
    workload("random integers, scans", "--keys 1M --dist sparse --mix 0/0/0/100 --scan-length 100"),
    workload("integers, few bytes", "--keys 1M --mix 90/5/5 --goal memory"),
    workload("a small map, many writes", "--keys 3k --mix 50/25/25"),
    workload("URLs", "--keys 200k --keyset url --mix 95/3/2"),
    workload(
        "addresses, calls of many keys",
        "--keys 200k --keyset email --mix 100/0/0 --batch 64",
    ),
    workload("URLs, few bytes", "--keys 200k --keyset url --mix 80/10/5/5 --goal memory"),
    workload("an order chosen at run time", "--keys 200k --mix 80/10/10 --needs order"),
    workload(
        "wide keys, skewed upserts",
        "--keys 500k --key-type u128 --mix 0/0/0/0/100 --dist zipf:0.99",
    ),
    workload("random integers, half updates", "--keys 500k --dist sparse --mix 50/25/25"),
    workload("UUIDs", "--keys 200k --keyset uuid --mix 90/5/5"),
    workload("words, lookups", "--keys 200k --keyset words --mix 100/0/0"),
    workload("lines of sources, a key file", "--key-file LINES --mix 80/10/5/5"),
    workload("timers, a trace", "--trace TRACE"),
];

/// A flag, with the path of the file instead of its name. The file is made if it is missing.
pub(crate) fn prepared(flag: &str, folder: &Path) -> Result<String, Fault> {
    let (file, make) = match flag {
        "LINES" => {
            ("lines.txt", "git grep -hI . -- '*.rs' > \"$1\" && LC_ALL=C sort -u -o \"$1\" \"$1\"")
        }
        "TRACE" => {
            ("trace.jsonl", "cargo run --release --quiet -p silvics --example recorded -- \"$1\"")
        }
        flag => return Ok(flag.to_owned()),
    };
    let path = folder.join(file);
    if !path.exists() {
        let part = path.with_extension("part");
        let made = Command::new("sh").args(["-c", make, "sh"]).arg(&part).status();
        if !made.map_err(told(&path))?.success() {
            return fault(format!("{}: `{make}` failed", path.display()));
        }
        fs::rename(&part, &path).map_err(told(&path))?;
    }
    Ok(path.to_string_lossy().into_owned())
}
