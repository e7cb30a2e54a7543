//! The answers that the advice is held against: every candidate, and ten times the keys.

use super::candidates::{self, Candidate, Need};
use super::lab::{self, Lab, Trial, has_its_pages, scores};
use super::report::Report;
use crate::drive::keys::BenchKey;
use crate::flags::error::Error;
use serde::Serialize;
use std::fmt::Write as _;
use std::time::Duration;

/// The time of a run.
const TIME: Duration = Duration::from_millis(100);
/// The rounds of all candidates, then, on fresh indexes, of those with [`CLOSE`] of the best score,
/// and of those with [`LAST`] of the best score of these. The last rounds alone are judged: the
/// best of many medians would be one that chance favours.
const ROUNDS: usize = 3;
const CLOSE_ROUNDS: usize = 5;
const CLOSE: f64 = 0.75;
const LAST_ROUNDS: usize = 15;
const LAST: f64 = 0.85;
/// A structure with less than this share of the fastest is measured in its usual place alone.
const FAR: f64 = 0.3;
/// Two structures whose times differ by less have no order.
const TIED: f64 = 0.1;

/// How the advice compares with everything that could have been advised.
#[derive(Serialize)]
pub struct Exhaustive {
    /// The number of candidates, and of those that were measured: structures that are far behind
    /// were measured in their usual place alone.
    pub candidates: usize,
    pub measured: usize,
    /// The best one.
    pub best: String,
    /// The scores over that of the best: of the advice, and of `Map::new()`, which is null if it
    /// does not meet the needs.
    pub advice: f64,
    pub usual: Option<f64>,
    /// Each candidate that was measured to the end, with its score over that of the best.
    pub close: Vec<(String, f64)>,
    /// Whether the predicted order of the leading structures with ten times the keys is right, as
    /// far as they differ by a tenth; null if they were not measured, or if none differ.
    pub order_is_right: Option<bool>,
    /// The nanoseconds of an operation with ten times the keys, in the predicted order.
    pub at_ten: Vec<(String, f64)>,
}

/// Measures every candidate.
pub fn measure<K: BenchKey + ?Sized>(
    lab: &mut Lab<'_, K>,
    report: &Report,
) -> Result<Exhaustive, Error> {
    let Some(advice) = &report.advice else { unreachable!("there is advice") };
    let must = |trial: &Trial<K>| trial.candidate == advice.of || trial.candidate.is_usual();
    lab.take(lab.keys());
    let usual = once(lab, candidates::first(lab.plan)?)?;
    let fastest = usual.iter().map(Trial::rate).fold(0.0, f64::max);
    let is_far = |candidate: &Candidate| {
        let mut same = usual.iter().filter(|of| of.candidate.shares_structure(candidate));
        same.all(|of| of.rate() < FAR * fastest)
    };
    let far = usual.iter().filter(|of| is_far(&of.candidate)).count();
    let mut every = candidates::every(lab.plan)?;
    let candidates = every.len();
    every.retain(|candidate| !is_far(candidate) || *candidate == advice.of || candidate.is_usual());
    let mut trials = once(lab, every)?;
    let measured = trials.len() + far;
    trials.retain(|trial| has_its_pages(trial) || must(trial));
    for (share, rounds) in [(CLOSE, CLOSE_ROUNDS), (LAST, LAST_ROUNDS)] {
        trials = nearest(lab, &trials, share, must);
        lab.rounds(&mut trials, TIME, true, |_, round| round >= rounds)?;
        let mut rates: Vec<_> = trials.iter_mut().map(|trial| &mut trial.rates).collect();
        without_drift(&mut rates);
    }
    let scores = scores(lab.plan.goal, &trials);
    let top = scores.iter().copied().fold(0.0, f64::max);
    let share = |wanted: &dyn Fn(&Trial<K>) -> bool| {
        let found = trials.iter().position(wanted);
        found.map_or(0.0, |at| scores[at] / top)
    };
    let advised = share(&|trial| trial.candidate == advice.of);
    let is_map = lab.plan.needs.iter().all(|need| *need == Need::Ends);
    let usual = is_map.then(|| share(&|trial| trial.candidate.is_usual()));
    let mut close: Vec<(String, f64)> = trials
        .iter()
        .zip(&scores)
        .map(|(trial, score)| (trial.candidate.to_string(), score / top))
        .collect();
    close.sort_by(|a, b| b.1.total_cmp(&a.1));
    drop(trials);
    let at_ten = at_ten(lab, report)?;
    Ok(Exhaustive {
        candidates,
        measured,
        best: close.first().map_or(String::new(), |(candidate, _)| candidate.clone()),
        advice: advised,
        usual,
        close,
        order_is_right: has_order(&at_ten).then(|| is_ordered(&at_ten)),
        at_ten,
    })
}

/// The trials with a share of the best score, those that `must` stay, and the fastest one, which
/// with the goal of memory decides which ones are fast enough. All are before their first round.
fn nearest<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    trials: &[Trial<K>],
    share: f64,
    must: impl Fn(&Trial<K>) -> bool,
) -> Vec<Trial<K>> {
    let scores = scores(lab.plan.goal, trials);
    let top = scores.iter().copied().fold(0.0, f64::max);
    let measure = lab::fastest(trials).map(|trial| trial.candidate);
    let stays = |(trial, score): &(&Trial<K>, f64)| {
        *score >= share * top || must(trial) || Some(trial.candidate) == measure
    };
    trials.iter().zip(scores).filter(stays).map(|(trial, _)| trial.anew()).collect()
}

