//! The repository and the machine.

use crate::fault::{Fault, fault};
use std::fs;
use std::process::Command;
use std::time::Duration;

/// The output of git, without its last line break. `None` if git fails.
pub(crate) fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end().to_owned())
}

/// The commit that is checked out.
pub(crate) fn commit() -> Result<String, Fault> {
    git(&["rev-parse", "HEAD"]).ok_or_else(|| Fault("git reports no commit here".into()))
}

/// Refuses changes that no commit has. Pages and data do not count: the runs write them.
pub(crate) fn refuse_changes(remedy: &str) -> Result<(), Fault> {
    let changes = git(&["status", "--porcelain", "--", ".", ":!docs", ":!README.md"]);
    match changes.as_deref() {
        Some("") => Ok(()),
        Some(changes) => {
            let first = changes.lines().next().unwrap_or_default().trim();
            fault(format!("the tree has changes that are not committed (`{first}`): {remedy}"))
        }
        None => fault("git reports no state of this tree"),
    }
}

/// The day, in UTC.
pub(crate) fn date() -> String {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    output.map_or(String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// The machine in a line: cores, caches, memory, system, huge pages.
pub(crate) fn machine() -> String {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpus = read("/proc/cpuinfo");
    let cpu = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1));
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut parts = vec![format!("{cores} cores of {}", cpu.unwrap_or("an unknown processor"))];
    for (level, index) in [(2, 2), (3, 3)] {
        let size = read(&format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size"));
        if let Some(size) = size.strip_suffix('K').and_then(|size| size.parse::<u64>().ok()) {
            let size =
                if size < 1024 { format!("{size} KiB") } else { format!("{} MiB", size >> 10) };
            parts.push(format!("L{level} {size}"));
        }
    }
    let memory = read("/proc/meminfo");
    let kib = memory.lines().find_map(|line| {
        line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse::<f64>().ok()
    });
    parts.extend(kib.map(|kib| format!("{:.1} GiB", kib / f64::from(1 << 20))));
    let kernel = read("/proc/sys/kernel/osrelease");
    let kernel = kernel.split('-').next().unwrap_or_default();
    parts.push(format!(
        "{} {kernel}",
        if cfg!(target_os = "linux") { "Linux" } else { std::env::consts::OS }
    ));
    let thp = read("/sys/kernel/mm/transparent_hugepage/enabled");
    let chosen = thp.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    parts.extend(chosen.map(|(chosen, _)| format!("transparent huge pages: {chosen}")));
    parts.join(", ")
}

/// The share of the machine that is in use, over half a second. 0 if the system does not report it.
pub(crate) fn busy() -> f64 {
    let Some((idle, all)) = ticks() else { return 0.0 };
    std::thread::sleep(Duration::from_millis(500));
    let Some((later, sum)) = ticks() else { return 0.0 };
    if sum == all { 0.0 } else { 1.0 - (later - idle) as f64 / (sum - all) as f64 }
}

/// The idle ticks and all ticks since the system started.
fn ticks() -> Option<(u64, u64)> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let line = stat.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> = line.split_whitespace().flat_map(str::parse).collect();
    Some((ticks.get(3)? + ticks.get(4)?, ticks.iter().take(8).sum()))
}
