//! Sets of line or page numbers, as runs of neighbours.

use std::ops::Range;

/// Sorts ranges, and joins those that overlap or touch.
pub(crate) fn merge(ranges: &mut Vec<Range<usize>>) {
    ranges.sort_unstable_by_key(|range| range.start);
    ranges.dedup_by(|next, last| {
        let joins = next.start <= last.end;
        if joins {
            last.end = last.end.max(next.end);
        }
        joins
    });
}

/// A set of numbers: ascending runs that neither overlap nor touch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs(Vec<Range<usize>>);

impl FromIterator<Range<usize>> for Runs {
    fn from_iter<I: IntoIterator<Item = Range<usize>>>(ranges: I) -> Self {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for range in ranges {
            match runs.last_mut() {
                // Neighbours mostly come one after the other.
                Some(last) if (last.start..=last.end).contains(&range.start) => {
                    last.end = last.end.max(range.end);
                }
                _ => runs.push(range),
            }
        }
        merge(&mut runs);
        Self(runs)
    }
}

impl Runs {
    /// The number of numbers in the set.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Range::len).sum()
    }

    /// The runs of the set.
    pub(crate) fn as_slice(&self) -> &[Range<usize>] {
        &self.0
    }

    /// The numbers in the set.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = usize> {
        self.0.iter().cloned().flatten()
    }

    /// Whether a number is in the set. O(log n) in the number of runs.
    pub(crate) fn contains(&self, number: usize) -> bool {
        let after = self.0.partition_point(|run| run.start <= number);
        after > 0 && number < self.0[after - 1].end
    }

    /// The numbers of the units, `1 << bits` times as large, that contain numbers of the set.
    pub(crate) fn shifted(&self, bits: u32) -> Self {
        self.0.iter().map(|run| run.start >> bits..((run.end - 1) >> bits) + 1).collect()
    }

    /// The numbers missing from the set that complete its aligned pairs. (Inside a run every number
    /// has its partner: only the ends of runs may lack one.)
    pub(crate) fn partners(&self) -> Self {
        let ends = self.0.iter().flat_map(|run| {
            let before = (run.start % 2 == 1).then(|| run.start - 1..run.start);
            let after = (run.end % 2 == 1).then(|| run.end..run.end + 1);
            before.into_iter().chain(after)
        });
        ends.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn they_are_sets(ranges in prop::collection::vec((0..200_usize, 1..9_usize), 0..40)) {
            let ranges: Vec<_> = ranges.into_iter().map(|(at, len)| at..at + len).collect();
            let set: BTreeSet<usize> = ranges.iter().cloned().flatten().collect();
            let runs: Runs = ranges.into_iter().collect();
            prop_assert!(runs.numbers().eq(set.iter().copied()));
            prop_assert_eq!(runs.len(), set.len());
            prop_assert!(runs.as_slice().windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert!((0..220).all(|number| runs.contains(number) == set.contains(&number)));
            let partners: BTreeSet<usize> =
                set.iter().map(|number| number ^ 1).filter(|number| !set.contains(number)).collect();
            prop_assert!(runs.partners().numbers().eq(partners));
            let shifted: BTreeSet<usize> = set.iter().map(|number| number >> 3).collect();
            prop_assert!(runs.shifted(3).numbers().eq(shifted));
        }
    }
}
