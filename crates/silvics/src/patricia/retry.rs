//! How often a section is tried before it locks hand over hand: the paper's retry policy.
//!
//! # Algorithm
//! Read sections (`search`) and modify sections (`insert_leaf`, `delete_leaf`) have limits of their
//! own. An operation counts its aborted tries by section. A section is tried
//!
//! 1. in a hardware transaction, if the policy and the CPU have them: again after an abort that may
//!    not recur, up to the limit of the section;
//! 2. optimistically, up to the limit of the section;
//! 3. hand over hand.
//!
//! An abort leads to another try by these rules ([`Rule`]):
//!
//! | reason | status word | tried again |
//! |---|---|---|
//! | `Busy` | explicit, code 0xFF; or a lock that is taken | yes |
//! | `Changed` | a version that has changed (software alone) | yes |
//! | `Retry` | the bit `RETRY` | yes |
//! | `Capacity` | the bit `CAPACITY`, without `RETRY` | not in hardware |
//! | `Conflict` | the bit `CONFLICT`, without the two | not in hardware |
//! | `Unspecified` | any other word | yes |
//!
//! The paper's listing compares whole words instead, so that a word with two bits, such as
//! `CONFLICT | RETRY`, is an unspecified abort, and so is an explicit one with a code
//! ([`Rule::Listing`]).
//!
//! # Memory ordering
//! | word | site | ordering | pairs with | why |
//! |---|---|---|---|---|
//! | limits, rule, odds | all | Relaxed | – | each decides by itself how often a section is tried |
//! | counts | all | Relaxed | – | statistics; they publish nothing |

use silvics_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use silvics_sync::htm::{BUSY, Status};

/// Why a section has to start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Abort {
    /// Another thread owns a lock: the paper's explicit abort with code 0xFF.
    Busy,
    /// A node has changed since the section read it. Hardware never reports this.
    Changed,
    /// The CPU encourages another try.
    Retry,
    /// The CPU saw another thread access the same memory.
    Conflict,
    /// The transaction was too large.
    Capacity,
    /// The CPU gives no reason that is known.
    Unspecified,
}

impl Abort {
    /// All reasons, in the order of [`RetryStats::aborts`].
    pub const ALL: [Self; 6] =
        [Self::Busy, Self::Changed, Self::Retry, Self::Conflict, Self::Capacity, Self::Unspecified];

    /// The reason that a status word states, by a rule.
    #[must_use]
    pub fn of(status: Status, rule: Rule) -> Self {
        match rule {
            Rule::Bits if status.code() == Some(BUSY) => Self::Busy,
            Rule::Bits if status.has(Status::RETRY) => Self::Retry,
            Rule::Bits if status.has(Status::CAPACITY) => Self::Capacity,
            Rule::Bits if status.has(Status::CONFLICT) => Self::Conflict,
            Rule::Listing => match status.bits() {
                Status::RETRY => Self::Retry,
                Status::CAPACITY => Self::Capacity,
                Status::CONFLICT => Self::Conflict,
                _ => Self::Unspecified,
            },
            Rule::Bits => Self::Unspecified,
        }
    }

    /// Whether a hardware transaction with this abort may be tried again.
    #[must_use]
    pub fn may_pass(self) -> bool {
        !matches!(self, Self::Conflict | Self::Capacity)
    }
}

/// How a status word is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rule {
    /// By its bits.
    #[default]
    Bits,
    /// By the whole word, as the paper's listing 4 compares it.
    Listing,
}

/// A section of an operation, with a limit of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// `search`: it allocates nothing.
    Read,
    /// `insert_leaf` and `delete_leaf`, which may allocate.
    Modify,
}

impl Section {
    const ALL: [Self; 2] = [Self::Read, Self::Modify];
}

/// The retry policy of a trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The tries of a read section after the first one, 65 536 at most.
    pub read: u32,
    /// The tries of a modify section after the first one, 65 536 at most.
    pub modify: u32,
    /// How status words are read.
    pub rule: Rule,
    /// Whether the limits follow the success of tries. After each 64 operations with aborted tries,
    /// a limit rises by a half if more than an eighth of them locked, and falls by a half if most
    /// did. If none locked, it falls by one. It does not fall below one.
    pub adapts: bool,
    /// The odds of injected aborts.
    pub injected: Injected,
}

