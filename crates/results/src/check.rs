//! Finds stale pages. A page is stale if
//!
//! * a region differs from what its table comes to, has no table, or a table has no region or no
//!   data;
//! * its figures are those of a trial, of another command than the manifest has, or of another
//!   commit than those of other pages;
//! * its figures are of several machines; README, docs/results and the ways from other crates
//!   ([`together`]) count as one page here;
//! * a table of figures stands outside of regions, or a measured figure in a sentence, and is not
//!   declared exact;
//! * kept output has no run;
//! * the measured commit is no ancestor of this one, or a release was made after it;
//! * the results of experiments are of another version than this one, of another commit than the
//!   tables or of none, or of several machines (see `experiments`).
//!
//! Changes of code alone make nothing stale: every commit would. They are counted and printed.

use crate::data::{self, Data};
use crate::experiments;
use crate::fault::{Fault, read};
use crate::host::git;
use crate::manifest::{Manifest, Run};
use crate::measure::command;
use crate::page::{Text, data_of};
use crate::table::{render, short};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The code on which the figures depend most.
const HOT: [&str; 4] =
    ["crates/sync/src", "crates/layout/src", "crates/pool/src", "crates/silvics/src"];

/// All findings. If `unmeasured`, a table whose runs have no output is none, nor are old results of
/// experiments.
pub(crate) fn findings(manifest: &Manifest, unmeasured: bool) -> Result<Vec<String>, Fault> {
    let mut findings = Vec::new();
    for path in pages(manifest)? {
        if path.exists() {
            page(manifest, &path, unmeasured, &mut findings)?;
        } else {
            findings.push(format!("{}: a manifest names it, and it is not there", path.display()));
        }
    }
    runs(manifest, unmeasured, &mut findings)?;
    for entry in std::fs::read_dir(data::FOLDER).into_iter().flatten().flatten() {
        let path = entry.path();
        if manifest.runs().all(|run| data::path(Path::new(data::FOLDER), &run.id) != path) {
            findings.push(format!("{}: no manifest has this run: delete it", path.display()));
        }
    }
    Ok(findings)
}

/// The pages at the root.
const ROOT: [&str; 2] = ["README.md", "ARCHITECTURE.md"];

/// Pages whose figures are not those of `just results`: each experiment has its own commit, and the
/// conditions under which a claim is seen.
const DATED: [&str; 1] = ["docs/experiments.md"];

/// The pages at the root, all pages of docs, and all pages that a manifest names.
fn pages(manifest: &Manifest) -> Result<BTreeSet<PathBuf>, Fault> {
    let mut pages: BTreeSet<PathBuf> = BTreeSet::new();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        let at = |error| Fault(format!("{}: {error}", folder.display()));
        for entry in std::fs::read_dir(&folder).map_err(at)?.flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                pages.insert(path);
            }
        }
    }
    pages.retain(|page| DATED.iter().all(|dated| page != Path::new(dated)));
    pages.extend(manifest.tables().map(|(page, _)| page.to_owned()));
    pages.extend(ROOT.iter().map(PathBuf::from).filter(|path| path.exists()));
    Ok(pages)
}

fn page(
    manifest: &Manifest,
    path: &Path,
    unmeasured: bool,
    findings: &mut Vec<String>,
) -> Result<(), Fault> {
    let text = Text::new(&read(path)?);
    let name = path.display();
    let regions = match text.regions() {
        Ok(regions) => regions,
        Err(fault) => {
            findings.push(format!("{name}: {fault}"));
            return Ok(());
        }
    };
    if let Some(line) = text.unclosed() {
        findings.push(format!(
            "{name}: line {line}: text of another program begins here and has no end, so nothing \
             behind it is checked: add the end mark"
        ));
    }
    for line in text.unmeasured()? {
        findings.push(format!(
            "{name}: line {line}: a table of figures outside of regions: measure it by a manifest, \
             or declare it `<!-- exact -->`"
        ));
    }
    for (line, figure) in text.told()? {
        findings.push(format!(
            "{name}: line {line}: `{figure}` outside of regions: move it to a table of a manifest, \
             or declare its paragraph `<!-- exact -->`"
        ));
    }
    let own: Vec<_> = manifest.tables().filter(|(page, _)| *page == path).collect();
    for region in &regions {
        if own.iter().all(|(_, table)| table.id != region.id) {
            findings.push(format!("{name}: no manifest has a table `{}` here", region.id));
        }
    }
    for (_, table) in own {
        let id = &table.id;
        let Some(region) = regions.iter().find(|region| region.id == *id) else {
            findings.push(format!("{name}: it has no region for the table `{id}`"));
            continue;
        };
        match data_of(table)? {
            Err(_) if unmeasured => {}
            Err(missing) => findings.push(format!(
                "{name}: table `{id}`: {} not measured: {}",
                if missing.len() == 1 { "a run is" } else { "runs are" },
                missing.join(", ")
            )),
            Ok(runs) => match render(table, &runs) {
                Err(fault) => findings.push(format!("{name}: {fault}")),
                Ok(rendered) if text.inside(region) != rendered => {
                    findings.push(format!("{name}: table `{id}` differs from its data"));
                }
                Ok(_) => {}
            },
        }
    }
    Ok(())
}

