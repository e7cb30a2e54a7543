//! The keys of a range over integers.

use std::ops::{Bound, RangeBounds};

/// Consecutive keys, from the first to the last: at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Keys {
    first: u64,
    last: u64,
}

impl Keys {
    /// The keys within bounds of any kind, if there are any.
    pub fn within(bounds: &impl RangeBounds<u64>) -> Option<Self> {
        let first = match bounds.start_bound() {
            Bound::Unbounded => 0,
            Bound::Included(&key) => key,
            Bound::Excluded(&key) => key.checked_add(1)?,
        };
        let last = match bounds.end_bound() {
            Bound::Unbounded => u64::MAX,
            Bound::Included(&key) => key,
            Bound::Excluded(&key) => key.checked_sub(1)?,
        };
        (first <= last).then_some(Self { first, last })
    }

    /// The smallest key.
    #[inline(always)]
    pub fn first(self) -> u64 {
        self.first
    }

    /// The largest key.
    #[inline(always)]
    pub fn last(self) -> u64 {
        self.last
    }

    /// Whether `key` is one of these keys.
    #[inline(always)]
    pub fn contains(self, key: u64) -> bool {
        self.first <= key && key <= self.last
    }

    /// The keys larger than `key`, which is one of these keys, if there are any.
    #[inline(always)]
    pub fn after(self, key: u64) -> Option<Self> {
        (key < self.last).then(|| Self { first: key + 1, ..self })
    }

    /// The keys smaller than `key`, which is one of these keys, if there are any.
    #[inline(always)]
    pub fn before(self, key: u64) -> Option<Self> {
        (key > self.first).then(|| Self { last: key - 1, ..self })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Bound::{Excluded, Included, Unbounded};

    /// Bounds of every kind on keys at the ends of the key space contain the keys that they say
    /// they contain.
    #[test]
    fn keys_within_bounds_of_every_kind() {
        let ends = [0, 1, 2, u64::MAX - 2, u64::MAX - 1, u64::MAX];
        let bounds = || {
            let kinds = |&key: &u64| [Included(key), Excluded(key)];
            ends.iter().flat_map(kinds).chain([Unbounded])
        };
        for low in bounds() {
            for high in bounds() {
                let keys = Keys::within(&(low, high));
                let inside: Vec<u64> =
                    ends.into_iter().filter(|key| (low, high).contains(key)).collect();
                for key in ends {
                    let is_inside = keys.is_some_and(|keys| keys.contains(key));
                    assert_eq!(is_inside, inside.contains(&key), "{key} in {low:?}, {high:?}");
                }
                let Some(keys) = keys else { continue };
                for key in inside {
                    assert_eq!(keys.after(key), Keys::within(&(Excluded(key), high)));
                    assert_eq!(keys.before(key), Keys::within(&(low, Excluded(key))));
                }
            }
        }
    }
}
