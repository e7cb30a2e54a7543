//! The counters of Linux.
//!
//! # Which event stands for what
//! Cycles, instructions and dTLB misses are the kernel's events of these names everywhere.
//!
//! * LLC misses. Intel: `cache-misses`, which are the architecture's last-level misses (the
//!   kernel's `LLC-load-misses` need a register that virtual machines lack). AMD from Zen 2 on:
//!   demand fills from memory, because the kernel's `cache-misses` count the L2 there. Elsewhere:
//!   `LLC-load-misses`.
//! * Page walks of loads. Intel: `DTLB_LOAD_MISSES.WALK_COMPLETED`, whose code differs by
//!   generation. AMD from Zen on: L1 dTLB misses that also miss the L2 TLB. Arm: `dtlb_walk`, if
//!   the kernel lists it. Elsewhere there is none, because a guess would count another event.
//!
//! From Skylake on, and on AMD, the kernel counts only those dTLB misses that walk. Both figures
//! are then equal.
//!
//! Sources: Linux, `arch/x86/events/{intel,amd}/core.c` and `tools/perf/pmu-events/arch`; Arm
//! Architecture Reference Manual, D12.12 (common events).

use super::{Event, Group, Reading, Source};
use crate::host::proc;
use perf_event::events::{Cache, CacheId, CacheOp, CacheResult, Hardware, Raw, Software};
use perf_event::{Builder, Counter};
use std::fmt;
use std::fs;
use std::io;

/// The facts about a processor on which the choice of events depends.
#[derive(Clone, Debug, Default)]
struct Processor {
    vendor: String,
    /// The name that the kernel's driver of an Intel processor has for it.
    driver: String,
    /// The family of an AMD processor.
    family: u32,
    model: u32,
    /// Whether the kernel lists Arm's event of page walks.
    lists_dtlb_walk: bool,
}

/// The folder in which the kernel lists its counters.
const DEVICES: &str = "/sys/bus/event_source/devices";

impl Processor {
    fn this() -> Self {
        let number = |name| proc::cpuinfo(name)?.parse().ok();
        // If cores differ, events go to the larger ones by default.
        let mut drivers = ["cpu", "cpu_core"].into_iter();
        let driver = drivers.find_map(|cpu| proc::read(&format!("{DEVICES}/{cpu}/caps/pmu_name")));
        let devices = fs::read_dir(DEVICES).into_iter().flatten().flatten();
        Self {
            vendor: proc::cpuinfo("vendor_id").unwrap_or_default(),
            driver: driver.unwrap_or_default(),
            family: number("cpu family").unwrap_or_default(),
            model: number("model").unwrap_or_default(),
            lists_dtlb_walk: devices
                .into_iter()
                .any(|device| device.path().join("events/dtlb_walk").exists()),
        }
    }

    fn llc_misses(&self) -> Option<Choice> {
        const LOADS: Cache =
            Cache { which: CacheId::LL, operation: CacheOp::READ, result: CacheResult::MISS };
        match self.vendor.as_str() {
            "GenuineIntel" => {
                Some(Choice::of("cache-misses:u", Builder::new(Hardware::CACHE_MISSES)))
            }
            "AuthenticAMD" => {
                let zen_2_on = (self.family == 0x17 && self.model >= 0x30) || self.family > 0x17;
                zen_2_on.then(|| Choice::raw("ls_dmnd_fills_from_sys, memory", 0x4843))
            }
            _ => Some(Choice::of("LLC-load-misses:u", Builder::new(LOADS))),
        }
    }

    fn page_walks(&self) -> Option<Choice> {
        let completed = "dtlb_load_misses.walk_completed";
        match self.vendor.as_str() {
            "GenuineIntel" => match self.driver.as_str() {
                "haswell" | "broadwell" | "skylake" | "icelake" => {
                    Some(Choice::raw(completed, 0x0e08))
                }
                "sapphire_rapids" | "granite_rapids" | "alderlake_hybrid" | "meteorlake_hybrid" => {
                    Some(Choice::raw(completed, 0x0e12))
                }
                _ => None,
            },
            "AuthenticAMD" => (self.family >= 0x17)
                .then(|| Choice::raw("ls_l1_d_tlb_miss, L2 TLB missed", 0xf045)),
            _ => self.lists_dtlb_walk.then(|| Choice::raw("dtlb_walk", 0x34)),
        }
    }

