//! Machines as data: caches and translations.

use super::{host, presets};
use crate::{SetHash, Sets};
use std::fmt;

/// The caches and translations between one core of a machine and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine {
    /// The name under which [`Machine::named`] finds it.
    pub name: &'static str,
    /// The source of the numbers.
    pub source: &'static str,
    /// The bytes of a line, equal in all caches: a power of two.
    pub line: usize,
    /// The first-level data cache.
    pub l1: Cache,
    /// The second level.
    pub l2: Cache,
    /// The last level.
    pub llc: Cache,
    /// Whether a read that misses L2 also fetches the other line of its aligned pair. It goes into
    /// L2 and, unless that is exclusive, into the last level.
    pub adjacent_line: bool,
    /// The first and the second level of address translations.
    pub tlb: [Tlb; 2],
}

/// A cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    /// The size: sets times ways times bytes of a line.
    pub bytes: usize,
    /// The number of lines in a set.
    pub ways: usize,
    /// The mapping of lines to sets.
    pub hash: SetHash,
    /// The relation to the levels above; ignored in the first level.
    pub inclusion: Inclusion,
}

/// The lines of the levels above that a cache contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inclusion {
    /// All of them: a line that it evicts leaves the levels above as well.
    Inclusive,
    /// None of them: lines evicted by the level above fill it, and a line that hits moves up.
    Exclusive,
    /// Any of them: lines fill it on their way up, and are then independent of the levels above.
    Neither,
}

/// A level of address translations, for 4 KiB and 2 MiB pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tlb {
    /// A table for each page size.
    Split {
        /// The table for 4 KiB pages.
        small: Entries,
        /// The table for 2 MiB pages.
        huge: Entries,
    },
    /// A table for 4 KiB pages alone.
    Small(Entries),
    /// A table for which pages of both sizes compete.
    Shared(Entries),
}

/// The size of a table of translations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries {
    /// The number of entries in all sets together.
    pub entries: usize,
    /// The number of entries in a set.
    pub ways: usize,
}

/// A level of a machine's caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The first-level data cache.
    L1,
    /// The second level.
    L2,
    /// The last level.
    Llc,
}

/// The reason why there is no model of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MachineError {
    /// There is no machine of this name.
    Unknown(String),
    /// Neither the processor nor the system describes the caches of this machine.
    Host,
    /// The geometry of a machine is impossible.
    Geometry {
        /// The machine's name.
        machine: &'static str,
        /// The part that is wrong.
        part: &'static str,
        /// The fault and the valid values.
        problem: String,
    },
}

/// The largest cache in a model. Its tags take an eighth of this.
const BYTES_MAX: usize = 4 << 30;
/// The most entries of a table of translations.
const ENTRIES_MAX: usize = 1 << 20;

impl Machine {
    /// The names that [`Machine::named`] knows; `host` is the machine on which it is called.
    pub const NAMES: [&'static str; 8] = [
        "haswell",
        "abu-dhabi",
        "i7-2630qm",
        "i7-4770",
        "sapphire-rapids",
        "zen4",
        "graviton3",
        "host",
    ];

    /// Finds the machine called `name`.
    pub fn named(name: &str) -> Result<Self, MachineError> {
        if name == "host" {
            return host::machine();
        }
        let preset = presets::ALL.iter().find(|machine| machine.name == name);
        preset.copied().ok_or_else(|| MachineError::Unknown(name.into()))
    }

    /// This machine without prefetching of adjacent lines.
    #[must_use]
    pub const fn without_prefetch(self) -> Self {
        Self { adjacent_line: false, ..self }
    }

    /// This machine with another mapping of the last level's lines to sets.
    pub fn with_llc_hash(self, hash: SetHash) -> Result<Self, MachineError> {
        let machine = Self { llc: Cache { hash, ..self.llc }, ..self };
        machine.check()?;
        Ok(machine)
    }

    /// The cache at a level.
    pub const fn cache(&self, level: Level) -> &Cache {
        match level {
            Level::L1 => &self.l1,
            Level::L2 => &self.l2,
            Level::Llc => &self.llc,
        }
    }

    /// The sets of the cache at a level.
    pub fn sets(&self, level: Level) -> Sets {
        let cache = self.cache(level);
        let sets = cache.bytes.checked_div(self.line.saturating_mul(cache.ways)).unwrap_or(0);
        Sets { line: self.line, sets, hash: cache.hash }
    }

