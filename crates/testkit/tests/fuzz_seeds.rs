//! The seeds of the fuzz targets, and every prefix of each seed, pass.

use silvics_testkit::fuzz::{TARGETS, index};
use std::path::{Path, PathBuf};

fn seeds(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let entries = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("a folder that can be read").path());
    let mut seeds: Vec<_> =
        entries.map(|path| (path.clone(), std::fs::read(path).expect("a seed"))).collect();
    seeds.sort();
    seeds
}

#[test]
#[cfg_attr(miri, ignore = "reads files, and takes long")]
fn seeds_and_their_beginnings_pass() {
    for (target, run) in TARGETS {
        let seeds = seeds(target);
        assert!(seeds.len() >= 3, "{target} has {} seeds", seeds.len());
        for (path, seed) in seeds {
            println!("{}", path.display()); // shown if it fails
            let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
            // A new row of the table moves those behind it.
            assert!(
                target != "index" || name.starts_with(index::name(&seed)),
                "the first byte of {name} chooses {}",
                index::name(&seed)
            );
            for len in (0..=seed.len()).rev() {
                run(&seed[..len]);
            }
        }
    }
}

#[test]
#[cfg_attr(miri, ignore = "reads files")]
fn every_target_can_be_fuzzed() {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).expect("fuzz/Cargo.toml");
    for (target, _) in TARGETS {
        let entry = fuzz.join("fuzz_targets").join(format!("{target}.rs"));
        let text = std::fs::read_to_string(&entry).expect("an entry point");
        assert!(text.contains(&format!("fuzz::{target}::run")), "{}", entry.display());
        assert!(manifest.contains(&format!("name = \"{target}\"")), "{target} is no binary");
    }
}
