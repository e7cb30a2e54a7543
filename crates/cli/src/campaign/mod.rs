//! Campaigns: the parts of a measurement on several machines, and their collection.
//!
//! # Design
//! 1. A *unit* is a configuration whose contenders are compared with each other. They take turns in
//!    one process, so a unit is never divided. A verb implements [`Campaign`] for its units.
//! 2. Units have a fixed order. Part I of N has each unit whose number, from 0, is I − 1 modulo N.
//! 3. A part writes a file of JSON lines ([`file`]): a head ([`head::Head`]), then a line for each
//!    unit, whole and synced, when the unit has ended. It has the rows of the verb's report.
//! 4. A part that is started again leaves out the units that have lines. It goes on only with the
//!    same verb, flags, build and machine.
//! 5. `silvics collect` ([`collected`]) checks that all parts are of one campaign and that no unit
//!    is there twice. It makes the verb's plan of the flags in the head, adds the rows to its
//!    report in the order of the units, and gives that to the verb's renderers.
//! 6. Without `--shard` no verb calls this module.
//!
//! | module | holds |
//! |---|---|
//! | `shard` | I/N, and its units |
//! | `head` | the first line of a part, and the comparison of two |
//! | `file` | the file of a part |
//! | `collected` | all parts |

pub mod collected;
pub mod file;
pub mod head;
pub mod shard;

use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::shard::ShardArgs;
use crate::flags::units::plural;
use crate::flags::values::{parse, single};
use crate::host::machine::Machine;
use crate::interrupt;
use crate::progress;
use collected::Collected;
use file::Output;
use head::{FORMAT, Head};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shard::Shard;

/// A verb that can be measured in parts.
pub trait Campaign: Sized {
    /// The name of the verb, which other verbs do not have.
    const VERB: &'static str;

    /// The flags of the verb. Those of outputs are not written.
    type Flags: Serialize + DeserializeOwned;

    /// The result of a unit.
    type Outcome: Serialize + DeserializeOwned;

    /// The flags that a part cannot have, because it makes no such output, or because its units
    /// would share files; and whether each is set.
    fn refused(flags: &Self::Flags) -> Vec<(&'static str, bool)>;

    /// Checks the flags. `cores` is the default number of threads.
    fn plan(flags: &Self::Flags, cores: usize) -> Result<Self, Error>;

    /// The notes that are printed before the first unit.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// The names of all units, in order. No two are the same.
    fn units(&self) -> Vec<String>;

    /// Prepares what all units need.
    fn prepare(&mut self, _flags: &Self::Flags) -> Result<(), Error> {
        Ok(())
    }

    /// Measures a unit. After an interrupt its outcome does not count.
    fn measure(&mut self, unit: usize) -> Result<Self::Outcome, Error>;

    /// Makes the report of the verb, and writes it. Returns the exit code.
    fn report(self, collected: Collected<Self::Outcome>) -> Result<u8, Error>;
}

/// Measures a part, if the flags ask for one. Returns whether the user interrupted it; `None` if
/// the flags ask for no part.
pub fn part<C: Campaign>(flags: &C::Flags, args: &ShardArgs) -> Result<Option<bool>, Error> {
    let path = match (&args.shard, &args.out) {
        (None, None) => return Ok(None),
        (Some(_), Some(path)) => path,
        (Some(_), None) => {
            return Err(Error::value("--shard", "a part needs a file: add --out FILE"));
        }
        (None, Some(_)) => {
            let problem = "is the file of a part: add --shard I/N, for example 1/1";
            return Err(Error::value("--out", problem));
        }
    };
    let shard: Shard = single("--shard", args.shard.as_deref().unwrap_or_default(), parse)?;
    if let Some((flag, _)) = C::refused(flags).into_iter().find(|(_, is_set)| *is_set) {
        let problem = "a part has no such output or file: leave it out, and name outputs to \
                       `silvics collect`";
        return Err(Error::value(flag, problem));
    }
    let cores = Crew::new().threads;
    let mut campaign = C::plan(flags, cores)?;
    let units = campaign.units();
    let head = Head {
        campaign: FORMAT,
        verb: C::VERB.into(),
        flags: written(flags)?,
        shard,
        units: units.clone(),
        machine: Machine::this(cores),
    };
    let mut output = Output::open(path, &head)?;
    let own: Vec<usize> = (0..units.len()).filter(|&unit| shard.has(unit)).collect();
    let left: Vec<usize> = own.iter().copied().filter(|unit| !output.done.contains(unit)).collect();
    progress::note(&format!(
        "part {shard} has {} of {} units, {} of which {} left",
        own.len(),
        units.len(),
        left.len(),
        if left.len() == 1 { "is" } else { "are" },
    ));
    campaign.notes().iter().for_each(|note| progress::note(note));
    interrupt::catch();
    if !left.is_empty() {
        campaign.prepare(flags)?;
    }
    for unit in left {
        let outcome = campaign.measure(unit)?;
        if interrupt::pending() {
            return Ok(Some(true));
        }
        output.add(unit, &units[unit], &outcome)?;
        progress::note(&format!("measured: {}", units[unit]));
    }
    let count = own.len();
    let file = path.display();
    progress::note(&format!("the {count} unit{} of part {shard} are in `{file}`", plural(count)));
    Ok(Some(false))
}

/// The flags, as they are written.
fn written(flags: &impl Serialize) -> Result<serde_json::Map<String, Value>, Error> {
    let failed = |problem: String| Error::value("--shard", problem);
    match serde_json::to_value(flags) {
        Ok(Value::Object(flags)) => Ok(flags),
        Ok(_) => Err(failed("the flags have no names".into())),
        Err(error) => Err(failed(format!("a flag cannot be written ({error}): rename its file"))),
    }
}
