//! `Map` beside `crossbeam-skiplist`, as clients use them: many small maps, many threads, and the
//! memtable of a storage engine.
//!
//! ```sh
//! cargo bench -p silvics --bench clients              # prints the tables
//! cargo bench -p silvics --bench clients -- --quick   # tries each case at a small size
//! ```
//!
//! Each case runs in a process of its own, so that it finds no memory and no threads of another
//! case. The cases of all sides take turns, round by round. Figures are medians of the rounds, and
//! ratios are medians of the rounds' ratios. Every case checks its results. No figure fails a run.
//!
//! * `small.rs`, `memtable.rs`, `scans.rs`: the cases.
//! * `cases.rs`: their names and sizes, and the process of each.
//! * `report.rs`: the rows of the tables, and their goals.
//! * `measure.rs`: the memory of a process, and times.

mod cases;
mod measure;
mod memtable;
mod report;
mod scans;
mod small;

use std::process::ExitCode;

const ROUNDS: usize = 5;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = |flag: &str| arguments.iter().any(|argument| argument == flag);
    if !measure::reports_memory() {
        println!("skipped: this system has no /proc/self/smaps_rollup");
        return ExitCode::SUCCESS;
    }
    if let Some(at) = arguments.iter().position(|argument| argument == cases::CHILD) {
        cases::run(&arguments[at + 1..]);
        return ExitCode::SUCCESS;
    }
    // Cargo passes `--bench`.
    let known = ["--bench", "--quick"];
    if let Some(other) = arguments.iter().find(|argument| !known.contains(&argument.as_str())) {
        eprintln!("`{other}` is not a flag of this bench: there is --quick");
        return ExitCode::FAILURE;
    }
    if given("--quick") {
        // Figures of small sizes mean nothing: making the tables only shows that all are there.
        let tables = report::tables(&cases::measure(cases::Scale::QUICK, 1));
        println!(
            "all cases gave the right results, and {} lines of tables",
            tables.lines().count()
        );
        return ExitCode::SUCCESS;
    }
    let tables = report::tables(&cases::measure(cases::Scale::FULL, ROUNDS));
    println!("{ROUNDS} rounds\n\n{tables}");
    ExitCode::SUCCESS
}
