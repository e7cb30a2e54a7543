//! The evidence of findings: figures, and the one sentence that states them.

use crate::analysis::facts::Facts;
use std::borrow::Cow;
use std::fmt;

/// The figures that show a finding. Shares are from 0 to 1. `lines` are lines per object, unless a
/// variant says otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum Evidence {
    /// Objects of which a search reads all bytes lie in two lines, and would fit one.
    Straddling {
        /// The share of objects in two lines.
        share: f64,
        /// All objects.
        objects: usize,
        /// Their bytes: the least, the most, and the median.
        bytes: [usize; 3],
        /// Lines per object.
        lines: f64,
    },
    /// The bytes that a search reads lie in two lines, and would fit one.
    HotStraddling {
        /// The share of objects whose hot bytes lie in two lines.
        share: f64,
        /// All objects.
        objects: usize,
        /// Their bytes, on average.
        bytes: f64,
        /// The bytes that a search reads, on average.
        hot_bytes: f64,
        /// Lines per visit.
        lines: f64,
        /// The lines that contain the bytes that one visit needs, on average.
        needed: f64,
    },
    /// The bytes that a search reads would fit a line, and do not lie side by side.
    Unordered {
        /// The number of such bytes, on average.
        hot_bytes: f64,
        /// The offset of the first of these bytes in the object.
        first: usize,
        /// The offset of the last of these bytes.
        last: usize,
        /// Lines per object.
        lines: f64,
    },
    /// Lines that are fetched beside those read hold nothing that a search reads.
    UselessNeighbours {
        /// The share of such lines.
        share: f64,
        /// The lines read, in all.
        lines: usize,
        /// The other kinds that these lines hold, with their shares of the bytes there, the largest
        /// first.
        held: Vec<(String, f64)>,
    },
    /// Lines map to a part of the sets of caches.
    Sets {
        /// The lines read, in all.
        lines: usize,
        /// The caches, and the share of the sets of each that the lines map to.
        reached: Vec<(&'static str, f64)>,
        /// The most frequent distance between consecutive objects.
        stride: Stride,
    },
    /// Lines map to a part of the sets of a last level in slices.
    Slices {
        /// The lines read, in all.
        lines: usize,
        /// The share of its sets that they map to.
        reached: f64,
        /// The number of slices.
        slices: usize,
        /// The most frequent distance between consecutive objects.
        stride: Stride,
    },
    /// Objects lie on more pages than they would fill, and than translations are kept of.
    ScatteredPages {
        /// The pages they lie on.
        pages: usize,
        /// The size of these pages.
        size: &'static str,
        /// The number of pages that they would fill.
        full: f64,
        /// The mean length of runs of neighbouring pages of 4 KiB.
        run: f64,
        /// The translations that the machine keeps.
        kept: usize,
    },
    /// Objects fill more small pages than translations are kept of.
    ManyPages {
        /// The pages they fill.
        pages: usize,
        /// The size of these pages.
        size: &'static str,
        /// The translations that the machine keeps.
        kept: usize,
    },
    /// Locks share lines with other locks.
    SharedLocks {
        /// The share of locks in a line with another lock.
        share: f64,
        /// All locks.
        locks: usize,
        /// Locks per line that holds one.
        per_line: f64,
    },
    /// Another build has smaller objects.
    Oversized {
        /// The bytes of an object.
        bytes: usize,
        /// The bytes of an object that a search reads.
        hot_bytes: usize,
        /// The other build.
        build: &'static str,
        /// The bytes of an object there.
        bytes_there: usize,
    },
    /// The fields that a search reads would fit fewer lines.
    ScatteredFields {
        /// Their bytes.
        hot_bytes: usize,
        /// The first field and its offset.
        first: (&'static str, usize),
        /// The last field and its offset.
        last: (&'static str, usize),
        /// Lines per object that starts a line.
        lines: usize,
    },
    /// Objects in which lookups end lie in the line beside that of the object before.
    LostCollocation {
        /// The share of objects before an end for which this holds.
        beside: f64,
        /// All objects before an end.
        parents: usize,
        /// The share of those beside that are in another pair of lines.
        other_pair: f64,
        /// The share of objects before an end that share a line with it.
        together: f64,
    },
}

/// A distance in bytes from an object to the next of its kind.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stride {
    /// The distance.
    pub bytes: usize,
    /// The share of all distances that are equal to it.
    pub share: f64,
}

impl Facts {
    /// The most frequent distance from one object to the next.
    pub fn usual_stride(&self) -> Stride {
        let all: usize = self.strides.values().sum();
        let usual = self.strides.iter().max_by_key(|(_, count)| **count);
        usual.map_or(Stride { bytes: 0, share: 0.0 }, |(bytes, count)| Stride {
            bytes: *bytes,
            share: *count as f64 / all as f64,
        })
    }
}

impl fmt::Display for Stride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of them lie {} bytes behind the last", percent(self.share), self.bytes)
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence(Into::into))
    }
}

