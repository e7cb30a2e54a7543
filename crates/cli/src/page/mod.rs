//! Pages: one HTML file that needs no other file, no network and no script.
//!
//! A page is also well-formed XML, so that tests can read it strictly. Its colours follow the
//! reader's scheme. The only script offers the data of the page as a download.
//!
//! | module | holds |
//! |---|---|
//! | `chart` | charts of bars, of lines and of dots, which fit any width |
//! | `scale` | the scales of their axes |
//! | `origin` | when, by which command and by which build a page was made |

pub mod chart;
pub mod origin;
pub mod scale;

use crate::flags::error::Error;
use crate::svg::{Picture, STYLE as PICTURES, escape};
use comfy_table::{Row, Table};
use serde::Serialize;
use std::fmt::{Display, Write};

const STYLE: &str = include_str!("page.css");
/// The script that shows the buttons, and offers the data as files.
const DOWNLOAD: &str = include_str!("download.js");

/// A page in the making.
pub struct Page {
    title: String,
    body: String,
    data: String,
    /// The identifiers and texts of its sections.
    sections: Vec<(String, String)>,
    /// The place of the links to them in the body, if it has these.
    contents: Option<usize>,
}

/// A file that the reader can save from a page.
struct Download<'a> {
    /// The identifier of the data in the page.
    of: &'a str,
    /// The form of the file: `json`, `ndjson`, or `csv`, which is made of the samples in the JSON.
    form: &'a str,
    name: &'a str,
    text: &'a str,
}

/// The identifier of the embedded data.
const DATA: &str = "data";

impl Page {
    /// A page with this title, which is also its first heading.
    pub fn new(title: &str) -> Self {
        let [body, data] = [String::new(), String::new()];
        let mut page =
            Self { title: title.into(), body, data, sections: Vec::new(), contents: None };
        page.element("h1", title);
        page
    }

    /// Adds markup as it is.
    pub fn raw(&mut self, markup: &str) {
        self.body.push_str(markup);
    }

    /// Adds an element with this text.
    pub fn element(&mut self, tag: &str, text: &str) {
        let _ = writeln!(self.body, "<{tag}>{}</{tag}>", marked(text));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.element("p", text);
    }

    /// Adds a paragraph that begins with a label.
    pub fn labelled(&mut self, label: &str, text: &str) {
        let (label, text) = (escape(label), marked(text));
        let _ = writeln!(self.body, "<p><b>{label}:</b> {text}</p>");
    }

    /// Adds a heading of this level that links can name. One of level 2 begins a section.
    pub fn heading(&mut self, level: usize, id: &str, text: &str) {
        if level == 2 {
            self.sections.push((id.into(), text.into()));
        }
        let (id, text) = (escape(id), escape(text));
        let _ = writeln!(self.body, "<h{level} id=\"{id}\">{text}</h{level}>");
    }

    /// Adds names with what they stand for, as it is: a command may contain backticks.
    pub fn facts(&mut self, facts: &[(&str, String)]) {
        self.raw("<dl class=\"facts\">\n");
        for (name, text) in facts {
            let (name, text) = (escape(name), escape(text));
            let _ = writeln!(self.body, "<div><dt>{name}</dt><dd>{text}</dd></div>");
        }
        self.raw("</dl>\n");
    }

    /// Adds links to all sections of the page here, also to those that follow.
    pub fn contents(&mut self) {
        self.contents = Some(self.body.len());
    }

    /// Adds a list.
    pub fn list<T: AsRef<str>>(&mut self, items: impl IntoIterator<Item = T>) {
        self.raw("<ul>\n");
        for item in items {
            self.element("li", item.as_ref());
        }
        self.raw("</ul>\n");
    }

    /// Adds a table.
    pub fn table(&mut self, table: &Table) {
        self.titled_table("", table);
    }

