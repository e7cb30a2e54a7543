//! The book: the files that mdBook reads, and the links of the pages that it writes.
//!
//! mdBook reads one folder, and the documents of a repository link to files all over it. So the
//! sources of the book are staged: its chapters and the files that these link to, under the paths
//! that they have in the repository. Then a link leads to the same file on a code host and in the
//! book.

mod pages;

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::links::{resolve, targets};
use crate::text::Group;
use crate::{Tree, is_document};

pub use pages::{Page, broken};

/// The list of chapters, from the root of the repository.
pub const SUMMARY: &str = "docs/SUMMARY.md";

/// The sources of the book.
#[derive(Debug, PartialEq, Eq)]
pub struct Sources {
    /// The list of chapters, with paths from the root.
    pub summary: String,
    /// The chapters and the files that they link to, as paths from the root.
    pub files: BTreeSet<String>,
}

impl Tree {
    /// The sources of the book.
    ///
    /// # Errors
    /// One sentence for each document that is no chapter, and for each link of a chapter that no
    /// page of the book can follow.
    pub fn book(&self) -> Result<Sources, Vec<String>> {
        let texts: HashMap<&str, &str> =
            self.files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let Some(listed) = texts.get(SUMMARY) else {
            return Err(vec![format!("{SUMMARY} is missing: it lists the chapters")]);
        };
        let (summary, chapters) = from_root(listed);
        let chapters: HashSet<&str> = chapters.iter().map(String::as_str).collect();
        let mut wrong = Vec::new();
        for path in texts.keys().filter(|path| path.starts_with("docs/") && is_document(path)) {
            if *path != SUMMARY && !chapters.contains(path) {
                wrong.push(format!("{path} is no chapter: add it to {SUMMARY}"));
            }
        }
        let mut files = BTreeSet::new();
        for chapter in &chapters {
            files.insert((*chapter).to_owned());
            let Some(text) = texts.get(chapter) else {
                wrong.push(format!("{SUMMARY} lists `{chapter}`, which does not exist"));
                continue;
            };
            for path in linked(chapter, text) {
                if is_document(&path) && !chapters.contains(path.as_str()) {
                    wrong.push(format!("{chapter} links to {path}: add it to {SUMMARY}"));
                } else if !texts.contains_key(path.as_str()) {
                    wrong.push(format!(
                        "{chapter} links to `{path}`, which is no file: name a file"
                    ));
                }
                files.insert(path);
            }
            wrong.extend(lost_includes(chapter, text, &texts));
        }
        wrong.sort();
        if wrong.is_empty() { Ok(Sources { summary, files }) } else { Err(wrong) }
    }
}

/// The list of chapters with paths from the root, and these paths.
fn from_root(listed: &str) -> (String, Vec<String>) {
    let mut summary = String::new();
    let mut chapters = Vec::new();
    let mut rest = listed;
    while let Some((before, behind)) = rest.split_once("](") {
        let (target, after) = behind.split_once(')').unwrap_or((behind, ""));
        let path = resolve(SUMMARY, target).unwrap_or_default();
        summary.extend([before, "](", &path, ")"]);
        chapters.push(path);
        rest = after;
    }
    (summary + rest, chapters)
}

/// The files that a document links to.
fn linked(from: &str, text: &str) -> BTreeSet<String> {
    let document = Group::document(text);
    let paragraphs = document.paragraphs();
    let targets = paragraphs.iter().flat_map(targets).map(|(_, target)| target);
    let local = targets.filter(|target| !target.contains("://") && !target.starts_with("mailto:"));
    let files = local.map(|target| target.split('#').next().unwrap_or(target));
    files.filter(|file| !file.is_empty()).filter_map(|file| resolve(from, file)).collect()
}

/// The parts of other files that a document includes and that do not exist. mdBook includes nothing
/// in their place, and reports nothing.
fn lost_includes(from: &str, text: &str, texts: &HashMap<&str, &str>) -> Vec<String> {
    let mut lost = Vec::new();
    for part in text.split("{{#include ").skip(1) {
        let named = part.split("}}").next().unwrap_or(part).trim();
        let (file, anchor) = named.split_once(':').unwrap_or((named, ""));
        let path = resolve(from, file).unwrap_or_default();
        let marker = format!("ANCHOR: {anchor} ");
        let is_there = texts.get(path.as_str()).is_some_and(|text| {
            anchor.is_empty() || text.lines().any(|line| line.contains(&marker))
        });
        if !is_there {
            lost.push(format!("{from} includes `{named}`, which does not exist"));
        }
    }
    lost
}
