//! Checks of an index at rest.

use crate::failure::ensure;
use crate::{Failure, Outcome, Subject};

/// Fails unless `len`, `is_empty` and `check` all report `wanted` entries.
pub(crate) fn counts<I: Subject + ?Sized>(index: &mut I, wanted: usize) -> Outcome {
    let len = index.len();
    ensure!(len == wanted, "len is {len}, wanted {wanted}");
    ensure!(index.is_empty() == (wanted == 0), "is_empty is wrong at {wanted} entries");
    let walked = index.check().map_err(Failure::from)?;
    ensure!(walked == wanted, "check walked {walked} entries, wanted {wanted}");
    Ok(())
}
