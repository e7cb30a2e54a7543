//! Lines of evidence, and the verdict that follows from them.

use crate::drive::stats::Interval;
use serde::{Serialize, Serializer};

/// What a line of evidence is: the lower, the less can disturb it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Counted exactly.
    Fact,
    /// Recorded operations, replayed through a model of the source's machine.
    Model,
    /// Two builds in turns on this machine.
    Clock,
}

impl Level {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Model => "model",
            Self::Clock => "clock",
        }
    }
}

/// What a line says of the claim, and all of them together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As the source saw it.
    Confirmed,
    /// No effect, or less of it than the claim needs.
    NotSeen,
    /// The opposite.
    Contradicted,
    /// What would show it is missing.
    CannotBeShown,
}

impl Verdict {
    /// As it is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::NotSeen => "not seen",
            Self::Contradicted => "contradicted",
            Self::CannotBeShown => "cannot be shown here",
        }
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Serialize for Verdict {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// What a figure is to be.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// Between these; anything else contradicts the claim.
    Within(f64, f64),
    /// At least the first; below the second the opposite is so.
    AtLeast(f64, f64),
    /// At most the first; above the second the opposite is so.
    AtMost(f64, f64),
}

/// How figures are written.
#[derive(Clone, Copy, Debug)]
pub enum Unit {
    /// A share, as a percentage.
    Share,
    /// A number with so many decimals.
    Number(usize),
}

impl Unit {
    /// A figure in this unit.
    pub fn text(self, figure: f64) -> String {
        match self {
            Self::Share => format!("{:.1} %", 100.0 * figure),
            Self::Number(decimals) => format!("{figure:.decimals$}"),
        }
    }
}

impl Expected {
    /// Exactly this.
    pub fn exactly(figure: f64) -> Self {
        Self::Within(figure, figure)
    }

    /// This, give or take.
    pub fn about(figure: f64, tolerance: f64) -> Self {
        Self::Within(figure - tolerance, figure + tolerance)
    }

    /// At least so much, or the claim is contradicted.
    pub fn least(figure: f64) -> Self {
        Self::AtLeast(figure, figure)
    }

    /// At most so much, or the claim is contradicted.
    pub fn most(figure: f64) -> Self {
        Self::AtMost(figure, figure)
    }

    fn verdict(self, found: f64) -> Verdict {
        let (there, opposite) = match self {
            Self::Within(low, high) => ((low..=high).contains(&found), true),
            Self::AtLeast(least, none) => (found >= least, found < none),
            Self::AtMost(most, none) => (found <= most, found > none),
        };
        match (there, opposite) {
            (true, _) => Verdict::Confirmed,
            (false, true) => Verdict::Contradicted,
            (false, false) => Verdict::NotSeen,
        }
    }

    fn text(self, unit: Unit) -> String {
        match self {
            Self::Within(low, high) if unit.text(low) == unit.text(high) => unit.text(low),
            Self::Within(low, high) => format!("{} to {}", unit.text(low), unit.text(high)),
            Self::AtLeast(least, _) => format!("at least {}", unit.text(least)),
            Self::AtMost(most, _) => format!("at most {}", unit.text(most)),
        }
    }
}

/// A line of evidence.
#[derive(Clone, Debug, Serialize)]
pub struct Evidence {
    pub level: Level,
    /// What was looked at.
    pub what: String,
    /// What there would be if the claim holds.
    pub expected: String,
    /// What there is.
    pub found: String,
    /// The same as a number, if it is one.
    pub value: Option<f64>,
    pub verdict: Verdict,
    /// Whether the experiment's verdict rests on it.
    pub decides: bool,
}

/// Less than this per lookup is none.
const COUNTED: f64 = 0.01;

impl Evidence {
    /// A figure, judged.
    fn figure(level: Level, what: String, unit: Unit, expected: Expected, found: f64) -> Self {
        Self {
            level,
            what,
            expected: expected.text(unit),
            found: unit.text(found),
            value: Some(found),
            verdict: expected.verdict(found),
            decides: true,
        }
    }

    /// A figure that was counted.
    pub fn fact(what: impl Into<String>, unit: Unit, expected: Expected, found: f64) -> Self {
        Self::figure(Level::Fact, what.into(), unit, expected, found)
    }

    /// A figure of the model.
    pub fn model(what: impl Into<String>, unit: Unit, expected: Expected, found: f64) -> Self {
        Self::figure(Level::Model, what.into(), unit, expected, found)
    }

    /// By which share the second is less than the first, in what the model counts per lookup; missing if there
    /// is `none` of it in the first.
    pub fn falls(what: &str, (before, after): (f64, f64), expected: Expected, none: &str) -> Self {
        if before < COUNTED {
            return Self::missing(Level::Model, what.into(), none.into());
        }
        let figures = format!("({before:.2} → {after:.2})");
        Self::model(what, Unit::Share, expected, 1.0 - after / before).with(&figures)
    }

