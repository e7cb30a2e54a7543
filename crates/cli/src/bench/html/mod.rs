//! The page of a benchmark: charts, a table below each with the same figures, and all samples.
//!
//! | module | holds |
//! |---|---|
//! | `names` | the contenders of a report, with their names |
//! | `across` | throughput by keys and by mix, and the first table |
//! | `compared` | the comparison with a kept run |
//! | `latency` | curves of latencies |

mod across;
mod compared;
mod latency;
mod names;

use super::render;
use super::report::{LoadRow, Report, Row, RowKey};
use crate::drive::stats::Interval;
use crate::flags::error::Error;
use crate::flags::units::plural;
use crate::page::chart::{Bar, Bars, Lines, Point};
use crate::page::scale::{Scale, Unit, plain, three_digits};
use crate::page::{self, Page, origin};
use names::Names;
use std::fmt::Write;

/// The unit of ratios.
const RATIO: &str = "ratio to the first contender, by round";

/// The page of a report.
pub fn page(report: &Report) -> Result<String, Error> {
    let names = Names::of(report);
    let mut page = Page::new(&title(report, &names));
    page.facts(&facts(report, &names));
    page.contents();
    for remark in render::remarks(report) {
        page.labelled("Note", &remark);
    }
    compared::section(&mut page, report);
    across::first(&mut page, report, &names);
    let keys = report.loads.iter().map(|load| &load.key);
    let keys = keys.chain(report.results.iter().map(|row| &row.key));
    let mut cells: Vec<&RowKey> = keys.collect();
    cells.sort_by_key(|key| key.cell);
    cells.dedup_by_key(|key| key.cell);
    for key in cells {
        cell(&mut page, report, &names, key);
    }
    across::keys(&mut page, report, &names);
    across::mixes(&mut page, report, &names);
    builds(&mut page, report);
    page.heading(2, "save", "Data");
    let samples = |count: usize| format!("{count} sample{}", plural(count));
    let runs = report.results.iter().map(|row| row.samples.len()).sum();
    page.paragraph(&format!(
        "This page contains its whole report, with the {} of runs behind its figures. It has the \
         fields of `silvics bench --format json`.",
        samples(runs)
    ));
    page.data("silvics-bench", report)?;
    Ok(page.finish())
}

fn title(report: &Report, names: &Names) -> String {
    let count = names.count();
    if count == 0 {
        return "A benchmark that finished nothing".into();
    }
    let cells: Vec<String> =
        distinct(report.results.iter().map(|row| render::keys_heading(&row.key)));
    let keys = match &cells[..] {
        [] => "keys that were only loaded".into(),
        [one] => one.clone(),
        several => format!("{} key spaces", several.len()),
    };
    format!("{count} contender{} on {keys}", plural(count))
}

fn facts(report: &Report, names: &Names) -> Vec<(&'static str, String)> {
    let config = &report.config;
    let mut facts = origin::facts(&report.machine, &report.runs);
    facts.push(("Method", method(report, names)));
    if config.loads < config.rounds {
        let text = format!(
            "in {} of the rounds; {}",
            config.loads,
            report.meaning(config.load_interval_coverage)
        );
        facts.push(("Loads", text));
    }
    if let Some(set) = config.keyset {
        facts.push(("Keys", format!("the key set {set} of this seed, half of them loaded")));
    }
    if let Some(file) = &config.key_file {
        facts.push(("Keys", format!("{} of {}, half of them loaded", file.keys, file.path)));
    }
    let times = || report.results.iter().flat_map(|row| &row.latency);
    let clocks = || times().filter_map(|latency| latency.clock_ns);
    if let (Some(least), Some(most)) = (clocks().min(), clocks().max()) {
        let ns = if least == most { least.to_string() } else { format!("{least} to {most}") };
        let text = format!(
            "each contains what the clock and its loop take around an index that does nothing, {ns} \
             ns by configuration and verb; the tables of latencies have it"
        );
        facts.push(("Latencies", text));
    }
    facts
}

/// The way in which the figures were measured.
fn method(report: &Report, names: &Names) -> String {
    let config = &report.config;
    let turns = if names.count() > 1 { ", contenders in turns A B … B A" } else { "" };
    let mut text = format!(
        "{} round{} of {} s after a load{turns}, threads pinned, seed {}.",
        config.rounds,
        plural(config.rounds),
        config.seconds,
        config.seed,
    );
    let _ = write!(text, " A figure: {}.", report.meaning(config.interval_coverage));
    if names.count() > 1 {
        text.push_str(" A ratio is the median of the rounds' ratios to the first contender.");
    }
    text
}

