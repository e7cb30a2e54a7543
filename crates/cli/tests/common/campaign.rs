//! Parts of campaigns.

use super::{Files, command, run, stderr};
use serde_json::Value;
use std::fs;
use std::process::{Child, Output, Stdio};

/// A verb with little work, and the number of its units.
pub struct Verb {
    flags: Vec<String>,
    pub units: usize,
}

impl Verb {
    pub fn new(flags: &str, units: usize) -> Self {
        Self { flags: flags.split(' ').map(Into::into).collect(), units }
    }

    pub fn bench() -> Self {
        let flags = "bench --index skiplist,art --keys 1k,2k --threads 1,2 --mix 100/0/0,90/5/5 \
                     --seconds 0.02 --rounds 2";
        Self::new(flags, 8)
    }

    pub fn memtable() -> Self {
        let flags = "memtable --memtable art,skiplist --workload fillrandom,readrandom \
                     --threads 1,2 --num 20k --rounds 2 --value-size 8,16";
        Self::new(flags, 8)
    }

    pub fn ycsb() -> Self {
        let flags = "store ycsb run -p recordcount=1000 -p operationcount=10000 \
                     -p readproportion=0.5 -p updateproportion=0.5 --index map,art --rounds 2 --threads 1,2,3,4";
        Self::new(flags, 4)
    }

    pub fn tpcc() -> Self {
        let flags = "store tpcc check --reduced --warehouses 1 --transactions 200 --index \
                     map,skiplist --rounds 2 --threads 1,2,3,4";
        Self::new(flags, 4)
    }

    pub fn reproduce() -> Self {
        let flags = "reproduce bst/1.3 bst/1.4 bst/1.5 art/4.1 --quick --keys 2000 --level facts";
        Self::new(flags, 4)
    }

    pub fn args<'a>(&'a self, more: &[&'a str]) -> Vec<&'a str> {
        self.flags.iter().map(String::as_str).chain(more.iter().copied()).collect()
    }

    /// Runs a part to its end.
    pub fn part(&self, shard: &str, out: &str) -> Output {
        run(&self.args(&["--shard", shard, "--out", out]))
    }

    pub fn start(&self, shard: &str, out: &str) -> Child {
        let mut command = command(&self.args(&["--shard", shard, "--out", out]));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command runs")
    }
}

/// The number of whole lines of a file behind its head.
pub fn units(path: &str) -> usize {
    let text = fs::read(path).unwrap_or_default();
    text.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")).skip(1).count()
}

/// Leaves a part with its head, some units, and some bytes of the next one, as SIGKILL does.
pub fn cut(path: &str, units: usize, bytes: usize) {
    let whole = fs::read(path).expect("a part");
    let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    let end = ends.map(|(at, _)| at + 1).nth(units).expect("units");
    assert!(end + bytes <= whole.len(), "the part has more");
    fs::write(path, &whole[..end + bytes]).expect("it can be written");
}

/// Changes all texts of a part.
#[track_caller]
pub fn change(path: &str, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("a part");
    assert!(text.contains(from), "{from} is not in {text}");
    fs::write(path, text.replace(from, to)).expect("it can be written");
}

/// Runs the only part of a verb in a new file.
#[track_caller]
pub fn measured(verb: &Verb, files: &Files, name: &str) -> String {
    let out = files.path(name);
    let output = verb.part("1/1", &out);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    out
}

/// The result of `collect` as JSON lines.
pub fn collected(files: &[&str]) -> Vec<Value> {
    let output = run(&[&["collect", "--format", "json"], files].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::Deserializer::from_slice(&output.stdout)
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("JSON and nothing else")
}

/// The small benchmark of the tests below: two units, one for each part.
pub fn small() -> Verb {
    let flags = "bench --index skiplist --keys 1k --threads 1,2 --mix 100/0/0 --seconds 0.01 \
                 --rounds 1";
    Verb::new(flags, 2)
}

/// Two finished parts of the small benchmark.
pub fn parts(files: &Files) -> [String; 2] {
    [("1/2", "first"), ("2/2", "second")].map(|(shard, name)| {
        let path = files.path(name);
        let output = small().part(shard, &path);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        path
    })
}
