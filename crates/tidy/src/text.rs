//! Prose as lines, paragraphs and sentences, whatever file it stands in.

/// The place that a run of prose has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A document.
    Document,
    /// A comment that documents no item.
    Comment,
    /// The doc comment of the item below it.
    Item,
    /// The doc comment of the module or crate around it.
    Module,
}

/// One line of prose.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    /// Its number in the file, from 1.
    pub number: usize,
    /// The prose, without the marker of a comment.
    pub text: String,
    /// The whole line of the file.
    pub full: String,
}

/// Adjacent lines of prose of one kind, in markdown.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// The place of the prose.
    pub kind: Kind,
    /// The lines, in order.
    pub lines: Vec<Line>,
}

/// The role of a paragraph in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Sentences, perhaps those of a list item.
    Sentences,
    /// A title.
    Heading,
    /// A row of a table.
    Row,
    /// A line of a code block.
    Code,
}

/// Lines that a reader sees as one piece of text.
#[derive(Clone, Debug)]
pub(crate) struct Paragraph {
    /// The role of the text.
    pub role: Role,
    /// The lines joined with single spaces, without indentation and markers of lists.
    pub text: String,
    /// The text with the contents of code spans replaced by `x`, byte for byte.
    pub masked: String,
    /// For each line the byte where it begins in the text, and its number in the file.
    starts: Vec<(usize, usize)>,
}

/// One sentence of a paragraph.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sentence<'a> {
    /// The sentence up to its full stop, with code spans masked and without leading markup.
    pub text: &'a str,
    /// The line that it begins on.
    pub line: usize,
    /// Whether it is the first text of that line.
    pub begins_line: bool,
}

impl Group {
    /// A whole document.
    pub(crate) fn document(text: &str) -> Self {
        let lines = text.lines().enumerate().map(|(index, line)| Line {
            number: index + 1,
            text: line.to_owned(),
            full: line.to_owned(),
        });
        Self { kind: Kind::Document, lines: lines.collect() }
    }

    /// Whether this documents an item or a module.
    pub(crate) fn is_doc(&self) -> bool {
        matches!(self.kind, Kind::Item | Kind::Module)
    }

    /// Each line with its role.
    pub(crate) fn roles(&self) -> impl Iterator<Item = (&Line, Role)> {
        let mut fence: Option<&str> = None;
        self.lines.iter().map(move |line| {
            let text = line.text.trim();
            let marker = ["```", "~~~"].into_iter().find(|marker| text.starts_with(marker));
            let role = match (fence, marker) {
                (None, Some(marker)) => {
                    fence = Some(marker);
                    Role::Code
                }
                (Some(open), Some(marker)) if open == marker => {
                    fence = None;
                    Role::Code
                }
                (Some(_), _) => Role::Code,
                _ if text.starts_with('|') => Role::Row,
                _ if is_heading(text) => Role::Heading,
                _ => Role::Sentences,
            };
            (line, role)
        })
    }

    /// The paragraphs, in order. Each row, heading and line of code is one of its own.
    pub(crate) fn paragraphs(&self) -> Vec<Paragraph> {
        let mut paragraphs: Vec<Paragraph> = Vec::new();
        let mut open = false;
        for (line, role) in self.roles() {
            let text = line.text.trim();
            let item = list_item(text);
            if role != Role::Sentences || text.is_empty() || item.is_some() {
                open = false;
            }
            if text.is_empty() {
                continue;
            }
            if !open {
                paragraphs.push(Paragraph {
                    role,
                    text: String::new(),
                    masked: String::new(),
                    starts: Vec::new(),
                });
                open = role == Role::Sentences;
            }
            if let Some(paragraph) = paragraphs.last_mut() {
                if !paragraph.text.is_empty() {
                    paragraph.text.push(' ');
                }
                paragraph.starts.push((paragraph.text.len(), line.number));
                paragraph.text.push_str(item.unwrap_or(text));
            }
        }
        for paragraph in &mut paragraphs {
            paragraph.masked = mask(&paragraph.text);
        }
        paragraphs
    }
}

