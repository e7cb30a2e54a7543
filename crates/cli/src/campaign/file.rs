//! The file of a part: its head, and a line for each unit that was measured.
//!
//! A line is written with its end in one call, and is on the disk before the next unit begins. So a
//! process that is killed leaves whole lines, and behind them at most one without an end, which is
//! dropped. Any other line that cannot be read is damage, and is refused.

use super::head::{FORMAT, Head, other_machine};
use crate::flags::error::Error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A unit that was measured.
#[derive(Debug, Deserialize)]
pub struct Line {
    /// The number of the unit, from 0.
    pub unit: usize,
    pub name: String,
    pub outcome: Value,
}

/// A unit, as it is written.
#[derive(Serialize)]
struct Written<'a, T> {
    unit: usize,
    name: &'a str,
    outcome: &'a T,
}

/// The content of a file.
#[derive(Debug)]
pub struct Content {
    pub head: Head,
    pub lines: Vec<Line>,
    /// The bytes of the lines that have an end.
    whole: usize,
    /// Whether the last line has no end.
    pub is_cut: bool,
}

/// The reason why a file has no content. It continues the sentence that the file's name begins.
#[derive(Debug)]
enum Fault {
    /// The file ends before its head does.
    NoHead,
    Problem(String),
}

impl Content {
    /// Reads a file for `silvics collect`.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let failed = |problem| Error::File { flag: "FILE", path: path.into(), problem };
        let bytes = fs::read(path).map_err(|e| failed(format!("cannot be read: {e}")))?;
        Self::parse(&bytes).map_err(|fault| match fault {
            Fault::NoHead => failed(NO_PART.into()),
            Fault::Problem(problem) => failed(problem),
        })
    }

    fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut lines = bytes[..whole].split_inclusive(|byte| *byte == b'\n');
        let head = head(lines.next().ok_or(Fault::NoHead)?)?;
        let mut units: Vec<Line> = Vec::new();
        let mut seen = BTreeSet::new();
        for (number, line) in lines.enumerate() {
            let damaged = |problem: String| {
                let number = number + 2;
                Fault::Problem(format!(
                    "is damaged in line {number} ({problem}): remove the line, and start the part \
                     again"
                ))
            };
            let line: Line =
                serde_json::from_slice(line).map_err(|error| damaged(error.to_string()))?;
            let (unit, part) = (line.unit, head.shard);
            if head.units.get(unit).is_none_or(|name| *name != line.name) || !part.has(unit) {
                return Err(damaged(format!("`{}` is no unit of part {part}", line.name)));
            }
            if !seen.insert(unit) {
                return Err(damaged(format!("`{}` is there twice", line.name)));
            }
            units.push(line);
        }
        Ok(Self { head, lines: units, whole, is_cut: whole < bytes.len() })
    }
}

const NO_PART: &str = "is no part of a campaign: name another file";

fn head(line: &[u8]) -> Result<Head, Fault> {
    #[derive(Deserialize)]
    struct Format {
        campaign: u64,
    }
    let no_part = || Fault::Problem(NO_PART.into());
    let Format { campaign } = serde_json::from_slice(line).map_err(|_| no_part())?;
    if campaign != FORMAT {
        return Err(Fault::Problem(format!(
            "has format {campaign}, but this version reads format {FORMAT}: use the version that \
             wrote it"
        )));
    }
    serde_json::from_slice(line).map_err(|error| {
        Fault::Problem(format!("has a damaged first line ({error}): measure the part again"))
    })
}

/// A file to which units are added.
pub struct Output {
    path: PathBuf,
    file: File,
    /// The units that the file has.
    pub done: BTreeSet<usize>,
}

const FLAG: &str = "--out";

