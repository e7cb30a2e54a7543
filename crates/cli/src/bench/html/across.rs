//! Throughput across cells and workloads: by keys, by mix, and all medians side by side.

use super::names::Names;
use super::{distinct, lines};
use crate::bench::render::{self, workload};
use crate::bench::report::{Report, Row};
use crate::flags::units::{self, plural};
use crate::output;
use crate::page::chart::{Bar, Bars, Dots};
use crate::page::scale::Scale;
use crate::page::{Page, capital};

/// The most columns of the first table.
const COLUMNS: usize = 8;

/// The configuration of a row, apart from its contender.
type Column = (usize, String, usize);

fn column(row: &Row) -> Column {
    (row.key.cell, workload(row), row.threads)
}

/// A table of the medians of all contenders, if it is not too wide.
pub(super) fn first(page: &mut Page, report: &Report, names: &Names) {
    let columns = distinct(report.results.iter().map(column));
    if columns.len() < 2 || columns.len() > COLUMNS {
        return;
    }
    let [cells, threads] = [
        distinct(columns.iter().map(|(cell, ..)| *cell)).len() > 1,
        distinct(columns.iter().map(|(.., threads)| *threads)).len() > 1,
    ];
    let header = columns.iter().map(|column| {
        let row = report.results.iter().find(|row| super::across::column(row) == *column);
        let mut text = column.1.clone();
        if threads {
            text = format!("{text}, {} thread{}", column.2, plural(column.2));
        }
        match row {
            Some(row) if cells => format!("{}: {text}", render::keys_heading(&row.key)),
            _ => text,
        }
    });
    let header: Vec<String> = std::iter::once("contender".into()).chain(header).collect();
    let mut table = output::table(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for (number, name) in
        distinct(report.results.iter().map(|row| (names.number(&row.key), names.name(&row.key))))
    {
        let cells = columns.iter().map(|column| {
            let is = |row: &&Row| {
                super::across::column(row) == *column && names.number(&row.key) == number
            };
            let row = report.results.iter().find(is);
            row.map_or(render::NOTHING.into(), |row| render::figure(row.mops.median))
        });
        table.add_row(std::iter::once(name).chain(cells));
    }
    page.heading(2, "medians", "All medians");
    page.paragraph("Million operations per second. The sections below have the intervals.");
    page.table(&table);
}

fn by_keys(report: &Report) -> bool {
    distinct(report.results.iter().map(|row| row.key.keys)).len() > 1
}

fn by_mix(report: &Report) -> bool {
    distinct(report.results.iter().map(workload)).len() > 1
}

/// The rows with the most threads: those that charts by keys and by mix show.
fn with_most_threads(report: &Report) -> (usize, Vec<&Row>) {
    let most = report.results.iter().map(|row| row.threads).max().unwrap_or(1);
    (most, report.results.iter().filter(|row| row.threads == most).collect())
}

/// Throughput by the number of keys, for each distribution and workload.
pub(super) fn keys(page: &mut Page, report: &Report, names: &Names) {
    if !by_keys(report) {
        return;
    }
    let (threads, rows) = with_most_threads(report);
    page.heading(2, "by-keys", "By keys");
    let mut sizes = distinct(rows.iter().map(|row| row.key.keys));
    sizes.sort_unstable();
    let mut charts = Vec::new();
    for of in distinct(rows.iter().map(|row| (row.key.dist.clone(), workload(row)))) {
        let same = |row: &&&Row| (&row.key.dist, &workload(row)) == (&of.0, &of.1);
        let rows: Vec<&Row> = rows.iter().filter(same).copied().collect();
        let title = format!("{}, {}, {threads} thread{}", capital(&of.1), of.0, plural(threads));
        let ticks = sizes.iter().map(|keys| units::count(*keys)).collect();
        let place = |row: &Row| sizes.iter().position(|keys| *keys == row.key.keys);
        charts.push(lines(&title, "keys present at the start", names, &rows, ticks, place));
    }
    page.charts(&charts);
    let header: Vec<String> =
        sizes.iter().map(|keys| format!("{} keys", units::count(*keys))).collect();
    let column = |row: &Row| sizes.iter().position(|keys| *keys == row.key.keys);
    let of = |row: &Row| format!("{}, {}", workload(row), row.key.dist);
    table(page, names, &rows, &header, of, column);
}

/// Throughput by workload, for each key space.
pub(super) fn mixes(page: &mut Page, report: &Report, names: &Names) {
    if !by_mix(report) {
        return;
    }
    let (threads, rows) = with_most_threads(report);
    page.heading(2, "by-mix", "By mix");
    let workloads = distinct(rows.iter().map(|row| workload(row)));
    let place = |row: &Row| workloads.iter().position(|of| *of == workload(row));
    let mut charts = Vec::new();
    for cell in rows.chunk_by(|a, b| a.key.cell == b.key.cell) {
        let title =
            format!("{}, {threads} thread{}", render::keys_heading(&cell[0].key), plural(threads));
        charts.push(by_workload(title, names, cell, &workloads));
    }
    page.charts(&charts);
    table(page, names, &rows, &workloads, |row| render::keys_heading(&row.key), place);
}

/// The most that the fastest median of a chart is above the slowest on a linear scale.
const WIDE: f64 = 20.0;
/// The most contenders in a chart of dots, so that each has a colour of its own.
const DOTS: usize = 8;

/// A chart of the throughput of rows by workload. Workloads are categories, so no lines join them.
fn by_workload(title: String, names: &Names, rows: &[&Row], workloads: &[String]) -> String {
    let contenders =
        distinct(rows.iter().map(|row| (names.name(&row.key), names.number(&row.key))));
    let unit = super::unit(rows.iter().map(|row| row.mops));
    // The word `mix` is in the heading.
    let named = |of: &str| of.trim_start_matches("mix ").to_owned();
    if contenders.len() > DOTS {
        let bars = workloads.iter().flat_map(|of| {
            let rows = rows.iter().filter(|row| workload(row) == *of);
            let bar =
                |row: &&Row| super::bar(names, &row.key, named(of), super::scaled(row.mops, unit));
            let mut bars: Vec<Bar> = rows.map(bar).collect();
            bars.sort_by(|a, b| f64::total_cmp(&b.figure.median, &a.figure.median));
            bars
        });
        let unit = unit.name("operations");
        return Bars { title, unit, ratios: false, rows: bars.collect() }.html();
    }
    let figure = |of: &String, number: usize| {
        let is = |row: &&&Row| workload(row) == *of && names.number(&row.key) == number;
        rows.iter().find(is).map(|row| super::scaled(row.mops, unit))
    };
    let row = |of: &String| {
        let figures = contenders.iter().map(|(_, number)| figure(of, *number)).collect();
        (named(of), figures)
    };
    let shown = || rows.iter().map(|row| super::scaled(row.mops, unit));
    let medians = || shown().map(|of| of.median);
    let (least, most) = (medians().fold(f64::INFINITY, f64::min), medians().fold(0.0, f64::max));
    let ends = shown().flat_map(|of| [of.low, of.high]);
    let (scale, note) = if least > 0.0 && most / least > WIDE {
        (Scale::log(ends), " (logarithmic)")
    } else {
        (Scale::linear(ends), "")
    };
    let unit = format!("{}{note}", unit.name("operations"));
    let rows = workloads.iter().map(row).collect();
    Dots { title, unit, scale, contenders, rows }.html()
}

/// The most columns of intervals in one table, which has to fit a sheet of paper.
const INTERVALS: usize = 6;

/// Tables of medians with their intervals: a row for each contender and other part, and a column
/// for each place.
fn table(
    page: &mut Page,
    names: &Names,
    rows: &[&Row],
    columns: &[String],
    other: impl Fn(&Row) -> String,
    place: impl Fn(&Row) -> Option<usize>,
) {
    let of = |row: &Row| (other(row), names.number(&row.key), names.name(&row.key));
    let keys = distinct(rows.iter().map(|row| of(row)));
    let all: Vec<usize> = (0..columns.len()).collect();
    for part in all.chunks(INTERVALS) {
        let header = part.iter().map(|at| columns[*at].as_str());
        let header: Vec<&str> = ["contender", "of"].into_iter().chain(header).collect();
        let mut table = output::table(&header);
        for key in &keys {
            let cells = part.iter().map(|at| {
                let row = rows.iter().find(|row| of(row) == *key && place(row) == Some(*at));
                row.map_or(render::NOTHING.into(), |row| {
                    format!("{} ({})", render::figure(row.mops.median), render::ends(row.mops))
                })
            });
            let (other, _, name) = key;
            table.add_row([name.clone(), other.clone()].into_iter().chain(cells));
        }
        page.titled_table("Million operations per second, with intervals", &table);
    }
}
