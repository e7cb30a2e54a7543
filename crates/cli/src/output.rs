//! The output of results. Standard output carries results and nothing else. A reader that closes it
//! early (`| head`) causes no error. Files are written whole or not at all.

use crate::flags::error::Error;
use crate::progress;
use crate::table::Table;
use serde::Serialize;
use std::fs;
use std::io::ErrorKind::AlreadyExists;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Writes text. Colours are removed unless standard output shows them.
pub fn text(text: &str) -> Result<(), Error> {
    write_to(&mut anstream::stdout().lock(), text.as_bytes())
}

/// Writes bytes as they are.
pub fn bytes(bytes: &[u8]) -> Result<(), Error> {
    write(bytes)
}

/// Writes a value as JSON.
pub fn json(value: &impl Serialize) -> Result<(), Error> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|error| Error::Output(error.into()))?;
    bytes.push(b'\n');
    write(&bytes)
}

/// Writes a value as JSON on one line.
pub fn json_line(value: &impl Serialize) -> Result<(), Error> {
    let mut bytes = serde_json::to_vec(value).map_err(|error| Error::Output(error.into()))?;
    bytes.push(b'\n');
    write(&bytes)
}

/// Writes records under a header.
pub fn csv(header: &[&str], records: impl Iterator<Item = Vec<String>>) -> Result<(), Error> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(header).map_err(|error| Error::Output(error.into()))?;
    for record in records {
        writer.write_record(&record).map_err(|error| Error::Output(error.into()))?;
    }
    let bytes = writer.into_inner().map_err(|error| Error::Output(error.into_error()))?;
    write(&bytes)
}

/// An empty table with a header.
pub fn table(header: &[&str]) -> Table {
    Table::new(header)
}

/// Writes all bytes at once, so that an earlier failure leaves nothing half-written.
fn write(bytes: &[u8]) -> Result<(), Error> {
    write_to(&mut io::stdout().lock(), bytes)
}

fn write_to(out: &mut impl Write, bytes: &[u8]) -> Result<(), Error> {
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

/// Several outputs of one result. All are tried, so that one that cannot be written does not lose
/// the others.
#[derive(Debug, Default)]
pub struct Outputs(Option<Error>);

impl Outputs {
    /// Takes the outcome of an output. Each failure after the first is a note.
    pub fn tried(&mut self, outcome: Result<(), Error>) {
        match (outcome, &self.0) {
            (Ok(()), _) => {}
            (Err(error), None) => self.0 = Some(error),
            (Err(error), Some(first)) if error.to_string() == first.to_string() => {}
            (Err(error), Some(_)) => progress::note(&error.to_string()),
        }
    }

    /// The first failure, if there was one.
    pub fn finish(self) -> Result<(), Error> {
        self.0.map_or(Ok(()), Err)
    }
}

/// The most links that may lead to a file, as on Linux.
const LINKS_MAX: usize = 40;

/// A file that is written whole or not at all.
#[derive(Clone, Debug)]
pub struct File {
    /// The flag that names it.
    pub flag: &'static str,
    pub path: PathBuf,
}

impl File {
    /// Fails at once if the file could not be written at the end.
    pub fn new(flag: &'static str, path: &Path) -> Result<Self, Error> {
        let output = Self { flag, path: path.to_owned() };
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        if path.is_dir() {
            return Err(output.error("is a folder: name a file".into()));
        }
        if !folder.is_dir() {
            let problem = format!("cannot be written: there is no folder `{}`", folder.display());
            return Err(output.error(problem));
        }
        if !output.is_special() {
            output
                .beside()
                .and_then(|(part, _)| fs::remove_file(part))
                .map_err(|e| output.error(format!("cannot be written: {e}")))?;
        }
        Ok(output)
    }

    /// Checks that no two of the files are the same.
    pub fn distinct<const N: usize>(files: [&Option<Self>; N]) -> Result<(), Error> {
        let files: Vec<&Self> = files.into_iter().flatten().collect();
        for (at, file) in files.iter().enumerate() {
            if let Some(other) = files[..at].iter().find(|other| other.place() == file.place()) {
                let remedy = "both name one file: name two";
                return Err(Error::Conflict { flag: other.flag, other: file.flag, remedy });
            }
        }
        Ok(())
    }

    /// The final path of the file, with links resolved.
    fn place(&self) -> PathBuf {
        let mut path = self.path.clone();
        // A link may lead to what is not there yet.
        for _ in 0..LINKS_MAX {
            let Ok(target) = fs::read_link(&path) else { break };
            path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        match (folder.unwrap_or(Path::new(".")).canonicalize(), path.file_name()) {
            (Ok(folder), Some(name)) => folder.join(name),
            _ => path,
        }
    }

    /// The failure to write the file, as an error of its flag.
    pub fn error(&self, problem: String) -> Error {
        Error::File { flag: self.flag, path: self.path.clone(), problem }
    }

    /// Writes a temporary file beside it and renames that. A target that is not a plain file is
    /// written directly.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        self.write_quietly(bytes)?;
        progress::note(&format!("{} is in `{}`", self.flag, self.path.display()));
        Ok(())
    }

    /// Writes the file as [`File::write`] does, without a note.
    pub fn write_quietly(&self, bytes: &[u8]) -> Result<(), Error> {
        let written =
            if self.is_special() { fs::write(&self.path, bytes) } else { self.replace(bytes) };
        written.map_err(|e| self.error(format!("cannot be written: {e}")))
    }

    /// Whether the path exists and is not a plain file, such as a pipe.
    fn is_special(&self) -> bool {
        fs::metadata(&self.path).is_ok_and(|found| !found.is_file())
    }

    /// The bytes are on the disk before the name is: after a crash of the system the file is the
    /// old one or the new one.
    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let (part, mut file) = self.beside()?;
        let written = file
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| fs::rename(&part, self.place()));
        if written.is_err() {
            let _ = fs::remove_file(&part);
        }
        written
    }

    /// A new file beside it, with its path. Another thread, or another process of this number on
    /// another machine, may write the same file, and one that was killed may have left its part.
    /// So the first free number is taken.
    fn beside(&self) -> io::Result<(PathBuf, fs::File)> {
        const PARTS_MAX: usize = 1000;
        let mut number = 0;
        loop {
            let mut part = self.place().into_os_string();
            part.push(format!(".{}-{number}.part", std::process::id()));
            match fs::File::create_new(&part) {
                Err(error) if error.kind() == AlreadyExists && number < PARTS_MAX => number += 1,
                made => return Ok((part.into(), made?)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_may_write_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = File::new("--html", &folder.path().join("x")).unwrap();
        // The part of a process of this number that was killed.
        let (left, _) = file.beside().unwrap();
        std::thread::scope(|scope| {
            for text in ["a".repeat(10_000), "b".repeat(20_000)] {
                let file = &file;
                scope.spawn(move || {
                    for _ in 0..100 {
                        file.write_quietly(text.as_bytes()).expect("it is written");
                    }
                });
            }
        });
        let text = fs::read_to_string(&file.path).unwrap();
        assert!([10_000, 20_000].contains(&text.len()) && text == text[..1].repeat(text.len()));
        let mut names: Vec<PathBuf> =
            fs::read_dir(folder.path()).unwrap().map(|found| found.unwrap().path()).collect();
        names.sort_unstable();
        assert_eq!(names, [file.path, left]);
    }
}
