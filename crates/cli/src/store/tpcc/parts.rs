//! `silvics store tpcc` in parts.

use super::config::Config;
use super::measured;
use super::plan::{Phase, Plan};
use crate::campaign::collected::Collected;
use crate::campaign::{Campaign, Wanted};
use crate::drive::subject::Crew;
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::site::Site;
use crate::flags::store::TpccVerb;
use crate::host::machine::Machine;
use crate::store::parts::{self, Outcome};
use crate::store::report::Report;

/// The units of a benchmark.
pub struct Tpcc {
    plan: Plan,
    threads: Vec<usize>,
}

impl Campaign for Tpcc {
    const VERB: &'static str = "store tpcc";
    type Flags = TpccVerb;
    type Outcome = Outcome;

    fn refused(flags: &TpccVerb) -> Vec<(&'static str, bool)> {
        let flags = flags.args();
        vec![("--data", flags.data.is_some()), ("--format", flags.format != "table")]
    }

    fn plan(flags: &TpccVerb, site: Site) -> Result<Self, Error> {
        let plan = Plan::new(flags, site)?;
        Ok(Self { threads: plan.threads.clone(), plan })
    }

    fn units(&self) -> Vec<String> {
        parts::names(self.plan.phase == Phase::Load, &self.threads)
    }

    fn measure(&mut self, unit: usize) -> Result<Outcome, Error> {
        if self.plan.phase != Phase::Load {
            self.plan.threads = vec![self.threads[unit]];
        }
        let crew = Crew::new();
        let mut report = Report::new(Config::of(&self.plan), Machine::this(crew.threads));
        measured(&self.plan, None, &crew, &mut report)?;
        Ok(Outcome::of(report))
    }

    fn wants(&mut self, wanted: &Wanted) -> Result<(), Error> {
        wanted.refuse_page(Self::VERB)?;
        self.plan.format = Format::parse(&wanted.format)?;
        Ok(())
    }

    fn report(self, collected: Collected<Outcome>) -> Result<u8, Error> {
        let mut report = Report::new(Config::of(&self.plan), collected.machine.clone());
        report.enter(collected);
        report.print(self.plan.format).map(|()| 0)
    }
}