    /// Adds a table with a title, unless that is empty.
    pub fn titled_table(&mut self, title: &str, table: &Table) {
        self.raw("<div class=\"wide\" tabindex=\"0\"><table>\n");
        if !title.is_empty() {
            self.element("caption", title);
        }
        let columns = table.header().map_or(0, |header| header.cell_iter().count());
        let mut figures = vec![true; columns];
        for row in table.row_iter() {
            for (column, cell) in figures.iter_mut().zip(row.cell_iter()) {
                *column &= is_figure(&cell.content());
            }
        }
        if let Some(header) = table.header() {
            self.raw("<thead>");
            self.cells(header, "th", &figures);
            self.raw("</thead>\n");
        }
        self.raw("<tbody>\n");
        for row in table.row_iter() {
            self.cells(row, "td", &figures);
        }
        self.raw("</tbody>\n</table></div>\n");
    }

    /// Adds a row. Columns of figures are aligned to the right.
    fn cells(&mut self, row: &Row, tag: &str, figures: &[bool]) {
        self.raw("<tr>");
        for (cell, is_figure) in row.cell_iter().zip(figures) {
            let text = cell.content();
            let class = if *is_figure { " class=\"n\"" } else { "" };
            // Figures stay with their unit.
            let text = escape(&text).replace(" %", "\u{a0}%").replace(" thread", "\u{a0}thread");
            let _ = write!(self.body, "<{tag}{class}>{text}</{tag}>");
        }
        self.raw("</tr>\n");
    }

    /// Adds a picture under its title.
    pub fn figure(&mut self, picture: &Picture) {
        let _ = write!(
            self.body,
            "<figure>\n<figcaption>{}.</figcaption>\n<div class=\"wide\" tabindex=\"0\">{}</div></figure>\n",
            escape(&picture.title),
            picture.inline()
        );
    }

    /// Adds charts side by side, or below one another where there is no room.
    pub fn charts(&mut self, charts: &[String]) {
        let charts = charts.concat();
        let _ = writeln!(self.body, "<div class=\"charts\">\n{charts}</div>");
    }

    /// Embeds a value as JSON. The reader can save it in a file of this name with the ending
    /// `.json`, and its samples with the ending `.csv`.
    pub fn data(&mut self, name: &str, value: &impl Serialize) -> Result<(), Error> {
        let json = serde_json::to_string(value).map_err(|error| Error::Output(error.into()))?;
        self.embed("application/json", &json);
        self.download(&Download { of: DATA, form: "json", name, text: "Save the data (JSON)" });
        self.download(&Download { of: DATA, form: "csv", name, text: "Save the samples (CSV)" });
        Ok(())
    }

    /// Embeds values as lines of JSON. The reader can save them in a file of this name.
    pub fn lines<T: Serialize>(&mut self, name: &str, values: &[T]) -> Result<(), Error> {
        let mut lines = String::new();
        for value in values {
            lines.push_str(
                &serde_json::to_string(value).map_err(|error| Error::Output(error.into()))?,
            );
            lines.push('\n');
        }
        self.embed("application/x-ndjson", &lines);
        let text = "Save the data (lines of JSON)";
        self.download(&Download { of: DATA, form: "ndjson", name, text });
        Ok(())
    }

    fn embed(&mut self, kind: &str, text: &str) {
        let text = harmless(text);
        self.data = format!("<script type=\"{kind}\" id=\"{DATA}\">{text}</script>\n");
    }

    /// Adds a button, which is hidden until the script shows it.
    fn download(&mut self, file: &Download<'_>) {
        let Download { of, form, name, text } = file;
        let _ = writeln!(
            self.body,
            "<button type=\"button\" hidden=\"hidden\" data-of=\"{of}\" data-form=\"{form}\" \
             data-name=\"{}\">{}</button>",
            escape(name),
            escape(text)
        );
    }

    /// Writes the links to the sections, where they belong.
    fn link_sections(&mut self) {
        let Some(place) = self.contents else { return };
        let mut links = String::from("<nav aria-label=\"Contents\">\n<ul>\n");
        for (id, text) in &self.sections {
            let (id, text) = (escape(id), escape(text));
            let _ = writeln!(links, "<li><a href=\"#{id}\">{text}</a></li>");
        }
        links.push_str("</ul>\n</nav>\n");
        self.body.insert_str(place, &links);
    }

