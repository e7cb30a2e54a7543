//! The seeds of the fuzz target, and every prefix of each seed, pass.

use super::small;
use crate::log::forgetful::Forgetful;
use crate::log::{LogStorage, fuzz};
use std::path::Path;

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn seeds_and_their_beginnings_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let mut seeds = 0;
    for entry in std::fs::read_dir(folder.join("seeds/log")).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display()); // shown if it fails
        let seed = std::fs::read(&path).unwrap();
        (0..=seed.len()).for_each(|len| fuzz::run(&seed[..len]));
        seeds += 1;
    }
    assert!(seeds >= 3, "{seeds} seeds");
    let entry = std::fs::read_to_string(folder.join("fuzz_targets/log.rs")).unwrap();
    assert!(entry.contains("log::fuzz::run"), "{entry}");
}

#[test]
fn a_log_and_its_beginnings_pass() {
    let storage = Forgetful::new();
    small(&storage, 7, 1);
    let file = storage.read(7).unwrap();
    (0..=file.len()).for_each(|len| fuzz::run(&file[..len]));
}

#[test]
fn any_bytes_pass() {
    use proptest::prelude::*;
    let small = prop_oneof![0..4_u8, Just(0x0F), any::<u8>()];
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    proptest!(config, |(bytes in proptest::collection::vec(small, 0..200))| fuzz::run(&bytes));
}
