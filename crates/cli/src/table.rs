//! Tables in Markdown, which fit the terminal.
//!
//! A table that is wider than the terminal loses columns in the order that it names
//! ([`Table::drops`]). A column without which two rows would look like one stays
//! ([`Table::names`]). If it is still too wide, the text of its cells folds. A line below it names
//! the lost columns. If the width is not limited, a table is whole Markdown, which can be pasted
//! into a page.

use crate::terminal;
use anstyle::Style;
use comfy_table::{ColumnConstraint, ContentArrangement, presets};
use std::collections::HashSet;
use std::fmt;
use std::ops::{Deref, DerefMut};

/// A table with a header.
#[derive(Clone, Debug)]
pub struct Table {
    cells: comfy_table::Table,
    /// The names of the columns that may be lost, the first ones first.
    drops: &'static [&'static str],
    /// The names of the columns that say what a row is about.
    names: &'static [&'static str],
    /// Rows with their styles.
    styles: Vec<(usize, Style)>,
}

impl Table {
    /// An empty table.
    pub fn new(header: &[&str]) -> Self {
        let mut cells = comfy_table::Table::new();
        cells
            .load_style(presets::ASCII_MARKDOWN)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(header);
        Self { cells, drops: &[], names: &[], styles: Vec::new() }
    }

    /// Names the columns that a narrow terminal does not show, the first ones first. Columns with
    /// one name are lost together.
    #[must_use]
    pub fn drops(self, drops: &'static [&'static str]) -> Self {
        Self { drops, ..self }
    }

    /// Names the columns that say what a row is about. If several columns have a name, it means the
    /// first. One of them is lost only if the others tell as many rows apart without it.
    #[must_use]
    pub fn names(self, names: &'static [&'static str]) -> Self {
        Self { names, ..self }
    }

    /// Shows a row in a style, counted from 0, where the terminal has colours.
    pub fn style(&mut self, row: usize, style: Style) {
        self.styles.push((row, style));
    }

    /// The table within a width, and the names of the columns that are lost.
    fn fit(&self, width: usize) -> (comfy_table::Table, Vec<&'static str>) {
        let (mut cells, mut lost) = (self.cells.clone(), Vec::new());
        let mut names: Vec<usize> =
            self.names.iter().filter_map(|name| self.places(name).first().copied()).collect();
        for &name in self.drops {
            if width_of(&cells) <= width {
                break;
            }
            let places = self.places(name);
            let mut others = names.clone();
            others.retain(|at| !places.contains(at));
            if self.told_apart(&others) < self.told_apart(&names) {
                continue;
            }
            names = others;
            for &at in &places {
                if let Some(column) = cells.column_mut(at) {
                    column.set_constraint(ColumnConstraint::Hidden);
                }
            }
            if !places.is_empty() {
                lost.push(name);
            }
        }
        if width_of(&cells) > width {
            let width = u16::try_from(width).unwrap_or(u16::MAX);
            cells.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        (cells, lost)
    }

    /// The places of the columns with a name.
    fn places(&self, name: &str) -> Vec<usize> {
        let header = self.cells.header().into_iter().flat_map(comfy_table::Row::cell_iter);
        header.enumerate().filter(|(_, cell)| cell.content() == name).map(|(at, _)| at).collect()
    }

    /// The number of rows that differ in some columns.
    fn told_apart(&self, columns: &[usize]) -> usize {
        let rows = self.cells.row_iter().map(|row| {
            let cells: Vec<String> = row.cell_iter().map(comfy_table::Cell::content).collect();
            columns.iter().map(|&at| cells.get(at).cloned()).collect::<Vec<_>>()
        });
        rows.collect::<HashSet<_>>().len()
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, cells: &comfy_table::Table) -> fmt::Result {
        const HEAD: usize = 2; // the header and the line below it
        let lines: Vec<String> = cells.lines().collect();
        // A row whose text folds has several lines, which are not known.
        let is_plain = lines.len() == HEAD + cells.row_iter().count();
        for (at, line) in lines.iter().enumerate() {
            let end = if at + 1 < lines.len() { "\n" } else { "" };
            let is_of = |(row, _): &&(usize, Style)| is_plain && row + HEAD == at;
            match self.styles.iter().find(is_of) {
                Some((_, style)) => write!(f, "{style}{line}{style:#}{end}")?,
                None => write!(f, "{line}{end}")?,
            }
        }
        Ok(())
    }
}

