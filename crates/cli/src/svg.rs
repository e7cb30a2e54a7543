//! Elements of XML, and the assembly of pictures.
//!
//! XML is written without a library. The pictures are rectangles, paths and text, and their colours
//! come from a style sheet that follows the reader's colour scheme.

use std::fmt::{Display, Write};

/// The width of every picture. The height depends on the content.
pub const WIDTH: f64 = 576.0;
/// The left margin of the memory shown. Its width is 3.5 for each byte of two lines.
pub const LEFT: f64 = 104.0;
/// See [`LEFT`].
pub const SPAN: f64 = 448.0;
/// The distance from one line of text to the next.
pub const TEXT: f64 = 16.0;

/// The style sheet. Class `kN` colours objects of the Nth kind, `rN` the bytes of them that
/// searches read, and `hN` shares.
pub const STYLE: &str = include_str!("svg.css");
/// The number of colours for kinds. The last one is for all other kinds.
pub const KIND_COLOURS: usize = 8;
/// The number of colours of shares, of which the last is the strongest. 0 is for nothing.
pub const SHARE_COLOURS: usize = 8;

/// A picture.
pub struct Picture {
    /// The title: one sentence with the figures of the picture.
    pub title: String,
    /// The elements.
    body: String,
    height: f64,
}

/// A picture in the making.
pub struct Canvas {
    body: String,
    /// The vertical position of the next element.
    pub y: f64,
}

/// Text with the characters of markup replaced.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML cannot represent other control characters, nor these two.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c if c.is_control() && !matches!(c, '\n' | '\t') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Breaks text into lines of at most this many characters, unless a word is longer.
fn wrap(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { continue };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= most {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.into());
        }
    }
    lines
}

impl Canvas {
    /// An empty canvas.
    pub const fn new() -> Self {
        Self { body: String::new(), y: 0.0 }
    }

    /// A rectangle with its upper left corner at `x`, `y`.
    pub fn rect(&mut self, class: impl Display, [x, y]: [f64; 2], [width, height]: [f64; 2]) {
        let (body, class) = (&mut self.body, class);
        let _ = writeln!(
            body,
            r#"<rect class="{class}" x="{x}" y="{y}" width="{width}" height="{height}"/>"#
        );
    }

    /// Draws rectangles of one size and class at the given places.
    pub fn cells(&mut self, class: impl Display, places: &[[f64; 2]], [width, height]: [f64; 2]) {
        if places.is_empty() {
            return;
        }
        let _ = write!(self.body, r#"<path class="{class}" d=""#);
        for [x, y] in places {
            let _ = write!(self.body, "M{x} {y}h{width}v{height}h-{width}z");
        }
        self.body.push_str("\"/>\n");
    }

    /// A line.
    pub fn line(&mut self, class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) {
        let _ = writeln!(self.body, r#"<path class="{class}" d="M{x1} {y1}L{x2} {y2}"/>"#);
    }

    /// A line through points.
    pub fn lines(&mut self, class: &str, points: impl IntoIterator<Item = [f64; 2]>) {
        let _ = write!(self.body, r#"<path class="{class}" d=""#);
        for (at, [x, y]) in points.into_iter().enumerate() {
            let step = if at == 0 { 'M' } else { 'L' };
            let _ = write!(self.body, "{step}{x:.1} {y:.1}");
        }
        self.body.push_str("\"/>\n");
    }

    /// Text on the base line `y`. Classes: `t` begins, `m` has its middle and `a` ends at `x`.
    pub fn text(&mut self, class: &str, [x, y]: [f64; 2], text: &str) {
        let text = escape(text);
        let _ = writeln!(self.body, r#"<text class="{class}" x="{x}" y="{y}">{text}</text>"#);
    }

    /// A paragraph from the margin `x` on, whose lines follow each other.
    pub fn paragraph(&mut self, class: &str, x: f64, text: &str) {
        // The mean width of a character in this style.
        let wide = if class.contains("title") { 7.8 } else { 6.5 };
        for line in wrap(text, ((WIDTH - x) / wide) as usize) {
            self.y += TEXT;
            self.text(class, [x, self.y - 4.0], &line);
        }
    }

    /// Draws an entry of a legend: samples side by side, and their meaning.
    pub fn entry(&mut self, samples: &[&str], text: &str) {
        for (at, class) in samples.iter().enumerate() {
            self.rect(class, [at as f64 * 14.0 + 0.5, self.y + 2.5], [13.0, 11.0]);
        }
        self.paragraph("t", samples.len() as f64 * 14.0 + 6.0, text);
    }

    /// Draws the colours of shares from `first` on as a scale, with the meaning of its ends.
    pub fn scale(&mut self, first: usize, least: &str, most: &str) {
        self.y += TEXT;
        let x = |level: usize| LEFT + 64.0 + level as f64 * 28.0;
        for level in first..=SHARE_COLOURS {
            self.rect(format!("h{level}"), [x(level), self.y - 12.0], [28.0, 11.0]);
        }
        self.text("a", [x(first) - 6.0, self.y - 3.0], least);
        self.text("t", [x(SHARE_COLOURS + 1) + 6.0, self.y - 3.0], most);
    }

    /// The finished picture.
    pub fn finish(self, title: String) -> Picture {
        Picture { title, body: self.body, height: self.y + 4.0 }
    }
}

impl Picture {
    /// The picture as an element of a page.
    pub fn inline(&self) -> String {
        format!(
            "<svg class=\"picture\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {}\" \
             role=\"img\" aria-label=\"{}\">\n{}</svg>\n",
            self.height,
            escape(&self.title),
            self.body
        )
    }
}

/// A file with pictures below one another, with their titles.
pub fn file(heading: &str, pictures: &[&Picture]) -> String {
    const MARGIN: f64 = 16.0;
    let mut canvas = Canvas::new();
    canvas.paragraph("t", 0.0, heading);
    if pictures.is_empty() {
        canvas.paragraph("t", 0.0, NOTHING);
    }
    for picture in pictures {
        canvas.y += MARGIN;
        canvas.paragraph("title", 0.0, &format!("{}.", picture.title));
        canvas.y += MARGIN / 2.0;
        let _ = write!(
            canvas.body,
            "<g class=\"picture\" transform=\"translate(0 {})\">\n{}</g>\n",
            canvas.y, picture.body
        );
        canvas.y += picture.height;
    }
    let (width, height) = (WIDTH + 2.0 * MARGIN, canvas.y + 2.0 * MARGIN);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"-{MARGIN} -{MARGIN} {width} {height}\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"page\" x=\"-{MARGIN}\" y=\"-{MARGIN}\" width=\"{width}\" height=\"{height}\"/>\n\
         {}</svg>\n",
        escape(heading),
        canvas.body
    )
}

/// The text of a file without pictures.
pub const NOTHING: &str = "There are no objects to draw.";

/// An address as hexadecimal digits in groups of four.
pub fn address(address: usize) -> String {
    let digits = format!("{address:012x}");
    let groups: Vec<String> = digits
        .as_bytes()
        .rchunks(4)
        .rev()
        .map(|four| String::from_utf8_lossy(four).into())
        .collect();
    groups.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_and_wrapped() {
        assert_eq!(
            escape("a<b & \"c\">\u{1}\u{ffff}\n"),
            "a&lt;b &amp; &quot;c&quot;&gt;\u{fffd}\u{fffd}\n"
        );
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("überlang", 3), ["überlang"]);
        assert_eq!(address(0x7f12_3456_7880), "7f12 3456 7880");
        assert_eq!(address(0x1_0000_0000_0000), "1 0000 0000 0000");
    }
}