    /// The finished page.
    pub fn finish(mut self) -> String {
        self.link_sections();
        let title = escape(&self.title);
        let script = if self.data.is_empty() {
            String::new()
        } else {
            format!("{}<script>\n{DOWNLOAD}</script>\n", self.data)
        };
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"color-scheme\" content=\"light dark\"/>\n\
             <title>{title}</title>\n<style>\n{STYLE}{PICTURES}</style>\n</head>\n<body>\n\
             <main>\n{}</main>\n{script}</body>\n</html>\n",
            self.body
        )
    }
}

/// Text as markup, with code between backticks.
pub fn marked(text: &str) -> String {
    let parts: Vec<String> = text.split('`').map(escape).collect();
    // An odd number of parts has pairs of backticks between them.
    if parts.len().is_multiple_of(2) {
        return escape(text);
    }
    let code = |(at, part): (usize, &String)| {
        if at % 2 == 1 { format!("<code>{part}</code>") } else { part.clone() }
    };
    parts.iter().enumerate().map(code).collect()
}

/// Whether a cell holds a figure, or stands for a missing one. More words than a unit make a
/// sentence, though it begins with a figure.
fn is_figure(text: &str) -> bool {
    let text = text.trim_start_matches(['+', '−', '-']);
    let words = text.split(' ').filter(|word| word.starts_with(char::is_alphabetic)).count();
    text.starts_with(|c: char| c.is_ascii_digit()) && words < 2 || text == "–"
}

/// The text as the beginning of a sentence.
pub fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// JSON without characters of markup, which occur in its strings alone.
fn harmless(json: &str) -> String {
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// An identifier made of a text: its letters and digits, and hyphens for the rest.
pub fn id(text: impl Display) -> String {
    let text = text.to_string();
    text.chars().map(|c| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_tables_is_no_markup() {
        let mut table = crate::output::table(&["<kind>", "share"]);
        table.add_row(["a & b", "5.0 %"]);
        let mut page = Page::new("1 < 2?");
        page.table(&table);
        let page = page.finish();
        let rows = "<td>a &amp; b</td><td class=\"n\">5.0\u{a0}%</td>";
        assert!(page.contains("<h1>1 &lt; 2?</h1>") && page.contains(rows), "{page}");
        assert!(
            page.contains("<th>&lt;kind&gt;</th><th class=\"n\">share</th>")
                && !page.contains("<script"),
            "{page}"
        );
    }

    #[test]
    fn data_is_no_markup_and_stays_the_same() {
        let value = serde_json::json!({"text": "</script> & \u{1f600} \"<b>\""});
        let mut page = Page::new("data");
        page.data("data", &value).unwrap();
        let page = page.finish();
        let options =
            roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
        let read = roxmltree::Document::parse_with_options(&page, options).expect("well-formed");
        let data = read.descendants().find(|node| node.attribute("id") == Some(DATA)).unwrap();
        let back: serde_json::Value = serde_json::from_str(data.text().unwrap()).unwrap();
        assert_eq!(back, value);
        assert_eq!(page.matches("</script>").count(), 2);
    }

    #[test]
    fn links_lead_to_all_sections_and_facts_are_as_they_are() {
        let mut page = Page::new("a page");
        page.facts(&[("Command", "silvics bench --key-file '`a`'".into())]);
        page.contents();
        page.heading(2, "one", "One & two");
        page.heading(3, "part", "A part");
        let page = page.finish();
        assert!(page.contains("<dd>silvics bench --key-file '`a`'</dd>"), "{page}");
        let links =
            "<ul>\n<li><a href=\"#one\">One &amp; two</a></li>\n</ul>\n</nav>\n<h2 id=\"one\">";
        assert!(page.contains(links) && !page.contains("#part"), "{page}");
    }

    #[test]
    fn identifiers_are_plain() {
        assert_eq!((capital("they lie"), capital("")), ("They lie".into(), String::new()));
        assert_eq!(id("bst/1.3 <x>"), "bst-1.3--x-");
        assert_eq!(marked("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
        assert_eq!(marked("a `b"), "a `b");
        let figures = ["12.5", "−3 %", "–", "a", "", "-", "fast 3"].map(is_figure);
        assert_eq!(figures, [true, true, true, false, false, false, false]);
        let long = ["8k u64 keys of 16k", "1.4 (0.8 – 1.6)", "12 ns"].map(is_figure);
        assert_eq!(long, [false, true, true]);
    }
}
