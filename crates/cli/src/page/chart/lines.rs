//! Charts with a line for each contender.

use super::super::scale::Scale;
use super::{classes, figure, line, sign, text};
use crate::svg::escape;
use std::fmt::Write;

/// A point of a line.
pub struct Point {
    /// Its place across, from 0 to 1.
    pub x: f64,
    pub y: f64,
    /// The interval of `y`, if it has one.
    pub ends: Option<[f64; 2]>,
    /// Whether it has the sign of its contender.
    pub signed: bool,
}

/// The line of a contender.
pub struct Series {
    pub name: String,
    /// The number of the contender.
    pub number: usize,
    pub points: Vec<Point>,
}

/// A chart of lines.
pub struct Lines {
    pub title: String,
    /// The unit of the figures up the side.
    pub unit: String,
    /// The meaning of the places across.
    pub across: String,
    /// The places that are written across, with their texts.
    pub ticks: Vec<(f64, String)>,
    pub scale: Scale,
    /// The form of the figures up the side.
    pub write: fn(f64) -> String,
    pub series: Vec<Series>,
}

/// The height of the field.
const HEIGHT: f64 = 260.0;
/// The room above and below the field, for signs and halves of labels.
const ROOM: f64 = 8.0;
/// The distance of labels.
const LABEL: f64 = 14.0;
/// The room at the left and right of the field, as a share of the width.
const INSET: f64 = 0.03;
/// The width of a letter.
const LETTER: f64 = 6.6;

fn across(x: f64) -> f64 {
    INSET + x * (1.0 - 2.0 * INSET)
}

impl Lines {
    /// The chart as a figure. Empty if there are no lines.
    pub fn html(&self) -> String {
        if self.series.iter().all(|series| series.points.is_empty()) {
            return String::new();
        }
        let total = HEIGHT + 2.0 * ROOM;
        let mut content = format!("<div class=\"unit\">{}</div>\n", escape(&self.unit));
        let _ = write!(content, "<div class=\"plot\"><svg class=\"y\" height=\"{total}\">");
        for tick in self.scale.ticks() {
            let y = self.up(*tick) + 4.0;
            let _ = write!(
                content,
                "<text class=\"a soft\" x=\"46\" y=\"{y:.1}\">{}</text>",
                escape(&(self.write)(*tick))
            );
        }
        let _ = write!(content, "</svg><svg class=\"field\" height=\"{total}\">");
        self.field(&mut content);
        let wide = self.series.iter().map(|series| series.name.chars().count()).max().unwrap_or(0);
        let wide = wide as f64 * LETTER + 24.0;
        let _ =
            write!(content, "</svg><svg class=\"ends\" width=\"{wide:.0}\" height=\"{total}\">");
        self.names(&mut content);
        content.push_str("</svg></div>\n<div class=\"plot\"><svg class=\"y\" height=\"18\"></svg>");
        content.push_str("<svg class=\"field\" height=\"18\">");
        for (at, label) in &self.ticks {
            text(&mut content, "m soft", across(*at), 12.0, label);
        }
        let _ = writeln!(
            content,
            "</svg><svg class=\"ends\" width=\"{wide:.0}\" height=\"18\"></svg></div>\n\
             <div class=\"unit below\">{}</div>",
            escape(&self.across)
        );
        self.legend(&mut content);
        figure(&self.title, &self.about(), "lines", &content)
    }

    /// The height of a figure, from the top.
    fn up(&self, figure: f64) -> f64 {
        ROOM + HEIGHT * (1.0 - self.scale.at(figure))
    }

    fn field(&self, svg: &mut String) {
        for tick in self.scale.ticks() {
            let y = self.up(*tick);
            line(svg, "grid", [0.0, y], [1.0, y]);
        }
        for (at, _) in &self.ticks {
            line(svg, "grid", [across(*at), ROOM], [across(*at), ROOM + HEIGHT]);
        }
        for series in &self.series {
            let class = format!("stroke {}", classes(series.number));
            for pair in series.points.windows(2) {
                let [from, to] = [&pair[0], &pair[1]].map(|at| [across(at.x), self.up(at.y)]);
                line(svg, &class, from, to);
            }
            for Point { x, y, ends, signed } in &series.points {
                let x = across(*x);
                if let Some([low, high]) = ends {
                    line(svg, &format!("{class} thin"), [x, self.up(*low)], [x, self.up(*high)]);
                }
                if *signed {
                    sign(svg, series.number, x, self.up(*y));
                }
            }
        }
    }

    /// Writes the names beside the ends of the lines, one below the other.
    fn names(&self, svg: &mut String) {
        let mut ends: Vec<(f64, &Series)> = self
            .series
            .iter()
            .filter_map(|series| Some((self.up(series.points.last()?.y), series)))
            .collect();
        ends.sort_by(|a, b| f64::total_cmp(&a.0, &b.0));
        let wanted: Vec<f64> = ends.iter().map(|(y, _)| *y).collect();
        for (y, (end, series)) in apart(&wanted).into_iter().zip(ends) {
            let class = classes(series.number);
            let _ = write!(
                svg,
                "<line class=\"stroke thin {class}\" x1=\"0\" y1=\"{end:.1}\" x2=\"10\" \
                 y2=\"{y:.1}\"/><text x=\"14\" y=\"{:.1}\">{}</text>",
                y + 4.0,
                escape(&series.name)
            );
        }
    }

    /// The names with samples of their lines, for readers whose screens have no room beside them.
    fn legend(&self, content: &mut String) {
        content.push_str("<div class=\"legend\">");
        for series in &self.series {
            let class = classes(series.number);
            let mut sample = String::new();
            let _ = write!(
                sample,
                "<line class=\"stroke {class}\" x1=\"0\" y1=\"7\" x2=\"28\" y2=\"7\"/>"
            );
            sign(&mut sample, series.number, 0.5, 7.0);
            let name = escape(&series.name);
            let _ = write!(
                content,
                "<span><svg width=\"28\" height=\"14\">{sample}</svg>{name}</span> "
            );
        }
        content.push_str("</div>\n");
    }

    fn about(&self) -> String {
        let names: Vec<&str> = self.series.iter().map(|series| series.name.as_str()).collect();
        format!(
            "{}: {} by {}, of {}. A table has all figures.",
            self.title,
            self.unit,
            self.across,
            names.join(", ")
        )
    }
}

/// Places near those that are wanted, which ascend, with room for a label between them.
fn apart(wanted: &[f64]) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for at in 1..places.len() {
        places[at] = places[at].max(places[at - 1] + LABEL);
    }
    // Those that are pushed over the end move back, and push others.
    let mut most = HEIGHT + ROOM;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LABEL;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_overlap() {
        assert_eq!(apart(&[10.0, 11.0, 100.0]), [10.0, 24.0, 100.0]);
        let end = HEIGHT + ROOM;
        assert_eq!(apart(&[end, end, end]), [end - 2.0 * LABEL, end - LABEL, end]);
        assert_eq!(apart(&[]), [0.0; 0]);
    }
}
