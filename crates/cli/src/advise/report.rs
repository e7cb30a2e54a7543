//! The advice, as data.

use super::candidates::Candidate;
use super::candidates::Goal;
use super::exhaustive::Exhaustive;
use super::forecast::{Forecast, Why};
use super::lab::{Lab, Trial, advantage, rate_ratio, scores};
use super::plan::{Keys, Plan};
use super::rust;
use super::search::Found;
use crate::drive::keys::BenchKey;
use crate::drive::stats::{self, Interval};
use crate::host::machine::Machine;
use serde::Serialize;

/// The advice and what it rests on.
#[derive(Serialize)]
pub struct Report {
    pub machine: Machine,
    pub workload: Workload,
    pub advice: Option<Advice>,
    /// The finalists, as measured in turns.
    pub finalists: Vec<Row>,
    /// Every structure, from the fastest.
    pub structures: Vec<Row>,
    pub forecast: Forecast,
    /// Why: findings about the layout of the advice and of the next structure.
    pub findings: Vec<Why>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exhaustive: Option<Exhaustive>,
}

/// The workload.
#[derive(Serialize)]
pub struct Workload {
    pub key_type: &'static str,
    pub source: &'static str,
    /// The keys that are present.
    pub keys: usize,
    pub dist: String,
    pub mix: String,
    pub scan_length: Option<usize>,
    pub threads: usize,
    pub batch: usize,
    pub needs: Vec<&'static str>,
    pub goal: &'static str,
    pub budget_seconds: f64,
    pub seed: u64,
}

/// The candidate to take.
#[derive(Serialize)]
pub struct Advice {
    pub candidate: String,
    pub index: String,
    pub placement: &'static str,
    pub pages: String,
    pub counting: &'static str,
    pub batch: usize,
    /// Whether it is the usual candidate: what `Map::new()` gives, or the usual map with what is
    /// needed, one key at a time.
    pub usual: bool,
    /// The rate over that of the usual candidate.
    pub to_usual: Option<Interval>,
    /// The best candidate with another structure.
    pub next: Option<Next>,
    pub how_sure: HowSure,
    /// The reasons of that, one sentence each.
    pub because: Vec<String>,
    pub rust: [String; 3],
    /// The keys with which the finalists were measured.
    pub keys: usize,
    /// The candidates that were measured, the seconds it took, and the rounds of the finalists.
    pub candidates: usize,
    pub seconds: f64,
    pub rounds: usize,
    #[serde(skip)]
    pub of: Candidate,
}

/// The best candidate with another structure.
#[derive(Serialize)]
pub struct Next {
    pub candidate: String,
    /// How good the advice is beside it: rate over rate, or its bytes over those of the advice.
    pub ratio: Interval,
}

/// How sure the advice is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HowSure {
    /// Measured with all keys, and the interval of each ratio to another finalist is above one.
    Sure,
    /// Others are as good, as far as the rounds tell.
    AmongEquals,
    /// Measured with fewer keys than there are, or in too few rounds.
    Extrapolated,
}

impl HowSure {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Sure => "sure",
            Self::AmongEquals => "one of several equals",
            Self::Extrapolated => "extrapolated",
        }
    }
}

/// A candidate that was measured.
#[derive(Serialize)]
pub struct Row {
    pub candidate: String,
    pub mops: Option<Interval>,
    pub samples: Vec<f64>,
    pub bytes_per_key: Option<f64>,
    /// The rate over that of the advice, by rounds; null where they were not in turns.
    pub to_advice: Option<Interval>,
}

impl Row {
    fn of<K: BenchKey + ?Sized>(trial: &Trial<K>, advice: Option<&Trial<K>>) -> Self {
        Self {
            candidate: trial.candidate.to_string(),
            mops: Interval::of(&trial.rates),
            samples: trial.rates.clone(),
            bytes_per_key: trial.bytes_per_key,
            to_advice: advice.and_then(|advice| rate_ratio(trial, advice)),
        }
    }
}

impl Report {
    /// An empty report.
    pub fn new(plan: &Plan, machine: Machine, keys: usize) -> Self {
        let workload = Workload {
            key_type: plan.key_type.name(),
            source: match plan.source {
                Keys::Generated => "generated",
                Keys::Set(set) => set.name(),
                Keys::File(_) => "file",
                Keys::Trace(_) => "trace",
            },
            keys,
            dist: match plan.source {
                Keys::Trace(_) => "as recorded".into(),
                _ => plan.dist.to_string(),
            },
            mix: plan.mix.to_string(),
            scan_length: plan.mix.scans().then_some(plan.scan_length),
            threads: plan.threads,
            batch: plan.batch,
            needs: plan.needs.iter().map(|need| need.name()).collect(),
            goal: plan.goal.name(),
            budget_seconds: plan.budget.as_secs_f64(),
            seed: plan.seed,
        };
        Self {
            machine,
            workload,
            advice: None,
            finalists: Vec::new(),
            structures: Vec::new(),
            forecast: Forecast::default(),
            findings: Vec::new(),
            exhaustive: None,
        }
    }

