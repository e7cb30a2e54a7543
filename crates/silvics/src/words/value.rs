//! Values in their places, and the marks that stand there instead.
//!
//! A place has a value or one of three marks. Every word is a legal value, so there are two sets of
//! marks, and an object uses the set that has none of its values. If a caller puts such a word, the
//! object is copied to one with the other marks, or divided until no object has values of both
//! sets.

use crate::update::{Step, Update};
use silvics_sync::atomic::{AtomicU64, Ordering};

/// The first of the marks. Any words would do; these are no values of counters, pointers or small
/// negative numbers.
const FIRST: u64 = if cfg!(silvics_shuttle) { 96 } else { 0xA85E_4E7D_EC0D_E5E8 };
/// The bit that makes the other set.
const OTHER: u64 = if cfg!(silvics_shuttle) { 16 } else { 1 << 62 };
/// The number of marks.
const MARKS: u64 = 3;

/// A set of marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Marks(u64);

/// The content of a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Content {
    Value(u64),
    /// No value. Any thread may put one.
    Absent,
    /// No value. Only who has the lock of the object may put one.
    Closed,
    /// The object was replaced, and its successor has the content.
    Moved,
}

impl Marks {
    pub(super) const BOTH: [Self; 2] = [Self(FIRST), Self(FIRST ^ OTHER)];

    #[inline(always)]
    pub(super) fn new(other: bool) -> Self {
        Self(FIRST ^ if other { OTHER } else { 0 })
    }

    pub(super) fn is_other(self) -> bool {
        self.0 != FIRST
    }

    #[inline(always)]
    pub(super) fn absent(self) -> u64 {
        self.0
    }

    pub(super) fn closed(self) -> u64 {
        self.0 + 1
    }

    #[inline(always)]
    pub(super) fn moved(self) -> u64 {
        self.0 + 2
    }

    /// Whether a word is none of the marks.
    #[inline(always)]
    pub(super) fn allow(self, value: u64) -> bool {
        value.wrapping_sub(self.0) >= MARKS
    }

    /// Whether a word is a value, or says that there may be one in a successor.
    #[inline(always)]
    pub(super) fn is_or_was(self, word: u64) -> bool {
        word.wrapping_sub(self.0) >= 2
    }

    #[inline(always)]
    pub(super) fn content(self, word: u64) -> Content {
        match word.wrapping_sub(self.0) {
            0 => Content::Absent,
            1 => Content::Closed,
            2 => Content::Moved,
            _ => Content::Value(word),
        }
    }
}

/// The place of a value.
#[derive(Clone, Copy)]
pub(super) struct ValuePlace<'g> {
    pub(super) place: &'g AtomicU64,
    pub(super) marks: Marks,
}

/// The outcome of an attempt to change a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Changed {
    /// The verb was applied to this state.
    From(Option<u64>),
    /// As `From` this value, and the place has none any more.
    Removed(u64),
    /// As `From` absence, and the place has a value now.
    Inserted,
    /// The caller must have the lock.
    Closed,
    /// The object was replaced, or is about to be.
    Moved,
    /// The value is one of the marks.
    Marked,
}

impl ValuePlace<'_> {
    #[inline(always)]
    pub(super) fn content(self) -> Content {
        self.marks.content(self.place.load(Ordering::SeqCst))
    }

    #[inline(always)]
    pub(super) fn word(self) -> u64 {
        self.place.load(Ordering::SeqCst)
    }

    /// Applies a verb. The caller has the object's lock if the place is `open` for it.
    #[inline(always)]
    pub(super) fn change(self, verb: Update, open: bool) -> Changed {
        let Self { place, marks } = self;
        let mut word = place.load(Ordering::SeqCst);
        loop {
            let content = marks.content(word);
            let state = match content {
                Content::Value(value) => Some(value),
                Content::Absent | Content::Closed => None,
                Content::Moved => return Changed::Moved,
            };
            let new = match verb.step(state) {
                Step::Keep => return Changed::From(state), // LP(kept): the last load
                Step::Put(value) if !marks.allow(value) => return Changed::Marked,
                Step::Put(_) if content == Content::Closed && !open => return Changed::Closed,
                Step::Put(value) => value,
                Step::Take => marks.absent(),
            };
            // LP(inserted, replaced, removed)
            match place.compare_exchange(word, new, Ordering::SeqCst, Ordering::SeqCst) {
                Ok(_) => {
                    return match state {
                        None => Changed::Inserted,
                        Some(old) if new == marks.absent() => Changed::Removed(old),
                        Some(_) => Changed::From(state),
                    };
                }
                Err(other) => word = other,
            }
        }
    }

    /// Closes the place if it is absent. The caller has the lock. Returns whether it has no value.
    pub(super) fn close(self) -> bool {
        let Self { place, marks } = self;
        let (absent, closed) = (marks.absent(), marks.closed());
        let word = self.word();
        if word != absent {
            return word == closed;
        }
        match place.compare_exchange(absent, closed, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(word) => word == closed,
        }
    }

    /// Opens the place if it is closed. The caller has the lock, so nobody else changes a closed
    /// place.
    pub(super) fn open(self) {
        if self.content() == Content::Closed {
            self.place.store(self.marks.absent(), Ordering::SeqCst);
        }
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn each_word_is_a_value_beside_one_set_of_marks() {
        let around = |base: u64| (0..8).map(move |n| base.wrapping_sub(2).wrapping_add(n));
        let words = Marks::BOTH.into_iter().flat_map(|marks| around(marks.0));
        for word in words.chain([0, 1, u64::MAX, 1 << 63]) {
            let allowed = Marks::BOTH.map(|marks| marks.allow(word));
            assert!(allowed.contains(&true), "{word:#x}");
            for (marks, allowed) in Marks::BOTH.into_iter().zip(allowed) {
                assert_eq!(marks.content(word) == Content::Value(word), allowed);
                assert_eq!(Marks::new(marks.is_other()), marks);
                assert_eq!(marks.is_or_was(word), allowed || word == marks.moved());
            }
        }
        let [first, other] = Marks::BOTH;
        assert!(!first.allow(first.moved()) && !other.allow(other.moved()));
    }
}
