//! Scans of `ArtTree`, of the default index of maps (`WordTree` or `BlockTree`) and of `Map` by
//! `next`, `for_each` and `fold`, beside those of `BTreeMap`. Paths are also in a `BlockTree` that
//! stores common prefixes once, `prefixes`.
//!
//! ```sh
//! cargo bench -p silvics --bench scans                  # prints the table
//! cargo bench -p silvics --bench scans -- --case paths  # only `u64 dense`, `u64 sparse` or `paths`
//! cargo bench -p silvics --bench scans -- --quick       # tries each case at a small size
//! ```
//!
//! All structures have the same entries, inserted in the same random order, and take turns in one
//! process. A scan reads a range with both bounds, or all entries. Short scans start at random
//! keys. The consumer reads the value, and of the key the length and the first byte (of an integer
//! the whole key). Its sums must be those of `BTreeMap`.
//!
//! *whole* is the time of a scan of all entries, for each entry. *100 − 10* is the time of scans of
//! 100 entries less that of scans of 10 from the same keys, for each of the 90 entries, so the
//! descent to the first entry does not count. *50* is the time of scans of 50 entries, for each
//! entry, with the descent. Figures are medians of the rounds. A ratio is the median of the rounds'
//! ratios to `BTreeMap` by the same way: below 1, the structure is faster.

use silvics::key::Prefixed;
use silvics::map::DefaultIndex;
use silvics::{
    ArtKey, ArtTree, BlockTree, Create, IndexKey, Key, KeyRef, Lookup, Map, Options, OrderedIndex,
    OrderedScan, ValueRef,
};
use std::collections::BTreeMap;
use std::ops::Bound::{self, Excluded, Included, Unbounded};
use std::process::ExitCode;
use std::time::Instant;

/// The number of rounds that count. One before them does not.
const ROUNDS: usize = 9;

/// The numbers of entries of short scans.
const LENGTHS: [usize; 3] = [10, 50, 100];

/// A way to take the entries of a scan.
trait Way {
    const NAME: &'static str;
    /// The sum of the entries' weights.
    fn sum<E>(entries: impl Iterator<Item = E>, weight: impl Fn(E) -> u64) -> u64;
}

struct Next;
struct ForEach;
struct Fold;

impl Way for Next {
    const NAME: &'static str = "next";
    fn sum<E>(entries: impl Iterator<Item = E>, weight: impl Fn(E) -> u64) -> u64 {
        let mut sum = 0_u64;
        for entry in entries {
            sum = sum.wrapping_add(weight(entry));
        }
        sum
    }
}

impl Way for ForEach {
    const NAME: &'static str = "for_each";
    #[allow(clippy::needless_for_each)] // it is what is measured
    fn sum<E>(entries: impl Iterator<Item = E>, weight: impl Fn(E) -> u64) -> u64 {
        let mut sum = 0_u64;
        entries.for_each(|entry| sum = sum.wrapping_add(weight(entry)));
        sum
    }
}

impl Way for Fold {
    const NAME: &'static str = "fold";
    fn sum<E>(entries: impl Iterator<Item = E>, weight: impl Fn(E) -> u64) -> u64 {
        entries.fold(0, |sum, entry| sum.wrapping_add(weight(entry)))
    }
}

/// The first key of a scan, and the key behind its last one.
type Bounds<K> = (K, K);

/// Scans with the given bounds, or one of all entries. It returns the sum of the weights.
type Scan<'m, K> = dyn Fn(Option<&[Bounds<K>]>) -> u64 + 'm;

/// The scans of a structure in a way.
struct Side<'m, K> {
    structure: &'static str,
    way: &'static str,
    scan: Box<Scan<'m, K>>,
}

impl<'m, K> Side<'m, K> {
    fn new<W: Way>(structure: &'static str, scan: Box<Scan<'m, K>>) -> Self {
        Self { structure, way: W::NAME, scan }
    }

