//! The machine the results come from.

use crate::names::{self, Name};
use serde::{Deserialize, Serialize};
use std::fmt;

use crate::flags::units::{self, Bytes, plural};
use crate::host::alloc;
use crate::host::proc::{cpuinfo, meminfo, read};

/// The facts about a machine that a reader needs to interpret a figure. A field is null if the
/// system does not report it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Machine {
    /// Model name of the processor.
    pub cpu: Option<String>,
    /// Cores this process may use.
    pub cores: usize,
    /// Caches of the first core, from the nearest.
    pub caches: Vec<Cache>,
    /// Bytes of memory.
    pub memory_bytes: Option<usize>,
    /// Operating system.
    #[serde(deserialize_with = "names::one")]
    pub os: Name,
    /// Its release.
    pub kernel: Option<String>,
    /// Instruction set.
    #[serde(deserialize_with = "names::one")]
    pub arch: Name,
    /// The mode of transparent huge pages.
    pub thp: Option<String>,
    /// 2 MiB pages reserved for hugetlb.
    pub hugetlb_pages: Option<usize>,
    /// The clock of the system.
    pub clock: Option<String>,
    /// The global allocator of this command.
    #[serde(deserialize_with = "names::one")]
    pub allocator: Name,
    /// The build of this command: `release`, or `debug` if it checks more and is slower.
    #[serde(default = "release", deserialize_with = "names::one")]
    pub build: Name,
    /// The version of this command.
    #[serde(deserialize_with = "names::one")]
    pub silvics: Name,
    /// The commit that it was built from, if its build had it in `SILVICS_COMMIT`.
    #[serde(deserialize_with = "names::maybe")]
    pub commit: Option<Name>,
}

/// A cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Cache {
    /// From 1.
    pub level: u32,
    /// Data, Instruction or Unified.
    #[serde(rename = "type")]
    pub kind: String,
    /// Its size.
    pub bytes: usize,
}

fn release() -> Name {
    "release"
}

impl Machine {
    /// This one.
    pub fn this(cores: usize) -> Self {
        Self {
            cpu: cpu(),
            cores,
            caches: caches(),
            memory_bytes: meminfo("MemTotal"),
            os: std::env::consts::OS,
            kernel: read("/proc/sys/kernel/osrelease"),
            arch: std::env::consts::ARCH,
            thp: read("/sys/kernel/mm/transparent_hugepage/enabled").and_then(|modes| {
                let (_, chosen) = modes.split_once('[')?;
                Some(chosen.split_once(']')?.0.into())
            }),
            hugetlb_pages: read("/proc/sys/vm/nr_hugepages").and_then(|text| text.parse().ok()),
            clock: read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
            allocator: alloc::name(),
            build: if cfg!(debug_assertions) { "debug" } else { release() },
            silvics: env!("CARGO_PKG_VERSION"),
            commit: option_env!("SILVICS_COMMIT"),
        }
    }
}

fn cpu() -> Option<String> {
    // Arm kernels give numbers instead of a name.
    cpuinfo("model name").or_else(|| {
        let part = cpuinfo("CPU part")?;
        let implementer = cpuinfo("CPU implementer")?;
        Some(format!("implementer {implementer} part {part}"))
    })
}

fn caches() -> Vec<Cache> {
    let cache = |index: usize| {
        let folder = format!("/sys/devices/system/cpu/cpu0/cache/index{index}");
        let size = read(&format!("{folder}/size"))?;
        Some(Cache {
            level: read(&format!("{folder}/level"))?.parse().ok()?,
            kind: read(&format!("{folder}/type"))?,
            bytes: units::parse_bytes(&size)?,
        })
    };
    (0..).map_while(cache).collect()
}

impl fmt::Display for Cache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "L{} {} {}", self.level, self.kind.to_lowercase(), Bytes(self.bytes))
    }
}

impl fmt::Display for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.cpu.as_deref().unwrap_or(self.arch))?;
        write!(f, ", {} core{}", self.cores, plural(self.cores))?;
        for cache in self.caches.iter().filter(|cache| cache.kind != "Instruction") {
            write!(f, ", L{} {}", cache.level, Bytes(cache.bytes))?;
        }
        if let Some(bytes) = self.memory_bytes {
            write!(f, ", {} memory", Bytes(bytes))?;
        }
        write!(f, ", {}", self.os)?;
        if let Some(kernel) = &self.kernel {
            write!(f, " {kernel}")?;
        }
        if let Some(thp) = &self.thp {
            write!(f, ", thp {thp}")?;
        }
        write!(f, ", {}", self.allocator)?;
        if self.build == release() { Ok(()) } else { write!(f, ", {} build", self.build) }
    }
}
