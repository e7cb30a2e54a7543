//! `silvics memtable` in parts. A unit is a cell, whose contenders are compared.

use super::measure;
use super::plan::{Cell, Plan};
use super::report::{Report, Row};
use crate::campaign::collected::Collected;
use crate::campaign::{Campaign, Wanted};
use crate::drive::subject::Crew;
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::memtable::MemtableArgs;
use crate::flags::site::Site;
use crate::flags::units::{Bytes, plural};
use crate::progress::Progress;

/// The units of a benchmark.
pub struct Parts {
    plan: Plan,
    cells: Vec<Cell>,
}

impl Campaign for Parts {
    const VERB: &'static str = "memtable";
    type Flags = MemtableArgs;
    type Outcome = Vec<Row>;

    fn refused(flags: &MemtableArgs) -> Vec<(&'static str, bool)> {
        vec![("--format", flags.format != "table")]
    }

    fn plan(flags: &MemtableArgs, site: Site) -> Result<Self, Error> {
        let plan = Plan::new(flags, site)?;
        Ok(Self { cells: plan.cells(), plan })
    }

    fn units(&self) -> Vec<String> {
        let name = |cell: &Cell| {
            let Cell { workload, threads, batch, value_size } = *cell;
            let (name, value) = (workload.name(), Bytes(value_size));
            format!("{name}, {threads} thread{}, batch {batch}, values of {value}", plural(threads))
        };
        self.cells.iter().map(name).collect()
    }

    fn measure(&mut self, unit: usize) -> Result<Vec<Row>, Error> {
        let (plan, cell) = (&self.plan, self.cells[unit]);
        let progress = Progress::new(plan.rounds * plan.contenders.len());
        let samples = measure(plan, cell, &Crew::new(), &progress)?;
        Ok(Row::all(plan, cell, &samples))
    }

    fn wants(&mut self, wanted: &Wanted) -> Result<(), Error> {
        wanted.refuse_page(Self::VERB)?;
        self.plan.format = Format::parse(&wanted.format)?;
        Ok(())
    }

    fn report(self, collected: Collected<Vec<Row>>) -> Result<u8, Error> {
        let remarks = collected.remarks();
        let mut report = Report { remarks, ..Report::new(&self.plan, collected.machine) };
        report.results = collected.units.into_iter().flat_map(|unit| unit.outcome).collect();
        report.print(self.plan.format).map(|()| 0)
    }
}
