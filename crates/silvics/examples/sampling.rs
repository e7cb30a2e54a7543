//! Measures the cost of sampling: lookups of a tree with sampling off and on, in turns. It prints
//! the medians and their ratio.
//!
//! `cargo run --release -p silvics --example sampling -- [keys] [every]`

use silvics::art::hot::{Sampled, Sampling};
use silvics::{ArtTree, Lookup, Options, Pooled};
use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Instant;

/// A tree that can be reorganized.
type Tree = ArtTree<u64, Pooled, Sampled>;

const LOOKUPS: u64 = 200_000;
const ROUNDS: usize = 301;

/// Scrambles the bits of a number, so that consecutive numbers show no pattern.
fn mixed(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)
}

/// The nanoseconds that a lookup takes.
fn lookups(tree: &Tree, keys: u64, key: impl Fn(u64) -> u64) -> f64 {
    let (guard, began) = (tree.domain().pin(), Instant::now());
    for n in 0..LOOKUPS {
        black_box(tree.get(key(mixed(n) % keys), &guard));
    }
    began.elapsed().as_nanos() as f64 / LOOKUPS as f64
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).map(|arg| arg.parse::<u32>());
    let keys = u64::from(args.next().unwrap_or(Ok(1_000_000))?);
    let every = NonZeroU32::new(args.next().unwrap_or(Ok(256))?).ok_or("every: not 0")?;
    for (name, sparse) in [("dense", false), ("sparse", true)] {
        let key = |n: u64| if sparse { mixed(n) >> 1 } else { n };
        let tree: Tree = ArtTree::with_options(&Options::default())?;
        for n in 0..keys {
            tree.pin().insert(key(n), n)?;
        }
        let [mut off, mut on, mut ratios] = [Vec::new(), Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            let turn = |sampled: bool| {
                tree.sample(sampled.then(|| Sampling { every, ..Sampling::default() }));
                lookups(&tree, keys, key)
            };
            let first = round % 2 == 0;
            let (a, b) = (turn(first), turn(!first));
            let (with, without) = if first { (a, b) } else { (b, a) };
            on.push(with);
            off.push(without);
            ratios.push(with / without);
        }
        println!(
            "{name}, {keys} keys: {:.2} ns off, {:.2} ns on, ratio {:.4}",
            median(off),
            median(on),
            median(ratios)
        );
    }
    Ok(())
}
