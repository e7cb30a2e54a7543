//! Remarks on a collection in CSV.

use crate::flags::error::Error;
use crate::output;

/// Writes records under a header. If there are remarks, each record has them in one more column, so
/// that rows of a collection with missing units do not look complete.
pub fn csv(
    header: &[&str],
    records: impl Iterator<Item = Vec<String>>,
    remarks: &[String],
) -> Result<(), Error> {
    if remarks.is_empty() {
        return output::csv(header, records);
    }
    let remarks = remarks.join(" ");
    let with_remarks = |mut record: Vec<String>| {
        record.push(remarks.clone());
        record
    };
    output::csv(&[header, &["remarks"]].concat(), records.map(with_remarks))
}
