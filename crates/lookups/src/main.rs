//! So many lookups in one structure, and nothing else: `.ci/recorder` counts their instructions.

use silvics::bst::{bronson, build, ellen, natarajan, ticket};
use silvics::{
    ArtTree, BronsonTree, CitrusTree, Create, DrachslerTree, EllenTree, HowleyTree, NatarajanTree,
    Options, OrderedIndex, PinIndex, Pooled, RamachandranTree, SkipList, TicketTree,
};
use std::process::ExitCode;

/// Keys that are there, of half as many again that are looked up.
const KEYS: u64 = 1000;

type Lookups = fn(u64) -> u64;

/// Every structure, in the builds that lookups go different ways in.
const STRUCTURES: [(&str, Lookups); 15] = [
    ("skiplist", lookups::<SkipList<u64>>),
    ("occ-avl", lookups::<BronsonTree>),
    ("occ-avl:fixed", lookups::<BronsonTree<Pooled, build::Fixed>>),
    ("occ-avl-2:ret", lookups::<BronsonTree<Pooled, bronson::build::Restarting2>>),
    ("edge-ext-lf", lookups::<NatarajanTree>),
    ("edge-ext-lf:fixed", lookups::<NatarajanTree<Pooled, build::Fixed>>),
    ("edge-ext-lf-2", lookups::<NatarajanTree<Pooled, natarajan::build::Baseline2>>),
    ("ticket", lookups::<TicketTree<Pooled, ticket::build::Compact>>),
    ("ext-lf", lookups::<EllenTree<Pooled, ellen::build::Compact>>),
    ("ext-lf:baseline", lookups::<EllenTree<Pooled, build::Baseline>>),
    ("int-lf", lookups::<HowleyTree>),
    ("edge-int-lf", lookups::<RamachandranTree>),
    ("log-int", lookups::<DrachslerTree>),
    ("citrus", lookups::<CitrusTree>),
    ("art", lookups::<ArtTree>),
];

fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[inline(never)]
fn lookups<I: Create + OrderedIndex<Key = u64>>(count: u64) -> u64 {
    let Ok(index) = I::with_options(&Options::default()) else { return 0 };
    let index = index.pin();
    for number in 0..KEYS {
        let _ = index.insert(key(number), number);
    }
    let found = (0..count).filter_map(|number| index.get(key(number % (KEYS + KEYS / 2))));
    found.fold(0, u64::wrapping_add)
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let named = |name: &str| STRUCTURES.into_iter().find(|(of, _)| *of == name);
    if let [name, count] = &args[..]
        && let (Some((_, lookups)), Ok(count)) = (named(name), count.parse())
    {
        println!("{}", lookups(count));
        return ExitCode::SUCCESS;
    }
    for (name, _) in STRUCTURES {
        println!("{name}");
    }
    if args.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}