    /// A fact that is no figure, and whether it is as expected.
    pub fn plain(what: impl Into<String>, expected: String, found: String, holds: bool) -> Self {
        let verdict = if holds { Verdict::Confirmed } else { Verdict::Contradicted };
        let (level, what, value) = (Level::Fact, what.into(), None);
        Self { level, what, expected, found, value, verdict, decides: true }
    }

    /// How many times as fast something is as something else, which the source saw to be faster. Reported
    /// only: a clock on a shared machine decides nothing that a fact or a model can carry.
    pub fn faster(what: String, claimed: &str, ratio: Interval) -> Self {
        let verdict = match ratio {
            Interval { low, .. } if low > 1.0 => Verdict::Confirmed,
            Interval { high, .. } if high < 1.0 => Verdict::Contradicted,
            _ => Verdict::NotSeen,
        };
        Self {
            level: Level::Clock,
            what,
            expected: format!("above 1 (the source: {claimed})"),
            found: format!("{:.2} ({:.2} – {:.2})", ratio.median, ratio.low, ratio.high),
            value: Some(ratio.median),
            verdict,
            decides: false,
        }
    }

    /// The same where the source saw that it is not: as fast, or slower.
    pub fn no_faster(what: String, ratio: Interval) -> Self {
        let there = ratio.low <= 1.0;
        Self {
            expected: "not above 1 (the source: no gain)".into(),
            verdict: if there { Verdict::Confirmed } else { Verdict::Contradicted },
            ..Self::faster(what, "", ratio)
        }
    }

    /// The same where the source says nothing, but that it is not worse.
    pub fn no_slower(what: String, ratio: Interval) -> Self {
        let there = ratio.high >= 1.0;
        Self {
            expected: "not below 1 (the source says nothing)".into(),
            verdict: if there { Verdict::Confirmed } else { Verdict::Contradicted },
            ..Self::faster(what, "", ratio)
        }
    }

    /// Something that this machine, or this set-up, has not. The verdict rests on it as it would on the
    /// figure that is missing.
    pub fn missing(level: Level, what: String, why: String) -> Self {
        let (expected, verdict) = (String::new(), Verdict::CannotBeShown);
        Self { level, what, expected, found: why, value: None, verdict, decides: true }
    }

    /// The same, but the verdict does not rest on it.
    #[must_use]
    pub fn aside(self) -> Self {
        Self { decides: false, ..self }
    }

    /// The same, and the verdict rests on it.
    #[must_use]
    pub fn deciding(self) -> Self {
        Self { decides: true, ..self }
    }

    /// The same, or that it is missing, if there is a reason why what was found says nothing.
    #[must_use]
    pub fn unless(self, why: Option<String>) -> Self {
        let Some(why) = why else { return self };
        Self { decides: self.decides, ..Self::missing(self.level, self.what, why) }
    }

    /// The same, with something more to say about what was found.
    #[must_use]
    pub fn with(mut self, more: &str) -> Self {
        self.found = format!("{} {more}", self.found);
        self
    }
}

