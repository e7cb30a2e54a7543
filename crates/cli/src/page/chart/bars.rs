//! Charts with a row for each contender: a bar from zero, or a dot on a scale of ratios.

use super::super::scale::{Scale, plain};
use super::{apart, classes, figure, line, percent, sign, text};
use crate::drive::stats::Interval;
use crate::svg::escape;
use std::fmt::Write;

/// A row of a chart.
pub struct Bar {
    /// The group of the row, which is written above its first row.
    pub group: String,
    pub name: String,
    /// The number of the contender.
    pub number: usize,
    pub figure: Interval,
    /// The figure as it is written.
    pub text: String,
}

/// A chart of rows.
pub struct Bars {
    pub title: String,
    /// The unit of the figures.
    pub unit: String,
    /// Whether the figures are ratios, which are dots on a logarithmic scale, with a line at 1.
    pub ratios: bool,
    pub rows: Vec<Bar>,
}

/// The height of a row.
const HEIGHT: f64 = 22.0;
/// The least width of a row.
const NARROW: f64 = 220.0;

impl Bars {
    /// The chart as a figure. Empty if there are no rows.
    pub fn html(&self) -> String {
        let figures = self.rows.iter().flat_map(|row| [row.figure.low, row.figure.high]);
        let scale =
            if self.ratios { Scale::log(figures.chain([1.0])) } else { Scale::linear(figures) };
        let mut content = String::new();
        let mut group = "";
        for row in &self.rows {
            if row.group != group {
                group = &row.group;
                let _ = writeln!(content, "<b class=\"group\">{}</b>", escape(group));
            }
            self.row(&mut content, &scale, row);
        }
        axis(&mut content, &scale, &self.unit);
        if self.rows.is_empty() {
            return String::new();
        }
        figure(&self.title, &self.about(), "bars", &content)
    }

    fn row(&self, content: &mut String, scale: &Scale, row: &Bar) {
        let (name, value) = (escape(&row.name), escape(&row.text));
        let _ = write!(content, "<span class=\"of\">{name}</span><svg class=\"bar\">");
        for tick in scale.ticks() {
            let at = scale.at(*tick);
            line(content, "grid", [at, 0.0], [at, HEIGHT]);
        }
        if self.ratios {
            let at = scale.at(1.0);
            line(content, "one", [at, 0.0], [at, HEIGHT]);
        }
        let Interval { median, low, high } = row.figure;
        let (middle, class) = (HEIGHT / 2.0, classes(row.number));
        let [low, high] = [low, high].map(|end| scale.at(end));
        let whisker = if self.ratios { format!("stroke {class}") } else { "whisker".into() };
        if !self.ratios {
            let width = percent(scale.at(median));
            let _ = write!(
                content,
                "<rect class=\"fill {class}\" x=\"0\" y=\"4\" width=\"{width}\" height=\"{}\"/>",
                HEIGHT - 8.0
            );
        }
        if low < high {
            line(content, &whisker, [low, middle], [high, middle]);
            for end in [low, high] {
                line(content, &whisker, [end, middle - 4.0], [end, middle + 4.0]);
            }
        }
        if self.ratios {
            sign(content, row.number, scale.at(median), middle);
        }
        let _ = writeln!(content, "</svg><span class=\"is\">{value}</span>");
    }

    fn about(&self) -> String {
        let largest =
            self.rows.iter().max_by(|a, b| f64::total_cmp(&a.figure.median, &b.figure.median));
        let largest = largest.map_or_else(String::new, |row| {
            format!(" The largest is {} ({}).", row.name, row.text)
        });
        format!("{}, {}.{largest} A table has all figures.", self.title, self.unit)
    }
}

/// The axis below rows, whose first and last cells are beside it.
pub(super) fn axis(content: &mut String, scale: &Scale, unit: &str) {
    content.push_str("<span class=\"of\"></span><svg class=\"axis\">");
    let ticks: Vec<(f64, String)> =
        scale.ticks().iter().map(|tick| (scale.at(*tick), plain(*tick))).collect();
    for (at, label) in apart(&ticks, NARROW) {
        let class = match *at {
            at if at < 0.04 => "t soft",
            at if at > 0.96 => "a soft",
            _ => "m soft",
        };
        text(content, class, *at, 12.0, label);
    }
    let _ = writeln!(
        content,
        "</svg><span class=\"is\"></span>\n<span class=\"unit\">{}</span>",
        escape(unit)
    );
}
