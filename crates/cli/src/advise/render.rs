//! Writes the advice: text or JSON.

use super::candidates::Need;
use super::report::{Report, Row};
use crate::drive::stats::Interval;
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::flags::units;
use crate::output;
use crate::table::Table;
use comfy_table::CellAlignment;
use std::fmt::Write as _;

impl Report {
    /// Writes the advice to standard output.
    pub fn print(&self, format: Format) -> Result<(), Error> {
        match format {
            Format::Json => output::json(self),
            Format::Table | Format::Csv => output::text(&self.text()),
        }
    }

    fn text(&self) -> String {
        let mut text = format!("silvics {} on {}\n", self.machine.silvics, self.machine);
        self.workload(&mut text);
        self.advice(&mut text);
        _ = writeln!(text, "\nFinalists, in turns on fresh indexes\n{}", table(&self.finalists));
        _ = writeln!(
            text,
            "\nStructures in their usual place. Those that left in the first stage were measured with \
             fewer keys\n{}",
            table(&self.structures)
        );
        self.findings(&mut text);
        self.forecast(&mut text);
        if let Some(exhaustive) = &self.exhaustive {
            exhaustive.tell(&mut text);
        }
        text
    }

    fn workload(&self, text: &mut String) {
        let of = &self.workload;
        _ = write!(
            text,
            "{} {} keys ({}), {}, mix {}, {} thread{}",
            units::count(of.keys),
            of.key_type,
            of.source,
            of.dist,
            of.mix,
            of.threads,
            units::plural(of.threads)
        );
        if let Some(length) = of.scan_length {
            _ = write!(text, ", scans of {length}");
        }
        if of.batch > 1 {
            _ = write!(text, ", calls of up to {} keys", of.batch);
        }
        if !of.needs.is_empty() {
            _ = write!(text, ", needs {}", of.needs.join(", "));
        }
        _ = writeln!(text, "; the goal is {}", of.goal);
    }

    fn advice(&self, text: &mut String) {
        let Some(advice) = &self.advice else { return };
        _ = writeln!(text, "\nTake: {}\n", advice.candidate);
        for line in &advice.rust {
            _ = writeln!(text, "    {line}");
        }
        text.push('\n');
        let usual = if self.workload.needs.iter().all(|need| *need == Need::Ends.name()) {
            "what `Map::new()` gives"
        } else {
            "the usual map with what is needed"
        };
        if advice.usual {
            _ = writeln!(text, "This is {usual}.");
        } else if let Some(Interval { median, low, high }) = advice.to_usual {
            _ = writeln!(
                text,
                "Its rate is {median:.2} times that of {usual}, one key at a time ({low:.2} – {high:.2})."
            );
        }
        _ = writeln!(text, "How sure: {}.", advice.how_sure.words());
        for reason in &advice.because {
            _ = writeln!(text, "- {reason}");
        }
        _ = writeln!(
            text,
            "{} candidates were measured in {:.0} s, the finalists with {} keys in {} rounds.",
            advice.candidates,
            advice.seconds,
            units::count(advice.keys),
            advice.rounds
        );
    }

    fn findings(&self, text: &mut String) {
        if self.findings.is_empty() {
            return;
        }
        text.push_str("\nWhy: findings about the layout (docs/layout.md, `silvics inspect`)\n");
        for why in &self.findings {
            let gain = why.gain.map(|gain| format!(", worth {:.0} % in the model", 100.0 * gain));
            _ = writeln!(
                text,
                "- {}: {} ({}): {}{}",
                why.candidate,
                why.id,
                why.kind,
                why.evidence,
                gain.unwrap_or_default()
            );
        }
    }

    fn forecast(&self, text: &mut String) {
        if let Some(missing) = &self.forecast.missing {
            _ = writeln!(text, "\nNo prediction: {missing}.");
            return;
        }
        let elsewhere = self.forecast.machine.map(|name| format!("ns on {name}"));
        let mut header =
            vec!["structure", "ns", "model: cycles", "10 × the keys: cycles", "10 × the keys: ns"];
        header.extend(elsewhere.as_deref());
        let mut table = output::table(&header);
        for of in &self.forecast.leaders {
            let mut candidates = vec![
                of.candidate.clone(),
                format!("{:.0}", of.ns),
                format!("{:.0}", of.cycles),
                format!("{:.0}", of.cycles_at_ten),
                format!("{:.0}", of.ns_at_ten),
            ];
            candidates.extend(of.ns_elsewhere.map(|ns| format!("{ns:.0}")));
            table.add_row(candidates);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        _ = writeln!(
            text,
            "\nPredicted order with ten times the keys: measured times of an operation, and what the \
             model adds\n{table}"
        );
    }
}

fn table(rows: &[Row]) -> Table {
    let mut table = output::table(&["candidate", "Mops/s", "interval", "B/key", "to the advice"]);
    for row in rows {
        let ends = |of: Interval| format!("{:.2} – {:.2}", of.low, of.high);
        table.add_row([
            row.candidate.clone(),
            row.mops.map_or(String::new(), |mops| format!("{:.2}", mops.median)),
            row.mops.map_or(String::new(), ends),
            row.bytes_per_key.map_or(String::new(), |bytes| format!("{bytes:.1}")),
            row.to_advice.map_or(String::new(), |ratio| format!("{:.2}", ratio.median)),
        ]);
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