/// The verdict on a claim: the worst of the lines that it rests on. What speaks against the claim does so
/// whatever else is missing; what speaks for it does not confirm it while something that the verdict rests
/// on cannot be shown. Levels that were not asked for have no lines.
pub fn verdict(evidence: &[Evidence]) -> Verdict {
    let decide = evidence.iter().filter(|line| line.decides);
    let verdicts: Vec<Verdict> = decide.map(|line| line.verdict).collect();
    let order =
        [Verdict::Contradicted, Verdict::NotSeen, Verdict::CannotBeShown, Verdict::Confirmed];
    let worst = order.into_iter().find(|verdict| verdicts.contains(verdict));
    worst.unwrap_or(Verdict::CannotBeShown)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fact(expected: Expected, found: f64) -> Evidence {
        Evidence::figure(Level::Fact, "share".into(), Unit::Share, expected, found)
    }

    #[test]
    fn a_figure_is_there_or_too_small_or_the_opposite() {
        let judged = |expected, found| fact(expected, found).verdict;
        let quarter = Expected::about(0.25, 0.005);
        assert_eq!(judged(quarter, 0.2451), Verdict::Confirmed);
        assert_eq!(judged(quarter, 0.2449), Verdict::Contradicted);
        assert_eq!(judged(quarter, f64::NAN), Verdict::Contradicted);
        let falls = Expected::AtLeast(0.25, 0.0);
        assert_eq!(judged(falls, 0.25), Verdict::Confirmed);
        assert_eq!(judged(falls, 0.1), Verdict::NotSeen);
        assert_eq!(judged(falls, -0.1), Verdict::Contradicted);
        let few = Expected::AtMost(0.1, 0.5);
        assert_eq!(judged(few, 0.1), Verdict::Confirmed);
        assert_eq!(judged(few, 0.3), Verdict::NotSeen);
        assert_eq!(judged(few, 0.6), Verdict::Contradicted);
        assert_eq!(judged(Expected::exactly(0.5), 0.5), Verdict::Confirmed);
        assert_eq!(judged(Expected::most(0.5), 0.51), Verdict::Contradicted);
    }

    #[test]
    fn a_ratio_is_seen_if_its_interval_is_beyond_one() {
        let judged = |low, median, high| {
            let line = Evidence::faster("a".into(), "+17 %", Interval { median, low, high });
            assert!(!line.decides);
            line.verdict
        };
        assert_eq!(judged(1.01, 1.2, 1.3), Verdict::Confirmed);
        assert_eq!(judged(0.99, 1.2, 1.3), Verdict::NotSeen);
        assert_eq!(judged(0.7, 0.8, 0.99), Verdict::Contradicted);
        let level = |low, median, high| {
            Evidence::no_faster("a".into(), Interval { median, low, high }).verdict
        };
        assert_eq!(level(0.99, 1.0, 1.01), Verdict::Confirmed);
        assert_eq!(level(0.9, 0.95, 0.99), Verdict::Confirmed);
        assert_eq!(level(1.01, 1.1, 1.2), Verdict::Contradicted);
        let open = |low, median, high| {
            Evidence::no_slower("a".into(), Interval { median, low, high }).verdict
        };
        assert_eq!(open(1.01, 1.1, 1.2), Verdict::Confirmed);
        assert_eq!(open(0.9, 0.95, 0.99), Verdict::Contradicted);
    }

    #[test]
    fn the_verdict_is_the_worst_of_the_lines_it_rests_on() {
        let good = fact(Expected::least(0.5), 0.6);
        let small = fact(Expected::AtLeast(0.5, 0.0), 0.1);
        let bad = fact(Expected::least(0.5), 0.1);
        let of = |lines: &[&Evidence]| verdict(&lines.iter().copied().cloned().collect::<Vec<_>>());
        assert_eq!(of(&[&good, &small]), Verdict::NotSeen);
        assert_eq!(of(&[&bad, &small, &good]), Verdict::Contradicted);
        assert_eq!(of(&[&bad.clone().aside(), &good]), Verdict::Confirmed);
        assert_eq!(of(&[]), Verdict::CannotBeShown);
        assert_eq!(of(&[&good, &bad.aside().deciding()]), Verdict::Contradicted);
    }

    #[test]
    fn a_line_that_cannot_be_shown_leaves_the_claim_open() {
        let good = fact(Expected::least(0.5), 0.6);
        let small = fact(Expected::AtLeast(0.5, 0.0), 0.1);
        let bad = fact(Expected::least(0.5), 0.1);
        let missing = Evidence::missing(Level::Model, "misses".into(), "too few keys".into());
        let of = |lines: &[&Evidence]| verdict(&lines.iter().copied().cloned().collect::<Vec<_>>());
        assert_eq!(of(&[&missing]), Verdict::CannotBeShown);
        assert_eq!(of(&[&good, &missing, &good]), Verdict::CannotBeShown);
        assert_eq!(of(&[&good, &missing.clone().aside()]), Verdict::Confirmed);
        // What is there to speak against the claim does.
        assert_eq!(of(&[&small, &missing]), Verdict::NotSeen);
        assert_eq!(of(&[&missing, &bad]), Verdict::Contradicted);
        assert_eq!(of(&[&missing, &bad.clone().aside()]), Verdict::CannotBeShown);
        let few = || Some("too few".to_owned());
        assert_eq!(of(&[&bad.clone().unless(few()), &good]), Verdict::CannotBeShown);
        assert_eq!(of(&[&bad.clone().aside().unless(few()), &good]), Verdict::Confirmed);
        assert_eq!(of(&[&bad.unless(None), &good]), Verdict::Contradicted);
    }

    #[test]
    fn lines_say_what_was_expected() {
        let line = fact(Expected::about(0.25, 0.005), 0.2501).with("of 1000 nodes");
        assert_eq!((&*line.expected, &*line.found), ("24.5 % to 25.5 %", "25.0 % of 1000 nodes"));
        assert_eq!(fact(Expected::exactly(0.0), 0.0).expected, "0.0 %");
        assert_eq!(fact(Expected::AtLeast(0.99, 0.5), 1.0).expected, "at least 99.0 %");
    }
}
