//! The result as a table or as JSON.

use super::report::{
    Compressed, Config, FindingRow, Kind, ModelRow, NOTHING, OTHERS, Prefixes, Report, SEARCHED,
    Traced,
};
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::host::counters::PerOp;
use crate::output;
use crate::table::Table;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write;

/// The most kinds with rows in tables. A trace can have more kinds; JSON has all of them.
const SHOWN: usize = 20;
/// The longest name in a table, in characters.
const NAME_MAX: usize = 56;

/// Prints the result.
pub fn print(report: &Report, format: Format) -> Result<(), Error> {
    match format {
        Format::Json => output::json(report),
        // `plan::format` has refused CSV.
        Format::Table | Format::Csv => output::text(&text(report)),
    }
}

pub fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// The result as text for people.
pub fn text(report: &Report) -> String {
    let mut text = heading(report) + "\n";
    for (question, table) in answers(report) {
        let _ = write!(text, "\n{question}\n{table}\n");
    }
    if let Some(note) = &report.physical_note {
        let _ = writeln!(text, "\nPhysical addresses: {note}.");
    }
    findings(&mut text, report);
    if let Some((what, table)) = fixes(report) {
        let _ = write!(text, "\n{what}\n{table}\n");
    }
    text
}

/// The questions about a layout, each with its answer.
pub fn answers(report: &Report) -> Vec<(String, Table)> {
    let names = &Names::new(report);
    let mut answers: Vec<(String, Table)> = vec![
        ("Which kind is in which size class?".into(), classes(report, names)),
        ("Who lives close to it? (shares of the bytes there)".into(), neighbours(report, names)),
        ("How does it spread over sets and pages?".into(), sets(report, names)),
    ];
    if let Some(found) = &report.compression {
        let question = format!(
            "What do paths without nodes save? (a lookup passes {:.2} nodes for {:.2} digits)",
            found.nodes_passed, found.digits
        );
        answers.push((question, compression(found)));
    }
    if let Some(found) = &report.prefixes {
        let question = if found.once {
            "What do common prefixes save? (bytes per key)"
        } else {
            "What would common prefixes save, stored once as in `blocks:prefixes`? (bytes per key)"
        };
        answers.push((question.into(), prefixes(found)));
    }
    if let Some(row) = &report.model {
        answers.push((model_heading(row), model(row)));
    }
    answers
}

/// The names of kinds in tables. The kinds of a trace, whose names are long, have numbers.
pub struct Names<'a>(HashMap<&'a str, usize>);

impl<'a> Names<'a> {
    pub fn new(report: &'a Report) -> Self {
        let kinds = report.kinds.iter().map(|kind| kind.name.as_str());
        Self(if report.trace.is_some() { kinds.zip(1..).collect() } else { HashMap::new() })
    }

    /// The number of a kind, or else its name.
    pub fn short<'b>(&self, name: &'b str) -> Cow<'b, str> {
        self.0.get(name).map_or(plain(name), |number| format!("#{number}").into())
    }

    /// The number of a kind, if it has one, and its name, shortened if it is long.
    pub fn long(&self, name: &str) -> String {
        match self.0.get(name) {
            Some(number) => format!("#{number} {}", elided(name)),
            None => name.into(),
        }
    }
}

/// A name without control characters and `|`, so that it breaks no table and a terminal does not
/// obey it.
fn plain(name: &str) -> Cow<'_, str> {
    let special = |c: char| c.is_control() || c == '|';
    if name.contains(special) { name.replace(special, "\u{fffd}").into() } else { name.into() }
}

/// A name without its middle, if it is long.
fn elided(name: &str) -> Cow<'_, str> {
    let name = plain(name);
    let characters = name.chars().count();
    if characters <= NAME_MAX {
        return name;
    }
    let half = (NAME_MAX - 1) / 2;
    let (head, tail): (String, String) =
        (name.chars().take(half).collect(), name.chars().skip(characters - half).collect());
    format!("{head}…{tail}").into()
}

fn shown(report: &Report) -> (&[Kind], &[Kind]) {
    report.kinds.split_at(report.kinds.len().min(SHOWN))
}

fn traced(trace: &Traced, kinds: usize) -> String {
    format!(
        "trace {}: {} events; most bytes were alive after event {}: {} in {} objects of {kinds} kinds; {} \
         frees of unknown objects, {} objects without a free; lines and sets of {}",
        elided(&trace.file),
        trace.events,
        trace.peak_event,
        trace.peak_bytes,
        trace.peak_objects,
        trace.unknown_frees,
        trace.overlaps,
        trace.machine
    )
}

