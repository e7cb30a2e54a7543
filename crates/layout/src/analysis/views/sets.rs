//! The sets of a cache, as a grid.

use super::COLUMNS;
use crate::analysis::facts::read;
use crate::{Census, Sets};

/// How many lines read of a kind map to each set of a cache.
///
/// Rows run through the sets of a slice in order. If there are too many rows, a cell stands for
/// several sets. These are a multiple of the row's length apart, and all in one slice or in whole
/// slices. So strides that miss some columns or slices stay visible.
#[derive(Clone, Debug, PartialEq)]
pub struct SetMap {
    /// The number of cells in a row.
    pub columns: usize,
    /// The mean number of lines per set of each cell, row by row.
    pub cells: Vec<f64>,
    /// The number of sets per cell.
    pub group: usize,
    /// The number of slices of the cache.
    pub slices: usize,
}

/// The most rows that are shown.
const ROWS: usize = 32;

impl Census {
    /// Maps the lines read of objects of the kinds called `kind`. O(n log n), plus at most twice as
    /// many steps per run of lines as there are sets.
    pub fn set_map(&mut self, kind: &str, sets: &Sets) -> SetMap {
        // If there are no sets, all lines go to a single one.
        let (slices, sets) = (sets.slices(), &Sets { sets: sets.sets.max(1), ..*sets });
        let each = sets.sets / slices;
        let columns = (1..=COLUMNS.min(each)).rev().find(|n| each.is_multiple_of(*n)).unwrap_or(1);
        let (rows, of_slice) = (sets.sets / columns, each / columns);
        // Group as few rows as possible so that no cell mixes sets of a part of a slice with
        // others.
        let whole =
            |group: &usize| of_slice.is_multiple_of(*group) || group.is_multiple_of(of_slice);
        let group = (rows.div_ceil(ROWS)..=rows).find(whole).unwrap_or(rows);
        let mut cells = vec![0.0; rows.div_ceil(group) * columns];
        let (kinds, objects) = self.sorted();
        let named: Vec<bool> = kinds.iter().map(|of| of.name == kind).collect();
        let of_kind = objects.iter().filter(|object| named[object.kind as usize]);
        let cell = |set: usize| set / columns / group * columns + set % columns;
        let mut everywhere = 0;
        for run in read(kinds, of_kind, sets.line).as_slice() {
            // As many consecutive lines as there are sets, from a multiple of them on, lie in one
            // set each.
            let first = run.start.next_multiple_of(sets.sets).min(run.end);
            let rest = first + (run.end - first) / sets.sets * sets.sets;
            everywhere += (rest - first) / sets.sets;
            for line in (run.start..first).chain(rest..run.end) {
                cells[cell(sets.of(line))] += 1.0;
            }
        }
        for (number, lines) in cells.iter_mut().enumerate() {
            let first = number / columns * group;
            *lines = *lines / (rows - first).min(group) as f64 + everywhere as f64;
        }
        SetMap { columns, cells, group, slices }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{COLD, NODE, in_turns};
    use super::*;
    use crate::SetHash;

    const fn sets(sets: usize) -> Sets {
        Sets { line: 64, sets, hash: SetHash::Modulo }
    }

    #[test]
    fn every_other_set_is_empty() {
        // 8192 nodes, on every second of 16384 lines.
        let mut census = in_turns(&[&NODE, &COLD], 8192);
        for (count, rows, group, lines) in
            [(64, 1, 1, 256.0), (512, 8, 1, 32.0), (8192, 32, 4, 2.0)]
        {
            let map = census.set_map("node", &sets(count));
            assert_eq!((map.columns, map.cells.len(), map.group), (64, rows * 64, group));
            assert_eq!(map.slices, 1);
            for (number, cell) in map.cells.iter().enumerate() {
                let expected = if number % 2 == 0 { lines } else { 0.0 };
                assert_eq!(
                    format!("{cell:.1}"),
                    format!("{expected:.1}"),
                    "cell {number} of {count}"
                );
            }
        }
        let map = census.set_map("leaf", &sets(512));
        assert!(map.cells.iter().all(|cell| *cell == 0.0), "there are none");
    }

    #[test]
    fn slices_that_are_missed_are_empty_rows() {
        // A stride of three lines reaches four of twelve slices.
        let mut census = in_turns(&[&NODE, &COLD, &COLD], 100_000);
        let sliced = Sets { hash: SetHash::Slices(12), ..sets(12 * 2048) };
        let map = census.set_map("node", &sliced);
        assert_eq!((map.columns, map.group, map.cells.len()), (64, 16, 24 * 64));
        let rows: Vec<bool> =
            map.cells.chunks(64).map(|row| row.iter().any(|c| *c > 0.0)).collect();
        assert_eq!(rows.iter().filter(|row| **row).count(), 8);
        // The slices reached are those with one remainder modulo three; four in a row look alike.
        assert!(rows.chunks(8).all(|slices| slices.iter().all(|row| *row == slices[0])));
    }

    #[test]
    fn odd_numbers_of_sets_find_their_place() {
        let mut census = in_turns(&[&NODE], 96 * 100);
        let map = census.set_map("node", &sets(96));
        assert_eq!((map.columns, map.cells.len(), map.group), (48, 96, 1));
        assert!(map.cells.iter().all(|cell| (cell - 100.0).abs() < 1e-9));
        // 33 slices of one row each: 17 rows, the last of which is half empty.
        let map = census.set_map("node", &Sets { hash: SetHash::Slices(33), ..sets(33 * 64) });
        assert_eq!((map.columns, map.cells.len(), map.group), (64, 17 * 64, 2));
        let lines: f64 = map.cells[..16 * 64].iter().sum::<f64>() * 2.0
            + map.cells[16 * 64..].iter().sum::<f64>();
        assert!((lines - 9600.0).abs() < 1e-6, "{lines}");
    }

    #[test]
    fn shapes_that_no_cache_has_are_maps_of_what_there_is() {
        let mut census = in_turns(&[&NODE], 100);
        for (all, slices) in [(0, 4), (3, 4), (8, 0)] {
            let shape = Sets { hash: SetHash::Slices(slices), ..sets(all) };
            let map = census.set_map("node", &shape);
            assert_eq!((map.slices, map.cells.len()), (1, all.max(1)));
            let lines: f64 = map.cells.iter().sum();
            assert!((lines - 100.0).abs() < 1e-9, "{lines}");
        }
    }

    #[test]
    fn large_objects_are_counted_as_line_by_line() {
        let sliced = |slices, all| Sets { hash: SetHash::Slices(slices), ..sets(all) };
        for shape in [sets(512), sliced(3, 96), sliced(12, 12 * 64), sliced(32, 32 * 64)] {
            // Runs that start inside a round of all sets and cover two more; a part of a round; no
            // whole one.
            let runs = [(7 * shape.sets + 5, 3 * shape.sets), (20 * shape.sets + 9, 3), (0, 1)];
            let (mut census, mut expected) = (Census::default(), vec![0.0; shape.sets]);
            let array = census.kind("array", None);
            for (first, lines) in runs {
                census.add_sized(array, first * 64, lines * 64);
                (first..first + lines).for_each(|line| expected[shape.of(line)] += 1.0);
            }
            assert_eq!(census.set_map("array", &shape).cells, expected, "{shape:?}");
        }
        let (mut census, lines) = (Census::default(), (1 << 26) - 1);
        let array = census.kind("array", None);
        for number in 0..1024 {
            census.add_sized(array, number << 32, lines * 64);
        }
        let cells = census.set_map("array", &sets(512)).cells;
        // All lines of each object except one.
        let mut expected = vec![((lines + 1) / 512 * 1024) as f64; 512];
        expected[511] -= 1024.0;
        assert_eq!(cells, expected);
    }
}
