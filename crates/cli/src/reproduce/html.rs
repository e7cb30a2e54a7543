//! The page of experiments: a row for each number of docs/experiments.md, and a section for each
//! result.

use super::evidence::{Evidence, Level, Verdict};
use super::lab::Lab;
use super::report::Report;
use super::{Experiment, PARTS, all};
use crate::flags::error::Error;
use crate::flags::units::{Bytes, plural};
use crate::page::origin::{self, Run};
use crate::page::{self, Page, capital};
use crate::svg::escape;
use std::fmt::Write;

/// The state of a number on the page.
enum State<'a> {
    Judged(&'a Report),
    /// It is no experiment of its own. The text says which experiments show it.
    Part(&'static str),
    /// It was not run, for this reason.
    NotRun(String),
}

/// A number of the list.
struct Entry<'a> {
    name: &'static str,
    title: &'static str,
    state: State<'a>,
}

const LEVELS: [(Level, &str); 3] =
    [(Level::Fact, "Facts"), (Level::Model, "Model"), (Level::Clock, "Clock")];

const VERDICTS: [Verdict; 4] =
    [Verdict::Confirmed, Verdict::NotSeen, Verdict::Contradicted, Verdict::CannotBeShown];

/// The facts about the parts of a campaign, if reports come from parts.
#[derive(Default)]
pub struct Parts<'a> {
    /// The experiments that have yet to run.
    pub missing: &'a [String],
    /// Sentences on missing experiments, and on machines that differ.
    pub remarks: &'a [String],
    /// The starts of the parts.
    pub runs: &'a [Run],
}

/// The page of these reports. `stopped` is the error that ended the run, if one did.
pub fn page(
    lab: &Lab,
    reports: &[Report],
    stopped: Option<&Error>,
    parts: &Parts<'_>,
) -> Result<String, Error> {
    let entries = entries(reports, stopped, parts.missing);
    let mut page = Page::new("Experiments of the literature, repeated");
    page.facts(&facts(lab, parts));
    page.contents();
    for remark in parts.remarks {
        page.labelled("Note", remark);
    }
    page.paragraph(
        "Claims and their numbers are the sources', from the sources' machines. Thresholds were \
         chosen before the measurement. Everything under \u{201c}found\u{201d} is from this run.",
    );
    explain(&mut page);
    summary(&mut page, &entries);
    let mut source = "";
    for entry in &entries {
        let State::Judged(report) = entry.state else { continue };
        let prefix = report.experiment.split('/').next().unwrap_or_default();
        if prefix != source {
            source = prefix;
            page.heading(2, source, heading(source));
        }
        article(&mut page, report, lab);
    }
    page.heading(2, "save", "Data");
    page.paragraph(
        "This page contains its results as lines of JSON, one for each experiment, as \
         `silvics reproduce --format json` prints them.",
    );
    page.lines("silvics-experiments", reports)?;
    Ok(page.finish())
}

/// All numbers of the list, in its order.
fn entries<'a>(
    reports: &'a [Report],
    stopped: Option<&Error>,
    missing: &[String],
) -> Vec<Entry<'a>> {
    let why = |name: &str| match stopped {
        None if missing.iter().any(|of| of == name) => "its part has not run it yet".into(),
        Some(Error::Interrupted) => "the run was interrupted before it".into(),
        Some(error) => format!("the run ended before it: {error}"),
        None => "the command line does not name it".into(),
    };
    let of = |one: &'static Experiment| {
        let report = reports.iter().find(|report| report.experiment == one.name);
        let state = report.map_or_else(|| State::NotRun(why(one.name)), State::Judged);
        Entry { name: one.name, title: one.title, state }
    };
    let mut entries = Vec::new();
    for one in all() {
        let prefix = |name: &'static str| name.split('/').next();
        // A part is the first number of its source.
        let part = PARTS.iter().find(|part| {
            prefix(part.name) == prefix(one.name)
                && !entries.iter().any(|entry: &Entry| entry.name == part.name)
        });
        entries.extend(part.map(|part| Entry {
            name: part.name,
            title: part.title,
            state: State::Part(part.shown_by),
        }));
        entries.push(of(one));
    }
    entries
}

fn facts(lab: &Lab, parts: &Parts<'_>) -> Vec<(&'static str, String)> {
    let plan = &lab.plan;
    let mut facts = origin::facts(&lab.machine, parts.runs);
    let levels: Vec<&str> = plan.levels.iter().map(|level| level.name()).collect();
    facts.push(("Levels", levels.join(", ")));
    let size = match (plan.keys, plan.quick) {
        (Some(keys), true) => format!("quick, {keys} keys"),
        (Some(keys), false) => format!("{keys} keys"),
        (None, true) => {
            "quick: a sixteenth of the keys and of the model's last level, and short runs".into()
        }
        (None, false) => "each experiment's own".into(),
    };
    facts.push(("Size", size));
    facts.push(("Seed", plan.seed.to_string()));
    facts
}

