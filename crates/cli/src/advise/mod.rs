//! `silvics advise`: which index for a workload, where its nodes lie, and how it is called.
//!
//! # Definitions
//! * A *candidate* is a structure, the place of its nodes with their pages, how it counts its keys,
//!   and the number of keys of a call.
//! * The *usual* candidate is what `Map::new()` gives: `words` for integers, `blocks` for byte
//!   strings, in pools on huge pages, one key at a time. With needs that few maps meet, it is the
//!   first of those maps.
//! * The *rate* of a candidate is its operations per second. The *score* of a candidate is its
//!   rate, or with `--goal memory` one over its bytes, of candidates with half the rate of the
//!   fastest.
//!
//! # Algorithm
//! Measuring every candidate would take minutes, and most structures are far behind. So the search
//! drops candidates in four stages, each with more keys and more rounds than the one before
//! (successive halving: Jamieson and Talwalkar, AISTATS 2016):
//! ```text
//! glance      every structure that can do what is needed, in its usual place, with few keys
//! structures  those with at least a third of the best score, with all keys, in turns
//! places      the best of them and every change of one part: place, pages, counting, batch
//! final       the best candidates, the usual one, and the best one with all changes that paid, in turns
//!             on fresh indexes until the budget is spent
//! ```
//! The keys of a stage are halved until its loads, by the rates of the loads so far, fit into its
//! share of the budget. The usual candidate is in every stage. The advice is the candidate with the
//! fewest changes among those that the final round cannot tell from the best.
//!
//! # Prediction
//! `forecast` records what lookups of the leading structures read, and replays that in a model of
//! this machine (`silvics_layout::Model`) and in one whose caches and translations are a tenth. A
//! tree with ten times the keys misses in the whole caches as often as this one misses in a tenth.
//! The difference in modelled cycles, times the cost of a modelled cycle that two measured sizes
//! show, is added to the measured time.
//!
//! # Checked by
//! `--exhaustive` measures every candidate and ten times the keys; docs/advise.md has the workloads
//! on which the advice is held against that, and against constant advice.
//!
//! | module | holds |
//! |---|---|
//! | `plan` | the workload and the budget |
//! | `candidates` | the candidates, and the changes between them |
//! | `lab` | loads and runs of candidates, in turns |
//! | `search` | the stages |
//! | `forecast` | the prediction |
//! | `exhaustive` | what would have been best |
//! | `report`, `render`, `rust` | the advice as data, as text, and as Rust |

mod candidates;
mod exhaustive;
mod forecast;
mod lab;
mod plan;
mod render;
mod report;
mod rust;
mod search;

use crate::drive::keys::BenchKey;
use crate::drive::subject::Crew;
use crate::flags::advise::AdviseArgs;
use crate::flags::error::Error;
use crate::flags::types::KeyType;
use crate::host::machine::Machine;
use crate::interrupt;
use crate::progress::Progress;
use lab::Lab;
use plan::{Keys, Plan};
use report::Report;
use std::time::Instant;

/// Advises.
pub fn advise(args: &AdviseArgs) -> Result<(), Error> {
    let began = Instant::now();
    let crew = Crew::new();
    let plan = Plan::new(args, crew.threads)?;
    let crew = crew.running(plan.threads);
    interrupt::catch();
    let report = match plan.key_type {
        KeyType::U64 => advised::<u64>(&plan, &crew, began)?,
        KeyType::U128 => advised::<u128>(&plan, &crew, began)?,
        KeyType::Bytes | KeyType::String => advised::<[u8]>(&plan, &crew, began)?,
    };
    report.print(plan.format)
}

fn advised<K: BenchKey + ?Sized>(
    plan: &Plan,
    crew: &Crew,
    began: Instant,
) -> Result<Report, Error> {
    let space = whole_space::<K>(plan)?;
    let progress = Progress::new(search::STAGES);
    let mut lab = Lab::<K>::new(plan, crew, space, &progress, began)?;
    let mut report = Report::new(plan, Machine::this(crew.threads), lab.keys());
    let found = search::search(&mut lab)?;
    let forecast = forecast::forecast(&mut lab, &found)?;
    let findings = findings(&lab, &found, forecast.seconds)?;
    report.answer(&lab, found, forecast, findings);
    if plan.exhaustive {
        report.exhaustive = Some(exhaustive::measure(&mut lab, &report)?);
    }
    Ok(report)
}

/// The findings about the advice, and about the best finalist with another structure, as far as the
/// budget allows. `seconds` is the time that the prediction for a structure took: an examination
/// takes about as long.
fn findings<K: BenchKey + ?Sized>(
    lab: &Lab<'_, K>,
    found: &search::Found<K>,
    seconds: f64,
) -> Result<Vec<forecast::Why>, Error> {
    if let Keys::Trace(_) = lab.plan.source {
        return Ok(Vec::new()); // an inspection looks up keys of a distribution
    }
    let advice = found.finalists[found.advice].candidate;
    let others = found.finalists.iter().filter(|trial| !trial.candidate.shares_structure(&advice));
    let next = others.max_by(|a, b| a.rate().total_cmp(&b.rate())).map(|trial| trial.candidate);
    let mut findings = Vec::new();
    for candidate in std::iter::once(advice).chain(next) {
        if lab.left() > seconds {
            findings.extend(forecast::findings(lab, candidate)?);
        }
    }
    Ok(findings)
}

/// The key space of all keys.
fn whole_space<K: BenchKey + ?Sized>(plan: &Plan) -> Result<K::Space, Error> {
    Ok(match &plan.source {
        Keys::Generated => K::generate(plan.dist, 2 * plan.keys, plan.key_type),
        Keys::Set(set) => K::of_set(*set, 2 * plan.keys, plan.seed),
        Keys::File(file) => file.read::<K>(&[plan.dist])?.0,
        Keys::Trace(trace) => match K::of_trace(&trace.keys) {
            Some(space) => space,
            None => unreachable!("the type of keys is that of the trace"),
        },
    })
}
