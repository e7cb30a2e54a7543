//! Measures maps that count their keys, maps with several values for a key, and maps with versions,
//! beside `Map`, in turns. It prints medians of speed ratios: more than 1 is faster than `Map`.
//!
//! `cargo run --release -p silvics --example costs -- [keys] [rounds] [threads]`

use silvics::versions::{Drawn, Retain};
use silvics::{CountedMap, Map, MultiMap, VersionedMap};
use std::hint::black_box;
use std::thread;
use std::time::Instant;

/// Scrambles the bits of a number, so that consecutive numbers show no pattern.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// The threads that share the calls, and who is first.
#[derive(Clone, Copy)]
struct Turn {
    threads: u64,
    plain_first: bool,
}

impl Turn {
    /// The nanoseconds that a call takes its thread.
    fn time(self, calls: u64, call: impl Fn(u64) + Sync) -> f64 {
        let began = Instant::now();
        thread::scope(|scope| {
            for first in 0..self.threads {
                let call = &call;
                scope.spawn(move || {
                    (first..calls).step_by(self.threads as usize).for_each(call);
                });
            }
        });
        (began.elapsed().as_nanos() * u128::from(self.threads)) as f64 / calls as f64
    }

    /// The nanoseconds that one call takes.
    fn once(call: impl Fn() + Sync) -> f64 {
        Self { threads: 1, plain_first: true }.time(1, |_| call())
    }

    /// The time of a call on a plain map, and that of a call on another. They take turns in being
    /// first, since the second one finds other memory in the cache.
    fn pair(
        self,
        calls: u64,
        plain: impl Fn(u64) + Sync,
        other: impl Fn(u64) + Sync,
    ) -> (f64, f64) {
        if self.plain_first {
            let plain = self.time(calls, plain);
            return (plain, self.time(calls, other));
        }
        let other = self.time(calls, other);
        (self.time(calls, plain), other)
    }
}

