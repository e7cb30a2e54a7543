//! Pictures of where objects lie: as SVG, or in a page with the answers and findings.
//!
//! | module | holds |
//! |---|---|
//! | `legend` | kinds, with their colours |
//! | `lines`, `sets`, `pages` | the three pictures |
//! | `html` | the page |
//! | `files` | the files that are requested |
//!
//! Figures in titles come from the report. [`silvics_layout::views`] computes the content of the
//! pictures.

pub mod files;
mod html;
mod legend;
mod lines;
mod pages;
mod sets;
#[cfg(test)]
mod tests;

use super::render;
use super::report::{Kind, Report};
use crate::flags::error::Error;
use crate::output::Outputs;
use crate::svg::{self, Picture};
use files::Files;
use legend::Legend;
use silvics_layout::{Census, Machine, NodeLayout, Paths};

/// Draws the objects of a census, which the report is about, and writes the requested files.
pub fn write(
    files: &Files,
    report: &Report,
    census: &mut Census,
    paths: &Paths,
    whose: Whose,
    machine: &Machine,
) -> Result<(), Error> {
    if files.svg.is_none() && files.html.is_none() {
        return Ok(());
    }
    let pictures = Pictures::of(report, census, paths, whose, machine);
    let mut outputs = Outputs::default();
    if let Some(file) = &files.svg {
        let picture = svg::file(&render::heading(report), &pictures.all());
        outputs.tried(file.write(picture.as_bytes()));
    }
    if let Some(file) = &files.html {
        outputs.tried(file.write(html::page(report, &pictures).as_bytes()));
    }
    outputs.finish()
}

/// The owner of the objects that are drawn.
#[derive(Clone, Copy)]
pub enum Whose {
    /// An index with these layouts. Other kinds belong to the program around it.
    Index(&'static [NodeLayout]),
    /// A program that was traced, which owns all kinds.
    Program,
}

impl Whose {
    /// Whether pictures are about objects of that kind.
    fn has(self, kind: &str) -> bool {
        match self {
            Self::Index(layouts) => layouts.iter().any(|layout| layout.kind == kind),
            Self::Program => true,
        }
    }

    /// The name of such objects.
    const fn objects(self) -> &'static str {
        match self {
            Self::Index(_) => "objects of the index",
            Self::Program => "objects",
        }
    }

    /// The meaning of memory without an object.
    const fn none(self) -> &'static str {
        match self {
            Self::Index(_) => {
                "no object of the index or the program around it: free, or somebody else's"
            }
            Self::Program => "no object of the trace: free, or somebody else's",
        }
    }
}

/// The pictures of a report.
#[derive(Default)]
pub struct Pictures {
    /// The lines of each kind that searches read.
    lines: Vec<Picture>,
    /// The sets of each kind that searches read.
    sets: Vec<Picture>,
    /// The pages of all kinds.
    pages: Option<Picture>,
}

/// The most kinds with pictures of their own: those of which searches read the most bytes.
const KINDS: usize = 3;
/// The number of pairs of lines in a picture.
const PAIRS: usize = 32;

impl Pictures {
    /// Draws the objects of a census, whose kinds are those of the report.
    pub fn of(
        report: &Report,
        census: &mut Census,
        paths: &Paths,
        whose: Whose,
        machine: &Machine,
    ) -> Self {
        let hot = |kind: &Kind| kind.objects as f64 * kind.hot_bytes;
        let asked: Vec<&Kind> = report.kinds.iter().filter(|kind| whose.has(&kind.name)).collect();
        let mut read = asked.clone();
        read.retain(|kind| hot(kind) > 0.0);
        read.sort_by(|a, b| hot(b).total_cmp(&hot(a)));
        read.truncate(KINDS);
        let legend = Legend::new(report, &read, whose);
        let mut pictures = Self::default();
        for kind in read {
            let window = census.window(&kind.name, machine.line, PAIRS);
            if window.pairs.is_empty() {
                continue;
            }
            let names: Vec<&str> = census.kinds().collect();
            pictures.lines.push(lines::draw(kind, &window, paths, &names, &legend));
            pictures.sets.push(sets::draw(kind, &legend.names, census, machine));
        }
        let asked: Vec<&str> = asked.iter().map(|kind| kind.name.as_str()).collect();
        pictures.pages = pages::draw(&census.page_map(&asked), whose);
        pictures
    }

    /// All pictures, in the order of the questions that they answer.
    fn all(&self) -> Vec<&Picture> {
        self.lines.iter().chain(&self.sets).chain(&self.pages).collect()
    }
}