    /// Checks that the geometry allows a model.
    pub(super) fn check(&self) -> Result<(), MachineError> {
        let wrong =
            |part, problem| Err(MachineError::Geometry { machine: self.name, part, problem });
        // A line lies within a page, so that it has one translation, and its number leaves room for
        // a mark.
        if !self.line.is_power_of_two() || !(8..=4096).contains(&self.line) {
            let problem = format!("has {} bytes: take a power of two from 8 to 4096", self.line);
            return wrong("the line", problem);
        }
        for (part, level) in [("L1", Level::L1), ("L2", Level::L2), ("the LLC", Level::Llc)] {
            let (cache, sets) = (self.cache(level), self.sets(level));
            if sets.sets == 0
                || cache.bytes > BYTES_MAX
                || cache.bytes != sets.sets * cache.ways * self.line
            {
                let Cache { bytes, ways, .. } = cache;
                let problem = format!(
                    "has {bytes} bytes in {ways} ways: take a multiple of ways times {} bytes, \
                     none of them zero, of at most {BYTES_MAX}",
                    self.line
                );
                return wrong(part, problem);
            }
            if let SetHash::Slices(slices) = cache.hash
                && (slices == 0 || sets.sets % slices != 0)
            {
                let problem = format!(
                    "has {} sets in {slices} slices: take a number of slices that divides them",
                    sets.sets
                );
                return wrong(part, problem);
            }
        }
        for (part, tlb) in [("the first TLB", self.tlb[0]), ("the second TLB", self.tlb[1])] {
            let tables = match tlb {
                Tlb::Split { small, huge } => [small, huge],
                Tlb::Small(table) | Tlb::Shared(table) => [table, table],
            };
            for Entries { entries, ways } in tables {
                if !(1..=ENTRIES_MAX).contains(&entries) || ways == 0 || entries % ways != 0 {
                    let problem = format!(
                        "has {entries} entries in {ways} ways: take a multiple of the ways, \
                         neither of them zero, of at most {ENTRIES_MAX}"
                    );
                    return wrong(part, problem);
                }
            }
        }
        Ok(())
    }
}

impl fmt::Display for MachineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => {
                let [names @ .., last] = Machine::NAMES;
                write!(f, "`{name}` is not a machine: choose {} or {last}", names.join(", "))
            }
            Self::Host => write!(
                f,
                "neither the processor nor the system describes three cache levels of this \
                 machine: choose one by name, such as {}",
                Machine::NAMES[0]
            ),
            Self::Geometry { machine, part, problem } => {
                write!(f, "{part} of machine `{machine}` {problem}")
            }
        }
    }
}

impl std::error::Error for MachineError {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    fn haswell() -> Machine {
        Machine::named("haswell").unwrap()
    }

    fn refusal(machine: &Machine) -> String {
        Model::new(machine).err().map_or_else(String::new, |error| error.to_string())
    }

    #[test]
    fn every_name_but_host_is_a_machine_there_is_a_model_of() {
        for name in Machine::NAMES.iter().filter(|name| **name != "host") {
            let machine = Machine::named(name).unwrap();
            assert_eq!(machine.name, *name);
            assert_eq!(refusal(&machine), "");
            assert!(!machine.source.is_empty());
        }
        assert_eq!(presets::ALL.len() + 1, Machine::NAMES.len());
        assert_eq!(
            Machine::named("Haswell").unwrap_err().to_string(),
            "`Haswell` is not a machine: choose haswell, abu-dhabi, i7-2630qm, i7-4770, \
             sapphire-rapids, zen4, graviton3 or host"
        );
    }

    #[test]
    fn the_sets_of_haswell() {
        let sets = |level| haswell().sets(level);
        assert_eq!(sets(Level::L1), Sets { line: 64, sets: 64, hash: SetHash::Modulo });
        assert_eq!(sets(Level::L2), Sets { line: 64, sets: 512, hash: SetHash::Modulo });
        assert_eq!(sets(Level::Llc), Sets { line: 64, sets: 12 * 2048, hash: SetHash::Slices(12) });
        let modulo = haswell().with_llc_hash(SetHash::Modulo).unwrap();
        assert_eq!(modulo.sets(Level::Llc).hash, SetHash::Modulo);
        assert_eq!(
            haswell().with_llc_hash(SetHash::Slices(5)).unwrap_err().to_string(),
            "the LLC of machine `haswell` has 24576 sets in 5 slices: take a number of slices \
             that divides them"
        );
        assert!(haswell().with_llc_hash(SetHash::Slices(0)).is_err());
        assert!(haswell().adjacent_line && !haswell().without_prefetch().adjacent_line);
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for line in [0, 4, 48, 8192] {
            assert_eq!(
                refusal(&Machine { line, ..haswell() }),
                format!(
                    "the line of machine `haswell` has {line} bytes: take a power of two from 8 \
                     to 4096"
                )
            );
        }
        let l2 = |bytes, ways| Machine { l2: Cache { bytes, ways, ..haswell().l2 }, ..haswell() };
        assert_eq!(
            refusal(&l2(1 << 18, 0)),
            "L2 of machine `haswell` has 262144 bytes in 0 ways: take a multiple of ways times 64 \
             bytes, none of them zero, of at most 4294967296"
        );
        for (bytes, ways) in [(0, 8), (1000, 8), (1 << 40, 8), (512, usize::MAX)] {
            assert!(refusal(&l2(bytes, ways)).starts_with("L2 of machine"), "{bytes} {ways}");
        }
        assert_eq!(refusal(&l2(512, 8)), "");
        for (entries, ways) in [(0, 1), (64, 0), (64, 3), (1 << 30, 1)] {
            let second = Tlb::Shared(Entries { entries, ways });
            let machine = Machine { tlb: [haswell().tlb[0], second], ..haswell() };
            assert!(refusal(&machine).starts_with("the second TLB of"), "{entries} {ways}");
        }
        let Tlb::Split { small, .. } = haswell().tlb[0] else { panic!("haswell's is split") };
        let first = Tlb::Split { small, huge: Entries { entries: 0, ways: 4 } };
        let machine = Machine { tlb: [first, haswell().tlb[1]], ..haswell() };
        assert!(refusal(&machine).starts_with("the first TLB of"));
    }
}
