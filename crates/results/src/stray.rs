//! Figures outside of regions: tables of figures, and figures in sentences.
//!
//! A figure in a sentence is a number with a short time or a speed behind it, such as `72 ns`,
//! `1.6 Mops/s`, `3 million rows a second`, `1.3 times as fast`, `1.3×` or `40 % faster`. Other
//! shares, seconds and bytes are left alone: most of them are settings, sizes, or of a model. A
//! paragraph or a table behind a line `<!-- exact -->` has figures that do not depend on the
//! machine, or that another source has measured. Text that tests or `just trust` write is left out,
//! and so is code.

use crate::page::{Region, tables_of};
use crate::table::has_figures;
use std::ops::Range;

/// The units behind a number.
const UNITS: [&str; 13] = [
    "ns",
    "µs",
    "ms",
    "nanoseconds",
    "microseconds",
    "milliseconds",
    "Mops",
    "Mops/s",
    "Mop/s",
    "M/s",
    "k/s",
    "MB/s",
    "GB/s",
];

/// The units that may follow a number without a space.
const JOINED: [&str; 4] = ["ns", "µs", "ms", "×"];

/// The words behind a number that belong to `a second`.
const COUNTS: [&str; 4] = ["million", "thousand", "M", "k"];

/// The words behind a number and `times` or `%`.
const COMPARED: [&str; 5] = ["as fast", "as slow", "faster", "slower", "of the rate"];

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
            if is_joined(word) {
                figures.push((line, bare(word).to_owned()));
            }
            if !is_number(word) {
                continue;
            }
            let following: Vec<&str> =
                words[at + 1..].iter().take(5).map(|&(_, word)| bare(word)).collect();
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
    if COUNTS.contains(first) {
        let second = rest.windows(2).position(|two| two == ["a", "second"]);
        return second.map(|at| format!("{first} {}", rest[..at + 2].join(" ")));
    }
    let rest = rest.join(" ");
    let compared = COMPARED.iter().find(|words| rest.starts_with(**words));
    compared.filter(|_| ["times", "%"].contains(first)).map(|words| format!("{first} {words}"))
}

/// Whether a word is a number with its unit, as in `72ns`.
fn is_joined(word: &str) -> bool {
    JOINED.iter().any(|unit| bare(word).strip_suffix(*unit).is_some_and(is_number))
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

/// The line, counted from one, at which the last text of another program begins, if it has no end.
/// All lines behind it would be left out.
pub(crate) fn unclosed(lines: &[&str]) -> Option<usize> {
    let mut open: Option<(usize, &str)> = None;
    for (at, line) in lines.iter().enumerate() {
        open = match open {
            Some((_, end)) if line.starts_with(end) => None,
            None => {
                let mark = WRITTEN.iter().find(|(begin, _)| line.starts_with(begin));
                mark.map(|(_, end)| (at + 1, *end))
            }
            open => open,
        };
    }
    open.map(|(line, _)| line)
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
    fn figures_of_other_forms_are_found() {
        assert_eq!(
            found("It takes 72ns or 3\nnanoseconds, which is 1.3× the rate, 40 % faster."),
            ["1: 72ns", "1: 3 nanoseconds", "2: 1.3×", "2: 40 % faster"]
        );
        assert_eq!(
            found("It makes 0.6 million transactions a second: 86 % of the rate, at 210 MB/s."),
            ["1: 0.6 million transactions a second", "1: 86 % of the rate", "1: 210 MB/s"]
        );
    }

    #[test]
    fn text_of_another_program_needs_an_end() {
        let mark = "<!-- The table of structures -->";
        let of = |text: &str| unclosed(&text.lines().collect::<Vec<_>>());
        assert_eq!(of(&format!("a\n{mark}\nb\n{mark}\n5 ns\n")), None);
        assert_eq!(of(&format!("a\n{mark}\nb\n{mark}\n5 ns\n{mark}\n")), Some(6));
        assert_eq!(of("<!-- figures: written by `just trust` -->\n\nb\n"), Some(1));
    }

    #[test]
    fn sizes_settings_code_and_exact_paragraphs_are_left_alone() {
        for text in [
            "A node has 64 bytes, and 3 ms-old files are no figures.",
            "1 % of new orders in 10 s, a million keys, 3 million rows, 64×64 bits, and 8 MB",
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
