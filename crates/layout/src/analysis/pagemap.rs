//! The frames of physical memory that contain the pages of objects.
//!
//! # Source
//! Linux, Documentation/admin-guide/mm/pagemap.rst: a word of 8 bytes per page of the address
//! space. Bit 63 is set if the page is present, and bits 0 to 54 hold the number of its frame.
//! Since Linux 4.2 a process without `CAP_SYS_ADMIN` reads frame 0 everywhere; Linux 4.0 and 4.1
//! refuse to open the file.

use crate::analysis::facts::{covered, pages};
use crate::analysis::runs::Runs;
use crate::{Sets, Survey};
use rustc_hash::FxHashMap;
use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

/// The physical frames of pages that contain objects.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    /// The frame of each present page, by the page's number.
    frames: FxHashMap<usize, usize>,
    page_bytes: usize,
}

/// Why the frames are unknown.
#[derive(Debug)]
#[non_exhaustive]
pub enum PagemapError {
    /// The file cannot be read.
    Io(io::Error),
    /// The system shows which pages are present, but hides their frames.
    Hidden,
}

impl fmt::Display for PagemapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io(error) => write!(f, "pagemap refused: {error}")?,
            Self::Hidden => f.write_str("pagemap refused: it hides the numbers of frames")?,
        }
        f.write_str("; on Linux run as root or with CAP_SYS_ADMIN")
    }
}

impl std::error::Error for PagemapError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(error) => Some(error),
            Self::Hidden => None,
        }
    }
}

const ENTRY: usize = 8;
const PRESENT: u64 = 1 << 63;
const FRAME: u64 = (1 << 55) - 1;
/// The number of entries read at once.
const BATCH: usize = 1 << 13;

impl Frames {
    /// Reads the entries of pages of `page_bytes` bytes, a power of two, from `/proc/PID/pagemap`
    /// or a file of that format. Pages behind its end are absent.
    fn read(
        pages: &Runs,
        mut pagemap: impl Read + Seek,
        page_bytes: usize,
    ) -> Result<Self, PagemapError> {
        let (mut frames, mut entries) = (FxHashMap::default(), Vec::new());
        for run in pages.as_slice() {
            pagemap.seek(SeekFrom::Start((run.start * ENTRY) as u64)).map_err(PagemapError::Io)?;
            for start in run.clone().step_by(BATCH) {
                let count = BATCH.min(run.end - start);
                entries.clear();
                let part = pagemap.by_ref().take((count * ENTRY) as u64);
                { part }.read_to_end(&mut entries).map_err(PagemapError::Io)?;
                for (page, entry) in (start..).zip(entries.as_chunks::<ENTRY>().0) {
                    let entry = u64::from_ne_bytes(*entry);
                    if entry & PRESENT != 0 {
                        frames.insert(page, (entry & FRAME) as usize);
                    }
                }
            }
        }
        if !frames.is_empty() && frames.values().all(|frame| *frame == 0) {
            return Err(PagemapError::Hidden);
        }
        Ok(Self { frames, page_bytes })
    }

    /// The physical numbers of lines of `line` bytes, as far as their pages are present.
    fn physical(&self, lines: &Runs, line: usize) -> impl Iterator<Item = usize> {
        let in_page = (self.page_bytes / line).max(1);
        lines.numbers().filter_map(move |number| {
            let frame = self.frames.get(&(number / in_page))?;
            Some(frame * in_page + number % in_page)
        })
    }
}

