//! The table of structures is complete, and the catalogue of the documents follows it.

use silvics::structures::STRUCTURES;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The sources of the library.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The Rust files below a folder.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// The names of the algorithms that a source file implements: their `Algorithm::NAME`.
fn algorithms(source: &str) -> Vec<&str> {
    let implementations = source.split(" Algorithm for ").skip(1);
    let names =
        implementations.filter_map(|text| text.split("const NAME: &'static str = \"").nth(1));
    names.filter_map(|text| text.split('"').next()).collect()
}

#[test]
fn every_structure_of_the_library_is_in_the_table() {
    let mut files = Vec::new();
    rust_files(&sources(), &mut files);
    let mut found = 0;
    for file in files {
        for name in algorithms(&fs::read_to_string(&file).unwrap()) {
            let builds = STRUCTURES.iter().flat_map(|row| row.builds);
            assert!(
                builds.flat_map(|build| build.types).any(|ty| last_name(ty) == name),
                "{name} of {} is not in the table: add a row to structures.rs",
                file.display()
            );
            found += 1;
        }
    }
    assert!(found >= 9, "only {found} algorithms were found: does this test still see them?");
}

/// The search of this file's first test finds a structure in a source file.
#[test]
fn a_structure_that_is_not_in_the_table_is_seen() {
    let source =
        "unsafe impl<P> Algorithm for New<P> {\n    const NAME: &'static str = \"NewTree\";";
    assert_eq!(algorithms(source), ["NewTree"]);
}

#[test]
fn rows_are_well_formed() {
    let names: BTreeSet<&str> = STRUCTURES.iter().map(|row| row.name).collect();
    assert_eq!(names.len(), STRUCTURES.len(), "a name is used twice");
    for row in STRUCTURES {
        assert!(sources().join(row.page).join("mod.rs").exists(), "{}: no {}", row.name, row.page);
        let builds: BTreeSet<&str> = row.builds.iter().map(|build| build.name).collect();
        assert_eq!(builds.len(), row.builds.len(), "{}: a build is named twice", row.name);
        for build in row.builds {
            assert!(!build.objects.is_empty(), "{}:{}", row.name, build.name);
        }
    }
}

/// The name of a type without its path and parameters.
fn last_name(ty: &str) -> &str {
    let path = ty.split('<').next().unwrap_or(ty);
    path.rsplit("::").next().unwrap_or(path).trim()
}

/// The first table of docs/structures.md.
fn catalogue() -> String {
    let mut table = String::from(
        "| name | type | paper | topology | synchronisation | progress | keys | ranges | builds \
         | checked by |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in STRUCTURES {
        let keys = row.builds[0].keys.iter().map(|keys| match *keys {
            "u64_keys" => "`u64`".to_owned(),
            "u128_keys" => "`u128`".to_owned(),
            _ => match row.max_key_bytes {
                Some(most) => format!("`[u8]` up to {} KiB", most >> 10),
                None => "`[u8]` of any length".to_owned(),
            },
        });
        let builds = row.builds.iter().map(|build| format!("`{}`", build.name));
        let (keys, builds): (Vec<_>, Vec<_>) = (keys.collect(), builds.collect());
        writeln!(
            table,
            "| `{}` | [`{}`](../crates/silvics/src/{}/mod.rs) | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            last_name(row.builds[0].types[0]),
            row.page,
            row.paper,
            row.topology,
            row.sync,
            row.progress,
            keys.join(", "),
            row.scans,
            builds.join(", "),
            row.checked,
        )
        .unwrap();
    }
    table
}

/// The text between the markers follows the table; with `SILVICS_BLESS=1` in the environment this
/// test writes it.
#[test]
fn the_catalogue_of_the_documents_follows_the_table() {
    const BEGIN: &str =
        "<!-- The table of structures begins: generated, see tests/structures.rs -->\n";
    const END: &str = "<!-- The table of structures ends -->";
    let path = sources().join("../../../docs/structures.md");
    let text = fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the marker that begins the table");
    let (found, after) = rest.split_once(END).expect("the marker that ends the table");
    let wanted = catalogue();
    if std::env::var_os("SILVICS_BLESS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert!(
        found == wanted,
        "docs/structures.md is not what the table says: run this test with SILVICS_BLESS=1 in the \
         environment"
    );
}
