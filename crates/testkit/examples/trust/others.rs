//! The sentences about loom, whose models belong to no structure, about the recorder, and about the
//! jobs whose figures are not shown.

use crate::logs::Logs;
use crate::wrapped;

/// The paragraphs.
pub(crate) fn sentences(logs: &Logs) -> Result<String, String> {
    let mut paragraphs = Vec::new();
    if let Some(text) = logs.text("loom.txt")? {
        let passed = text.lines().filter(|l| l.starts_with("test ") && l.ends_with("ok")).count();
        if passed == 0 {
            return Err("loom.txt: its output has no model that passed".into());
        }
        paragraphs.push(format!(
            "Loom: {passed} models of small pieces, each explored whole within its bound."
        ));
    }
    if let Some(text) = logs.text("recorder.txt")? {
        let builds = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
        let pairs = builds.filter(|words| words.len() == 3 && words[1].parse::<f64>().is_ok());
        let (equal, more): (Vec<_>, Vec<_>) = pairs.partition(|words| words[1] == words[2]);
        if equal.is_empty() && more.is_empty() {
            return Err("recorder.txt: its output has no build of a structure".into());
        }
        paragraphs.push(format!(
            "Recorder: a lookup takes as many instructions with its calls as without them in {} \
             builds of structures, and more in {}.",
            equal.len(),
            more.len()
        ));
    }
    for (verb, is_skipped) in [("passed", false), ("were skipped", true)] {
        let jobs = logs.jobs().filter(|(_, skipped)| *skipped == is_skipped);
        let names: Vec<String> =
            jobs.map(|(name, _)| format!("`{}`", name.split('.').next().unwrap_or(name))).collect();
        if !names.is_empty() {
            paragraphs.push(format!("Jobs of `.ci/stress` that {verb}: {}.", names.join(", ")));
        }
    }
    Ok(paragraphs.iter().map(|text| wrapped(text)).collect::<Vec<_>>().join("\n\n"))
}
