//! The versions that the map must keep, and those that it must have dropped.
//!
//! `history` lists the versions of a key that are left. The list must be in descending order, with
//! no version that no call has written, and:
//! * A version is there if its write ended before the list was read, and a reader needs it: a
//!   snapshot that lived all the time, or a reader without a snapshot. The latter reads at the
//!   *horizon* or later: the present, or with [`Retain::All`](silvics::versions::Retain) the
//!   largest number up to which a call has pruned.
//! * A version is not there if a call has pruned up to the next newer one, or further, before the
//!   list was read, and no snapshot has needed the version meanwhile.
//!
//! A refused reader must have been below the horizon, and an accepted one at it or above, unless a
//! snapshot lived at its number.

use super::call::{Answer, Call, Event, Unreadable};
use super::report::{Wrong, Wrongs};
use super::written::{Entry, Written};

/// A call of `prune` that has succeeded.
struct Pruned {
    event: usize,
    number: u64,
}

impl Written<'_> {
    /// Checks lists of versions, and refused readers.
    pub(super) fn kept(&self) -> Result<(), Wrong> {
        let events = &self.history.events;
        let prunes: Vec<Pruned> = (0..events.len())
            .filter_map(|event| match events[event].call {
                Call::Prune { number, answer: Ok(()) } => Some(Pruned { event, number }),
                _ => None,
            })
            .collect();
        for (event, of) in events.iter().enumerate() {
            match &of.call {
                Call::History { key, found } => self.list(event, *key, found, &prunes)?,
                Call::Write { given: Some(_), write, answer: Answer::Exists(number) } => {
                    let there = self.get(write.key, *number).map(|there| there.event);
                    if there.is_none_or(|there| events[there].start > of.end) {
                        let reason = format!("no call has written version {number}, which exists");
                        return Err(self.history.wrong(reason, there.into_iter().chain([event])));
                    }
                }
                Call::Read { through: false, at, found, .. } => {
                    self.horizon(event, *at, found.as_ref().err(), false, &prunes)?;
                }
                Call::Range { through: false, at, found, .. } => {
                    self.horizon(event, *at, found.as_ref().err(), true, &prunes)?;
                }
                Call::Snapshot { asked: Some(at), answer } => {
                    self.horizon(event, *at, answer.as_ref().err(), true, &prunes)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether a snapshot lived at a number from `first` to `last` throughout these times.
    fn lives(&self, (first, last): (u64, u64), (start, end): (u64, u64)) -> bool {
        self.history.lives.iter().any(|life| {
            (first..=last).contains(&life.number) && life.begun.1 < start && end < life.ended.0
        })
    }

    /// Whether a snapshot may have lived at a number from `first` to `last` within these times. It
    /// leaves out the snapshot that the call `but` has begun. `range_at` holds one while it runs.
    pub(super) fn may_live(
        &self,
        (first, last): (u64, u64),
        (start, end): (u64, u64),
        but: Option<usize>,
    ) -> bool {
        let events = &self.history.events;
        let own = but.map(|event| (events[event].start, events[event].end));
        let is_there = |number: u64, begun: (u64, u64), ended: u64| {
            let is_other = own != Some(begun);
            is_other && (first..=last).contains(&number) && begun.0 <= end && start <= ended
        };
        let mut lives = self.history.lives.iter();
        lives.any(|life| is_there(life.number, life.begun, life.ended.1))
            || events.iter().any(|of| match of.call {
                Call::Range { at, through: false, .. } => is_there(at, (of.start, of.end), of.end),
                _ => false,
            })
    }

    /// The largest number at which a reader that needs a version may read, by the next newer one.
    fn last_reader(&self, key: u32, number: u64) -> u64 {
        let next = self.of_key(key).get(self.count(key, number));
        next.map_or(u64::MAX, |next| next.number - 1)
    }

    /// Checks a list of the versions of a key.
    fn list(
        &self,
        event: usize,
        key: u32,
        found: &[(u64, Option<u64>)],
        prunes: &[Pruned],
    ) -> Result<(), Wrong> {
        let events = &self.history.events;
        let of = &events[event];
        if let Some(pair) = found.windows(2).find(|pair| pair[0].0 <= pair[1].0) {
            let reason = format!("version {} is listed above {}", pair[0].0, pair[1].0);
            return Err(self.history.wrong(reason, [event]));
        }
        for &(number, value) in found {
            let entry = self.get(key, number).filter(|entry| entry.value == value);
            if entry.is_none_or(|entry| events[entry.event].start > of.end) {
                let reason = format!("version {number} is listed, which no call has written");
                return Err(self.history.wrong(reason, [event]));
            }
            self.is_dropped(event, key, number, prunes)?;
        }
        // No number up to this one is above the horizon, and no larger one was at any time.
        let horizon = self.horizon_until(of, prunes);
        for entry in self.of_key(key) {
            if events[entry.event].end >= of.start || found.iter().any(|it| it.0 == entry.number) {
                continue;
            }
            let readers = (entry.number, self.last_reader(key, entry.number));
            let for_snapshot = entry.value.is_some() && self.lives(readers, (of.start, of.end));
            let for_others = horizon.is_some_and(|horizon| {
                readers.1 >= horizon && (entry.value.is_some() || entry.number > horizon)
            });
            if for_snapshot || for_others {
                return Err(self.dropped(event, entry, for_snapshot));
            }
        }
        Ok(())
    }

    /// The largest horizon until a call has ended, or nothing if it is not known: a map that draws
    /// numbers and drops versions itself may have drawn more than its calls return.
    fn horizon_until(&self, of: &Event, prunes: &[Pruned]) -> Option<u64> {
        let events = &self.history.events;
        if self.history.retains_all {
            let begun = prunes.iter().filter(|pruned| events[pruned.event].start <= of.end);
            return Some(begun.map(|pruned| pruned.number).max().unwrap_or(0));
        }
        if self.history.drawn {
            return None;
        }
        let published = events.iter().filter_map(|event| match event.call {
            Call::Publish { number, answer: Ok(()) } if event.start <= of.end => Some(number),
            _ => None,
        });
        Some(published.max().unwrap_or(0))
    }

    /// The report of a version that was dropped and is needed.
    fn dropped(&self, event: usize, entry: &Entry, for_snapshot: bool) -> Wrong {
        let reader = if for_snapshot { "a snapshot" } else { "a reader" };
        let reason = format!("version {}, which {reader} needs, is gone", entry.number);
        let events = &self.history.events;
        let (start, Call::History { key, .. }) = (events[event].start, &events[event].call) else {
            unreachable!("the call is a list");
        };
        let readers = entry.number..=self.last_reader(*key, entry.number);
        let begins = |call: &Call| match call {
            Call::Snapshot { answer: Ok(number), .. } => readers.contains(number),
            _ => false,
        };
        let begun = (0..events.len())
            .filter(|&other| {
                for_snapshot && events[other].end < start && begins(&events[other].call)
            })
            .max_by_key(|&other| events[other].end);
        self.history.wrong(reason, [entry.event].into_iter().chain(begun).chain([event]))
    }

    /// Checks that no call should have dropped a version that is listed.
    fn is_dropped(
        &self,
        event: usize,
        key: u32,
        number: u64,
        prunes: &[Pruned],
    ) -> Result<(), Wrong> {
        let events = &self.history.events;
        let Some(next) = self.of_key(key).get(self.count(key, number)) else { return Ok(()) };
        for pruned in prunes {
            let by = &events[pruned.event];
            if by.end < events[event].start
                && next.number <= pruned.number
                && events[next.event].end < by.start
                && !self.may_live((number, next.number - 1), (by.start, by.end), None)
            {
                let reason = format!("version {number} of key {key} is left, which was pruned");
                return Err(self.history.wrong(reason, [next.event, pruned.event, event]));
            }
        }
        Ok(())
    }

    /// Checks that a reader without a snapshot was refused, or not, as the horizon was. A snapshot
    /// at its number lets one read that begins a snapshot itself.
    fn horizon(
        &self,
        event: usize,
        at: u64,
        error: Option<&Unreadable>,
        begins: bool,
        prunes: &[Pruned],
    ) -> Result<(), Wrong> {
        let of = &self.history.events[event];
        let times = (of.start, of.end);
        let by = |pruned: &&Pruned| &self.history.events[pruned.event];
        match error {
            Some(&Unreadable::Pruned(horizon)) => {
                if begins && self.lives((at, at), times) {
                    let reason = "a reader is refused at the number of a snapshot";
                    return Err(self.history.wrong(reason, [event]));
                }
                let mut begun = prunes.iter().filter(|pruned| by(pruned).start <= of.end);
                if self.history.retains_all && !begun.any(|pruned| pruned.number == horizon) {
                    let reason = format!("no call has pruned up to {horizon}");
                    return Err(self.history.wrong(reason, [event]));
                }
                let mut ended = prunes.iter().filter(|pruned| by(pruned).end < of.start);
                let later = ended.find(|pruned| pruned.number > horizon);
                if let Some(later) = later.filter(|_| self.history.retains_all) {
                    let reason = format!("a reader finds the horizon at {horizon}, which is past");
                    return Err(self.history.wrong(reason, [later.event, event]));
                }
            }
            None if self.history.retains_all => {
                let mut ended = prunes.iter().filter(|pruned| by(pruned).end < of.start);
                let later = ended.find(|pruned| pruned.number > at);
                if let Some(later) = later
                    && !(begins && self.may_live((at, at), times, Some(event)))
                {
                    let reason = format!("a reader at {at} is accepted, which was pruned");
                    return Err(self.history.wrong(reason, [later.event, event]));
                }
            }
            _ => {}
        }
        Ok(())
    }
}
