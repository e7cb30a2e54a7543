//! Finds stale results of experiments. `just experiments` writes them, not a manifest, and
//! docs/experiments.md is made of them.

use crate::fault::{Fault, read};
use crate::table::short;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The results, a line of JSON for each experiment.
const FILE: &str = "docs/results/experiments.jsonl";

/// The part of a result that says where it is from.
#[derive(Deserialize)]
struct Record {
    experiment: String,
    machine: serde_json::Map<String, serde_json::Value>,
}

impl Record {
    /// A field of its machine, if it has that.
    fn text(&self, field: &str) -> Option<String> {
        self.machine.get(field)?.as_str().map(str::to_owned)
    }

    /// The machine without the build of the command.
    fn host(&self) -> String {
        let is_host = |name: &&String| !["silvics", "commit"].contains(&name.as_str());
        let fields = self.machine.iter().filter(|(name, _)| is_host(name));
        fields.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    }
}

/// All findings, beside tables of this commit. There are none without results.
pub(crate) fn findings(tables: Option<&str>) -> Result<Vec<String>, Fault> {
    if !Path::new(FILE).exists() {
        return Ok(Vec::new());
    }
    let lines = read(Path::new(FILE))?;
    let records: Result<Vec<Record>, _> = lines.lines().map(serde_json::from_str).collect();
    let records = records.map_err(|error| Fault(format!("{FILE}: {error}")))?;
    let mut findings = Vec::new();
    if let Some(now) = version(&read(Path::new("Cargo.toml")).unwrap_or_default()) {
        for (then, of) in by(&records, |record| record.text("silvics")) {
            if then.is_empty() {
                findings.push(format!("{} of a command without a version", many(&of)));
            } else if then != now {
                findings.push(format!("{} of silvics {then}, and this is {now}", many(&of)));
            }
        }
    }
    let mut commits = by(&records, |record| record.text("commit"));
    if let Some(of) = commits.remove("") {
        findings.push(format!("{} of a command without a commit", many(&of)));
    }
    if let Some(tables) = tables {
        // The command has the short name of its commit.
        for (commit, of) in commits.iter().filter(|(commit, _)| !tables.starts_with(*commit)) {
            let (many, tables) = (many(of), short(tables));
            findings.push(format!("{many} of commit {commit}, and the tables are of {tables}"));
        }
    } else {
        findings.extend(several("commits", &commits));
    }
    findings.extend(several("machines", &by(&records, |record| Some(record.host()))));
    let finding = |text| format!("{FILE}: {text}: `just experiments` measures them again");
    Ok(findings.into_iter().map(finding).collect())
}

/// A finding if there are several groups of experiments.
fn several(what: &str, groups: &BTreeMap<String, Vec<&str>>) -> Option<String> {
    let list = groups.iter().map(|(group, of)| format!("{group} ({})", of.join(", ")));
    let list = list.collect::<Vec<_>>().join("; ");
    (groups.len() > 1).then(|| format!("the results are of {} {what}: {list}", groups.len()))
}

/// The experiments by a text of their records, which is empty where there is none.
fn by(records: &[Record], of: impl Fn(&Record) -> Option<String>) -> BTreeMap<String, Vec<&str>> {
    let mut groups: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for record in records {
        groups.entry(of(record).unwrap_or_default()).or_default().push(&record.experiment);
    }
    groups
}

/// The experiments, as the beginning of a sentence.
fn many(experiments: &[&str]) -> String {
    match experiments {
        [one] => format!("the result of {one} is"),
        [first, ..] => format!("{} results ({first} and others) are", experiments.len()),
        [] => String::new(),
    }
}

/// The version of the workspace with this manifest.
fn version(manifest: &str) -> Option<String> {
    let manifest: toml::Table = toml::from_str(manifest).ok()?;
    let package = manifest.get("workspace")?.get("package")?;
    package.get("version")?.as_str().map(str::to_owned)
}
