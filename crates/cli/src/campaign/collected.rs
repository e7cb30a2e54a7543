//! All parts of a campaign, and what is missing from them.

use super::file::Content;
use super::head::{Difference, Head, other_machine};
use super::shard::Shard;
use super::{Campaign, Wanted};
use crate::flags::error::Error;
use crate::flags::shard::CollectArgs;
use crate::flags::site::Site;
use crate::flags::units::plural;
use crate::host::machine::Machine;
use crate::output;
use crate::page::origin::Run;
use crate::progress;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The units of all parts.
pub struct Collected<O> {
    /// The machine of the first part.
    pub machine: Machine,
    /// The units that were measured, in order.
    pub units: Vec<Unit<O>>,
    /// The names of the units that were not measured, in order.
    pub missing: Vec<String>,
    /// Sentences on parts of other machines than the first one.
    machines: Vec<String>,
    /// The start of each part.
    pub runs: Vec<Run>,
}

/// A unit that was measured.
pub struct Unit<O> {
    /// Its number, from 0.
    pub number: usize,
    pub machine: Machine,
    pub outcome: O,
}

impl<O> Collected<O> {
    /// Sentences for the readers of the result: the machines that differ, and what is missing.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.machines.clone();
        if !self.missing.is_empty() {
            let (count, all) = (self.missing.len(), self.missing.join("; "));
            remarks.push(format!("Not measured yet: {count} unit{}: {all}.", plural(count)));
        }
        remarks
    }
}

/// The files of a campaign.
pub struct Parts {
    files: Vec<(PathBuf, Content)>,
    /// Sentences on parts of other machines than the first one.
    machines: Vec<String>,
}

impl Parts {
    /// Reads the files. Fails if they are of several campaigns, or have a unit twice.
    pub fn read(args: &CollectArgs) -> Result<Self, Error> {
        if args.files.is_empty() {
            return Err(Error::value(
                "FILE",
                "there is nothing to collect: name the files of all parts",
            ));
        }
        let page = args.html.clone().map(|path| output::File { flag: "--html", path });
        for path in &args.files {
            let part = output::File { flag: "FILE", path: path.clone() };
            output::File::distinct([&Some(part), &page])?;
        }
        let read = |path: &PathBuf| Ok((path.clone(), Content::read(path)?));
        let files = args.files.iter().map(read).collect::<Result<_, _>>()?;
        let mut parts = Self { files, machines: Vec::new() };
        for (path, content) in &parts.files {
            if content.is_cut {
                let path = path.display();
                progress::note(&format!("`{path}`: the last line is cut, and is left out"));
            }
        }
        parts.check()?;
        parts.machines = parts.machines();
        parts.machines.iter().for_each(|sentence| progress::note(sentence));
        Ok(parts)
    }

    fn check(&self) -> Result<(), Error> {
        let Some(((first, of_first), others)) = self.files.split_first() else { return Ok(()) };
        let here = &of_first.head;
        let first = first.display();
        let failed = |path: &Path, problem| {
            let path = path.to_owned();
            Err(Error::File { flag: "FILE", path, problem })
        };
        if here.machine.silvics != env!("CARGO_PKG_VERSION") {
            let problem = format!(
                "was measured by version {}, and this is {}: collect it with that version",
                here.machine.silvics,
                env!("CARGO_PKG_VERSION")
            );
            return failed(&self.files[0].0, problem);
        }
        for (path, content) in others {
            if let Some(of) = here.other_campaign(&content.head) {
                let problem = format!(
                    "is of another campaign ({}: {}, but {} in `{first}`): collect files of one",
                    of.what, of.there, of.here
                );
                return failed(path, problem);
            }
        }
        for (at, (path, content)) in self.files.iter().enumerate() {
            for line in &content.lines {
                let has = |(_, other): &&(PathBuf, Content)| {
                    other.lines.iter().any(|of| of.unit == line.unit)
                };
                if let Some((other, _)) = self.files[..at].iter().find(has) {
                    let problem = format!(
                        "has `{}`, as `{}` has: leave one of them out",
                        line.name,
                        other.display()
                    );
                    return failed(path, problem);
                }
            }
        }
        Ok(())
    }

