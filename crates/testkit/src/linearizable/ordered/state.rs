//! The state of a map as its differences from a common state.

use smallvec::SmallVec;
use std::ops::Range;

/// The state that all ways have in common, but for their differences.
#[derive(Clone, Debug)]
pub(super) struct Base {
    values: Vec<Option<u64>>,
    /// One bit per key: whether it is present.
    present: Vec<u64>,
}

/// The keys in which a state differs from the common one, in ascending order.
pub(super) type Differences = SmallVec<[(u32, Option<u64>); 2]>;

/// A state: the common one with differences.
#[derive(Clone, Copy, Debug)]
pub(super) struct State<'a> {
    pub(super) base: &'a Base,
    pub(super) differs: &'a Differences,
}

impl Base {
    /// The empty map, for keys with numbers below `keys`.
    pub(super) fn empty(keys: usize) -> Self {
        Self { values: vec![None; keys], present: vec![0; keys.div_ceil(64)] }
    }

    pub(super) fn get(&self, key: u32) -> Option<u64> {
        self.values[key as usize]
    }

    pub(super) fn set(&mut self, key: u32, state: Option<u64>) {
        self.values[key as usize] = state;
        let (word, bit) = (&mut self.present[key as usize / 64], 1 << (key % 64));
        if state.is_some() {
            *word |= bit;
        } else {
            *word &= !bit;
        }
    }

    /// The first present key in a range.
    fn first_present(&self, range: &Range<u32>) -> Option<u32> {
        let mut from = range.start;
        while from < range.end {
            let rest = self.present[from as usize / 64] >> (from % 64);
            if rest != 0 {
                return Some(from + rest.trailing_zeros()).filter(|key| *key < range.end);
            }
            from = (from / 64 + 1) * 64;
        }
        None
    }

    /// The last present key in a range.
    fn last_present(&self, range: &Range<u32>) -> Option<u32> {
        let mut to = range.end;
        while to > range.start {
            let last = to - 1;
            let rest = self.present[last as usize / 64] << (63 - last % 64);
            if rest != 0 {
                return Some(last - rest.leading_zeros()).filter(|key| *key >= range.start);
            }
            to = last / 64 * 64;
        }
        None
    }
}

/// Notes a key's state in the differences.
pub(super) fn put(base: &Base, differs: &mut Differences, key: u32, state: Option<u64>) {
    let same = base.get(key) == state;
    match differs.binary_search_by_key(&key, |entry| entry.0) {
        Ok(at) if same => drop(differs.remove(at)),
        Ok(at) => differs[at].1 = state,
        Err(_) if same => {}
        Err(at) => differs.insert(at, (key, state)),
    }
}

impl State<'_> {
    /// The entry of a key in the differences.
    fn difference(&self, key: u32) -> Option<&(u32, Option<u64>)> {
        let at = self.differs.binary_search_by_key(&key, |entry| entry.0).ok()?;
        Some(&self.differs[at])
    }

    /// The state of a key.
    pub(super) fn get(&self, key: u32) -> Option<u64> {
        self.difference(key).map_or_else(|| self.base.get(key), |entry| entry.1)
    }

    /// Whether all present keys in a range pass a test. It stops at the first key that fails.
    pub(super) fn all_present(&self, range: Range<u32>, test: impl Fn(u32) -> bool) -> bool {
        let added = self.differs.iter().filter(|(_, state)| state.is_some());
        let mut added = added.map(|(key, _)| *key).filter(|key| range.contains(key));
        if !added.all(&test) {
            return false;
        }
        let mut rest = range;
        while let Some(key) = self.base.first_present(&rest) {
            if self.difference(key).is_none() && !test(key) {
                return false;
            }
            rest.start = key + 1;
        }
        true
    }

    /// The first present key, or with `last` the last one.
    pub(super) fn end(&self, last: bool) -> Option<u32> {
        let added = self.differs.iter().filter(|(_, state)| state.is_some()).map(|(key, _)| *key);
        let mut rest = 0..self.base.values.len() as u32;
        let old = loop {
            let found =
                if last { self.base.last_present(&rest) } else { self.base.first_present(&rest) };
            match found {
                Some(key) if self.difference(key).is_some_and(|entry| entry.1.is_none()) => {
                    rest = if last { 0..key } else { key + 1..rest.end };
                }
                found => break found,
            }
        };
        if last { added.chain(old).max() } else { added.chain(old).min() }
    }

    /// The present entries, ascending.
    pub(super) fn entries(&self) -> Vec<(u32, u64)> {
        let keys = 0..self.base.values.len() as u32;
        keys.filter_map(|key| Some((key, self.get(key)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_and_runs_are_those_of_the_state() {
        let mut base = Base::empty(200);
        for key in [3, 63, 64, 130, 199] {
            base.set(key, Some(1));
        }
        let mut differs = Differences::new();
        fn state<'a>(base: &'a Base, differs: &'a Differences) -> State<'a> {
            State { base, differs }
        }
        let ends = |differs: &Differences| {
            let state = State { base: &base, differs };
            (state.end(false), state.end(true))
        };
        assert_eq!(ends(&differs), (Some(3), Some(199)));
        for key in [3, 199] {
            put(&base, &mut differs, key, None);
        }
        assert_eq!(ends(&differs), (Some(63), Some(130)));
        assert!(state(&base, &differs).all_present(0..63, |_| false));
        assert!(!state(&base, &differs).all_present(0..64, |_| false));
        assert!(state(&base, &differs).all_present(131..200, |_| false));
        assert!(!state(&base, &differs).all_present(130..200, |_| false));
        put(&base, &mut differs, 2, Some(5));
        assert_eq!(ends(&differs).0, Some(2));
        assert_eq!(state(&base, &differs).entries(), [(2, 5), (63, 1), (64, 1), (130, 1)]);
        for (key, state) in [(2, None), (3, Some(1)), (199, Some(1))] {
            put(&base, &mut differs, key, state);
        }
        assert!(differs.is_empty(), "{differs:?}");
    }
}
