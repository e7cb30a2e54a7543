//! Lines of memory with the objects in them.

use super::super::render::{Names, percent};
use super::super::report::Kind;
use super::legend::Legend;
use crate::flags::units::Bytes;
use crate::svg::{Canvas, LEFT, Picture, SPAN, address};
use silvics_layout::Paths;
use silvics_layout::views::{Pair, Window};
use std::cmp::Ordering;

/// The height of a pair, and the distance to the next.
const ROW: f64 = 14.0;
const BETWEEN: f64 = 3.0;
/// The height of the mark of an object in two lines.
const MARK: f64 = 3.0;
/// Half of the distance between objects.
const APART: f64 = 0.75;

/// Draws the memory around objects of a kind. `names` are the names of the census's kinds.
pub fn draw(
    kind: &Kind,
    window: &Window,
    paths: &Paths,
    names: &[&str],
    legend: &Legend,
) -> Picture {
    let mut canvas = Canvas::new();
    axis(&mut canvas, window.bytes);
    let (top, mut rows) = (canvas.y, Vec::<(usize, f64)>::new());
    for pair in &window.pairs {
        let gap = rows.last().map_or(0, |(last, _)| pair.address - last - window.bytes);
        if gap > 0 {
            let name = legend.names.short(&kind.name);
            let text = format!("… {} without any {name} …", Bytes(gap));
            canvas.text("m soft", [LEFT + SPAN / 2.0, canvas.y + ROW - 4.0], &text);
            canvas.y += ROW;
        }
        rows.push((pair.address, canvas.y));
        draw_pair(&mut canvas, pair, window.bytes, names, legend);
    }
    let middle = LEFT + SPAN / 2.0;
    canvas.line("edge", [middle, top - 3.0], [middle, canvas.y - BETWEEN]);
    let steps = window.last_steps(paths);
    for (parent, end) in &steps {
        draw_step(&mut canvas, &rows, window.bytes, *parent, *end);
    }
    canvas.y += 6.0;
    explain(&mut canvas, kind, window, names, legend);
    if !steps.is_empty() {
        let text = "leads from an object to a near one, at the dot, where lookups end; it may go on in \
                    the row above or below";
        canvas.entry(&["step"], text);
    }
    canvas.finish(title(kind, &legend.names, window.pairs.len()))
}

/// The horizontal position of a byte of a pair with this many bytes.
fn x(byte: usize, pair: usize) -> f64 {
    LEFT + byte as f64 * SPAN / pair as f64
}

/// Labels the bytes of a pair above the first one.
fn axis(canvas: &mut Canvas, pair: usize) {
    canvas.y = 32.0;
    canvas.text("a soft", [LEFT - 8.0, 12.0], "address");
    for (number, name) in ["even line", "odd line"].into_iter().enumerate() {
        let middle = LEFT + (number as f64 + 0.5) * SPAN / 2.0;
        canvas.text("m soft", [middle, 12.0], name);
    }
    for eighth in 0..=8 {
        let byte = eighth * pair / 8;
        let x = x(byte, pair);
        canvas.text("m mono soft", [x, 25.0], &byte.to_string());
        canvas.line("axis", [x, 28.0], [x, 31.0]);
    }
}

fn draw_pair(canvas: &mut Canvas, pair: &Pair, bytes: usize, names: &[&str], legend: &Legend) {
    let y = canvas.y;
    canvas.text("a mono", [LEFT - 8.0, y + ROW - 3.5], &address(pair.address));
    canvas.rect("none", [LEFT, y], [SPAN, ROW]);
    for part in &pair.parts {
        let colour = legend.colour(names[part.kind]);
        // A gap separates adjacent objects. An object that continues in another pair reaches the
        // border of its pair.
        let start = x(part.bytes.start, bytes) + if part.begins { APART } else { 0.0 };
        let end = x(part.bytes.end, bytes) - if part.ends { APART } else { 0.0 };
        canvas.rect(format!("k{colour}"), [start, y], [end - start, ROW]);
        for read in &part.searched {
            let (from, to) = (x(read.start, bytes).max(start), x(read.end, bytes).min(end));
            canvas.rect(format!("r{colour}"), [from, y], [to - from, ROW]);
        }
        if part.straddles {
            canvas.rect("straddle", [start, y + ROW - MARK], [end - start, MARK]);
        }
    }
    canvas.y += ROW + BETWEEN;
}

/// Draws a line from one object to another, along the ends of rows if they lie in different pairs.
fn draw_step(canvas: &mut Canvas, rows: &[(usize, f64)], pair: usize, parent: usize, end: usize) {
    let place = |object: usize| {
        let row = rows.iter().find(|(address, _)| *address == object / pair * pair)?;
        // The line joins their first words, which searches read if they read any.
        Some([x(object % pair, pair) + 12.0, row.1 + ROW / 2.0])
    };
    let (Some(from), Some(to)) = (place(parent), place(end)) else { return };
    let (left, right) = (LEFT - 4.0, LEFT + SPAN + 4.0);
    let parts = match (parent / pair).cmp(&(end / pair)) {
        Ordering::Equal => vec![(from, to)],
        Ordering::Less => vec![(from, [right, from[1]]), ([left, to[1]], to)],
        Ordering::Greater => vec![(from, [left, from[1]]), ([right, to[1]], to)],
    };
    for (from, to) in parts {
        canvas.line("halo", from, to);
        canvas.line("step", from, to);
    }
    canvas.rect("step", [to[0] - 3.0, to[1] - 3.0], [6.0, 6.0]);
}

fn explain(canvas: &mut Canvas, kind: &Kind, window: &Window, names: &[&str], legend: &Legend) {
    let parts = || window.pairs.iter().flat_map(|pair| &pair.parts);
    let shown: Vec<&str> = parts().map(|part| names[part.kind]).collect();
    legend.draw(canvas, &shown);
    if parts().any(|part| part.straddles) {
        let text = "objects underlined so have what a search reads in more than one line";
        canvas.entry(&["straddle"], text);
    } else if kind.straddle_share > 0.0 {
        let text = "Of the objects that have what a search reads in more than one line none is in this window.";
        canvas.paragraph("t soft", 0.0, text);
    }
    canvas.entry(&["none"], legend.whose.none());
    let text = format!(
        "A row is a pair of lines of {} bytes, fetched together by many processors; the dashed line is \
         the border between the two.",
        window.bytes / 2
    );
    canvas.paragraph("t soft", 0.0, &text);
}

fn title(kind: &Kind, names: &Names, pairs: usize) -> String {
    format!(
        "{} of memory around typical objects of kind {}: a visit reads {:.3} lines of one, {} of the {} have \
         what a search reads in more than one, and of the lines fetched beside them {} hold something to read",
        if pairs == 1 { "A pair of lines".into() } else { format!("{pairs} pairs of lines") },
        names.long(&kind.name),
        kind.lines_per_visit,
        percent(kind.straddle_share),
        kind.objects,
        percent(kind.neighbour_useful_share)
    )
}