/// A line that describes the index or trace that was inspected.
pub fn heading(report: &Report) -> String {
    let of_index = report.config.as_ref().map(built);
    let of_trace = report.trace.as_ref().map(|trace| traced(trace, report.kinds.len()));
    of_index.into_iter().chain(of_trace).collect()
}

/// The index or trace that was inspected, in a few words.
pub fn subject(report: &Report) -> String {
    let of_index = report.config.as_ref().map(|config| config.index.clone());
    let traced = |trace: &Traced| format!("the program traced in {}", elided(&trace.file));
    of_index.into_iter().chain(report.trace.as_ref().map(traced)).collect()
}

fn built(config: &Config) -> String {
    let host = if config.host.is_empty() {
        String::new()
    } else {
        format!(", beside {} for each key", config.host.join(", "))
    };
    let file = config.key_file.as_ref().map_or_else(String::new, |file| {
        let (of, dropped) = (file.keys, file.duplicates_dropped);
        format!(" of the {of} in `{}`, {dropped} duplicates dropped", elided(&file.path))
    });
    let set = config.keyset.map_or_else(String::new, |set| format!(" of the key set {set}"));
    format!(
        "{}, {} on {} pages, {} {} keys{set}{file} ({}){host}: {} bytes, {:.1} per key",
        config.index,
        config.placement,
        config.pages,
        config.keys,
        config.key_type,
        config.dist,
        config.bytes,
        config.bytes_per_key
    )
}

/// The class of most objects, and their share if there are others.
fn study_class(kind: &Kind) -> String {
    let usual = kind.study_classes.get(&kind.study_class).copied().unwrap_or(0);
    if usual == kind.objects {
        return kind.study_class.to_string();
    }
    format!("{} ({})", kind.study_class, percent(usual as f64 / kind.objects.max(1) as f64))
}

fn classes(report: &Report, names: &Names<'_>) -> Table {
    let mut table = output::table(&[
        "kind",
        "objects",
        "bytes",
        "total",
        "class",
        "class in the study",
        "hot bytes",
        "in two lines",
        "lines/visit",
        "needed",
    ])
    .drops(&["class in the study", "class", "total", "in two lines"]);
    let (kinds, others) = shown(report);
    for kind in kinds {
        table.add_row([
            names.long(&kind.name),
            kind.objects.to_string(),
            format!("{:.0}", kind.bytes),
            format!("{:.0}", kind.total()),
            kind.class.map_or_else(|| "-".into(), |class| format!("{class:.0}")),
            study_class(kind),
            format!("{:.0}", kind.hot_bytes),
            percent(kind.straddle_share),
            format!("{:.3}", kind.lines_per_visit),
            format!("{:.3}", kind.lines_needed),
        ]);
    }
    if !others.is_empty() {
        let objects: usize = others.iter().map(|kind| kind.objects).sum();
        let total: f64 = others.iter().map(Kind::total).sum();
        let mut row = [const { String::new() }; 10];
        row[0] = format!("{} other kinds", others.len());
        row[1] = objects.to_string();
        row[2] = format!("{:.0}", total / objects.max(1) as f64);
        row[3] = format!("{total:.0}");
        table.add_row(row);
    }
    table
}

/// Shares of at least a thousandth, the largest first.
fn shares(shares: &BTreeMap<String, f64>, names: &Names<'_>) -> String {
    let mut kinds: Vec<(&String, f64)> = shares
        .iter()
        .filter(|(kind, share)| **share >= 0.001 && *kind != SEARCHED)
        .map(|(kind, share)| (kind, *share))
        .collect();
    kinds.sort_by(|a, b| b.1.total_cmp(&a.1));
    let kinds: Vec<String> = kinds
        .iter()
        .take(4)
        .map(|(kind, share)| {
            let kind = match kind.as_str() {
                NOTHING => "nothing".into(),
                OTHERS => "others".into(),
                kind => names.short(kind),
            };
            format!("{kind} {}", percent(*share))
        })
        .collect();
    if kinds.is_empty() { "-".into() } else { kinds.join(", ") }
}

