//! The pages where objects lie.

use super::COLUMNS;
use crate::Census;
use crate::census::Kind;
use crate::facts::pages;
use std::collections::HashSet;

/// The pages that hold objects, as a grid.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageMap {
    /// The bytes of a cell: those of a 4 KiB page, times a power of two.
    pub unit: usize,
    /// Cells of a row.
    pub columns: usize,
    /// Those with objects, by ascending address.
    pub rows: Vec<PageRow>,
    /// The 4 KiB pages that hold objects of the kinds that were asked for …
    pub pages: usize,
    /// … and those kinds' bytes in them.
    pub bytes: usize,
}

/// Neighbouring cells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRow {
    /// Of its first byte, a multiple of its length.
    pub address: usize,
    /// What each cell holds.
    pub cells: Vec<PageCell>,
}

/// What memory holds, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCell {
    /// Of the kinds that were asked for.
    pub of_kinds: usize,
    /// Of what was given back, whatever it was.
    pub freed: usize,
    /// Of all others.
    pub beside: usize,
}

/// The bytes of a page.
const PAGE: usize = 4096;
/// Rows that are shown, at most.
const ROWS: usize = 64;

impl Census {
    /// Maps the pages that hold objects, with a share for the kinds `of`. O(n log n), however large objects
    /// are.
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
        // From the middle of the second page to the middle of the third.
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
        // 100 MiB, a node per page, and as much 1 TiB away.
        for page in 0..25_600 {
            census.add(&NODE, START + page * 4096);
            census.add(&NODE, START + (1 << 40) + page * 4096);
        }
        let map = census.page_map(&["node"]);
        // 800 rows of pages, 50 of sixteen pages per cell.
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
        // 4 TiB, each object a page less than 4 GiB.
        for number in 0..1024 {
            census.add_sized(array, START + (number << 32), (1 << 32) - 4096);
        }
        census.add_sized(row, START + (1 << 42), 1);
        // The last byte that an object can have.
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