impl Survey<'_> {
    /// Reads the frames of all pages of `page_bytes` bytes, a power of two, that contain objects.
    /// `pagemap` is that of the process to which the objects belong. O(n log n).
    pub fn frames(
        &self,
        pagemap: impl Read + Seek,
        page_bytes: usize,
    ) -> Result<Frames, PagemapError> {
        let page_bytes = page_bytes.max(1);
        Frames::read(&pages(self.all, page_bytes.trailing_zeros()), pagemap, page_bytes)
    }

    /// The [`coverage`](Self::coverage) of lines by physical address. Lines on absent pages map to
    /// no set.
    pub fn coverage_physical(&self, kind: usize, sets: &Sets, frames: &Frames) -> f64 {
        let lines = self.lines(kind);
        covered(frames.physical(&lines, sets.line), lines.len(), sets)
    }

    /// The number of pages with objects of a kind that are absent: swapped out, or never touched.
    pub fn pages_absent(&self, kind: usize, frames: &Frames) -> usize {
        let pages = pages(self.objects(kind), frames.page_bytes.trailing_zeros());
        pages.numbers().filter(|page| !frames.frames.contains_key(page)).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Census, SetHash};
    use std::io::Cursor;

    /// Eight pages' worth of sets: a page has 64 lines.
    const SETS: Sets = Sets { line: 64, sets: 512, hash: SetHash::Modulo };

    /// The entry of a page that lies in frame `frame`.
    fn at(frame: u64) -> u64 {
        PRESENT | frame
    }

    /// A pagemap with these entries.
    fn pagemap(entries: &[u64]) -> Cursor<Vec<u8>> {
        Cursor::new(entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect())
    }

    /// A census of objects that fill pages 1, 2 and 3, and one that lies on pages 6 and 7.
    fn census() -> Census {
        let mut census = Census::default();
        let page = census.kind("page", None);
        (1..4).for_each(|number| census.add_sized(page, number << 12, 4096));
        let across = census.kind("across", None);
        census.add_sized(across, (7 << 12) - 64, 128);
        census
    }

    fn ratio(value: f64) -> String {
        format!("{value:.4}")
    }

    #[test]
    fn frames_decide_where_lines_go() {
        let mut census = census();
        let survey = census.survey(&SETS);
        // The frames of pages 1 and 2 differ by a multiple of eight; that of page 3 does not.
        let entries = [0, at(16), at(24), at(1), 0, 0, at(2), at(4)];
        let frames = survey.frames(pagemap(&entries), 4096).unwrap();
        assert_eq!(ratio(survey.coverage(0, &SETS)), ratio(3.0 / 8.0));
        assert_eq!(ratio(survey.coverage_physical(0, &SETS, &frames)), ratio(2.0 / 8.0));
        assert_eq!(ratio(survey.coverage_physical(1, &SETS, &frames)), ratio(2.0 / 512.0));
        assert_eq!([0, 1].map(|kind| survey.pages_absent(kind, &frames)), [0, 0]);
    }

    #[test]
    fn pages_that_are_not_present_are_counted() {
        let mut census = census();
        let survey = census.survey(&SETS);
        // Page 2 is swapped out (bit 62), and the file ends before page 7.
        let entries = [0, at(16), 0x4000_0000_0000_0005, at(1), 0, 0, at(2)];
        let frames = survey.frames(pagemap(&entries), 4096).unwrap();
        assert_eq!([0, 1].map(|kind| survey.pages_absent(kind, &frames)), [1, 1]);
        assert_eq!(ratio(survey.coverage_physical(0, &SETS, &frames)), ratio(2.0 / 8.0));
        assert_eq!(ratio(survey.coverage_physical(1, &SETS, &frames)), ratio(1.0 / 512.0));
        let wide = survey.frames(pagemap(&[at(1)]), 1 << 16).unwrap();
        assert_eq!(survey.pages_absent(0, &wide), 0, "pages of 64 KiB");
        let none = survey.frames(pagemap(&[]), 4096).unwrap();
        assert_eq!(survey.pages_absent(0, &none), 3);
    }

    #[test]
    fn a_refusal_names_its_cause_and_remedy() {
        let mut census = census();
        let survey = census.survey(&SETS);
        let hidden = survey.frames(pagemap(&[PRESENT; 8]), 4096).unwrap_err();
        assert!(matches!(hidden, PagemapError::Hidden));
        let refused = PagemapError::Io(io::Error::from(io::ErrorKind::PermissionDenied));
        for error in [hidden, refused] {
            let text = error.to_string();
            assert!(text.starts_with("pagemap refused: "), "{text}");
            assert!(text.ends_with("run as root or with CAP_SYS_ADMIN"), "{text}");
        }
    }
}