fn cell_id(key: &RowKey) -> String {
    format!("cell-{}", key.cell)
}

/// The items, each once, in the order of their first occurrence.
fn distinct<T: PartialEq>(items: impl Iterator<Item = T>) -> Vec<T> {
    items.fold(Vec::new(), |mut seen, item| {
        if !seen.contains(&item) {
            seen.push(item);
        }
        seen
    })
}

/// The section of the key space of `key`.
fn cell(page: &mut Page, report: &Report, names: &Names, key: &RowKey) {
    page.heading(2, &cell_id(key), &render::keys_heading(key));
    let rows: Vec<&Row> = report.results.iter().filter(|row| row.key.cell == key.cell).collect();
    for workload in distinct(rows.iter().map(|row| render::workload(row))) {
        let of = |row: &&Row| render::workload(row) == workload;
        let rows: Vec<&Row> = rows.iter().copied().filter(of).collect();
        let id = page::id(format!("{} {workload}", cell_id(key)));
        page.heading(3, &id, &page::capital(&workload));
        page.charts(&[throughput(names, &rows), ratios(names, &rows)]);
        for threads in distinct(rows.iter().map(|row| row.threads)) {
            let rows: Vec<&Row> =
                rows.iter().copied().filter(|row| row.threads == threads).collect();
            page.titled_table(&caption(rows[0]), &render::table(&rows, report.is_busy()));
        }
        latency::section(page, names, &rows);
    }
    let loads: Vec<&LoadRow> =
        report.loads.iter().filter(|load| load.key.cell == key.cell).collect();
    if !loads.is_empty() {
        load(page, names, &loads);
    }
}

/// The title of a table of runs.
fn caption(row: &Row) -> String {
    let threads = format!("{} thread{}", row.threads, plural(row.threads));
    match row.own_ns {
        Some(own) => format!("{threads}; of each operation, {own:.1} ns are the loop's own"),
        None => threads,
    }
}

/// Throughput by threads: lines if there are several numbers of threads, else bars.
fn throughput(names: &Names, rows: &[&Row]) -> String {
    let mut threads = distinct(rows.iter().map(|row| row.threads));
    threads.sort_unstable();
    if let [only] = threads[..] {
        let unit = unit(rows.iter().map(|row| row.mops));
        let bar = |row: &&Row| bar(names, &row.key, String::new(), scaled(row.mops, unit));
        let mut bars: Vec<Bar> = rows.iter().map(bar).collect();
        bars.sort_by(|a, b| f64::total_cmp(&b.figure.median, &a.figure.median));
        let title = format!("Throughput with {only} thread{}", plural(only));
        return Bars { title, unit: unit.name("operations"), ratios: false, rows: bars }.html();
    }
    let place = |row: &Row| threads.iter().position(|&of| of == row.threads);
    let ticks = threads.iter().map(ToString::to_string).collect();
    lines("Throughput by threads", "threads", names, rows, ticks, place)
}

/// A chart with the throughput of rows, each of which has one of the places across.
fn lines(
    title: &str,
    across: &str,
    names: &Names,
    rows: &[&Row],
    ticks: Vec<String>,
    place: impl Fn(&Row) -> Option<usize>,
) -> String {
    let last = ticks.len().saturating_sub(1).max(1) as f64;
    let unit = unit(rows.iter().map(|row| row.mops));
    let series = names.series(rows.iter().map(|row| &row.key), |number| {
        let of = rows.iter().filter(|row| names.number(&row.key) == number);
        let mut placed: Vec<(usize, Interval)> =
            of.filter_map(|row| Some((place(row)?, scaled(row.mops, unit)))).collect();
        placed.sort_by_key(|(at, _)| *at);
        let is_placed = |at| placed.iter().any(|(of, _)| *of == at);
        let point = |(at, mops): &(usize, Interval)| Point {
            x: *at as f64 / last,
            y: mops.median,
            ends: Some([mops.low, mops.high]),
            signed: true,
            joined: *at > 0 && is_placed(at - 1),
        };
        placed.iter().map(point).collect()
    });
    Lines {
        title: title.into(),
        unit: unit.name("operations"),
        across: across.into(),
        ticks: ticks.into_iter().enumerate().map(|(at, text)| (at as f64 / last, text)).collect(),
        scale: Scale::linear(rows.iter().map(|row| scaled(row.mops, unit).high)),
        write: plain,
        series,
    }
    .html()
}