/// Divides the rates of each round by their geometric mean: a machine that is slow in a round is so
/// for all.
fn without_drift(rates: &mut [&mut Vec<f64>]) {
    let rounds = rates.iter().map(|rates| rates.len()).min().unwrap_or(0);
    for round in 0..rounds {
        let logarithms = rates.iter().map(|rates| rates[round].ln()).sum::<f64>();
        let mean = (logarithms / rates.len() as f64).exp();
        for rates in rates.iter_mut() {
            rates[round] /= mean;
        }
    }
}

/// Measures each candidate that takes the longest key, one at a time: all of them may not fit into
/// memory.
fn once<K: BenchKey + ?Sized>(
    lab: &mut Lab<'_, K>,
    candidates: Vec<Candidate>,
) -> Result<Vec<Trial<K>>, Error> {
    let longest = lab.longest();
    let mut trials = Vec::new();
    for candidate in candidates {
        if longest
            .is_none_or(|longest| matches!(candidate.chosen.takes_length(longest), Ok(Ok(()))))
        {
            let mut one = vec![Trial::new(candidate)];
            lab.rounds(&mut one, TIME, false, |_, round| round >= ROUNDS)?;
            Lab::free(&mut one);
            trials.extend(one);
        }
    }
    Ok(trials)
}

/// The times of the leading structures with ten times the keys, in the predicted order.
fn at_ten<K: BenchKey + ?Sized>(
    lab: &mut Lab<'_, K>,
    report: &Report,
) -> Result<Vec<(String, f64)>, Error> {
    const ROUNDS: usize = 5;
    let leaders: Vec<Candidate> = report.forecast.leaders.iter().filter_map(|of| of.of).collect();
    if leaders.is_empty() || !lab.take_ten_times() {
        return Ok(Vec::new());
    }
    let mut trials: Vec<Trial<K>> = leaders.into_iter().map(Trial::new).collect();
    lab.rounds(&mut trials, TIME, true, |_, round| round >= ROUNDS)?;
    let ns = |trial: &Trial<K>| 1e3 * lab.plan.threads as f64 / trial.rate().max(1e-9);
    Ok(trials.iter().map(|trial| (trial.candidate.to_string(), ns(trial))).collect())
}

/// Whether any two structures differ by more than a tie.
fn has_order(times: &[(String, f64)]) -> bool {
    let all = || times.iter().map(|(_, ns)| *ns);
    all().fold(0.0, f64::max) > (1.0 + TIED) * all().fold(f64::MAX, f64::min)
}

/// Whether no structure is slower than a later one by more than a tie.
fn is_ordered(times: &[(String, f64)]) -> bool {
    let pairs = times.iter().enumerate();
    pairs.fold(true, |right, (at, (_, early))| {
        right && times[at + 1..].iter().all(|(_, late)| *early <= (1.0 + TIED) * late)
    })
}

impl Exhaustive {
    /// In words.
    pub fn tell(&self, text: &mut String) {
        _ = writeln!(
            text,
            "\nOf {} candidates, {} of which were measured, the best is {}. The advice has {:.0} % of its \
             score, `Map::new()` {}.",
            self.candidates,
            self.measured,
            self.best,
            100.0 * self.advice,
            match self.usual {
                Some(share) => format!("{:.0} %", 100.0 * share),
                None => "does not meet the needs".into(),
            }
        );
        if let Some(right) = self.order_is_right {
            let times =
                self.at_ten.iter().map(|(candidate, ns)| format!("{candidate}: {ns:.0} ns"));
            let times: Vec<String> = times.collect();
            _ = writeln!(
                text,
                "With ten times the keys the predicted order is {}: {}.",
                if right { "right" } else { "wrong" },
                times.join("; ")
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{has_order, is_ordered, without_drift};

    #[test]
    fn a_slow_round_is_slow_for_all() {
        let (mut one, mut other) = (vec![8.0, 4.0, 0.8], vec![2.0, 1.0, 0.2]);
        without_drift(&mut [&mut one, &mut other]);
        let are = |rates: &[f64], of: f64| rates.iter().all(|rate| (rate - of).abs() < 1e-9);
        assert!(are(&one, 2.0) && are(&other, 0.5), "{one:?} {other:?}");
    }

    #[test]
    fn ties_have_no_order() {
        let times = |of: &[f64]| of.iter().map(|ns| (String::new(), *ns)).collect::<Vec<_>>();
        assert!(is_ordered(&times(&[100.0, 95.0, 200.0])));
        assert!(!is_ordered(&times(&[100.0, 80.0, 200.0])));
        assert!(!is_ordered(&times(&[100.0, 95.0, 90.0])));
        assert!(is_ordered(&times(&[1.0])));
        assert!(has_order(&times(&[1.0, 1.2])) && !has_order(&times(&[1.0, 1.05])));
        assert!(!has_order(&[]) && !has_order(&times(&[1.0])));
    }
}
