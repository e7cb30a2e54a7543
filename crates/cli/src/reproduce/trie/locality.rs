//! trie/3.2: the accesses that miss the caches, by alphabet.
//!
//! # Method
//! As in the source, cachegrind counts the accesses of a whole process, which loads a trie with
//! random keys of 128 bits, and spin locks. The caches are those of the source's machine. One
//! thread loads, not eight.
//!
//! Our model replays the reads of lookups alone, and counts only reads of nodes and labels. Its
//! lines say how much of the source's claim is true of lookups.

use super::child::{Load, Tool};
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::{Bed, Lab};
use silvics_layout::{Cache, Machine};
use std::path::Path;

const KEYS: usize = 1_000_000;

/// The tries and their alphabets, each with the source's rates of misses: of the first level and of
/// the last.
const TRIES: [(&str, usize, Rates); 4] = [
    ("patricia-2:paper", 2, Rates { first: 0.024, last: 0.007 }),
    ("patricia-4:paper", 4, Rates { first: 0.038, last: 0.013 }),
    ("patricia-16:paper", 16, Rates { first: 0.041, last: 0.018 }),
    ("patricia-256:paper", 256, Rates { first: 0.074, last: 0.056 }),
];

/// Smaller tries fit into the last level, also into a sixteenth of it.
const FEW: usize = 20_000;

/// The rate of the last level for an alphabet of 256, relative to that for one of 16.
const BYTES_TO_DIGITS: f64 = 3.0;

/// The shares of accesses that miss.
#[derive(Clone, Copy)]
struct Rates {
    first: f64,
    last: f64,
}

pub fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    if !lab.wants(Level::Model) {
        return Ok(Vec::new());
    }
    let keys = lab.plan.keys(KEYS);
    let mut lines = match simulated(lab, keys)? {
        Ok(lines) => lines,
        Err(reason) => {
            vec![Evidence::missing(Level::Model, "cachegrind: rates of misses".into(), reason)]
        }
    };
    lines.extend(modelled(lab, keys)?);
    Ok(lines)
}

/// The lines on what cachegrind counts, or the reason why it cannot.
fn simulated(lab: &Lab, keys: usize) -> Result<Result<Vec<Evidence>, String>, Error> {
    let (mut lines, mut found) = (Vec::new(), Vec::new());
    let caches = caches(&lab.plan.machine);
    let simulate = ["--tool=cachegrind", "--cache-sim=yes"].map(str::to_owned);
    let flags = |file: &Path| {
        let out = format!("--cachegrind-out-file={}", file.display());
        simulate.iter().cloned().chain(caches.clone()).chain([out]).collect()
    };
    for (index, alphabet, _) in TRIES {
        let tool = Tool { program: "valgrind", flags: &flags };
        let load = Load { alphabet, keys, threads: 1, placement: "pooled", pages: "4k" };
        let counted = tool.run(load)?;
        let counts = match counted.and_then(|counted| Counts::read(&counted.text)) {
            Ok(counts) => counts,
            Err(reason) => return Ok(Err(reason)),
        };
        let rates = counts.rates();
        let figures = format!(
            "{} and {} of the accesses; {} and {} of the misses are of writes",
            Unit::Share.text(rates.first),
            Unit::Share.text(rates.last),
            Unit::Share.text(counts.written(|[_, first, _]| first)),
            Unit::Share.text(counts.written(|[.., last]| last)),
        );
        lines.push(Evidence::noted(Level::Model, format!("cachegrind, {index}: a load"), figures));
        found.push(rates);
    }
    lines.extend(orders("cachegrind", &found).map(|line| line.unless(few(keys))));
    lines.push(times("cachegrind", &found).unless(few(keys)));
    Ok(Ok(lines))
}

/// The reason why the misses of few keys say nothing.
fn few(keys: usize) -> Option<String> {
    (keys < FEW).then(|| format!("tries of fewer than {FEW} keys fit into the caches"))
}

/// cachegrind's flags for the caches of a machine. It takes no other numbers of sets than powers of
/// two.
fn caches(machine: &Machine) -> [String; 2] {
    let flag = |name, cache: &Cache| {
        let sets = (cache.bytes / machine.line / cache.ways).next_power_of_two();
        format!("--{name}={},{},{}", sets * machine.line * cache.ways, cache.ways, machine.line)
    };
    [flag("D1", &machine.l1), flag("LL", &machine.llc)]
}

/// The counts of reads and of writes: accesses, misses of the first level, misses of the last.
struct Counts {
    reads: [u64; 3],
    writes: [u64; 3],
}

