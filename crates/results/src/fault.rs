//! A sentence that ends the program: what is wrong, where, and what to do.

use std::fmt;
use std::fs;
use std::path::Path;

/// The sentence.
#[derive(Debug)]
pub(crate) struct Fault(pub(crate) String);

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A fault, as an error.
pub(crate) fn fault<T>(text: impl Into<String>) -> Result<T, Fault> {
    Err(Fault(text.into()))
}

/// The text of a file.
pub(crate) fn read(path: &Path) -> Result<String, Fault> {
    fs::read_to_string(path)
        .map_err(|error| Fault(format!("{}: it cannot be read: {error}", path.display())))
}

/// Writes a file as a whole: a reader, or the next run, sees the old text or the new one.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Fault> {
    let part = path.with_extension(format!("{}.part", std::process::id()));
    fs::write(&part, text)
        .and_then(|()| fs::rename(&part, path))
        .map_err(|error| Fault(format!("{}: it cannot be written: {error}", path.display())))
}
