//! Measures maps that count their keys, and maps with several values for a key, beside `Map`, in
//! turns, on one thread. It prints medians of speed ratios: more than 1 is faster than `Map`.
//!
//! `cargo run --release -p silvics --example costs -- [keys] [rounds]`

use silvics::{CountedMap, Map, MultiMap};
use std::hint::black_box;
use std::time::Instant;

/// Scrambles the bits of a number, so that consecutive numbers show no pattern.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// The nanoseconds that a call takes.
fn time(calls: u64, mut call: impl FnMut(u64)) -> f64 {
    let began = Instant::now();
    (0..calls).for_each(&mut call);
    began.elapsed().as_nanos() as f64 / calls as f64
}

/// The time of a call on a plain map, and that of a call on another. They take turns in being
/// first, since the second one finds other memory in the cache.
fn pair(turn: bool, calls: u64, plain: impl FnMut(u64), other: impl FnMut(u64)) -> (f64, f64) {
    if turn {
        let other = time(calls, other);
        return (time(calls, plain), other);
    }
    let plain = time(calls, plain);
    (plain, time(calls, other))
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
fn ranks(keys: u64, turn: bool, samples: &mut Samples) {
    let (counted, plain) = (CountedMap::<u64, u64>::default(), Map::<u64, u64>::new());
    let key = |n: u64| mixed(mixed(n) % keys);
    let put = |n| _ = plain.insert(mixed(n), n);
    let put_counted = |n| _ = counted.insert(mixed(n), n);
    let (base, got) = pair(turn, keys, put, put_counted);
    samples.add("counted: load", base / got);
    samples.add("counted: first rank, ms", time(1, |_| _ = black_box(counted.rank(5))) / 1e6);
    let get = |n| _ = black_box(plain.pin().get(key(n)).map(|value| *value));
    let get_counted = |n| _ = black_box(counted.pin().get(key(n)).map(|value| *value));
    let (base, got) = pair(turn, keys, get, get_counted);
    samples.add("counted: lookups", base / got);
    let number = |n: u64| (mixed(n) % keys) as usize;
    let calls = keys / 4;
    let rank = time(calls, |n| _ = black_box(counted.pin().rank(key(n))));
    let nth = |n| _ = black_box(counted.pin().nth(number(n)).map(|(_, value)| *value));
    let nth = time(calls, nth);
    let count = time(calls, |n| {
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
        let removed = pair(turn, some, take, take_counted);
        let inserted = pair(turn, some, put, put_counted);
        samples.add(name, (removed.0 + inserted.0) / (removed.1 + inserted.1));
        let after = time(1, |_| _ = black_box(counted.rank(u64::MAX)));
        if some == few {
            samples.add("counted: rank after that, ns for each key", after / some as f64);
        }
    }
    let counts = counted.pool_stats().into_iter().filter(|pool| pool.kind == "counts");
    let bytes = counts.map(|pool| pool.live_bytes).sum::<usize>();
    samples.add("counted: bytes of counts for each key", bytes as f64 / keys as f64);
}

/// Keys with one value, and keys with a hundred.
fn lists(keys: u64, turn: bool, samples: &mut Samples) {
    let (multi, plain) = (MultiMap::<u64, u64>::new(), Map::<u64, u64>::new());
    let key = |n: u64| mixed(mixed(n) % keys);
    let put = |n| _ = plain.insert(mixed(n), n);
    let (base, got) = pair(turn, keys, put, |n| _ = multi.insert(mixed(n), n));
    samples.add("one value: inserts", base / got);
    let get = |n| _ = black_box(plain.pin().get(key(n)).map(|value| *value));
    let first = |n| _ = black_box(multi.pin().first_of(key(n)).map(|value| *value));
    let (base, got) = pair(turn, keys, get, first);
    samples.add("one value: lookups", base / got);
    let take = |n| _ = plain.remove(mixed(n));
    let (base, got) = pair(turn, keys, take, |n| _ = multi.remove(mixed(n), &n));
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
    let (base, got) = pair(turn, keys / 10, range, list);
    samples.add("100 values: scans of them", base / got);
}

/// Prints the bytes for each pair, in a map with several values for a key and in a map of pairs,
/// before and after a shrink.
fn bytes() {
    const PAIRS: u64 = 200_000;
    println!("values  MultiMap  shrunk  Map of pairs  shrunk");
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
        println!("{values:6} {:9.1} {:7.1} {:13.1} {:7.1}", held.0, left.0, held.1, left.1);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u64>());
    let keys = args.next().unwrap_or(Ok(1_000_000))?.max(10_000);
    let rounds = args.next().unwrap_or(Ok(7))?.max(1);
    let mut samples = Samples::default();
    for round in 0..rounds {
        ranks(keys, round % 2 == 0, &mut samples);
        lists(keys, round % 2 == 0, &mut samples);
    }
    samples.print();
    bytes();
    Ok(())
}
