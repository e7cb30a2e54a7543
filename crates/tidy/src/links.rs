//! Relative links of documents: each leads to a file and, behind `#`, to a heading.

use std::collections::{HashMap, HashSet};

use crate::text::{Group, Paragraph, Role};
use crate::{Finding, Rule, is_document};

/// Adds a finding for each link of a document that leads nowhere.
pub(crate) fn check(files: &[(String, String)], findings: &mut Vec<Finding>) {
    let mut paths: HashSet<&str> = HashSet::new();
    let mut headings: HashMap<&str, HashSet<String>> = HashMap::new();
    for (path, text) in files {
        paths.insert(path);
        for (at, _) in path.match_indices('/') {
            paths.insert(&path[..at]);
        }
        if is_document(path) {
            headings.insert(path, anchors(&Group::document(text)));
        }
    }
    for (path, text) in files.iter().filter(|(path, _)| is_document(path)) {
        for paragraph in Group::document(text).paragraphs() {
            for (at, target) in targets(&paragraph) {
                if let Some(wrong) = wrong(path, target, &paths, &headings) {
                    let message = format!("the link to `{target}` {wrong}");
                    let line = paragraph.line_of(at);
                    findings.push(Finding { path: path.clone(), line, rule: Rule::Link, message });
                }
            }
        }
    }
}

/// The targets of a paragraph's links, with their places in its text.
pub(crate) fn targets(paragraph: &Paragraph) -> Vec<(usize, &str)> {
    if paragraph.role == Role::Code {
        return Vec::new();
    }
    let mut targets = Vec::new();
    for (at, marker) in paragraph.masked.match_indices("](") {
        let start = at + marker.len();
        if let Some(length) = paragraph.text[start..].find([')', ' ']) {
            targets.push((start, paragraph.text[start..start + length].trim_matches(['<', '>'])));
        }
    }
    if paragraph.masked.starts_with('[')
        && let Some(at) = paragraph.masked.find("]: ")
    {
        let target = paragraph.text[at + 3..].split_whitespace().next().unwrap_or("");
        targets.push((at, target));
    }
    targets
}

/// The reason why a link leads nowhere.
fn wrong(
    from: &str,
    target: &str,
    paths: &HashSet<&str>,
    headings: &HashMap<&str, HashSet<String>>,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { Some(from.to_owned()) } else { resolve(from, file) };
    let Some(path) = path else {
        return Some("leaves the repository: write an address with its scheme".to_owned());
    };
    if !paths.contains(path.as_str()) && !path.is_empty() {
        return Some(format!("leads to `{path}`, which does not exist: correct the path"));
    }
    let known = headings.get(path.as_str())?;
    (!anchor.is_empty() && !known.contains(anchor))
        .then(|| format!("names no heading of `{path}`: correct the part behind `#`"))
}

/// The path from the root that a relative link leads to; nothing if it leaves the repository.
pub(crate) fn resolve(from: &str, file: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

/// The anchors of a document's headings, as GitHub makes them.
fn anchors(document: &Group) -> HashSet<String> {
    let mut anchors = HashSet::new();
    for paragraph in document.paragraphs() {
        if paragraph.role != Role::Heading {
            continue;
        }
        let title = paragraph.text.trim_start_matches('#').trim().to_lowercase();
        let kept = title.chars().filter(|&c| c.is_alphanumeric() || " -_".contains(c));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let mut unique = anchor.clone();
        let mut count = 0;
        while !anchors.insert(unique) {
            count += 1;
            unique = format!("{anchor}-{count}");
        }
    }
    anchors
}
