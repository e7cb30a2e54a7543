//! One order of all calls: each takes effect while the map is at some number, and the numbers never
//! go back.
//!
//! # Algorithm
//! ```text
//! for each call, in the order of their starts:
//!   bound ← the largest moment of a call that ended before this one started
//!   moment(call) ← the least number from bound on at which its answer is right
//!   if there is none: wrong
//! ```
//! If any assignment of moments is right, so is this one: each call gets the least moment that it
//! can have in any of them, by induction over the starts. The order is that of the moments. At one
//! moment, the write or `publish` that has led to it comes first. The other calls at this moment
//! follow in the order of their starts; they change nothing.

use super::call::{Answer, Call, Unreadable};
use super::report::{Wrong, Wrongs};
use super::written::Written;

/// The numbers at which a call can take effect.
enum Moment {
    /// This number.
    At(u64),
    /// This number, or a larger one.
    From(u64),
    /// A smaller number: the call is a write with a given number.
    Below(u64),
    /// This number, which the call draws.
    Write(u64),
    /// Those at which one of these keys has this newest version.
    Newest(Vec<(u32, Newest)>),
}

/// The newest version of a key.
#[derive(Clone, Copy)]
enum Newest {
    /// The version with this number.
    Is(u64),
    /// None, or a deletion.
    Absent,
}

impl Newest {
    fn of(number: Option<u64>) -> Self {
        number.map_or(Self::Absent, Self::Is)
    }
}