    /// The sum of the scans, and their nanoseconds.
    fn timed(&self, bounds: Option<&[Bounds<K>]>, passes: usize) -> (u64, f64) {
        let start = Instant::now();
        ((0..passes).fold(0, |_, _| (self.scan)(bounds)), start.elapsed().as_nanos() as f64)
    }
}

/// The sum over all scans with these bounds, or over one scan of all entries.
fn sum<'b, W: Way, K, E, I: Iterator<Item = E>>(
    bounds: Option<&'b [Bounds<K>]>,
    range: impl Fn(&'b K, &'b K) -> I,
    all: impl FnOnce() -> I,
    weight: impl Fn(E) -> u64 + Copy,
) -> u64 {
    let Some(bounds) = bounds else { return W::sum(all(), weight) };
    let sums = bounds.iter().map(|(from, to)| W::sum(range(from, to), weight));
    sums.fold(0, u64::wrapping_add)
}

trait Kind: Key<Form: ArtKey> + Ord + Clone {
    /// The default index of a map with these keys.
    const INDEX: &str;
    /// The key as a tree takes it.
    fn bare(&self) -> <Self::Form as IndexKey>::Ref<'_>;
    /// Reads a key of a tree.
    fn glance(bare: <Self::Form as IndexKey>::Ref<'_>) -> u64;
    /// Reads a key of `Map`.
    fn glance_ref(key: Self::Ref<'_>) -> u64;
    /// The key as a tree that stores prefixes once takes it, if it has bytes.
    fn prefixed(&self) -> Option<Prefixed<'_>> {
        None
    }
}

impl Kind for u64 {
    const INDEX: &str = "WordTree";
    fn bare(&self) -> u64 {
        *self
    }
    fn glance(bare: u64) -> u64 {
        bare
    }
    fn glance_ref(key: u64) -> u64 {
        key
    }
}

impl Kind for Vec<u8> {
    const INDEX: &str = "BlockTree";
    fn bare(&self) -> &[u8] {
        self
    }
    fn glance(bare: &[u8]) -> u64 {
        bare.len() as u64 + u64::from(bare[0])
    }
    fn glance_ref(key: &[u8]) -> u64 {
        Self::glance(key)
    }
    fn prefixed(&self) -> Option<Prefixed<'_>> {
        Some(self.into())
    }
}

/// A structure of each kind with the same entries.
struct Maps<K: Kind> {
    art: ArtTree<K::Form>,
    index: DefaultIndex<K>,
    /// Empty if keys have no bytes.
    prefixes: BlockTree<Prefixed<'static>>,
    map: Map<K, u64>,
    beside: BTreeMap<K, u64>,
}

/// The scan of a tree, whose keys are made by `bare` and read by `glance`.
fn tree_scan<'m, W: Way, K: Kind, T: OrderedScan>(
    tree: &'m T,
    bare: impl for<'k> Fn(&'k K) -> KeyRef<'k, T> + 'm,
    glance: impl for<'k> Fn(KeyRef<'k, T>) -> u64 + Copy + 'm,
) -> Box<Scan<'m, K>> {
    Box::new(move |bounds| {
        let guard = tree.domain().pin();
        let range = |from, to| tree.range((from, to), &guard);
        sum::<W, _, _, _>(
            bounds,
            |from, to| range(Included(bare(from)), Excluded(bare(to))),
            || range(Unbounded, Unbounded),
            |(key, value)| glance(key) + value,
        )
    })
}

fn in_pieces<K: Kind>(key: &K) -> Prefixed<'_> {
    key.prefixed().unwrap_or_default()
}

fn glance(key: Prefixed<'_>) -> u64 {
    key.len() as u64 + u64::from(key.first().unwrap_or_default())
}

