//! The versions that the writes of a history have made, by key and number: the state at each
//! number.

use super::call::{Call, Expected, Found, History};
use super::report::{Wrong, Wrongs};

/// A version.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) number: u64,
    /// The value, or `None` for a deletion.
    pub(super) value: Option<u64>,
    /// The index of the call that wrote it.
    pub(super) event: usize,
}

impl Entry {
    /// The version as readers see it.
    pub(super) fn found(&self) -> Found {
        self.value.map(|value| (self.number, value))
    }
}

/// All versions of a history.
pub(super) struct Written<'h> {
    pub(super) history: &'h History,
    /// The versions of each key, in ascending order of their numbers.
    keys: Vec<Vec<Entry>>,
}

impl<'h> Written<'h> {
    /// Collects the versions. Fails if two have the same number.
    pub(super) fn of(history: &'h History) -> Result<Self, Wrong> {
        let mut keys = vec![Vec::new(); super::KEYS as usize];
        let mut numbers = Vec::new();
        for (event, of) in history.events.iter().enumerate() {
            let Some(number) = of.call.number() else { continue };
            numbers.push((number, event));
            if number == 0 {
                return Err(history.wrong("a version has the number 0", [event]));
            }
            for write in of.call.writes() {
                let key: &mut Vec<Entry> = &mut keys[write.key as usize];
                key.push(Entry { number, value: write.value, event });
            }
        }
        numbers.sort_unstable();
        for pair in numbers.windows(2) {
            if history.drawn && pair[0].0 == pair[1].0 {
                let reason = format!("two writes have drawn the number {}", pair[0].0);
                return Err(history.wrong(reason, [pair[0].1, pair[1].1]));
            }
        }
        for (key, versions) in keys.iter_mut().enumerate() {
            versions.sort_unstable_by_key(|entry| entry.number);
            if let Some(pair) = versions.windows(2).find(|pair| pair[0].number == pair[1].number) {
                let reason = format!("key {key} has got version {} twice", pair[0].number);
                return Err(history.wrong(reason, [pair[0].event, pair[1].event]));
            }
        }
        Ok(Self { history, keys })
    }

    /// The versions of a key.
    pub(super) fn of_key(&self, key: u32) -> &[Entry] {
        &self.keys[key as usize]
    }

    /// The number of a key's versions up to a number.
    pub(super) fn count(&self, key: u32, at: u64) -> usize {
        self.of_key(key).partition_point(|entry| entry.number <= at)
    }

    /// The version of a key at a number, which may be a deletion.
    pub(super) fn at(&self, key: u32, at: u64) -> Option<&Entry> {
        self.count(key, at).checked_sub(1).map(|before| &self.of_key(key)[before])
    }

    /// The version of a key with this number.
    pub(super) fn get(&self, key: u32, number: u64) -> Option<&Entry> {
        self.at(key, number).filter(|entry| entry.number == number)
    }

    /// The version of a key at a number, as readers see it.
    pub(super) fn seen(&self, key: u32, at: u64) -> Found {
        self.at(key, at).and_then(Entry::found)
    }

    /// Checks that each write of a map that draws numbers has found the versions that it expected,
    /// at its number. If the caller gives the numbers, their order is not that of the writes.
    pub(super) fn conditions(&self) -> Result<(), Wrong> {
        for (event, of) in self.history.events.iter().enumerate() {
            let Some(number) = of.call.number().filter(|_| self.history.drawn) else { continue };
            for write in of.call.writes() {
                let before = self.at(write.key, number - 1);
                let latest = before.and_then(Entry::found).map(|(number, _)| number);
                // A deletion of one key draws no number if it finds nothing.
                let finds = matches!(of.call, Call::Write { .. });
                let deletes = finds && write.value.is_none() && write.expected == Expected::Any;
                if write.expected.accepts(latest) && (!deletes || latest.is_some()) {
                    continue;
                }
                let newest = latest.map_or("no version".into(), |n| format!("version {n}"));
                let reason = format!(
                    "a conditional write is lost: version {number} of key {} was written although \
                     {newest} was the newest",
                    write.key
                );
                return Err(self
                    .history
                    .wrong(reason, before.map(|e| e.event).into_iter().chain([event])));
            }
        }
        Ok(())
    }
}
