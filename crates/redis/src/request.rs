//! The arguments of commands.

use crate::aggregate::Operation;
use crate::map::{Bounds, Condition};
use std::fmt;
use std::ops::Bound;

/// The arguments behind the name of the map.
pub trait Words<'a>: Iterator<Item = &'a [u8]> {}
impl<'a, I: Iterator<Item = &'a [u8]>> Words<'a> for I {}

/// One sentence for the client: what is wrong, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestError(pub String);

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RequestError {}

fn error<T>(sentence: String) -> Result<T, RequestError> {
    Err(RequestError(sentence))
}

/// A word as it is shown in a sentence: printable, and not too long.
fn shown(word: &[u8]) -> String {
    const MOST: usize = 40;
    let dots = if word.len() > MOST { "…" } else { "" };
    format!("'{}{dots}'", word[..word.len().min(MOST)].escape_ascii())
}

fn is(word: &[u8], name: &str) -> bool {
    word.eq_ignore_ascii_case(name.as_bytes())
}

fn next<'a>(words: &mut impl Words<'a>, what: &str) -> Result<&'a [u8], RequestError> {
    words.next().map_or_else(|| error(format!("{what} is missing")), Ok)
}

fn integer(word: &[u8], what: &str) -> Result<i64, RequestError> {
    let parsed = str::from_utf8(word).ok().and_then(|text| text.parse().ok());
    parsed.map_or_else(|| error(format!("{what} is {}: give an integer", shown(word))), Ok)
}

/// A number that is not negative.
fn natural(word: &[u8], what: &str) -> Result<usize, RequestError> {
    match usize::try_from(integer(word, what)?) {
        Ok(natural) => Ok(natural),
        Err(_) => error(format!("{what} is {}: give 0 or more", shown(word))),
    }
}

/// A positive number.
fn positive(word: &[u8], what: &str) -> Result<usize, RequestError> {
    match natural(word, what)? {
        0 => error(format!("{what} is 0: give 1 or more")),
        number => Ok(number),
    }
}

fn unknown<T>(word: &[u8], expected: &str) -> Result<T, RequestError> {
    error(format!("{} is not an option here: give {expected}", shown(word)))
}

/// The options of `OM.SET`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetOptions {
    /// When to write.
    pub condition: Condition,
    /// Whether to reply with the old value.
    pub get: bool,
}

/// Parses `[NX | XX] [GET]`.
pub fn set_options<'a>(words: &mut impl Words<'a>) -> Result<SetOptions, RequestError> {
    let mut options = SetOptions::default();
    for word in words {
        let condition = if is(word, "NX") {
            Condition::Absent
        } else if is(word, "XX") {
            Condition::Present
        } else if is(word, "GET") {
            options.get = true;
            continue;
        } else {
            return unknown(word, "NX, XX or GET");
        };
        if !matches!(options.condition, Condition::Always) && options.condition != condition {
            return error("NX and XX exclude each other: give one of them".into());
        }
        options.condition = condition;
    }
    Ok(options)
}

/// Parses `ABSENT | VALUE v`.
pub fn state<'a>(words: &mut impl Words<'a>, what: &str) -> Result<Option<&'a [u8]>, RequestError> {
    let word = next(words, &format!("{what} (ABSENT, or VALUE and a value)"))?;
    if is(word, "ABSENT") {
        Ok(None)
    } else if is(word, "VALUE") {
        next(words, "the value behind VALUE").map(Some)
    } else {
        unknown(word, "ABSENT, or VALUE and a value")
    }
}

/// Fails if there is another argument.
pub fn end<'a>(words: &mut impl Words<'a>) -> Result<(), RequestError> {
    match words.next() {
        Some(word) => error(format!("{} is one argument too many", shown(word))),
        None => Ok(()),
    }
}

/// Which end to pop from, and how many entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pop {
    /// Whether the largest keys go first.
    pub last: bool,
    /// The number of entries; `None` for one, which is replied as a pair.
    pub count: Option<usize>,
}

/// Parses `[FIRST | LAST] [COUNT n]`.
pub fn pop<'a>(words: &mut impl Words<'a>) -> Result<Pop, RequestError> {
    let mut pop = Pop::default();
    while let Some(word) = words.next() {
        if is(word, "COUNT") {
            pop.count = Some(natural(next(words, "the number behind COUNT")?, "COUNT")?);
        } else if is(word, "FIRST") || is(word, "LAST") {
            pop.last = is(word, "LAST");
        } else {
            return unknown(word, "FIRST, LAST or COUNT n");
        }
    }
    Ok(pop)
}

/// One end of a range.
enum Edge<'a> {
    /// Before all keys.
    Low,
    /// Behind all keys.
    High,
    /// At a key.
    Key(Bound<&'a [u8]>),
}

fn edge<'a>(words: &mut impl Words<'a>, what: &str) -> Result<Edge<'a>, RequestError> {
    let word = next(words, what)?;
    match word {
        b"-" => Ok(Edge::Low),
        b"+" => Ok(Edge::High),
        [b'[', key @ ..] => Ok(Edge::Key(Bound::Included(key))),
        [b'(', key @ ..] => Ok(Edge::Key(Bound::Excluded(key))),
        _ => error(format!("{what} is {}: give - or + or [key or (key", shown(word))),
    }
}

