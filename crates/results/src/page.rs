//! Regions of pages: the text between the two marks of a table.

use crate::data::{self, Data};
use crate::fault::{Fault, fault, read, write};
use crate::manifest::{Manifest, Table};
use crate::select::Runs;
use crate::stray;
use crate::table::render;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

const BEGIN: &str = "<!-- measured: ";
const WRITTEN: &str = " begins, written by `just results` -->";
const END: &str = " ends -->";

/// The text of a page, whose regions can be replaced.
pub(crate) struct Text {
    lines: Vec<String>,
}

/// A region: the lines between its marks.
#[derive(Debug, PartialEq)]
pub(crate) struct Region {
    pub(crate) id: String,
    pub(crate) inner: Range<usize>,
}

impl Text {
    pub(crate) fn new(text: &str) -> Self {
        Self { lines: text.lines().map(str::to_owned).collect() }
    }

    /// The regions, in order. Their marks must be in pairs. Marks in code are examples.
    pub(crate) fn regions(&self) -> Result<Vec<Region>, Fault> {
        let mut regions: Vec<Region> = Vec::new();
        let mut open: Option<(usize, &str)> = None;
        let mut is_code = false;
        for (at, line) in self.lines.iter().enumerate() {
            is_code ^= line.starts_with("```");
            let Some(mark) = line.strip_prefix(BEGIN).filter(|_| !is_code) else { continue };
            open = match (open, mark.strip_suffix(WRITTEN), mark.strip_suffix(END)) {
                (None, Some(id), _) if regions.iter().all(|region| region.id != id) => {
                    Some((at, id))
                }
                (Some((start, begun)), _, Some(id)) if begun == id => {
                    regions.push(Region { id: id.into(), inner: start + 1..at });
                    None
                }
                _ => return fault(format!("line {}: this mark has no partner: {line}", at + 1)),
            };
        }
        match open {
            Some((at, id)) => fault(format!("line {}: the region `{id}` has no end", at + 1)),
            None => Ok(regions),
        }
    }

    /// The text of a region, as `render` makes it. Empty lines around it do not count.
    pub(crate) fn inside(&self, region: &Region) -> String {
        format!("{}\n", self.lines[region.inner.clone()].join("\n").trim())
    }

    /// The page with another text in some regions.
    pub(crate) fn with(&self, texts: &BTreeMap<String, String>) -> Result<String, Fault> {
        let mut page = String::new();
        let mut done = 0;
        for region in self.regions()? {
            let Some(text) = texts.get(&region.id) else { continue };
            page += &joined(&self.lines[done..region.inner.start]);
            page.extend(["\n", text, "\n"]);
            done = region.inner.end;
        }
        Ok(page + &joined(&self.lines[done..]))
    }

    /// The lines, counted from one, at which tables of figures begin outside of all regions.
    pub(crate) fn unmeasured(&self) -> Result<Vec<usize>, Fault> {
        Ok(stray::tables(&self.lines(), &self.regions()?))
    }

    /// The line at which text of another program begins that has no end.
    pub(crate) fn unclosed(&self) -> Option<usize> {
        stray::unclosed(&self.lines())
    }

    /// The figures in sentences outside of all regions, with their lines, counted from one.
    pub(crate) fn told(&self) -> Result<Vec<(usize, String)>, Fault> {
        Ok(stray::sentences(&self.lines(), &self.regions()?))
    }

    fn lines(&self) -> Vec<&str> {
        self.lines.iter().map(|line| &**line).collect()
    }
}

fn joined(lines: &[String]) -> String {
    lines.iter().flat_map(|line| [line, "\n"]).collect()
}

/// The Markdown tables of a text: a head, a rule and rows. Code is left out.
pub(crate) fn tables_of(lines: &[&str]) -> Vec<Range<usize>> {
    let mut tables: Vec<Range<usize>> = Vec::new();
    let mut is_code = false;
    for (at, line) in lines.iter().enumerate() {
        is_code ^= line.trim_start().starts_with("```");
        if is_code || !line.starts_with('|') {
            continue;
        }
        match tables.last_mut() {
            Some(table) if table.end == at => table.end += 1,
            _ => tables.push(at..at + 1),
        }
    }
    tables.retain(|table| lines.get(table.start + 1).is_some_and(|line| line.starts_with("|---")));
    tables
}

/// The data of a table's runs, or the runs that have none.
pub(crate) fn data_of(table: &Table) -> Result<Result<Runs, Vec<String>>, Fault> {
    let (mut runs, mut missing) = (Runs::new(), Vec::new());
    for id in table.runs() {
        match Data::read(Path::new(data::FOLDER), &id)? {
            Some(data) => drop(runs.insert(id, data)),
            None => missing.push(id),
        }
    }
    Ok(if missing.is_empty() { Ok(runs) } else { Err(missing) })
}

