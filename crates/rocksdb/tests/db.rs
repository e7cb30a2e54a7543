//! Databases of RocksDB over the memtables: `db.cc` has the cases.
//!
//! The program knows nothing of the plug-in, which is preloaded, as for any other program.

#![cfg(feature = "plugin")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;

/// The path of the shared object, which cargo builds beside the library of these tests. Its name is
/// the same with and without the feature, so this checks that it has the C++ part.
static PLUGIN: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = std::env::current_exe().expect("the path of this program");
    let plugin = program.with_file_name("libsilvics_rocksdb.so");
    let object = std::fs::read(&plugin).expect("cargo has built the shared object");
    let sentence = b"this plug-in is built for RocksDB";
    assert!(
        object.windows(sentence.len()).any(|bytes| bytes == sentence),
        "{} was built without the feature plugin: run cargo clean -p silvics-rocksdb",
        plugin.display()
    );
    plugin
});

/// The program with the cases.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("silvics-rocksdb-db");
    let mut compiler = Command::new(std::env::var_os("CXX").unwrap_or_else(|| "c++".into()));
    compiler.args(["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program);
    compiler.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/db.cc"));
    compiler.args(["-lrocksdb", "-pthread"]);
    assert!(compiler.status().expect("the compiler runs").success(), "db.cc cannot be compiled");
    program
});

fn run(arguments: &[&str]) {
    let mut command = Command::new(&*PROGRAM);
    let output = command.args(arguments).env("LD_PRELOAD", &*PLUGIN).output();
    let output = output.expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{arguments:?}, {}: {said}", output.status);
}

macro_rules! cases {
    ($($memtable:ident: $($case:ident)*;)*) => {$(
        mod $memtable {
            $(#[test]
            fn $case() {
                super::run(&[stringify!($case), stringify!($memtable)]);
            })*
        }
    )*};
}

cases! {
    silvics_art: orders prefixes flushes families threads interface;
    silvics_skiplist: orders prefixes flushes families threads interface;
}

#[test]
fn comparators_that_are_not_of_bytes_are_refused() {
    run(&["comparators"]);
}

#[test]
fn an_unknown_memtable_is_an_error_of_rocksdb() {
    run(&["unknown"]);
}

/// A program without the plug-in, which selects one of its memtables, has RocksDB's error.
#[test]
fn a_program_without_the_plug_in_says_so() {
    let output = Command::new(&*PROGRAM).args(["threads", "silvics_art"]).output();
    let output = output.expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("Could not load MemTableRepFactory: silvics_art"), "{said}");
}
