//! Scans in steps, between which nothing is pinned.

use crate::map::{Bounds, ByteView};
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
        mut each: impl FnMut(&[u8], &Value) -> ControlFlow<()>,
    ) -> bool {
        if self.over || most == 0 {
            return self.over;
        }
        let mut entries = view.range((lent(&self.from), lent(&self.to)));
        let mut last = None;
        for _ in 0..most {
            let entry = if self.descends { entries.next_back() } else { entries.next() };
            let Some((key, value)) = entry else {
                self.over = true;
                return true;
            };
            if each(key, &value).is_break() {
                self.over = true;
                return true;
            }
            last = Some(key);
        }
        let next = last.map_or(Bound::Unbounded, |key| Bound::Excluded(key.to_vec()));
        drop(entries);
        *(if self.descends { &mut self.to } else { &mut self.from }) = next;
        false
    }
}
