//! The sets of each cache, by how many lines map to them.

use super::super::render::{Names, percent};
use super::super::report::Kind;
use crate::svg::{Canvas, LEFT, Picture, SHARE_COLOURS, SPAN};
use silvics_layout::views::SetMap;
use silvics_layout::{Census, Level, Machine, Sets};
use std::fmt::Write;

/// The least that labels are apart.
const LABEL: f64 = 12.0;

/// Draws the sets that the lines read of a kind's objects map to.
pub fn draw(kind: &Kind, names: &Names, census: &mut Census, machine: &Machine) -> Picture {
    let mut canvas = Canvas::new();
    let levels = [
        ("L1", Level::L1, kind.set_coverage_l1),
        ("L2", Level::L2, kind.set_coverage_l2),
        ("LLC", Level::Llc, kind.set_coverage),
    ];
    for (name, level, coverage) in levels {
        let sets = machine.sets(level);
        draw_level(&mut canvas, name, &sets, coverage, &census.set_map(&kind.name, &sets));
        canvas.y += 8.0;
    }
    canvas.scale(0, "no line", "the most lines");
    canvas.finish(format!(
        "Sets that the lines read of {} map to: {} of the L1, {} of the L2 and {} of the last level's \
         sets of {}, where as many lines anywhere would reach {} of the last level's",
        names.long(&kind.name),
        percent(kind.set_coverage_l1),
        percent(kind.set_coverage_l2),
        percent(kind.set_coverage),
        machine.name,
        percent(kind.set_coverage_expected)
    ))
}

fn draw_level(canvas: &mut Canvas, name: &str, sets: &Sets, coverage: f64, map: &SetMap) {
    let most = map.cells.iter().copied().fold(0.0, f64::max);
    let mut text = format!(
        "{name}: {} sets, {} of them reached; {most:.1} lines per set in the fullest cell",
        sets.sets,
        percent(coverage)
    );
    if map.slices > 1 {
        let _ = write!(text, "; {} slices", map.slices);
    }
    if map.group > 1 {
        let _ = write!(text, "; a cell is the mean of {} sets, {} apart", map.group, map.columns);
    }
    canvas.paragraph("t", 0.0, &text);
    canvas.y += 12.0;
    for column in (0..map.columns).step_by(map.columns.div_ceil(8)) {
        let x = LEFT + (column as f64 + 0.5) * SPAN / map.columns as f64;
        canvas.text("m mono soft", [x, canvas.y - 2.0], &format!("+{column}"));
    }
    draw_cells(canvas, sets, map, most);
}

/// The level of colour for a number, as a share of the largest. 0 is for none.
pub fn level(number: f64, most: f64) -> usize {
    if number > 0.0 { (number / most * SHARE_COLOURS as f64).ceil().max(1.0) as usize } else { 0 }
}

fn draw_cells(canvas: &mut Canvas, sets: &Sets, map: &SetMap, most: f64) {
    let rows = map.cells.len() / map.columns;
    let wide = SPAN / map.columns as f64;
    let high: f64 = if rows == 1 { 14.0 } else { 7.0 };
    let (mut y, mut labelled, mut places) =
        (canvas.y, f64::MIN, vec![Vec::new(); SHARE_COLOURS + 1]);
    let of_slice = sets.sets / map.slices;
    for (row, cells) in map.cells.chunks(map.columns).enumerate() {
        let first = row * map.group * map.columns;
        let begins = map.slices > 1 && first.is_multiple_of(of_slice);
        if begins && row > 0 {
            y += 2.0;
        }
        if y - labelled >= LABEL && (begins || map.slices == 1) {
            let label =
                if begins { format!("slice {}", first / of_slice) } else { format!("set {first}") };
            canvas.text("a mono soft", [LEFT - 8.0, y + high.min(9.0)], &label);
            labelled = y;
        }
        for (column, lines) in cells.iter().enumerate() {
            places[level(*lines, most)].push([LEFT + column as f64 * wide, y]);
        }
        y += high;
    }
    for (level, places) in places.iter().enumerate() {
        canvas.cells(format!("h{level}"), places, [wide - 0.5, high - 0.5]);
    }
    canvas.y = y;
}
