//! The tables of the results, and their goals.

use crate::cases::{Results, Side};
use crate::measure::median;
use std::fmt::Write;

/// The goal of a figure.
#[derive(Clone, Copy)]
enum Goal {
    None,
    /// The figure itself, in its unit, is at most this.
    AtMost(f64),
    /// The ratio is at most this.
    Factor(f64),
    /// The ratio is at least this.
    Times(f64),
}

/// How a figure is printed.
#[derive(Clone, Copy)]
enum Unit {
    Bytes,
    Kilobytes,
    Megabytes,
    Nanoseconds,
    Microseconds,
    Milliseconds,
    /// Millions in a second, from nanoseconds.
    Rate,
    Multiple,
}

impl Unit {
    fn of(self, raw: f64) -> f64 {
        match self {
            Self::Bytes | Self::Nanoseconds | Self::Multiple => raw,
            Self::Kilobytes | Self::Microseconds => raw / 1e3,
            Self::Megabytes | Self::Milliseconds => raw / 1e6,
            Self::Rate => 1e3 / raw,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Bytes => "B",
            Self::Kilobytes => "KB",
            Self::Megabytes => "MB",
            Self::Nanoseconds => "ns",
            Self::Microseconds => "µs",
            Self::Milliseconds => "ms",
            Self::Rate => "M/s",
            Self::Multiple => "×",
        }
    }
}

/// A figure of a side: the case, the side, and the figure's name.
type Place = (&'static str, Side, &'static str);

struct Row {
    label: &'static str,
    unit: Unit,
    ours: Place,
    beside: Place,
    goal: Goal,
}

/// A row of a figure that `Map` and `SkipMap` have.
fn row(label: &'static str, unit: Unit, case: &'static str, name: &'static str, goal: Goal) -> Row {
    Row { label, unit, ours: (case, Side::Map, name), beside: (case, Side::SkipMap, name), goal }
}

/// A row of a figure that `OrdMap` and `SkipMap` have.
fn ordered(label: &'static str, unit: Unit, case: &'static str, name: &'static str) -> Row {
    Row { ours: (case, Side::OrdMap, name), ..row(label, unit, case, name, Goal::None) }
}

/// A row of a kind of scan, beside the iterator of a view.
fn scan(
    label: &'static str,
    case: &'static str,
    name: &'static str,
    view: &'static str,
    goal: Goal,
) -> Row {
    let (ours, beside) = ((case, Side::Map, name), (case, Side::Map, view));
    Row { label, unit: Unit::Rate, ours, beside, goal }
}

fn clients() -> Vec<Row> {
    use Goal::{AtMost, Factor, None, Times};
    use Unit::{
        Bytes, Kilobytes, Megabytes, Microseconds, Milliseconds, Multiple, Nanoseconds, Rate,
    };
    vec![
        row("10 000 maps × 10 integers: each", Kilobytes, "integers", "bytes", AtMost(1.2)),
        row("make and fill one", Microseconds, "integers", "create", AtMost(1.5)),
        row("drop one", Microseconds, "integers", "drop", AtMost(0.3)),
        row("resident after all are dropped", Megabytes, "integers", "left", AtMost(1.0)),
        row("and after `malloc_trim`", Megabytes, "integers", "trimmed", None),
        row("10 000 empty maps: each", Bytes, "empty", "bytes", AtMost(256.0)),
        row("make one", Nanoseconds, "empty", "create", AtMost(100.0)),
        row("resident after all are dropped", Megabytes, "empty", "left", AtMost(1.0)),
        row("and after `malloc_trim`", Megabytes, "empty", "trimmed", None),
        row("1000 maps × 100 strings: each", Kilobytes, "strings", "bytes", Factor(1.0)),
        row("make and fill one", Microseconds, "strings", "create", Factor(1.0)),
        row("drop one", Microseconds, "strings", "drop", None),
        row("resident after all are dropped", Megabytes, "strings", "left", AtMost(1.0)),
        row("and after `malloc_trim`", Megabytes, "strings", "trimmed", None),
        row("1000 maps × 16 live threads: each", Kilobytes, "shared", "bytes", AtMost(2.0)),
        row("one thread × 100 000 strings", Megabytes, "one thread", "bytes", None),
        row("500 threads × 200 strings", Megabytes, "threads", "bytes", None),
        row(
            "as a multiple of the bytes by one thread",
            Multiple,
            "threads",
            "multiple",
            AtMost(1.5),
        ),
        row("resident after `clear` and `shrink`", Megabytes, "threads", "left", AtMost(2.0)),
        row("and after `malloc_trim`", Megabytes, "threads", "trimmed", None),
        row("memtable, 1 thread: insert", Rate, "lives 1", "insert", Times(2.5)),
        row("memtable, 1 thread: get", Rate, "lives 1", "get", Times(2.0)),
        row("memtable, 2 threads: insert", Rate, "lives 2", "insert", Times(1.6)),
        row("memtable, 2 threads: get", Rate, "lives 2", "get", Times(1.9)),
        row("memtable: drop", Milliseconds, "lives 1", "drop", Factor(1.2)),
        row("memtable: peak memory", Megabytes, "lives 1", "peak", Factor(1.0)),
        row("memtable: memory when full", Megabytes, "lives 1", "held", None),
        row("memtable: ranges of 50", Rate, "scans arc", "short view", None),
        row("memtable: all entries", Rate, "scans arc", "whole view", None),
        row("memtable: all in reverse", Rate, "scans arc", "whole reverse view", None),
    ]
}

