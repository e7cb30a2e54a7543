//! Compares the misses of the model with those that cachegrind counts for identical reads.
//!
//! Cachegrind (Nethercote 2004) runs a whole program through two levels of caches in true LRU
//! order. The last level is only asked on misses of the first, and neither includes nor excludes
//! it. So the test compares the additional misses that N more reads make in either level.

use silvics_layout::{Cache, Counts, Entries, Inclusion, Machine, Model, PageSize, SetHash, Tlb};
use std::path::PathBuf;
use std::process::{Command, Stdio};

#[path = "../examples/reads/patterns.rs"]
mod patterns;

use patterns::{ARENA_BYTES, Pattern};

/// The number of reads that are compared, and of those made before them.
const READS: usize = 300_000;

const fn cache(bytes: usize, ways: usize) -> Cache {
    Cache { bytes, ways, hash: SetHash::Modulo, inclusion: Inclusion::Neither }
}

const ENTRIES: Entries = Entries { entries: 64, ways: 4 };

/// Cachegrind's caches. An L2 of one line never hits: it holds the line that L1 read last.
const CACHEGRIND: Machine = Machine {
    name: "cachegrind",
    source: "the options it is called with",
    line: 64,
    l1: cache(32 << 10, 8),
    l2: cache(64, 1),
    llc: cache(1 << 20, 16),
    adjacent_line: false,
    tlb: [Tlb::Shared(ENTRIES), Tlb::Shared(ENTRIES)],
};

/// The misses of reads in the first and in the last level.
type Misses = [u64; 2];

/// The path of the program that makes the patterns. Cargo builds it beside the tests.
fn program() -> PathBuf {
    let mut path = std::env::current_exe().expect("a test knows where it is");
    path.pop();
    path.pop();
    path.push("examples/reads");
    let remedy = "build it by `cargo build -p silvics-layout --example reads`";
    assert!(path.exists(), "{} is missing: {remedy}", path.display());
    path
}

/// The misses that cachegrind counts for a run of the program, and the sum that the program prints.
fn cachegrind(name: &str, reads: usize) -> (Misses, u64) {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"]);
    valgrind.args(["--D1=32768,8,64", "--LL=1048576,16,64"]);
    let output = valgrind.arg(program()).args([name, &reads.to_string()]).output();
    let output = output.expect("valgrind ran a moment ago");
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    let misses = |label: &str| {
        let line = report.lines().find(|line| line.contains(label));
        let line = line.unwrap_or_else(|| panic!("no `{label}` in: {report}"));
        // `==1==  D1  misses:  1,234  ( 1,000 rd + 234 wr)`
        let of_reads = line.split('(').nth(1).and_then(|rest| rest.split("rd").next());
        let digits: String = of_reads.unwrap_or("").chars().filter(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_else(|_| panic!("no reads in: {line}"))
    };
    let printed = String::from_utf8_lossy(&output.stdout);
    ([misses("D1  misses:"), misses("LLd misses:")], printed.trim().parse().expect("a sum"))
}

/// The misses that the model counts for as many reads after the first ones, and the program's sum
/// over all reads.
fn modelled(machine: &Machine, pattern: Pattern) -> (Misses, u64) {
    let mut arena = vec![0; ARENA_BYTES / 8];
    pattern.fill(&mut arena);
    let counts = |reads| -> (Counts, u64) {
        let mut model = Model::new(machine).expect("the geometry is right");
        let sum = pattern.run(reads, |word| {
            model.read(word * 8, 8, PageSize::Small);
            arena[word]
        });
        (model.counts(), sum)
    };
    let (more, (all, sum)) = (counts(READS).0, counts(2 * READS));
    ([(all - more).l1_misses, (all - more).llc_misses], sum)
}

/// The deviation of the model from cachegrind, as a share of cachegrind's count, in the worse
/// level.
fn error(model: Misses, cachegrind: Misses) -> f64 {
    let of =
        |level: usize| model[level].abs_diff(cachegrind[level]) as f64 / cachegrind[level] as f64;
    of(0).max(of(1))
}

#[test]
fn the_model_misses_where_cachegrind_does() {
    let version = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    if !version.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: there is no valgrind to compare the model with");
        return;
    }
    // Machines that differ by one way, with an equal number of sets.
    let l1 = |ways| Machine { l1: cache(ways << 12, ways), ..CACHEGRIND };
    let llc = |ways| Machine { llc: cache(ways << 16, ways), ..CACHEGRIND };
    let wrong = [l1(7), l1(9), llc(15), llc(17)];
    let mut worst_of_wrong = [0.0_f64; 4];
    for (name, pattern) in Pattern::ALL {
        let ((before, _), (after, printed)) =
            (cachegrind(name, READS), cachegrind(name, 2 * READS));
        let theirs = [after[0] - before[0], after[1] - before[1]];
        let (ours, sum) = modelled(&CACHEGRIND, pattern);
        assert_eq!(sum, printed, "{name}: the program was built from other patterns");
        println!("{name}: model {ours:?}, cachegrind {theirs:?}");
        assert!(theirs[0] > 10_000 && theirs[1] > 10_000, "{name}: too few misses to compare");
        assert!(error(ours, theirs) < 0.05, "{name}: model {ours:?}, cachegrind {theirs:?}");
        for (worst, machine) in worst_of_wrong.iter_mut().zip(&wrong) {
            *worst = worst.max(error(modelled(machine, pattern).0, theirs));
        }
    }
    println!("errors with one way less or more: {worst_of_wrong:.3?}");
    assert!(worst_of_wrong.iter().all(|error| *error > 0.05), "{worst_of_wrong:?}");
}
