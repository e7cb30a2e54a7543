//! Standard output carries results and nothing else. A reader who has seen enough (`| head`) is no
//! error.

use crate::error::Error;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;
use std::io::{self, Write};

/// Writes text as it is.
pub fn text(text: &str) -> Result<(), Error> {
    write(text.as_bytes())
}

/// Writes a value as JSON.
pub fn json(value: &impl Serialize) -> Result<(), Error> {
    let mut bytes =
        serde_json::to_vec_pretty(value).map_err(|error| Error::Output(error.into()))?;
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

/// An empty table with a header, in Markdown: readable as it is, and it can be pasted into a page.
pub fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table
        .load_style(presets::ASCII_MARKDOWN)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header);
    table
}

/// All at once, so that a failure before leaves nothing half-written.
fn write(bytes: &[u8]) -> Result<(), Error> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}
