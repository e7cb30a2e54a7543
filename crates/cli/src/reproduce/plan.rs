//! What is to be reproduced: the command line, checked.

use super::Experiment;
use super::evidence::Level;
use crate::args::ReproduceArgs;
use crate::error::Error;
use crate::flags::{list, number, seed, single};
use silvics_layout::{Cache, Machine};
use silvics_workload::KEYS_MAX;

/// What to reproduce, and how thoroughly.
#[derive(Clone, Debug)]
pub struct Plan {
    pub levels: Vec<Level>,
    /// Instead of the number of keys that an experiment has.
    pub keys: Option<usize>,
    pub quick: bool,
    pub seed: u64,
    /// The machine of the model.
    pub machine: Machine,
}

/// By how much a quick run is smaller: in keys, and in the last level of the model, so that as large a
/// part of a tree fits into it.
const QUICK: usize = 16;

impl Plan {
    /// Reads the flags.
    pub fn new(args: &ReproduceArgs) -> Result<Self, Error> {
        let keys = |text: &String| single("--keys", text, |text| number(text, 1000, KEYS_MAX / 2));
        let machine =
            Machine::named(&args.machine).map_err(|error| Error::value("--machine", error))?;
        Ok(Self {
            levels: list("--level", &args.level, level)?,
            keys: args.keys.as_ref().map(keys).transpose()?,
            quick: args.quick,
            seed: single("--seed", &args.seed, seed)?,
            machine: smaller(machine, if args.quick { QUICK } else { 1 })?,
        })
    }

    /// How many keys, where an experiment has so many.
    pub fn keys(&self, usual: usize) -> usize {
        self.keys.unwrap_or(if self.quick { usual / QUICK } else { usual })
    }
}

fn level(text: &str) -> Result<Level, String> {
    match text {
        "fact" | "facts" => Ok(Level::Fact),
        "model" => Ok(Level::Model),
        "clock" => Ok(Level::Clock),
        _ => Err(format!("`{text}` is no level of evidence: choose facts, model or clock")),
    }
}

/// The same machine with a part of its last level.
pub fn smaller(machine: Machine, part: usize) -> Result<Machine, Error> {
    let llc = Cache { bytes: machine.llc.bytes / part, ..machine.llc };
    let smaller = Machine { llc, ..machine };
    // Setting the hash that it has checks the whole.
    smaller.with_llc_hash(llc.hash).map_err(|error| {
        let problem = format!("with a last level {part} times smaller, {error}: choose another");
        Error::value("--machine", problem)
    })
}

/// The experiments that are named, each once, in the order of their names.
pub fn chosen(
    names: &[String],
    all: &'static [Experiment],
) -> Result<Vec<&'static Experiment>, Error> {
    for name in names {
        if !all.iter().any(|experiment| experiment.name == name) {
            return Err(unknown(name, all));
        }
    }
    Ok(all.iter().filter(|one| names.iter().any(|name| name == one.name)).collect())
}

fn unknown(name: &str, all: &[Experiment]) -> Error {
    let number = name.rsplit('/').next().unwrap_or(name);
    let close = all.iter().find(|experiment| experiment.name.ends_with(&format!("/{number}")));
    let remedy = match close {
        Some(experiment) => format!("did you mean `{}`?", experiment.name),
        None => "`silvics reproduce` alone lists what there is".into(),
    };
    Error::value("EXPERIMENT", format!("`{name}` is no experiment: {remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use silvics_layout::Level as CacheLevel;

    fn args() -> ReproduceArgs {
        ReproduceArgs {
            experiments: Vec::new(),
            level: "facts,model,clock".into(),
            keys: None,
            quick: false,
            machine: "haswell".into(),
            seed: "1".into(),
            format: "table".into(),
        }
    }

    #[test]
    fn quick_runs_keep_the_proportions() {
        let whole = Plan::new(&args()).unwrap();
        let quick = Plan::new(&ReproduceArgs { quick: true, ..args() }).unwrap();
        let ratio = |plan: &Plan| plan.keys(1 << 20) / plan.machine.sets(CacheLevel::Llc).sets;
        assert_eq!((ratio(&whole), whole.machine.sets(CacheLevel::Llc).sets), (42, 12 * 2048));
        assert_eq!((ratio(&quick), quick.machine.sets(CacheLevel::Llc).sets), (42, 12 * 128));
        let keys = Plan::new(&ReproduceArgs { keys: Some("20k".into()), ..args() }).unwrap();
        assert_eq!(keys.keys(1 << 20), 20_000);
    }

    #[test]
    fn presets_can_be_smaller() {
        for name in Machine::NAMES.into_iter().filter(|name| *name != "host") {
            let plan = Plan::new(&ReproduceArgs { machine: name.into(), quick: true, ..args() });
            assert!(plan.is_ok(), "{name}: {plan:?}");
        }
    }
}
