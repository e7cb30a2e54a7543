//! Inspection of a trace: facts and findings about the objects of any program.

use super::report::{FindingRow, Kind, Report, Traced};
use crate::flags::error::Error;
use silvics_layout::findings::{Finding, Remedy, Situation};
use silvics_layout::{Census, Level, Machine, PageSize, Trace, TraceError};
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, stdin};
use std::path::Path;

/// Reads a trace; `-` is standard input.
pub fn read(path: &Path) -> Result<Trace, Error> {
    let read = if path == Path::new("-") {
        Trace::read(stdin().lock())
    } else {
        let file = File::open(path).map_err(|error| TraceError::Io { line: 1, error });
        file.and_then(|file| Trace::read(BufReader::with_capacity(1 << 20, file)))
    };
    read.map_err(|error| Error::File {
        flag: "--trace",
        path: path.into(),
        problem: error.to_string(),
    })
}

/// The report on a trace, and on the census that was made of it.
pub fn report(path: &Path, trace: &Trace, census: &mut Census, machine: &Machine) -> Report {
    let names: Vec<String> = census.kinds().map(str::to_owned).collect();
    let survey = census.survey(&machine.sets(Level::Llc));
    let situation = Situation {
        survey: &survey,
        machine,
        // The pages that most systems give a program by default.
        pages: PageSize::Small,
        paths: None,
        objects: &[],
        builds: &[],
    };
    let findings = situation.findings();
    let of = |(number, name): (usize, &String)| Kind::of(number, name, &survey, machine);
    let mut kinds: Vec<Kind> = names.iter().enumerate().filter_map(of).collect();
    kinds.sort_by(|a, b| b.total().total_cmp(&a.total()));
    let findings = rows(findings, &kinds);
    Report {
        config: None,
        trace: Some(Traced {
            file: path.display().to_string(),
            machine: machine.name,
            events: trace.events,
            peak_event: trace.peak_event,
            peak_bytes: trace.peak_bytes,
            peak_objects: trace.objects.len(),
            unknown_frees: trace.unknown_frees,
            overlaps: trace.overlaps,
        }),
        kinds,
        physical_note: None,
        compression: None,
        prefixes: None,
        collocation: None,
        model: None,
        findings,
        fixes: Vec::new(),
    }
}

/// Findings in the order of their kinds. Without lookups nothing can be predicted.
fn rows(mut findings: Vec<Finding>, kinds: &[Kind]) -> Vec<FindingRow> {
    let ranks = kinds.iter().enumerate().map(|(rank, kind)| (kind.name.as_str(), (rank, kind)));
    let ranks: HashMap<&str, (usize, &Kind)> = ranks.collect();
    findings.sort_by_key(|finding| ranks.get(finding.kind.as_str()).map(|(rank, _)| *rank));
    let row = |finding: &Finding| {
        let (_, kind) = ranks.get(finding.kind.as_str())?;
        Some(FindingRow::new(finding, remedy(&finding.remedy, kind), None))
    };
    findings.iter().filter_map(row).collect()
}

/// A remedy as types of the library.
fn remedy(remedy: &Remedy, kind: &Kind) -> String {
    let pool = if kind.bytes_min == kind.bytes_max { "Pool" } else { "BytesPool" };
    match remedy {
        Remedy::Align(align) => format!(
            "a `silvics_pool::{pool}` for this kind with `Tuning::slot_align({align})`: slots of multiples of \
             {align} bytes for objects of {}",
            kind.bytes_median
        ),
        Remedy::OwnPool => format!("a `silvics_pool::{pool}` of its own for this kind"),
        Remedy::OwnHugePages => {
            format!("a `silvics_pool::{pool}` of its own for this kind, on `Pages::Thp`")
        }
        Remedy::PadLocks(bytes) => {
            format!("a `silvics_pool::{pool}` for this kind with `Tuning::slot_align({bytes})`")
        }
        Remedy::Build(name) => format!("the build `{name}`"),
        Remedy::Collocate => "allocate both in one block".into(),
        Remedy::Reorder => "declare what a search reads first, side by side".into(),
    }
}
