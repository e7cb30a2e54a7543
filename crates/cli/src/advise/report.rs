//! The advice, as data.

use super::candidates::{Candidate, Goal, Need};
use super::exhaustive::Exhaustive;
use super::forecast::{Forecast, Why};
use super::lab::{Lab, Trial, advantage, fastest, rate_ratio, scores};
use super::plan::{Keys, Plan};
use super::rust;
use super::search::Found;
use crate::drive::keys::BenchKey;
use crate::drive::stats::{self, Interval};
use crate::flags::units::plural;
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
    /// Measured with all keys, and no other finalist may be as good, or is better by more than its
    /// changes are worth.
    Sure,
    /// Others are as good, as far as the rounds tell.
    AmongEquals,
    /// Measured with fewer keys or operations than there are, or in too few rounds.
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
            bytes_per_key: trial.bytes_per_key(),
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
    let rounds = advice.rates.len();
    let mut because = vec![beside_next(lab, found, advice, next)];
    if lab.plan.needs.iter().any(|need| *need != Need::Ends) {
        because.push("what --needs names chose the structures, and was not measured".into());
    }
    let rivals = Rivals::of(lab.plan.goal, found, advice);
    let is_alone = rivals.equal.is_empty() && rivals.share_of_fastest.is_none();
    rivals.tell(&mut because);
    let few = found.keys < lab.keys();
    if few {
        because.push(format!(
            "{} of the {} keys were measured, because more did not fit into the budget or the memory",
            found.keys,
            lab.keys()
        ));
    }
    let share = lab.plan.share();
    if share < 1.0 {
        because.push(format!(
            "the first {:.0} % of the operations of the trace were measured: more do not fit into the \
             budget",
            100.0 * share
        ));
    }
    if rounds < ROUNDS_WANTED {
        because.push(format!("the budget was spent after {rounds} final round{}", plural(rounds)));
    }
    let (spent, budget) = (lab.spent(), lab.plan.budget.as_secs_f64());
    if spent > budget {
        because.push(format!("it took {spent:.1} s of a budget of {budget} s"));
    }
    let how_sure = match (few || share < 1.0 || rounds < ROUNDS_WANTED, is_alone) {
        (true, _) => HowSure::Extrapolated,
        (false, true) => HowSure::Sure,
        (false, false) => HowSure::AmongEquals,
    };
    (how_sure, because)
}

/// How good the advice is beside the next structure.
fn beside_next<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    found: &Found<K>,
    advice: &Trial<K>,
    next: Option<&Next>,
) -> String {
    let Some(Next { candidate, ratio: Interval { median, low, high } }) = next else {
        let is_other = |trial: &Trial<K>| !trial.candidate.shares_structure(&advice.candidate);
        return if !found.structures.iter().any(is_other) {
            "no other structure has what is needed".into()
        } else if found.finalists.iter().any(is_other) {
            "the other finalists have less than half of the rate of the fastest".into()
        } else {
            "all other structures were left behind before the final rounds".into()
        };
    };
    let rounds = advice.rates.len();
    match lab.plan.goal {
        Goal::Memory => {
            format!("the next structure, {candidate}, takes {median:.2} times its bytes")
        }
        Goal::Speed if rounds == 1 => format!(
            "its rate is {median:.2} times that of the next structure, {candidate}, in one round"
        ),
        Goal::Speed => format!(
            "its rate is {median:.2} times that of the next structure, {candidate} ({low:.2} to \
             {high:.2} with {:.0} % over {rounds} rounds)",
            100.0 * stats::coverage(rounds)
        ),
    }
}

/// The finalists that are as good as the advice, or better.
struct Rivals {
    /// Those that the rounds cannot tell from it.
    equal: Vec<String>,
    /// Those that are better by too little.
    better: Vec<(String, Interval)>,
    /// The rate of the advice over that of the fastest, if it may be below the half that the goal
    /// of memory asks for.
    share_of_fastest: Option<Interval>,
}

impl Rivals {
    fn of<K: BenchKey + ?Sized>(goal: Goal, found: &Found<K>, advice: &Trial<K>) -> Self {
        /// Bytes that differ by less are as good.
        const SAME_BYTES: f64 = 0.02;
        let tie = if goal == Goal::Memory { SAME_BYTES } else { 0.0 };
        let (mut equal, mut better) = (Vec::new(), Vec::new());
        for (trial, score) in found.finalists.iter().zip(scores(goal, &found.finalists)) {
            let Some(ratio) = advantage(goal, trial, advice) else { continue };
            if trial.candidate == advice.candidate || score <= 0.0 || ratio.high < 1.0 - tie {
                continue;
            }
            let name = trial.candidate.to_string();
            if ratio.low > 1.0 + tie {
                better.push((name, ratio));
            } else {
                equal.push(name);
            }
        }
        let fastest = fastest(&found.finalists).filter(|_| goal == Goal::Memory);
        let share = fastest.and_then(|fastest| rate_ratio(advice, fastest));
        Self { equal, better, share_of_fastest: share.filter(|share| share.low < 0.5) }
    }

    fn tell(&self, because: &mut Vec<String>) {
        if !self.equal.is_empty() {
            because.push(format!("as good, as far as the rounds tell: {}", self.equal.join("; ")));
        }
        for (name, Interval { median, low, high }) in &self.better {
            because.push(format!(
                "{name} is {median:.2} times as good ({low:.2} to {high:.2}), which is too little for what \
                 a program must change for it"
            ));
        }
        if let Some(Interval { median, low, high }) = self.share_of_fastest {
            because.push(format!(
                "its rate is {median:.2} of that of the fastest finalist ({low:.2} to {high:.2}), so it may be \
                 below a half"
            ));
        }
    }
}
