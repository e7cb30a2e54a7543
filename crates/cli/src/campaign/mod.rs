//! Campaigns: the parts of a measurement on several machines, and their collection.
//!
//! # Design
//! 1. A *unit* is a configuration whose contenders are compared with each other. They take turns in
//!    one process, so a unit is never divided. A verb implements [`Campaign`] for its units.
//! 2. Units have a fixed order. Part I of N has each unit whose number, from 0, is I − 1 modulo N.
//! 3. A part writes a file of JSON lines ([`file`]): a head ([`head::Head`]), then a line for each
//!    unit, whole and synced, when the unit has ended. It has the rows of the verb's report.
//! 4. A part that is started again leaves out the units that have lines. It goes on only with the
//!    same verb, flags, input files, build and machine. A unit that fails has no line.
//! 5. `silvics collect` ([`collected`]) checks that all parts are of one campaign and that no unit
//!    is there twice. It makes the verb's plan of the flags in the head, adds the rows to its
//!    report in the order of the units, and gives that to the verb's renderers.
//! 6. Without `--shard` no verb calls this module.
//!
//! | module | holds |
//! |---|---|
//! | `shard` | I/N, and its units |
//! | `head` | the first line of a part, and the comparison of two |
//! | `inputs` | digests of input files |
//! | `file` | the file of a part |
//! | `collected` | all parts |
//! | `remarks` | remarks in CSV |

pub mod collected;
pub mod file;
pub mod head;
pub mod inputs;
pub mod remarks;
pub mod shard;

use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::shard::ShardArgs;
use crate::flags::site::Site;
use crate::flags::units::plural;
use crate::flags::values::{parse, single};
use crate::host::machine::Machine;
use crate::interrupt;
use crate::output;
use crate::page::origin::Run;
use crate::progress;
use collected::Collected;
use file::Output;
use head::{FORMAT, Head};
use inputs::{Input, digests};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shard::Shard;
use std::path::PathBuf;

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

    /// The files that the flags name as inputs.
    fn inputs(_flags: &Self::Flags) -> Vec<Input<'_>> {
        Vec::new()
    }

    /// The flags with all that a plan takes from input files, so that `silvics collect` does not
    /// read these. `None` if a plan takes nothing from them.
    fn resolved(_flags: &Self::Flags) -> Result<Option<Self::Flags>, Error> {
        Ok(None)
    }

    /// Checks the flags, for the machine that is or was measured.
    fn plan(flags: &Self::Flags, site: Site) -> Result<Self, Error>;

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

    /// Takes the outputs of a collection. Fails at once if the verb has no such output, or it could
    /// not be written.
    fn wants(&mut self, wanted: &Wanted) -> Result<(), Error>;

    /// Makes the report of the verb, and writes it. Returns the exit code.
    fn report(self, collected: Collected<Self::Outcome>) -> Result<u8, Error>;
}

/// The outputs that the user wants of a collection.
#[derive(Debug)]
pub struct Wanted {
    /// The value of `--format`.
    pub format: String,
    /// The file of the page.
    pub html: Option<PathBuf>,
}

impl Wanted {
    /// The file of the page, if one was requested. Fails at once if it could not be written.
    pub fn page(&self) -> Result<Option<output::File>, Error> {
        self.html.as_deref().map(|path| output::File::new("--html", path)).transpose()
    }

    /// Fails if a page was requested of a verb that has none.
    pub fn refuse_page(&self, verb: &str) -> Result<(), Error> {
        match self.html {
            Some(_) => {
                let problem = format!("`silvics {verb}` has no page: leave it out");
                Err(Error::value("--html", problem))
            }
            None => Ok(()),
        }
    }
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
        let problem = "a part has no such output or file: leave it out, and give it to `silvics \
                       collect`, if that takes it";
        return Err(Error::value(flag, problem));
    }
    for (flag, input) in C::inputs(flags) {
        let [input, out] = [(flag, input), ("--out", path)]
            .map(|(flag, path)| output::File { flag, path: path.into() });
        output::File::distinct([&Some(input), &Some(out)])?;
    }
    let site = Site::from(Crew::new().threads);
    let inputs = digests(&C::inputs(flags))?;
    let mut campaign = C::plan(flags, site)?;
    let head = Head {
        campaign: FORMAT,
        verb: C::VERB.into(),
        flags: written(C::resolved(flags)?.as_ref().unwrap_or(flags))?,
        inputs,
        shard,
        units: campaign.units(),
        machine: Machine::this(site.cores),
        rtm: site.has_rtm,
        run: Run::this(),
    };
    let output = Output::open(path, &head)?;
    // An interrupt that comes after the first note does not end the process at once.
    interrupt::catch();
    let own: Vec<usize> = (0..head.units.len()).filter(|&unit| shard.has(unit)).collect();
    let left: Vec<usize> = own.iter().copied().filter(|unit| !output.done.contains(unit)).collect();
    progress::note(&format!(
        "part {shard} has {} of {} units, {} of which {} left",
        own.len(),
        head.units.len(),
        left.len(),
        if left.len() == 1 { "is" } else { "are" },
    ));
    campaign.notes().iter().for_each(|note| progress::note(note));
    if !left.is_empty() {
        campaign.prepare(flags)?;
    }
    if measure(&mut campaign, flags, &head, &left, output)? {
        return Ok(Some(true));
    }
    let (count, file) = (own.len(), path.display());
    let are = if count == 1 { "is" } else { "are" };
    progress::note(&format!("the {count} unit{} of part {shard} {are} in `{file}`", plural(count)));
    Ok(Some(false))
}

