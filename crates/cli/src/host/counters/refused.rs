//! Why events are not counted, in words.

use super::{Event, Source};
use std::io;

/// Why an event is not counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// No event of this processor stands for it, as far as we or the kernel know.
    NoEvent,
    /// `kernel.perf_event_paranoid` has this value, which forbids it.
    Paranoid(i64),
    /// Something else forbids it.
    Forbidden,
    /// There is no file descriptor left.
    Files,
    /// Others have the counters that it needs.
    Busy,
    /// It was opened and never got onto a counter.
    NeverRan,
    /// There are no counters at all on this system.
    NoSystem,
    Other(String),
}

impl Cause {
    /// Reads the error of an event that was to be opened, started or read.
    pub(super) fn of(error: &io::Error, event: Event, source: &dyn Source) -> Self {
        // The highest level at which user mode may count itself. The kernel's own events need one
        // level less.
        let allowed = if event == Event::ContextSwitches { 1 } else { 2 };
        match error.kind() {
            _ if out_of_files(error) => Self::Files,
            // The kernel returns EINVAL for cache events that its table rules out.
            io::ErrorKind::NotFound | io::ErrorKind::InvalidInput => Self::NoEvent,
            io::ErrorKind::PermissionDenied => match source.paranoid() {
                Some(value) if value > allowed => Self::Paranoid(value),
                _ => Self::Forbidden,
            },
            io::ErrorKind::ResourceBusy => Self::Busy,
            io::ErrorKind::Unsupported => Self::NoSystem,
            io::ErrorKind::UnexpectedEof => Self::NeverRan,
            _ => Self::Other(error.to_string()),
        }
    }

    /// The reason, and the remedy. `all` says whether no event of the processor is available.
    fn words(&self, all: bool) -> String {
        let words = match self {
            Self::NoEvent if all => {
                "this machine, probably virtual, has no such counters: measure on a bare machine, or let \
                 the hypervisor pass its counters on"
            }
            Self::NoEvent => {
                "no event of this processor is known for them: choose one from its manual and count it \
                 with perf stat -e rNNNN"
            }
            Self::Paranoid(value) => {
                return format!(
                    "kernel.perf_event_paranoid is {value}, which forbids them: set it by sudo sysctl \
                     kernel.perf_event_paranoid=1"
                );
            }
            Self::Forbidden => {
                "the system forbids them, as containers do: grant CAP_PERFMON, and let the seccomp \
                 profile pass perf_event_open"
            }
            Self::Files => {
                "each thread needs a file per event, and there are too many open files: raise the limit \
                 with ulimit -n, or take fewer threads"
            }
            Self::Busy => "another program has the counters to itself: end it and repeat",
            Self::NeverRan => {
                "they never got onto a counter: end other programs that count, and set \
                 kernel.nmi_watchdog to 0"
            }
            Self::NoSystem => {
                "this system has no perf_event_open: measure on Linux with perf events in its kernel"
            }
            Self::Other(error) => {
                return format!("the system says `{error}`: perf stat -e cycles true may say more");
            }
        };
        words.into()
    }
}

/// Whether an error is that of too many open files.
#[cfg(unix)]
fn out_of_files(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

/// Whether an error says that too many files are open. This system opens none.
#[cfg(not(unix))]
fn out_of_files(_: &io::Error) -> bool {
    false
}

/// Events that are not counted, each with its cause.
#[derive(Debug, Default)]
pub(super) struct Refused(Vec<(Event, Cause)>);

impl Refused {
    /// Adds an event. Its first cause stays.
    pub(super) fn add(&mut self, event: Event, cause: Cause) {
        if self.0.iter().all(|(known, _)| *known != event) {
            self.0.push((event, cause));
        }
    }

    /// Which, why, and what helps; events of the same cause together.
    pub(super) fn sentence(&self) -> Option<String> {
        let mut known: Vec<&(Event, Cause)> = self.0.iter().collect();
        known.sort_by_key(|(event, _)| *event);
        let hardware =
            known.iter().filter(|(event, cause)| event.is_hardware() && *cause == Cause::NoEvent);
        let all = hardware.count() == Event::ALL.iter().filter(|e| e.is_hardware()).count();
        let mut parts = Vec::new();
        while let Some((_, cause)) = known.first() {
            let same = known.iter().filter(|(_, other)| other == cause);
            let names: Vec<&str> = same.map(|(event, _)| event.name()).collect();
            parts.push(format!("no {}: {}", names.join(", "), cause.words(all)));
            known.retain(|(_, other)| other != cause);
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}