impl Output {
    /// Opens the file of a part, or makes it. Fails if it belongs to another part, or is in use.
    pub fn open(path: &Path, head: &Head) -> Result<Self, Error> {
        let failed = |problem: String| Error::File { flag: FLAG, path: path.into(), problem };
        let unwritable = |error: io::Error| failed(format!("cannot be written: {error}"));
        if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            return Err(failed("is no plain file: name one".into()));
        }
        let is_new = !path.exists();
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false);
        let mut file = options.open(path).map_err(unwritable)?;
        // A system that cannot lock files has no protection.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            let problem = "is being written by another process: wait for it, or name another file";
            return Err(failed(problem.into()));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(unwritable)?;
        let first = line(head).map_err(unwritable)?;
        let (whole, done) = match Content::parse(&bytes) {
            // Nothing is lost if a part that has no unit begins anew, with other flags perhaps.
            Ok(content) if content.lines.is_empty() => (0, BTreeSet::new()),
            Ok(content) => {
                same_part(head, &content.head).map_err(failed)?;
                (content.whole, content.lines.iter().map(|line| line.unit).collect())
            }
            Err(Fault::NoHead) if is_start_of_head(&bytes) => (0, BTreeSet::new()),
            Err(Fault::NoHead) => return Err(failed(NO_PART.into())),
            Err(Fault::Problem(problem)) => return Err(failed(problem)),
        };
        let mut output = Self { path: path.into(), file, done };
        output.cut(whole)?;
        if whole == 0 {
            output.write(&first)?;
        }
        if is_new {
            sync_folder(path).map_err(|error| output.failed(&error))?;
        }
        Ok(output)
    }

    /// Adds a unit. It is on the disk when this returns.
    pub fn add(&mut self, unit: usize, name: &str, outcome: &impl Serialize) -> Result<(), Error> {
        let line = line(&Written { unit, name, outcome }).map_err(|error| self.failed(&error))?;
        self.write(&line)?;
        self.done.insert(unit);
        Ok(())
    }

    /// Drops all bytes from a length on. The next bytes are written there.
    fn cut(&mut self, len: usize) -> Result<(), Error> {
        let len = len as u64;
        let cut = self.file.set_len(len).and_then(|()| self.file.seek(SeekFrom::Start(len)));
        cut.map(|_| ()).map_err(|error| self.failed(&error))
    }

    fn write(&mut self, line: &[u8]) -> Result<(), Error> {
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        written.map_err(|error| self.failed(&error))
    }

    fn failed(&self, error: &io::Error) -> Error {
        let problem = format!("cannot be written: {error}");
        Error::File { flag: FLAG, path: self.path.clone(), problem }
    }
}

/// Whether bytes without a line are what a process that was killed at once left of a head.
fn is_start_of_head(bytes: &[u8]) -> bool {
    let start = format!("{{\"campaign\":{FORMAT},");
    bytes.starts_with(start.as_bytes()) || start.as_bytes().starts_with(bytes)
}

