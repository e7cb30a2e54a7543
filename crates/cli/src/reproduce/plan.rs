//! The configuration of a reproduction: the command line, checked.

use super::Experiment;
use super::evidence::Level;
use crate::flags::error::Error;
use crate::flags::reproduce::ReproduceArgs;
use crate::flags::sync::Sync;
use crate::flags::values::{list, number, seed, single};
use silvics_layout::{Cache, Entries, Machine, Tlb};
use silvics_workload::KEYS_MAX;

/// The experiments to reproduce, and how thoroughly.
#[derive(Clone, Debug)]
pub struct Plan {
    pub levels: Vec<Level>,
    /// The number of keys, instead of the experiment's own.
    pub keys: Option<usize>,
    pub quick: bool,
    pub seed: u64,
    /// The lock teleportation of tries, if one is requested: optimistic, or by hardware
    /// transactions.
    pub sync: Option<Sync>,
    /// The machine of the model, if one is requested instead of the source's.
    pub asked: Option<String>,
    /// The machine of the model.
    pub machine: Machine,
}

/// The divisor of a quick run, for the number of keys and for the last level of the model. The same
/// part of a tree then fits into that level.
pub const QUICK: usize = 16;

/// The machine of the model before an experiment names another.
const USUAL: &str = "haswell";

impl Plan {
    /// Reads the flags.
    pub fn new(args: &ReproduceArgs) -> Result<Self, Error> {
        let keys = |text: &String| single("--keys", text, |text| number(text, 1000, KEYS_MAX / 2));
        let asked = args.machine.clone();
        Ok(Self {
            levels: list("--level", &args.level, level)?,
            keys: args.keys.as_ref().map(keys).transpose()?,
            quick: args.quick,
            seed: single("--seed", &args.seed, seed)?,
            sync: None,
            machine: machine(asked.as_deref().unwrap_or(USUAL), args.quick)?,
            asked,
        })
    }

    /// The plan with the machine of this name, unless another one is requested.
    pub fn on(self, source: &str) -> Result<Self, Error> {
        let machine = machine(self.asked.as_deref().unwrap_or(source), self.quick)?;
        Ok(Self { machine, ..self })
    }

    /// The number of keys to use for an experiment that has `usual` keys.
    pub fn keys(&self, usual: usize) -> usize {
        self.keys.unwrap_or(if self.quick { usual / QUICK } else { usual })
    }
}

fn level(text: &str) -> Result<Level, String> {
    match text {
        "fact" | "facts" => Ok(Level::Fact),
        "model" => Ok(Level::Model),
        "clock" => Ok(Level::Clock),
        _ => Err(format!("`{text}` is not a level of evidence: choose facts, model or clock")),
    }
}

fn machine(name: &str, quick: bool) -> Result<Machine, Error> {
    let machine = Machine::named(name).map_err(|error| Error::value("--machine", error))?;
    smaller(machine, if quick { QUICK } else { 1 })
}

/// The machine with a part of its second level of translations, for a tree that has fewer pages by
/// the same factor. The first level stays as it is, because a single lookup needs as many
/// translations as before.
pub fn fewer_translations(machine: Machine, part: usize) -> Machine {
    let table = |Entries { entries, ways }| {
        let entries = (entries / part).max(1);
        let ways = ways.min(entries);
        Entries { entries: entries / ways * ways, ways }
    };
    let [first, second] = machine.tlb;
    let second = match second {
        Tlb::Split { small, huge } => Tlb::Split { small: table(small), huge },
        Tlb::Small(small) => Tlb::Small(table(small)),
        Tlb::Shared(both) => Tlb::Shared(table(both)),
    };
    Machine { tlb: [first, second], ..machine }
}

/// The machine with a part of its last level.
pub fn smaller(machine: Machine, part: usize) -> Result<Machine, Error> {
    let llc = Cache { bytes: machine.llc.bytes / part, ..machine.llc };
    let smaller = Machine { llc, ..machine };
    // Setting the hash that it has checks the whole.
    smaller.with_llc_hash(llc.hash).map_err(|error| {
        let problem = format!("with a last level {part} times smaller, {error}: choose another");
        Error::value("--machine", problem)
    })
}

/// The experiments that are named, each once, or all, in the order of their names.
pub fn chosen(
    args: &ReproduceArgs,
    all: impl Iterator<Item = &'static Experiment> + Clone,
) -> Result<Vec<&'static Experiment>, Error> {
    let names = &args.experiments;
    if args.all && !names.is_empty() {
        let remedy = "name some experiments, or run all of them";
        return Err(Error::Conflict { flag: "--all", other: "EXPERIMENT", remedy });
    }
    for name in names {
        if !all.clone().any(|experiment| experiment.name == name) {
            return Err(unknown(name, all));
        }
    }
    Ok(all.filter(|one| args.all || names.iter().any(|name| name == one.name)).collect())
}

fn unknown(name: &str, mut all: impl Iterator<Item = &'static Experiment>) -> Error {
    let number = name.rsplit('/').next().unwrap_or(name);
    let remedy = match all.find(|experiment| experiment.name.ends_with(&format!("/{number}"))) {
        Some(experiment) => format!("did you mean `{}`?", experiment.name),
        None => "`silvics reproduce` alone lists all experiments".into(),
    };
    Error::value("EXPERIMENT", format!("`{name}` is not an experiment: {remedy}"))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use silvics_layout::{Level as CacheLevel, Model};

    /// The arguments of a command line without flags.
    pub fn args() -> ReproduceArgs {
        ReproduceArgs {
            experiments: Vec::new(),
            all: false,
            html: None,
            part: crate::flags::shard::ShardArgs::default(),
            level: "facts,model,clock".into(),
            keys: None,
            quick: false,
            machine: None,
            with_erlang: false,
            svg: None,
            db_bench: None,
            load_only: None,
            sync: crate::flags::args::SyncArgs::default(),
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
            let machine = Some(name.to_owned());
            let plan = Plan::new(&ReproduceArgs { machine, quick: true, ..args() }).unwrap();
            let smaller = fewer_translations(plan.machine, QUICK);
            assert!(Model::new(&smaller).is_ok(), "{name}: {smaller:?}");
        }
    }

    #[test]
    fn translations_are_fewer_in_the_second_level() {
        let machine = Machine::named("i7-2630qm").unwrap();
        let fewer = fewer_translations(machine, QUICK);
        let second = Tlb::Small(Entries { entries: 32, ways: 4 });
        assert_eq!(fewer, Machine { tlb: [machine.tlb[0], second], ..machine });
    }

    #[test]
    fn an_experiment_has_the_machine_of_its_source_unless_another_is_asked_for() {
        let name = |machine: Option<&str>| {
            let machine = machine.map(str::to_owned);
            let plan = Plan::new(&ReproduceArgs { machine, ..args() }).unwrap();
            plan.on("i7-2630qm").unwrap().machine.name
        };
        assert_eq!((name(None), name(Some("zen4"))), ("i7-2630qm", "zen4"));
    }
}
