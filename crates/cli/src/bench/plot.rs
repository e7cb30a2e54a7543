//! The plot of a trace: route nodes, splits and joins over the time of each run.

use super::trace::TracedRun;
use crate::drive::shape::Sample;
use crate::svg::{self, Canvas, LEFT, Picture, SPAN};
use std::fmt::Write as _;

/// The most runs that are drawn.
const RUNS_MAX: usize = 60;
/// The most points of a line.
const POINTS_MAX: usize = 1000;
/// The height of a diagram.
const HEIGHT: f64 = 72.0;

/// The file with all runs, one below the other.
pub fn file(runs: &[TracedRun]) -> String {
    let drawn: Vec<Picture> = runs.iter().take(RUNS_MAX).map(draw).collect();
    let mut heading = "Route nodes, splits and joins over the time of each run. Splits and joins \
                       are counted from the start of the run on."
        .to_owned();
    match runs.len() {
        0 => heading.push_str(" No run was finished."),
        all if all > RUNS_MAX => {
            let left = all - RUNS_MAX;
            let _ = write!(heading, " The JSON file has these runs and {left} more.");
        }
        _ => {}
    }
    svg::file(&heading, &drawn.iter().collect::<Vec<_>>())
}

fn draw(run: &TracedRun) -> Picture {
    let mut canvas = Canvas::new();
    let (Some(first), Some(last)) = (run.samples.first(), run.samples.last()) else {
        return canvas.finish(title(run));
    };
    let most = run.samples.iter().map(|sample| sample.route_nodes).max().unwrap_or(0);
    let text = format!(
        "route nodes: {} at the start, {most} at most, {} at the end",
        first.route_nodes, last.route_nodes
    );
    canvas.entry(&["r0"], &text);
    diagram(&mut canvas, run, &[("plot p0", &|sample| sample.route_nodes as f64)]);
    canvas.y += 8.0;
    canvas.entry(&["r1"], &format!("splits: {}", last.splits - first.splits));
    canvas.entry(&["r2"], &format!("joins: {}", last.joins - first.joins));
    let splits = |sample: &Sample| (sample.splits - first.splits) as f64;
    let joins = |sample: &Sample| (sample.joins - first.joins) as f64;
    diagram(&mut canvas, run, &[("plot p1", &splits), ("plot p2", &joins)]);
    canvas.finish(title(run))
}

fn title(run: &TracedRun) -> String {
    let threads =
        if run.threads == 1 { "1 thread".into() } else { format!("{} threads", run.threads) };
    format!(
        "{}, {} keys {}, {}, {threads}, mix {}, round {}: {:.3} M operations per second",
        run.key.index, run.key.keys, run.key.dist, run.key.placement, run.mix, run.round, run.mops
    )
}

/// A line of a diagram: its class, and its figure.
type Line<'a> = (&'static str, &'a dyn Fn(&Sample) -> f64);

