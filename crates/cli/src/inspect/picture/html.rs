//! The page: answers, findings and pictures in one file that needs nothing else.

use super::super::render::{self, NO_FINDINGS, Told};
use super::super::report::Report;
use super::Pictures;
use crate::svg::{NOTHING, Picture, STYLE, escape};
use comfy_table::{Row, Table};
use std::fmt::Write;

const PAGE_STYLE: &str = include_str!("page.css");

/// The page of a report.
pub fn page(report: &Report, pictures: &Pictures) -> String {
    let subject = escape(&render::subject(report));
    let mut page = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <meta name=\"color-scheme\" content=\"light dark\"/>\n\
         <title>Memory of {subject}</title>\n<style>{PAGE_STYLE}{STYLE}</style>\n</head>\n<body>\n\
         <h1>Memory of {subject}</h1>\n<p>{}</p>\n",
        escape(&render::heading(report))
    );
    findings(&mut page, report);
    if pictures.all().is_empty() {
        let _ = writeln!(page, "<p>{NOTHING}</p>");
    }
    let none = Vec::new();
    let sets_and_pages = pictures.sets.iter().chain(&pictures.pages).collect();
    let shown = [none.clone(), pictures.lines.iter().collect(), sets_and_pages, none];
    for ((question, table), pictures) in render::answers(report).iter().zip(shown) {
        answer(&mut page, question, table, &pictures);
    }
    if let Some((what, table)) = render::fixes(report) {
        answer(&mut page, &what, &table, &[]);
    }
    page.push_str("</body>\n</html>\n");
    page
}

fn findings(page: &mut String, report: &Report) {
    page.push_str("<h2>Findings</h2>\n");
    let (told, left) = render::told(report);
    if left.is_none() && !told.iter().any(|finding| finding.pays) {
        let _ = writeln!(page, "<p>{NO_FINDINGS}</p>");
    }
    for told in told {
        finding(page, &told);
    }
    if let Some(left) = left {
        let _ = writeln!(page, "<p>{}</p>", escape(&left));
    }
}

fn finding(page: &mut String, told: &Told<'_>) {
    let (class, remedy) =
        if told.pays { ("finding", "Remedy") } else { ("other", "The remedy would not pay here") };
    let _ = write!(
        page,
        "<section class=\"{class}\">\n<h3>{} ({})</h3>\n<p>{}.</p>\n<p><b>{remedy}:</b> {}</p>\n",
        escape(told.id),
        escape(&told.kind),
        capital(&escape(&told.evidence)),
        escape(told.remedy)
    );
    if let Some(gain) = &told.gain {
        let _ = writeln!(page, "<p><b>Gain:</b> {}</p>", escape(gain));
    }
    page.push_str("</section>\n");
}

/// The text as the beginning of a sentence.
fn capital(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

fn answer(page: &mut String, question: &str, table: &Table, pictures: &[&Picture]) {
    let _ = writeln!(page, "<h2>{}</h2>\n<div class=\"wide\"><table>", escape(question));
    if let Some(header) = table.header() {
        cells(page, header, "th");
    }
    for row in table.row_iter() {
        cells(page, row, "td");
    }
    page.push_str("</table></div>\n");
    for picture in pictures {
        let _ = write!(
            page,
            "<figure>\n<figcaption>{}.</figcaption>\n{}</figure>\n",
            escape(&picture.title),
            picture.inline()
        );
    }
}

fn cells(page: &mut String, row: &Row, tag: &str) {
    page.push_str("<tr>");
    for cell in row.cell_iter() {
        // Figures stay with their unit.
        let text = escape(&cell.content()).replace(" %", "\u{a0}%");
        let _ = write!(page, "<{tag}>{text}</{tag}>");
    }
    page.push_str("</tr>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_tables_is_no_markup() {
        let mut table = crate::output::table(&["<kind>", "share"]);
        table.add_row(["a & b", "5.0 %"]);
        let mut page = String::new();
        answer(&mut page, "1 < 2?", &table, &[]);
        let rows = "<tr><th>&lt;kind&gt;</th><th>share</th></tr>\n<tr><td>a &amp; b</td><td>5.0\u{a0}%</td>";
        assert!(page.contains("<h2>1 &lt; 2?</h2>") && page.contains(rows), "{page}");
        assert_eq!((capital("they lie"), capital("")), ("They lie".into(), String::new()));
    }
}
