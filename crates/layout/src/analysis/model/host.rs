//! The machine that this runs on, as its processor or its system describes it.

use super::machine::{Cache, Inclusion, Machine, MachineError, Tlb};
use super::presets;
use crate::SetHash;
use std::fs;
use std::path::Path;

/// A data cache found on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) level: usize,
    pub(super) bytes: usize,
    pub(super) ways: usize,
    pub(super) line: usize,
    pub(super) inclusion: Inclusion,
}

/// The machine as CPUID describes it, or otherwise as Linux does.
pub(super) fn machine() -> Result<Machine, MachineError> {
    #[cfg(target_arch = "x86_64")]
    if let Some(machine) = super::cpuid::machine(&raw_cpuid::CpuId::new()) {
        return Ok(machine);
    }
    by_system(Path::new("/sys/devices/system/cpu/cpu0/cache")).ok_or(MachineError::Host)
}

/// The machine as Linux describes it. Linux reports only sizes. The rest is taken from
/// [`presets::GRAVITON3`], the server core that is most common among those without CPUID.
fn by_system(folder: &Path) -> Option<Machine> {
    let mut caches = Vec::new();
    for entry in fs::read_dir(folder).ok()? {
        let index = entry.ok()?.path();
        let field = |name| Some(fs::read_to_string(index.join(name)).ok()?.trim().to_owned());
        if !matches!(field("type").as_deref(), Some("Data" | "Unified")) {
            continue;
        }
        let level = field("level")?.parse().ok()?;
        caches.push(Found {
            level,
            bytes: field("size")?.strip_suffix('K')?.parse::<usize>().ok()?.checked_mul(1024)?,
            ways: field("ways_of_associativity")?.parse().ok()?,
            line: field("coherency_line_size")?.parse().ok()?,
            inclusion: match level {
                2 => presets::GRAVITON3.l2.inclusion,
                3 => presets::GRAVITON3.llc.inclusion,
                _ => Inclusion::Neither,
            },
        });
    }
    let source = "the system's description of its caches; inclusion and TLB as in graviton3";
    assemble(&caches, source, false, presets::GRAVITON3.tlb)
}

/// Makes a machine of the caches found, if they are three valid levels. No source reports hash
/// functions, so all caches map lines to sets by modulo.
pub(super) fn assemble(
    caches: &[Found],
    source: &'static str,
    adjacent_line: bool,
    tlb: [Tlb; 2],
) -> Option<Machine> {
    let at = |level| caches.iter().find(|cache| cache.level == level);
    let cache = |level| {
        let Found { bytes, ways, inclusion, .. } = *at(level)?;
        Some(Cache { bytes, ways, hash: SetHash::Modulo, inclusion })
    };
    let line = at(1)?.line;
    let machine = Machine {
        name: "host",
        source,
        line,
        l1: cache(1)?,
        l2: cache(2)?,
        llc: cache(3)?,
        adjacent_line,
        tlb,
    };
    (caches.iter().all(|cache| cache.line == line) && machine.check().is_ok()).then_some(machine)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Model;

    /// A folder like Linux's that describes these caches: level, type, size, ways.
    fn described(caches: &[(&str, &str, &str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("uevent"), "").unwrap();
        for (at, (level, kind, size, ways)) in caches.iter().enumerate() {
            let index = folder.path().join(format!("index{at}"));
            fs::create_dir(&index).unwrap();
            for (name, text) in [
                ("level", level),
                ("type", kind),
                ("size", size),
                ("ways_of_associativity", ways),
                ("coherency_line_size", &"64"),
            ] {
                fs::write(index.join(name), format!("{text}\n")).unwrap();
            }
        }
        folder
    }

    const L1: [(&str, &str, &str, &str); 2] =
        [("1", "Instruction", "32K", "2"), ("1", "Data", "64K", "4")];

    #[test]
    fn a_system_tells_its_caches() {
        let [l1i, l1d] = L1;
        let (l2, llc) = (("2", "Unified", "1024K", "8"), ("3", "Unified", "32768K", "16"));
        let machine = by_system(described(&[l1i, l1d, l2, llc]).path()).unwrap();
        let graviton3 = presets::GRAVITON3;
        assert_eq!((machine.l1, machine.l2), (graviton3.l1, graviton3.l2));
        assert_eq!(machine.llc, Cache { hash: SetHash::Modulo, ..graviton3.llc });
        assert_eq!((machine.name, machine.line, machine.tlb), ("host", 64, graviton3.tlb));
    }

    #[test]
    fn what_a_system_does_not_tell_is_not_guessed() {
        let [l1i, l1d] = L1;
        let (l2, llc) = (("2", "Unified", "1024K", "8"), ("3", "Unified", "32768K", "16"));
        for caches in [
            &[l1i, l1d, l2][..],
            &[l1i, l2, llc],
            &[l1d, l2, ("3", "Unified", "32768K", "0")],
            &[l1d, l2, ("3", "Unified", "32768", "16")],
            &[l1d, l2, ("3", "Unified", "32768K", "7")],
        ] {
            assert_eq!(by_system(described(caches).path()), None, "{caches:?}");
        }
        assert_eq!(by_system(Path::new("/no such folder")), None);
        let folder = described(&[l1d, l2, llc]);
        assert!(by_system(folder.path()).is_some());
        fs::write(folder.path().join("index2/coherency_line_size"), "128\n").unwrap();
        assert_eq!(by_system(folder.path()), None);
    }

    #[test]
    fn this_machine_can_be_modelled_or_says_that_it_does_not_tell() {
        match Machine::named("host") {
            Ok(machine) => assert!(machine.name == "host" && Model::new(&machine).is_ok()),
            Err(error) => assert_eq!(
                error.to_string(),
                "neither the processor nor the system describes three cache levels of this \
                 machine: choose one by name, such as haswell"
            ),
        }
    }
}
