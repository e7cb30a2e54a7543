//! The system's account of this process's memory: `/proc/self/smaps_rollup`, `/proc/self/smaps`,
//! `/proc/self/pagemap`, `/proc/meminfo` and the limits of its container. All functions know
//! nothing except on Linux.

use crate::host::proc::{meminfo, read};
use silvics_layout::{Frames, PagemapError, Survey};
use silvics_pool::{Region, SMALL_PAGE};
use std::fs::File;
use std::ops::Range;

/// Resident memory: of the process, or of some of its mappings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// Bytes that are backed by memory.
    pub bytes: usize,
    /// The bytes of those that are on huge pages.
    pub huge_bytes: usize,
}

impl Resident {
    /// The resident memory of the process now, if the system reports it.
    pub fn now() -> Option<Self> {
        parse_total(&std::fs::read_to_string("/proc/self/smaps_rollup").ok()?)
    }

    /// The memory added since `before`.
    pub fn since(self, before: Self) -> Self {
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            huge_bytes: self.huge_bytes.saturating_sub(before.huge_bytes),
        }
    }

    /// The share that is on huge pages. `None` if nothing is resident.
    pub fn huge_share(self) -> Option<f64> {
        (self.bytes > 0).then(|| (self.huge_bytes as f64 / self.bytes as f64).min(1.0))
    }

    fn add_line(&mut self, line: &str) {
        let mut words = line.split_ascii_whitespace();
        let (Some(name), Some(Ok(kib))) = (words.next(), words.next().map(str::parse::<usize>))
        else {
            return;
        };
        match name {
            "Rss:" => self.bytes += kib << 10,
            "AnonHugePages:" => self.huge_bytes += kib << 10,
            // Rss does not include it.
            "Private_Hugetlb:" | "Shared_Hugetlb:" => {
                self.bytes += kib << 10;
                self.huge_bytes += kib << 10;
            }
            _ => {}
        }
    }
}

/// The bytes that may still be allocated, if the system reports them: the available memory of the
/// machine, or the rest of the container's limit if that is less.
pub fn available() -> Option<usize> {
    let machine = meminfo("MemAvailable")?;
    let container = |file| read(&format!("/sys/fs/cgroup/memory.{file}"))?.parse::<usize>().ok();
    // Without a limit the file contains `max`, or does not exist.
    let left = container("max").zip(container("current"));
    Some(left.map_or(machine, |(most, taken)| machine.min(most.saturating_sub(taken))))
}

/// The mappings of the process, by ascending address.
pub struct Mappings(Vec<(Range<usize>, Resident)>);

impl Mappings {
    /// The present mappings, if the system reports them.
    pub fn now() -> Option<Self> {
        Some(Self::parse(&std::fs::read_to_string("/proc/self/smaps").ok()?))
    }

    fn parse(smaps: &str) -> Self {
        let mut mappings: Vec<(Range<usize>, Resident)> = Vec::new();
        for line in smaps.lines() {
            if let Some((start, end)) = mapping_header(line) {
                mappings.push((start..end, Resident::default()));
            } else if let Some((_, resident)) = mappings.last_mut() {
                resident.add_line(line);
            }
        }
        Self(mappings)
    }

    /// The resident memory of the mappings that hold some of `ranges`. The ranges are disjoint and
    /// in ascending order. A mapping may hold more than the ranges, because the system joins
    /// neighbours. Neighbours that are joined have the same settings, so the share of huge pages
    /// remains meaningful.
    pub fn holding(&self, ranges: &[Range<usize>]) -> Resident {
        let mut total = Resident::default();
        for (mapping, resident) in &self.0 {
            let first = ranges.partition_point(|range| range.end <= mapping.start);
            if ranges.get(first).is_some_and(|range| range.start < mapping.end) {
                total.bytes += resident.bytes;
                total.huge_bytes += resident.huge_bytes;
            }
        }
        total
    }
}

/// The mappings that hold `regions`: see [`Mappings::holding`].
pub fn of_regions(regions: &[Region]) -> Option<Resident> {
    let range = |region: &Region| {
        let start = region.start.as_ptr().addr();
        start..start + region.bytes
    };
    let mut ranges: Vec<Range<usize>> = regions.iter().map(range).collect();
    ranges.sort_unstable_by_key(|range| range.start);
    if ranges.is_empty() { None } else { Some(Mappings::now()?.holding(&ranges)) }
}

/// The frames of the pages on which this process's objects lie.
pub fn frames(survey: &Survey<'_>) -> Result<Frames, PagemapError> {
    survey.frames(File::open("/proc/self/pagemap").map_err(PagemapError::Io)?, page_bytes())
}

/// Bytes of the system's pages.
fn page_bytes() -> usize {
    #[cfg(unix)]
    {
        // SAFETY: takes a number and touches nothing.
        let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        if let Some(bytes) = usize::try_from(bytes).ok().filter(|bytes| bytes.is_power_of_two()) {
            return bytes;
        }
    }
    SMALL_PAGE
}

