//! Figures of cells: what a selection of records comes to.

use crate::data::{Data, Record};
use crate::fault::{Fault, fault};
use crate::manifest::{Selection, Show, Values};
use serde_json::Value;
use std::collections::BTreeMap;

/// The data of all runs of a table, by id.
pub(crate) type Runs = BTreeMap<String, Data>;

/// The fields whose values of all rounds are in the field `samples`.
const RATES: [&str; 3] = ["mops", "tps", "ops_per_s"];

/// A median with its interval, or the range of several medians.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Figure {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
    /// Whether several records were selected: then `low` and `high` are their medians' range.
    pub(crate) many: bool,
}

/// The records that a selection names, in order. A load is not excluded by a field that it lacks:
/// it has no mix.
pub(crate) fn records(runs: &Runs, selection: &Selection) -> Result<Vec<Record>, Fault> {
    let mut found = Vec::new();
    for run in selection.runs() {
        let data = runs.get(&run).ok_or_else(|| Fault(format!("run `{run}` has no data")))?;
        for mut record in data.records().filter(|record| selects(selection, record)) {
            record.insert("run".into(), run.clone().into());
            found.push(record);
        }
    }
    Ok(found)
}

fn selects(selection: &Selection, record: &Record) -> bool {
    let part = word(&record["part"]);
    selection.0.get("part").map_or(part == "results", |parts| parts.has(&part))
        && selection.0.iter().all(|(field, values)| match record.get(field) {
            _ if field == "run" || field == "part" => true,
            Some(value) => values.has(&word(value)),
            None => part == "loads",
        })
}

/// A value as text.
pub(crate) fn word(value: &Value) -> String {
    match value {
        Value::String(word) => word.clone(),
        value => value.to_string(),
    }
}

/// The figure of a field. `None` if no record is selected, or none has the field.
pub(crate) fn figure(
    runs: &Runs,
    selection: &Selection,
    field: &str,
    of: Option<&Selection>,
) -> Result<Option<Figure>, Fault> {
    let mut figures = Vec::new();
    for record in records(runs, selection)? {
        let Some(own) = of_record(&record, field) else { continue };
        figures.push(match of {
            _ if is_ratio(&record, field) => {
                check_base(runs, selection, &record, of)?;
                own
            }
            None => own,
            Some(of) => match divided(runs, selection, &record, own, field, of)? {
                Some(ratio) => ratio,
                None => continue,
            },
        });
    }
    Ok(match figures[..] {
        [] => None,
        [only] => Some(only),
        [first, ..] => {
            let least = figures.iter().map(|figure| figure.median).fold(f64::MAX, f64::min);
            let most = figures.iter().map(|figure| figure.median).fold(f64::MIN, f64::max);
            Some(Figure { low: least, median: first.median, high: most, many: true })
        }
    })
}

fn of_record(record: &Record, field: &str) -> Option<Figure> {
    let number = |name: String| record.get(&name).and_then(Value::as_f64);
    let median = number(format!("{field}.median")).or_else(|| number(field.into()))?;
    let end = |name| number(format!("{field}.{name}")).unwrap_or(median);
    Some(Figure { low: end("low"), median, high: end("high"), many: false })
}

/// Whether a field is the ratio that a verb of `silvics` has computed to its first contender.
fn is_ratio(record: &Record, field: &str) -> bool {
    field == "ratio" && record.contains_key("ratio.median") && record["part"] != "builds"
}

/// Whether the ratios of a record are to the contender that `of` selects. If that was left out of
/// the run, because it gave a wrong answer, they are to the next one.
fn check_base(
    runs: &Runs,
    selection: &Selection,
    record: &Record,
    of: Option<&Selection>,
) -> Result<(), Fault> {
    let run = word(&record["run"]);
    let Some(of) = of else {
        return fault(format!(
            "run `{run}`: `ratio` needs `of`, which selects the contender it is to"
        ));
    };
    let name = of.0.values().flat_map(Values::words).collect::<Vec<_>>().join(", ");
    let Some(base) = base(runs, selection, record, of)? else {
        return fault(format!("run `{run}`: `{name}` has no rows, so no ratio is to it"));
    };
    let is_one = |field: &str| base.get(field).and_then(Value::as_f64) == Some(1.0);
    if ["ratio.low", "ratio.median", "ratio.high"].into_iter().all(is_one) {
        Ok(())
    } else {
        fault(format!("run `{run}`: the ratios are to another contender than `{name}`"))
    }
}

