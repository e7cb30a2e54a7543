//! Pictures of where objects lie: as SVG, or in a page with the answers and findings.
//!
//! | module | holds |
//! |---|---|
//! | `svg` | text of XML, and how pictures are put together |
//! | `legend` | kinds, with their colours |
//! | `lines`, `sets`, `pages` | the three pictures |
//! | `html` | the page |
//!
//! Figures in titles are those of the report; what the pictures themselves show is computed by
//! [`silvics_layout::views`].

mod html;
mod legend;
mod lines;
mod pages;
mod sets;
mod svg;
#[cfg(test)]
mod tests;

use super::examine::Examined;
use super::plan::Plan;
use super::render;
use super::report::Kind;
use crate::error::Error;
use legend::Legend;
use silvics_layout::{Census, Machine, NodeLayout, Paths};
use svg::Picture;

/// Writes the files that were asked for.
pub fn write(plan: &Plan, examined: &mut Examined) -> Result<(), Error> {
    if plan.svg.is_none() && plan.html.is_none() {
        return Ok(());
    }
    let Examined { report, census, paths, .. } = examined;
    let objects = plan.subject.chosen.variant.objects;
    let pictures = Pictures::of(census, paths, &report.kinds, objects, &plan.machine);
    if let Some(file) = &plan.svg {
        file.write(svg::file(&render::heading(report), &pictures.all()).as_bytes())?;
    }
    if let Some(file) = &plan.html {
        file.write(html::page(report, &pictures).as_bytes())?;
    }
    Ok(())
}

/// What is drawn.
#[derive(Default)]
pub struct Pictures {
    /// Of each kind that searches read, lines …
    lines: Vec<Picture>,
    /// … and sets.
    sets: Vec<Picture>,
    /// Of all.
    pages: Option<Picture>,
}

/// Kinds that have pictures of their own, at most: those of which searches read the most.
const KINDS: usize = 3;
/// Pairs of lines in a picture.
const PAIRS: usize = 32;

impl Pictures {
    /// Draws the objects of a census, whose kinds are described in the report, those of the index also by
    /// `objects`.
    pub fn of(
        census: &mut Census,
        paths: &Paths,
        kinds: &[Kind],
        objects: &'static [NodeLayout],
        machine: &Machine,
    ) -> Self {
        let of_index = |kind: &&Kind| objects.iter().any(|layout| layout.kind == kind.name);
        let hot = |kind: &Kind| kind.objects as f64 * kind.hot_bytes;
        let mut read: Vec<&Kind> =
            kinds.iter().filter(of_index).filter(|kind| hot(kind) > 0.0).collect();
        read.sort_by(|a, b| hot(b).total_cmp(&hot(a)));
        read.truncate(KINDS);
        let legend = Legend::new(kinds, objects);
        let mut pictures = Self::default();
        for kind in read {
            let window = census.window(&kind.name, machine.line, PAIRS);
            if window.pairs.is_empty() {
                continue;
            }
            let names: Vec<&str> = census.kinds().collect();
            pictures.lines.push(lines::draw(kind, &window, paths, &names, &legend));
            pictures.sets.push(sets::draw(kind, census, machine));
        }
        let names: Vec<&str> =
            kinds.iter().filter(of_index).map(|kind| kind.name.as_str()).collect();
        pictures.pages = pages::draw(&census.page_map(&names));
        pictures
    }

    /// All, in the order of the questions that they answer.
    fn all(&self) -> Vec<&Picture> {
        self.lines.iter().chain(&self.sets).chain(&self.pages).collect()
    }
}
