//! Figures outside of regions: tables of figures, and figures in sentences.
//!
//! A figure in a sentence is a number with a unit of time or of speed behind it, such as `72 ns`,
//! `1.6 Mops/s` or `1.3 times as fast`. A paragraph or a table behind a line `<!-- exact -->` has
//! figures that do not depend on the machine, or that another source has measured. Text that tests
//! or `just trust` write is left out, and so is code.

use crate::page::{Region, tables_of};
use crate::table::has_figures;
use std::ops::Range;

/// The units behind a number.
const UNITS: [&str; 8] = ["ns", "µs", "ms", "Mops", "Mops/s", "Mop/s", "M/s", "k/s"];

/// The words behind a number and `times`.
const COMPARED: [&str; 4] = ["as fast", "as slow", "faster", "slower"];

/// The first and the last line of text that other programs write begin so.
const WRITTEN: [(&str, &str); 3] = [
    ("<!-- figures: written by", "<!-- end of figures"),
    ("<!-- Facts of ", "<!-- End of facts"),
    ("<!-- The table of ", "<!-- The table of "),
];

/// The lines, counted from one, at which tables of figures begin outside of all regions.
pub(crate) fn tables(lines: &[&str], regions: &[Region]) -> Vec<usize> {
    let outside = outside(lines, regions);
    let found = tables_of(lines).into_iter();
    found
        .filter(|table| outside[table.start] && !is_exact(lines, table.start))
        .filter(|table| has_figures(&lines[table.clone()]))
        .map(|table| table.start + 1)
        .collect()
}

/// The figures in sentences outside of all regions, with their lines, counted from one.
pub(crate) fn sentences(lines: &[&str], regions: &[Region]) -> Vec<(usize, String)> {
    let outside = outside(lines, regions);
    let mut figures = Vec::new();
    for paragraph in paragraphs(lines, &outside) {
        // A table of figures is one finding, by `tables`.
        let is_table = lines[paragraph.start].starts_with('|');
        if is_exact(lines, paragraph.start) || is_table && has_figures(&lines[paragraph.clone()]) {
            continue;
        }
        let words: Vec<(usize, &str)> = paragraph
            .flat_map(|at| lines[at].split_whitespace().map(move |word| (at + 1, word)))
            .collect();
        for (at, &(line, word)) in words.iter().enumerate() {
            if !is_number(word) {
                continue;
            }
            let following: Vec<&str> =
                words[at + 1..].iter().take(3).map(|&(_, word)| bare(word)).collect();
            if let Some(unit) = unit(&following) {
                figures.push((line, format!("{} {unit}", bare(word))));
            }
        }
    }
    figures
}

/// The unit that the words begin with.
fn unit(words: &[&str]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    if UNITS.contains(first) {
        return Some((*first).to_owned());
    }
    let rest = rest.join(" ");
    let compared = COMPARED.iter().find(|words| rest.starts_with(**words));
    compared.filter(|_| *first == "times").map(|words| format!("times {words}"))
}

fn is_number(word: &str) -> bool {
    let word = bare(word);
    word.ends_with(|last: char| last.is_ascii_digit())
        && word.chars().all(|letter| letter.is_ascii_digit() || ".,–-~≈".contains(letter))
}

/// A word without the signs around it.
fn bare(word: &str) -> &str {
    let word = word.trim_end_matches(['.', ',', ';', ':', ')', '*']);
    word.trim_start_matches(['(', '*', '~', '≈'])
}

/// Whether each line is text: not in a region, not written by another program, and no code.
fn outside(lines: &[&str], regions: &[Region]) -> Vec<bool> {
    let mut is_code = false;
    let mut end = None;
    let mut is_outside = Vec::with_capacity(lines.len());
    for (at, line) in lines.iter().enumerate() {
        let fence = line.trim_start().starts_with("```");
        is_code ^= fence;
        let was_written = end.is_some();
        match end {
            Some(mark) if line.starts_with(mark) => end = None,
            Some(_) => {}
            None => end = WRITTEN.iter().find(|(begin, _)| line.starts_with(begin)).map(|of| of.1),
        }
        let in_region = regions.iter().any(|region| region.inner.contains(&at));
        is_outside.push(!(is_code || fence || was_written || end.is_some() || in_region));
    }
    is_outside
}

/// The runs of lines of text.
fn paragraphs(lines: &[&str], outside: &[bool]) -> Vec<Range<usize>> {
    let mut paragraphs: Vec<Range<usize>> = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        if !outside[at] || line.trim().is_empty() {
            continue;
        }
        match paragraphs.last_mut() {
            Some(paragraph) if paragraph.end == at => paragraph.end += 1,
            _ => paragraphs.push(at..at + 1),
        }
    }
    paragraphs
}

/// Whether the paragraph or table that begins at a line is behind `<!-- exact -->`, or begins with
/// it.
fn is_exact(lines: &[&str], start: usize) -> bool {
    let marks = |line: &&str| line.trim_start().starts_with("<!-- exact");
    let before = lines[..start].iter().rev().find(|line| !line.trim().is_empty());
    before.is_some_and(marks) || marks(&lines[start])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<String> {
        let lines: Vec<&str> = text.lines().collect();
        sentences(&lines, &[])
            .into_iter()
            .map(|(line, figure)| format!("{line}: {figure}"))
            .collect()
    }

    #[test]
    fn figures_in_sentences_are_found() {
        assert_eq!(
            found("# A page\n\nA call takes 8 ns, or (at most) 0.3 µs."),
            ["3: 8 ns", "3: 0.3 µs"]
        );
        assert_eq!(
            found("It takes 72 to 95\nns, and is 1.3 times as\nfast."),
            ["1: 95 ns", "2: 1.3 times as fast"]
        );
        assert_eq!(
            found("* a list: 2.9 times faster, 14–30 Mops/s."),
            ["1: 2.9 times faster", "1: 14–30 Mops/s"]
        );
    }

    #[test]
    fn sizes_settings_code_and_exact_paragraphs_are_left_alone() {
        for text in [
            "A node has 64 bytes, and 3 ms-old files are no figures.",
            "```sh\nsleep 10 ms\n```",
            "<!-- exact -->\n\nMacs report steps of 42 ns.",
            "<!-- exact: of the paper -->\nIts lookups took 42 ns.",
            "512 times as far, and several times as fast",
            "<!-- figures: written by `just trust` -->\n\nfound within 3 ms\n\n<!-- end of figures -->",
        ] {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
        // The mark is for one paragraph.
        assert_eq!(found("<!-- exact -->\n\n5 ns\n\n6 ns"), ["5: 6 ns"]);
        assert_eq!(found("<!-- end of figures -->\n\n6 ns"), ["3: 6 ns"]);
    }
}
