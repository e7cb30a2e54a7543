//! Charts that fit any width: places across are shares of it, and text keeps its size.
//!
//! Each contender of a page has a number, which stands for its colour, its sign and its dashes.
//! Names are written beside bars and at the ends of lines, so no reader needs the colours.

mod bars;
mod lines;

pub use bars::{Bar, Bars};
pub use lines::{Lines, Point, Series};

use crate::svg::escape;
use std::fmt::Write;

/// The number of colours.
const COLOURS: usize = 8;
/// The shapes of signs: circle, square, triangle, diamond.
const SIGNS: [&str; 4] = [
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M-3.5-3.5h7v7h-7z",
    "M0-4.5l4.5 8h-9z",
    "M0-5l5 5l-5 5l-5-5z",
];

/// The classes of a contender's lines.
fn classes(number: usize) -> String {
    format!("s{} d{}", number % COLOURS, number / COLOURS % 3)
}

/// The sign of a contender, at a share of the width and a height in pixels.
fn sign(svg: &mut String, number: usize, x: f64, y: f64) {
    let (shape, class) = (SIGNS[number % SIGNS.len()], classes(number));
    let x = percent(x);
    let _ = write!(
        svg,
        "<svg x=\"{x}\" y=\"{y:.1}\" class=\"sign {class}\"><path d=\"{shape}\"/></svg>"
    );
}

/// A share of the width.
fn percent(share: f64) -> String {
    format!("{:.2}%", 100.0 * share)
}

/// A line between two points: shares of the width, and heights in pixels.
fn line(svg: &mut String, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
    let (x1, x2) = (percent(x1), percent(x2));
    let _ = write!(
        svg,
        "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1:.1}\" x2=\"{x2}\" y2=\"{y2:.1}\"/>"
    );
}

/// Text with its anchor (`t` begins, `m` has its middle and `a` ends) at a share of the width.
fn text(svg: &mut String, class: &str, x: f64, y: f64, text: &str) {
    let (x, text) = (percent(x), escape(text));
    let _ = write!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y:.1}\">{text}</text>");
}

/// A figure of a page with this title and a sentence about what it shows.
fn figure(title: &str, about: &str, class: &str, content: &str) -> String {
    let (title, about) = (escape(title), escape(about));
    format!(
        "<figure class=\"chart\">\n<figcaption>{title}</figcaption>\n<div class=\"{class}\" \
         role=\"img\" aria-label=\"{about}\">\n{content}</div>\n</figure>\n"
    )
}
