//! The result of an experiment, as a table or as JSON.

use super::Experiment;
use super::evidence::{Evidence, Level, Verdict, verdict};
use super::heat::HeatMap;
use super::lab::Lab;
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::sync::Sync;
use crate::flags::units::Bytes;
use crate::host::machine::Machine;
use crate::output;
use serde::Serialize;
use std::fmt::{Display, Write};

/// The result of an experiment.
#[derive(Debug, Serialize)]
pub struct Report {
    pub experiment: &'static str,
    pub title: &'static str,
    pub source: &'static str,
    /// The claim of the source, in the source's numbers.
    pub claim: &'static str,
    pub carried_by: &'static str,
    pub seen_if: &'static str,
    /// Whether a part of the claim needs other hardware than a small virtual machine.
    pub elsewhere: bool,
    /// The machine that the experiment ran on.
    pub machine: Machine,
    pub model: ModelMachine,
    pub config: Config,
    pub evidence: Vec<Evidence>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maps: Vec<HeatMap>,
    pub verdict: Verdict,
    /// The lines that differ from the source's result, though the verdict does not depend on them.
    pub except: Vec<String>,
    /// The parts of the claim that cannot be shown, with the reasons.
    pub cannot_show: Vec<String>,
    /// The reason why the run failed, if it did. There is no evidence then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The machine of the model.
#[derive(Debug, Serialize)]
pub struct ModelMachine {
    pub name: &'static str,
    pub source: &'static str,
    pub llc_bytes: usize,
}

/// The configuration of the run.
#[derive(Debug, Serialize)]
pub struct Config {
    pub levels: Vec<Level>,
    /// The number of keys of all experiments, if one was requested.
    pub keys: Option<usize>,
    pub quick: bool,
    pub seed: u64,
    /// The requested synchronisation of tries.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sync: Option<&'static str>,
}

impl Report {
    /// The report on an experiment whose run failed.
    pub fn failed(experiment: &Experiment, lab: &mut Lab, error: &dyn Display) -> Self {
        let mut report = Self::new(experiment, lab, Vec::new());
        let reason = format!("the run failed: {error}");
        (report.cannot_show, report.failed) = (vec![reason], Some(error.to_string()));
        report
    }