fn neighbours(report: &Report, names: &Names<'_>) -> Table {
    let mut table = output::table(&[
        "kind",
        "its lines hold",
        "read of them",
        "lines beside them hold",
        "useful beside",
        "its pages hold",
        "read of them",
    ]);
    let searched = |shares: &BTreeMap<String, f64>| shares.get(SEARCHED).copied().unwrap_or(0.0);
    for kind in shown(report).0.iter().filter(|kind| kind.hot_bytes > 0.0) {
        table.add_row([
            names.short(&kind.name).into_owned(),
            shares(&kind.in_lines, names),
            percent(searched(&kind.in_lines)),
            shares(&kind.in_neighbours, names),
            percent(kind.neighbour_useful_share),
            shares(&kind.in_pages, names),
            percent(searched(&kind.in_pages)),
        ]);
    }
    table
}

fn sets(report: &Report, names: &Names<'_>) -> Table {
    let mut header = vec![
        "kind",
        "L1 sets",
        "L2 sets",
        "LLC sets",
        "expected",
        "usual stride",
        "4 KiB pages",
        "2 MiB regions",
        "pages in a run",
    ];
    // The physical memory of a traced program is not known, because the program has ended.
    let here = report.trace.is_none();
    if here {
        header.extend(["LLC sets in memory", "huge pages"]);
    }
    let mut table = output::table(&header).drops(&[
        "pages in a run",
        "2 MiB regions",
        "usual stride",
        "LLC sets in memory",
        "L1 sets",
    ]);
    let known = |share: Option<f64>| share.map_or_else(|| "-".into(), percent);
    for kind in shown(report).0 {
        let mut row = vec![
            names.short(&kind.name).into_owned(),
            percent(kind.set_coverage_l1),
            percent(kind.set_coverage_l2),
            percent(kind.set_coverage),
            percent(kind.set_coverage_expected),
            kind.usual_stride().map_or_else(
                || "-".into(),
                |(stride, share)| format!("{stride} ({})", percent(share)),
            ),
            kind.pages_4k.to_string(),
            kind.regions_2m.to_string(),
            format!("{:.1}", kind.page_run),
        ];
        if here {
            row.extend([known(kind.set_coverage_physical), known(kind.huge_page_share)]);
        }
        table.add_row(row);
    }
    table
}

fn compression(found: &Compressed) -> Table {
    let mut table = output::table(&[
        "by",
        "objects",
        "nodes less",
        "bytes less, at least",
        "nodes less a lookup",
    ]);
    for (by, saved) in
        [("compressed paths", &found.by_paths), ("leaves that hang high", &found.by_leaves)]
    {
        table.add_row([
            by.into(),
            saved.objects.to_string(),
            saved.nodes.to_string(),
            saved.bytes.to_string(),
            format!("{:.2}", saved.passed),
        ]);
    }
    table
}

fn prefixes(found: &Prefixes) -> Table {
    let mut table =
        output::table(&["blocks", "keys a block", "key", "in its prefix", "prefixes", "saved"]);
    let bytes = |bytes: f64| format!("{bytes:.1}");
    table.add_row([
        found.blocks.to_string(),
        format!("{:.1}", found.keys as f64 / found.blocks.max(1) as f64),
        bytes(found.key_bytes),
        bytes(found.shared_bytes),
        bytes(found.prefix_bytes),
        bytes(found.saved()),
    ]);
    table
}

fn model_heading(model: &ModelRow) -> String {
    format!(
        "What would {} make of it? ({} LLC sets by {}, {}adjacent lines fetched, {} pages; per lookup of \
         {})",
        model.machine,
        model.llc_sets,
        model.llc_hash,
        if model.adjacent_line_prefetch { "" } else { "no " },
        model.page_size,
        model.lookups
    )
}

fn model(model: &ModelRow) -> Table {
    let mut table = output::table(&[
        "objects",
        "lines",
        "L1 misses",
        "L2 misses",
        "LLC misses",
        "fetched beside",
        "of use",
        "TLB misses",
        "page walks",
        "cycles",
    ])
    .drops(&["objects", "fetched beside", "of use", "L2 misses"]);
    let figures = [
        model.visits,
        model.lines,
        model.l1_misses,
        model.l2_misses,
        model.llc_misses,
        model.prefetched,
        model.prefetched_used,
        model.tlb_misses,
        model.page_walks,
    ];
    let figures = figures.map(|figure| format!("{figure:.2}"));
    table.add_row(figures.into_iter().chain([format!("{:.0}", model.cycles)]));
    table
}

