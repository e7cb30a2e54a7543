//! The first line of a part: the command, the build, the machine, and all units.

use super::shard::Shard;
use crate::flags::units::Bytes;
use crate::host::facts::{FIGURES, shown};
use crate::host::machine::Machine;
use crate::page::origin::Run;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The format of the files that this version writes and reads.
pub const FORMAT: u64 = 1;

/// The first line of a part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Head {
    /// The format of the file. It is the first field, so that other files are recognised.
    pub campaign: u64,
    /// The verb, such as `bench`.
    pub verb: String,
    /// The flags of the verb, defaults included, without those of outputs.
    pub flags: Map<String, Value>,
    /// The files that the flags name as inputs, with digests of their bytes.
    pub inputs: BTreeMap<String, String>,
    pub shard: Shard,
    /// The names of all units of the campaign, in order.
    pub units: Vec<String>,
    /// The machine and the build.
    pub machine: Machine,
    /// Whether its CPU has restricted transactional memory.
    pub rtm: bool,
    /// The start of the part, and its command line.
    pub run: Run,
}

/// A fact in which two parts differ.
#[derive(Debug, PartialEq, Eq)]
pub struct Difference {
    pub what: String,
    pub there: String,
    pub here: String,
}

impl Difference {
    fn of(what: &str, there: &impl ToString, here: &impl ToString) -> Option<Self> {
        let (there, here) = (there.to_string(), here.to_string());
        (there != here).then(|| Self { what: what.into(), there, here })
    }
}

impl Head {
    /// The first fact in which the campaign of another part differs from that of this one. The
    /// number of the part and the machine may differ.
    pub fn other_campaign(&self, there: &Self) -> Option<Difference> {
        let both = (&there.machine, &self.machine);
        let commit = |machine: &Machine| machine.commit.unwrap_or("no commit").to_owned();
        Difference::of("verb", &there.verb, &self.verb)
            .or_else(|| self.other_flag(there))
            .or_else(|| self.other_input(there))
            .or_else(|| Difference::of("number of parts", &there.shard.count, &self.shard.count))
            .or_else(|| Difference::of("version", &both.0.silvics, &both.1.silvics))
            .or_else(|| Difference::of("commit", &commit(both.0), &commit(both.1)))
            .or_else(|| Difference::of("build", &both.0.build, &both.1.build))
            .or_else(|| self.other_unit(there))
    }

