//! trie/3.4: traps into the system, by allocator.
//!
//! # Method
//! A process loads a trie with spin locks by eight threads under strace, which counts its system
//! calls. The system counts its page faults. The counts of a process with few keys are subtracted.
//! A call for memory or for a lock, and a page fault, is a trap: it would abort a transaction.

use super::child::{Counted, Load, Tool};
use crate::flags::error::Error;
use crate::flags::place;
use crate::host::alloc;
use crate::reproduce::evidence::{Evidence, Level};
use crate::reproduce::lab::Lab;
use std::collections::BTreeMap;
use std::path::Path;

/// The source's alphabet here.
const ALPHABET: usize = 2;
const KEYS: usize = 1_000_000;
/// The keys of the load that is subtracted.
const FEW: usize = 1000;
/// The source's threads.
const THREADS: usize = 8;

/// The calls by which allocators get memory and return it.
const MEMORY: [&str; 6] = ["brk", "mmap", "munmap", "mremap", "mprotect", "madvise"];
/// The call by which threads wait for locks.
const WAIT: &str = "futex";

/// A place for nodes.
struct Placed {
    name: String,
    /// Whether it is one of our pools, and not an allocator.
    is_pool: bool,
    placement: &'static str,
    pages: &'static str,
}

/// The traps of a load.
#[derive(Clone, Default)]
struct Traps {
    calls: BTreeMap<String, u64>,
    faults: u64,
}

pub fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    if !lab.wants(Level::Fact) {
        return Ok(Vec::new());
    }
    let (keys, mut lines, mut found) = (lab.plan.keys(KEYS), Vec::new(), Vec::new());
    for placed in places() {
        let more = |keys| traps(&placed, keys);
        let (many, few) = match (more(keys)?, more(FEW)?) {
            (Ok(many), Ok(few)) => (many, few),
            (Err(reason), _) | (_, Err(reason)) => {
                let what = "traps of loads".to_owned();
                return Ok(vec![Evidence::missing(Level::Fact, what, reason)]);
            }
        };
        let (traps, count) = (many.beyond(&few), keys.saturating_sub(FEW).max(1) as f64);
        let of_1000 = |traps: u64| traps as f64 / count * 1000.0;
        let (calls, faults) = (of_1000(traps.calls()), of_1000(traps.faults));
        let what = format!("{}: traps of 1000 insertions", placed.name);
        let figures = format!(
            "{:.2}: page faults {faults:.2}, calls {calls:.2} ({})",
            calls + faults,
            traps.text()
        );
        lines.push(Evidence::noted(Level::Fact, what, figures));
        found.push((placed, calls + faults));
    }
    let few = keys < 20 * FEW;
    lines.push(fewest(found).unless(few.then(|| format!("it needs {} keys", 20 * FEW))));
    Ok(lines)
}

/// A line on who traps least.
fn fewest(mut found: Vec<(Placed, f64)>) -> Evidence {
    found.sort_by(|(_, one), (_, other)| one.total_cmp(other));
    let order: Vec<&str> = found.iter().map(|(placed, _)| &*placed.name).collect();
    let is_pool = found.first().is_some_and(|(placed, _)| placed.is_pool);
    let what = "places by traps, the fewest first";
    Evidence::plain(what, "pools first".into(), order.join(", "), is_pool)
}

/// Our pools, and the allocators of this build.
fn places() -> Vec<Placed> {
    let pooled = |pages| Placed {
        name: format!("pools, pages {pages}"),
        is_pool: true,
        placement: "pooled",
        pages,
    };
    let allocator = |name: &'static str| Placed {
        name: if name == place::SHARED {
            format!("{}, the global allocator", alloc::name())
        } else {
            name.into()
        },
        is_pool: false,
        placement: name,
        pages: "4k",
    };
    let mut places = vec![pooled("4k"), pooled("thp")];
    places.extend(place::allocators().map(allocator));
    places
}

/// The traps of a process that loads keys, or the reason why they cannot be counted.
fn traps(placed: &Placed, keys: usize) -> Result<Result<Traps, String>, Error> {
    let flags = |file: &Path| {
        let flags = ["-f", "-c", "-U", "name,calls", "-o"].map(str::to_owned);
        flags.into_iter().chain([file.display().to_string()]).collect()
    };
    let tool = Tool { program: "strace", flags: &flags };
    let Placed { placement, pages, .. } = *placed;
    let counted =
        tool.run(Load { alphabet: ALPHABET, keys, threads: THREADS, placement, pages })?;
    Ok(counted.and_then(|counted| Traps::read(&counted)))
}

impl Traps {
    /// Reads strace's table.
    fn read(counted: &Counted) -> Result<Self, String> {
        let call = |line: &str| {
            let (name, calls) = line.split_once(' ')?;
            Some((name.to_owned(), calls.trim().parse().ok()?))
        };
        let calls: BTreeMap<String, u64> = counted.text.lines().filter_map(call).collect();
        if calls.is_empty() {
            return Err("strace's table has another form".into());
        }
        Ok(Self { calls, faults: counted.faults })
    }

    /// The traps that this has beyond those of another load.
    fn beyond(&self, other: &Self) -> Self {
        let more = |(name, calls): (&String, &u64)| {
            let before = other.calls.get(name).copied().unwrap_or(0);
            (name.clone(), calls.saturating_sub(before))
        };
        let calls = self.calls.iter().map(more).collect();
        Self { calls, faults: self.faults.saturating_sub(other.faults) }
    }

    /// The calls for memory and for locks.
    fn calls(&self) -> u64 {
        let counted = self.calls.iter();
        counted.filter(|(name, _)| is_counted(name)).map(|(_, calls)| calls).sum()
    }

    fn text(&self) -> String {
        let counted = self.calls.iter().filter(|(name, calls)| is_counted(name) && **calls > 0);
        let mut texts: Vec<String> =
            counted.map(|(name, calls)| format!("{name} {calls}")).collect();
        if texts.is_empty() {
            texts.push("none".into());
        }
        texts.join(", ")
    }
}

fn is_counted(name: &str) -> bool {
    name == WAIT || MEMORY.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_strace_are_read() {
        let text = "syscall                calls\n------------------ ---------\nmmap                  24\n\
                    futex                  7\nread                 100\n------------------ ---------\n\
                    total                 131\n";
        let read = |text: &str, faults| Traps::read(&Counted { text: text.into(), faults });
        let traps = read(text, 9).unwrap();
        assert_eq!((traps.calls(), traps.faults), (31, 9));
        assert_eq!(traps.text(), "futex 7, mmap 24");
        let more = traps.beyond(&read("mmap 20\nbrk 3\nx -1\n", 2).unwrap());
        assert_eq!((more.calls(), more.faults, more.text().as_str()), (11, 7, "futex 7, mmap 4"));
        assert!(read("strace: no such process\n", 0).is_err());
    }
}