    /// Enters what the search and the prediction found.
    pub fn answer<K: BenchKey + ?Sized>(
        &mut self,
        lab: &Lab<'_, K>,
        mut found: Found<K>,
        forecast: Forecast,
        findings: Vec<Why>,
    ) {
        let advice = &found.finalists[found.advice];
        self.advice = Some(Advice::of(lab, &found, advice));
        let scores = scores(lab.plan.goal, &found.finalists);
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|&a, &b| scores[b].total_cmp(&scores[a]));
        self.finalists =
            order.iter().map(|&at| Row::of(&found.finalists[at], Some(advice))).collect();
        found.structures.sort_by(|a, b| b.rate().total_cmp(&a.rate()));
        self.structures = found.structures.iter().map(|trial| Row::of(trial, None)).collect();
        (self.forecast, self.findings) = (forecast, findings);
    }
}

impl Advice {
    fn of<K: BenchKey + ?Sized>(lab: &Lab<'_, K>, found: &Found<K>, advice: &Trial<K>) -> Self {
        let candidate = advice.candidate;
        let usual = found.finalists.iter().find(|trial| trial.candidate.is_usual());
        let scores = scores(lab.plan.goal, &found.finalists);
        let others = found.finalists.iter().zip(&scores);
        let others = others.filter(|(trial, score)| {
            !trial.candidate.shares_structure(&candidate) && **score > 0.0
        });
        let next = others.max_by(|a, b| a.1.total_cmp(b.1)).map(|(trial, _)| trial);
        let next = next.and_then(|next| {
            let ratio = advantage(lab.plan.goal, advice, next)?;
            Some(Next { candidate: next.candidate.to_string(), ratio })
        });
        let (how_sure, because) = how_sure(lab, found, advice, next.as_ref());
        Self {
            candidate: candidate.to_string(),
            index: candidate.chosen.name(),
            placement: candidate.place.name(),
            pages: candidate.place.pages(),
            counting: if candidate.counting == silvics::Counting::Single {
                "single"
            } else {
                "striped"
            },
            batch: candidate.batch,
            usual: candidate.is_usual(),
            to_usual: usual.and_then(|usual| rate_ratio(advice, usual)),
            next,
            how_sure,
            because,
            rust: rust::lines(&candidate, lab.plan),
            keys: found.keys,
            candidates: found.measured,
            seconds: lab.spent(),
            rounds: advice.rates.len(),
            of: candidate,
        }
    }
}

/// How sure the advice is, and why.
fn how_sure<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    found: &Found<K>,
    advice: &Trial<K>,
    next: Option<&Next>,
) -> (HowSure, Vec<String>) {
    const ROUNDS_WANTED: usize = 5;
    let mut because = Vec::new();
    let goal = lab.plan.goal;
    let scores = scores(goal, &found.finalists);
    let equals: Vec<String> = found
        .finalists
        .iter()
        .zip(&scores)
        .filter(|(trial, score)| trial.candidate != advice.candidate && **score > 0.0)
        .filter(|(trial, _)| advantage(goal, trial, advice).is_some_and(|ratio| ratio.high >= 1.0))
        .map(|(trial, _)| trial.candidate.to_string())
        .collect();
    let rounds = advice.rates.len();
    because.push(match (next, goal) {
        (None, _) => "all other structures were left behind before the final rounds".into(),
        (Some(Next { candidate, ratio }), Goal::Memory) => {
            format!("the next structure, {candidate}, takes {:.2} times its bytes", ratio.median)
        }
        (Some(Next { candidate, ratio }), Goal::Speed) => format!(
            "its rate is {:.2} times that of the next structure, {candidate} ({:.2} to {:.2} with {:.0} % \
             over {rounds} rounds)",
            ratio.median,
            ratio.low,
            ratio.high,
            100.0 * stats::coverage(rounds)
        ),
    });
    if !equals.is_empty() {
        because.push(format!("as good, as far as the rounds tell: {}", equals.join("; ")));
    }
    let few = found.keys < lab.keys();
    if few {
        because.push(format!(
            "{} of the {} keys were measured, because more did not fit into the budget or the memory",
            found.keys,
            lab.keys()
        ));
    }
    if rounds < ROUNDS_WANTED {
        because.push(format!("the budget was spent after {rounds} final rounds"));
    }
    let how_sure = match (few || rounds < ROUNDS_WANTED, equals.is_empty()) {
        (true, _) => HowSure::Extrapolated,
        (false, true) => HowSure::Sure,
        (false, false) => HowSure::AmongEquals,
    };
    (how_sure, because)
}
