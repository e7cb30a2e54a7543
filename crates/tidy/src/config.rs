//! The configuration: budgets, phrases and excuses, in a small part of TOML.

use std::collections::BTreeMap;
use std::fmt;

use crate::{Finding, Rule};

/// The budgets, phrases and excuses of `.ci/tidy.toml`.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// How many findings a rule may have: none, unless it is named here.
    pub budgets: BTreeMap<&'static str, usize>,
    /// Phrases in small letters, and what to write instead.
    pub phrases: Vec<(String, String)>,
    /// Rules and files whose findings do not count.
    pub excused: Vec<Excuse>,
}

/// A file in which a rule may find what it wants.
#[derive(Clone, Debug)]
pub struct Excuse {
    /// The rule.
    pub rule: Rule,
    /// The file, from the root of the repository.
    pub path: String,
    /// The line of the configuration.
    pub line: usize,
}

/// A line of the configuration that has no meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The line, from 1.
    pub line: usize,
    /// The mistake and its remedy.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ConfigError {}

impl Config {
    /// The path of the configuration from the root of the repository.
    pub const PATH: &str = ".ci/tidy.toml";

    /// Reads the configuration.
    pub fn read(text: &str) -> Result<Self, ConfigError> {
        let mut config = Self::default();
        let mut section = String::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            config
                .line(&mut section, line, index + 1)
                .map_err(|message| ConfigError { line: index + 1, message })?;
        }
        Ok(config)
    }

    fn line(&mut self, section: &mut String, line: &str, number: usize) -> Result<(), String> {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(section);
            return Ok(());
        }
        let (key, value) = line.split_once(" = ").ok_or("write `key = value`")?;
        match section.as_str() {
            "budgets" => {
                let count = value
                    .parse()
                    .map_err(|_| format!("`{value}` is no number: write the budget"))?;
                self.budgets.insert(rule(key)?.name(), count);
            }
            "phrases" => {
                self.phrases.push((quoted(key)?.to_lowercase(), quoted(value)?.to_owned()));
            }
            _ => {
                let name = section.strip_prefix("excused.").ok_or_else(|| {
                    format!("no section is called [{section}]: there are [budgets], [phrases] and [excused.RULE]")
                })?;
                if quoted(value)?.is_empty() {
                    return Err("an excuse needs its reason: write it behind the `=`".to_owned());
                }
                self.excused.push(Excuse {
                    rule: rule(name)?,
                    path: quoted(key)?.to_owned(),
                    line: number,
                });
            }
        }
        Ok(())
    }

    /// The findings that a rule may have.
    pub fn budget(&self, rule: Rule) -> usize {
        self.budgets.get(rule.name()).copied().unwrap_or(0)
    }

    /// Takes out the findings that are excused, and adds one for each excuse without need.
    pub(crate) fn excuse(&self, findings: &mut Vec<Finding>) {
        let mut needed = vec![false; self.excused.len()];
        findings.retain(|finding| {
            let mut kept = true;
            for (excuse, needed) in self.excused.iter().zip(&mut needed) {
                if excuse.rule == finding.rule && excuse.path == finding.path {
                    *needed = true;
                    kept = false;
                }
            }
            kept
        });
        for (excuse, needed) in self.excused.iter().zip(needed) {
            if !needed {
                let message = format!(
                    "`{}` needs no excuse from the rule `{}`: delete it",
                    excuse.path,
                    excuse.rule.name()
                );
                let path = Self::PATH.to_owned();
                findings.push(Finding { path, line: excuse.line, rule: Rule::Config, message });
            }
        }
    }
}

fn rule(name: &str) -> Result<Rule, String> {
    let found = Rule::ALL.into_iter().find(|rule| rule.name() == name);
    found.ok_or_else(|| {
        let names = Rule::ALL.map(Rule::name).join(", ");
        format!("no rule is called `{name}`: there are {names}")
    })
}

fn quoted(text: &str) -> Result<&str, String> {
    let inner = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.ok_or_else(|| format!("`{text}` is no string: put it between double quotes"))
}
