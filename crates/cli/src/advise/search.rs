//! The stages of the search.

use super::candidates::{self, Candidate, Goal};
use super::lab::{Lab, Trial, advantage, fastest, has_its_pages, scores};
use super::plan::Keys;
use crate::drive::keys::BenchKey;
use crate::flags::error::Error;
use std::ops::RangeInclusive;
use std::time::Duration;

/// The number of stages, for the bar.
pub const STAGES: usize = 4;

/// The share of the budget, without the time for reading keys, at whose end each stage ends, but
/// for the last.
const GLANCE_ENDS: f64 = 0.15;
const STRUCTURES_END: f64 = 0.4;
const PLACES_END: f64 = 0.7;
/// The share at whose end the final stage ends: the rest is for the prediction.
const FINAL_ENDS: f64 = 0.88;

/// The keys of the first stage.
const FEW_KEYS: usize = 50_000;
/// A candidate stays for the next stage with this share of the best score.
const AFTER_GLANCE: f64 = 0.33;
const AFTER_STRUCTURES: f64 = 0.75;
const AFTER_PLACES: f64 = 0.93;
/// The fewest candidates that stay in the first stage, for the prediction, and the most that stay.
const STRUCTURES_LEAST: usize = 4;
const STRUCTURES_MAX: usize = 6;
const LEADERS_MAX: usize = 3;
const FINALISTS_MAX: usize = 5;
/// Two candidates whose scores differ by less are taken for equals.
const EQUAL: f64 = 0.02;
/// A candidate that the rounds cannot tell from the best is its equal if it has this share of its
/// score.
const CLOSE: f64 = 0.95;

/// The finds of the stages.
pub struct Found<K: BenchKey + ?Sized> {
    /// The finalists, the usual candidate first, with the rates of the final rounds.
    pub finalists: Vec<Trial<K>>,
    /// The position of the advice among them.
    pub advice: usize,
    /// Every structure, with its rates in the last stage that it was in.
    pub structures: Vec<Trial<K>>,
    /// The keys that were present in the first stage, and in the final one.
    pub few: usize,
    pub keys: usize,
    /// The rates of structures in the first stage.
    pub at_few: Vec<(Candidate, f64)>,
    /// The candidates that were measured.
    pub measured: usize,
}

/// Searches for the best candidate within the budget.
pub fn search<K: BenchKey + ?Sized>(lab: &mut Lab<'_, K>) -> Result<Found<K>, Error> {
    let all = of_length(lab, candidates::first(lab.plan)?)?;
    let budget = lab.seconds();
    let time = Duration::from_secs_f64((budget / 1500.0).clamp(0.005, 0.05));
    let fitting = lab.fitting(all.len());
    if matches!(lab.plan.source, Keys::Trace(_)) && fitting < lab.keys() {
        let problem = format!(
            "the {} keys that are present do not fit into memory in {} structures: record a smaller \
             map",
            lab.keys(),
            all.len()
        );
        return Err(Error::value("--trace", problem));
    }
    lab.take(FEW_KEYS.min(fitting));
    let few = lab.present();
    let mut trials: Vec<Trial<K>> = all.into_iter().map(Trial::new).collect();
    until(lab, &mut trials, time, false, GLANCE_ENDS, (1, 3))?;
    some(lab, &trials)?;
    Lab::free(&mut trials);
    lab.progress.step();
    let at_few: Vec<_> = trials.iter().map(|trial| (trial.candidate, trial.rate())).collect();
    let (chosen, mut structures) =
        best(lab, trials, AFTER_GLANCE, STRUCTURES_LEAST..=STRUCTURES_MAX);

    let keys = affordable(lab, &chosen, (STRUCTURES_END - GLANCE_ENDS) * budget / 2.0);
    lab.take(keys);
    let mut trials = anew(&chosen);
    until(lab, &mut trials, time, false, STRUCTURES_END, (2, 7))?;
    some(lab, &trials)?;
    Lab::free(&mut trials);
    lab.progress.step();
    let (leaders, others) = best(lab, trials, AFTER_STRUCTURES, 1..=LEADERS_MAX);
    structures.extend(others);
    let mut measured = at_few.len();
    let (finalists, more) = places(lab, &leaders, time)?;
    measured += more;
    structures.extend(leaders);
    let mut finalists = anew(&finalists);
    until(lab, &mut finalists, 2 * time, true, FINAL_ENDS, (3, 31))?;
    some(lab, &finalists)?;
    lab.progress.step();
    let advice = simplest(lab, &finalists);
    let keys = lab.present();
    Ok(Found { finalists, advice, structures, few, keys, at_few, measured })
}

