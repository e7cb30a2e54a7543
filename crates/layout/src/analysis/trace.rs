//! Traces: text that lists what a program allocated and freed, and the objects alive when it held
//! most memory.
//!
//! [`Trace`] describes the format.
//!
//! # Algorithm
//! One pass, so that a trace can come through a pipe. The reader keeps a map of live objects, each
//! with the event that allocated it. In `lost` it keeps the objects that were alive at the highest
//! point so far and have been freed since.
//!
//! ```text
//! allocated at event e: live += (object, e)
//!                       if more bytes are alive than at the peak: peak = e, lost = {}
//! freed:                live -= object; if it was allocated at or before the peak: lost += object
//! at the end:           those of live allocated at or before the peak, and lost
//! ```
//!
//! # Complexity
//! O(log n) per event and O(n) memory, where n is the most objects alive at a time. So a trace of
//! any length can be read on a machine that could run its program.
//! length can be read where its program could run.

mod error;
#[cfg(test)]
mod tests;

pub use error::{LineFault, TraceError};

use crate::Census;
use crate::analysis::runs::merge;
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, Read};
use std::ops::Range;

/// The greatest length of a line in bytes, without its newline.
const LINE_MAX: usize = 64 << 10;

/// The objects that were alive when a program held most memory, and counts of its whole run.
///
/// # Format
/// There is one statement per line. Words are separated by spaces or tabs, and lines by a newline
/// (a carriage return before it is ignored). The writer chooses the words for kinds: a type, or a
/// call site.
///
/// | line | meaning |
/// |---|---|
/// | `KIND ADDRESS SIZE` | an object of that kind was allocated: address in hex with `0x`, bytes in decimal |
/// | `- ADDRESS` | the object that begins there was freed |
/// | `kind NAME short WORD` | from here on `WORD` stands for the kind `NAME`, which may be long |
/// | `kind NAME hot OFFSET BYTES` | a search reads these bytes of the kind's objects |
/// | `# …` | none, as for empty lines |
///
/// `-`, `kind` and words that begin with `#` cannot name a kind. A list of `KIND ADDRESS SIZE`
/// lines without frees, a census, is a trace.
///
/// * **Hot bytes** may be declared anywhere in the file, so you can append such lines to a trace
///   that a program wrote. Several lines for one kind add up. If a kind has none, all its bytes
///   count. `hot 0 0` alone means that a search reads nothing of it. Bytes beyond an object's end
///   are ignored.
/// * **A realloc** is a free of the old address and an allocation of the new one, in this order,
///   even if both are equal.
/// * **A free of an address where no object begins** is counted
///   ([`unknown_frees`](Self::unknown_frees)) and otherwise ignored. The object is older than the
///   trace, or its allocator is not traced.
/// * **An allocation over live objects** ends these, as their free was missed. They are counted as
///   [`overlaps`](Self::overlaps), not as frees of their kind. So live objects are always disjoint.
/// * **Objects of no bytes** count as allocations and occupy their address. They are not among the
///   objects at the peak, as they contain nothing to read.
///
/// ```
/// use silvics_layout::Trace;
///
/// let text = "node 0x1000 48\nnode 0x1030 48\n- 0x1000\nrow 0x1000 40\nkind node hot 0 24\n";
/// let trace = Trace::read(text.as_bytes())?;
/// assert_eq!((trace.peak_event, trace.peak_bytes, trace.objects.len()), (2, 96, 2));
/// assert_eq!(trace.kinds[0].hot_of(48), [0..24]);
/// # Ok::<(), silvics_layout::TraceError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The kinds, in the order in which they were first named.
    pub kinds: Vec<TraceKind>,
    /// The objects of at least one byte alive at the peak: disjoint, in ascending order of address.
    pub objects: Vec<TraceObject>,
    /// The number of allocations and frees in the trace.
    pub events: u64,
    /// The event, counted from 1, after which most bytes were alive; the first of several.
    pub peak_event: u64,
    /// The bytes alive after `peak_event`.
    pub peak_bytes: usize,
    /// The number of frees of addresses where no live object began.
    pub unknown_frees: u64,
    /// The number of objects that ended without a free, because a later one was allocated over
    /// them.
    pub overlaps: u64,
}

/// A kind of object in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceKind {
    /// The name of the kind.
    pub name: String,
    /// The bytes of its objects that a search reads, disjoint and ascending. `None` if no line
    /// declared any, so that all count.
    pub hot: Option<Vec<Range<usize>>>,
    /// The objects allocated in the whole trace; 0 for a kind that is only declared.
    pub allocations: u64,
    /// The objects freed in the whole trace.
    pub frees: u64,
}

