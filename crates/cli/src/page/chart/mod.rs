//! Charts that fit any width: places across are shares of it, and text keeps its size.
//!
//! Each contender of a page has a number, which stands for its colour, its sign and its dashes.
//! Names are written beside bars and at the ends of lines, so no reader needs the colours.

mod bars;
mod dots;
mod lines;

pub use bars::{Bar, Bars};
pub use dots::Dots;
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
    sign_at(svg, number, &percent(x), y);
}

/// The sign of a contender, at a length from the left and a height in pixels.
fn sign_at(svg: &mut String, number: usize, x: &str, y: f64) {
    // Contenders of one colour have different signs.
    let (shape, class) = (SIGNS[(number + number / COLOURS) % SIGNS.len()], classes(number));
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

/// The names of contenders with samples of their lines.
fn legend<'a>(
    content: &mut String,
    class: &str,
    contenders: impl Iterator<Item = (&'a str, usize)>,
) {
    let _ = write!(content, "<div class=\"{class}\">");
    for (name, number) in contenders {
        let class = classes(number);
        let mut sample = String::new();
        let _ =
            write!(sample, "<line class=\"stroke {class}\" x1=\"0\" y1=\"7\" x2=\"28\" y2=\"7\"/>");
        sign(&mut sample, number, 0.5, 7.0);
        let name = escape(name);
        let _ = write!(
            content,
            "<span class=\"key\"><svg width=\"28\" height=\"14\">{sample}</svg>{name}</span> "
        );
    }
    content.push_str("</div>\n");
}

/// The width of a letter.
const LETTER: f64 = 6.6;

/// The labels that stand at an axis of at least this width in pixels without touching. Their
/// places, from 0 to 1, ascend.
fn apart(labels: &[(f64, String)], width: f64) -> Vec<&(f64, String)> {
    let half = |label: &(f64, String)| label.1.chars().count() as f64 * LETTER / 2.0 + 3.0;
    let mut shown: Vec<&(f64, String)> = Vec::new();
    for label in labels {
        let touches = |last: &&(f64, String)| (label.0 - last.0) * width < half(last) + half(label);
        if !shown.last().is_some_and(touches) {
            shown.push(label);
        }
    }
    shown
}

/// A figure of a page with this title and a sentence about what it shows.
fn figure(title: &str, about: &str, class: &str, content: &str) -> String {
    let (title, about) = (escape(title), escape(about));
    format!(
        "<figure class=\"chart\">\n<figcaption>{title}</figcaption>\n<div class=\"{class}\" \
         role=\"img\" aria-label=\"{about}\">\n{content}</div>\n</figure>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_touch() {
        let labels = |texts: &[&str]| -> Vec<(f64, String)> {
            let last = (texts.len() - 1).max(1) as f64;
            texts.iter().enumerate().map(|(at, text)| (at as f64 / last, (*text).into())).collect()
        };
        let shown = |texts: &[&str]| -> Vec<String> {
            apart(&labels(texts), 200.0).into_iter().map(|(_, text)| text.clone()).collect()
        };
        assert_eq!(shown(&["1", "2", "4"]), ["1", "2", "4"]);
        assert_eq!(shown(&["1000"; 9]), ["1000"; 5]);
        assert_eq!(shown(&["one"]), ["one"]);
        assert_eq!(shown(&["a label that is as long as its axis"; 2]).len(), 1);
    }

    /// Within the number of contenders that the command has, no two look the same.
    #[test]
    fn contenders_differ() {
        let look = |number| {
            let mut svg = classes(number);
            sign(&mut svg, number, 0.0, 0.0);
            svg
        };
        let looks: std::collections::BTreeSet<String> = (0..96).map(look).collect();
        assert_eq!(looks.len(), 96);
    }
}
