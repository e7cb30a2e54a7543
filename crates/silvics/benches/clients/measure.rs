//! The memory of this process, and times.

use std::fs;
use std::time::Instant;

/// The figures of a case by name: bytes, or nanoseconds.
pub(crate) type Figures = Vec<(String, f64)>;

/// Whether this system reports the memory of a process as this program reads it.
pub(crate) fn reports_memory() -> bool {
    fs::exists("/proc/self/smaps_rollup").unwrap_or(false)
}

fn kib(path: &str, name: &str) -> f64 {
    let text = fs::read_to_string(path).expect("this is Linux");
    let line = text.lines().find_map(|line| line.strip_prefix(name)).expect("it has the line");
    let kib = line.trim_start_matches(':').trim().trim_end_matches("kB").trim();
    kib.parse::<f64>().expect("a number") * 1024.0
}

/// The resident bytes. The page tables are read, so the figure is exact.
pub(crate) fn resident() -> f64 {
    kib("/proc/self/smaps_rollup", "Rss")
}

/// The resident bytes that remain when malloc has returned its free memory to the system.
pub(crate) fn resident_trimmed() -> f64 {
    #[cfg(target_env = "gnu")]
    // SAFETY: the function takes the locks of malloc, and has no other requirement.
    unsafe {
        libc::malloc_trim(0);
    }
    resident()
}

/// The most bytes that were resident so far.
pub(crate) fn peak() -> f64 {
    kib("/proc/self/status", "VmHWM")
}

/// The result of a call, and its nanoseconds.
pub(crate) fn timed<R>(call: impl FnOnce() -> R) -> (R, f64) {
    let start = Instant::now();
    let result = call();
    (result, start.elapsed().as_nanos() as f64)
}

/// The middle one of the numbers.
pub(crate) fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// Names figures.
pub(crate) fn named<const N: usize>(figures: [(&str, f64); N]) -> Figures {
    figures.map(|(name, figure)| (name.to_owned(), figure)).into()
}