    /// Sentences on parts of other machines than the first one.
    fn machines(&self) -> Vec<String> {
        let here = self.head();
        let others = self.files[1..].iter().map(|(_, content)| &content.head);
        let sentence = |head: &Head| {
            let of = |of: Difference| format!("{}: {}, but {}", of.what, of.there, of.here);
            let all: Vec<String> = other_machine(here, head).into_iter().map(of).collect();
            let (part, first, all) = (head.shard, here.shard, (!all.is_empty()).then_some(all)?);
            Some(format!(
                "Part {part} ran on another machine than part {first} ({} in part {first}): compare \
                 only rows of one configuration.",
                all.join("; ")
            ))
        };
        others.filter_map(sentence).collect()
    }

    /// The head of the first part.
    pub fn head(&self) -> &Head {
        &self.files[0].1.head
    }

    /// Makes the report of the verb of all parts. Returns the exit code: 1 if units are missing.
    pub fn report<C: Campaign>(self, args: CollectArgs) -> Result<u8, Error> {
        let head = self.head().clone();
        let damaged = |path: &Path, error: serde_json::Error| {
            let problem = format!("cannot be read by this version ({error}): measure it again");
            Error::File { flag: "FILE", path: path.to_owned(), problem }
        };
        let files: Vec<(Shard, PathBuf)> =
            self.files.iter().map(|(path, content)| (content.head.shard, path.clone())).collect();
        let flags = serde_json::from_value(Value::Object(head.flags.clone()));
        let flags = flags.map_err(|error| damaged(&files[0].1, error))?;
        let mut campaign = C::plan(&flags, Site::there(head.machine.cores, head.rtm))?;
        if campaign.units() != head.units {
            let problem = "has other units than this command would measure: collect it with the \
                           build that measured it";
            let path = files[0].1.clone();
            return Err(Error::File { flag: "FILE", path, problem: problem.into() });
        }
        campaign.wants(&Wanted { format: args.format, html: args.html })?;
        let runs = self.files.iter().map(|(_, content)| content.head.run.clone()).collect();
        let mut units = Vec::new();
        for (path, content) in self.files {
            for line in content.lines {
                let outcome =
                    serde_json::from_value(line.outcome).map_err(|error| damaged(&path, error))?;
                let machine = content.head.machine.clone();
                units.push(Unit { number: line.unit, machine, outcome });
            }
        }
        units.sort_by_key(|unit| unit.number);
        let is_there =
            |number: &usize| units.binary_search_by_key(number, |unit| unit.number).is_ok();
        let lacking: Vec<usize> = (0..head.units.len()).filter(|at| !is_there(at)).collect();
        let missing = lacking.iter().map(|&unit| head.units[unit].clone()).collect();
        // They are named even if the report cannot be written.
        for &unit in &lacking {
            progress::note(&missing_unit(unit, &head, &files));
        }
        if units.is_empty() {
            progress::note("no unit was measured yet, so there is no result");
            return Ok(1);
        }
        let (machine, machines) = (head.machine, self.machines);
        let code = campaign.report(Collected { machine, units, missing, machines, runs })?;
        Ok(if lacking.is_empty() { code } else { 1 })
    }
}

/// The sentence on a unit that is missing.
fn missing_unit(unit: usize, head: &Head, files: &[(Shard, PathBuf)]) -> String {
    let part = Shard::of(unit, head.shard.count);
    let of = match files.iter().find(|(shard, _)| *shard == part) {
        Some((_, path)) => format!("which `{}` does not have yet", path.display()),
        None => "of which there is no file".into(),
    };
    format!("missing: {} (part {part}, {of})", head.units[unit])
}
