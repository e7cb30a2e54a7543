//! Property files: the syntax of `java.util.Properties`, with the place of each property.
//!
//! * A line that starts with `#` or `!` is a comment. Blank lines have no meaning.
//! * A name ends at the first `=`, `:` or blank without a backslash. The value follows.
//! * A backslash at the end of a line joins the next line, without its leading blanks.
//! * `\t`, `\n`, `\r`, `\f`, and `\u` with four hex digits, stand for characters. Before any other
//!   character, a backslash has no meaning.
//!
//! # Departures from `java.util.Properties`
//! 1. Files are UTF-8, whereas Java reads Latin-1. The files of YCSB are ASCII, which is both.
//! 2. Two `\u` escapes must form a pair where UTF-16 needs one. Java accepts a half, which is no
//!    character.
//! 3. Each property keeps its file and line, so that an error can name them. This is also why the
//!    parser is our own: the crates for this format drop the lines.

use super::PropertyError;
use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// The size of the largest property file: 1 MiB. A larger file is no property file.
pub const FILE_MAX: usize = 1 << 20;

/// The place where a property is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    File {
        /// The name of the file.
        name: Arc<str>,
        /// The number of the line, counted from 1.
        line: usize,
    },
    /// An override, `-p name=value` on YCSB's command line.
    Override,
    /// The default of YCSB.
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line } => write!(f, "{name}, line {line}"),
            Self::Override => f.write_str("-p"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// The value of a property, and the place where it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Property {
    /// The value, without blanks around it.
    pub value: String,
    /// The place.
    pub origin: Origin,
}

/// Properties by their names. If a name is set more than once, the last value counts.
///
/// ```
/// use silvics_workload::ycsb::Properties;
///
/// let mut properties = Properties::new();
/// properties.add_text("a file", "# a comment\nrecordcount = 1000\n")?;
/// properties.set("recordcount=2000")?;
/// assert_eq!(properties.get("recordcount").unwrap().value, "2000");
/// # Ok::<(), silvics_workload::ycsb::PropertyError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Properties {
    entries: BTreeMap<String, Property>,
}

impl Properties {
    /// Makes a set without properties.
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the files in their order, then applies the overrides (`name=value`) in their order.
    pub fn read<P: AsRef<Path>>(
        files: impl IntoIterator<Item = P>,
        overrides: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<Self, PropertyError> {
        let mut properties = Self::new();
        for file in files {
            properties.add_file(file.as_ref())?;
        }
        for assignment in overrides {
            properties.set(assignment.as_ref())?;
        }
        Ok(properties)
    }

    /// Adds the properties of a file.
    pub fn add_file(&mut self, path: &Path) -> Result<(), PropertyError> {
        let name = path.display().to_string();
        let text = match read_text(path) {
            Ok(Some(text)) => text,
            Ok(None) => return Err(PropertyError::NotText { file: name }),
            Err(error) => return Err(PropertyError::Io { file: name, error }),
        };
        self.add_text(&name, &text)
    }

    /// Adds the properties of a text. Errors and notes call it `name`.
    pub fn add_text(&mut self, name: &str, text: &str) -> Result<(), PropertyError> {
        let file: Arc<str> = name.into();
        let mut lines = Lines { rest: text, number: 0 };
        while let Some((line, logical)) = lines.next_logical() {
            let origin = Origin::File { name: Arc::clone(&file), line };
            let (name, value) = split(&logical);
            let (Some(name), Some(value)) = (unescape(name), unescape(value)) else {
                return Err(PropertyError::Escape { origin });
            };
            self.insert(name, &value, origin);
        }
        Ok(())
    }

    /// Applies an override, written `name=value`.
    pub fn set(&mut self, assignment: &str) -> Result<(), PropertyError> {
        match assignment.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                self.insert(name.trim().to_owned(), value, Origin::Override);
                Ok(())
            }
            _ => Err(PropertyError::Override { text: assignment.to_owned() }),
        }
    }

    /// The value of a property, if it is set.
    pub fn get(&self, name: &str) -> Option<&Property> {
        self.entries.get(name)
    }

    /// All properties in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Property)> {
        self.entries.iter().map(|(name, property)| (name.as_str(), property))
    }

    fn insert(&mut self, name: String, value: &str, origin: Origin) {
        let value = value.trim().to_owned();
        self.entries.insert(name, Property { value, origin });
    }
}

/// The text of a file. None if it is too large, or no text.
fn read_text(path: &Path) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(FILE_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > FILE_MAX || bytes.contains(&0) {
        return Ok(None);
    }
    Ok(String::from_utf8(bytes).ok())
}

/// The blanks of the format.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\x0c')
}

