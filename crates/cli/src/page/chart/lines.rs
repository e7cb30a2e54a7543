//! Charts with a line for each contender.

use super::super::scale::Scale;
use super::{LETTER, apart, classes, figure, legend, line, sign, sign_at, text};
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
    /// Whether a line leads to it from the point before: nothing is missing between them.
    pub joined: bool,
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

/// The least height of the field. Names beside it may need more.
const HEIGHT: f64 = 260.0;
/// The room above and below the field, for signs and halves of labels.
const ROOM: f64 = 8.0;
/// The distance of labels.
const LABEL: f64 = 14.0;
/// The room at the left and right of the field, as a share of the width.
const INSET: f64 = 0.03;
/// The least width of the field without names beside it, and of the field with these names.
const ALONE: f64 = 288.0;
const SHARED: f64 = 376.0;
/// The width of the lines that lead to names, and the room before these.
const LEAD: f64 = 16.0;
const NAMES: f64 = 32.0;
/// The most letters of names beside the field. Longer names have a legend alone.
const LETTERS: usize = 30;

fn across(x: f64) -> f64 {
    INSET + x * (1.0 - 2.0 * INSET)
}

impl Lines {
    /// The chart as a figure. Empty if there are no lines.
    pub fn html(&self) -> String {
        if self.series.iter().all(|series| series.points.is_empty()) {
            return String::new();
        }
        let total = self.height() + 2.0 * ROOM;
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
        let letters = self.series.iter().map(|series| series.name.chars().count()).max();
        let letters = letters.filter(|letters| *letters <= LETTERS);
        let wide = letters.map_or(0.0, |letters| letters as f64 * LETTER + NAMES + 4.0);
        let _ =
            write!(content, "</svg><svg class=\"ends\" width=\"{wide:.0}\" height=\"{total}\">");
        if letters.is_some() {
            self.names(&mut content);
        }
        content.push_str("</svg></div>\n<div class=\"plot\"><svg class=\"y\" height=\"18\"></svg>");
        content.push_str("<svg class=\"field\" height=\"18\">");
        let narrow = ALONE.min(SHARED - wide) * (1.0 - 2.0 * INSET);
        for (at, label) in apart(&self.ticks, narrow) {
            text(&mut content, "m soft", across(*at), 12.0, label);
        }
        let _ = writeln!(
            content,
            "</svg><svg class=\"ends\" width=\"{wide:.0}\" height=\"18\"></svg></div>\n\
             <div class=\"unit below\">{}</div>",
            escape(&self.across)
        );
        let class = if letters.is_some() { "legend" } else { "legend always" };
        let all = self.series.iter().map(|series| (&*series.name, series.number));
        legend(&mut content, class, all);
        figure(&self.title, &self.about(), "lines", &content)
    }

    /// The height of the field, which has room for all names.
    fn height(&self) -> f64 {
        HEIGHT.max(self.series.len() as f64 * LABEL)
    }

    /// The height of a figure, from the top.
    fn up(&self, figure: f64) -> f64 {
        ROOM + self.height() * (1.0 - self.scale.at(figure))
    }

