//! The check behind `just tidy`: width, length and wording of comments and documents.
//!
//! Rustfmt leaves comments alone and clippy reads no prose. This crate reads every file that git
//! knows of, takes the prose out of it ([`Source`]), and lets each [`Rule`] look at it. A finding
//! names its file, its line, the mistake and the remedy. `.ci/tidy.toml` ([`Config`]) holds how
//! many findings a rule may have, the phrases to avoid and the files that may be long.
//!
//! | rule | objects to |
//! |---|---|
//! | `width` | a line of prose over 100 columns, outside tables, code blocks and links |
//! | `opener` | a line that begins a sentence with `What`, `Who`, `Whoever`, `Where` or `Of` and is no question |
//! | `inner-opener` | such a sentence that begins inside a line |
//! | `item` | a doc comment that begins or ends in `…`, or whose subject is "the same" |
//! | `phrase` | a phrase that `.ci/tidy.toml` lists, in prose or in a string of the source |
//! | `file` | a source file over 600 lines that `.ci/tidy.toml` does not excuse |
//! | `link` | a relative link of a document that leads to no file or to no heading |
//! | `config` | an excuse in `.ci/tidy.toml` that nothing needs any more |
//!
//! The length of functions is clippy's part (`too_many_lines`, with its limit in `clippy.toml`).
//!
//! The binary `silvics-book` prepares the sources of the [book] and checks the links of its pages.

pub mod book;
mod config;
mod links;
mod report;
pub mod repository;
mod rules;
mod rust;
mod script;
mod source;
mod text;

pub use config::{Config, ConfigError};
pub use report::{Report, Tally};
pub use source::Source;

use std::fmt;
use std::path::Path;

/// The columns that prose has.
pub const COLUMNS: usize = 100;
/// The lines that a source file has at most.
pub const LINES: usize = 600;

/// One kind of mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A line of prose is too wide.
    Width,
    /// A line begins a sentence that names no subject.
    Opener,
    /// A sentence that names no subject begins inside a line.
    InnerOpener,
    /// A doc comment is no whole statement about its own item.
    Item,
    /// Prose has a phrase that the project avoids.
    Phrase,
    /// A source file is too long.
    File,
    /// A link leads nowhere.
    Link,
    /// The configuration excuses what needs no excuse.
    Config,
}

impl Rule {
    /// Every rule, in the order of the report.
    pub const ALL: [Rule; 8] = [
        Rule::Width,
        Rule::Opener,
        Rule::InnerOpener,
        Rule::Item,
        Rule::Phrase,
        Rule::File,
        Rule::Link,
        Rule::Config,
    ];

    /// The rule's name in reports and in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Width => "width",
            Rule::Opener => "opener",
            Rule::InnerOpener => "inner-opener",
            Rule::Item => "item",
            Rule::Phrase => "phrase",
            Rule::File => "file",
            Rule::Link => "link",
            Rule::Config => "config",
        }
    }
}

/// One mistake and its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The file, relative to the root of the repository.
    pub path: String,
    /// The line, from 1.
    pub line: usize,
    /// The rule that objects.
    pub rule: Rule,
    /// The mistake and its remedy, as one sentence.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.path, self.line, self.rule.name(), self.message)
    }
}

/// A repository as the check sees it: the text of each file that it reads.
///
/// Files that are no text are listed too, with an empty text, because links may lead to them.
#[derive(Debug, Default)]
pub struct Tree {
    files: Vec<(String, String)>,
}

impl Tree {
    /// Adds a file by its path from the root, with `/` between folders.
    pub fn add(&mut self, path: impl Into<String>, text: impl Into<String>) {
        self.files.push((path.into(), text.into()));
    }

    /// Every finding of every rule in the tree, by file and line.
    pub fn check(&self, config: &Config) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (path, text) in &self.files {
            let Some(source) = Source::read(path, text) else { continue };
            rules::check(&source, config, &mut findings);
        }
        links::check(&self.files, &mut findings);
        config.excuse(&mut findings);
        findings.sort();
        findings.dedup();
        findings
    }
}

/// Whether a file is a document, by its path.
fn is_document(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "md")
}
