//! Reads at a version: each must find the state that the writes up to its number have left.

use super::call::{Call, Found, shown};
use super::report::{Wrong, Wrongs};
use super::written::{Entry, Written};

/// A key that a read has found, with the number of its version if the read returns that.
#[derive(Clone, Copy)]
struct Got {
    key: u32,
    number: Option<u64>,
    value: Option<u64>,
}

impl Got {
    fn of(key: u32, found: Found) -> Self {
        Self { key, number: found.map(|(number, _)| number), value: found.map(|(_, value)| value) }
    }

    fn is(self, found: Found) -> bool {
        self.value == found.map(|(_, value)| value)
            && (self.number.is_none() || self.number == found.map(|(number, _)| number))
    }
}

impl Written<'_> {
    /// Checks all reads at a version.
    pub(super) fn reads(&self) -> Result<(), Wrong> {
        (0..self.history.events.len()).try_for_each(|event| {
            let Some((at, got)) = self.read(event) else { return Ok(()) };
            match got.into_iter().find(|got| !got.is(self.seen(got.key, at))) {
                Some(got) => Err(self.misread(event, at, got)),
                None => Ok(()),
            }
        })
    }

    /// The number and the keys of a read that returned an answer.
    fn read(&self, event: usize) -> Option<(u64, Vec<Got>)> {
        match &self.history.events[event].call {
            Call::Read { at, key, found: Ok(found), .. } => {
                Some((*at, vec![Got::of(*key, *found)]))
            }
            Call::Range { at, keys, found: Ok(found), .. } => {
                let mut rest = found.iter().peekable();
                let state = |key| {
                    let value = rest.next_if(|(found, _)| *found == key).map(|(_, value)| *value);
                    Got { key, number: None, value }
                };
                let mut got: Vec<Got> = (keys.0..=keys.1).map(state).collect();
                // An entry out of order, or outside of the range, is one too many.
                got.extend(rest.map(|&(key, _)| Got { key, number: None, value: Some(u64::MAX) }));
                Some((*at, got))
            }
            _ => None,
        }
    }

    /// The report of a read that has found another version than it must.
    fn misread(&self, event: usize, at: u64, got: Got) -> Wrong {
        let key = got.key;
        let wanted = self.at(key, at);
        let is_got = |entry: &&Entry| {
            got.value.is_some()
                && entry.value == got.value
                && got.number.is_none_or(|number| entry.number == number)
        };
        let source = self.of_key(key).iter().find(is_got);
        let (what, other) = self.reason(event, at, got, source);
        let state = shown(self.seen(key, at));
        let reason = format!("{what}: at version {at}, key {key} is {state}");
        let calls = [wanted, source].into_iter().flatten().map(|entry| entry.event);
        let begun = self.history.begun(event);
        self.history.wrong(reason, calls.chain(begun).chain(other).chain([event]))
    }

    /// The reason why a read is wrong, and another read that shows it.
    fn reason(
        &self,
        event: usize,
        at: u64,
        got: Got,
        source: Option<&Entry>,
    ) -> (String, Option<usize>) {
        let events = &self.history.events;
        if got.value.is_some() && source.is_none() {
            return ("a reader sees what no call has written".into(), None);
        }
        if let Some(later) = source.filter(|source| source.number > at) {
            return (format!("a reader at {at} sees the later version {}", later.number), None);
        }
        let Some(wanted) = self.at(got.key, at) else {
            return ("a reader sees a version that is not there".into(), None);
        };
        let number = wanted.number;
        let has_seen = |&other: &usize| {
            self.read(other).is_some_and(|(of, seen)| {
                let is_it = |seen: Got| seen.key == got.key && seen.is(wanted.found());
                of == at && seen.into_iter().any(is_it)
            })
        };
        let earlier = |other: &usize| events[*other].end < events[event].start;
        if let Some(before) = (0..events.len()).filter(earlier).find(has_seen) {
            return (format!("version {number}, which a reader has seen, is gone"), Some(before));
        }
        let part = events[wanted.event].call.writes().iter().filter(|write| write.key != got.key);
        let part: Vec<Got> =
            part.map(|write| Got { key: write.key, number: None, value: write.value }).collect();
        let has_part = |&other: &usize| {
            self.read(other).is_some_and(|(of, seen)| {
                let is_part = |seen: Got| {
                    part.iter().any(|part| part.key == seen.key && part.value == seen.value)
                        && seen.value.is_some()
                };
                of == at && seen.into_iter().any(is_part)
            })
        };
        if !part.is_empty()
            && let Some(other) = (0..events.len()).find(has_part)
        {
            return (format!("a reader at {at} sees a part of batch {number}"), Some(other));
        }
        (format!("a reader at {at} misses version {number}"), None)
    }
}