/// Puts the name of a new file on the disk. Some file systems cannot sync folders.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if cfg!(unix) {
        match File::open(folder.unwrap_or(Path::new("."))).and_then(|folder| folder.sync_all()) {
            Err(error)
                if !matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported) =>
            {
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

/// A value as a line of JSON.
fn line(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// Checks that a part can go on: `there` is the head of its file, and `here` that of the command.
fn same_part(here: &Head, there: &Head) -> Result<(), String> {
    if there.shard != here.shard && here.other_campaign(there).is_none() {
        return Err(format!(
            "is that of part {}, and this is part {}: name another file",
            there.shard, here.shard
        ));
    }
    let other = here.other_campaign(there);
    match other.or_else(|| other_machine(here, there).into_iter().next()) {
        None => Ok(()),
        Some(of) => Err(format!(
            "was begun with another {} ({}, now {}): name another file",
            of.what, of.there, of.here
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::super::head::tests::head;
    use super::super::shard::Shard;
    use super::*;

    const FIRST: &str = "{\"unit\":0,\"name\":\"a\",\"outcome\":[1.5]}\n";

    /// The head of the only part, and two units.
    fn whole() -> (Head, String) {
        let head = Head { shard: Shard { index: 1, count: 1 }, ..head() };
        let second = FIRST.replace('0', "1").replace("\"a\"", "\"b\"");
        let text = String::from_utf8(line(&head).unwrap()).unwrap() + FIRST + &second;
        (head, text)
    }

    fn problem(text: &str) -> String {
        match Content::parse(text.as_bytes()) {
            Err(Fault::Problem(problem)) => problem,
            other => panic!("no problem: {other:?}"),
        }
    }

    #[test]
    fn units_are_read_in_any_order() {
        let (head, text) = whole();
        let (start, second) = text.split_at(text.len() - FIRST.len());
        let start = start.strip_suffix(FIRST).unwrap();
        for text in [&text, &format!("{start}{second}{FIRST}")] {
            let content = Content::parse(text.as_bytes()).unwrap();
            assert_eq!((content.lines.len(), content.is_cut), (2, false));
            assert_eq!(content.head.other_campaign(&head), None);
        }
    }

    /// `serde_json` reads some numbers wrongly by a bit without its feature `float_roundtrip`.
    #[test]
    fn figures_are_read_as_they_were_written() {
        let (_, text) = whole();
        for number in 1..20_000 {
            let figure = f64::from(number).sqrt() / 7.0;
            let text = text.replace("1.5", &figure.to_string());
            let read = serde_json::from_str::<Line>(text.lines().nth(1).unwrap()).unwrap();
            assert_eq!(read.outcome[0].as_f64(), Some(figure));
        }
    }

    #[test]
    fn only_a_last_line_without_an_end_is_dropped() {
        let (_, text) = whole();
        let end = text.len() - FIRST.len();
        for cut in end + 1..text.len() {
            let content = Content::parse(&text.as_bytes()[..cut]).unwrap();
            assert_eq!((content.lines.len(), content.is_cut, content.whole), (1, true, end));
        }
        let garbage = problem(&text.replace("{\"unit\":0", "{\"un"));
        assert!(garbage.starts_with("is damaged in line 2 ("), "{garbage}");
        let garbage = problem(&(text + "\0\0\n"));
        assert!(garbage.starts_with("is damaged in line 4 ("), "{garbage}");
    }

    #[test]
    fn lines_are_units_of_the_part() {
        let (_, text) = whole();
        let twice = problem(&(text.clone() + FIRST));
        assert!(twice.contains("line 4 (`a` is there twice)"), "{twice}");
        for (from, to) in [("\"unit\":1", "\"unit\":2"), ("\"name\":\"b\"", "\"name\":\"c\"")] {
            let other = problem(&text.replace(from, to));
            assert!(other.contains("is no unit of part 1/1"), "{other}");
        }
        let other = problem(&text.replace("\"1/1\"", "\"1/2\""));
        assert!(other.contains("line 3 (`b` is no unit of part 1/2)"), "{other}");
        let newer = problem(&text.replace("{\"campaign\":1", "{\"campaign\":2"));
        assert!(newer.starts_with("has format 2, but"), "{newer}");
        assert_eq!(problem("{}\n"), NO_PART);
        assert!(problem("{\"campaign\":1}\n").contains("damaged first line"));
    }

    #[test]
    fn a_part_goes_on_behind_its_whole_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        let (head, text) = whole();
        let end = text.len() - FIRST.len();
        for cut in [0, 10, end, end + 10, text.len()] {
            fs::write(&path, &text[..cut]).unwrap();
            let mut output = Output::open(&path, &head).unwrap();
            let done: Vec<usize> = output.done.iter().copied().collect();
            match cut {
                0 | 10 => assert!(done.is_empty()),
                cut if cut == text.len() => assert_eq!(done, [0, 1]),
                _ => assert_eq!(done, [0]),
            }
            for (unit, name) in ["a", "b"].into_iter().enumerate() {
                if !done.contains(&unit) {
                    output.add(unit, name, &[1.5]).unwrap();
                }
            }
            drop(output);
            assert_eq!(fs::read_to_string(&path).unwrap(), text, "cut at {cut}");
        }
    }

    /// A mistyped flag, or a file of keys that is not there, used to take the file.
    #[test]
    fn a_part_without_units_begins_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        let (head, text) = whole();
        let other = Head { verb: "memtable".into(), ..head.clone() };
        for cut in [0, 1, 30, text.len() - 2 * FIRST.len()] {
            fs::write(&path, &text[..cut]).unwrap();
            assert!(Output::open(&path, &other).unwrap().done.is_empty(), "cut at {cut}");
            let read = Content::read(&path).unwrap();
            assert_eq!((&*read.head.verb, read.lines.len()), ("memtable", 0));
        }
    }

    #[test]
    fn a_file_of_something_else_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes");
        let (head, text) = whole();
        let other = Head { verb: "memtable".into(), ..head.clone() };
        let newer = text.replace("{\"campaign\":1", "{\"campaign\":2");
        for (text, head) in [("notes", &head), ("notes\n", &head), (&text, &other), (&newer, &head)]
        {
            fs::write(&path, text).unwrap();
            assert!(Output::open(&path, head).is_err());
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_file_has_one_writer() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("part");
        let (head, _) = whole();
        // Some file systems have no locks.
        if let Err(TryLockError::Error(_)) = File::create(&path).expect("a file").try_lock() {
            return;
        }
        let output = Output::open(&path, &head).unwrap();
        let refused = Output::open(&path, &head).err().expect("it is in use").to_string();
        assert!(refused.contains("is being written by another process"), "{refused}");
        drop(output);
        assert!(Output::open(&path, &head).is_ok());
    }
}