impl TraceKind {
    /// The bytes that a search reads of an object of `size` bytes, disjoint and ascending.
    pub fn hot_of(&self, size: usize) -> Vec<Range<usize>> {
        let clipped = |part: &Range<usize>| part.start..part.end.min(size);
        let whole = 0..size;
        let hot = self.hot.as_deref().unwrap_or(std::slice::from_ref(&whole));
        hot.iter().map(clipped).filter(|part| !part.is_empty()).collect()
    }
}

/// An object alive at the peak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceObject {
    /// The kind, as a position in [`Trace::kinds`].
    pub kind: usize,
    /// The address of the first byte.
    pub address: usize,
    /// The length in bytes, at least 1.
    pub size: usize,
}

impl Trace {
    /// Reads a trace to its end.
    pub fn read(mut reader: impl BufRead) -> Result<Self, TraceError> {
        let mut replay = Replay::default();
        let mut line = Vec::new();
        for number in 1.. {
            line.clear();
            let read = reader.by_ref().take(LINE_MAX as u64 + 2).read_until(b'\n', &mut line);
            let at_line = |fault| TraceError::Line { line: number, fault };
            match read {
                Ok(0) => break,
                Ok(_) => {}
                Err(error) => return Err(TraceError::Io { line: number, error }),
            }
            let text = line.strip_suffix(b"\n").unwrap_or(&line);
            if text.len() > LINE_MAX {
                return Err(at_line(LineFault::TooLong { limit: LINE_MAX }));
            }
            replay.line(text).map_err(at_line)?;
        }
        replay.finish()
    }

    /// A census of the objects alive at the peak and of their kinds. If an object has more than
    /// 4 GiB, only its first 4 GiB count.
    pub fn census(&self) -> Census {
        let mut census = Census::default();
        let mut ids = vec![None; self.kinds.len()];
        for object in &self.objects {
            let kind = &self.kinds[object.kind];
            let known = &mut ids[object.kind];
            let id = *known.get_or_insert_with(|| census.kind(&kind.name, kind.hot.clone()));
            census.add_sized(id, object.address, object.size);
        }
        census
    }
}

/// The first words of a line, and the number of all its words.
fn words(line: &[u8]) -> ([&[u8]; 5], usize) {
    let mut words = [&[][..]; 5];
    let mut count = 0;
    for word in line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()) {
        if let Some(place) = words.get_mut(count) {
            *place = word;
        }
        count += 1;
    }
    (words, count)
}

fn number(word: &[u8], radix: u32) -> Option<usize> {
    // `from_str_radix` would accept a sign.
    let digits = str::from_utf8(word).ok().filter(|digits| !digits.starts_with('+'))?;
    usize::from_str_radix(digits, radix).ok()
}

fn address(word: &[u8]) -> Result<usize, LineFault> {
    let digits = word.strip_prefix(b"0x");
    digits.and_then(|digits| number(digits, 16)).ok_or_else(|| LineFault::address(word))
}

fn decimal(word: &[u8]) -> Result<usize, LineFault> {
    number(word, 10).ok_or_else(|| LineFault::number(word))
}

/// The address behind `bytes` bytes from `start`.
fn end_of(start: usize, bytes: usize) -> Result<usize, LineFault> {
    start.checked_add(bytes).ok_or(LineFault::Beyond { start, bytes })
}

/// A live object; the map's key is its address.
#[derive(Clone, Copy)]
struct Live {
    kind: usize,
    size: usize,
    /// The event that allocated it.
    born: u64,
}

impl Live {
    fn at(self, address: usize) -> TraceObject {
        TraceObject { kind: self.kind, address, size: self.size }
    }

    /// The bytes that it occupies: an object of no bytes occupies one.
    fn occupied(self) -> usize {
        self.size.max(1)
    }
}

/// The state of the pass described in the module's algorithm.
#[derive(Default)]
struct Replay {
    kinds: Vec<TraceKind>,
    /// The kinds by their names and short words.
    kind_of: HashMap<Vec<u8>, usize>,
    live: BTreeMap<usize, Live>,
    live_bytes: usize,
    lost: Vec<TraceObject>,
    events: u64,
    peak_event: u64,
    peak_bytes: usize,
    unknown_frees: u64,
    overlaps: u64,
}

