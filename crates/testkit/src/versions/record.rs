//! Calls a map for one thread and records the calls.

use super::call::{Answer, Call, Event, Found, Life, Unreadable, Write};
use super::subject::{Reader, Subject};
use crate::clock::Clock;
use crate::{Failure, Outcome};
use std::sync::Arc;

/// A snapshot that lives, with the stamps of the call that began it.
pub(super) struct Held {
    reader: Box<dyn Reader>,
    begun: (u64, u64),
}

impl Held {
    pub(super) fn number(&self) -> u64 {
        self.reader.number()
    }
}

/// The calls of one thread.
pub(super) struct Recorder<'a> {
    map: &'a dyn Subject,
    clock: &'a Clock,
    thread: usize,
    pub(super) events: Vec<Event>,
    pub(super) lives: Vec<Life>,
}

impl<'a> Recorder<'a> {
    pub(super) fn new(map: &'a dyn Subject, clock: &'a Clock, thread: usize) -> Self {
        Self { map, clock, thread, events: Vec::new(), lives: Vec::new() }
    }

    /// Makes a call, and returns its answer with the stamps around it.
    fn timed<T>(&self, call: impl FnOnce(&dyn Subject) -> T) -> (T, (u64, u64)) {
        let start = self.clock.start();
        let answer = call(self.map);
        (answer, (start, self.clock.end()))
    }

    fn push(&mut self, (start, end): (u64, u64), call: Call) {
        self.events.push(Event { thread: self.thread, start, end, call });
    }

    pub(super) fn write(&mut self, write: Write, given: Option<u64>) -> Result<Answer, Failure> {
        let (answer, times) = self.timed(|map| map.write(&write, given));
        let answer = answer?;
        self.push(times, Call::Write { given, write, answer });
        Ok(answer)
    }

    pub(super) fn commit(&mut self, writes: Vec<Write>) -> Result<Answer, Failure> {
        let (answer, times) = self.timed(|map| map.commit(&writes));
        let answer = answer?;
        self.push(times, Call::Commit { writes, answer });
        Ok(answer)
    }

    pub(super) fn get_latest(&mut self, key: u32) -> Found {
        let (found, times) = self.timed(|map| map.get_latest(key));
        self.push(times, Call::Latest { key, found });
        found
    }

    pub(super) fn now(&mut self) -> u64 {
        let (now, times) = self.timed(|map| map.now());
        self.push(times, Call::Now(now));
        now
    }

    pub(super) fn get_at(&mut self, key: u32, at: u64) {
        let (found, times) = self.timed(|map| map.get_at(key, at));
        self.push(times, Call::Read { at, through: false, key, found });
    }

    pub(super) fn range_at(&mut self, at: u64, keys: (u32, u32)) -> Outcome {
        let (found, times) = self.timed(|map| map.range_at(at, keys));
        self.push(times, Call::Range { at, through: false, keys, found: found? });
        Ok(())
    }

    /// Begins a snapshot of the present, or at a number.
    pub(super) fn snapshot(&mut self, asked: Option<u64>) -> Result<Held, Unreadable> {
        let (reader, begun) = self.timed(|map| map.snapshot(asked));
        let answer = reader.as_ref().map(|reader| reader.number()).map_err(|error| *error);
        self.push(begun, Call::Snapshot { asked, answer });
        reader.map(|reader| Held { reader, begun })
    }

    /// Begins another snapshot at the number of one.
    pub(super) fn again(&mut self, held: &Held) -> Held {
        let (reader, begun) = self.timed(|_| held.reader.again());
        let answer = Ok(reader.number());
        self.push(begun, Call::Snapshot { asked: Some(held.number()), answer });
        Held { reader, begun }
    }

    pub(super) fn read(&mut self, held: &Held, key: u32) {
        let (found, times) = self.timed(|_| held.reader.get(key));
        self.push(times, Call::Read { at: held.number(), through: true, key, found: Ok(found) });
    }

    pub(super) fn range(&mut self, held: &Held, keys: (u32, u32), descending: bool) -> Outcome {
        let (found, times) = self.timed(|_| held.reader.range(keys, descending));
        let (at, found) = (held.number(), Ok(found?));
        self.push(times, Call::Range { at, through: true, keys, found });
        Ok(())
    }

    pub(super) fn history(&mut self, key: u32) {
        let (found, times) = self.timed(|map| map.history(key));
        self.push(times, Call::History { key, found });
    }

    pub(super) fn prune(&mut self, number: u64) {
        let (answer, times) = self.timed(|map| map.prune(number));
        self.push(times, Call::Prune { number, answer });
    }

    pub(super) fn publish(&mut self, number: u64) -> Result<(), u64> {
        let (answer, times) = self.timed(|map| map.publish(number));
        self.push(times, Call::Publish { number, answer });
        answer
    }

    /// Drops a snapshot, unless another thread shares it.
    pub(super) fn drop(&mut self, held: Arc<Held>) {
        let Some(held) = Arc::into_inner(held) else { return };
        let (number, begun) = (held.number(), held.begun);
        let ((), ended) = self.timed(|_| drop(held));
        self.lives.push(Life { number, begun, ended });
    }
}
