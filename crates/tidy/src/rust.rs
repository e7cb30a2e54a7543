//! The comments and string literals of Rust code.

use crate::text::{Group, Kind, Line};

/// All that [`read`] finds.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Comments, in runs of adjacent lines of one kind that hold nothing else.
    pub groups: Vec<Group>,
    /// String literals with the lines that they begin on.
    pub strings: Vec<(usize, String)>,
}

/// Reads Rust code far enough to tell comments and strings from the rest.
pub(crate) fn read(text: &str) -> Found {
    let mut reader =
        Reader { text, at: 0, line: 1, line_start: 0, found: Found::default(), last: None };
    while reader.at < text.len() {
        reader.step();
    }
    reader.found
}

/// The last comment line: its number, its kind, its column if nothing stood before it.
type Last = (usize, Kind, Option<usize>);

struct Reader<'a> {
    text: &'a str,
    at: usize,
    line: usize,
    line_start: usize,
    found: Found,
    last: Option<Last>,
}

impl Reader<'_> {
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        if rest.starts_with("//") {
            self.comment(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.block();
        } else if let Some(hashes) = raw_string(rest) {
            if self.follows_a_word() {
                self.advance(1);
            } else {
                self.raw_string(hashes);
            }
        } else if rest.starts_with('"') {
            self.string();
        } else if rest.starts_with('\'') {
            self.advance(quoted(rest));
        } else {
            self.advance(rest.chars().next().map_or(1, char::len_utf8));
        }
    }

    /// Whether the character before is part of a word, so that an `r` here begins no raw string.
    fn follows_a_word(&self) -> bool {
        self.text[..self.at].chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_')
    }

    fn advance(&mut self, bytes: usize) {
        let end = self.at + bytes;
        for (offset, _) in self.text[self.at..end].match_indices('\n') {
            self.line += 1;
            self.line_start = self.at + offset + 1;
        }
        self.at = end;
    }

    /// Takes a line comment of the given number of bytes.
    fn comment(&mut self, bytes: usize) {
        let comment = &self.text[self.at..self.at + bytes];
        let (kind, marker) = match comment.as_bytes() {
            [b'/', b'/', b'/', b'/', ..] => (Kind::Comment, 4),
            [b'/', b'/', b'/', ..] => (Kind::Item, 3),
            [b'/', b'/', b'!', ..] => (Kind::Module, 3),
            _ => (Kind::Comment, 2),
        };
        self.push(kind, comment[marker..].to_owned(), self.at + bytes);
        self.advance(bytes);
    }

    /// A block comment: each of its lines is a comment line.
    fn block(&mut self) {
        let rest = &self.text[self.at..];
        let (mut depth, mut end) = (0_usize, 0);
        while end < rest.len() {
            if rest[end..].starts_with("/*") {
                depth += 1;
                end += 2;
            } else if rest[end..].starts_with("*/") {
                depth -= 1;
                end += 2;
                if depth == 0 {
                    break;
                }
            } else {
                end += rest[end..].chars().next().map_or(1, char::len_utf8);
            }
        }
        for line in rest[..end].split_inclusive('\n') {
            let text = line.trim().trim_start_matches("/*").trim_end_matches("*/");
            self.push(
                Kind::Comment,
                text.trim_start_matches('*').to_owned(),
                self.at + line.trim_end().len(),
            );
            self.advance(line.len());
        }
    }

    fn push(&mut self, kind: Kind, text: String, end: usize) {
        let before = &self.text[self.line_start..self.at];
        let column = before.trim().is_empty().then_some(before.len());
        let full = self.text[self.line_start..end].to_owned();
        let line = Line { number: self.line, text, full };
        let continues = column.is_some() && self.last == Some((self.line - 1, kind, column));
        match self.found.groups.last_mut() {
            Some(group) if continues => group.lines.push(line),
            _ => self.found.groups.push(Group { kind, lines: vec![line] }),
        }
        self.last = Some((self.line, kind, column));
    }

    fn string(&mut self) {
        let rest = &self.text[self.at..];
        let mut escaped = false;
        let end = rest.char_indices().skip(1).find_map(|(at, c)| match c {
            _ if escaped => {
                escaped = false;
                None
            }
            '\\' => {
                escaped = true;
                None
            }
            '"' => Some(at),
            _ => None,
        });
        let end = end.unwrap_or(rest.len() - 1);
        self.found.strings.push((self.line, rest[1..end].replace("\\n", " ").replace("\\\n", " ")));
        self.advance(end + 1);
    }

    fn raw_string(&mut self, hashes: usize) {
        let rest = &self.text[self.at..];
        let start = rest.find('"').map_or(rest.len(), |at| at + 1);
        let close = format!("\"{}", "#".repeat(hashes));
        let length = rest[start..].find(&close).unwrap_or(rest.len() - start);
        self.found.strings.push((self.line, rest[start..start + length].to_owned()));
        self.advance((start + length + close.len()).min(rest.len()));
    }
}

/// The number of `#` before the quote of a raw string that begins here.
fn raw_string(rest: &str) -> Option<usize> {
    let rest = rest
        .strip_prefix("br")
        .or_else(|| rest.strip_prefix("cr"))
        .or_else(|| rest.strip_prefix('r'))?;
    let hashes = rest.bytes().take_while(|&byte| byte == b'#').count();
    rest[hashes..].starts_with('"').then_some(hashes)
}

/// The bytes of a character literal, or of the quote of a lifetime.
fn quoted(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match chars.next() {
        Some((_, '\\')) => {
            chars.next();
            chars.find(|&(_, c)| c == '\'').map_or(1, |(at, _)| at + 1)
        }
        Some(_) => match chars.next() {
            Some((at, '\'')) => at + 1,
            _ => 1,
        },
        None => 1,
    }
}