/// Measures the leaders and each change of one part. Returns the finalists, and how many candidates
/// are new.
fn places<K: BenchKey + ?Sized>(
    lab: &mut Lab<'_, K>,
    leaders: &[Trial<K>],
    time: Duration,
) -> Result<(Vec<Trial<K>>, usize), Error> {
    let mut trials = anew(leaders);
    for leader in leaders {
        for candidate in leader.candidate.neighbours(lab.plan) {
            if trials.iter().all(|trial: &Trial<K>| trial.candidate != candidate) {
                trials.push(Trial::new(candidate));
            }
        }
    }
    let mut new = trials.len() - leaders.len();
    let seconds = (PLACES_END - STRUCTURES_END) * lab.seconds() / 2.0;
    let of_leaders = seconds * leaders.len() as f64 / trials.len() as f64;
    let keys = affordable(lab, leaders, of_leaders);
    lab.take(keys.min(lab.fitting(trials.len())));
    until(lab, &mut trials, time, false, PLACES_END, (2, 7))?;
    Lab::free(&mut trials);
    lab.progress.step();
    trials.retain(has_its_pages);
    let combined = combined(lab, &trials);
    let (mut finalists, _) = best(lab, trials, AFTER_PLACES, 1..=FINALISTS_MAX);
    if let Some(candidate) = combined
        && finalists.iter().all(|trial| trial.candidate != candidate)
    {
        new += 1;
        finalists.push(Trial::new(candidate));
    }
    Ok((finalists, new))
}

/// Fails if no structure could hold the keys.
fn some<K: BenchKey + ?Sized>(lab: &Lab<'_, K>, trials: &[Trial<K>]) -> Result<(), Error> {
    if trials.is_empty() {
        let problem =
            format!("memory is too small for {} keys in any structure: name fewer", lab.present());
        return Err(Error::value("--keys", problem));
    }
    Ok(())
}

/// Leaves out structures that do not take the longest key.
fn of_length<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    mut all: Vec<Candidate>,
) -> Result<Vec<Candidate>, Error> {
    if let Some(longest) = lab.longest() {
        all.retain(|candidate| matches!(candidate.chosen.takes_length(longest), Ok(Ok(()))));
    }
    if all.is_empty() {
        let problem = "no structure takes keys as long as the longest: leave that key out";
        return Err(Error::value("--key-file", problem));
    }
    Ok(all)
}

/// Measures until a share of the budget is spent, for a number of rounds between two bounds.
fn until<K: BenchKey + ?Sized>(
    lab: &mut Lab<'_, K>,
    trials: &mut Vec<Trial<K>>,
    time: Duration,
    fresh: bool,
    share: f64,
    (least, most): (usize, usize),
) -> Result<(), Error> {
    let (mut before, end) = (lab.spent(), lab.end_of(share));
    let mut longest: f64 = 0.0;
    lab.rounds(trials, time, fresh, |lab, round| {
        let now = lab.spent();
        if round > 0 {
            longest = longest.max(now - before);
        }
        before = now;
        // The first round also loads, so the last one may be shorter.
        round >= most || (round >= least && now + longest > end) || (round > 0 && now > end)
    })
}

