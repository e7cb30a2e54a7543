//! Makes the given number of lookups in one structure. `.ci/recorder` counts their instructions.

use silvics::{Create, Options, OrderedIndex, PinIndex};
use std::process::ExitCode;

/// The number of present keys. Lookups also search for half as many absent ones.
const KEYS: u64 = 1000;

type Lookups = fn(u64) -> u64;

/// Every structure of the table, in every build, with integer keys.
fn structures() -> Vec<(String, Lookups)> {
    let mut structures: Vec<(String, Lookups)> = Vec::new();
    macro_rules! push {
        ($structure:ident $build:ident u64_keys $r:ident $c:ident $f:ident $index:ty) => {
            let name = concat!(stringify!($structure), ":", stringify!($build)).replace('_', "-");
            structures.push((name, lookups::<$index>));
        };
        ($structure:ident $build:ident $keys:ident $($rest:tt)*) => {};
    }
    silvics::for_each_index! { push }
    structures
}

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
    let structures = structures();
    // `skiplist` stands for its first build.
    let named = |name: &str| {
        let is_named = |of: &str| of == name || of.split(':').next() == Some(name);
        structures.iter().find(|(of, _)| is_named(of))
    };
    if let [name, count] = &args[..]
        && let (Some((_, lookups)), Ok(count)) = (named(name), count.parse())
    {
        println!("{}", lookups(count));
        return ExitCode::SUCCESS;
    }
    for (name, _) in &structures {
        println!("{name}");
    }
    if args.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(2) }
}
