//! `silvics store ycsb` in parts.

use super::config::Config;
use super::plan::{Output, Plan};
use super::{flags_of, measured};
use crate::campaign::Campaign;
use crate::campaign::collected::Collected;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
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

    fn plan(flags: &YcsbVerb, cores: usize) -> Result<Self, Error> {
        let (flags, loads) = flags_of(flags);
        let plan = Plan::new(flags, cores, loads)?;
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

    fn report(self, collected: Collected<Outcome>) -> Result<u8, Error> {
        collected.refuse_page(Self::VERB)?;
        let format = Output::parse(&collected.format)?;
        format.fits(&self.plan)?;
        let mut report = Report::new(Config::of(&self.plan), collected.machine);
        report.enter(collected.units);
        format.print(&report).map(|()| 0)
    }
}