impl Written<'_> {
    /// Checks that there is one order of all calls.
    pub(super) fn moments(&self) -> Result<(), Wrong> {
        let events = &self.history.events;
        let watermarks = self.watermarks();
        let order = |by: fn(&super::Event) -> u64| {
            let mut order: Vec<usize> = (0..events.len()).collect();
            order.sort_by_key(|&event| by(&events[event]));
            order
        };
        let ends = order(|event| event.end);
        let mut ended = ends.iter().peekable();
        // The largest moment of a call that has ended, and the call.
        let mut bound = (0, None);
        let mut moments: Vec<(u64, Option<usize>)> = vec![(0, None); events.len()];
        for event in order(|event| event.start) {
            while let Some(&before) = ended.next_if(|&&e| events[e].end < events[event].start) {
                if moments[before].0 > bound.0 {
                    bound = (moments[before].0, Some(before));
                }
            }
            let least = match self.moment(event)? {
                None => Some(0),
                Some(moment) => self.least(&moment, bound.0, &watermarks, events[event].end),
            };
            let Some(least) = least else {
                return Err(self.no_moment(event, bound, &moments));
            };
            moments[event] = (least, bound.1.filter(|_| least == bound.0));
        }
        Ok(())
    }

    /// The watermarks that were published in ascending order, each with the stamp before the first
    /// call that did so.
    fn watermarks(&self) -> Vec<(u64, u64)> {
        let published = self.history.events.iter().filter_map(|event| match event.call {
            Call::Publish { number, answer: Ok(()) } => Some((number, event.start)),
            _ => None,
        });
        let mut published: Vec<_> = published.chain([(0, 0)]).collect();
        published.sort_unstable();
        published.dedup_by_key(|(number, _)| *number);
        published
    }

    /// The least number from `bound` on at which a call can take effect that ended at `end`.
    fn least(&self, of: &Moment, bound: u64, watermarks: &[(u64, u64)], end: u64) -> Option<u64> {
        // The map is at a given number only if a call has published it.
        let from = |number: u64| {
            let number = number.max(bound);
            if self.history.drawn {
                return Some(number);
            }
            let first = watermarks.partition_point(|(watermark, _)| *watermark < number);
            let mut rest = watermarks[first..].iter();
            rest.find(|(_, since)| *since <= end).map(|(watermark, _)| *watermark)
        };
        match *of {
            Moment::At(number) => from(number).filter(|least| *least == number),
            Moment::From(number) => from(number),
            Moment::Below(number) => (bound < number).then_some(bound),
            Moment::Write(number) => (bound < number).then_some(number),
            Moment::Newest(ref keys) => {
                keys.iter().filter_map(|&(key, newest)| self.newest_from(key, newest, bound)).min()
            }
        }
    }

    /// The least number from `bound` on at which a key has this newest version.
    fn newest_from(&self, key: u32, newest: Newest, bound: u64) -> Option<u64> {
        let versions = self.of_key(key);
        match newest {
            Newest::Is(number) => {
                self.get(key, number)?;
                let next = versions.get(self.count(key, number));
                next.is_none_or(|next| bound < next.number).then_some(number.max(bound))
            }
            Newest::Absent if self.seen(key, bound).is_none() => Some(bound),
            Newest::Absent => {
                let rest = &versions[self.count(key, bound)..];
                rest.iter().find(|entry| entry.value.is_none()).map(|entry| entry.number)
            }
        }
    }

    /// The numbers at which a call can take effect; nothing if its answer does not depend on them.
    /// Fails if no number makes the answer right.
    fn moment(&self, event: usize) -> Result<Option<Moment>, Wrong> {
        let wrong = |reason: &str| Err(self.history.wrong(reason, [event]));
        let drawn = self.history.drawn;
        let moment = match self.history.events[event].call {
            Call::Write { given, answer, .. } if !drawn => match (given.unwrap_or(0), answer) {
                (given, Answer::Done(number)) if number == given => Moment::Below(given),
                (given, Answer::TooLate(watermark)) if watermark >= given => Moment::At(watermark),
                (given, Answer::Exists(there)) if there == given => return Ok(None),
                (given, Answer::NotNewer(newest)) if newest >= given => return Ok(None),
                (_, Answer::Conflict(_)) => return Ok(None),
                _ => return wrong("the answer does not fit the number of the write"),
            },
            Call::Write { answer, .. } | Call::Commit { answer, .. } => {
                match self.moment_of_write(event, answer) {
                    Some(moment) => moment,
                    None => return wrong("a map that draws its numbers refuses one"),
                }
            }
            Call::Latest { key, found } => {
                let newest = found.map(|(number, _)| number);
                if newest.is_some_and(|n| self.get(key, n).is_none_or(|of| of.found() != found)) {
                    return wrong("a reader sees what no call has written");
                }
                if !drawn {
                    return Ok(None);
                }
                Moment::Newest(vec![(key, Newest::of(newest))])
            }
            Call::History { .. } if !drawn => return Ok(None),
            Call::History { key, ref found } => {
                let newest = found.first().map(|(number, _)| *number);
                Moment::Newest(vec![(key, Newest::of(newest))])
            }
            Call::Now(now) => Moment::At(now),
            Call::Snapshot { asked, answer } => {
                return self.moment_of_reader(event, asked, answer);
            }
            Call::Read { through: true, .. } | Call::Range { through: true, .. } => {
                return Ok(None);
            }
            Call::Read { at, ref found, .. } => {
                // If old versions are dropped at once, only the present can be read.
                let at_once = !self.history.retains_all && found.is_ok();
                let asked = if at_once { None } else { Some(at) };
                return self.moment_of_reader(
                    event,
                    asked,
                    found.as_ref().map(|_| at).map_err(|error| *error),
                );
            }
            Call::Range { at, ref found, .. } => {
                return self.moment_of_reader(
                    event,
                    Some(at),
                    found.as_ref().map(|_| at).map_err(|error| *error),
                );
            }
            Call::Prune { number, answer } => match answer {
                Ok(()) => Moment::From(number),
                Err(now) if now < number => Moment::At(now),
                Err(_) => return wrong("prune refuses a number that the map has reached"),
            },
            Call::Publish { number, answer } => match answer {
                Ok(()) => Moment::At(number),
                Err(now) if now > number => Moment::At(now),
                Err(_) => return wrong("publish refuses a number above the watermark"),
            },
        };
        Ok(Some(moment))
    }

    /// The numbers at which a write has this answer, in a map that draws them.
    fn moment_of_write(&self, event: usize, answer: Answer) -> Option<Moment> {
        let writes = self.history.events[event].call.writes();
        match answer {
            Answer::Done(number) => Some(Moment::Write(number)),
            Answer::Nothing => Some(Moment::Newest(vec![(writes[0].key, Newest::Absent)])),
            Answer::Conflict(latest) => {
                // A deletion is in conflict with nothing: its key is absent.
                let is_deletion = |key| {
                    latest.is_some_and(|n| self.get(key, n).is_some_and(|of| of.value.is_none()))
                };
                let in_conflict = writes
                    .iter()
                    .filter(|write| !write.expected.accepts(latest) && !is_deletion(write.key));
                let keys = in_conflict.map(|write| (write.key, Newest::of(latest)));
                Some(Moment::Newest(keys.collect()))
            }
            Answer::Exists(_) | Answer::NotNewer(_) | Answer::TooLate(_) => None,
        }
    }

    /// The numbers at which a reader is accepted with a number, or refused. One that has asked for
    /// no number reads the present.
    fn moment_of_reader(
        &self,
        event: usize,
        asked: Option<u64>,
        answer: Result<u64, Unreadable>,
    ) -> Result<Option<Moment>, Wrong> {
        let moment = match (asked, answer) {
            (None, Ok(number)) => Moment::At(number),
            (Some(asked), Ok(number)) if asked == number => {
                // If old versions are dropped at once, only a snapshot keeps an old number.
                let of = &self.history.events[event];
                let times = (of.start, of.end);
                if self.history.retains_all || self.may_live((number, number), times, Some(event)) {
                    Moment::From(number)
                } else {
                    Moment::At(number)
                }
            }
            (_, Ok(_)) => {
                return Err(self.history.wrong("a snapshot reads at another number", [event]));
            }
            (Some(at), Err(Unreadable::Future(now))) if now < at => Moment::At(now),
            (Some(at), Err(Unreadable::Pruned(horizon))) if at < horizon => {
                // Only a number that the map has reached can be pruned.
                if self.history.retains_all { Moment::From(horizon) } else { Moment::At(horizon) }
            }
            (_, Err(_)) => {
                let reason = "a reader is refused at a number that it can read";
                return Err(self.history.wrong(reason, [event]));
            }
        };
        Ok(Some(moment))
    }

    /// The report of a call that has no moment.
    fn no_moment(
        &self,
        event: usize,
        (bound, cause): (u64, Option<usize>),
        moments: &[(u64, Option<usize>)],
    ) -> Wrong {
        let moment = self.moment(event).ok().flatten();
        let mut calls = vec![event];
        let mut next = cause;
        while let Some(cause) = next.filter(|_| calls.len() < 8) {
            calls.push(cause);
            if let Ok(Some(Moment::Newest(keys))) = self.moment(cause) {
                let newest = |&(key, _): &(u32, _)| self.at(key, moments[cause].0);
                calls.extend(keys.iter().filter_map(newest).map(|entry| entry.event));
            }
            next = moments[cause].1;
        }
        let reason = match moment {
            Some(Moment::At(number)) if number < bound => {
                format!("the map goes back from {bound} to {number}")
            }
            Some(Moment::At(number) | Moment::From(number)) => {
                format!("a call has found the map at {number}, which no call had published")
            }
            Some(Moment::Write(number) | Moment::Below(number)) => format!(
                "version {number} is written after a call has found the map at {bound} already"
            ),
            Some(Moment::Newest(keys)) if keys.is_empty() => {
                "a write is refused for a version that it may replace".into()
            }
            Some(Moment::Newest(keys)) => {
                for &(key, newest) in &keys {
                    calls.extend(self.at(key, bound).map(|entry| entry.event));
                    if let Newest::Is(number) = newest {
                        calls.extend(self.get(key, number).map(|entry| entry.event));
                    }
                }
                let keys: Vec<String> = keys.iter().map(|(key, _)| key.to_string()).collect();
                let keys = keys.join(" or ");
                format!(
                    "no moment has this newest version of key {keys}, after the map is at {bound}"
                )
            }
            None => "a call has no moment".into(),
        };
        self.history.wrong(reason, calls)
    }
}