impl Default for RetryPolicy {
    /// The paper's limits: ten tries for either section.
    fn default() -> Self {
        // Under a model checker few, so that its schedules have sections that lock.
        let limit = if cfg!(silvics_shuttle) { 2 } else { 10 };
        let (rule, adapts, injected) = (Rule::Bits, false, Injected::default());
        Self { read: limit, modify: limit, rule, adapts, injected }
    }
}

impl RetryPolicy {
    /// A policy with these limits.
    #[must_use]
    pub fn limits(read: u32, modify: u32) -> Self {
        Self { read, modify, ..Self::default() }
    }
}

/// The odds, out of 2^16, that the stand-in of a transaction aborts for a reason before its body
/// runs. Only the policy [`StandIn`](super::policy::StandIn) looks at them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Injected {
    /// An explicit abort with code 0xFF.
    pub busy: u16,
    /// An abort with the bit `RETRY`.
    pub retry: u16,
    /// An abort with the bit `CONFLICT`.
    pub conflict: u16,
    /// An abort with the bit `CAPACITY`.
    pub capacity: u16,
    /// An abort with the bits `CONFLICT` and `RETRY`.
    pub conflict_retry: u16,
    /// An abort without a bit.
    pub unspecified: u16,
}

impl Injected {
    /// The same odds for each reason.
    #[must_use]
    pub fn each(odds: u16) -> Self {
        Self {
            busy: odds,
            retry: odds,
            conflict: odds,
            capacity: odds,
            conflict_retry: odds,
            unspecified: odds,
        }
    }

    fn odds(self) -> [(u16, Status); 6] {
        [
            (self.busy, Status::explicit(BUSY)),
            (self.retry, Status::of(Status::RETRY)),
            (self.conflict, Status::of(Status::CONFLICT)),
            (self.capacity, Status::of(Status::CAPACITY)),
            (self.conflict_retry, Status::of(Status::CONFLICT | Status::RETRY)),
            (self.unspecified, Status::of(0)),
        ]
    }
}

/// The statistics of a trie's sections. A section that is never aborted is not counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryStats {
    /// The aborted tries: of read sections and of modify sections, by reason ([`Abort::ALL`]).
    pub aborts: [[u64; 6]; 2],
    /// The operations that locked hand over hand, by the section whose tries were used up.
    pub locked: [u64; 2],
    /// The operations that were aborted and came through without that, by their last section that
    /// was aborted.
    pub passed: [u64; 2],
    /// The present limits of read and modify sections.
    pub limits: [u32; 2],
}

/// The retry policy of a trie at work, with its statistics. All counts are written by aborted
/// sections alone.
#[derive(Debug)]
pub struct Retries {
    limits: [AtomicU32; 2],
    adapts: AtomicBool,
    by_listing: AtomicBool,
    /// The odds of injected aborts.
    odds: [AtomicU32; 6],
    /// The number of draws, of which each decides one injection.
    draws: AtomicU64,
    aborts: [[AtomicU64; 6]; 2],
    locked: [AtomicU64; 2],
    passed: [AtomicU64; 2],
    /// The operations of a section since its limit was last adapted: those that passed in the
    /// lower half, those that locked in the upper one.
    window: [AtomicU64; 2],
}

/// How the next try of an operation runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Level {
    /// In a hardware transaction, or its stand-in.
    Transaction,
    /// Optimistically.
    Optimistic,
    /// Hand over hand.
    Locked,
}

/// The tries of an operation that were aborted.
#[derive(Debug)]
pub(super) struct Tries {
    pub(super) level: Level,
    counts: [u32; 2],
    last: Section,
}

impl Tries {
    pub(super) fn new(level: Level) -> Self {
        Self { level, counts: [0; 2], last: Section::Read }
    }
}

/// The operations after which a limit is adapted.
const WINDOW: u64 = 64;
/// The highest limit that a policy may have.
const MOST_TRIES: u32 = 1 << 16;
/// The highest limit that an adaptive policy sets.
const MOST: u32 = 64;

impl Retries {
    pub(super) fn new(policy: RetryPolicy) -> Self {
        let retries = Self {
            limits: Default::default(),
            adapts: AtomicBool::new(false),
            by_listing: AtomicBool::new(false),
            odds: Default::default(),
            draws: AtomicU64::new(0),
            aborts: Default::default(),
            locked: Default::default(),
            passed: Default::default(),
            window: Default::default(),
        };
        retries.set(policy);
        retries
    }