impl Paragraph {
    /// The number of the line that holds a byte of the text.
    pub(crate) fn line_of(&self, at: usize) -> usize {
        let index = self.starts.partition_point(|&(start, _)| start <= at);
        self.starts[index.saturating_sub(1)].1
    }

    /// The sentences, in order. A colon ends one, too, if a capital letter follows.
    pub(crate) fn sentences(&self) -> Vec<Sentence<'_>> {
        let mut sentences = Vec::new();
        let mut start = 0;
        while start < self.masked.len() {
            let end = sentence_end(&self.masked, start);
            let text = &self.masked[start..end];
            let bare =
                text.trim_start_matches(|c: char| c.is_whitespace() || "*_\"'([“".contains(c));
            if !bare.is_empty() {
                let at = end - bare.len();
                let line = self.line_of(at);
                let before = self.starts.iter().rfind(|&&(start, _)| start <= at);
                let begins_line = before.is_some_and(|&(start, _)| {
                    !self.masked[start..at]
                        .contains(|c: char| c.is_alphanumeric() || ".:!?".contains(c))
                });
                sentences.push(Sentence { text: bare.trim_end(), line, begins_line });
            }
            start = end;
        }
        sentences
    }
}

impl Sentence<'_> {
    /// Whether this asks something.
    pub(crate) fn is_question(&self) -> bool {
        self.text.trim_end_matches(|c: char| "*_\"')]”".contains(c)).ends_with('?')
    }
}

/// The byte behind the sentence that begins at `start`.
fn sentence_end(text: &str, start: usize) -> usize {
    let mut chars = text[start..].char_indices().peekable();
    while let Some((_, c)) = chars.next() {
        if !".?!:…".contains(c) {
            continue;
        }
        while chars.next_if(|&(_, c)| "*_\"')]”".contains(c)).is_some() {}
        if let Some(&(at, space)) = chars.peek() {
            let next = text[start + at..]
                .trim_start_matches(|c: char| c.is_whitespace() || "*_\"'([“".contains(c));
            let capital = next.chars().next().is_some_and(|c| c.is_uppercase() || c == '`');
            let short = c == '.' && abbreviates(&text[start..start + at]);
            if space.is_whitespace() && !short && (c != ':' || capital) {
                return start + at;
            }
        }
    }
    text.len()
}

/// Whether the text ends in an abbreviation, whose full stop ends no sentence.
fn abbreviates(text: &str) -> bool {
    ["e.g.", "i.e.", "cf.", "vs."].iter().any(|short| text.ends_with(short))
}

/// The text with the contents of code spans replaced, byte for byte.
fn mask(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('`') {
        let ticks = rest[at..].bytes().take_while(|&byte| byte == b'`').count();
        let (before, behind) = rest.split_at(at + ticks);
        masked.push_str(before);
        let Some(end) = closing(behind, ticks) else {
            rest = behind;
            break;
        };
        masked.extend(std::iter::repeat_n('x', end));
        masked.push_str(&behind[end..end + ticks]);
        rest = &behind[end + ticks..];
    }
    masked.push_str(rest);
    masked
}

/// The first run of exactly this many backticks.
fn closing(text: &str, ticks: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let run = text[at + found..].bytes().take_while(|&byte| byte == b'`').count();
        if run == ticks {
            return Some(at + found);
        }
        at += found + run;
    }
    None
}

fn is_heading(text: &str) -> bool {
    let hashes = text.bytes().take_while(|&byte| byte == b'#').count();
    (1..=6).contains(&hashes) && text[hashes..].starts_with(' ')
}

/// The text of a list item behind its marker.
fn list_item(text: &str) -> Option<&str> {
    let text = text.trim_start_matches('>').trim_start();
    for marker in ["* ", "- ", "+ "] {
        if let Some(rest) = text.strip_prefix(marker) {
            return Some(rest);
        }
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &text[digits..];
    if (1..=2).contains(&digits) {
        rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "))
    } else {
        None
    }
}