/// A range that has no key.
const NOTHING: Bounds<'static> = (Bound::Excluded(b""), Bound::Excluded(b""));

/// Parses the two bounds of a range: the greater one first if `descends`.
pub fn bounds<'a>(words: &mut impl Words<'a>, descends: bool) -> Result<Bounds<'a>, RequestError> {
    let (first, second) =
        if descends { ("the maximum", "the minimum") } else { ("the minimum", "the maximum") };
    let (first, second) = (edge(words, first)?, edge(words, second)?);
    let (min, max) = if descends { (second, first) } else { (first, second) };
    let min = match min {
        Edge::Low => Bound::Unbounded,
        Edge::High => return Ok(NOTHING),
        Edge::Key(bound) => bound,
    };
    let max = match max {
        Edge::Low => return Ok(NOTHING),
        Edge::High => Bound::Unbounded,
        Edge::Key(bound) => bound,
    };
    Ok((min, max))
}

/// The first string that is greater than all strings with this prefix, if there is one.
pub fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte != u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}

/// Which entries of a range to reply with, and what of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The number of entries to pass over.
    pub offset: usize,
    /// The most entries.
    pub count: usize,
    /// Whether to leave the values out.
    pub keys_only: bool,
}

/// Parses `[LIMIT offset count] [KEYSONLY]`. A negative count stands for all entries.
pub fn slice<'a>(words: &mut impl Words<'a>) -> Result<Slice, RequestError> {
    let mut slice = Slice { offset: 0, count: usize::MAX, keys_only: false };
    while let Some(word) = words.next() {
        if is(word, "KEYSONLY") {
            slice.keys_only = true;
        } else if is(word, "LIMIT") {
            slice.offset = natural(next(words, "the offset behind LIMIT")?, "the offset")?;
            let count = integer(next(words, "the count behind LIMIT")?, "the count")?;
            slice.count = usize::try_from(count).unwrap_or(usize::MAX);
        } else {
            return unknown(word, "LIMIT offset count, or KEYSONLY");
        }
    }
    Ok(slice)
}

/// Parses `[COUNT n]`.
pub fn count<'a>(words: &mut impl Words<'a>) -> Result<Option<usize>, RequestError> {
    let mut count = None;
    while let Some(word) = words.next() {
        if !is(word, "COUNT") {
            return unknown(word, "COUNT n");
        }
        count = Some(positive(next(words, "the number behind COUNT")?, "COUNT")?);
    }
    Ok(count)
}

/// Parses one operation or more.
pub fn operations<'a>(words: &mut impl Words<'a>) -> Result<Vec<Operation>, RequestError> {
    let first = next(words, "the operation (SUM, MIN or MAX)")?;
    let parse = |word| match Operation::parse(word) {
        Some(operation) => Ok(operation),
        None => unknown(word, "SUM, MIN or MAX"),
    };
    std::iter::once(first).chain(words).map(parse).collect()
}

/// The position of a scan in many commands: in which map, and behind which key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cursor<'a> {
    /// Before the first key.
    Start,
    /// Behind a key of the map with this id.
    Behind(u64, &'a [u8]),
}

impl<'a> Cursor<'a> {
    /// Parses a cursor: `0`, or what [`Cursor::text`] has returned.
    pub fn parse(word: &'a [u8]) -> Result<Self, RequestError> {
        let parts = || {
            let (id, key) = word.split_at_checked(16)?;
            id.iter().all(u8::is_ascii_hexdigit).then_some(())?;
            let id = u64::from_str_radix(str::from_utf8(id).ok()?, 16).ok()?;
            Some(Self::Behind(id, key.strip_prefix(b":")?))
        };
        match word {
            b"0" => Ok(Self::Start),
            _ => parts().map_or_else(
                || {
                    let sentence = "is not a cursor: give 0, or the cursor of the last reply";
                    error(format!("{} {sentence}", shown(word)))
                },
                Ok,
            ),
        }
    }

    /// The text of a position behind a key.
    pub fn text(id: u64, key: &[u8]) -> Vec<u8> {
        let mut text = format!("{id:016x}:").into_bytes();
        text.extend_from_slice(key);
        text
    }
}

/// Parses `[COUNT n] [KEYSONLY]`.
pub fn scan_options<'a>(words: &mut impl Words<'a>) -> Result<(usize, bool), RequestError> {
    let (mut count, mut keys_only) = (10, false);
    while let Some(word) = words.next() {
        if is(word, "KEYSONLY") {
            keys_only = true;
        } else if is(word, "COUNT") {
            count = positive(next(words, "the number behind COUNT")?, "COUNT")?;
        } else {
            return unknown(word, "COUNT n, or KEYSONLY");
        }
    }
    Ok((count, keys_only))
}

#[cfg(test)]
mod tests;
