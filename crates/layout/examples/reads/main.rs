//! Makes reads of a pattern over an arena, for a simulator that runs programs to be compared with
//! the model, which is told of the same reads (`tests/cachegrind.rs`).
//!
//! `reads PATTERN COUNT`; prints a sum over what was read.

mod patterns;

use patterns::{ARENA_BYTES, Pattern};
use std::process::ExitCode;

/// Sets of all caches compared repeat after so many bytes, so they depend on offsets in the arena only.
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
        eprintln!("`{count}` is no number of reads");
        return ExitCode::from(2);
    };
    let mut words = vec![0_u64; (ARENA_BYTES + ALIGN) / 8];
    let start = words.as_ptr().align_offset(ALIGN);
    let arena = &mut words[start..][..ARENA_BYTES / 8];
    pattern.fill(arena);
    println!("{}", pattern.run(count, |word| arena[word]));
    ExitCode::SUCCESS
}
