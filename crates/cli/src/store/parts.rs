//! The benchmarks of the store in parts. A unit is a number of threads, and loads databases of its
//! own. A load is one unit.

use super::report::{Configured, Report, Row};
use super::ycsb::Modelled;
use crate::campaign::collected::{Collected, Unit};
use crate::flags::units::plural;
use serde::{Deserialize, Serialize};

/// The result of a unit.
#[derive(Serialize, Deserialize)]
pub struct Outcome {
    rows: Vec<Row>,
    /// The numbers of the contenders of the rows.
    contenders: Vec<usize>,
    models: Vec<Modelled>,
    /// The transactions whose order was checked, and the choices that this left open.
    ordered: Option<(u64, u64)>,
}

impl Outcome {
    /// The result of a report on one unit.
    pub fn of<C: Configured>(report: Report<C>) -> Self {
        let contenders = report.results.iter().map(|row| row.contender).collect();
        let ordered = report.config.ordered();
        Self { rows: report.results, contenders, models: report.models, ordered }
    }
}

impl<C: Configured> Report<C> {
    /// Enters the results of all units. A missing unit may have the best number of threads.
    pub fn enter(&mut self, collected: Collected<Outcome>) {
        self.remarks = collected.remarks();
        for Unit { outcome, .. } in collected.units {
            let rows = outcome.rows.into_iter().zip(outcome.contenders);
            self.results.extend(rows.map(|(row, contender)| Row { contender, ..row }));
            if self.models.is_empty() {
                self.models = outcome.models;
            }
            if let Some((transactions, open)) = outcome.ordered {
                self.config.count_ordered(transactions, open);
            }
        }
        if collected.missing.is_empty() {
            self.compare_best();
        }
    }
}

/// The names of the units: one for each number of threads, or one for a load.
pub fn names(loads: bool, threads: &[usize]) -> Vec<String> {
    if loads {
        return vec!["load".into()];
    }
    threads.iter().map(|threads| format!("{threads} thread{}", plural(*threads))).collect()
}
