//! Scans in steps, between which nothing is pinned.

use crate::map::{Bounds, ByteView, Entry};
use crate::value::Value;
use std::ops::{Bound, ControlFlow};

/// A scan of a map that goes on where its last step has ended.
///
/// It returns every key that is present during the whole scan, once and in order, and no key that
/// is absent during all of it. It owns its position, so it can go to another thread.
#[derive(Clone, Debug)]
pub struct Scan {
    from: Bound<Vec<u8>>,
    to: Bound<Vec<u8>>,
    descends: bool,
    over: bool,
}

/// Borrows a bound.
fn lent(bound: &Bound<Vec<u8>>) -> Bound<&[u8]> {
    bound.as_ref().map(Vec::as_slice)
}

/// Calls `each` with the first `most` entries. Returns the last key, unless `each` broke or there
/// are fewer.
fn pass<'v>(
    mut entries: impl Iterator<Item = Entry<'v>>,
    most: usize,
    mut each: impl FnMut(&[u8], Value<'_>) -> ControlFlow<()>,
) -> Option<Vec<u8>> {
    let mut last = None;
    for _ in 0..most {
        let (key, value) = entries.next()?;
        if each(key, value).is_break() {
            return None;
        }
        last = Some(key);
    }
    last.map(<[u8]>::to_vec)
}

impl Scan {
    /// A scan of the keys between two bounds.
    pub fn new((from, to): Bounds<'_>, descends: bool) -> Self {
        Self { from: from.map(<[u8]>::to_vec), to: to.map(<[u8]>::to_vec), descends, over: false }
    }

    /// Calls `each` with the next `most` entries, or with fewer if it breaks or there are no more.
    /// Returns whether the scan is over.
    pub fn step(
        &mut self,
        view: &ByteView<'_>,
        most: usize,
        each: impl FnMut(&[u8], Value<'_>) -> ControlFlow<()>,
    ) -> bool {
        if self.over || most == 0 {
            return self.over;
        }
        let bounds = (lent(&self.from), lent(&self.to));
        let last = if self.descends {
            pass(view.range_rev(bounds), most, each)
        } else {
            pass(view.range(bounds), most, each)
        };
        match last {
            Some(last) if self.descends => self.to = Bound::Excluded(last),
            Some(last) => self.from = Bound::Excluded(last),
            None => self.over = true,
        }
        self.over
    }
}
