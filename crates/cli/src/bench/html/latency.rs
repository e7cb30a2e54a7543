//! Curves of latencies: percentiles on an axis that stretches the tail.

use super::distinct;
use super::names::Names;
use crate::bench::latency::{Latency, Point as Percentile};
use crate::bench::render;
use crate::bench::report::Row;
use crate::flags::units::plural;
use crate::output;
use crate::page::chart::{Lines, Point};
use crate::page::scale::{Scale, nanoseconds};
use crate::page::{Page, capital};

/// The percentiles at the axis and in tables.
const SHOWN: [f64; 6] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99];

/// Charts and a table of the latencies of rows, if they have any.
pub(super) fn section(page: &mut Page, names: &Names, rows: &[&Row]) {
    for threads in distinct(rows.iter().map(|row| row.threads)) {
        let rows: Vec<&Row> = rows.iter().copied().filter(|row| row.threads == threads).collect();
        let verbs = distinct(rows.iter().flat_map(|row| row.latency.iter().map(|of| of.verb)));
        if verbs.is_empty() {
            continue;
        }
        let charts: Vec<String> =
            verbs.iter().map(|verb| chart(names, &rows, verb, threads)).collect();
        page.charts(&charts);
        table(page, names, &rows, threads);
    }
}

/// The place of a percentile: each further nine is as far away as the one before.
fn tail(percentile: f64) -> f64 {
    -(1.0 - percentile / 100.0).max(1e-9).log10()
}

fn of<'a>(row: &'a Row, verb: &str) -> Option<&'a Latency> {
    row.latency.iter().find(|latency| latency.verb == verb)
}

fn chart(names: &Names, rows: &[&Row], verb: &str, threads: usize) -> String {
    let all = || rows.iter().filter_map(|row| of(row, verb));
    let points = || all().flat_map(|latency| &latency.points);
    let last = points().map(|point| tail(point.percentile)).fold(tail(90.0), f64::max);
    let series = names.series(rows.iter().map(|row| &row.key), |number| {
        let row = rows.iter().find(|row| names.number(&row.key) == number);
        let latency = row.and_then(|row| of(row, verb));
        latency.map_or_else(Vec::new, |latency| curve(&latency.points, last))
    });
    let ticks = SHOWN.iter().filter(|percentile| tail(**percentile) <= last + 1e-6);
    Lines {
        title: format!("Latency of {verb}, {threads} thread{}", plural(threads)),
        unit: unit(verb, all().next()),
        across: "percentile of samples".into(),
        ticks: ticks.map(|of| (tail(*of) / last, format!("{of}"))).collect(),
        scale: Scale::log(points().map(|point| point.ns as f64)),
        write: nanoseconds,
        series,
    }
    .html()
}

/// The content of a time. All contenders have as many keys in one.
fn unit(verb: &str, latency: Option<&Latency>) -> String {
    let content = if verb == "scan" { "entries" } else { "keys" };
    match latency.and_then(|latency| latency.keys) {
        Some(keys) if keys > 1 => format!("time of {keys} {content}"),
        _ => "time of a call".into(),
    }
}

fn curve(points: &[Percentile], last: f64) -> Vec<Point> {
    let is_shown = |percentile: f64| SHOWN.iter().any(|of| (of - percentile).abs() < 1e-9);
    points
        .iter()
        .map(|point| Point {
            x: tail(point.percentile) / last,
            y: point.ns as f64,
            ends: None,
            signed: is_shown(point.percentile),
            joined: true,
        })
        .collect()
}

