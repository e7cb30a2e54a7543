//! The output: a live view on a terminal, else a line for each run, and a summary.

use super::plan::Plan;
use super::report::{Frame, Phase, Report};
use crate::drive::subject::Subject;
use crate::flags::args::Format;
use crate::flags::units::plural;
use crate::output;
use crate::progress::Live;
use silvics::BaseNode;
use silvics::ca::build::ETS;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};

/// The width of bars.
const WIDE: usize = 60;

/// The view of an index that is watched.
pub struct View {
    live: Live,
    /// The way in which runs are shown.
    shows: Shows,
    heading: String,
    /// The duration of a phase.
    seconds: f64,
    /// The most base nodes so far.
    most: usize,
    /// Whether there was a line.
    has_begun: bool,
}

/// The way in which runs are shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shows {
    /// They are drawn over each other.
    Live,
    /// One line for each.
    Lines,
    /// The result has them.
    Nothing,
}

impl View {
    /// A view that has shown nothing yet.
    pub fn new(plan: &Plan) -> Self {
        let live = Live::new();
        let shows = match plan.format {
            Format::Table if live.is_visible() && io::stdout().is_terminal() => Shows::Live,
            Format::Table => Shows::Lines,
            _ => Shows::Nothing,
        };
        let heading = format!("{}, {} keys", plan.chosen.name(), plan.keys);
        let seconds = plan.time.as_secs_f64();
        Self { live, shows, heading, seconds, most: 1, has_begun: false }
    }

    /// Shows the index after a run. `seconds` is the time since its phase began.
    pub fn show(&mut self, frame: &Frame, subject: &Subject<u64>, seconds: f64) {
        self.most = self.most.max(frame.shape.base_nodes);
        match self.shows {
            Shows::Live => {
                let bases = subject.adaptation().map(|shape| shape.base_nodes).unwrap_or_default();
                self.live.show(self.drawn(frame, &bases, seconds));
            }
            Shows::Lines => {
                let begin = if self.has_begun { String::new() } else { header(&self.heading) };
                self.has_begun = true;
                // A reader that has closed the pipe misses nothing else.
                let _ = output::text(&format!("{begin}{}", line(frame)));
            }
            Shows::Nothing => {}
        }
    }

    fn drawn(&self, frame: &Frame, bases: &[BaseNode], seconds: f64) -> String {
        let shape = &frame.shape;
        let bar = "█".repeat((shape.base_nodes * WIDE).div_ceil(self.most).min(WIDE));
        let (signs, each) = signs(bases);
        let mut text = format!(
            "{}: {} thread{} upsert, {seconds:.1} of {:.1} s, {:.2} M/s\n\
             base nodes  {} {bar}\n\
             route nodes {}, splits {}, joins {}, deepest {}\n\
             statistics  {signs}",
            self.heading,
            frame.threads,
            plural(frame.threads),
            self.seconds,
            frame.mops,
            shape.base_nodes,
            shape.route_nodes,
            shape.splits,
            shape.joins,
            shape.deepest,
        );
        let _ = write!(
            text,
            "\n            each sign: {each} base node{}, from {} (is joined) to {} (is split)",
            plural(each),
            ETS.join,
            ETS.split
        );
        text
    }
}

/// The statistics of base nodes, as signs of different height, and the number of base nodes for
/// each sign. A sign shows the largest number of its base nodes.
fn signs(bases: &[BaseNode]) -> (String, usize) {
    const SIGNS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let each = bases.len().div_ceil(WIDE).max(1);
    let sign = |some: &[BaseNode]| {
        let most = some.iter().map(|base| base.statistics).max().unwrap_or(ETS.join);
        let height = (most.clamp(ETS.join, ETS.split) - ETS.join) * 7 / (ETS.split - ETS.join);
        SIGNS[height as usize]
    };
    (bases.chunks(each).map(sign).collect(), each)
}

fn header(heading: &str) -> String {
    format!(
        "{heading}, upserts\n\n{:>7} {:>7} {:>8} {:>10} {:>11} {:>8} {:>8} {:>7} {:>23}\n",
        "threads",
        "seconds",
        "M/s",
        "base nodes",
        "route nodes",
        "splits",
        "joins",
        "deepest",
        "statistics min/mid/max"
    )
}

fn line(frame: &Frame) -> String {
    let shape = &frame.shape;
    let statistics =
        format!("{}/{}/{}", shape.statistics.min, shape.statistics.median, shape.statistics.max);
    format!(
        "{:>7} {:>7.2} {:>8.3} {:>10} {:>11} {:>8} {:>8} {:>7} {statistics:>23}\n",
        frame.threads,
        shape.seconds,
        frame.mops,
        shape.base_nodes,
        shape.route_nodes,
        shape.splits,
        shape.joins,
        shape.deepest,
    )
}

/// The summary of a result, in a few sentences.
pub fn summary(report: &Report) -> String {
    let mut text = format!("\n{}, {} keys\n", report.config.index, report.config.keys);
    for phase in &report.phases {
        text.push_str(&of_phase(phase));
    }
    let splits = report.phases.last().map_or(0, |phase| phase.end().shape.splits);
    if splits == 0 && report.checked {
        text.push_str(
            "No base node was split. Either this build never splits, or the threads hardly ever \
             waited for one another: more --threads make them wait. `ca-tree:restless` splits and \
             joins without contention.\n",
        );
    }
    text.push_str(if report.checked {
        "The index has all keys with their values.\n"
    } else {
        "Interrupted: the content was not checked.\n"
    });
    text
}

fn of_phase(phase: &Phase) -> String {
    let (start, end) = (&phase.start.shape, &phase.end().shape);
    let rate = |frames: &[Frame]| {
        frames.iter().map(|frame| frame.mops).sum::<f64>() / frames.len().max(1) as f64
    };
    format!(
        "{} thread{} for {:.1} s: base nodes {} → {} (at most {}), {} splits, {} joins, {:.2} M \
         upserts per second\n",
        phase.threads,
        plural(phase.threads),
        end.seconds - start.seconds,
        start.base_nodes,
        end.base_nodes,
        phase.most(),
        end.splits - start.splits,
        end.joins - start.joins,
        rate(&phase.frames),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_show_the_largest_number_of_their_base_nodes() {
        let bases = |all: &[i64]| -> Vec<BaseNode> {
            all.iter().map(|&statistics| BaseNode { statistics, depth: 1 }).collect()
        };
        assert_eq!(signs(&bases(&[-1000, 0, 1000])), ("▁▄█".into(), 1));
        assert_eq!(signs(&bases(&[-20_000, 20_000])), ("▁█".into(), 1));
        let mut many = vec![-1000; 2 * WIDE];
        many[1] = 1000;
        let (text, each) = signs(&bases(&many));
        assert_eq!((text.chars().count(), each), (WIDE, 2));
        assert!(text.starts_with("█▁"));
        assert_eq!(signs(&[]), (String::new(), 1));
    }
}