    /// Judges the evidence. Takes the maps of the lab.
    pub fn new(experiment: &Experiment, lab: &mut Lab, evidence: Vec<Evidence>) -> Self {
        let maps = std::mem::take(&mut lab.maps);
        let plan = &lab.plan;
        let mut cannot_show: Vec<String> =
            experiment.cannot_show.iter().map(|text| (*text).to_owned()).collect();
        let missing = evidence.iter().filter(|line| line.verdict == Verdict::CannotBeShown);
        for line in missing {
            let text = format!("{}: {}", line.what, line.found);
            if !cannot_show.contains(&text) {
                cannot_show.push(text);
            }
        }
        if !evidence.iter().any(|line| line.decides) {
            cannot_show.push("--level leaves out what the verdict rests on".into());
        }
        let different = |line: &&Evidence| {
            !line.decides && matches!(line.verdict, Verdict::NotSeen | Verdict::Contradicted)
        };
        let except = evidence.iter().filter(different);
        let except = except.map(|line| format!("{}: {}", line.what, line.verdict.name()));
        Self {
            experiment: experiment.name,
            title: experiment.title,
            source: experiment.source,
            claim: experiment.claim,
            carried_by: experiment.carried_by,
            seen_if: experiment.seen_if,
            elsewhere: experiment.elsewhere,
            machine: lab.machine.clone(),
            model: ModelMachine {
                name: plan.machine.name,
                source: plan.machine.source,
                llc_bytes: plan.machine.llc.bytes,
            },
            config: Config {
                levels: plan.levels.clone(),
                keys: plan.keys,
                quick: plan.quick,
                seed: plan.seed,
                sync: plan.sync.map(Sync::name),
            },
            verdict: verdict(&evidence),
            except: except.collect(),
            cannot_show,
            evidence,
            maps,
            failed: None,
        }
    }
}

impl Report {
    /// See [`outcome`].
    pub fn outcome(&self) -> String {
        let is_decided = self.evidence.iter().any(|line| line.decides);
        let levels: Vec<&str> = self.config.levels.iter().map(|level| level.name()).collect();
        outcome(self.failed.as_deref(), is_decided, self.verdict.name(), &levels)
    }
}

/// The verdict of a result, or the reason why there is none: on the page, in the table, and in
/// docs/experiments.md. `is_decided` says whether a line of evidence decides. `levels` are those of
/// the run.
pub fn outcome(failed: Option<&str>, is_decided: bool, verdict: &str, levels: &[&str]) -> String {
    const LEVELS: [(Level, &str); 3] =
        [(Level::Fact, "facts"), (Level::Model, "the model"), (Level::Clock, "the clock")];
    if let Some(reason) = failed {
        return format!("none: the run failed ({reason})");
    }
    let missing = LEVELS.iter().filter(|(level, _)| !levels.contains(&level.name()));
    let missing: Vec<&str> = missing.map(|(_, name)| *name).collect();
    if is_decided || missing.is_empty() {
        return verdict.into();
    }
    format!("none without {}", missing.join(" and "))
}

/// Prints the result of an experiment.
pub fn print(report: &Report, format: Format) -> Result<(), Error> {
    match format {
        Format::Json => output::json_line(report),
        _ => output::text(&text(report)),
    }
}

fn text(report: &Report) -> String {
    let mut text = format!("{} {}\n", report.experiment, report.title);
    let _ = writeln!(text, "source: {}", report.source);
    let _ = writeln!(text, "claim (numbers are the source's): {}", report.claim);
    let (model, config) = (&report.model, &report.config);
    let llc = Bytes(model.llc_bytes);
    let _ = writeln!(text, "machine: {}", report.machine);
    let _ = writeln!(text, "model: {}, {llc} of last level; seed {}", model.name, config.seed);
    if let Some(sync) = config.sync {
        let _ = writeln!(text, "lock teleportation: {sync}");
    }
    let header = ["level", "what", "expected", "found", "verdict"];
    let mut table = output::table(&header);
    for line in &report.evidence {
        let aside = if line.decides { "" } else { " (aside)" };
        table.add_row([
            line.level.name().to_owned(),
            line.what.clone(),
            line.expected.clone(),
            line.found.clone(),
            format!("{}{aside}", line.verdict.name()),
        ]);
    }
    let _ = writeln!(text, "\n{table}\n");
    for map in &report.maps {
        let _ = writeln!(text, "{}", map.table());
    }
    let _ = writeln!(text, "verdict: {}", report.outcome());
    for line in &report.except {
        let _ = writeln!(text, "  but {line}");
    }
    for line in &report.cannot_show {
        let _ = writeln!(text, "  cannot be shown here: {line}");
    }
    text.push('\n');
    text
}

#[derive(Serialize)]
struct Listed {
    experiment: &'static str,
    title: &'static str,
    source: &'static str,
    claim: &'static str,
}

#[derive(Serialize)]
struct List {
    experiments: Vec<Listed>,
}

/// Prints the list of experiments.
pub fn list(all: impl Iterator<Item = &'static Experiment>, format: Format) -> Result<(), Error> {
    let listed = all.map(|experiment| Listed {
        experiment: experiment.name,
        title: experiment.title,
        source: experiment.source,
        claim: experiment.claim,
    });
    if format == Format::Json {
        return output::json(&List { experiments: listed.collect() });
    }
    let mut table = output::table(&["experiment", "title", "source"]);
    for one in listed {
        table.add_row([one.experiment, one.title, one.source]);
    }
    output::text(&format!("{table}\n"))
}
