//! Batches of upserts: the implementation of [`Batches::insert_many`](crate::Batches::insert_many).

use crate::error::{AllocError, InsertManyError};

/// Inserts `entries` in order by `insert`, and writes each replaced value to its position in
/// `replaced`, as far as that slice reaches. Passes each group of 2 to `group` entries to `warm`
/// first. Returns how many of the keys were absent.
#[inline(always)]
pub(crate) fn insert_in_groups<K: Copy>(
    entries: &[(K, u64)],
    replaced: &mut [Option<u64>],
    group: usize,
    mut warm: impl FnMut(&[(K, u64)]),
    mut insert: impl FnMut(K, u64) -> Result<Option<u64>, AllocError>,
) -> Result<usize, InsertManyError> {
    let (mut done, mut absent) = (0, 0);
    for some in entries.chunks(group) {
        if some.len() > 1 {
            warm(some);
        }
        for &(key, value) in some {
            let old = insert(key, value).map_err(|error| InsertManyError::new(done, error))?;
            if let Some(place) = replaced.get_mut(done) {
                *place = old;
            }
            absent += usize::from(old.is_none());
            done += 1;
        }
    }
    Ok(absent)
}
