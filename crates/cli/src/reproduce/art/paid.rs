//! art/4.3 by the clock: the time of a reorganization, and the number of lookups after which it has
//! paid.

use super::on::{CHANGE, On};
use super::sampled::{NAME, Sampled};
use super::zipf;
use crate::contender::ours::{ByRange, Ours};
use crate::drive::stats::Interval;
use crate::drive::subject::{Crew, Subject, Traffic};
use crate::flags::error::Error;
use crate::inspect::fix::{Compared, in_turns};
use crate::reproduce::evidence::{Evidence, Level, Verdict};
use crate::reproduce::lab::Lab;
use silvics::Pooled;
use silvics::art::hot::Report;

/// Measures lookups in a tree that was reorganized and in one that was not, in turns.
pub fn clock(lab: &Lab, on: On, count: usize, exponent: f64) -> Result<Vec<Evidence>, Error> {
    let seed = lab.plan.seed;
    let make = || Sampled::<Pooled>::new(on.keys, count, exponent, on.pages, seed);
    let (before, after) = (make()?, make()?);
    let report = after.reorganize(on.policy())?;
    let subject = |of: Sampled<Pooled>| Subject::of(Ours::<_, ByRange>::new(of.tree));
    let (before, after) = (subject(before), subject(after));
    let traffic =
        Traffic { space: on.keys.space(count, seed), choice: zipf(exponent, count, seed) };
    let crew = Crew::new();
    let seen = in_turns([&before, &after], &traffic, (&crew, lab.turns()))
        .map_err(|failure| failure.of(NAME))?;
    let what = |figure: &str| format!("{}: {figure}", on.name(exponent));
    let ratio = seen.time.inverse();
    let faster = what("lookups afterwards / before");
    let faster = if on.helps() {
        Evidence::faster(faster, "it helps", ratio)
    } else {
        immaterial(Evidence::faster(faster, "", ratio), ratio)
    };
    Ok(vec![
        faster,
        cost(what("the reorganization, and the lookups that it takes to pay"), &report, &seen),
    ])
}

/// The line for a claim that nothing changes.
fn immaterial(line: Evidence, ratio: Interval) -> Evidence {
    let (least, most) = (1.0 - CHANGE, 1.0 + CHANGE);
    let verdict = if ratio.low >= least && ratio.high <= most {
        Verdict::Confirmed
    } else if ratio.low > most || ratio.high < least {
        Verdict::Contradicted
    } else {
        Verdict::CannotBeShown
    };
    Evidence { expected: format!("{least} to {most} (the source: immaterial)"), verdict, ..line }
}

/// The cost of a reorganization. The source claims nothing about it.
fn cost(what: String, report: &Report, seen: &Compared) -> Evidence {
    let lookups = |count: Option<f64>| count.map_or("never".into(), |count| format!("{count:.2e}"));
    let estimate = report.break_even.map(|lookups| lookups as f64);
    let found = format!(
        "{:.0} ms for {} objects of {} samples; by the clock {}, as it estimates {}",
        1e3 * report.took.as_secs_f64(),
        report.nodes + report.leaves,
        report.samples,
        lookups(break_even(report, seen)),
        lookups(estimate)
    );
    let line = Evidence::plain(what, "(nothing is claimed)".into(), found, true);
    Evidence { level: Level::Clock, ..line.aside() }
}

/// The number of lookups of all threads after which the time is saved. `None` if lookups may be as
/// slow as before.
fn break_even(report: &Report, seen: &Compared) -> Option<f64> {
    let saved = 1.0 - seen.time.median;
    (seen.time.high < 1.0).then(|| report.took.as_secs_f64() * seen.rate_before / saved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_immaterial_is_within_five_percent_as_far_as_the_clock_tells() {
        let judged = |low, median, high| {
            let ratio = Interval { median, low, high };
            immaterial(Evidence::faster("a".into(), "", ratio), ratio).verdict
        };
        assert_eq!(judged(0.99, 1.0, 1.01), Verdict::Confirmed);
        assert_eq!(judged(1.04, 1.1, 1.2), Verdict::CannotBeShown);
        assert_eq!(judged(0.9, 1.0, 1.1), Verdict::CannotBeShown);
        assert_eq!(judged(1.06, 1.1, 1.2), Verdict::Contradicted);
        assert_eq!(judged(0.8, 0.9, 0.94), Verdict::Contradicted);
    }
}
