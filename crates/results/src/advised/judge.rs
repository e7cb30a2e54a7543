//! The judgement: the bars that the advice has to reach.

use super::workloads::Workload;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt;

/// A candidate is as good as the best with this share of its score.
const GOOD: f64 = 0.9;
/// The workloads on which the advice may miss that.
const MISSES_MAX: usize = 1;
/// The fewest workloads whose best candidate is not the usual map.
const UNUSUAL_LEAST: usize = 5;
/// The fewest workloads for which the order at ten times the keys is right.
const ORDERS_LEAST: usize = 9;

/// The part of an answer of `silvics advise --exhaustive` that is judged.
#[derive(Deserialize)]
struct Answer {
    workload: AnsweredWorkload,
    advice: Advice,
    exhaustive: Exhaustive,
}

#[derive(Deserialize)]
struct AnsweredWorkload {
    key_type: String,
    budget_seconds: f64,
}

#[derive(Deserialize)]
struct Advice {
    candidate: String,
    seconds: f64,
}

#[derive(Deserialize)]
struct Exhaustive {
    best: String,
    advice: f64,
    usual: Option<f64>,
    close: Vec<(String, f64)>,
    order_is_right: Option<bool>,
}

/// The answer for a workload.
pub(crate) struct Held(Answer);

impl Held {
    /// Reads the output of the command.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        serde_json::from_str(text)
            .map(Self)
            .map_err(|error| format!("no answer of `silvics advise --exhaustive`: {error}"))
    }

    /// The seconds that the answer was given.
    pub(crate) fn budget(&self) -> f64 {
        self.0.workload.budget_seconds
    }

    /// The candidates that were measured to the end, by structure and place, with the best of the
    /// shares that they have with any number of keys a call, and with any way to count keys.
    fn places(&self) -> BTreeMap<&str, f64> {
        let mut places = BTreeMap::new();
        for (candidate, share) in &self.0.exhaustive.close {
            let end = candidate.match_indices(", ").nth(1).map_or(candidate.len(), |(end, _)| end);
            let best = places.entry(&candidate[..end]).or_insert(0.0_f64);
            *best = best.max(*share);
        }
        places
    }

    /// Whether the map by default is about as good as the best candidate.
    fn usual_is_good(&self) -> bool {
        self.0.exhaustive.usual.is_some_and(|share| share >= GOOD)
    }
}

/// A bar, what was reached, and whether that is enough.
struct Bar {
    wanted: String,
    reached: String,
    is_reached: bool,
}

/// The answers, and how they do at the bars.
pub(crate) struct Verdict {
    rows: Vec<(&'static str, Option<Held>)>,
    bars: Vec<Bar>,
}

impl Verdict {
    /// Judges the answers.
    pub(crate) fn of(all: Vec<(&Workload, Option<Held>)>) -> Self {
        let rows: Vec<_> = all.into_iter().map(|(workload, held)| (workload.name, held)).collect();
        let bars = bars(&rows);
        Self { rows, bars }
    }

    /// Whether every workload has an answer.
    pub(crate) fn is_whole(&self) -> bool {
        self.rows.iter().all(|(_, held)| held.is_some())
    }