/// Measures units. Returns whether the user interrupted that. A unit that fails is noted, and the
/// others are measured: the error of the first one comes at the end.
fn measure<C: Campaign>(
    campaign: &mut C,
    flags: &C::Flags,
    head: &Head,
    left: &[usize],
    mut output: Output,
) -> Result<bool, Error> {
    let mut failed = None;
    for &unit in left {
        let name = &head.units[unit];
        let measured = campaign.measure(unit).and_then(|outcome| readable(name, outcome));
        if interrupt::pending() {
            return Ok(true);
        }
        match measured {
            Ok(outcome) => {
                unchanged(&C::inputs(flags), head)?;
                output.add(unit, name, &outcome)?;
                progress::note(&format!("measured: {name}"));
            }
            Err(error) => {
                progress::note(&format!("not measured: {name}: {error}"));
                failed.get_or_insert(error);
            }
        }
    }
    failed.map_or(Ok(false), Err)
}

/// An outcome, unless it has a figure that a file cannot hold.
fn readable<O: Serialize + DeserializeOwned>(name: &str, outcome: O) -> Result<O, Error> {
    let read = serde_json::to_vec(&outcome).and_then(|bytes| serde_json::from_slice::<O>(&bytes));
    match read {
        Ok(_) => Ok(outcome),
        Err(error) => {
            let problem = format!(
                "the result of `{name}` has a figure that is no number ({error}): measure for longer"
            );
            Err(Error::value("--out", problem))
        }
    }
}

/// Fails if an input file has changed since the start of the part.
fn unchanged(inputs: &[Input<'_>], head: &Head) -> Result<(), Error> {
    for (input, now) in inputs.iter().zip(digests(inputs)?) {
        if head.inputs.get(&now.0) != Some(&now.1) {
            let (flag, path) = (input.0, now.0.into());
            let problem = "has changed since the part began: measure the campaign again".into();
            return Err(Error::File { flag, path, problem });
        }
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::head::tests::head;
    use super::*;
    use serde::Deserialize;
    use std::fs;

    /// A verb with a unit `fails`, and a unit `writes`, which adds to its input.
    struct Verb(Flags);

    #[derive(Clone, Serialize, Deserialize)]
    struct Flags {
        input: PathBuf,
        units: Vec<String>,
    }

    impl Campaign for Verb {
        const VERB: &'static str = "verb";
        type Flags = Flags;
        type Outcome = usize;

        fn refused(_: &Flags) -> Vec<(&'static str, bool)> {
            Vec::new()
        }

        fn inputs(flags: &Flags) -> Vec<Input<'_>> {
            vec![("--key-file", &flags.input)]
        }

        fn plan(flags: &Flags, _: Site) -> Result<Self, Error> {
            Ok(Self(flags.clone()))
        }

        fn units(&self) -> Vec<String> {
            self.0.units.clone()
        }

        fn measure(&mut self, unit: usize) -> Result<usize, Error> {
            match &*self.0.units[unit] {
                "fails" => return Err(Error::value("--keys", "the unit fails")),
                "writes" => fs::write(&self.0.input, "other keys").unwrap(),
                _ => {}
            }
            Ok(unit)
        }

        fn wants(&mut self, _: &Wanted) -> Result<(), Error> {
            Ok(())
        }

        fn report(self, _: Collected<usize>) -> Result<u8, Error> {
            Ok(0)
        }
    }

    /// Measures units in a part; its error, and the units that its file has then.
    fn measured(units: &[&str]) -> (Option<String>, Vec<String>) {
        let folder = tempfile::tempdir().unwrap();
        let [input, out] = ["keys", "part"].map(|name| folder.path().join(name));
        fs::write(&input, "keys").unwrap();
        let units: Vec<String> = units.iter().map(ToString::to_string).collect();
        let flags = Flags { input, units: units.clone() };
        let inputs = digests(&Verb::inputs(&flags)).unwrap();
        let left: Vec<usize> = (0..units.len()).collect();
        let head = Head { shard: Shard { index: 1, count: 1 }, inputs, units, ..head() };
        let output = Output::open(&out, &head).unwrap();
        let ended = measure(&mut Verb(flags.clone()), &flags, &head, &left, output);
        let lines = file::Content::read(&out).unwrap().lines;
        (ended.err().map(|e| e.to_string()), lines.into_iter().map(|line| line.name).collect())
    }

    #[test]
    fn a_unit_that_fails_does_not_end_its_part() {
        let (error, lines) = measured(&["first", "fails", "third"]);
        assert!(error.is_some_and(|error| error.contains("the unit fails")));
        assert_eq!(lines, ["first", "third"]);
        assert_eq!(measured(&["first", "second"]), (None, vec!["first".into(), "second".into()]));
    }

    #[test]
    fn a_unit_during_which_an_input_changes_is_not_kept() {
        let (error, lines) = measured(&["first", "writes", "third"]);
        assert!(error.is_some_and(|error| error.contains("has changed since the part began")));
        assert_eq!(lines, ["first"]);
    }

    /// A file has null in the place of such a figure, and `collect` cannot read that.
    #[test]
    fn figures_that_are_no_numbers_fail_their_unit() {
        assert_eq!(readable("1 thread", vec![1.5]).unwrap(), [1.5]);
        for figure in [f64::NAN, f64::INFINITY] {
            let refused = readable("1 thread", vec![figure]).unwrap_err().to_string();
            assert!(refused.contains("`1 thread` has a figure that is no number"), "{refused}");
        }
    }
}