/// Samples by the name of what they measure.
#[derive(Default)]
struct Samples(Vec<(&'static str, Vec<f64>)>);

impl Samples {
    fn add(&mut self, name: &'static str, sample: f64) {
        match self.0.iter_mut().find(|(of, _)| *of == name) {
            Some((_, samples)) => samples.push(sample),
            None => self.0.push((name, vec![sample])),
        }
    }

    fn print(mut self) {
        for (name, samples) in &mut self.0 {
            samples.sort_by(f64::total_cmp);
            println!("{name:<48} {:8.2}", samples[samples.len() / 2]);
        }
    }
}

/// Ranks, and the cost of counting.
fn ranks(keys: u64, turn: Turn, samples: &mut Samples) {
    let (counted, plain) = (CountedMap::<u64, u64>::default(), Map::<u64, u64>::new());
    let key = |n: u64| mixed(mixed(n) % keys);
    let put = |n| _ = plain.insert(mixed(n), n);
    let put_counted = |n| _ = counted.insert(mixed(n), n);
    let (base, got) = turn.pair(keys, put, put_counted);
    samples.add("counted: load", base / got);
    samples.add("counted: first rank, ms", Turn::once(|| _ = black_box(counted.rank(5))) / 1e6);
    let get = |n| _ = black_box(plain.pin().get(key(n)).map(|value| *value));
    let get_counted = |n| _ = black_box(counted.pin().get(key(n)).map(|value| *value));
    let (base, got) = turn.pair(keys, get, get_counted);
    samples.add("counted: lookups", base / got);
    let number = |n: u64| (mixed(n) % keys) as usize;
    let calls = keys / 4;
    let rank = turn.time(calls, |n| _ = black_box(counted.pin().rank(key(n))));
    let nth = |n| _ = black_box(counted.pin().nth(number(n)).map(|(_, value)| *value));
    let nth = turn.time(calls, nth);
    let count = turn.time(calls, |n| {
        let (one, other) = (mixed(n), mixed(n + 1));
        black_box(counted.pin().count(one.min(other)..one.max(other)));
    });
    samples.add("counted: time of rank / lookup", rank / base);
    samples.add("counted: time of nth / lookup", nth / base);
    samples.add("counted: time of count / lookup", count / base);
    let take = |n| _ = plain.remove(mixed(n));
    let take_counted = |n| _ = counted.remove(mixed(n));
    let few = 5000.min(keys / 2);
    let names =
        ["counted: 5000 keys removed, inserted", "counted: half of the keys removed, inserted"];
    for (name, some) in names.into_iter().zip([few, keys / 2]) {
        let removed = turn.pair(some, take, take_counted);
        let inserted = turn.pair(some, put, put_counted);
        samples.add(name, (removed.0 + inserted.0) / (removed.1 + inserted.1));
        let after = Turn::once(|| _ = black_box(counted.rank(u64::MAX)));
        if some == few {
            samples.add("counted: rank after that, ns for each key", after / some as f64);
        }
    }
    let counts = counted.pool_stats().into_iter().filter(|pool| pool.kind == "counts");
    let bytes = counts.map(|pool| pool.live_bytes).sum::<usize>();
    samples.add("counted: bytes of counts for each key", bytes as f64 / keys as f64);
}

/// Keys with one value, and keys with a hundred.
fn lists(keys: u64, turn: Turn, samples: &mut Samples) {
    let (multi, plain) = (MultiMap::<u64, u64>::new(), Map::<u64, u64>::new());
    let key = |n: u64| mixed(mixed(n) % keys);
    let put = |n| _ = plain.insert(mixed(n), n);
    let (base, got) = turn.pair(keys, put, |n| _ = multi.insert(mixed(n), n));
    samples.add("one value: inserts", base / got);
    let get = |n| _ = black_box(plain.pin().get(key(n)).map(|value| *value));
    let first = |n| _ = black_box(multi.pin().first_of(key(n)).map(|value| *value));
    let (base, got) = turn.pair(keys, get, first);
    samples.add("one value: lookups", base / got);
    let take = |n| _ = plain.remove(mixed(n));
    let (base, got) = turn.pair(keys, take, |n| _ = multi.remove(mixed(n), &n));
    samples.add("one value: removals", base / got);
    let (owners, values) = (keys / 100, 100);
    for value in 0..values {
        for owner in 0..owners {
            multi.insert(owner, 7 * value);
            plain.insert(1000 * owner + 7 * value, value);
        }
    }
    let range = |n| {
        let view = plain.pin();
        let from = view.range(1000 * (mixed(n) % owners)..).take(values as usize);
        black_box(from.map(|(_, value)| *value).sum::<u64>());
    };
    let list = |n| {
        black_box(multi.pin().values(mixed(n) % owners).map(|value| *value).sum::<u64>());
    };
    let (base, got) = turn.pair(keys / 10, range, list);
    samples.add("100 values: scans of them", base / got);
}

/// Keys with one version and with four, and values of 24 bytes, which lie behind words.
fn versions(keys: u64, turn: Turn, samples: &mut Samples) {
    let plain = Map::<u64, [u64; 3]>::new();
    let all = Map::<u64, [u64; 3]>::builder().build_versioned::<Drawn>(Retain::All);
    let all = all.expect("memory for an empty map");
    let key = |n: u64| mixed(mixed(n) % keys);
    let (base, got) =
        turn.pair(keys, |n| _ = plain.insert(mixed(n), [n; 3]), |n| _ = all.put(mixed(n), [n; 3]));
    samples.add("versions: load", base / got);
    let bytes = |bytes: usize| bytes as f64 / keys as f64;
    samples.add("versions: more bytes for each key", bytes(all.bytes()) - bytes(plain.bytes()));
    let get = |n| _ = black_box(plain.pin().get(key(n)).map(|value| value[0]));
    let latest = |n| _ = black_box(all.pin().get_latest(key(n)).map(|found| found.value[0]));
    let (base, got) = turn.pair(keys, get, latest);
    samples.add("versions: lookups of the latest", base / got);
    for version in 1..4 {
        (0..keys).for_each(|n| _ = all.put(mixed(n), [version; 3]));
    }
    let oldest = |n| {
        let view = all.pin();
        let found = view.get_at(key(n), keys).expect("all versions are kept");
        _ = black_box(found.expect("each key has been put by then").value[0]);
    };
    let (base, got) = turn.pair(keys / 4, latest, oldest);
    samples.add("versions: oldest of four beside the latest", base / got);
    drop(all);
    let kept = VersionedMap::<u64, [u64; 3]>::new();
    (0..keys).for_each(|n| _ = kept.put(mixed(n), [n; 3]));
    let over = |n| _ = plain.insert(key(n), [n; 3]);
    let (base, got) = turn.pair(keys, over, |n| _ = kept.put(key(n), [n; 3]));
    samples.add("versions: overwrites", base / got);
}

/// Prints the bytes for each pair, in a map with several values for a key and in a map of pairs,
/// before and after a shrink.
fn bytes() {
    const PAIRS: u64 = 200_000;
    println!("\n| values for each key | `MultiMap` | shrunk | `Map` of pairs | shrunk |");
    println!("|---|---|---|---|---|");
    for values in [2, 3, 10, 50] {
        let (multi, pairs) = (MultiMap::<u64, u64>::new(), Map::<(u64, u64), ()>::new());
        let keys = PAIRS / values;
        for pair in 0..keys * values {
            let (key, value) = (mixed(pair % keys), mixed(pair) >> 16);
            multi.insert(key, value);
            pairs.insert((key, value), ());
        }
        multi.flush();
        let of = |bytes: usize| bytes as f64 / PAIRS as f64;
        let held = (of(multi.bytes()), of(pairs.bytes()));
        multi.shrink();
        pairs.shrink();
        let left = (of(multi.bytes()), of(pairs.bytes()));
        println!("| {values} | {:.1} | {:.1} | {:.1} | {:.1} |", held.0, left.0, held.1, left.1);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let keys = args.next().unwrap_or(Ok(1_000_000))?.max(10_000);
    let rounds = args.next().unwrap_or(Ok(7))?.max(1);
    let threads = args.next().unwrap_or(Ok(2))?.max(1);
    let mut samples = Samples::default();
    for round in 0..rounds {
        let turn = Turn { threads, plain_first: round % 2 == 0 };
        ranks(keys, turn, &mut samples);
        lists(keys, turn, &mut samples);
        versions(keys, turn, &mut samples);
    }
    samples.print();
    bytes();
    Ok(())
}
