//! Charts with a row for each category, in which each contender has a dot with its interval.
//!
//! Categories have no order and no distances, so no line joins their dots.

use super::super::scale::Scale;
use super::bars::axis;
use super::{classes, figure, legend, line, sign};
use crate::drive::stats::Interval;
use crate::svg::escape;
use std::fmt::Write;

/// A chart of dots.
pub struct Dots {
    pub title: String,
    /// The unit of the figures.
    pub unit: String,
    pub scale: Scale,
    /// The names and the numbers of the contenders.
    pub contenders: Vec<(String, usize)>,
    /// The categories, with a figure for each contender that has one.
    pub rows: Vec<(String, Vec<Option<Interval>>)>,
}

/// The height of a contender's dot in a row.
const LANE: f64 = 11.0;
/// The room above and below the dots of a row.
const ROOM: f64 = 6.0;

impl Dots {
    /// The chart as a figure. Empty if there are no rows.
    pub fn html(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let mut content = String::new();
        for (name, figures) in &self.rows {
            self.row(&mut content, name, figures);
        }
        axis(&mut content, &self.scale, &self.unit);
        let contenders = self.contenders.iter().map(|(name, number)| (&**name, *number));
        legend(&mut content, "legend always", contenders);
        figure(&self.title, &self.about(), "bars dots", &content)
    }

    fn row(&self, content: &mut String, name: &str, figures: &[Option<Interval>]) {
        let height = LANE * self.contenders.len() as f64 + 2.0 * ROOM;
        let _ = write!(
            content,
            "<span class=\"of\">{}</span><svg class=\"row\" height=\"{height}\">",
            escape(name)
        );
        for tick in self.scale.ticks() {
            let at = self.scale.at(*tick);
            line(content, "grid", [at, 0.0], [at, height]);
        }
        for (lane, ((_, number), figure)) in self.contenders.iter().zip(figures).enumerate() {
            let Some(Interval { median, low, high }) = figure else { continue };
            let y = ROOM + LANE * (lane as f64 + 0.5);
            let [low, high] = [low, high].map(|end| self.scale.at(*end));
            if low < high {
                line(content, &format!("stroke thin {}", classes(*number)), [low, y], [high, y]);
            }
            sign(content, *number, self.scale.at(*median), y);
        }
        content.push_str("</svg>\n");
    }

    fn about(&self) -> String {
        let names = |names: Vec<&str>| names.join(", ");
        format!(
            "{}, {}: {} for each of {}. A table has all figures.",
            self.title,
            self.unit,
            names(self.contenders.iter().map(|(name, _)| name.as_str()).collect()),
            names(self.rows.iter().map(|(name, _)| name.as_str()).collect())
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_contender_without_a_figure_has_no_dot() {
        let figure = |median| Some(Interval { median, low: median / 2.0, high: median });
        let chart = Dots {
            title: "By mix".into(),
            unit: "operations".into(),
            scale: Scale::linear([4.0].into_iter()),
            contenders: vec![("a<b".into(), 0), ("c".into(), 9)],
            rows: vec![
                ("100/0/0".into(), vec![figure(4.0), figure(2.0)]),
                ("0/50/50 (scans of 10)".into(), vec![None, figure(1.0)]),
            ],
        };
        let html = chart.html();
        roxmltree::Document::parse(&html).expect("well-formed");
        let rows: Vec<&str> = html.split("class=\"of\"").skip(1).collect();
        let dots = |row: &str| row.split("legend").next().unwrap().matches("class=\"sign").count();
        assert_eq!(rows.iter().map(|row| dots(row)).collect::<Vec<_>>(), [2, 1, 0]);
        assert!(rows[1].starts_with(">0/50/50 (scans of 10)<"), "the whole name");
        assert_eq!(html.matches("class=\"key\"").count(), 2);
        assert!(!html.contains("class=\"stroke s0 d0\" x1=\"5"), "no line joins dots");
        assert_eq!(Dots { rows: Vec::new(), ..chart }.html(), "");
    }
}
