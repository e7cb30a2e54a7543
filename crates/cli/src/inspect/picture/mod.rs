//! Pictures of where objects lie: as SVG, or in a page with the answers and findings.
//!
//! | module | holds |
//! |---|---|
//! | `svg` | text of XML, and how pictures are put together |
//! | `legend` | kinds, with their colours |
//! | `lines`, `sets`, `pages` | the three pictures |
//! | `html` | the page |
//! | `files` | the files that are asked for |
//!
//! Figures in titles are those of the report; what the pictures themselves show is computed by
//! [`silvics_layout::views`].

pub mod files;
mod html;
mod legend;
mod lines;
mod pages;
mod sets;
mod svg;
#[cfg(test)]
mod tests;

use super::render;
use super::report::{Kind, Report};
use crate::flags::error::Error;
use files::Files;
use legend::Legend;
use silvics_layout::{Census, Machine, NodeLayout, Paths};
use svg::Picture;

/// Draws the objects of a census, which the report is about, and writes what was asked for.
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
    if let Some(file) = &files.svg {
        file.write(svg::file(&render::heading(report), &pictures.all()).as_bytes())?;
    }
    if let Some(file) = &files.html {
        file.write(html::page(report, &pictures).as_bytes())?;
    }
    Ok(())
}

/// Whose objects are drawn.
#[derive(Clone, Copy)]
pub enum Whose {
    /// An index's, of these layouts; other kinds are of the program around it.
    Index(&'static [NodeLayout]),
    /// All are of a program that was traced.
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

    /// What such objects are called.
    const fn objects(self) -> &'static str {
        match self {
            Self::Index(_) => "objects of the index",
            Self::Program => "objects",
        }
    }

    /// What memory without an object is.
    const fn none(self) -> &'static str {
        match self {
            Self::Index(_) => {
                "no object of the index or the program around it: free, or somebody else's"
            }
            Self::Program => "no object of the trace: free, or somebody else's",
        }
    }
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

    /// All, in the order of the questions that they answer.
    fn all(&self) -> Vec<&Picture> {
        self.lines.iter().chain(&self.sets).chain(&self.pages).collect()
    }
}
