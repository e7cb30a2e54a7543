//! Words that wait until the calls that may use them have ended.
//!
//! A call that may use words which others take out of a map *begins*, and gets a number. A word
//! that is taken out meanwhile is *deferred*: it waits for all calls that began before that. When a
//! call *ends*, it returns the words that wait for no call any more.

use std::collections::VecDeque;
use std::thread::{self, ThreadId};

/// The calls that have begun and not ended, and the words that wait for them.
#[derive(Debug, Default)]
pub struct Waiting {
    /// The number of the next call.
    next: u64,
    /// The numbers of the calls that have not ended, each with the thread that makes the call.
    calls: Vec<(u64, ThreadId)>,
    /// Words, each with the number of the next call at the time at which it was deferred. These
    /// numbers never descend.
    deferred: VecDeque<(u64, u64)>,
}

impl Waiting {
    /// Begins a call, and returns its number.
    pub fn begin(&mut self) -> u64 {
        let number = self.next;
        self.next += 1;
        self.calls.push((number, thread::current().id()));
        number
    }

    /// Lets a word wait for all calls that have not ended.
    pub fn defer(&mut self, word: u64) {
        self.deferred.push_back((self.next, word));
    }

    /// Ends a call. Returns the words for which no call is left that began before they were
    /// deferred.
    pub fn end(&mut self, number: u64) -> Vec<u64> {
        self.calls.retain(|(call, _)| *call != number);
        self.free()
    }

    /// Ends the calls of all other threads, which do not exist in the child of a fork. Returns the
    /// words that wait for no call any more.
    pub fn end_others(&mut self) -> Vec<u64> {
        let this = thread::current().id();
        self.calls.retain(|(_, thread)| *thread == this);
        self.free()
    }

    /// The number of calls that have not ended: those of all threads, or of this one.
    pub fn calls(&self, all: bool) -> usize {
        let this = thread::current().id();
        self.calls.iter().filter(|(_, thread)| all || *thread == this).count()
    }

    /// Takes out the words that wait for no call any more.
    fn free(&mut self) -> Vec<u64> {
        let oldest = self.calls.iter().map(|(call, _)| *call).min().unwrap_or(u64::MAX);
        let free = self.deferred.partition_point(|(next, _)| *next <= oldest);
        self.deferred.drain(..free).map(|(_, word)| word).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_waits_for_earlier_calls_only() {
        let mut waiting = Waiting::default();
        let one = waiting.begin();
        waiting.defer(1);
        let two = waiting.begin();
        waiting.defer(2);
        let three = waiting.begin();
        // The last call began after both words were deferred.
        assert_eq!(waiting.end(three), [0; 0]);
        assert_eq!(waiting.end(one), [1]);
        waiting.defer(3);
        let four = waiting.begin();
        assert_eq!(waiting.end(two), [2, 3]);
        assert_eq!(waiting.end(four), [0; 0]);
    }

    #[test]
    fn calls_of_other_threads_can_end() {
        let mut waiting = Waiting::default();
        std::thread::scope(|scope| _ = scope.spawn(|| waiting.begin()).join().unwrap());
        waiting.defer(1);
        let one = waiting.begin();
        waiting.defer(2);
        assert_eq!((waiting.calls(true), waiting.calls(false)), (2, 1));
        assert_eq!(waiting.end_others(), [1]);
        assert_eq!((waiting.calls(true), waiting.calls(false)), (1, 1));
        assert_eq!(waiting.end(one), [2]);
    }

    #[test]
    fn calls_that_always_overlap_delay_no_word_for_ever() {
        let mut waiting = Waiting::default();
        let mut call = waiting.begin();
        for word in 0..100 {
            waiting.defer(word);
            let next = waiting.begin();
            assert_eq!(waiting.end(call), [word]);
            call = next;
        }
    }
}