fn table(page: &mut Page, names: &Names, rows: &[&Row], threads: usize) {
    let shown: Vec<String> = SHOWN[1..].iter().map(|of| format!("p{of}")).collect();
    let header = ["contender", "verb", "keys", "samples", "mean"].into_iter();
    let header: Vec<&str> = header.chain(shown.iter().map(String::as_str)).chain(["max"]).collect();
    let mut table = output::table(&header);
    for row in rows {
        for latency in &row.latency {
            let mut cells = vec![
                names.name(&row.key),
                latency.verb.into(),
                render::latency::keys(latency),
                latency.samples.to_string(),
                format!("{:.0}", latency.mean_ns),
            ];
            cells.extend(SHOWN[1..].iter().map(|of| {
                let is = |point: &&Percentile| (point.percentile - of).abs() < 1e-9;
                let point = latency.points.iter().find(is);
                point.map_or(render::NOTHING.into(), |point| point.ns.to_string())
            }));
            cells.push(latency.max_ns.to_string());
            table.add_row(cells);
        }
    }
    let clock = render::latency::clock(rows);
    let title = format!("Latency in nanoseconds, {threads} thread{}{clock}", plural(threads));
    page.titled_table(&title, &table);
    if let Some(loops) = render::latency::loops(rows) {
        page.paragraph(&format!("{}.", capital(loops)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::Report;
    use crate::flags::args::{Cli, Verb};
    use clap::Parser;

    #[test]
    fn each_nine_is_as_far_away_as_the_one_before() {
        let places = [0.0, 90.0, 99.0, 99.9, 100.0].map(tail);
        for (place, expected) in places.into_iter().zip([0.0, 1.0, 2.0, 3.0, 9.0]) {
            assert!((place - expected).abs() < 1e-6, "{places:?}");
        }
        let points =
            [Percentile { percentile: 50.0, ns: 7 }, Percentile { percentile: 75.0, ns: 9 }];
        let curve = curve(&points, 2.0);
        assert!(curve[0].signed && !curve[1].signed && curve[0].x < curve[1].x);
    }

    /// The result of a small benchmark, with latencies that nobody measured.
    fn report() -> Report {
        let line = "silvics bench --index skiplist,art --keys 500 --threads 1 --mix 80/20/0 \
                    --seconds 0.01 --rounds 1";
        let Verb::Bench(args) = Cli::parse_from(line.split_whitespace()).verb else {
            panic!("the verb is bench")
        };
        let (_, mut report) = crate::bench::measure(&args).expect("a result");
        for (at, row) in report.results.iter_mut().enumerate() {
            let points = [0.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99];
            let ns = |nine: f64| (90.0 * 2.6_f64.powf(nine) * (1.0 + at as f64 / 2.0)) as u64;
            let points = points.map(|of| Percentile { percentile: of, ns: ns(tail(of)) });
            let of = |verb, more: usize, keys| Latency {
                verb,
                keys: Some(keys),
                calls: if at == 0 { 1 } else { keys },
                clock_ns: Some(20 + more as u64),
                samples: 1000,
                mean_ns: 120.0,
                points: points[..points.len() - more].to_vec(),
                max_ns: 123_456,
            };
            row.latency = vec![of("lookup", 0, 1), of("insert", 2, 64)];
        }
        report
    }

    #[test]
    fn each_verb_has_a_curve_for_each_contender() {
        let html = crate::bench::html::page(&report()).expect("a page");
        let options =
            roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
        let page = roxmltree::Document::parse_with_options(&html, options).expect("well-formed");
        let texts = |name: &str| -> Vec<&str> {
            let all = page.descendants().filter(|node| node.has_tag_name(name));
            all.filter_map(|node| node.text()).collect()
        };
        let titles = texts("figcaption");
        for verb in ["lookup", "insert"] {
            assert!(titles.contains(&&*format!("Latency of {verb}, 1 thread")), "{titles:?}");
        }
        let labels = texts("text");
        assert!(labels.contains(&"99.99") && labels.contains(&"1 µs"), "{labels:?}");
        let cells = texts("td");
        // p99.99 of lookups of both; inserts have none.
        assert!(cells.contains(&"4112") && cells.contains(&"6169"), "{cells:?}");
        let row = |name: &str, verb: &str| {
            let starts = |row: &&[&str]| row[..2] == [name, verb];
            cells.windows(10).find(starts).unwrap_or_else(|| panic!("{name} {verb}: {cells:?}"))
        };
        for name in ["skiplist", "art"] {
            assert!(!row(name, "lookup").contains(&"–") && row(name, "insert")[9] == "–");
        }
        assert!(html.contains("an index that does nothing, 20 to 22 ns by configuration and verb"));
        assert!(html.contains("A figure: that of the only round, so there is no interval."));
        let captions = texts("caption");
        let clock = "1 thread; of each time, the clock and its loop take 20 (lookup), 22 (insert)";
        assert!(captions.iter().any(|caption| caption.ends_with(clock)), "{captions:?}");
        // Batches are named by their keys, and loops over keys by their calls.
        assert!(html.contains("time of 64 keys") && html.contains("time of a call"));
        assert!(cells.contains(&"64") && cells.contains(&"64 in 64 calls"), "{cells:?}");
        assert!(html.contains("<p>A time is that of a whole batch"));
    }
}