/// The record of another selection. Fields that this one does not name, such as the mix and the
/// threads, are those of the record itself. `None` if the selection has no records.
fn base(
    runs: &Runs,
    selection: &Selection,
    record: &Record,
    of: &Selection,
) -> Result<Option<Record>, Fault> {
    let others = records(runs, &selection.with(of))?;
    let is_empty = others.is_empty();
    let is_best = record["part"] == "best"; // each with its own number of threads
    let same = |other: &Record| {
        ["run", "mix", "threads", "keys", "scan_length", "batch", "table"].iter().all(|name| {
            let named = of.0.contains_key(*name) || is_best && *name == "threads";
            named || record.get(*name) == other.get(*name)
        })
    };
    let mut bases = others.into_iter().filter(same);
    match (bases.next(), bases.next()) {
        (Some(base), None) => Ok(Some(base)),
        _ if is_empty => Ok(None),
        _ => fault("`of` selects several records, or none of the same mix, threads and keys"),
    }
}

/// The ratio to the record of another selection.
fn divided(
    runs: &Runs,
    selection: &Selection,
    record: &Record,
    own: Figure,
    field: &str,
    of: &Selection,
) -> Result<Option<Figure>, Fault> {
    let Some(base) = base(runs, selection, record, of)? else { return Ok(None) };
    let samples = |record: &Record| -> Option<Vec<f64>> {
        record.get("samples")?.as_array()?.iter().map(Value::as_f64).collect()
    };
    if RATES.contains(&field)
        && let (Some(own), Some(base)) = (samples(record), samples(&base))
        && own.len() == base.len()
    {
        let mut ratios: Vec<f64> = own.iter().zip(&base).map(|(own, base)| own / base).collect();
        ratios.sort_by(f64::total_cmp);
        let middle = f64::midpoint(ratios[(ratios.len() - 1) / 2], ratios[ratios.len() / 2]);
        let end = outer(ratios.len());
        let (low, high) = (ratios[end], ratios[ratios.len() - 1 - end]);
        return Ok(Some(Figure { low, median: middle, high, many: false }));
    }
    let Some(base) = of_record(&base, field) else { return Ok(None) };
    let median = own.median / base.median;
    Ok(Some(Figure { low: median, median, high: median, many: false }))
}

/// How many of the least and of the largest of `n` samples lie outside of the interval of their
/// median, as `bench` takes it: the most with which it covers the median with 95 %.
fn outer(n: usize) -> usize {
    let mut probability = 0.5_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut tail = probability;
    let mut outside = 0;
    for k in 1..n.div_ceil(2) {
        probability *= (n - k + 1) as f64 / k as f64;
        tail += probability;
        if 1.0 - 2.0 * tail < 0.95 {
            break;
        }
        outside = k;
    }
    outside
}

impl Figure {
    #[must_use]
    pub(crate) fn scaled(self, factor: f64) -> Self {
        let Self { low, median, high, many } = self;
        Self { low: low * factor, median: median * factor, high: high * factor, many }
    }

    /// The text of a cell.
    pub(crate) fn text(self, show: Show) -> String {
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        match show {
            Show::Percent if self.many => {
                format!("{} to {}", percent(self.low), percent(self.high))
            }
            Show::Percent => percent(self.median),
            Show::Interval if self.many || self.low >= self.high => String::new(),
            Show::Interval => format!("{} – {}", digits(self.low), digits(self.high)),
            Show::Both if !self.many && self.low < self.high => {
                format!("{} ({} – {})", digits(self.median), digits(self.low), digits(self.high))
            }
            _ if self.many && digits(self.low) != digits(self.high) => {
                format!("{} to {}", digits(self.low), digits(self.high))
            }
            _ => digits(self.median),
        }
    }