fn of_ord_map() -> Vec<Row> {
    use Unit::{Bytes, Kilobytes, Megabytes, Microseconds, Milliseconds, Rate};
    vec![
        ordered("10 000 maps × 10 integers: each", Kilobytes, "integers", "bytes"),
        ordered("make and fill one", Microseconds, "integers", "create"),
        ordered("10 000 empty maps: each", Bytes, "empty", "bytes"),
        ordered("1000 maps × 100 strings: each", Kilobytes, "strings", "bytes"),
        ordered("make and fill one", Microseconds, "strings", "create"),
        ordered("memtable, 1 thread: insert", Rate, "lives 1", "insert"),
        ordered("memtable, 1 thread: get", Rate, "lives 1", "get"),
        ordered("memtable, 2 threads: insert", Rate, "lives 2", "insert"),
        ordered("memtable, 2 threads: get", Rate, "lives 2", "get"),
        ordered("memtable: drop", Milliseconds, "lives 1", "drop"),
        ordered("memtable: peak memory", Megabytes, "lives 1", "peak"),
        ordered("memtable: memory when full", Megabytes, "lives 1", "held"),
    ]
}

fn scans() -> Vec<Row> {
    use Goal::Times;
    let (short, whole, reverse) = ("short view", "whole view", "whole reverse view");
    let arc = "scans arc";
    vec![
        scan("`range_owned`, 50, copies", arc, "short owned", short, Times(0.9)),
        scan("`range_owned`, 50, `next_ref`", arc, "short by ref", short, Times(0.9)),
        scan("`range_owned`, all, copies", arc, "whole owned", whole, Times(0.9)),
        scan("`range_owned`, all, `next_ref`", arc, "whole by ref", whole, Times(0.9)),
        scan("`range_owned`, reverse, copies", arc, "whole reverse owned", reverse, Times(0.9)),
        scan("`range_owned`, reverse, `_ref`", arc, "whole reverse by ref", reverse, Times(0.9)),
        scan("`Cursor`, 50, `u64`", "scans word", "short cursor", short, Times(0.85)),
        scan("`Cursor`, 50, `[u64; 4]`", "scans copy", "short cursor", short, Times(0.85)),
        scan("`Cursor`, 50, `Arc<[u8]>`", arc, "short cursor", short, Times(0.85)),
        scan("`Cursor`, 50, `Vec<u8>`", "scans other", "short cursor", short, Times(0.4)),
        scan("`Cursor`, all, `u64`", "scans word", "whole cursor", whole, Times(0.85)),
        scan("`Cursor`, all, `[u64; 4]`", "scans copy", "whole cursor", whole, Times(0.85)),
        scan("`Cursor`, all, `Arc<[u8]>`", arc, "whole cursor", whole, Times(0.85)),
        scan("`Cursor`, all, `Vec<u8>`", "scans other", "whole cursor", whole, Times(0.4)),
    ]
}

/// The tables, in Markdown.
pub(crate) fn tables(results: &Results) -> String {
    let mut text = String::new();
    table(&mut text, "| figure | `Map` | `SkipMap` | ratio | goal |", &clients(), results);
    text.push('\n');
    table(&mut text, "| figure | `OrdMap` | `SkipMap` | ratio | goal |", &of_ord_map(), results);
    text.push('\n');
    table(&mut text, "| scan | its rate | view's iterator | ratio | goal |", &scans(), results);
    text
}

fn table(text: &mut String, heading: &str, rows: &[Row], results: &Results) {
    writeln!(text, "{heading}\n|---|---|---|---|---|").expect("a string");
    for row in rows {
        let rounds = |(case, side, name): Place| -> Vec<f64> {
            let figures = &results[&(case, side, name.to_owned())];
            figures.iter().map(|&raw| row.unit.of(raw)).collect()
        };
        let (ours, beside) = (rounds(row.ours), rounds(row.beside));
        let ratio = median(ours.iter().zip(&beside).map(|(ours, beside)| ours / beside).collect());
        let (ours, beside) = (median(ours), median(beside));
        let (label, unit) = (row.label, row.unit.name());
        let (wanted, is_met) = match row.goal {
            Goal::None => (String::new(), true),
            Goal::AtMost(most) => (format!("≤ {most} {unit}"), ours <= most),
            Goal::Factor(most) => (format!("≤ {most} ×"), ratio <= most),
            Goal::Times(least) => (format!("≥ {least} ×"), ratio >= least),
        };
        let missed = if is_met { "" } else { ", missed" };
        let (ours, beside, ratio) = (digits(ours), digits(beside), digits(ratio));
        writeln!(
            text,
            "| {label} | {ours} {unit} | {beside} {unit} | {ratio} | {wanted}{missed} |"
        )
        .expect("a string");
    }
}

/// Three digits, or all before the point.
fn digits(number: f64) -> String {
    let places = if number.abs() >= 100.0 { 0 } else { 2 - (number.abs() >= 10.0) as usize };
    format!("{number:.places$}")
}