impl Evidence {
    /// The evidence as a sentence without its full stop. `name` gives the names of kinds in it.
    pub fn sentence<'a>(&'a self, name: impl Fn(&'a str) -> Cow<'a, str>) -> String {
        match self {
            Self::Straddling { share, objects, bytes, lines } => format!(
                "{} of {objects} objects of {} would fit a line and lie in two: {lines:.3} lines \
                 per object",
                percent(*share),
                sizes(*bytes)
            ),
            Self::HotStraddling { share, objects, bytes, hot_bytes, lines, needed } => format!(
                "{} of {objects} objects of {bytes:.0} bytes have the {hot_bytes:.0} bytes that a \
                 search reads in two lines: {lines:.3} lines per visit, {needed:.3} of them needed",
                percent(*share)
            ),
            Self::Unordered { hot_bytes, first, last, lines } => format!(
                "a search reads {hot_bytes:.0} bytes, from byte {first} to byte {last}: {lines:.3} \
                 lines per object where one would do"
            ),
            Self::UselessNeighbours { share, lines, held } => format!(
                "{} of the lines fetched beside the {lines} read hold nothing that a search reads \
                 (they hold {})",
                percent(*share),
                held_by(held, name)
            ),
            Self::Sets { lines, reached, stride } => {
                let part =
                    |(cache, share): &(&str, f64)| format!("{} of the {cache}", percent(*share));
                let parts: Vec<String> = reached.iter().map(part).collect();
                format!("the {lines} lines read map to {} sets; {stride}", parts.join(", "))
            }
            Self::Slices { lines, reached, slices, stride } => format!(
                "the {lines} lines read map to {} of the sets of a last level in {slices} slices; \
                 {stride}",
                percent(*reached)
            ),
            Self::ScatteredPages { pages, size, full, run, kept } => format!(
                "they lie on {pages} pages of {size} and would fill {full:.0}, in runs of {run:.1} \
                 pages of 4 KiB; {kept} translations are kept"
            ),
            Self::ManyPages { pages, size, kept } => {
                format!("they fill {pages} pages of {size}, and {kept} translations are kept")
            }
            Self::SharedLocks { share, locks, per_line } => format!(
                "{} of {locks} share a line with another: {per_line:.2} locks per line",
                percent(*share)
            ),
            Self::Oversized { bytes, hot_bytes, build, bytes_there } => format!(
                "objects have {bytes} bytes, of which a search reads {hot_bytes}; in the build \
                 `{build}` they have {bytes_there}"
            ),
            Self::ScatteredFields { hot_bytes, first: (first, from), last: (last, to), lines } => {
                format!(
                    "a search reads {hot_bytes} bytes, from `{first}` at byte {from} to `{last}` at \
                     byte {to}: {lines} lines where one would do"
                )
            }
            Self::LostCollocation { beside, parents, other_pair, together } => format!(
                "{} of the {parents} objects from which lookups come to their end have it in the \
                 next line or the one before, {} of those in another pair of lines; {} share a line \
                 with it",
                percent(*beside),
                percent(*other_pair),
                percent(*together)
            ),
        }
    }
}

/// The bytes of objects in words: the least, the most, and the median.
fn sizes([least, most, median]: [usize; 3]) -> String {
    if least == most {
        return format!("{least} bytes");
    }
    format!("{least} to {most} bytes, {median} in the middle,")
}

/// Kinds with their shares.
fn held_by<'a>(kinds: &'a [(String, f64)], name: impl Fn(&'a str) -> Cow<'a, str>) -> String {
    if kinds.is_empty() {
        return "no other objects".into();
    }
    let kinds = kinds.iter().map(|(kind, share)| format!("{} {}", name(kind), percent(*share)));
    kinds.collect::<Vec<_>>().join(", ")
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
