//! Measures `silvics::Lpm` beside other tables of prefixes, on real routing tables.
//!
//! ```sh
//! cargo run --release            # lookups and memory on both tables, then lookups beside a writer
//! cargo run --release -- lookups # one part; `updates` is the other
//! ```
//! Contenders take turns in each round, forwards and backwards. A figure is the median of the
//! rounds, in time of the thread. All contenders must find the same numbers.

mod contenders;
mod memory;
mod tables;
mod updates;

use contenders::{
    Bart, BartInline, Contender, Ours, PrefixTrie, Rotonda, TreeBitmap, sum_of_batches,
};
use ipnet::IpNet;
use silvics::Lpm;
use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use tables::{Family, Source, draw, load};

#[global_allocator]
static ALLOCATOR: memory::CountingAllocator = memory::CountingAllocator;

/// Addresses of a round.
const ADDRESSES: usize = 1 << 20;
/// The part of them that the slowest contender looks up.
const SLOW: usize = 32;
const ROUNDS: usize = 5;

/// The time that the processor has spent on this thread. Other programs and a writer take time from
/// the processors, but not from this clock.
fn own_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes to a place of the right type.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// One contender with its figures.
struct Measured<'a> {
    name: &'static str,
    sum: Box<dyn Fn() -> u64 + 'a>,
    bytes: Option<f64>,
    /// Nanoseconds for each lookup, of all rounds.
    nanoseconds: Vec<f64>,
    /// Whether it finds the numbers that the first contender finds.
    agrees: bool,
}

/// The median of some figures, and the lowest and highest.
fn median(figures: &[f64]) -> (f64, f64, f64) {
    let mut sorted = figures.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[sorted.len() / 2], sorted[0], sorted[sorted.len() - 1])
}

/// Loads a contender with the entries. Returns the bytes for each prefix.
fn loaded<F: Family, C: Contender<F>>(mut table: C, nets: &[(IpNet, u32)]) -> (C, f64, f64) {
    let (before, start) = (memory::live(), own_time());
    nets.iter().for_each(|(net, value)| table.insert(*net, *value));
    let seconds = (own_time() - start).as_secs_f64();
    let bytes = table.bytes().unwrap_or_else(|| memory::live() - before);
    (table, bytes as f64 / nets.len() as f64, seconds)
}

fn measure<F: Family>(nets: &[(IpNet, u32)]) {
    let addresses: Vec<F> = draw(nets, ADDRESSES, 7).into_iter().map(F::of).collect();
    let (ours, our_bytes, our_load) = loaded::<F, _>(Ours(Lpm::new()), nets);
    let (bart, bart_bytes, bart_load) = loaded::<F, _>(Bart::default(), nets);
    let (inline, inline_bytes, inline_load) = loaded::<F, _>(BartInline::default(), nets);
    let (trie, trie_bytes, trie_load) = loaded::<F, _>(PrefixTrie::default(), nets);
    let (bitmap, bitmap_bytes, bitmap_load) = loaded::<F, _>(TreeBitmap::default(), nets);
    let (rotonda, rotonda_bytes, rotonda_load) = loaded::<F, _>(Rotonda::default(), nets);
    let list = &addresses;
    // The borrows live until the end of this function.
    let mut all = vec![
        Measured {
            name: "silvics",
            sum: Box::new(|| ours.sum(list)),
            bytes: Some(our_bytes),
            nanoseconds: vec![],
            agrees: true,
        },
        Measured {
            name: "silvics, get_many of 64",
            sum: Box::new(|| sum_of_batches(&ours.0, list)),
            bytes: None,
            nanoseconds: vec![],
            agrees: true,
        },
        Measured {
            name: "ts_bart",
            sum: Box::new(|| bart.sum(list)),
            bytes: Some(bart_bytes),
            nanoseconds: vec![],
            agrees: true,
        },
        Measured {
            name: "ts_bart, inline",
            sum: Box::new(|| inline.sum(list)),
            bytes: Some(inline_bytes),
            nanoseconds: vec![],
            agrees: true,
        },
        Measured {
            name: "prefix-trie",
            sum: Box::new(|| trie.sum(list)),
            bytes: Some(trie_bytes),
            nanoseconds: vec![],
            agrees: true,
        },
        Measured {
            name: "ip_network_table",
            sum: Box::new(|| bitmap.sum(list)),
            bytes: Some(bitmap_bytes),
            nanoseconds: vec![],
            agrees: true,
        },
        Measured {
            name: "rotonda-store",
            sum: Box::new(|| rotonda.sum(&list[..ADDRESSES / SLOW])),
            bytes: Some(rotonda_bytes),
            nanoseconds: vec![],
            agrees: true,
        },
    ];
    let slow = all.len() - 1;
    let expected = [(all[0].sum)(), ours.sum(&list[..ADDRESSES / SLOW])];
    for round in 0..ROUNDS {
        let mut order: Vec<usize> = (0..all.len()).collect();
        if round % 2 == 1 {
            order.reverse();
        }
        for at in order {
            let start = own_time();
            let sum = (all[at].sum)();
            let (expected, count) =
                if at == slow { (expected[1], ADDRESSES / SLOW) } else { (expected[0], ADDRESSES) };
            let nanoseconds = (own_time() - start).as_nanos() as f64 / count as f64;
            all[at].agrees &= sum == expected;
            all[at].nanoseconds.push(nanoseconds);
        }
    }
    println!("\n{}: {} prefixes", F::NAME, nets.len());
    println!(
        "loads: silvics {our_load:.2} s, ts_bart {bart_load:.2}, inline {inline_load:.2}, prefix-trie {trie_load:.2}, ip_network_table {bitmap_load:.2}, rotonda-store {rotonda_load:.2}"
    );
    println!("| table | ns a lookup | lowest to highest | M/s | bytes a prefix |");
    println!("|---|---|---|---|---|");
    for row in &all {
        let (median, low, high) = median(&row.nanoseconds);
        let bytes = row.bytes.map_or("".to_string(), |bytes| format!("{bytes:.1}"));
        let other = if row.agrees { "" } else { " (finds other numbers)" };
        println!(
            "| {}{other} | {median:.1} | {low:.1} to {high:.1} | {:.1} | {bytes} |",
            row.name,
            1e3 / median
        );
    }
}

fn of_family<F: Family>(entries: &[(IpNet, u32)]) -> Vec<(IpNet, u32)> {
    entries.iter().filter(|(net, _)| F::has(net)).copied().collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let part = std::env::args().nth(1);
    let does = |name| part.as_deref().is_none_or(|part| part == name);
    if does("lookups") {
        for source in [Source::Bart, Source::Iptrie] {
            let entries = load(source)?;
            println!("\n# The table of {}", source.name());
            measure::<Ipv4Addr>(&of_family::<Ipv4Addr>(&entries));
            measure::<Ipv6Addr>(&of_family::<Ipv6Addr>(&entries));
        }
    }
    if does("updates") {
        let entries = load(Source::Bart)?;
        updates::measure::<Ipv4Addr>(&of_family::<Ipv4Addr>(&entries));
        updates::measure::<Ipv6Addr>(&of_family::<Ipv6Addr>(&entries));
    }
    Ok(())
}