    /// Whether every bar is reached.
    pub(crate) fn is_reached(&self) -> bool {
        self.bars.iter().all(|bar| bar.is_reached)
    }
}

fn bars(rows: &[(&str, Option<Held>)]) -> Vec<Bar> {
    let held: Vec<&Held> = rows.iter().filter_map(|(_, held)| held.as_ref()).collect();
    let all = rows.len();
    let count = |is: &dyn Fn(&Held) -> bool| held.iter().filter(|held| is(held)).count();
    let least = |wanted: &str, least: usize, reached: usize| Bar {
        wanted: format!("{wanted} on at least {least} of {all}"),
        reached: reached.to_string(),
        is_reached: reached >= least,
    };
    let good = all.saturating_sub(MISSES_MAX);
    let (constant, reached) = best_constant(&held);
    let constant = Bar {
        wanted: format!("one place for all ({constant}) is within 10 % on fewer than {good}"),
        reached: reached.to_string(),
        is_reached: held.len() == all && reached < good,
    };
    let order = |wanted: bool| count(&|held| held.0.exhaustive.order_is_right == Some(wanted));
    let order = Bar {
        reached: format!("{} right, {} wrong", order(true), order(false)),
        ..least("the predicted order is right", ORDERS_LEAST, order(true))
    };
    let in_time = count(&|held| held.0.advice.seconds <= held.0.workload.budget_seconds);
    vec![
        least("there is an answer", all, held.len()),
        least(
            "the advice is within 10 % of the best candidate",
            good,
            count(&|held| held.0.exhaustive.advice >= GOOD),
        ),
        least(
            "`Map::new()` is not within 10 %, so constant advice fails,",
            UNUSUAL_LEAST,
            count(&|held| !held.usual_is_good()),
        ),
        constant,
        order,
        least("the answer is within its budget", all, in_time),
    ]
}

/// The structures and places, one for integers and one for strings, that are about as good as the
/// best candidate on the most workloads, and on how many.
fn best_constant(held: &[&Held]) -> (String, usize) {
    let (mut names, mut reached) = (Vec::new(), 0);
    for is_strings in [false, true] {
        let mut good: BTreeMap<&str, usize> = BTreeMap::new();
        for held in held.iter().filter(|held| is_strings == (held.0.workload.key_type == "bytes")) {
            for (place, share) in held.places() {
                *good.entry(place).or_default() += usize::from(share >= GOOD);
            }
        }
        if let Some((place, count)) = good.into_iter().max_by_key(|(_, count)| *count) {
            names.push(place);
            reached += count;
        }
    }
    (names.join("; "), reached)
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.0} %", 100.0 * share);
        writeln!(
            f,
            "| workload | best candidate | advice | its score | `Map::new()` | order at ten times | seconds |"
        )?;
        writeln!(f, "|---|---|---|--:|--:|---|--:|")?;
        for (name, held) in &self.rows {
            let Some(Held(answer)) = held else {
                writeln!(f, "| {name} | no answer | | | | | |")?;
                continue;
            };
            let of = &answer.exhaustive;
            let same = answer.advice.candidate == of.best;
            writeln!(
                f,
                "| {name} | {} | {} | {} | {} | {} | {:.0} |",
                of.best,
                if same { "the same" } else { &answer.advice.candidate },
                percent(of.advice),
                of.usual.map_or("does not have it".into(), percent),
                match of.order_is_right {
                    Some(true) => "right",
                    Some(false) => "wrong",
                    None => "not measured, or none",
                },
                answer.advice.seconds,
            )?;
        }
        writeln!(f, "\n| bar | reached |\n|---|---|")?;
        for bar in &self.bars {
            let missed = if bar.is_reached { "" } else { ", missed" };
            writeln!(f, "| {} | {}{missed} |", bar.wanted, bar.reached)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advised::workloads::WORKLOADS;

    /// The answer for a workload: the share of the advice, that of the map by default, the order.
    fn held(advice: f64, usual: Option<f64>, order: Option<bool>, seconds: f64) -> Held {
        let text = serde_json::json!({
            "workload": { "budget_seconds": 60.0, "key_type": "u64" },
            "advice": { "candidate": "art, shared", "seconds": seconds },
            "exhaustive": {
                "best": "words, shared", "advice": advice, "usual": usual,
                "close": [["words, shared", 1.0], ["art, shared", advice]],
                "order_is_right": order,
            },
        });
        Held::read(&text.to_string()).expect("an answer")
    }

    fn missed(all: Vec<Option<Held>>) -> Vec<usize> {
        let verdict = Verdict::of(WORKLOADS.iter().zip(all).collect());
        assert_eq!(verdict.is_reached(), !verdict.to_string().contains(", missed"));
        let bars = verdict.bars.iter().enumerate();
        bars.filter(|(_, bar)| !bar.is_reached).map(|(at, _)| at).collect()
    }

    /// Answers that reach every bar, by a little.
    fn good(at: usize) -> Held {
        let mut answer = held(
            if at == 3 { 0.5 } else { 0.91 },
            if at < 12 { Some(0.95) } else { None },
            (at < 10).then_some(at > 0),
            60.0,
        );
        if at > 10 {
            answer.0.exhaustive.close.remove(0);
        }
        answer
    }

    #[test]
    fn each_bar_is_missed_by_answers_that_miss_it() {
        let all = || (0..WORKLOADS.len()).map(|at| Some(good(at))).collect::<Vec<_>>();
        // The advice of these answers is one candidate, which is good on sixteen.
        assert_eq!(missed(all()), [3]);
        let varied = |mut all: Vec<Option<Held>>| {
            for held in all.iter_mut().flatten().take(3) {
                held.0.exhaustive.close.pop();
            }
            all
        };
        assert_eq!(missed(varied(all())), [0; 0]);
        let with = |at: usize, answer: Option<Held>| {
            let mut all = varied(all());
            all[at] = answer;
            missed(all)
        };
        assert_eq!(with(16, None), [0, 1, 2, 3, 5]);
        assert_eq!(with(16, Some(held(0.89, None, None, 1.0))), [1]);
        assert_eq!(with(16, Some(held(1.0, Some(0.9), None, 1.0))), [2]);
        assert_eq!(with(5, Some(held(1.0, Some(1.0), Some(false), 1.0))), [4]);
        assert_eq!(with(5, Some(held(1.0, Some(1.0), Some(true), 60.1))), [5]);
        let constant: Vec<_> =
            (0..WORKLOADS.len()).map(|_| Some(held(1.0, Some(1.0), Some(true), 1.0))).collect();
        assert_eq!(missed(constant), [2, 3]);
    }

    #[test]
    fn constant_advice_may_differ_by_keys_but_not_by_calls() {
        let answer = |key_type: &str, close: &[(&str, f64)]| {
            let mut answer = held(1.0, None, None, 1.0);
            answer.0.workload.key_type = key_type.into();
            answer.0.exhaustive.close =
                close.iter().map(|(candidate, share)| ((*candidate).into(), *share)).collect();
            answer
        };
        let held = [
            answer("u64", &[("art, shared", 0.2), ("art, shared, one count, 64 keys a call", 0.9)]),
            answer("u128", &[("art, shared", 1.0)]),
            answer("bytes", &[("art, shared", 0.8), ("blocks, pooled on thp pages", 1.0)]),
        ];
        let all: Vec<&Held> = held.iter().collect();
        let wanted = ("art, shared; blocks, pooled on thp pages".into(), 3);
        assert_eq!(best_constant(&all), wanted);
    }

    #[test]
    fn what_is_no_answer_is_refused() {
        assert!(Held::read("{}").is_err() && Held::read("").is_err());
    }
}