/// Writes all tables whose runs have data into their pages. A table that cannot be made, or has no
/// region, does not keep the others from being written. Returns the faults.
pub(crate) fn write_all(manifest: &Manifest) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut pages: BTreeMap<&Path, BTreeMap<String, String>> = BTreeMap::new();
    for (page, table) in manifest.tables() {
        match text_of(table) {
            Ok(Some(text)) => {
                pages.entry(page).or_default().insert(table.id.clone(), text);
            }
            Ok(None) => {}
            Err(fault) => faults.push(Fault(format!("{}: {fault}", page.display()))),
        }
    }
    for (path, texts) in pages {
        match replace(path, &texts) {
            Ok(found) => faults.extend(found),
            Err(fault) => faults.push(fault),
        }
    }
    faults
}

/// The text of a table. `None` if a run of it has no data.
fn text_of(table: &Table) -> Result<Option<String>, Fault> {
    let Ok(runs) = data_of(table)? else { return Ok(None) };
    let rendered = render(table, &runs).map_err(|fault| {
        let file = |id: String| data::path(Path::new(data::FOLDER), &id).display().to_string();
        let files: Vec<String> = table.runs().into_iter().map(file).collect();
        Fault(format!("{fault}: if the output is wrong, delete {}", files.join(", ")))
    });
    rendered.map(Some)
}

/// Writes tables into the regions of a page. Returns a fault for each table without a region.
fn replace(path: &Path, texts: &BTreeMap<String, String>) -> Result<Vec<Fault>, Fault> {
    let name = path.display();
    let old = read(path)?;
    let page = Text::new(&old);
    let at = |fault| Fault(format!("{name}: {fault}"));
    let regions = page.regions().map_err(at)?;
    let new = page.with(texts).map_err(at)?;
    let without = texts.keys().filter(|id| regions.iter().all(|region| region.id != **id));
    let faults: Vec<Fault> = without
        .map(|id| {
            Fault(format!(
                "{name}: it has no region for the table `{id}`: add a line `{BEGIN}{id}{WRITTEN}` \
                 and a line `{BEGIN}{id}{END}`"
            ))
        })
        .collect();
    if new != old {
        write(path, &new)?;
        println!("{name}: {} tables", texts.len() - faults.len());
    }
    Ok(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(inner: &str) -> String {
        format!("# A page\n\n{BEGIN}one{WRITTEN}\n{inner}\n{BEGIN}one{END}\nlast\n")
    }

    #[test]
    fn a_region_is_replaced_and_found_again() {
        let old = page("| a | b |\n|---|---|\n| x | 1 |");
        let texts = BTreeMap::from([("one".to_owned(), "new\n".to_owned())]);
        let new = Text::new(&old).with(&texts).unwrap();
        assert_eq!(new, page("\nnew\n"));
        let text = Text::new(&new);
        assert_eq!(text.inside(&text.regions().unwrap()[0]), "new\n");
        assert!(Text::new(&format!("```text\n{new}```\n")).regions().unwrap().is_empty());
        assert_eq!(text.with(&texts).unwrap(), new);
    }

    #[test]
    fn marks_without_partners_are_named() {
        let message = |text: &str| Text::new(text).regions().unwrap_err().0;
        assert!(message(&format!("{BEGIN}a{WRITTEN}\n")).contains("`a` has no end"));
        assert!(message(&format!("{BEGIN}a{END}\n")).contains("line 1: this mark has no partner"));
        let crossed =
            format!("{BEGIN}a{WRITTEN}\n{BEGIN}b{WRITTEN}\n{BEGIN}a{END}\n{BEGIN}b{END}\n");
        assert!(message(&crossed).contains("line 2"));
        let twice = format!("{0}{0}", page("x"));
        assert!(message(&twice).contains("no partner"));
    }

    #[test]
    fn figures_outside_of_regions_are_found_unless_they_are_exact() {
        let table = "| a | b |\n|---|---|\n| x | 1.5 |\n";
        let found = |text: &str| Text::new(text).unmeasured().unwrap();
        assert_eq!(found(&format!("text\n\n{table}")), [3]);
        assert!(found(&format!("text\n\n<!-- exact -->\n\n{table}")).is_empty());
        assert!(found(&page(table)).is_empty());
        assert!(found(&format!("```text\n{table}```\n")).is_empty());
        assert!(found("| a | b |\n|---|---|\n| x | words |\n").is_empty());
    }
}
