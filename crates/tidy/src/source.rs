//! The prose of one file.

use crate::text::Group;
use crate::{rust, script};

/// One file with the prose that was found in it.
#[derive(Debug)]
pub struct Source<'a> {
    /// The file, relative to the root.
    pub path: &'a str,
    /// The whole text.
    pub text: &'a str,
    /// Runs of lines of prose that belong together: a doc comment, a comment, a document.
    pub(crate) groups: Vec<Group>,
    /// The string literals of Rust code outside tests, with the lines they begin on.
    pub(crate) strings: Vec<(usize, String)>,
    /// Whether the file's length is limited: code is, a document is not.
    pub(crate) is_code: bool,
}

impl<'a> Source<'a> {
    /// Reads a file, or nothing if the check has no rule for files of this kind.
    pub fn read(path: &'a str, text: &'a str) -> Option<Self> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
        let mut strings = Vec::new();
        let groups = match extension {
            "rs" => {
                let found = rust::read(text);
                if !path.contains("/tests/") && !path.ends_with("/tests.rs") {
                    strings = found.strings;
                }
                found.groups
            }
            "md" => vec![Group::document(text)],
            "toml" | "sh" => script::read(text),
            _ if name == "justfile" || is_script(text) => script::read(text),
            _ => return None,
        };
        let is_code = extension != "md" && extension != "toml";
        Some(Self { path, text, groups, strings, is_code })
    }
}

fn is_script(text: &str) -> bool {
    text.starts_with("#!") && text.lines().next().is_some_and(|line| line.ends_with("sh"))
}
