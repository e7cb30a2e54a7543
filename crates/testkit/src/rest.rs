//! Checks of an index at rest.

use crate::failure::ensure;
use crate::{Failure, Outcome, Subject};

/// Fails unless `len`, `len_snapshot` if there is one, `is_empty` and `check` all report `wanted`
/// entries.
pub(crate) fn counts<I: Subject + ?Sized>(index: &mut I, wanted: usize) -> Outcome {
    let len = index.len();
    ensure!(len == wanted, "len is {len}, wanted {wanted}");
    let snapshot = index.len_snapshot().unwrap_or(len);
    ensure!(snapshot == wanted, "len_snapshot is {snapshot}, wanted {wanted}");
    ensure!(index.is_empty() == (wanted == 0), "is_empty is wrong at {wanted} entries");
    let walked = index.check().map_err(Failure::from)?;
    ensure!(walked == wanted, "check walked {walked} entries, wanted {wanted}");
    Ok(())
}
