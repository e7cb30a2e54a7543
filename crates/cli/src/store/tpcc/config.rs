//! The configuration in a result.

use super::plan::{End, Phase, Plan, name};
use super::run::Ordered;
use crate::flags::units::plural;
use crate::store::report::{Common, Configured};
use serde::Serialize;
use silvics_workload::tpcc::Mix;

/// The configuration, defaults included.
#[derive(Debug, Serialize)]
pub struct Config {
    #[serde(flatten)]
    pub common: Common,
    pub warehouses: u32,
    /// The items, and the customers of a district: fewer than TPC-C's in a database for tests.
    pub items: u32,
    pub customers: u32,
    pub mix: &'static str,
    /// The terminals of each thread.
    pub terminals: usize,
    /// The seconds of a run, or the transactions of each thread.
    pub seconds: Option<f64>,
    pub transactions: Option<u64>,
    /// The recorded transactions of all databases, which have a serial order, and the choices that
    /// were left open: an anomaly that depends on these may have been missed.
    pub serializable: Option<u64>,
    pub open_choices: Option<u64>,
}

impl Config {
    /// The configuration of a plan.
    pub fn of(plan: &Plan) -> Self {
        let benchmark = match plan.mix {
            Mix::Standard => "tpcc",
            Mix::Half => "tpcc-half",
        };
        let phase = match plan.phase {
            Phase::Load => "load",
            Phase::Run => "run",
            Phase::Check => "check",
        };
        let (seconds, transactions) = match plan.end {
            End::After(time) => (Some(time.as_secs_f64()), None),
            End::Transactions(each) => (None, Some(each)),
        };
        let (benchmark, of_load) = ((benchmark, phase), plan.load_threads);
        Self {
            common: Common::new(benchmark, of_load, plan.rounds, plan.seed),
            warehouses: plan.scale.warehouses(),
            items: plan.scale.items(),
            customers: plan.scale.customers(),
            mix: name(plan.mix),
            terminals: plan.terminals,
            seconds,
            transactions,
            serializable: None,
            open_choices: None,
        }
    }

    /// Counts transactions that were found to have a serial order.
    pub fn count_checked(&mut self, ordered: Ordered) {
        self.count_ordered(ordered.transactions, ordered.open);
    }
}

impl Configured for Config {
    fn common(&self) -> &Common {
        &self.common
    }

    fn common_mut(&mut self) -> &mut Common {
        &mut self.common
    }

    fn ordered(&self) -> Option<(u64, u64)> {
        self.serializable.zip(self.open_choices)
    }

    fn count_ordered(&mut self, transactions: u64, open: u64) {
        *self.serializable.get_or_insert(0) += transactions;
        *self.open_choices.get_or_insert(0) += open;
    }

    fn headline(&self) -> String {
        let end = match (self.seconds, self.transactions) {
            _ if self.common.loads() => "one load each".into(),
            (Some(seconds), _) => format!("{seconds} s"),
            (None, each) => format!("{} transactions of each thread", each.unwrap_or(0)),
        };
        let mix = match self.mix {
            "half" => "half new orders, half payments: not comparable with the full mix",
            _ => "the standard mix, without think times",
        };
        let terminals = match self.terminals {
            1 => String::new(),
            of => format!("{of} terminals a thread; "),
        };
        format!(
            "{} {}: {} warehouse{} of {} items and 10 × {} customers; {mix}; {terminals}{end}",
            self.common.benchmark,
            self.common.phase,
            self.warehouses,
            plural(self.warehouses as usize),
            self.items,
            self.customers,
        )
    }

    fn checked(&self) -> String {
        match self.common.phase {
            "check" => format!(
                "the {} transactions that were committed have a serial order ({} choices open); the \
                 consistency \
                 conditions 1 to 12, the counts of the stock, and the number of entries of each \
                 index, after the load and after each round. Times are those of transactions whose \
                 reads and writes are recorded",
                self.serializable.unwrap_or(0),
                self.open_choices.unwrap_or(0)
            ),
            "load" => "the number of rows of all tables".into(),
            _ => "each transaction finds all rows that it names (`tpcc check` checks more)".into(),
        }
    }
}