/// The lines of a text, which end in `\n`, `\r` or both.
struct Lines<'a> {
    rest: &'a str,
    number: usize,
}

impl<'a> Lines<'a> {
    /// The next line of the text.
    fn next_natural(&mut self) -> Option<&'a str> {
        if self.rest.is_empty() {
            return None;
        }
        self.number += 1;
        let Some(end) = self.rest.find(['\n', '\r']) else {
            return Some(std::mem::take(&mut self.rest));
        };
        let (line, rest) = self.rest.split_at(end);
        self.rest = rest.strip_prefix("\r\n").unwrap_or_else(|| &rest[1..]);
        Some(line)
    }

    /// The next property: the number of its first line, and its lines as one.
    fn next_logical(&mut self) -> Option<(usize, String)> {
        loop {
            let line = self.next_natural()?.trim_start_matches(is_blank);
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let (number, mut logical) = (self.number, line.to_owned());
            while ends_in_backslash(&logical) {
                logical.pop();
                let Some(more) = self.next_natural() else { break };
                logical.push_str(more.trim_start_matches(is_blank));
            }
            return Some((number, logical));
        }
    }
}

/// Whether the last character is a backslash that no other backslash precedes as its escape.
fn ends_in_backslash(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// Splits a property into its name and its value, both still escaped.
fn split(logical: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = logical.find(|c| {
        let ends = !escaped && (is_blank(c) || c == '=' || c == ':');
        escaped = c == '\\' && !escaped;
        ends
    });
    let (name, rest) = logical.split_at(end.unwrap_or(logical.len()));
    let rest = rest.trim_start_matches(is_blank);
    let rest = rest.strip_prefix(['=', ':']).unwrap_or(rest);
    (name, rest.trim_start_matches(is_blank))
}

/// Replaces escapes by the characters that they stand for. None if a `\u` is wrong.
fn unescape(text: &str) -> Option<String> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let mut chars = rest[at + 1..].chars();
        match chars.next() {
            None => return Some(plain),
            Some('u') => {
                let (c, behind) = unicode(&rest[at..])?;
                plain.push(c);
                rest = behind;
                continue;
            }
            Some('t') => plain.push('\t'),
            Some('n') => plain.push('\n'),
            Some('r') => plain.push('\r'),
            Some('f') => plain.push('\x0c'),
            Some(other) => plain.push(other),
        }
        rest = chars.as_str();
    }
    plain.push_str(rest);
    Some(plain)
}

/// Reads the character that one or two `\u` escapes stand for. Returns it and the text behind it.
fn unicode(text: &str) -> Option<(char, &str)> {
    let (first, rest) = unit(text)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, rest));
    }
    let (second, rest) = unit(rest)?;
    let pair = [first as u16, second as u16]; // four digits each
    let mut chars = char::decode_utf16(pair);
    match (chars.next(), chars.next()) {
        (Some(Ok(c)), None) => Some((c, rest)),
        _ => None,
    }
}