impl Counts {
    /// Reads the sum of a file of cachegrind: of instructions, reads and writes.
    fn read(text: &str) -> Result<Self, String> {
        const EVENTS: &str = "events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw";
        let sum = text.lines().find_map(|line| line.strip_prefix("summary: "));
        let numbers: Option<Vec<u64>> =
            sum.and_then(|sum| sum.split_whitespace().map(|number| number.parse().ok()).collect());
        match numbers.as_deref() {
            Some(&[_, _, _, r, r1, rl, w, w1, wl])
                if text.lines().any(|line| line.trim_end() == EVENTS) =>
            {
                Ok(Self { reads: [r, r1, rl], writes: [w, w1, wl] })
            }
            _ => Err("cachegrind's file has another form".into()),
        }
    }

    fn rates(&self) -> Rates {
        let sum = |at: usize| (self.reads[at] + self.writes[at]) as f64;
        Rates { first: sum(1) / sum(0), last: sum(2) / sum(0) }
    }

    /// The share of writes in a count.
    fn written(&self, of: fn([u64; 3]) -> u64) -> f64 {
        let (reads, writes) = (of(self.reads), of(self.writes));
        writes as f64 / (reads + writes).max(1) as f64
    }
}

/// The lines on lookups in the model.
fn modelled(lab: &mut Lab, keys: usize) -> Result<Vec<Evidence>, Error> {
    let (mut lines, mut found) = (Vec::new(), Vec::new());
    for (index, ..) in TRIES {
        let bed = Bed::segregated(index, keys).of_long_keys().without_prefetch();
        let look = lab.look(&bed)?;
        let model = &look.model;
        let reads = model.visits * model.reads_per_visit;
        found.push(Rates { first: model.l1_misses / reads, last: model.llc_misses / reads });
        let figures = format!(
            "{reads:.1} reads in {:.1} lines, {:.2} and {:.2} misses",
            model.lines, model.l1_misses, model.llc_misses
        );
        lines.push(Evidence::noted(Level::Model, format!("{index}: a lookup"), figures));
    }
    lines.extend(orders("lookups", &found).map(|line| line.aside().unless(few(keys))));
    lines.push(times("lookups", &found).aside().unless(few(keys)));
    Ok(lines)
}

/// Lines on the orders of the rates of both levels.
fn orders(of: &str, found: &[Rates]) -> [Evidence; 2] {
    ["first", "last"].map(|level| {
        let rate = |rates: &Rates| if level == "first" { rates.first } else { rates.last };
        let list = |rates: Vec<f64>| {
            let rates: Vec<String> = rates.into_iter().map(|rate| Unit::Share.text(rate)).collect();
            rates.join(", ")
        };
        let rates: Vec<f64> = found.iter().map(rate).collect();
        let rises = rates.is_sorted_by(|one, next| one < next);
        let what = format!("{of}: the rate of the {level} level rises with the alphabet");
        let expected =
            format!("rises: {}", list(TRIES.iter().map(|(.., own)| rate(own)).collect()));
        let line = Evidence::plain(what, expected, list(rates), rises);
        Evidence { level: Level::Model, ..line }
    })
}

/// A line on the last level's rate for the largest alphabet, relative to the next smaller one.
fn times(of: &str, found: &[Rates]) -> Evidence {
    let what = format!("{of}: rate of the last level for 256 characters / for 16");
    let expected = Expected::least(BYTES_TO_DIGITS);
    Evidence::model(what, Unit::Number(2), expected, found[3].last / found[2].last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_cachegrind_are_read() {
        let events = "events: Ir I1mr ILmr Dr D1mr DLmr Dw D1mw DLmw\n";
        let counts = Counts::read(&format!("{events}1 2 3\nsummary: 9 0 0 60 6 3 40 4 2\n"));
        let counts = counts.unwrap();
        let Rates { first, last } = counts.rates();
        assert!((first - 0.1).abs() < 1e-9 && (last - 0.05).abs() < 1e-9);
        assert!((counts.written(|[_, first, _]| first) - 0.4).abs() < 1e-9);
        for wrong in [String::new(), "summary: 1 2".into(), format!("{events}summary: 1 2 x")] {
            assert!(Counts::read(&wrong).is_err(), "{wrong}");
        }
        let machine = Machine::named("i7-4770").unwrap();
        assert_eq!(caches(&machine), ["--D1=32768,8,64", "--LL=8388608,16,64"]);
    }
}