/// Start and length of the mappings that were advised to be on huge pages.
#[cfg(any(test, feature = "alloc-jemalloc"))]
pub fn advised_mappings() -> Vec<(usize, usize)> {
    parse_advised(&std::fs::read_to_string("/proc/self/smaps").unwrap_or_default())
}

#[cfg(any(test, feature = "alloc-jemalloc"))]
fn parse_advised(smaps: &str) -> Vec<(usize, usize)> {
    let mut advised = Vec::new();
    let mut mapping = None;
    for line in smaps.lines() {
        if let Some(header) = mapping_header(line) {
            mapping = Some(header);
        } else if let Some(flags) = line.strip_prefix("VmFlags:")
            && flags.split_ascii_whitespace().any(|flag| flag == "hg")
        {
            advised.extend(mapping.map(|(start, end)| (start, end - start)));
        }
    }
    advised
}

fn parse_total(rollup: &str) -> Option<Resident> {
    let mut total = Resident::default();
    let mut found = false;
    for line in rollup.lines() {
        found |= line.starts_with("Rss:");
        total.add_line(line);
    }
    found.then_some(total)
}

/// `7f0000000000-7f0000200000 rw-p …`
fn mapping_header(line: &str) -> Option<(usize, usize)> {
    let (start, end) = line.split_ascii_whitespace().next()?.split_once('-')?;
    let hex = |text| usize::from_str_radix(text, 16).ok();
    Some((hex(start)?, hex(end)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMAPS: &str = "\
7f0000000000-7f0000400000 rw-p 00000000 00:00 0 
Size:               4096 kB
Rss:                4096 kB
AnonHugePages:      2048 kB
Private_Hugetlb:       0 kB
VmFlags: rd wr mr mw me ac hg 
7f0000400000-7f0000800000 rw-p 00000000 00:00 0                          [anon: x]
Rss:                 100 kB
AnonHugePages:         0 kB
7f0000800000-7f0000a00000 rw-p 00000000 00:0f 12 /anon_hugepage (deleted)
Rss:                   0 kB
Private_Hugetlb:    2048 kB
";

    #[test]
    fn totals_and_ranges() {
        let total = parse_total(SMAPS).unwrap();
        assert_eq!(total.bytes, (4096 + 100 + 2048) << 10);
        assert_eq!(total.huge_bytes, 4096 << 10);
        assert_eq!(parse_total("Name: x\n"), None);

        let mappings = Mappings::parse(SMAPS);
        let holding = |start: usize, bytes| mappings.holding(&[0..4096, start..start + bytes]);
        let first = holding(0x7f00_0020_0000, 2 << 20);
        assert_eq!(first.bytes, 4096 << 10);
        assert_eq!(first.huge_share(), Some(0.5));
        assert_eq!(holding(0x7f00_0080_0000, 2 << 20).huge_share(), Some(1.0));
        assert_eq!(holding(0x7f00_0030_0000, 2 << 20).bytes, (4096 + 100) << 10, "both");
        assert_eq!(mappings.holding(&[]).huge_share(), None);
        assert_eq!(holding(0x7f00_00a0_0000, 4096).huge_share(), None, "behind the last");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn memory_of_this_process_has_frames_or_none_for_its_user() {
        let block = vec![1_u8; 1 << 20];
        let mut census = silvics_layout::Census::default();
        let kind = census.kind("block", None);
        census.add_sized(kind, block.as_ptr().addr(), block.len());
        let hash = silvics_layout::SetHash::Modulo;
        let sets = silvics_layout::Sets { line: 64, sets: 64, hash };
        let survey = census.survey(&sets);
        match frames(&survey) {
            Ok(frames) => {
                assert_eq!(survey.pages_absent(0, &frames), 0, "it was written to");
                // Pages have all of 64 sets, wherever they are.
                let covered = survey.coverage_physical(0, &sets, &frames);
                assert!((covered - 1.0).abs() < 1e-9, "{covered}");
            }
            Err(refused) => assert!(refused.to_string().starts_with("pagemap refused: ")),
        }
        let resident = Mappings::now().unwrap().holding(&survey.pages(0));
        assert!(resident.bytes >= block.len(), "{resident:?}");
    }

    #[test]
    fn advised_mappings_have_their_flag() {
        assert_eq!(parse_advised(SMAPS), [(0x7f00_0000_0000, 4 << 20)]);
        assert!(advised_mappings().len() < 10_000);
    }

    #[test]
    fn growth_is_what_was_added() {
        let at = |bytes, huge_bytes| Resident { bytes, huge_bytes };
        assert_eq!(at(10, 4).since(at(4, 2)), at(6, 2));
        assert_eq!(at(3, 0).since(at(4, 2)), at(0, 0));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_system_tells() {
        let before = Resident::now().unwrap();
        let block = vec![1_u8; 32 << 20];
        let grown = Resident::now().unwrap().since(before);
        assert!(grown.bytes >= 30 << 20, "{grown:?}");
        drop(block);
        let (available, all) = (available().unwrap(), meminfo("MemTotal").unwrap());
        assert!((1..all).contains(&available), "{available} of {all}");
    }
}