/// Reads one `\u` escape: its four hex digits, as a number.
fn unit(text: &str) -> Option<(u32, &str)> {
    let rest = text.strip_prefix("\\u")?;
    let digits = rest.get(..4).filter(|d| d.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some((u32::from_str_radix(digits, 16).ok()?, &rest[4..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Vec<(String, String)> {
        let mut properties = Properties::new();
        properties.add_text("text", text).unwrap();
        properties.iter().map(|(name, p)| (name.to_owned(), p.value.clone())).collect()
    }

    fn one(text: &str) -> (String, String) {
        let all = parse(text);
        assert_eq!(all.len(), 1, "{text:?}: {all:?}");
        all.into_iter().next().unwrap()
    }

    fn pair(name: &str, value: &str) -> (String, String) {
        (name.into(), value.into())
    }

    #[test]
    fn names_end_at_the_first_separator() {
        for text in ["a=b", "a:b", "a b", "a\tb", "  a = b", "a : b ", "a  b", "\x0ca=b\n", "a=b\r"]
        {
            assert_eq!(one(text), pair("a", "b"), "{text:?}");
        }
        assert_eq!(one("a = = b"), pair("a", "= b"));
        assert_eq!(one("a:=b"), pair("a", "=b"));
        assert_eq!(one("a"), pair("a", ""));
        assert_eq!(one("= b"), pair("", "b"));
        assert_eq!(one(r"a\=b\ c\:d = e"), pair("a=b c:d", "e"));
        assert_eq!(one(r"a\\=b"), pair(r"a\", "b"));
        assert_eq!(one("a=b # no comment"), pair("a", "b # no comment"));
    }

    #[test]
    fn comments_and_blank_lines_have_no_meaning() {
        let text = "# a=1\n ! b=2\r\n\n  \t\n#c\\\nd=4\n";
        assert_eq!(parse(text), [pair("d", "4")]);
        assert!(parse("").is_empty() && parse("\n\r\n#").is_empty());
    }

    #[test]
    fn backslashes_join_lines() {
        assert_eq!(one("a=b\\\n   c"), pair("a", "bc"));
        assert_eq!(one("a=b\\\r\n\tc\\\nd\n"), pair("a", "bcd"));
        assert_eq!(one("a\\\n=b"), pair("a", "b"));
        assert_eq!(one("a=b\\\n# c"), pair("a", "b# c"));
        assert_eq!(one("a=b\\"), pair("a", "b"));
        assert_eq!(parse("a=b\\\\\nc=d"), [pair("a", "b\\"), pair("c", "d")]);
        assert_eq!(parse("a=b\\\n\nc=d"), [pair("a", "b"), pair("c", "d")]);
    }

    #[test]
    fn escapes_stand_for_characters() {
        assert_eq!(one(r"a=x\ty\nz\\\q"), pair("a", "x\ty\nz\\q"));
        assert_eq!(one(r"a=\u0041\u00e9\uD83D\uDE00!"), pair("a", "Aé😀!"));
        for text in ["a=\\u12", "a=\\u12g4", "a=\\u+123", "\\ud83d=a", "a=\\ud83dx", "a=\\u12é4"] {
            let error = Properties::new().add_text("f", &format!("\n{text}")).unwrap_err();
            let origin = Origin::File { name: "f".into(), line: 2 };
            assert!(matches!(error, PropertyError::Escape { origin: o } if o == origin), "{text}");
        }
    }

    #[test]
    fn the_last_value_counts_and_keeps_its_place() {
        let mut properties = Properties::new();
        properties.add_text("f", "a=1\nb=\\\n 2\n\na=3").unwrap();
        properties.add_text("g", "c=4").unwrap();
        properties.set(" c = 5=6 ").unwrap();
        let place = |name: &str| properties.get(name).unwrap().origin.to_string();
        assert_eq!(["a", "b", "c"].map(place), ["f, line 5", "f, line 2", "-p"]);
        let value = |name: &str| properties.get(name).unwrap().value.as_str();
        assert_eq!(["a", "b", "c"].map(value), ["3", "2", "5=6"]);
        for text in ["", "a", "=1", " =1"] {
            let error = properties.set(text).unwrap_err();
            assert!(matches!(&error, PropertyError::Override { text: t } if t == text));
        }
    }

    #[test]
    fn files_that_are_no_text_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("w");
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            matches!(Properties::new().add_file(&path), Err(PropertyError::NotText { .. }))
        };
        assert!(refused(b"a=\xff") && refused(b"a=\0") && refused(&vec![b'#'; FILE_MAX + 1]));
        assert!(!refused(b"a=1") && !refused(&vec![b'#'; FILE_MAX]) && !refused(b""));
        for path in [folder.path().join("none"), folder.path().to_owned()] {
            let error = Properties::read([&path], [""; 0]).unwrap_err();
            assert!(matches!(error, PropertyError::Io { .. }), "{error}");
            assert!(error.to_string().contains("cannot be read"), "{error}");
        }
    }

    /// Writes a text such that the parser reads it back.
    fn escape(text: &str) -> String {
        let each = text.chars().map(|c| match c {
            '\n' => "\\n".into(),
            '\r' => "\\r".into(),
            '\t' => "\\t".into(),
            '\x0c' => "\\f".into(),
            c if " =:#!\\".contains(c) => format!("\\{c}"),
            c if c.is_ascii() => c.to_string(),
            c => {
                let mut units = [0; 2];
                let units: Vec<String> = c
                    .encode_utf16(&mut units)
                    .iter()
                    .map(|unit| format!("\\u{unit:04X}"))
                    .collect();
                units.concat()
            }
        });
        each.collect()
    }

    proptest! {
        #[test]
        fn every_property_comes_back(name in "\\PC{0,8}|[ =:#!\\\\\n\r\t\x0c]{1,5}", value: String) {
            let (text, value) = (format!("{}={}", escape(&name), escape(&value)), value.trim());
            prop_assert_eq!(parse(&text), [pair(&name, value)]);
        }

        #[test]
        fn no_text_panics(text in "[ab=: #!\\\\u0d8cé\n\r\t]{0,40}", any: String) {
            for text in [text, any] {
                let mut properties = Properties::new();
                let _ = properties.add_text("f", &text);
                let _ = properties.set(&text);
            }
        }
    }
}