/// Draws lines over time, with the largest figure at the top.
fn diagram(canvas: &mut Canvas, run: &TracedRun, lines: &[Line<'_>]) {
    let figures =
        |figure: &dyn Fn(&Sample) -> f64| -> Vec<f64> { run.samples.iter().map(figure).collect() };
    let most = lines.iter().flat_map(|(_, figure)| figures(*figure)).fold(1.0, f64::max);
    let end = run.samples.last().map_or(0.0, |last| last.seconds).max(f64::MIN_POSITIVE);
    let (top, bottom) = (canvas.y + 6.0, canvas.y + 6.0 + HEIGHT);
    let at =
        |seconds: f64, figure: f64| [LEFT + SPAN * seconds / end, bottom - HEIGHT * figure / most];
    canvas.line("axis", [LEFT, top], [LEFT, bottom]);
    canvas.line("axis", [LEFT, bottom], [LEFT + SPAN, bottom]);
    canvas.text("a mono soft", [LEFT - 6.0, top + 8.0], &format!("{most:.0}"));
    canvas.text("a mono soft", [LEFT - 6.0, bottom], "0");
    canvas.text("t mono soft", [LEFT, bottom + 13.0], "0 s");
    canvas.text("a mono soft", [LEFT + SPAN, bottom + 13.0], &format!("{end:.2} s"));
    let step = run.samples.len().div_ceil(POINTS_MAX).max(1);
    for (class, figure) in lines {
        // The last sample is always there.
        let seen = run.samples.iter().rev().step_by(step).rev();
        canvas.lines(class, seen.map(|sample| at(sample.seconds, figure(sample))));
    }
    canvas.y = bottom + 16.0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::report::RowKey;
    use crate::drive::shape::Statistics;

    fn run(samples: &[(f64, u64, u64)]) -> TracedRun {
        let sample = |&(seconds, splits, joins): &(f64, u64, u64)| {
            let route_nodes = (splits - joins) as usize;
            let statistics = Statistics::default();
            let base_nodes = route_nodes + 1;
            Sample { seconds, route_nodes, base_nodes, deepest: 1, splits, joins, statistics }
        };
        TracedRun {
            key: RowKey {
                cell: 0,
                index: "a<b".into(),
                variant: "default",
                placement: "pooled",
                pages: "thp".into(),
                keys: 10,
                key_space: 20,
                key_type: "u64",
                keyset: None,
                value_type: "u64",
                dist: "uniform".into(),
                allocator: "system",
            },
            threads: 1,
            mix: "0/0/0/0/100".into(),
            batch: 1,
            scan_by: None,
            scan_length: None,
            round: 1,
            seconds: 2.0,
            mops: 1.0,
            sampling_share: 0.0,
            samples: samples.iter().map(sample).collect(),
        }
    }

    #[test]
    fn lines_show_the_figures_of_a_run() {
        let text = file(&[run(&[(0.0, 5, 3), (1.0, 9, 3), (2.0, 9, 7)])]);
        assert!(text.contains("route nodes: 2 at the start, 6 at most, 2 at the end"), "{text}");
        assert!(text.contains("splits: 4<") && text.contains("joins: 4<"), "{text}");
        assert!(text.contains("a&lt;b, 10 keys uniform, pooled, 1 thread, mix 0/0/0/0/100"));
        let line = |class: &str| {
            let plot = roxmltree::Document::parse(&text).expect("well-formed");
            let mut paths = plot.descendants();
            let path = paths.find(|node| node.attribute("class") == Some(class));
            path.and_then(|path| path.attribute("d")).unwrap_or_default().to_owned()
        };
        let points: Vec<String> = [line("plot p0"), line("plot p1"), line("plot p2")].to_vec();
        let middle = LEFT + SPAN / 2.0;
        for line in &points {
            assert!(line.starts_with(&format!("M{LEFT:.1} ")), "{line}");
            assert!(line.contains(&format!("L{middle:.1} ")), "{line}");
        }
        // Splits are at the top from the middle on, joins at the end alone.
        let heights = |line: &str| -> Vec<String> {
            line.split(['M', 'L']).filter_map(|at| at.split(' ').nth(1)).map(Into::into).collect()
        };
        let (splits, joins) = (heights(&points[1]), heights(&points[2]));
        assert_eq!((&splits[1], &splits[0]), (&splits[2], &joins[0]));
        assert_eq!((&joins[1], &joins[2]), (&joins[0], &splits[2]));
    }

    #[test]
    fn many_runs_and_none_are_said() {
        assert!(file(&[]).contains("No run was finished."));
        let runs: Vec<_> = (0..=RUNS_MAX).map(|_| run(&[(0.0, 0, 0)])).collect();
        let text = file(&runs);
        assert!(text.contains("these runs and 1 more."));
        assert_eq!(text.matches("plot p0\"").count(), RUNS_MAX);
        let long: Vec<_> = (0..2500).map(|n| (f64::from(n), 0, 0)).collect();
        let text = file(&[run(&long)]);
        let points = text
            .split("plot p0\"")
            .nth(1)
            .map_or(0, |rest| rest.split('>').next().unwrap_or_default().matches('L').count());
        assert!((800..=POINTS_MAX).contains(&points), "{points}");
    }
}
