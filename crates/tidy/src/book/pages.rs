//! The pages that mdBook writes: their links and their anchors.

use std::collections::{BTreeSet, HashMap, HashSet};

use crate::links::resolve;

/// A page of the built book.
#[derive(Debug)]
pub struct Page {
    /// The path in the folder of the book, with `/` between folders.
    pub path: String,
    /// The HTML.
    pub text: String,
}

/// One sentence for each link of a page that leads to no file of the book, or to no anchor of a
/// page. `files` are the paths of all files of the book. The server sends `404.html` from any
/// address, so its links are not checked.
#[must_use]
pub fn broken(pages: &[Page], files: &BTreeSet<String>) -> Vec<String> {
    let read: Vec<(&Page, Attributes)> =
        pages.iter().map(|page| (page, Attributes::read(&page.text))).collect();
    let anchors: HashMap<&str, &HashSet<String>> =
        read.iter().map(|(page, found)| (page.path.as_str(), &found.anchors)).collect();
    let mut broken = Vec::new();
    for (page, found) in read.iter().filter(|(page, _)| page.path != "404.html") {
        for link in &found.links {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let file = file.split('?').next().unwrap_or(file);
            let path =
                if file.is_empty() { Some(page.path.clone()) } else { resolve(&page.path, file) };
            let Some(path) = path.filter(|path| files.contains(path)) else {
                broken.push(format!("{}: `{link}` leads to no file of the book", page.path));
                continue;
            };
            let is_there = |anchors: &&HashSet<String>| anchors.contains(anchor);
            if !anchor.is_empty() && anchors.get(path.as_str()).is_some_and(|all| !is_there(all)) {
                broken.push(format!("{}: `{link}` leads to no anchor of {path}", page.path));
            }
        }
    }
    broken.sort();
    broken.dedup();
    broken
}

/// The attributes of a page that links are made of.
#[derive(Debug, Default, PartialEq, Eq)]
struct Attributes {
    /// Targets in the book, decoded.
    links: Vec<String>,
    /// The places to which a link can lead.
    anchors: HashSet<String>,
}

impl Attributes {
    fn read(html: &str) -> Self {
        let mut found = Self::default();
        let mut rest = html;
        while let Some((_, behind)) = rest.split_once('<') {
            rest = behind;
            if let Some(comment) = rest.strip_prefix("!--") {
                rest = comment.split_once("-->").map_or("", |(_, after)| after);
                continue;
            }
            let is_script = rest.starts_with("script");
            rest = found.read_tag(rest);
            if is_script {
                rest = rest.split_once("</script").map_or("", |(_, after)| after);
            }
        }
        found
    }

    /// Reads a tag from its name on, and returns the text behind it.
    fn read_tag<'h>(&mut self, tag: &'h str) -> &'h str {
        let mut rest = tag.trim_start_matches(|c: char| !c.is_whitespace() && c != '>');
        loop {
            rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '/');
            let end = rest.find(|c: char| c.is_whitespace() || "=>".contains(c));
            let Some(end) = end else { return "" };
            let (name, after) = rest.split_at(end);
            if let Some(after) = after.strip_prefix('>') {
                return after;
            }
            rest = after;
            let Some(value) = rest.strip_prefix("=\"") else {
                rest = rest.trim_start_matches('=');
                continue;
            };
            let Some((value, after)) = value.split_once('"') else { return "" };
            self.add(name, &decoded(value));
            rest = after;
        }
    }

    fn add(&mut self, name: &str, value: &str) {
        match name {
            "id" | "name" => {
                self.anchors.insert(value.to_owned());
            }
            "href" | "src" if is_of_the_book(value) => self.links.push(value.to_owned()),
            _ => {}
        }
    }
}

/// Whether a target has no scheme and is no address of a server.
fn is_of_the_book(target: &str) -> bool {
    let scheme = target.split(['/', '#', '?']).next().unwrap_or("");
    !target.is_empty() && !scheme.contains(':') && !target.starts_with("//")
}

/// A value without the escapes of HTML and of addresses.
fn decoded(value: &str) -> String {
    let value = value.replace("&quot;", "\"").replace("&#39;", "'").replace("&#x27;", "'");
    let value = value.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let escaped = (first == b'%').then(|| after.get(..2)).flatten();
        let escaped = escaped.and_then(|digits| std::str::from_utf8(digits).ok());
        if let Some(byte) = escaped.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            bytes.push(byte);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