/// The gain that is predicted for a finding's remedy.
fn gain(row: &FindingRow) -> String {
    match row.predicted_gain {
        Some(gain) => format!("predicted gain {}", percent(gain)),
        None => {
            "nothing is predicted: lookups alone do not show it, or where objects would lie".into()
        }
    }
}

/// A finding, worded for tables.
pub struct Told<'a> {
    pub id: &'static str,
    pub kind: String,
    pub evidence: String,
    pub remedy: &'a str,
    /// The predicted gain. `None` if there were no lookups.
    pub gain: Option<String>,
    /// Whether its remedy pays.
    pub pays: bool,
}

/// The sentence that stands in place of findings.
pub const NO_FINDINGS: &str = "No findings that a remedy would pay for.";

/// The findings, those first whose remedy pays, and a sentence about findings that are left out:
/// those of a trace's kinds without a row.
pub fn told<'r>(report: &'r Report) -> (Vec<Told<'r>>, Option<String>) {
    let names = Names::new(report);
    let shown: HashSet<&str> = shown(report).0.iter().map(|kind| kind.name.as_str()).collect();
    let has_row = |row: &&FindingRow| report.trace.is_none() || shown.contains(row.kind.as_str());
    let (mut rows, left): (Vec<_>, Vec<_>) = report.findings.iter().partition(has_row);
    rows.sort_by_key(|row| !row.pays);
    let told = |row: &'r FindingRow| Told {
        id: row.id,
        kind: names.long(&row.kind),
        evidence: row.evidence.sentence(|kind| names.short(kind)),
        remedy: &row.remedy,
        gain: report.model.as_ref().map(|_| gain(row)),
        pays: row.pays,
    };
    let left = (!left.is_empty())
        .then(|| format!("{} findings of kinds with fewer bytes: see --format json.", left.len()));
    (rows.into_iter().map(told).collect(), left)
}

fn findings(text: &mut String, report: &Report) {
    let (told, left) = told(report);
    if left.is_none() && !told.iter().any(|finding| finding.pays) {
        let _ = writeln!(text, "\n{NO_FINDINGS}");
    }
    for Told { id, kind, evidence, remedy, gain, pays } in told {
        let what = if pays { "remedy" } else { "the remedy would not pay here" };
        let gain = gain.map_or_else(String::new, |gain| format!("; {gain}"));
        let _ = write!(text, "\n{id} ({kind}): {evidence}.\n  {what}: {remedy}{gain}\n");
    }
    if let Some(left) = left {
        let _ = writeln!(text, "\n{left}");
    }
}

/// The outcome of the remedies, with `--fix`.
pub fn fixes(report: &Report) -> Option<(String, Table)> {
    let pairs = report.fixes.first()?.pairs;
    let counted = report.fixes.iter().flat_map(|fix| [&fix.counters_before, &fix.counters_after]);
    let counted = PerOp::known(counted.flatten());
    let mut header = vec!["remedy", "for", "predicted", "model", "seen", "interval", "left"];
    header.extend(counted.iter().map(|event| event.heading()));
    let mut table = output::table(&header);
    for fix in &report.fixes {
        let mut cells = vec![
            fix.remedy.clone(),
            fix.findings.join(", "),
            fix.predicted_gain.map_or_else(|| "-".into(), percent),
            percent(fix.model_gain),
            percent(fix.seen_gain),
            format!("{} to {}", percent(fix.seen_low), percent(fix.seen_high)),
            if fix.left.is_empty() { "-".into() } else { fix.left.join(", ") },
        ];
        cells.extend(counted.iter().map(|&event| {
            let counters = [fix.counters_before, fix.counters_after];
            let [before, after] = counters.map(|counters| {
                let count = counters.and_then(|counters| counters.get(event));
                count.map_or_else(|| "-".into(), |count| event.shown(count))
            });
            format!("{before} to {after}")
        }));
        table.add_row(cells);
    }
    let mut what = format!(
        "What the remedies came to, each alone: gain in cycles of the model, for one thread's lookups of keys \
         that are there, and in time per lookup of any key of the space by all cores (median of {pairs} \
         pairs of runs in turns)"
    );
    let counted = report.fixes.iter().flat_map(|fix| [&fix.counters_before, &fix.counters_after]);
    if let Some(share) = PerOp::scaled(counted.flatten()) {
        let _ = write!(what, "; counted in {} of the time and scaled", percent(share));
    }
    Some((what, table))
}
