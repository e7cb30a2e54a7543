//! Reports of wrong histories.

use super::call::{Call, History};
use crate::linearizable::BadCall;
use std::fmt;

/// The calls of a history that cannot have these answers, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// The reason.
    pub reason: String,
    /// The calls, in the order of their starts.
    pub calls: Vec<BadCall>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.reason)?;
        for BadCall { thread, start, end, call } in &self.calls {
            let end = end.map_or("…".into(), |end| end.to_string());
            writeln!(f, "  {start:>8} {end:>8}  thread {thread}: {call}")?;
        }
        f.write_str("  (stamps before and after each call)")
    }
}

/// Makes reports.
pub(super) trait Wrongs {
    /// The report with these calls, which are indices.
    fn wrong(&self, reason: impl Into<String>, events: impl IntoIterator<Item = usize>) -> Wrong;

    /// The call that has begun the snapshot of a reader, if the reader is one.
    fn begun(&self, reader: usize) -> Option<usize>;
}

impl Wrongs for History {
    fn wrong(&self, reason: impl Into<String>, events: impl IntoIterator<Item = usize>) -> Wrong {
        let mut events: Vec<usize> = events.into_iter().collect();
        events.sort_unstable_by_key(|&event| (self.events[event].start, event));
        events.dedup();
        let first = events.first().map_or(0, |&event| self.events[event].start);
        let call = |event: usize| {
            let of = &self.events[event];
            BadCall {
                thread: of.thread,
                start: of.start - first,
                end: Some(of.end - first),
                call: of.call.to_string(),
            }
        };
        Wrong { reason: reason.into(), calls: events.into_iter().map(call).collect() }
    }

    fn begun(&self, reader: usize) -> Option<usize> {
        let (Call::Read { at, through: true, .. } | Call::Range { at, through: true, .. }) =
            self.events[reader].call
        else {
            return None;
        };
        let before = self.events[reader].start;
        let begins = |call: &Call| matches!(call, Call::Snapshot { answer: Ok(n), .. } if *n == at);
        let calls = self.events.iter().enumerate();
        let calls = calls.filter(|(_, of)| of.end <= before && begins(&of.call));
        calls.max_by_key(|(_, of)| of.end).map(|(event, _)| event)
    }
}