/// The keys, by halves of all, whose loads take at most this number of seconds.
fn affordable<K: BenchKey + ?Sized>(lab: &Lab<'_, K>, trials: &[Trial<K>], seconds: f64) -> usize {
    // A load of a larger tree is slower.
    const SLOWER: f64 = 1.5;
    let per_key: f64 = trials.iter().map(Trial::seconds_per_key).sum::<f64>() * SLOWER;
    let mut keys = lab.keys().min(lab.fitting(trials.len()));
    while keys > 1024 && keys as f64 * per_key > seconds {
        keys /= 2;
    }
    keys
}

/// The trials with at least a share of the best score, as many as may `stay`, and the usual
/// candidate. With the goal of memory the fastest one stays, too: it decides which ones are fast
/// enough. The usual one is first, then the best. The others are returned, too.
fn best<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    trials: Vec<Trial<K>>,
    share: f64,
    stay: RangeInclusive<usize>,
) -> (Vec<Trial<K>>, Vec<Trial<K>>) {
    let scores = scores(lab.plan.goal, &trials);
    let top = scores.iter().copied().fold(0.0, f64::max);
    let measure = match lab.plan.goal {
        Goal::Speed => None,
        Goal::Memory => fastest(&trials).map(|trial| trial.candidate),
    };
    let mut ranked: Vec<(f64, Trial<K>)> = scores.into_iter().zip(trials).collect();
    ranked.sort_by(|a, b| b.0.total_cmp(&a.0));
    let (mut staying, mut going) = (Vec::new(), Vec::new());
    for (score, trial) in ranked {
        if trial.candidate.is_usual() {
            staying.insert(0, trial);
        } else if Some(trial.candidate) == measure
            || staying.len() < *stay.start()
            || (score >= share * top && staying.len() < *stay.end())
        {
            staying.push(trial);
        } else {
            going.push(trial);
        }
    }
    (staying, going)
}

/// The same candidates, to be measured again with other keys.
fn anew<K: BenchKey + ?Sized>(trials: &[Trial<K>]) -> Vec<Trial<K>> {
    trials.iter().map(Trial::anew).collect()
}

/// The best structure with every change that paid by itself. The trials begin with the leaders.
fn combined<K: BenchKey + ?Sized>(lab: &Lab<'_, K>, trials: &[Trial<K>]) -> Option<Candidate> {
    let scores = scores(lab.plan.goal, trials);
    let (top, _) = scores.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1))?;
    // The leaders come first, and the others are their changes.
    let mut pairs = trials.iter().zip(&scores);
    let (plain, score) =
        pairs.find(|(of, _)| of.candidate.shares_structure(&trials[top].candidate))?;
    let mut paid: Vec<(f64, &Trial<K>)> = trials
        .iter()
        .zip(&scores)
        .filter(|(trial, gained)| {
            trial.candidate.shares_structure(&plain.candidate) && **gained > (1.0 + EQUAL) * score
        })
        .map(|(trial, gained)| (*gained, trial))
        .collect();
    paid.sort_by(|a, b| a.0.total_cmp(&b.0)); // of one part, the best change is last
    let all = paid.iter().fold(plain.candidate, |candidate, (_, trial)| {
        candidate.with_change(&plain.candidate, &trial.candidate)
    });
    Some(all)
}

/// The candidate with the fewest changes among those that cannot be told from the best.
fn simplest<K: BenchKey + ?Sized>(lab: &Lab<'_, K>, trials: &[Trial<K>]) -> usize {
    let scores = scores(lab.plan.goal, trials);
    let top = (0..trials.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])).unwrap_or(0);
    let equals = |at: &usize| {
        scores[*at] >= (1.0 - EQUAL) * scores[top]
            || advantage(lab.plan.goal, &trials[*at], &trials[top])
                .is_none_or(|ratio| ratio.low <= 1.0 && ratio.high >= 1.0)
    };
    let close = |at: &usize| scores[*at] >= CLOSE * scores[top];
    let least = |at: &usize| (trials[*at].candidate.changes(), scores[*at].recip().to_bits());
    (0..trials.len()).filter(close).filter(equals).min_by_key(least).unwrap_or(top)
}
