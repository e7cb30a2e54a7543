//! Texts and figures from the files in which the system describes itself.

use std::fs;

/// The text of a file, without the space around it.
pub fn read(path: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// The value of the first `name : value` line of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| key.trim() == name)?;
    Some(value.trim().to_owned())
}

/// The bytes that `/proc/meminfo` has under a name.
pub fn meminfo(name: &str) -> Option<usize> {
    let text = field("/proc/meminfo", name)?;
    let kib: usize = text.strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

/// The text that `/proc/cpuinfo` has under a name, for the first processor.
pub fn cpuinfo(name: &str) -> Option<String> {
    field("/proc/cpuinfo", name)
}
