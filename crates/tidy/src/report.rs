//! Findings beside budgets.

use std::fmt;

use crate::{Config, Finding, Rule};

/// The count of one rule.
#[derive(Clone, Copy, Debug)]
pub struct Tally {
    /// The rule.
    pub rule: Rule,
    /// Its findings.
    pub count: usize,
    /// The findings that it may have.
    pub budget: usize,
}

/// All findings, and whether they are too many.
#[derive(Debug)]
pub struct Report {
    /// The findings, by file and line.
    pub findings: Vec<Finding>,
    /// The count of each rule.
    pub tallies: Vec<Tally>,
}

impl Report {
    /// Counts the findings of each rule.
    pub fn new(findings: Vec<Finding>, config: &Config) -> Self {
        let tallies = Rule::ALL.map(|rule| Tally {
            rule,
            count: findings.iter().filter(|finding| finding.rule == rule).count(),
            budget: config.budget(rule),
        });
        Self { findings, tallies: tallies.to_vec() }
    }

    /// Whether no rule has more findings than its budget.
    pub fn is_within_budgets(&self) -> bool {
        self.tallies.iter().all(|tally| tally.count <= tally.budget)
    }

    /// The findings of the rules that have too many.
    pub fn over_budget(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| {
            self.tallies
                .iter()
                .any(|tally| tally.rule == finding.rule && tally.count > tally.budget)
        })
    }
}

/// A table with a line for each rule.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<14}{:>7}{:>8}", "rule", "count", "budget")?;
        for &Tally { rule, count, budget } in &self.tallies {
            let remark = match count {
                _ if count > budget => "  too many",
                _ if count < budget => "  lower the budget in .ci/tidy.toml",
                _ => "",
            };
            writeln!(f, "{:<14}{count:>7}{budget:>8}{remark}", rule.name())?;
        }
        Ok(())
    }
}
