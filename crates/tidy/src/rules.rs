//! The rules that look at one file at a time.

use crate::text::{Group, Role};
use crate::{COLUMNS, Config, Finding, LINES, Rule, Source};

/// Words that stand for a noun where a sentence begins with them and asks nothing.
const OPENERS: [&str; 5] = ["What", "Who", "Whoever", "Where", "Of"];

/// Openings of a doc comment's sentence that leave its subject to another comment.
const BORROWED: [&str; 4] = ["as above", "in the same way", "same as", "same for"];

/// Words behind "The same" that show it to stand for a noun.
const FOLLOWS_SAME: [&str; 24] = [
    "after",
    "again",
    "among",
    "and",
    "as",
    "at",
    "backwards",
    "beside",
    "but",
    "by",
    "descending",
    "for",
    "from",
    "if",
    "in",
    "of",
    "on",
    "or",
    "over",
    "to",
    "under",
    "where",
    "with",
    "without",
];

/// Adds what the rules find in one file.
pub(crate) fn check(source: &Source, config: &Config, findings: &mut Vec<Finding>) {
    let mut check = Check { path: source.path, config, findings };
    let lines = source.text.lines().count();
    if source.is_code && lines > LINES {
        check.add(1, Rule::File, format!("{lines} lines, {LINES} at most: split it by idea"));
    }
    for group in &source.groups {
        check.width(group);
        check.sentences(group);
        if group.is_doc() {
            check.ends(group);
        }
        for paragraph in group.paragraphs() {
            if paragraph.role != Role::Code {
                check.phrases(&paragraph.masked, |at| paragraph.line_of(at));
            }
        }
    }
    for (line, text) in &source.strings {
        check.phrases(text, |at| line + text[..at].matches('\n').count());
    }
}

struct Check<'a> {
    path: &'a str,
    config: &'a Config,
    findings: &'a mut Vec<Finding>,
}

impl Check<'_> {
    fn add(&mut self, line: usize, rule: Rule, message: String) {
        self.findings.push(Finding { path: self.path.to_owned(), line, rule, message });
    }

    fn width(&mut self, group: &Group) {
        for (line, role) in group.roles() {
            let columns = line.full.chars().count();
            if matches!(role, Role::Sentences | Role::Heading)
                && columns > COLUMNS
                && !ends_in_link(&line.full)
            {
                self.add(line.number, Rule::Width, format!("{columns} columns: wrap at {COLUMNS}"));
            }
        }
    }

    fn sentences(&mut self, group: &Group) {
        for paragraph in group.paragraphs() {
            if paragraph.role != Role::Sentences {
                continue;
            }
            for sentence in paragraph.sentences() {
                let word = first_word(sentence.text);
                if OPENERS.contains(&word)
                    && !sentence.is_question()
                    && !sentence.text.starts_with("Of course")
                {
                    let rule = if sentence.begins_line { Rule::Opener } else { Rule::InnerOpener };
                    let message = format!(
                        "a sentence begins with \"{word}\": name the subject and begin with it"
                    );
                    self.add(sentence.line, rule, message);
                }
                if group.is_doc()
                    && let Some(opening) = borrowed(sentence.text)
                {
                    let message = format!(
                        "\"{opening}\" needs another comment: say what this item is or does"
                    );
                    self.add(sentence.line, Rule::Item, message);
                }
            }
        }
    }

    /// A doc comment is whole: it neither continues another nor leaves its end to one.
    fn ends(&mut self, group: &Group) {
        let texts = || group.lines.iter().filter(|line| !line.text.trim().is_empty());
        let begins =
            texts().next().filter(|line| has_dots(line.text.trim_start(), str::starts_with));
        let ends =
            texts().next_back().filter(|line| has_dots(line.text.trim_end(), str::ends_with));
        for (line, how) in [(begins, "begins"), (ends, "ends")] {
            if let Some(line) = line {
                let message = format!(
                    "a doc comment {how} in `…`: make it one whole statement about its item"
                );
                self.add(line.number, Rule::Item, message);
            }
        }
    }

    fn phrases(&mut self, text: &str, line_of: impl Fn(usize) -> usize) {
        let lower = text.to_ascii_lowercase();
        for (phrase, remedy) in &self.config.phrases {
            for (at, _) in lower.match_indices(phrase.as_str()) {
                let part_of_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                let before = lower[..at].chars().next_back();
                let behind = lower[at + phrase.len()..].chars().next();
                if part_of_word(before) || part_of_word(behind) {
                    continue;
                }
                let message = format!("\"{phrase}\": {remedy}");
                let finding = Finding {
                    path: self.path.to_owned(),
                    line: line_of(at),
                    rule: Rule::Phrase,
                    message,
                };
                self.findings.push(finding);
            }
        }
    }
}

/// Whether only the target of a link reaches over the width.
fn ends_in_link(line: &str) -> bool {
    let link = line
        .rfind("](")
        .or_else(|| line.rfind("://").map(|at| line[..at].rfind(' ').map_or(0, |at| at + 1)));
    link.is_some_and(|at| {
        let target = &line[at..];
        let blanks = target.trim_end().contains(char::is_whitespace);
        !blanks && line[..at].chars().count() <= COLUMNS
    }) || line.trim_start_matches(|c: char| "/!# ".contains(c)).starts_with('[')
        && line.contains("]: ")
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| !c.is_alphanumeric()).next().unwrap_or("")
}

/// The opening of a sentence whose subject is in another comment.
fn borrowed(text: &str) -> Option<&str> {
    let lower = text.to_lowercase();
    for opening in BORROWED {
        if lower.starts_with(opening) && text.is_char_boundary(opening.len()) {
            return Some(&text[..opening.len()]);
        }
    }
    let rest = lower.strip_prefix("the same")?;
    let bare = rest.starts_with([',', '.', ':', ';']) || rest.is_empty();
    let next = first_word(rest.strip_prefix(' ').unwrap_or(""));
    (bare || FOLLOWS_SAME.contains(&next)).then(|| &text[.."the same".len()])
}

fn has_dots(text: &str, at: impl Fn(&str, &'static str) -> bool) -> bool {
    at(text, "…") || at(text, "...")
}
