//! The pages where objects lie.

use super::super::render::percent;
use super::Whose;
use super::sets::level;
use crate::flags::units::Bytes;
use crate::svg::{Canvas, LEFT, Picture, SHARE_COLOURS, SPAN, address};
use silvics_layout::views::PageMap;
use silvics_pool::{HUGE_PAGE, SMALL_PAGE};

/// The height of a row, and of the mark of a gap.
const ROW: f64 = 7.0;
const GAP: f64 = 16.0;
/// The least that labels are apart.
const LABEL: f64 = 12.0;
/// The region of a huge page.
const REGION: usize = HUGE_PAGE;

/// Draws a map. `None` if it is empty.
pub fn draw(map: &PageMap, whose: Whose) -> Option<Picture> {
    let first = map.rows.first()?;
    let mut canvas = Canvas::new();
    let row_bytes = map.unit * map.columns;
    canvas.paragraph("t soft", 0.0, &explained(map, whose));
    canvas.y += 6.0;
    let wide = SPAN / map.columns as f64;
    let (mut expected, mut labelled) = (first.address, f64::MIN);
    let (mut beside, mut freed, mut borders) = (Vec::new(), Vec::new(), Vec::new());
    let mut places = vec![Vec::new(); SHARE_COLOURS + 1];
    for row in &map.rows {
        if row.address > expected {
            let text = format!("… {} without objects …", Bytes(row.address - expected));
            canvas.text("m soft", [LEFT + SPAN / 2.0, canvas.y + GAP - 5.0], &text);
            canvas.y += GAP;
            labelled = f64::MIN;
        }
        expected = row.address.saturating_add(row_bytes);
        let y = canvas.y;
        if y - labelled >= LABEL {
            canvas.text("a mono soft", [LEFT - 8.0, y + ROW], &address(row.address));
            labelled = y;
        }
        canvas.rect("none", [LEFT, y], [SPAN, ROW]);
        for (column, cell) in row.cells.iter().enumerate() {
            let place = [LEFT + column as f64 * wide, y];
            if cell.of_kinds > 0 {
                let share = cell.of_kinds as f64 / map.unit as f64;
                places[level(share.min(1.0), 1.0)].push(place);
            } else if cell.beside > 0 {
                beside.push(place);
            } else if cell.freed > 0 {
                freed.push(place);
            }
            // Cells are powers of two: a region begins with one, or is a part of one.
            if (row.address + column * map.unit).is_multiple_of(REGION) {
                borders.push(if row_bytes < REGION {
                    ([LEFT - 4.0, y], [LEFT + SPAN + 4.0, y])
                } else {
                    (place, [place[0], y + ROW - 0.5])
                });
            }
        }
        canvas.y += ROW;
    }
    let cell = [wide - 0.5, ROW - 0.5];
    for (level, places) in places.iter().enumerate() {
        canvas.cells(format!("h{level}"), places, cell);
    }
    canvas.cells("beside", &beside, cell);
    canvas.cells("freed", &freed, cell);
    for (from, to) in borders.into_iter().filter(|_| map.unit < REGION) {
        canvas.line("border", from, to);
    }
    canvas.y += 6.0;
    canvas.scale(1, "little", "all");
    if !beside.is_empty() {
        canvas.entry(&["beside"], "objects of the program around the index, and none of the index");
    }
    if !freed.is_empty() {
        canvas.entry(&["freed"], "only what the index has given back");
    }
    canvas.entry(&["none"], whose.none());
    Some(canvas.finish(title(map, whose)))
}

/// The meaning of cells and rows.
fn explained(map: &PageMap, whose: Whose) -> String {
    let cell = match map.unit / SMALL_PAGE {
        1 => "a page".into(),
        pages => format!("{pages} pages"),
    };
    format!(
        "A cell is {cell} of 4 KiB, coloured by the share of its bytes that {} take; a row is {}{}.",
        whose.objects(),
        Bytes(map.unit * map.columns),
        if map.unit < REGION { "; a line is where a region of 2 MiB begins" } else { "" }
    )
}

fn title(map: &PageMap, whose: Whose) -> String {
    let share = map.bytes as f64 / (map.pages * SMALL_PAGE).max(1) as f64;
    format!(
        "Pages with {}: they lie on {} pages of 4 KiB and take {} of the bytes there",
        whose.objects(),
        map.pages,
        percent(share)
    )
}