/// The scans of all structures in one way; `BTreeMap` comes last.
fn sides<W: Way, K: Kind>(maps: &Maps<K>) -> Vec<Side<'_, K>> {
    let Maps { art, index, prefixes, map, beside } = maps;
    let map = |bounds: Option<&[Bounds<K>]>| {
        let view = map.pin();
        let weight = |(key, value): (K::Ref<'_>, ValueRef<'_, u64>)| K::glance_ref(key) + *value;
        sum::<W, _, _, _>(bounds, |from, to| view.range(from..to), || view.range(..), weight)
    };
    let beside = |bounds: Option<&[Bounds<K>]>| {
        let range = |ends| beside.range::<K, (Bound<&K>, Bound<&K>)>(ends);
        sum::<W, _, _, _>(
            bounds,
            |from, to| range((Included(from), Excluded(to))),
            || range((Unbounded, Unbounded)),
            |(key, value)| K::glance(key.bare()) + value,
        )
    };
    let mut sides = vec![
        Side::new::<W>("ArtTree", tree_scan::<W, K, _>(art, K::bare, K::glance)),
        Side::new::<W>(K::INDEX, tree_scan::<W, K, _>(index, K::bare, K::glance)),
    ];
    if !prefixes.is_empty() {
        sides.push(Side::new::<W>("prefixes", tree_scan::<W, K, _>(prefixes, in_pieces, glance)));
    }
    sides.push(Side::new::<W>("Map", Box::new(map)));
    sides.push(Side::new::<W>("BTreeMap", Box::new(beside)));
    sides
}