fn explain(page: &mut Page) {
    page.list([
        "A fact is counted exactly: bytes, offsets, pages, locks, restarts.",
        "The model replays recorded addresses of real operations through caches and translations \
         of the source's machine.",
        "The clock measures two builds in turns on this machine, with intervals.",
        "The verdict on a claim is the worst of the lines that it rests on. Asides do not count, \
         and are named beside the verdict if they differ.",
    ]);
}

/// The title of a source's section.
fn heading(source: &str) -> &'static str {
    match source {
        "bst" => "Binary search trees and the allocator",
        "memtable" => "RocksDB's skip list memtable",
        "trie" => "Patricia tries, alphabets, transactions",
        "art" => "The adaptive radix tree and the TLB",
        _ => "The contention adapting tree",
    }
}

/// The class and the text of a chip.
fn chip(state: &State<'_>) -> (&'static str, String) {
    match state {
        State::Judged(Report { failed: Some(_), .. }) => ("failed", "failed".into()),
        State::Judged(report) => (class(report.verdict), report.outcome()),
        State::Part(_) => ("other", "part of others".into()),
        State::NotRun(_) => ("other", "not run".into()),
    }
}

fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Confirmed => "confirmed",
        Verdict::NotSeen => "not-seen",
        Verdict::Contradicted => "contradicted",
        Verdict::CannotBeShown => "cannot",
    }
}

