//! The pages that contain objects, as a grid.

use super::COLUMNS;
use crate::Census;
use crate::analysis::PAGE;
use crate::analysis::census::Kind;
use crate::analysis::facts::pages;
use std::collections::HashSet;

/// The pages that contain objects, as a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMap {
    /// The bytes of a cell: a 4 KiB page times a power of two.
    pub unit: usize,
    /// The number of cells in a row.
    pub columns: usize,
    /// The rows that contain objects, by ascending address.
    pub rows: Vec<PageRow>,
    /// The number of 4 KiB pages that contain objects of the selected kinds.
    pub pages: usize,
    /// The bytes of objects of the selected kinds.
    pub bytes: usize,
}

/// A row of adjacent cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRow {
    /// The address of the first byte, a multiple of the row's length.
    pub address: usize,
    /// The contents of each cell.
    pub cells: Vec<PageCell>,
}

/// The contents of a cell, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCell {
    /// The bytes of objects of the selected kinds.
    pub of_kinds: usize,
    /// The bytes of freed blocks of any other kind.
    pub freed: usize,
    /// The bytes of all other objects.
    pub beside: usize,
}

/// The most rows that are shown.
const ROWS: usize = 64;

impl Census {
    /// Maps the pages that contain objects. The kinds `of` are the selected ones. O(n log n),
    /// however large the objects are.
    pub fn page_map(&mut self, of: &[&str]) -> PageMap {
        let (kinds, objects) = self.sorted();
        let of: HashSet<&str> = of.iter().copied().collect();
        let asked: Vec<bool> = kinds.iter().map(|kind| of.contains(kind.name.as_str())).collect();
        let (mut unit, mut rows) = (PAGE, pages(objects, PAGE.ilog2()).shifted(COLUMNS.ilog2()));
        while rows.len() > ROWS {
            (unit, rows) = (2 * unit, rows.shifted(1));
        }
        let empty = |row| PageRow {
            address: row * COLUMNS * unit,
            cells: vec![PageCell::default(); COLUMNS],
        };
        let mut map: Vec<PageRow> = rows.numbers().map(empty).collect();
        for object in objects {
            let kind = object.kind as usize;
            for cell in object.start() / unit..=object.last() / unit {
                let lies = cell * unit..(cell * unit).saturating_add(unit);
                let bytes = object.end().min(lies.end) - object.start().max(lies.start);
                let row = map.partition_point(|row| row.address <= lies.start) - 1;
                let cell = &mut map[row].cells[cell % COLUMNS];
                let part = match &kinds[kind] {
                    _ if asked[kind] => &mut cell.of_kinds,
                    Kind { freed: Some(_), .. } => &mut cell.freed,
                    _ => &mut cell.beside,
                };
                *part += bytes;
            }
        }
        let of_kinds = objects.iter().filter(|object| asked[object.kind as usize]);
        let bytes = map.iter().flat_map(|row| &row.cells).map(|cell| cell.of_kinds).sum();
        let pages = pages(of_kinds, PAGE.ilog2()).len();
        PageMap { unit, columns: COLUMNS, rows: map, pages, bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{COLD, NODE, START, in_turns};
    use super::*;

    #[test]
    fn a_page_has_the_bytes_that_lie_in_it() {
        let mut census = in_turns(&[&NODE, &COLD], 48);
        let row = census.kind("row", Some(Vec::new()));
        // The row lies from the middle of the second page to the middle of the third.
        census.add_sized(row, START + 6144, 4096);
        let map = census.page_map(&["node", "none"]);
        assert_eq!((map.unit, map.columns, map.rows.len()), (4096, 64, 1));
        assert_eq!((map.pages, map.bytes), (2, 48 * 64));
        assert_eq!(map.rows[0].address, START);
        let cell = |of_kinds, beside| PageCell { of_kinds, freed: 0, beside };
        let cells = [cell(2048, 2048), cell(1024, 1024 + 2048), cell(0, 2048), cell(0, 0)];
        assert_eq!(map.rows[0].cells[..4], cells);
        let freed = census.freed("descriptor");
        census.add_sized(freed, START + 4 * 4096, 64);
        let map = census.page_map(&["node"]);
        assert_eq!(map.rows[0].cells[4], PageCell { of_kinds: 0, freed: 64, beside: 0 });
        assert_eq!(Census::default().page_map(&["node"]).rows, []);
    }

    #[test]
    fn many_pages_share_cells_and_gaps_are_left_out() {
        let mut census = Census::default();
        // 100 MiB with a node per page, and as much 1 TiB away.
        for page in 0..25_600 {
            census.add(&NODE, START + page * 4096);
            census.add(&NODE, START + (1 << 40) + page * 4096);
        }
        let map = census.page_map(&["node"]);
        // 800 rows of single pages, or 50 with sixteen pages per cell.
        assert_eq!((map.unit, map.rows.len(), map.pages), (16 * 4096, 50, 51_200));
        assert!(map.rows.iter().flat_map(|row| &row.cells).all(|cell| cell.of_kinds == 16 * 64));
        let addresses: Vec<usize> = map.rows.iter().map(|row| row.address - START).collect();
        assert_eq!((addresses[24], addresses[25]), (96 << 20, 1 << 40));
    }

    #[test]
    fn objects_that_overlap_are_counted_each() {
        let (mut census, mut bytes) = (Census::default(), 0);
        let row = census.kind("row", None);
        for (address, size) in [(0x1000, 0x3000), (0x1800, 0x10), (0x2000, 0x20)] {
            census.add_sized(row, address, size);
            bytes += size;
        }
        let map = census.page_map(&["row"]);
        assert_eq!((map.pages, map.bytes), (3, bytes));
    }

    #[test]
    fn large_objects_take_as_long_as_small_ones() {
        let mut census = Census::default();
        let (array, row) = (census.kind("array", None), census.kind("row", None));
        // 4 TiB; each object is a page smaller than 4 GiB.
        for number in 0..1024 {
            census.add_sized(array, START + (number << 32), (1 << 32) - 4096);
        }
        census.add_sized(row, START + (1 << 42), 1);
        // The last byte that an object can occupy.
        census.add_sized(row, usize::MAX - 1, 1);
        let map = census.page_map(&["array"]);
        assert_eq!((map.pages, map.bytes), (1024 * ((1 << 20) - 1), (1 << 42) - (1024 << 12)));
        assert!(map.rows.len() <= ROWS && map.rows.len() > ROWS / 2, "{}", map.rows.len());
        assert_eq!(map.rows.last().unwrap().cells[COLUMNS - 1].beside, 1);
        let beside: usize =
            map.rows.iter().flat_map(|row| &row.cells).map(|cell| cell.beside).sum();
        assert_eq!(beside, 2);
    }
}
