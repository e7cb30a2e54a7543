//! The page: answers, findings and pictures.

use super::super::render::{self, NO_FINDINGS, Told};
use super::super::report::Report;
use super::Pictures;
use crate::page::{Page, capital};
use crate::svg::{NOTHING, Picture};
use crate::table::Table;

/// The page of a report.
pub fn page(report: &Report, pictures: &Pictures) -> String {
    let mut page = Page::new(&format!("Memory of {}", render::subject(report)));
    page.paragraph(&render::heading(report));
    findings(&mut page, report);
    if pictures.all().is_empty() {
        page.paragraph(NOTHING);
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
    page.finish()
}

fn findings(page: &mut Page, report: &Report) {
    page.element("h2", "Findings");
    let (told, left) = render::told(report);
    if left.is_none() && !told.iter().any(|finding| finding.pays) {
        page.paragraph(NO_FINDINGS);
    }
    for told in told {
        finding(page, &told);
    }
    if let Some(left) = left {
        page.paragraph(&left);
    }
}

fn finding(page: &mut Page, told: &Told<'_>) {
    let (class, remedy) =
        if told.pays { ("finding", "Remedy") } else { ("other", "The remedy would not pay here") };
    page.raw(&format!("<section class=\"{class}\">\n"));
    page.element("h3", &format!("{} ({})", told.id, told.kind));
    page.paragraph(&format!("{}.", capital(&told.evidence)));
    page.labelled(remedy, told.remedy);
    if let Some(gain) = &told.gain {
        page.labelled("Gain", gain);
    }
    page.raw("</section>\n");
}

fn answer(page: &mut Page, question: &str, table: &Table, pictures: &[&Picture]) {
    page.element("h2", question);
    page.table(table);
    for picture in pictures {
        page.figure(picture);
    }
}