    fn field(&self, svg: &mut String) {
        for tick in self.scale.ticks() {
            let y = self.up(*tick);
            line(svg, "grid", [0.0, y], [1.0, y]);
        }
        for (at, _) in &self.ticks {
            line(svg, "grid", [across(*at), ROOM], [across(*at), ROOM + self.height()]);
        }
        for series in &self.series {
            let class = format!("stroke {}", classes(series.number));
            for pair in series.points.windows(2).filter(|pair| pair[1].joined) {
                let [from, to] = [&pair[0], &pair[1]].map(|at| [across(at.x), self.up(at.y)]);
                line(svg, &class, from, to);
            }
            for Point { x, y, ends, signed, .. } in &series.points {
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
        for (y, (end, series)) in beside(&wanted, self.height()).into_iter().zip(ends) {
            let class = classes(series.number);
            let _ = write!(
                svg,
                "<line class=\"stroke thin {class}\" x1=\"0\" y1=\"{end:.1}\" x2=\"{LEAD}\" \
                 y2=\"{y:.1}\"/>"
            );
            sign_at(svg, series.number, &format!("{}", LEAD + 6.0), y);
            let _ = write!(
                svg,
                "<text x=\"{NAMES}\" y=\"{:.1}\">{}</text>",
                y + 4.0,
                escape(&series.name)
            );
        }
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
fn beside(wanted: &[f64], height: f64) -> Vec<f64> {
    let mut places = wanted.to_vec();
    for at in 1..places.len() {
        places[at] = places[at].max(places[at - 1] + LABEL);
    }
    // Those that are pushed over the end move back, and push others.
    let mut most = height + ROOM;
    for place in places.iter_mut().rev() {
        *place = place.min(most);
        most = *place - LABEL;
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::scale::plain;

    #[test]
    fn names_do_not_overlap() {
        let places = |wanted: &[f64]| beside(wanted, HEIGHT);
        assert_eq!(places(&[10.0, 11.0, 100.0]), [10.0, 24.0, 100.0]);
        let end = HEIGHT + ROOM;
        assert_eq!(places(&[end, end, end]), [end - 2.0 * LABEL, end - LABEL, end]);
        assert_eq!(places(&[]), [0.0; 0]);
    }

    /// A chart of series, each of which has the figures of these places.
    fn lines(series: &[&[Option<f64>]]) -> Lines {
        let points = |figures: &[Option<f64>]| {
            let places = figures.iter().enumerate();
            let of = |(at, figure): (usize, &Option<f64>)| {
                let joined = at > 0 && figures[at - 1].is_some();
                Some(Point { x: at as f64 / 9.0, y: (*figure)?, ends: None, signed: true, joined })
            };
            places.filter_map(of).collect()
        };
        let all = series.iter().enumerate();
        Lines {
            title: "Throughput".into(),
            unit: "operations".into(),
            across: "threads".into(),
            ticks: vec![(0.0, "1".into()), (1.0, "2".into())],
            scale: Scale::linear([9.0].into_iter()),
            write: plain,
            series: all
                .map(|(number, figures)| Series {
                    name: format!("n{number}"),
                    number,
                    points: points(figures),
                })
                .collect(),
        }
    }

    #[test]
    fn many_names_are_within_the_picture() {
        for count in [1, 19, 20, 40] {
            let chart = lines(&vec![&[Some(1.0), Some(2.0)][..]; count]).html();
            let chart = roxmltree::Document::parse(&chart).expect("well-formed");
            let field = chart.descendants().find(|node| node.attribute("class") == Some("ends"));
            let field = field.expect("names");
            let height: f64 = field.attribute("height").unwrap().parse().unwrap();
            let names: Vec<f64> = field
                .children()
                .filter(|node| node.has_tag_name("text"))
                .map(|node| node.attribute("y").unwrap().parse().unwrap())
                .collect();
            assert_eq!(names.len(), count);
            let within = |y: &f64| *y >= LABEL - 4.0 && *y <= height - 2.0;
            assert!(names.iter().all(within), "{count}: {names:?} of {height}");
            let ends = |two: &[f64]| two[1] - two[0] >= LABEL - 0.11;
            assert!(names.windows(2).all(ends), "{names:?}");
        }
    }

    #[test]
    fn no_line_leads_over_a_gap() {
        let strokes = |figures: &[Option<f64>]| {
            let chart = lines(&[figures]).html();
            let field = chart.split("class=\"field\"").nth(1).expect("a field");
            field.matches("class=\"stroke s0 d0\"").count()
        };
        assert_eq!(strokes(&[Some(1.0), Some(2.0), Some(3.0)]), 2);
        assert_eq!(strokes(&[Some(1.0), None, Some(3.0), Some(4.0)]), 1);
        assert_eq!(strokes(&[Some(1.0), None, Some(3.0)]), 0);
    }
}