    fn choice(&self, event: Event) -> Option<Choice> {
        const DTLB: Cache =
            Cache { which: CacheId::DTLB, operation: CacheOp::READ, result: CacheResult::MISS };
        Some(match event {
            Event::Cycles => Choice::of("cycles:u", Builder::new(Hardware::CPU_CYCLES)),
            Event::Instructions => {
                Choice::of("instructions:u", Builder::new(Hardware::INSTRUCTIONS))
            }
            Event::LlcMisses => return self.llc_misses(),
            Event::DtlbMisses => Choice::of("dTLB-load-misses:u", Builder::new(DTLB)),
            Event::PageWalks => return self.page_walks(),
            Event::PageFaults => Choice::of("page-faults:u", Builder::new(Software::PAGE_FAULTS)),
            Event::ContextSwitches => {
                let mut builder = Builder::new(Software::CONTEXT_SWITCHES);
                builder.include_kernel(); // where they happen
                Choice::of("context-switches", builder)
            }
        })
    }
}

/// The system's event that stands for an [`Event`]. It counts user mode of the calling thread,
/// unless the builder says otherwise.
struct Choice {
    name: String,
    builder: Builder<'static>,
}

impl Choice {
    fn of(name: &str, builder: Builder<'static>) -> Self {
        Self { name: name.into(), builder }
    }

    fn raw(name: &str, code: u64) -> Self {
        Self { name: format!("r{code:04x}:u ({name})"), builder: Builder::new(Raw::new(code)) }
    }
}

/// The events of this system.
pub(super) struct System {
    choices: Vec<(Event, Choice)>,
}

impl System {
    pub(super) fn new() -> Self {
        let processor = Processor::this();
        let choice = |event| Some((event, processor.choice(event)?));
        Self { choices: Event::ALL.into_iter().filter_map(choice).collect() }
    }

    fn choice(&self, event: Event) -> Option<&Choice> {
        self.choices.iter().find_map(|(known, choice)| (*known == event).then_some(choice))
    }
}

impl fmt::Debug for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.choices.iter().map(|(event, choice)| (event.name(), &choice.name));
        f.debug_map().entries(names).finish()
    }
}

impl Source for System {
    fn used(&self, event: Event) -> Option<String> {
        Some(self.choice(event)?.name.clone())
    }

    fn open(&self, events: &[Event]) -> io::Result<Box<dyn Group>> {
        let mut counters: Vec<Counter> = Vec::with_capacity(events.len());
        for &event in events {
            let choice = self.choice(event).ok_or(io::ErrorKind::NotFound)?;
            let counter = match counters.first_mut() {
                None => choice.builder.build()?,
                Some(leader) => choice.builder.build_with_group(leader)?,
            };
            counters.push(counter);
        }
        Ok(Box::new(Open(counters)))
    }

    fn paranoid(&self) -> Option<i64> {
        proc::read("/proc/sys/kernel/perf_event_paranoid")?.parse().ok()
    }
}

/// A group; its first counter leads it.
struct Open(Vec<Counter>);

impl Group for Open {
    fn start(&mut self) -> io::Result<()> {
        self.0.first_mut().map_or(Ok(()), Counter::enable_group)
    }

    fn stop(&mut self) -> io::Result<()> {
        self.0.first_mut().map_or(Ok(()), Counter::disable_group)
    }

