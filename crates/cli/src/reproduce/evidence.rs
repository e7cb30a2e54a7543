//! Lines of evidence, and the verdict that follows from them.

use crate::drive::stats::Interval;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The level of a line of evidence. The lower the level, the less can disturb it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A fact, which is counted exactly.
    Fact,
    /// A prediction: recorded operations, replayed through a model of the source's machine.
    Model,
    /// A measurement: two builds in turns on this machine.
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

/// The verdict of a line on the claim, and of all lines together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The evidence agrees with the source.
    Confirmed,
    /// There is no effect, or a smaller one than the claim needs.
    NotSeen,
    /// The evidence shows the opposite.
    Contradicted,
    /// Something that is needed to show the effect is missing.
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

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let (name, all) = (String::deserialize(from)?, [Self::Fact, Self::Model, Self::Clock]);
        all.into_iter().find(|of| of.name() == name).ok_or_else(|| unknown(&name))
    }
}

impl<'de> Deserialize<'de> for Verdict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let all = [Self::Confirmed, Self::NotSeen, Self::Contradicted, Self::CannotBeShown];
        all.into_iter().find(|of| of.name() == name).ok_or_else(|| unknown(&name))
    }
}

fn unknown<E: serde::de::Error>(name: &str) -> E {
    E::custom(format_args!("`{name}` is unknown"))
}

/// The expected range of a figure.
#[derive(Clone, Copy, Debug)]
pub enum Expected {
    /// The figure is between these. Any other contradicts the claim.
    Within(f64, f64),
    /// The figure is at least the first. Below the second, it shows the opposite.
    AtLeast(f64, f64),
    /// The figure is at most the first. Above the second, it shows the opposite.
    AtMost(f64, f64),
}

/// The form in which figures are written.
#[derive(Clone, Copy, Debug)]
pub enum Unit {
    /// A share, as a percentage.
    Share,
    /// A number with this many decimals.
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
    /// Expects exactly this figure.
    pub fn exactly(figure: f64) -> Self {
        Self::Within(figure, figure)
    }

    /// Expects this figure with a tolerance.
    pub fn about(figure: f64, tolerance: f64) -> Self {
        Self::Within(figure - tolerance, figure + tolerance)
    }

    /// Expects at least this figure. A smaller one contradicts the claim.
    pub fn least(figure: f64) -> Self {
        Self::AtLeast(figure, figure)
    }

    /// Expects at most this figure. A larger one contradicts the claim.
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Evidence {
    pub level: Level,
    /// The property that was examined.
    pub what: String,
    /// The result that the claim implies.
    pub expected: String,
    /// The result that was found.
    pub found: String,
    /// The result as a number, if it is one.
    pub value: Option<f64>,
    pub verdict: Verdict,
    /// Whether the experiment's verdict depends on this line.
    pub decides: bool,
}

/// A count per lookup below this is taken as none.
const COUNTED: f64 = 0.01;

impl Evidence {
    /// A line with a figure, and its verdict.
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

    /// A line with a figure that was counted.
    pub fn fact(what: impl Into<String>, unit: Unit, expected: Expected, found: f64) -> Self {
        Self::figure(Level::Fact, what.into(), unit, expected, found)
    }

    /// A line with a figure of the model.
    pub fn model(what: impl Into<String>, unit: Unit, expected: Expected, found: f64) -> Self {
        Self::figure(Level::Model, what.into(), unit, expected, found)
    }

    /// A line with the share by which `after` is less than `before`, both counts of the model per
    /// lookup. It is missing, for the reason `none`, if there are none before.
    pub fn falls(what: &str, (before, after): (f64, f64), expected: Expected, none: &str) -> Self {
        if before < COUNTED {
            return Self::missing(Level::Model, what.into(), none.into());
        }
        let figures = format!("({before:.2} → {after:.2})");
        Self::model(what, Unit::Share, expected, 1.0 - after / before).with(&figures)
    }

    /// A line with a fact that is not a figure, and whether it is as expected.
    pub fn plain(what: impl Into<String>, expected: String, found: String, holds: bool) -> Self {
        let verdict = if holds { Verdict::Confirmed } else { Verdict::Contradicted };
        let (level, what, value) = (Level::Fact, what.into(), None);
        Self { level, what, expected, found, value, verdict, decides: true }
    }

    /// A line with the ratio of two speeds, where the source saw the first to be faster. The
    /// verdict does not depend on it: a clock on a shared machine decides nothing that a fact or a
    /// model can.
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

    /// A line with the ratio of two speeds, where the source saw the first to be as fast or slower.
    pub fn no_faster(what: String, ratio: Interval) -> Self {
        let there = ratio.low <= 1.0;
        Self {
            expected: "not above 1 (the source: no gain)".into(),
            verdict: if there { Verdict::Confirmed } else { Verdict::Contradicted },
            ..Self::faster(what, "", ratio)
        }
    }

    /// A line with the ratio of two speeds, where the source says nothing. The first must not be
    /// slower.
    pub fn no_slower(what: String, ratio: Interval) -> Self {
        let there = ratio.high >= 1.0;
        Self {
            expected: "not below 1 (the source says nothing)".into(),
            verdict: if there { Verdict::Confirmed } else { Verdict::Contradicted },
            ..Self::faster(what, "", ratio)
        }
    }

    /// A line with a ratio that was measured, and its verdict.
    pub fn clock(what: &str, expected: Expected, ratio: Interval) -> Self {
        let (what, found) = (what.to_owned(), ratio.median);
        let interval = format!("({:.2} – {:.2})", ratio.low, ratio.high);
        Self::figure(Level::Clock, what, Unit::Number(2), expected, found).with(&interval)
    }

    /// A line with figures on which the claim says nothing.
    pub fn noted(level: Level, what: String, found: String) -> Self {
        let (expected, verdict) = (String::new(), Verdict::Confirmed);
        Self { level, what, expected, found, value: None, verdict, decides: false }
    }

    /// A line for a figure that this machine or this set-up cannot provide. The verdict depends on
    /// it as on the missing figure.
    pub fn missing(level: Level, what: String, why: String) -> Self {
        let (expected, verdict) = (String::new(), Verdict::CannotBeShown);
        Self { level, what, expected, found: why, value: None, verdict, decides: true }
    }

    /// The line, as one that the verdict does not depend on.
    #[must_use]
    pub fn aside(self) -> Self {
        Self { decides: false, ..self }
    }

    /// The line, as one that the verdict depends on.
    #[must_use]
    pub fn deciding(self) -> Self {
        Self { decides: true, ..self }
    }

    /// The line. If there is a reason `why` its result says nothing, the line is missing for that
    /// reason.
    #[must_use]
    pub fn unless(self, why: Option<String>) -> Self {
        let Some(why) = why else { return self };
        Self { decides: self.decides, ..Self::missing(self.level, self.what, why) }
    }

    /// The line, with more text after the result.
    #[must_use]
    pub fn with(mut self, more: &str) -> Self {
        self.found = format!("{} {more}", self.found);
        self
    }
}

/// The verdict on a claim: the worst verdict of the lines that it depends on. A line against the
/// claim counts, whatever else is missing. A line for the claim does not confirm it while another
/// line cannot be shown. Levels that were not requested have no lines.
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
        // A line that contradicts the claim decides.
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
