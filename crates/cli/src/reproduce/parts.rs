//! `silvics reproduce` in parts. A unit is an experiment.

use super::evidence::Evidence;
use super::heat::HeatMap;
use super::lab::Lab;
use super::plan::Plan;
use super::report::{self, Report};
use super::{Experiment, format, html, lab, read, run};
use crate::campaign::collected::Collected;
use crate::campaign::inputs::Input;
use crate::campaign::{Campaign, Wanted};
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::reproduce::ReproduceArgs;
use crate::flags::site::Site;
use crate::output::{self, File, Outputs};
use serde::{Deserialize, Serialize};

/// The experiments of a reproduction.
pub struct Parts {
    chosen: Vec<&'static Experiment>,
    plan: Plan,
    /// The tools, once they are prepared.
    lab: Option<Lab>,
    /// The outputs of a collection.
    format: Format,
    page: Option<File>,
}

/// The result of an experiment.
#[derive(Serialize, Deserialize)]
pub struct Outcome {
    evidence: Vec<Evidence>,
    maps: Vec<HeatMap>,
}

impl Campaign for Parts {
    const VERB: &'static str = "reproduce";
    type Flags = ReproduceArgs;
    type Outcome = Outcome;

    fn refused(flags: &ReproduceArgs) -> Vec<(&'static str, bool)> {
        vec![
            ("--html", flags.html.is_some()),
            ("--svg", flags.svg.is_some()),
            ("--format", flags.format != "table"),
        ]
    }

    fn inputs(flags: &ReproduceArgs) -> Vec<Input<'_>> {
        flags.db_bench.iter().map(|path| ("--db-bench", path.as_path())).collect()
    }

    fn plan(flags: &ReproduceArgs, site: Site) -> Result<Self, Error> {
        let (plan, chosen) = read(flags, site)?;
        if chosen.is_empty() {
            let problem = "there is nothing to measure: name experiments, or add --all";
            return Err(Error::value("--shard", problem));
        }
        Ok(Self { chosen, plan, lab: None, format: Format::Table, page: None })
    }

    fn units(&self) -> Vec<String> {
        self.chosen.iter().map(|experiment| experiment.name.into()).collect()
    }

    fn prepare(&mut self, flags: &ReproduceArgs) -> Result<(), Error> {
        self.lab = Some(lab(flags, &self.chosen, self.plan.clone())?);
        Ok(())
    }

    fn measure(&mut self, unit: usize) -> Result<Outcome, Error> {
        let Some(lab) = &mut self.lab else { unreachable!("it was prepared") };
        // The failure of an experiment is no result: the part tries it again.
        lab.maps.clear();
        let Report { evidence, maps, .. } = run(self.chosen[unit], lab, false)?;
        Ok(Outcome { evidence, maps })
    }

    fn wants(&mut self, wanted: &Wanted) -> Result<(), Error> {
        self.format = format(&wanted.format)?;
        self.page = wanted.page()?;
        Ok(())
    }

    fn report(self, collected: Collected<Outcome>) -> Result<u8, Error> {
        let (mut lab, mut reports) = (Lab::new(self.plan), Vec::new());
        let (mut outputs, remarks) = (Outputs::default(), collected.remarks());
        for unit in collected.units {
            let (experiment, outcome) = (self.chosen[unit.number], unit.outcome);
            lab.plan = lab.plan.on(experiment.machine)?;
            (lab.machine, lab.maps) = (unit.machine, outcome.maps);
            let report = Report::new(experiment, &mut lab, outcome.evidence);
            outputs.tried(report::print(&report, self.format));
            reports.push(report);
        }
        if matches!(self.format, Format::Table) {
            let text = remarks.iter().fold(String::new(), |text, of| text + "\n" + of + "\n");
            outputs.tried(output::text(&text));
        }
        lab.machine = collected.machine;
        if let Some(file) = self.page {
            let (missing, runs) = (&collected.missing[..], &collected.runs[..]);
            let parts = html::Parts { missing, remarks: &remarks, runs };
            let page = html::page(&lab, &reports, None, &parts);
            outputs.tried(page.and_then(|page| file.write(page.as_bytes())));
        }
        outputs.finish().map(|()| 0)
    }
}
