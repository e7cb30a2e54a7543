//! `silvics store ycsb` in parts.

use super::config::Config;
use super::plan::{self, Output, Plan};
use super::{flags_of, measured};
use crate::campaign::collected::Collected;
use crate::campaign::inputs::Input;
use crate::campaign::{Campaign, Wanted};
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::site::Site;
use crate::flags::store::YcsbVerb;
use crate::host::machine::Machine;
use crate::store::parts::{self, Outcome};
use crate::store::report::Report;

/// The units of a benchmark.
pub struct Ycsb {
    plan: Plan,
    threads: Vec<usize>,
}

impl Campaign for Ycsb {
    const VERB: &'static str = "store ycsb";
    type Flags = YcsbVerb;
    type Outcome = Outcome;

    fn refused(flags: &YcsbVerb) -> Vec<(&'static str, bool)> {
        let (flags, _) = flags_of(flags);
        vec![("--log", flags.log.is_some()), ("--format", flags.format != "table")]
    }

    fn inputs(flags: &YcsbVerb) -> Vec<Input<'_>> {
        flags_of(flags).0.files.iter().map(|path| ("-P", path.as_path())).collect()
    }

    fn resolved(flags: &YcsbVerb) -> Result<Option<YcsbVerb>, Error> {
        let with = |args| plan::with_properties(args).map(Box::new).map(Some);
        match flags {
            YcsbVerb::Load(args) => Ok(with(args)?.map(YcsbVerb::Load)),
            YcsbVerb::Run(args) => Ok(with(args)?.map(YcsbVerb::Run)),
        }
    }

    fn plan(flags: &YcsbVerb, site: Site) -> Result<Self, Error> {
        let (flags, loads) = flags_of(flags);
        let plan = Plan::new(flags, site, loads)?;
        Ok(Self { threads: plan.threads.clone(), plan })
    }

    fn notes(&self) -> &[String] {
        &self.plan.notes
    }

    fn units(&self) -> Vec<String> {
        parts::names(self.plan.loads, &self.threads)
    }

    fn measure(&mut self, unit: usize) -> Result<Outcome, Error> {
        if !self.plan.loads {
            self.plan.threads = vec![self.threads[unit]];
        }
        let crew = Crew::new();
        let mut report = Report::new(Config::of(&self.plan), Machine::this(crew.threads));
        measured(&self.plan, &crew, &mut report)?;
        Ok(Outcome::of(report))
    }

    fn wants(&mut self, wanted: &Wanted) -> Result<(), Error> {
        wanted.refuse_page(Self::VERB)?;
        self.plan.format = Output::parse(&wanted.format)?;
        self.plan.format.fits(&self.plan)
    }

    fn report(self, collected: Collected<Outcome>) -> Result<u8, Error> {
        let mut report = Report::new(Config::of(&self.plan), collected.machine.clone());
        report.enter(collected);
        self.plan.format.print(&report).map(|()| 0)
    }
}