/// A word that looks random.
fn mixed(n: u64) -> u64 {
    let word = (n + 0x9e37_79b9).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// A path of a file. Directories of three to six names have 16 files each.
fn path(n: u64) -> Vec<u8> {
    const NAMES: [&str; 8] = ["usr", "lib", "doc", "src", "tests", "data", "python3", "locale"];
    let directory = mixed(n / 16);
    let names = (0..3 + directory % 4).map(|at| NAMES[(directory >> (8 + 4 * at)) as usize % 8]);
    let folder: String = names.flat_map(|name| ["/", name]).collect();
    format!("{folder}/{}-{n}.txt", NAMES[n as usize % 8]).into_bytes()
}

/// Inserts one entry.
fn insert<T: OrderedIndex>(tree: &T, key: KeyRef<'_, T>, value: u64) {
    tree.insert(key, value, &tree.domain().pin()).expect("memory");
}

/// Measures the scans of one set of keys. Returns its rows.
fn rows<K: Kind>(name: &str, count: usize, key: impl Fn(u64) -> K, quick: bool) -> Vec<String> {
    let (rounds, scans): (usize, usize) = if quick { (1, 50) } else { (ROUNDS, 20_000) };
    let mut keys: Vec<K> = (0..count as u64).map(key).collect();
    keys.sort_unstable();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_unstable_by_key(|&at| mixed(at as u64));
    let mut maps = Maps {
        art: ArtTree::with_options(&Options::default()).expect("memory"),
        index: DefaultIndex::<K>::with_options(&Options::default()).expect("memory"),
        prefixes: BlockTree::with_options(&Options::default()).expect("memory"),
        map: Map::new(),
        beside: BTreeMap::new(),
    };
    for at in order {
        let value = at as u64;
        maps.art.pin().insert(keys[at].bare(), value).expect("memory");
        insert(&maps.index, keys[at].bare(), value);
        if let Some(key) = keys[at].prefixed() {
            maps.prefixes.pin().insert(key, value).expect("memory");
        }
        maps.map.insert(keys[at].clone(), value);
        maps.beside.insert(keys[at].clone(), value);
    }
    let sides: Vec<Side<'_, K>> = [sides::<Next, K>, sides::<ForEach, K>, sides::<Fold, K>]
        .map(|sides| sides(&maps))
        .into_iter()
        .flatten()
        .collect();
    let structures = sides.len() / 3;
    // Bounds lie one behind another, so that scans of each length find them in the same way.
    let starts = (0..scans as u64).map(|n| mixed(n << 32) as usize % (count - LENGTHS[2]));
    let bounds = LENGTHS.map(|length| -> Vec<Bounds<K>> {
        starts.clone().map(|at| (keys[at].clone(), keys[at + length].clone())).collect()
    });
    let kinds: Vec<Option<&[Bounds<K>]>> =
        bounds.iter().map(|bounds| Some(&bounds[..])).chain([None]).collect();
    let wanted: Vec<u64> = kinds.iter().map(|kind| (sides[structures - 1].scan)(*kind)).collect();
    let whole = (50 * scans).div_ceil(count);
    // The times of each side, by round: whole, 100 − 10, 50.
    let mut times = vec![[const { Vec::new() }; 3]; sides.len()];
    for round in 0..=rounds {
        for turn in 0..sides.len() {
            let at = if round % 2 == 0 { turn } else { sides.len() - 1 - turn };
            let Side { structure, way, .. } = sides[at];
            let spent = [0, 1, 2, 3].map(|kind| {
                let (sum, time) = sides[at].timed(kinds[kind], [1, 1, 1, whole][kind]);
                assert_eq!(sum, wanted[kind], "{structure} by {way}: a wrong scan of {name}");
                time
            });
            if round > 0 {
                let [ten, fifty, hundred] = [0, 1, 2].map(|kind| spent[kind] / scans as f64);
                let per_entry = spent[3] / (whole * count) as f64;
                let figures = [per_entry, (hundred - ten) / 90.0, fifty / 50.0];
                times[at].iter_mut().zip(figures).for_each(|(times, figure)| times.push(figure));
            }
        }
    }
    let row = |at: usize| {
        let (mine, beside) = (&times[at], &times[at / structures * structures + structures - 1]);
        let of = |figure: usize| {
            let ratios =
                mine[figure].iter().zip(&beside[figure]).map(|(mine, beside)| mine / beside);
            (median(mine[figure].clone()), median(ratios.collect()))
        };
        let ((whole, ratio), (steps, steps_ratio), (fifty, _)) = (of(0), of(1), of(2));
        let Side { structure, way, .. } = &sides[at];
        format!(
            "| {structure} | {name}, {count} | {way} | {whole:.2} | {ratio:.2} | {steps:.2} | \
             {steps_ratio:.2} | {fifty:.2} |"
        )
    };
    (0..sides.len()).map(row).collect()
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

fn main() -> ExitCode {
    let names = ["u64 dense", "u64 sparse", "paths"];
    // Cargo passes `--bench`.
    let arguments: Vec<String> =
        std::env::args().skip(1).filter(|text| text != "--bench").collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (quick, case) = match arguments[..] {
        [] => (false, ""),
        ["--quick"] => (true, ""),
        ["--case", case] if names.iter().any(|name| name.contains(case)) => (false, case),
        _ => {
            eprintln!("the flags are --quick, or --case with one of {names:?} or a part of it");
            return ExitCode::FAILURE;
        }
    };
    let counts = if quick { [1000, 2000] } else { [10_000, 1_000_000] };
    let mut table = Vec::new();
    for count in counts {
        if names[0].contains(case) {
            table.extend(rows(names[0], count, |n| n, quick));
        }
        if names[1].contains(case) {
            table.extend(rows(names[1], count, |n| mixed(n) >> 1, quick));
        }
        if names[2].contains(case) {
            table.extend(rows(names[2], count / 5, path, quick));
        }
    }
    if quick {
        println!("all scans returned the right sums, in {} rows", table.len());
        return ExitCode::SUCCESS; // figures of small sizes mean nothing
    }
    println!("Nanoseconds for each entry, medians of {ROUNDS} rounds:\n");
    println!("| structure | keys | way | whole | ratio | 100 − 10 | ratio | 50 |");
    println!("|---|---|---|---|---|---|---|---|\n{}", table.join("\n"));
    ExitCode::SUCCESS
}