/// The stamps of all runs, and the results of experiments unless figures may be unmeasured.
fn runs(manifest: &Manifest, unmeasured: bool, findings: &mut Vec<String>) -> Result<(), Fault> {
    let mut commits: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut machines: BTreeMap<String, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for run in manifest.runs() {
        let Some(Data { stamp, .. }) = Data::read(Path::new(data::FOLDER), &run.id)? else {
            continue;
        };
        if stamp.trial {
            findings.push(format!("run `{}`: its figures are those of a trial", run.id));
        } else if stamp.command != command(run, false) {
            findings.push(format!("run `{}`: the manifest has another command now", run.id));
        }
        commits.entry(stamp.commit).or_default().push(&run.id);
        for place in places(manifest, run) {
            machines
                .entry(place)
                .or_default()
                .entry(stamp.machine.clone())
                .or_default()
                .push(&run.id);
        }
    }
    let named = |(place, runs): (&str, &Vec<&str>)| format!("{place} ({})", runs.join(", "));
    if commits.len() > 1 {
        let list: Vec<String> = commits.iter().map(|(of, runs)| named((short(of), runs))).collect();
        findings.push(format!("the figures are of {} commits: {}", list.len(), list.join("; ")));
    }
    for (place, machines) in machines.iter().filter(|(_, machines)| machines.len() > 1) {
        let list: Vec<String> = machines.iter().map(|(of, runs)| named((of, runs))).collect();
        let count = list.len();
        findings
            .push(format!("the figures of {place} are of {count} machines: {}", list.join("; ")));
    }
    for commit in commits.keys() {
        findings.extend(age(commit));
    }
    let only = commits.keys().next().filter(|_| commits.len() == 1);
    if let Some(commit) = only {
        long_run(commit);
    }
    if !unmeasured {
        findings.extend(experiments::findings(only.map(String::as_str))?);
    }
    Ok(())
}

/// The pages that have a table of a run, by name. Those of [`together`] have one name.
fn places(manifest: &Manifest, run: &Run) -> BTreeSet<String> {
    let own = manifest.tables().filter(|(_, table)| table.runs().contains(&run.id));
    let name = |page: &Path| {
        if together(page) {
            "README, docs/results and the ways from other crates".into()
        } else {
            page.display().to_string()
        }
    };
    own.map(|(page, _)| name(page)).collect()
}

/// Whether a page is one of those whose figures are read together. The machines of the others may
/// differ: a campaign takes hours, and each of these pages stands alone.
fn together(page: &Path) -> bool {
    let name = page.to_string_lossy();
    ["README.md", "docs/results/", "docs/migrate"].iter().any(|start| name.starts_with(start))
}

/// Says so if the figures of the long run are of another commit than the tables: it is repeated
/// after changes of algorithms, and not with each table.
fn long_run(commit: &str) {
    let page = std::fs::read_to_string("docs/trust.md").unwrap_or_default();
    let own = page.lines().find_map(|line| line.strip_prefix("Commit `")?.split('`').next());
    if let Some(own) = own.filter(|own| !commit.starts_with(own)) {
        println!("docs/trust.md is of {own}, and the tables are of {}", short(commit));
    }
}

/// Whether a commit is too old for its figures.
fn age(commit: &str) -> Option<String> {
    let name = short(commit);
    if git(&["rev-parse", "--is-shallow-repository"]).is_none_or(|shallow| shallow == "true") {
        println!("skipped: this clone has no history by which to judge the age of {name}");
        return None;
    }
    if git(&["merge-base", "--is-ancestor", commit, "HEAD"]).is_none() {
        return Some(format!("the figures are of {name}, which is no ancestor of this commit"));
    }
    let then = releases(&git(&["show", &format!("{commit}:CHANGELOG.md")]).unwrap_or_default());
    let now = releases(&std::fs::read_to_string("CHANGELOG.md").unwrap_or_default());
    if let Some(release) = now.iter().find(|release| !then.contains(*release)) {
        return Some(format!("the figures are of {name}, before the release `{release}`"));
    }
    let range = format!("{commit}..HEAD");
    let mut arguments = vec!["rev-list", "--count", &range, "--"];
    arguments.extend(HOT);
    match git(&arguments).as_deref() {
        None | Some("0") => {}
        Some(count) => println!("{count} commits changed the library since the figures of {name}"),
    }
    None
}

/// The headings of a change log that name a release.
fn releases(text: &str) -> Vec<String> {
    let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
    headings.filter(|heading| !heading.contains("Unreleased")).map(str::to_owned).collect()
}