impl Replay {
    fn line(&mut self, line: &[u8]) -> Result<(), LineFault> {
        let (words, count) = words(line);
        match (&words[..count.min(words.len())], count) {
            ([], _) => Ok(()),
            ([first, ..], _) if first.starts_with(b"#") => Ok(()),
            ([b"-", at], 2) => {
                self.free(address(at)?);
                Ok(())
            }
            ([b"kind", name, b"short", word], 4) => self.shorten(name, word),
            ([b"kind", name, b"hot", offset, bytes], 5) => self.heat(name, offset, bytes),
            ([b"kind", ..], _) => Err(LineFault::Declaration),
            ([kind, at, size], 3) if kind != b"-" => {
                let (at, size) = (address(at)?, decimal(size)?);
                self.allocate(kind, at, size)
            }
            _ => Err(LineFault::Form),
        }
    }

    /// Finds or adds the kind of that name.
    fn kind(&mut self, name: &[u8]) -> Result<usize, LineFault> {
        if let Some(kind) = self.kind_of.get(name) {
            return Ok(*kind);
        }
        if name == b"-" || name == b"kind" || name.starts_with(b"#") {
            return Err(LineFault::reserved(name));
        }
        let text = str::from_utf8(name).map_err(|_| LineFault::not_text(name))?;
        let kind = self.kinds.len();
        self.kinds.push(TraceKind { name: text.into(), hot: None, allocations: 0, frees: 0 });
        self.kind_of.insert(name.into(), kind);
        Ok(kind)
    }

    fn shorten(&mut self, name: &[u8], word: &[u8]) -> Result<(), LineFault> {
        if word == b"-" || word == b"kind" || word.starts_with(b"#") {
            return Err(LineFault::reserved(word));
        }
        let kind = self.kind(name)?;
        let taken = *self.kind_of.entry(word.into()).or_insert(kind);
        if taken == kind { Ok(()) } else { Err(LineFault::taken(word, &self.kinds[taken].name)) }
    }

    fn heat(&mut self, name: &[u8], offset: &[u8], bytes: &[u8]) -> Result<(), LineFault> {
        let start = decimal(offset)?;
        let part = start..end_of(start, decimal(bytes)?)?;
        let kind = self.kind(name)?;
        let hot = self.kinds[kind].hot.get_or_insert_default();
        // An empty part declares the kind's hot bytes and adds none.
        if !part.is_empty() {
            hot.push(part);
            merge(hot);
        }
        Ok(())
    }

    fn allocate(&mut self, kind: &[u8], at: usize, size: usize) -> Result<(), LineFault> {
        let end = end_of(at, size.max(1))?;
        let kind = self.kind(kind)?;
        self.events += 1;
        while let Some((&start, &below)) = self.live.range(..end).next_back()
            && start + below.occupied() > at
        {
            self.overlaps += 1;
            self.end(start);
        }
        self.kinds[kind].allocations += 1;
        self.live.insert(at, Live { kind, size, born: self.events });
        self.live_bytes += size;
        if self.live_bytes > self.peak_bytes {
            (self.peak_event, self.peak_bytes) = (self.events, self.live_bytes);
            self.lost.clear();
        }
        Ok(())
    }

    fn free(&mut self, at: usize) {
        self.events += 1;
        match self.end(at) {
            Some(object) => self.kinds[object.kind].frees += 1,
            None => self.unknown_frees += 1,
        }
    }

    /// Ends the object that begins at `at`.
    fn end(&mut self, at: usize) -> Option<Live> {
        let object = self.live.remove(&at)?;
        self.live_bytes -= object.size;
        if object.born <= self.peak_event {
            self.lost.push(object.at(at));
        }
        Some(object)
    }

    fn finish(self) -> Result<Trace, TraceError> {
        let kept = self.live.iter().filter(|(_, object)| object.born <= self.peak_event);
        let mut objects = self.lost;
        objects.extend(kept.map(|(at, object)| object.at(*at)));
        objects.retain(|object| object.size > 0);
        objects.sort_unstable_by_key(|object| object.address);
        if objects.is_empty() {
            return Err(TraceError::Empty);
        }
        Ok(Trace {
            kinds: self.kinds,
            objects,
            events: self.events,
            peak_event: self.peak_event,
            peak_bytes: self.peak_bytes,
            unknown_frees: self.unknown_frees,
            overlaps: self.overlaps,
        })
    }
}