    /// Changes the policy. Operations that are under way may follow the old one, or either.
    pub fn set(&self, policy: RetryPolicy) {
        self.limits[0].store(policy.read.min(MOST_TRIES), Ordering::Relaxed);
        self.limits[1].store(policy.modify.min(MOST_TRIES), Ordering::Relaxed);
        self.adapts.store(policy.adapts, Ordering::Relaxed);
        self.by_listing.store(policy.rule == Rule::Listing, Ordering::Relaxed);
        for (place, (odds, _)) in self.odds.iter().zip(policy.injected.odds()) {
            place.store(u32::from(odds), Ordering::Relaxed);
        }
    }

    /// The statistics so far.
    pub fn stats(&self) -> RetryStats {
        let load = |count: &AtomicU64| count.load(Ordering::Relaxed);
        RetryStats {
            aborts: [0, 1]
                .map(|section: usize| std::array::from_fn(|at| load(&self.aborts[section][at]))),
            locked: [0, 1].map(|section: usize| load(&self.locked[section])),
            passed: [0, 1].map(|section: usize| load(&self.passed[section])),
            limits: [0, 1].map(|section: usize| self.limits[section].load(Ordering::Relaxed)),
        }
    }

    /// The reason of a transaction's abort.
    pub(super) fn reason(&self, status: Status) -> Abort {
        let by_listing = self.by_listing.load(Ordering::Relaxed);
        Abort::of(status, if by_listing { Rule::Listing } else { Rule::Bits })
    }

    /// Draws whether a stand-in of a transaction aborts, and with which status.
    pub(super) fn inject(&self) -> Option<Status> {
        let mut draw = self.draws.fetch_add(0x9E37_79B9_7F4A_7C15, Ordering::Relaxed);
        // The finaliser of Murmur3.
        draw = (draw ^ (draw >> 33)).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        draw = (draw ^ (draw >> 33)).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        let mut drawn = (draw >> 48) as u32;
        for (odds, (_, status)) in self.odds.iter().zip(Injected::default().odds()) {
            let odds = odds.load(Ordering::Relaxed);
            if drawn < odds {
                return Some(status);
            }
            drawn -= odds;
        }
        None
    }

    /// Counts an aborted try, and chooses how the next one runs.
    pub(super) fn aborted(&self, tries: &mut Tries, section: Section, abort: Abort) {
        let at = section as usize;
        self.aborts[at][abort as usize].fetch_add(1, Ordering::Relaxed);
        tries.last = section;
        tries.counts[at] += 1;
        let is_over = tries.counts[at] > self.limits[at].load(Ordering::Relaxed);
        tries.level = match tries.level {
            Level::Transaction if is_over || !abort.may_pass() => {
                tries.counts = [0; 2];
                Level::Optimistic
            }
            Level::Optimistic if is_over => {
                self.locked[at].fetch_add(1, Ordering::Relaxed);
                self.adapt(section, true);
                Level::Locked
            }
            level => level,
        };
    }

    /// Notes that an operation with aborted tries has come through.
    pub(super) fn done(&self, tries: &Tries) {
        if tries.level != Level::Locked {
            self.passed[tries.last as usize].fetch_add(1, Ordering::Relaxed);
            self.adapt(tries.last, false);
        }
    }

    /// Adapts the limit of a section, as [`RetryPolicy::adapts`] says. If most operations lock,
    /// more tries are a waste; if some do, a few more tries may spare them the locks.
    fn adapt(&self, section: Section, has_locked: bool) {
        if !self.adapts.load(Ordering::Relaxed) {
            return;
        }
        let one = if has_locked { 1 << 32 } else { 1 };
        let window = self.window[section as usize].fetch_add(one, Ordering::Relaxed) + one;
        let (passed, locked) = (window & u64::from(u32::MAX), window >> 32);
        if passed + locked < WINDOW {
            return;
        }
        self.window[section as usize].store(0, Ordering::Relaxed);
        let place = &self.limits[section as usize];
        let limit = place.load(Ordering::Relaxed);
        let next = if locked > passed {
            (limit / 2).max(1)
        } else if locked > WINDOW / 8 {
            (limit + limit / 2 + 1).min(MOST)
        } else if locked == 0 {
            limit.saturating_sub(1).max(1)
        } else {
            limit
        };
        place.store(next, Ordering::Relaxed);
    }
}