    /// A flag without a value, such as `--wal` alone, is written as null. One that was not given
    /// may be left out.
    fn other_flag(&self, there: &Self) -> Option<Difference> {
        let names = self.flags.keys().chain(there.flags.keys());
        let shown = |flag: Option<&Value>| match flag {
            None => "nothing".to_owned(),
            Some(Value::Null) => "no value".to_owned(),
            Some(Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let flags = |name| (there.flags.get(name), self.flags.get(name));
        let mut all = names.map(|name| (name, flags(name)));
        let found = all.find(|(_, (there, here))| there != here);
        found.map(|(name, (there, here))| Difference {
            what: name.clone(),
            there: shown(there),
            here: shown(here),
        })
    }

    fn other_input(&self, there: &Self) -> Option<Difference> {
        let digest = |head: &Self, path| head.inputs.get(path).cloned().unwrap_or_default();
        let mut paths = self.inputs.keys().chain(there.inputs.keys());
        paths.find_map(|path| {
            let what = format!("content of `{path}`");
            Difference::of(&what, &digest(there, path), &digest(self, path))
        })
    }

    /// Units depend on the machine where the number of threads is one for each core.
    fn other_unit(&self, there: &Self) -> Option<Difference> {
        let count = Difference::of("number of units", &there.units.len(), &self.units.len());
        let mut pairs = there.units.iter().zip(&self.units);
        count.or_else(|| pairs.find_map(|(there, here)| Difference::of("unit", &there, &here)))
    }
}

/// The facts in which the machines of two parts differ. Nodes of one kind may differ by some pages
/// of memory. The build is no part of the machine.
pub fn other_machine(here: &Head, there: &Head) -> Vec<Difference> {
    let [of_here, of_there] =
        [here, there].map(|head| serde_json::to_value(&head.machine).unwrap_or_default());
    let differing = FIGURES.iter().filter(|&&name| match name {
        "memory_bytes" => !is_same_memory(here.machine.memory_bytes, there.machine.memory_bytes),
        _ => of_here[name] != of_there[name],
    });
    let text = |name: &str, fact: &Value| match (name, fact.as_u64()) {
        _ if fact.is_null() => "unknown".into(),
        ("memory_bytes", Some(bytes)) => Bytes(bytes as usize).to_string(),
        _ => shown(fact),
    };
    let of = |&name: &&str| Difference {
        what: name.trim_end_matches("_bytes").replace('_', " "),
        there: text(name, &of_there[name]),
        here: text(name, &of_here[name]),
    };
    let rtm = |head: &Head| if head.rtm { "yes" } else { "no" };
    let rtm = Difference::of("transactional memory", &rtm(there), &rtm(here));
    differing.map(of).chain(rtm).collect()
}

/// Whether two amounts of memory differ by at most a sixty-fourth.
fn is_same_memory(here: Option<usize>, there: Option<usize>) -> bool {
    match (here, there) {
        (Some(here), Some(there)) => here.abs_diff(there) <= here / 64,
        _ => here == there,
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// The head of the first of two parts, with units `a` and `b`.
    pub(in crate::campaign) fn head() -> Head {
        let Value::Object(flags) = json!({"keys": "1k", "threads": null}) else { unreachable!() };
        Head {
            campaign: FORMAT,
            verb: "bench".into(),
            flags,
            inputs: BTreeMap::from([("keys.txt".into(), "1f".into())]),
            shard: Shard { index: 1, count: 2 },
            units: vec!["a".into(), "b".into()],
            machine: Machine::this(2),
            rtm: false,
            run: Run { date: "2026-01-01 00:00 UTC".into(), command: "silvics bench".into() },
        }
    }

    #[test]
    fn parts_of_one_campaign_differ_in_nothing_else() {
        let second = || Head { shard: Shard { index: 2, count: 2 }, ..head() };
        assert_eq!(head().other_campaign(&second()), None);
        let differs = |change: fn(&mut Head)| {
            let mut other = second();
            change(&mut other);
            let found = head().other_campaign(&other).expect("a difference");
            (found.what, found.there, found.here)
        };
        let told = |what: &str, there: &str, here: &str| (what.into(), there.into(), here.into());
        assert_eq!(
            differs(|head| head.verb = "memtable".into()),
            told("verb", "memtable", "bench")
        );
        let keys = differs(|head| _ = head.flags.insert("keys".into(), "2k".into()));
        assert_eq!(keys, told("keys", "2k", "1k"));
        let threads = differs(|head| _ = head.flags.insert("threads".into(), "1,2".into()));
        assert_eq!(threads, told("threads", "1,2", "no value"));
        // `--wal` without a folder.
        let wal = differs(|head| _ = head.flags.insert("wal".into(), Value::Null));
        assert_eq!(wal, told("wal", "no value", "nothing"));
        let keys = differs(|head| _ = head.inputs.insert("keys.txt".into(), "2e".into()));
        assert_eq!(keys, told("content of `keys.txt`", "2e", "1f"));
        let count = differs(|head| head.shard.count = 3);
        assert_eq!(count, told("number of parts", "3", "2"));
        assert_eq!(differs(|head| head.machine.silvics = "0").0, "version");
        assert_eq!(differs(|head| head.machine.commit = Some("abc")).1, "abc");
        assert_eq!(differs(|head| head.machine.build = "other").0, "build");
        assert_eq!(differs(|head| head.units[1] = "c".into()), told("unit", "c", "b"));
        assert_eq!(differs(|head| head.units.truncate(1)), told("number of units", "1", "2"));
    }

    #[test]
    fn nodes_of_one_kind_are_the_same_machine() {
        let of = |change: fn(&mut Machine)| {
            let mut head = head();
            head.machine.memory_bytes = Some(64 << 30);
            head.machine.clock = Some("tsc".into());
            change(&mut head.machine);
            head
        };
        let here = of(|_| {});
        let differs = |other: &Head| {
            let told = |of: Difference| format!("{}: {}, {}", of.what, of.there, of.here);
            other_machine(&here, other).into_iter().map(told).collect::<Vec<_>>()
        };
        assert!(differs(&here).is_empty());
        assert!(differs(&of(|there| there.memory_bytes = Some((64 << 30) + (8 << 20)))).is_empty());
        let half = differs(&of(|there| there.memory_bytes = Some(32 << 30)));
        assert_eq!(half, ["memory: 32 GiB, 64 GiB"]);
        let unknown = differs(&of(|there| there.memory_bytes = None));
        assert_eq!(unknown, ["memory: unknown, 64 GiB"]);
        // A kernel that falls back to a slow clock changes latencies.
        let several = differs(&of(|there| {
            (there.cores, there.clock) = (3, Some("hpet".into()));
        }));
        assert_eq!(several, ["cores: 3, 2", "clock: hpet, tsc"]);
        assert_eq!(differs(&Head { rtm: true, ..of(|_| {}) }), ["transactional memory: yes, no"]);
    }
}