/// The characters of the longest line.
fn width_of(cells: &comfy_table::Table) -> usize {
    cells.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(width) = terminal::width() else { return self.write(f, &self.cells) };
        let (cells, lost) = self.fit(width);
        self.write(f, &cells)?;
        if lost.is_empty() {
            return Ok(());
        }
        write!(f, "\n(not shown: {}; --wide shows all columns)", lost.join(", "))
    }
}

impl Deref for Table {
    type Target = comfy_table::Table;

    fn deref(&self) -> &comfy_table::Table {
        &self.cells
    }
}

impl DerefMut for Table {
    fn deref_mut(&mut self) -> &mut comfy_table::Table {
        &mut self.cells
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["index", "Mops/s", "interval", "ratio", "interval"]);
        table = table.drops(&["interval", "ratio", "no such column"]);
        table.add_row(["edge-ext-lf", "12.3", "11.9 – 12.9", "1.00", "1.00 – 1.00"]);
        table.add_row(["a rather long name", "1.23", "1.19 – 1.29", "0.10", "0.09 – 0.11"]);
        table
    }

    #[test]
    fn columns_are_lost_in_their_order() {
        let whole = width_of(&table());
        for (width, expected, lines) in [
            (whole, &[][..], 4),
            (whole - 1, &["interval"], 4),
            (39, &["interval"], 4),
            (38, &["interval", "ratio"], 4),
            (20, &["interval", "ratio"], 5),
        ] {
            let (cells, lost) = table().fit(width);
            assert_eq!(lost, expected, "{width}\n{cells}");
            assert!(width_of(&cells) <= width, "{width}\n{cells}");
            assert!(cells.lines().count() >= lines, "{width}\n{cells}");
        }
    }

    /// Without its placement and its pages, one row would look like another.
    #[test]
    fn rows_stay_apart() {
        let with = |names, rows: [[&str; 4]; 3]| {
            let mut table = Table::new(&["index", "placement", "pages", "Mops/s"]);
            table = table.drops(&["pages", "placement", "index", "Mops/s"]).names(names);
            table.add_rows(rows);
            table.fit(20).1
        };
        let names = &["index", "placement", "pages"];
        let crossed = [
            ["skiplist", "pooled", "4k", "1.00"],
            ["skiplist", "pooled", "thp", "2.00"],
            ["skiplist", "shared", "4k", "3.00"],
        ];
        assert_eq!(with(names, crossed), ["index", "Mops/s"]);
        assert_eq!(with(&[], crossed), ["pages", "placement", "index"], "figures are no names");
        // The pages follow from the placement.
        let paired = [
            ["skiplist", "pooled", "thp", "1.00"],
            ["skiplist", "shared", "4k", "2.00"],
            ["another list", "shared", "4k", "3.00"],
        ];
        assert_eq!(with(names, paired), ["pages", "Mops/s"]);
    }

    #[test]
    fn the_style_of_a_row_is_that_of_its_line() {
        let mut table = table();
        let plain = table.to_string();
        table.style(1, terminal::BEST);
        let styled = table.to_string();
        let line = styled.lines().last().unwrap();
        assert!(line.starts_with("\u{1b}[1m| a rather") && line.ends_with("\u{1b}[0m"), "{line:?}");
        assert_eq!(anstream::adapter::strip_str(&styled).to_string(), plain);
    }
}