impl RetryStats {
    /// The aborted tries of a section.
    #[must_use]
    pub fn aborted(&self, section: Section) -> u64 {
        self.aborts[section as usize].iter().sum()
    }

    /// All aborted tries.
    #[must_use]
    pub fn all_aborted(&self) -> u64 {
        Section::ALL.iter().map(|section| self.aborted(*section)).sum()
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn words_are_read_by_bits_or_whole() {
        let both = Status::of(Status::CONFLICT | Status::RETRY);
        let cases = [
            (Status::explicit(BUSY), Abort::Busy, Abort::Unspecified),
            (Status::explicit(7), Abort::Unspecified, Abort::Unspecified),
            (Status::of(Status::RETRY), Abort::Retry, Abort::Retry),
            (both, Abort::Retry, Abort::Unspecified),
            (Status::of(Status::CONFLICT), Abort::Conflict, Abort::Conflict),
            (Status::of(Status::CAPACITY), Abort::Capacity, Abort::Capacity),
            (Status::of(0), Abort::Unspecified, Abort::Unspecified),
        ];
        for (status, by_bits, by_listing) in cases {
            assert_eq!(Abort::of(status, Rule::Bits), by_bits, "{status:?}");
            assert_eq!(Abort::of(status, Rule::Listing), by_listing, "{status:?}");
        }
    }

    #[test]
    fn sections_have_limits_of_their_own() {
        let retries = Retries::new(RetryPolicy::limits(2, 0));
        let mut tries = Tries::new(Level::Optimistic);
        for _ in 0..2 {
            retries.aborted(&mut tries, Section::Read, Abort::Changed);
            assert_eq!(tries.level, Level::Optimistic);
        }
        retries.aborted(&mut tries, Section::Modify, Abort::Busy);
        assert_eq!(tries.level, Level::Locked);
        let stats = retries.stats();
        assert_eq!((stats.aborted(Section::Read), stats.aborted(Section::Modify)), (2, 1));
        assert_eq!((stats.locked, stats.passed, stats.all_aborted()), ([0, 1], [0, 0], 3));
    }

    #[test]
    fn hardware_is_left_at_once_after_a_conflict() {
        let retries = Retries::new(RetryPolicy::default());
        for (abort, next) in [
            (Abort::Conflict, Level::Optimistic),
            (Abort::Capacity, Level::Optimistic),
            (Abort::Busy, Level::Transaction),
            (Abort::Retry, Level::Transaction),
            (Abort::Unspecified, Level::Transaction),
        ] {
            let mut tries = Tries::new(Level::Transaction);
            retries.aborted(&mut tries, Section::Read, abort);
            assert_eq!(tries.level, next, "{abort:?}");
        }
    }

    #[test]
    fn limits_follow_success() {
        let of = |locks: u64, passes: u64| {
            let policy = RetryPolicy { adapts: true, ..RetryPolicy::limits(10, 10) };
            let retries = Retries::new(policy);
            (0..locks).for_each(|_| retries.adapt(Section::Read, true));
            (0..passes).for_each(|_| retries.adapt(Section::Read, false));
            assert_eq!(retries.stats().limits[1], 10);
            retries.stats().limits[0]
        };
        assert_eq!((of(0, 63), of(0, 64), of(20, 44), of(50, 14), of(4, 60)), (10, 9, 16, 5, 10));
        // A limit of none would never rise again.
        let retries =
            Retries::new(RetryPolicy { adapts: true, ..RetryPolicy::limits(u32::MAX, 2) });
        (0..10 * WINDOW).for_each(|_| retries.adapt(Section::Modify, true));
        assert_eq!(retries.stats().limits, [MOST_TRIES, 1]);
    }

    #[test]
    fn injections_come_as_often_as_their_odds() {
        let injected = Injected { busy: 1 << 14, capacity: 1 << 13, ..Injected::default() };
        let retries = Retries::new(RetryPolicy { injected, ..RetryPolicy::default() });
        let drawn: Vec<_> = (0..16_000).map(|_| retries.inject()).collect();
        let count = |status| drawn.iter().filter(|of| **of == status).count();
        assert!((3_600..4_400).contains(&count(Some(Status::explicit(BUSY)))));
        assert!((1_700..2_300).contains(&count(Some(Status::of(Status::CAPACITY)))));
        assert!((9_500..10_500).contains(&count(None)));
    }
}
