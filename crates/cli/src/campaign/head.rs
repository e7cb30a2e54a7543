//! The first line of a part: the command, the build, the machine, and all units.

use super::shard::Shard;
use crate::flags::units::Bytes;
use crate::host::machine::Machine;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

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
    pub shard: Shard,
    /// The names of all units of the campaign, in order.
    pub units: Vec<String>,
    /// The machine and the build.
    pub machine: Machine,
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
            .or_else(|| Difference::of("number of parts", &there.shard.count, &self.shard.count))
            .or_else(|| Difference::of("version", &both.0.silvics, &both.1.silvics))
            .or_else(|| Difference::of("commit", &commit(both.0), &commit(both.1)))
            .or_else(|| self.other_unit(there))
    }

    /// A flag without a value, such as `--wal` alone, is written as null, and one that was not given
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

    /// Units depend on the machine where the number of threads is one for each core.
    fn other_unit(&self, there: &Self) -> Option<Difference> {
        let count = Difference::of("number of units", &there.units.len(), &self.units.len());
        let mut pairs = there.units.iter().zip(&self.units);
        count.or_else(|| pairs.find_map(|(there, here)| Difference::of("unit", &there, &here)))
    }
}

/// The first fact in which two machines differ. Nodes of one kind may differ by some pages of
/// memory. The build is no part of the machine.
pub fn other_machine(here: &Machine, there: &Machine) -> Option<Difference> {
    let text = |text: &Option<String>| text.clone().unwrap_or_else(|| "unknown".into());
    let number = |number: Option<usize>| number.map_or("unknown".into(), |of| of.to_string());
    let caches = |machine: &Machine| {
        let all = machine.caches.iter();
        let all =
            all.map(|cache| format!("L{} {} {}", cache.level, cache.kind, Bytes(cache.bytes)));
        all.collect::<Vec<_>>().join(", ")
    };
    Difference::of("cpu", &text(&there.cpu), &text(&here.cpu))
        .or_else(|| Difference::of("cores", &there.cores, &here.cores))
        .or_else(|| Difference::of("caches", &caches(there), &caches(here)))
        .or_else(|| memory(here.memory_bytes, there.memory_bytes))
        .or_else(|| Difference::of("os", &there.os, &here.os))
        .or_else(|| Difference::of("kernel", &text(&there.kernel), &text(&here.kernel)))
        .or_else(|| Difference::of("arch", &there.arch, &here.arch))
        .or_else(|| Difference::of("thp", &text(&there.thp), &text(&here.thp)))
        .or_else(|| {
            let pages = [there, here].map(|machine| number(machine.hugetlb_pages));
            Difference::of("hugetlb pages", &pages[0], &pages[1])
        })
        .or_else(|| Difference::of("allocator", &there.allocator, &here.allocator))
}

/// The difference in memory, if it is more than a sixty-fourth.
fn memory(here: Option<usize>, there: Option<usize>) -> Option<Difference> {
    let (here, there) = (here.unwrap_or(0), there.unwrap_or(0));
    let is_same = here.abs_diff(there) <= here / 64;
    if is_same { None } else { Difference::of("memory", &Bytes(there), &Bytes(here)) }
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
            shard: Shard { index: 1, count: 2 },
            units: vec!["a".into(), "b".into()],
            machine: Machine::this(2),
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
        let count = differs(|head| head.shard.count = 3);
        assert_eq!(count, told("number of parts", "3", "2"));
        assert_eq!(differs(|head| head.machine.silvics = "0").0, "version");
        assert_eq!(differs(|head| head.machine.commit = Some("abc")).1, "abc");
        assert_eq!(differs(|head| head.units[1] = "c".into()), told("unit", "c", "b"));
        assert_eq!(differs(|head| head.units.truncate(1)), told("number of units", "1", "2"));
    }

    #[test]
    fn nodes_of_one_kind_are_the_same_machine() {
        let here = Machine { memory_bytes: Some(64 << 30), ..Machine::this(2) };
        assert_eq!(other_machine(&here, &here), None);
        let more = Machine { memory_bytes: Some((64 << 30) + (8 << 20)), ..here.clone() };
        assert_eq!(other_machine(&here, &more), None);
        let half = Machine { memory_bytes: Some(32 << 30), ..here.clone() };
        let found = other_machine(&here, &half).expect("a difference");
        assert_eq!((&*found.what, &*found.there), ("memory", "32 GiB"));
        let cores = Machine { cores: 3, ..here.clone() };
        assert_eq!(other_machine(&here, &cores).expect("a difference").what, "cores");
    }
}