/// The counts of verdicts, and a table of all numbers.
fn summary(page: &mut Page, entries: &[Entry<'_>]) {
    page.heading(2, "summary", "Summary");
    page.raw("<ul class=\"chips\">\n");
    let mut seen: Vec<(&str, String)> = Vec::new();
    let verdicts = VERDICTS.map(|verdict| (class(verdict), verdict.name().into()));
    for kind in verdicts.into_iter().chain(entries.iter().map(|entry| chip(&entry.state))) {
        let count = entries.iter().filter(|entry| chip(&entry.state) == kind).count();
        if seen.contains(&kind) || count == 0 {
            continue;
        }
        page.raw(&format!("<li class=\"chip {}\">{count} {}</li>\n", kind.0, kind.1));
        seen.push(kind);
    }
    page.raw("</ul>\n<table class=\"stack\">\n<thead><tr>");
    for name in ["no.", "experiment", "verdict", "why"] {
        page.raw(&format!("<th>{name}</th>"));
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for entry in entries {
        let (class, text) = chip(&entry.state);
        let chip = match entry.state {
            State::Judged(_) => {
                let id = page::id(entry.name);
                format!("<a class=\"chip {class}\" href=\"#{id}\">{text}</a>")
            }
            _ => format!("<span class=\"chip {class}\">{text}</span>"),
        };
        page.raw(&format!(
            "<tr><td><b>{}</b></td><td>{}</td><td>{chip}</td><td>{}</td></tr>\n",
            entry.name,
            escape(entry.title),
            page::marked(&why(&entry.state))
        ));
    }
    page.raw("</tbody>\n</table>\n");
}

/// One sentence about the state of a number.
fn why(state: &State<'_>) -> String {
    let report = match state {
        State::Judged(report) => report,
        State::Part(text) => return capital(text),
        State::NotRun(why) => return capital(why),
    };
    if report.failed.is_some() {
        return report.cannot_show.iter().map(|reason| capital(reason)).collect();
    }
    let decide: Vec<&Evidence> = report.evidence.iter().filter(|line| line.decides).collect();
    let mut text = match &decide[..] {
        [] => return "The levels of this run leave out what the verdict rests on".into(),
        lines => format!("{} deciding line{}", lines.len(), plural(lines.len())),
    };
    if let Some(line) = decide.iter().find(|line| line.verdict == report.verdict)
        && report.verdict != Verdict::Confirmed
    {
        let count = decide.iter().filter(|of| of.verdict == report.verdict).count();
        let _ = write!(text, ", {count} {}: {}", report.verdict.name(), line.what);
        if report.verdict == Verdict::CannotBeShown {
            let _ = write!(text, " ({})", line.found);
        }
    }
    match report.except.len() {
        0 => {}
        1 => text.push_str("; 1 aside differs"),
        count => _ = write!(text, "; {count} asides differ"),
    }
    text
}

/// The section of an experiment.
fn article(page: &mut Page, report: &Report, lab: &Lab) {
    let id = page::id(report.experiment);
    let (class, text) = chip(&State::Judged(report));
    page.raw(&format!(
        "<article>\n<h3 id=\"{id}\">{} {} <span class=\"chip {class}\">{text}</span></h3>\n",
        report.experiment,
        escape(report.title)
    ));
    page.raw("<blockquote>\n");
    page.paragraph(&format!("{}.", capital(report.claim)));
    page.element(
        "footer",
        &format!("The claim and its numbers are those of the source: {}", report.source),
    );
    page.raw("</blockquote>\n");
    let elsewhere = if report.elsewhere {
        "; a part of the claim needs other hardware than a small virtual machine"
    } else {
        ""
    };
    page.labelled("Carried by", &format!("{}{elsewhere}", report.carried_by));
    page.labelled("Seen if", report.seen_if);
    for (level, name) in LEVELS {
        let lines: Vec<&Evidence> =
            report.evidence.iter().filter(|line| line.level == level).collect();
        if !lines.is_empty() {
            evidence(page, report, level, name, &lines);
        } else if report.failed.is_none() && !lab.wants(level) {
            page.labelled(name, "not asked for in this run (--level)");
        }
    }
    for map in &report.maps {
        page.figure(&map.picture());
    }
    page.labelled("Verdict", &report.outcome());
    if !report.except.is_empty() {
        page.paragraph("But these asides differ:");
        page.list(&report.except);
    }
    if !report.cannot_show.is_empty() {
        page.paragraph("What cannot be shown here:");
        page.list(&report.cannot_show);
    }
    page.raw("</article>\n");
}

/// The table of the lines of one level.
fn evidence(page: &mut Page, report: &Report, level: Level, name: &str, lines: &[&Evidence]) {
    let model = &report.model;
    let title = match level {
        Level::Fact => format!("{name}, counted on {}", report.machine.arch),
        Level::Model => format!(
            "{name} of {}, {} of last level ({})",
            model.name,
            Bytes(model.llc_bytes),
            model.source
        ),
        Level::Clock => format!("{name} of {}", report.machine),
    };
    page.element("h4", &title);
    page.raw("<table class=\"stack\">\n<thead><tr>");
    for name in ["what", "expected", "found", "verdict"] {
        page.raw(&format!("<th>{name}</th>"));
    }
    page.raw("</tr></thead>\n<tbody>\n");
    for line in lines {
        let aside = if line.decides { "" } else { " class=\"aside\"" };
        let note = if line.decides { "" } else { " (aside)" };
        let (class, verdict) = (class(line.verdict), line.verdict.name());
        page.raw(&format!(
            "<tr{aside}><td>{}</td><td data-label=\"expected\">{}</td>\
             <td data-label=\"found\">{}</td>\
             <td><span class=\"chip {class}\">{verdict}</span>{note}</td></tr>\n",
            escape(&line.what),
            escape(&line.expected),
            escape(&line.found)
        ));
    }
    page.raw("</tbody>\n</table>\n");
}

#[cfg(test)]
mod tests {
    use super::super::plan::{Plan, tests::args};
    use super::*;

    /// A row without a verdict has a reason.
    #[test]
    fn experiments_that_fail_or_do_not_run_have_a_reason() {
        let mut lab = Lab::new(Plan::new(&args()).expect("the defaults"));
        let error = Error::Wrong { index: "a<b".into(), what: "nothing".into() };
        let first = all().next().expect("an experiment");
        let reports = [Report::failed(first, &mut lab, &error)];
        let html =
            page(&lab, &reports, Some(&Error::Interrupted), &Parts::default()).expect("a page");
        assert!(html.contains("1 failed") && html.contains("25 not run"), "{html}");
        assert!(html.contains("The run failed: <code>a&lt;b</code> gave a wrong answer"), "{html}");
        assert!(html.contains("The run was interrupted before it"), "{html}");
        let next = all().nth(1).expect("another experiment").name.to_owned();
        let why = |stopped: Option<&Error>| {
            page(&lab, &reports, stopped, &Parts::default()).expect("a page")
        };
        assert!(why(Some(&error)).contains("The run ended before it: <code>a&lt;b"));
        assert!(why(None).contains("The command line does not name it"));
        let missing = [next];
        let parts = Parts { missing: &missing, ..Parts::default() };
        let html = page(&lab, &reports, None, &parts).expect("a page");
        assert_eq!(html.matches("Its part has not run it yet").count(), 1, "{html}");
    }

    /// The page called such an experiment "cannot be shown here", and the document did not.
    #[test]
    fn an_experiment_without_its_level_has_no_verdict() {
        let of = |levels: &str| {
            let args = crate::flags::reproduce::ReproduceArgs { level: levels.into(), ..args() };
            let mut lab = Lab::new(Plan::new(&args).expect("a plan"));
            let first = all().next().expect("an experiment");
            let report = Report::new(first, &mut lab, Vec::new());
            (report.outcome(), page(&lab, &[report], None, &Parts::default()).expect("a page"))
        };
        for (levels, outcome) in [
            ("facts,model", "none without the clock"),
            ("clock", "none without facts and the model"),
            ("facts,model,clock", "cannot be shown here"),
        ] {
            let (found, html) = of(levels);
            assert_eq!(found, outcome);
            assert!(html.contains(&format!("<b>Verdict:</b> {outcome}")), "{html}");
            assert!(html.contains(&format!(">1 {outcome}</li>")), "{html}");
        }
        let failed = super::super::report::outcome(Some("no memory"), false, "confirmed", &[]);
        assert_eq!(failed, "none: the run failed (no memory)");
    }
}
