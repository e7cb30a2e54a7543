//! Makes reads of a pattern over an arena. `tests/cachegrind.rs` runs this program under a
//! simulator and gives the model identical reads.
//!
//! Usage: `reads PATTERN COUNT`. It prints a sum over the words read.

mod patterns;

use patterns::{ARENA_BYTES, Pattern};
use std::process::ExitCode;

/// The sets of all compared caches repeat after this many bytes, so they depend only on offsets in
/// the arena.
const ALIGN: usize = 2 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [pattern, count] = &arguments[..] else {
        eprintln!("two arguments are needed: a pattern and a number of reads");
        return ExitCode::from(2);
    };
    let Some((_, pattern)) = Pattern::ALL.iter().find(|(name, _)| name == pattern) else {
        eprintln!("`{pattern}` is no pattern: choose random, descents or strides");
        return ExitCode::from(2);
    };
    let Ok(count) = count.parse() else {
        eprintln!("`{count}` is not a number of reads");
        return ExitCode::from(2);
    };
    let mut words = vec![0_u64; (ARENA_BYTES + ALIGN) / 8];
    let start = words.as_ptr().align_offset(ALIGN);
    let arena = &mut words[start..][..ARENA_BYTES / 8];
    pattern.fill(arena);
    println!("{}", pattern.run(count, |word| arena[word]));
    ExitCode::SUCCESS
}