    fn read(&mut self) -> io::Result<Vec<Reading>> {
        let read = |counter: &mut Counter| {
            let read = counter.read_count_and_time()?;
            let (enabled, running) = (read.time_enabled, read.time_running);
            Ok(Reading { count: read.count, enabled, running })
        };
        self.0.iter_mut().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::counters::{Counters, PerOp};

    fn used(processor: &Processor, event: Event) -> Option<String> {
        Some(processor.choice(event)?.name)
    }

    /// Against `virtual-memory.json` and `cache.json` of these processors in Linux.
    #[test]
    fn events_are_those_of_the_processor() {
        let intel = |driver: &str| Processor {
            vendor: "GenuineIntel".into(),
            driver: driver.into(),
            ..Processor::default()
        };
        let amd = |family, model| Processor {
            vendor: "AuthenticAMD".into(),
            family,
            model,
            ..Processor::default()
        };
        let code = |processor: &Processor, event| {
            used(processor, event).map(|name| name.split(':').next().unwrap_or_default().to_owned())
        };
        for (processor, llc, walks) in [
            (intel("skylake"), Some("cache-misses"), Some("r0e08")),
            (intel("sapphire_rapids"), Some("cache-misses"), Some("r0e12")),
            (intel("lunarlake_hybrid"), Some("cache-misses"), None),
            (intel(""), Some("cache-misses"), None),
            (amd(0x17, 0x01), None, Some("rf045")),
            (amd(0x17, 0x31), Some("r4843"), Some("rf045")),
            (amd(0x19, 0x11), Some("r4843"), Some("rf045")),
            (amd(0x15, 0x30), None, None),
            (Processor::default(), Some("LLC-load-misses"), None),
            (
                Processor { lists_dtlb_walk: true, ..Processor::default() },
                Some("LLC-load-misses"),
                Some("r0034"),
            ),
        ] {
            let found = (code(&processor, Event::LlcMisses), code(&processor, Event::PageWalks));
            assert_eq!((found.0.as_deref(), found.1.as_deref()), (llc, walks), "{processor:?}");
            assert_eq!(used(&processor, Event::Cycles).as_deref(), Some("cycles:u"));
        }
    }

    /// The system's own counts, where this process may have them.
    #[test]
    fn page_faults_and_context_switches_are_those_that_were_made() {
        const PAGES: usize = 4096;
        const NAPS: usize = 8;
        let counters = Counters::of_this_system();
        // SAFETY: a new mapping of anonymous memory, wherever there is room.
        let pages = unsafe {
            let (rights, kind) =
                (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANON);
            libc::mmap(std::ptr::null_mut(), PAGES << 12, rights, kind, -1, 0)
        };
        assert_ne!(pages, libc::MAP_FAILED);
        // SAFETY: the mapping above; small pages, so that there is a fault for each.
        unsafe { libc::madvise(pages, PAGES << 12, libc::MADV_NOHUGEPAGE) };
        let mut open = counters.open();
        open.start();
        for page in 0..PAGES {
            // SAFETY: inside the mapping above, which is ours alone.
            unsafe { pages.cast::<u8>().add(page << 12).write_volatile(1) };
        }
        for _ in 0..NAPS {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let counts = open.stop();
        // SAFETY: the mapping above, which nothing refers to any more.
        unsafe { libc::munmap(pages, PAGES << 12) };

        let per_op = PerOp::of(std::iter::once((counts, 1))).unwrap_or_default();
        let refused = counters.tell().counters_refused.unwrap_or_default();
        for (event, least) in [(Event::PageFaults, PAGES), (Event::ContextSwitches, NAPS)] {
            match per_op.get(event) {
                // The rest of this thread's work causes a page fault now and then.
                Some(count) => assert!(
                    (least as f64..least as f64 + 200.0).contains(&count),
                    "{count} {event:?}, of which {least} were made"
                ),
                None => assert!(refused.contains(event.name()), "{event:?}: {refused}"),
            }
        }
        for event in Event::ALL.into_iter().filter(|event| event.is_hardware()) {
            assert_eq!(per_op.get(event).is_none(), refused.contains(event.name()), "{refused}");
        }
    }
}
