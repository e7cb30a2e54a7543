//! The comments of files where `#` begins one: shell, TOML, just.

use crate::text::{Group, Kind, Line};

/// Every comment, in runs of adjacent lines that hold nothing else.
///
/// A `#` counts if white space or nothing is before it, white space or nothing behind it, and
/// no quote is open on its line.
pub(crate) fn read(text: &str) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if number == 1 && line.starts_with("#!") {
            continue;
        }
        let Some(at) = comment(line) else {
            open = false;
            continue;
        };
        let alone = line[..at].trim().is_empty();
        let found = Line { number, text: line[at + 1..].to_owned(), full: line.to_owned() };
        match groups.last_mut() {
            Some(group) if open && alone => group.lines.push(found),
            _ => groups.push(Group { kind: Kind::Comment, lines: vec![found] }),
        }
        open = alone;
    }
    groups
}

fn comment(line: &str) -> Option<usize> {
    let bytes = line.as_bytes();
    let (mut single, mut double) = (false, false);
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            b'\'' if !double => single = !single,
            b'"' if !single => double = !double,
            b'#' if !single && !double => {
                let before = at == 0 || bytes[at - 1].is_ascii_whitespace();
                let behind = bytes.get(at + 1).is_none_or(u8::is_ascii_whitespace);
                if before && behind {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}