/// The unit of a chart of rates, which are millions per second.
fn unit(mops: impl Iterator<Item = Interval>) -> Unit {
    Unit::of(mops.map(|mops| mops.high))
}

fn scaled(Interval { median, low, high }: Interval, unit: Unit) -> Interval {
    let [median, low, high] = [median, low, high].map(|end| end * unit.in_million);
    Interval { median, low, high }
}

fn bar(names: &Names, key: &RowKey, group: String, figure: Interval) -> Bar {
    Bar {
        group,
        name: names.name(key),
        number: names.number(key),
        figure,
        text: three_digits(figure.median),
    }
}

/// Ratios to the first contender, by number of threads. Empty if there is no other.
fn ratios(names: &Names, rows: &[&Row]) -> String {
    if distinct(rows.iter().map(|row| names.number(&row.key))).len() < 2 {
        return String::new();
    }
    let several = distinct(rows.iter().map(|row| row.threads)).len() > 1;
    let group = |row: &Row| {
        let text = format!("{} thread{}", row.threads, plural(row.threads));
        if several { text } else { String::new() }
    };
    let bars = rows.iter().filter_map(|row| {
        let ratio = row.ratio?;
        let text = format!("{:.2}", ratio.median);
        Some(Bar { text, ..bar(names, &row.key, group(row), ratio) })
    });
    // A contender that was wrong with some number of threads has no rows there.
    let firsts = rows.chunk_by(|a, b| a.threads == b.threads).map(|rows| names.name(&rows[0].key));
    let title = match &distinct(firsts)[..] {
        [first] => format!("Ratio to {first}"),
        _ => "Ratio to the first contender".into(),
    };
    let mut bars: Vec<Bar> = bars.collect();
    // Groups keep the order of the threads.
    bars.sort_by(|a, b| {
        let order = (a.group.len(), &a.group).cmp(&(b.group.len(), &b.group));
        order.then_with(|| f64::total_cmp(&b.figure.median, &a.figure.median))
    });
    Bars { title, unit: RATIO.into(), ratios: true, rows: bars }.html()
}

/// The section of loads and bytes.
fn load(page: &mut Page, names: &Names, loads: &[&LoadRow]) {
    let threads = loads[0].threads;
    let id = format!("load-{}", loads[0].key.cell);
    page.heading(3, &id, &format!("Load by {threads} thread{}", plural(threads)));
    let unit = unit(loads.iter().map(|load| load.mops));
    let bar = |load: &LoadRow, figure| bar(names, &load.key, String::new(), figure);
    let mut speeds: Vec<Bar> =
        loads.iter().map(|load| bar(load, scaled(load.mops, unit))).collect();
    speeds.sort_by(|a, b| f64::total_cmp(&b.figure.median, &a.figure.median));
    let mut bytes: Vec<Bar> = loads
        .iter()
        .filter_map(|load| {
            let bytes = load.footprint.bytes_per_key?;
            let figure = Interval { median: bytes, low: bytes, high: bytes };
            Some(Bar { text: format!("{bytes:.1}"), ..bar(load, figure) })
        })
        .collect();
    bytes.sort_by(|a, b| f64::total_cmp(&a.figure.median, &b.figure.median));
    let title = "Speed of the load".into();
    let speeds = Bars { title, unit: unit.name("inserts"), ratios: false, rows: speeds };
    let title = "Memory after the load, the least first".into();
    let bytes = Bars { title, unit: "bytes per key".into(), ratios: false, rows: bytes };
    page.charts(&[speeds.html(), bytes.html()]);
    page.table(&render::load_table(loads));
}

/// The gain of the fixed builds.
fn builds(page: &mut Page, report: &Report) {
    if report.builds.is_empty() {
        return;
    }
    page.heading(2, "builds", "Fixed over baseline builds");
    let mut table = crate::output::table(&[
        "tree",
        "placement",
        "pages",
        "threads",
        "mix",
        "batch",
        "scans",
        "ratio",
        "interval",
    ]);
    for build in &report.builds {
        let [ratio, ends] = render::median_and_ends(Some(build.ratio));
        let mean = || format!("geometric mean of {} trees", build.trees);
        table.add_row([
            build.index.clone().unwrap_or_else(mean),
            build.placement.into(),
            build.pages.clone(),
            build.threads.to_string(),
            build.mix.clone(),
            build.batch.to_string(),
            render::scans(build.scan_by, build.scan_length)
                .unwrap_or_else(|| render::NOTHING.into()),
            ratio,
            ends,
        ]);
    }
    page.table(&table);
}
