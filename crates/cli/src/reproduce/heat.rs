//! Heat maps of the clock: throughput by two limits, as a table, as JSON and as a picture.

use crate::flags::error::Error;
use crate::output::{self, File};
use crate::svg::{self, Canvas, Picture, SHARE_COLOURS};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// Throughput by the limits of retries.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HeatMap {
    pub title: String,
    pub keys: usize,
    pub threads: usize,
    /// The limits of sections that read, one for each column.
    pub read_limits: Vec<u32>,
    /// The limits of sections that modify, one for each row.
    pub modify_limits: Vec<u32>,
    /// One row for each limit of sections that modify.
    pub rows: Vec<Vec<Cell>>,
}

/// The result for one pair of limits.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// Operations per second, the median of some runs.
    pub throughput: f64,
    /// The aborts of 1000 operations.
    pub aborts: f64,
}

impl Cell {
    fn text(self) -> String {
        format!("{:.2} ({:.1})", self.throughput / 1e6, self.aborts)
    }
}

/// The meaning of the texts of cells.
const CELLS: &str = "M/s, and in brackets the aborts of 1000 operations";

impl HeatMap {
    /// The map as a table: a row for each limit of changes, a column for each of reads.
    pub fn table(&self) -> String {
        let columns = self.read_limits.iter().map(|limit| format!("reads {limit}"));
        let header: Vec<String> = std::iter::once("retries".into()).chain(columns).collect();
        let mut table = output::table(&header.iter().map(String::as_str).collect::<Vec<_>>());
        for (limit, row) in self.modify_limits.iter().zip(&self.rows) {
            let cells = row.iter().map(|cell| cell.text());
            table.add_row(std::iter::once(format!("changes {limit}")).chain(cells));
        }
        let mut text = String::new();
        let _ = writeln!(text, "{}: {CELLS}\n\n{table}", self.title);
        text
    }

    fn cells(&self) -> impl Iterator<Item = Cell> {
        self.rows.iter().flatten().copied()
    }

    /// The number of the colour of a throughput, between the least and the most of the map.
    fn colour(&self, throughput: f64) -> usize {
        let least = self.cells().map(|cell| cell.throughput).fold(f64::INFINITY, f64::min);
        let most = self.cells().map(|cell| cell.throughput).fold(0.0, f64::max);
        let share = (throughput - least) / (most - least).max(f64::MIN_POSITIVE);
        1 + (share * (SHARE_COLOURS - 1) as f64).round() as usize
    }

    /// The map as a picture.
    pub fn picture(&self) -> Picture {
        const WIDE: f64 = 76.0;
        const HIGH: f64 = 22.0;
        const LEFT: f64 = 96.0;
        let mut canvas = Canvas::new();
        let x = |column: usize| LEFT + column as f64 * WIDE;
        canvas.y += svg::TEXT;
        for (column, limit) in self.read_limits.iter().enumerate() {
            let middle = [x(column) + WIDE / 2.0, canvas.y - 4.0];
            canvas.text("m", middle, &format!("reads {limit}"));
        }
        for (limit, row) in self.modify_limits.iter().zip(&self.rows) {
            let base = canvas.y + HIGH / 2.0 + 4.0;
            canvas.text("a", [LEFT - 8.0, base], &format!("changes {limit}"));
            for (column, cell) in row.iter().enumerate() {
                let class = format!("h{}", self.colour(cell.throughput));
                canvas.rect(class, [x(column), canvas.y], [WIDE - 2.0, HIGH]);
                let middle = [x(column) + WIDE / 2.0, canvas.y + HIGH + 12.0];
                canvas.text("m", middle, &cell.text());
            }
            canvas.y += HIGH + svg::TEXT + 4.0;
        }
        canvas.paragraph("soft", 0.0, &format!("Retries of changes and of reads; below: {CELLS}."));
        canvas.finish(self.title.clone())
    }
}

/// Writes maps into a file, below one another.
pub fn write(maps: &[HeatMap], file: &File) -> Result<(), Error> {
    let pictures: Vec<Picture> = maps.iter().map(HeatMap::picture).collect();
    let heading = "Throughput by limits of retries";
    file.write(svg::file(heading, &pictures.iter().collect::<Vec<_>>()).as_bytes())
}