    /// The bar, and whether a median misses it.
    pub(crate) fn beside(self, bar: &str) -> Result<String, Fault> {
        let bad = || Fault(format!("the bar `{bar}` is neither `≥ NUMBER` nor `≤ NUMBER`"));
        let (least, number) = match bar.strip_prefix("≥ ") {
            Some(number) => (true, number),
            None => (false, bar.strip_prefix("≤ ").ok_or_else(bad)?),
        };
        let number: f64 = number.parse().map_err(|_| bad())?;
        let (low, high) =
            if self.many { (self.low, self.high) } else { (self.median, self.median) };
        let reached = if least { low >= number } else { high <= number };
        Ok(format!("{bar}{}", if reached { "" } else { ", missed" }))
    }
}

/// Three digits, or all before the point.
pub(crate) fn digits(number: f64) -> String {
    let size = number.abs();
    let places = match size {
        _ if number == 0.0 || size >= 100.0 => 0,
        _ if size >= 10.0 => 1,
        _ if size >= 0.1 => 2,
        _ => 4,
    };
    let text = format!("{number:.places$}");
    match text.strip_prefix('-') {
        Some(positive) => format!("−{positive}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::stamp;
    use crate::manifest::Format;

    fn runs() -> Runs {
        let output = r#"{"results": [
            {"index": "peer", "mix": "100/0/0", "threads": 2, "mops": {"median": 1.0, "low": 0.9, "high": 1.1},
             "samples": [1.0, 0.9, 1.1], "bytes": 40},
            {"index": "map", "mix": "100/0/0", "threads": 2, "mops": {"median": 2.0, "low": 1.5, "high": 2.5},
             "samples": [2.5, 1.8, 1.1], "bytes": 30},
            {"index": "map", "mix": "0/50/50", "threads": 2, "mops": {"median": 3.0, "low": 2, "high": 4}}],
            "loads": [{"index": "map", "mops": {"median": 7.5}}]}"#;
        let data = Data::of(stamp("c"), Format::Json, output).unwrap();
        Runs::from([("r".into(), data)])
    }

    fn select(text: &str) -> Selection {
        toml::from_str(&format!("run = 'r'\n{text}")).unwrap()
    }

    fn shown(text: &str, field: &str, of: Option<&str>, show: Show) -> String {
        let of: Option<Selection> = of.map(|of| toml::from_str(of).unwrap());
        let figure = figure(&runs(), &select(text), field, of.as_ref()).unwrap();
        figure.map_or("none".into(), |figure| figure.text(show))
    }

    #[test]
    fn cells_show_medians_intervals_ranges_and_ratios() {
        let one = "index = 'map'\nmix = '100/0/0'\nthreads = 2";
        assert_eq!(shown(one, "mops", None, Show::Median), "2.00");
        assert_eq!(shown(one, "mops", None, Show::Interval), "1.50 – 2.50");
        assert_eq!(shown(one, "mops", None, Show::Both), "2.00 (1.50 – 2.50)");
        assert_eq!(shown("index = 'map'", "mops", None, Show::Median), "2.00 to 3.00");
        let many = "mix = ['100/0/0', '0/50/50']";
        assert_eq!(shown(many, "mops", None, Show::Median), "1.00 to 3.00");
        // Rounds are divided before the median is taken: the medians alone would have 2.00, too,
        // but an interval of their own.
        assert_eq!(shown(one, "mops", Some("index = 'peer'"), Show::Both), "2.00 (1.00 – 2.50)");
        assert_eq!(shown(one, "bytes", Some("index = 'peer'"), Show::Median), "0.75");
        assert_eq!(shown("index = 'other'", "mops", None, Show::Median), "none");
        assert_eq!(
            shown("index = 'map'\nmix = '1'\npart = 'loads'", "mops", None, Show::Median),
            "7.50"
        );
    }

    #[test]
    fn a_ratio_is_to_the_contender_that_the_table_names() {
        let refused = |of: Option<&str>| {
            let of: Option<Selection> = of.map(|of| toml::from_str(of).unwrap());
            figure(&ratios(), &select("index = 'map'"), "ratio", of.as_ref())
        };
        let first = refused(Some("index = 'peer'")).unwrap().unwrap();
        assert_eq!(first.text(Show::Both), "2.00 (1.50 – 2.50)");
        let message = |of| refused(of).unwrap_err().0;
        // The contender that lost a key has no rows, and the ratios are to the next one.
        assert!(message(Some("index = 'lost'")).contains("`lost` has no rows"));
        assert!(message(Some("index = 'other'")).contains("to another contender than `other`"));
        assert!(message(None).contains("run `r`: `ratio` needs `of`"));
    }

    fn ratios() -> Runs {
        let one = r#"{"median": 1.0, "low": 1.0, "high": 1.0}"#;
        let two = r#"{"median": 2.0, "low": 1.5, "high": 2.5}"#;
        let rows = [("peer", one), ("map", two), ("other", two)]
            .map(|(index, ratio)| format!(r#"{{"index": "{index}", "ratio": {ratio}}}"#));
        let output = format!(r#"{{"results": [{}]}}"#, rows.join(", "));
        Runs::from([("r".into(), Data::of(stamp("c"), Format::Json, &output).unwrap())])
    }

    #[test]
    fn a_store_with_its_best_number_of_threads_is_divided_by_that_of_another() {
        let row = |index: &str, threads: usize, samples: &str| {
            format!(
                r#"{{"index": "{index}", "policy": "p", "row_layout": "l", "placement": "own",
                 "pages": "4k", "mixed": false, "threads": {threads}, "samples": {samples}}}"#
            )
        };
        let rows = [row("map", 1, "[5.0]"), row("map", 2, "[8.0]"), row("db", 1, "[2.0]")];
        let best = [row("map", 2, "[]"), row("db", 1, "[]")]
            .map(|row| row.replace(r#""own""#, r#""own 4k""#));
        let output = format!(
            r#"{{"results": [{}, {}], "best": [{}]}}"#,
            rows.join(", ").replace(r#""samples""#, r#""tps": {"median": 1.0}, "samples""#),
            row("db", 2, "[1.0]"),
            best.join(", "),
        );
        let runs = Runs::from([("r".into(), Data::of(stamp("c"), Format::Json, &output).unwrap())]);
        let db: Selection = toml::from_str("index = 'db'").unwrap();
        let best = select("index = 'map'\npart = 'best'");
        let ratio = figure(&runs, &best, "tps", Some(&db)).unwrap().unwrap();
        assert_eq!(ratio.text(Show::Median), "4.00");
    }

    #[test]
    fn rates_of_stores_are_divided_round_by_round() {
        let output = r#"{"results": [
            {"index": "map", "threads": 1, "tps": {"median": 2.0}, "samples": [2.0, 8.0, 1.0]},
            {"index": "peer", "threads": 1, "tps": {"median": 1.0}, "samples": [1.0, 1.0, 1.0]}]}"#;
        let data = Data::of(stamp("c"), Format::Json, output).unwrap();
        let runs = Runs::from([("r".into(), data)]);
        let peer: Selection = toml::from_str("index = 'peer'").unwrap();
        let ratio = figure(&runs, &select("index = 'map'"), "tps", Some(&peer)).unwrap().unwrap();
        assert_eq!(ratio.text(Show::Both), "2.00 (1.00 – 8.00)");
    }

    #[test]
    fn bars_are_missed_by_the_worst_of_several() {
        let figure = Figure { low: 1.2, median: 1.5, high: 1.6, many: true };
        assert_eq!(figure.beside("≥ 1.4").unwrap(), "≥ 1.4, missed");
        assert_eq!(Figure { many: false, ..figure }.beside("≥ 1.4").unwrap(), "≥ 1.4");
        assert_eq!(figure.beside("≤ 1.5").unwrap(), "≤ 1.5, missed");
        assert_eq!(figure.beside("≤ 1.6").unwrap(), "≤ 1.6");
        assert!(figure.beside("1.6").is_err() && figure.beside("≥ x").is_err());
    }

    #[test]
    fn numbers_have_three_digits() {
        let expected =
            [(0.0, "0"), (0.0866, "0.0866"), (0.745, "0.74"), (1.7, "1.70"), (28.04, "28.0")];
        for (number, text) in expected.into_iter().chain([(1234.5, "1234"), (-0.5, "−0.50")]) {
            assert_eq!(digits(number), text);
        }
    }
}
