//! The word by which an operation claims a node for its descriptor.
//!
//! # Source
//! Ellen et al., PODC 2010, and Howley and Jones, SPAA 2012, keep such a word in each node (`update`,
//! `op`): two bits of state beside a pointer to the descriptor of an operation, which any thread can
//! finish. Both papers rely on a collector, and leave the pointer to the last descriptor in a clean
//! word, so that no word is ever the same twice.
//!
//! # Protocol
//! A word is *clean*, with a count in place of a pointer, or *claimed* for a descriptor, with one of
//! three flags.
//! ```text
//! clean(n)      → claimed(d)       try_claim, claim: for an operation that has read clean(n)
//! claimed(d)    → clean(n + 1)     release: the operation is over, or gives up
//! ```
//! A flag that is never released marks the node for good.
//!
//! * C1: a word is clean with the same count at most once, in one stretch of time. So a claim
//!   succeeds only if nobody has claimed the node since the clean word was read, and of all that
//!   changes under such claims alone (the links of the node) whatever was read behind the word is
//!   still so. The count has 62 bits: it does not come round.
//! * C2: once a claim of one descriptor has been released, no claim for it succeeds again: each of
//!   them expects the one clean word that the first has replaced.
//! * C3: exactly one thread's `release` of a claim succeeds.
//! * C4: a clean word refers to nothing. A descriptor that is in no word any more can be reached only
//!   by threads that have read it before, under guards from before. What a guard protects is not
//!   reused; so a word that is seen to hold a descriptor's address holds that descriptor.
//!
//! # Memory ordering
//! | site | ordering | pairs with | why |
//! |---|---|---|---|
//! | `load`; `try_claim` that fails | `SeqCst` | every successful CAS | the descriptor is initialised; links read behind a clean word are no older than it (C1) |
//! | all CASes, success | `SeqCst` | `load` | publishes the descriptor; the links changed under a claim are seen by who sees it released |

use silvics_sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::ptr::{NonNull, without_provenance_mut};

/// What a claim says of the node. Each tree gives the three names of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    One = 1,
    Two = 2,
    Three = 3,
}

/// Where the flag is; zero in a clean word.
const FLAGS: usize = 3;
/// What a clean word counts in.
const STEP: usize = 4;

/// A clean word as somebody read it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Clean(usize);

impl Clean {
    /// That of a new node.
    pub(super) const FIRST: Self = Self(0);

    /// The one that a release puts in place of a claim.
    pub(super) fn next(self) -> Self {
        Self(self.0.wrapping_add(STEP))
    }

    /// How often the node has been claimed before.
    pub(super) fn count(self) -> usize {
        self.0 / STEP
    }
}

impl fmt::Debug for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "clean {}", self.count())
    }
}

/// A claimed word.
pub(super) struct Claim<D> {
    pub(super) flag: Flag,
    pub(super) descriptor: NonNull<D>,
}

impl<D> Clone for Claim<D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<D> Copy for Claim<D> {}

impl<D> fmt::Debug for Claim<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "flag {:?} of {:p}", self.flag, self.descriptor)
    }
}

impl<D> Claim<D> {
    #[inline(always)]
    pub(super) fn new(flag: Flag, descriptor: NonNull<D>) -> Self {
        const { assert!(align_of::<D>() > FLAGS) };
        Self { flag, descriptor }
    }

    fn word(self) -> *mut D {
        self.descriptor.as_ptr().map_addr(|a| a | self.flag as usize)
    }
}

/// The value of a word.
pub(super) enum State<D> {
    Clean(Clean),
    Claimed(Claim<D>),
}

impl<D> Clone for State<D> {
    #[inline(always)]
    fn clone(&self) -> Self {
        *self
    }
}
impl<D> Copy for State<D> {}

impl<D> State<D> {
    #[inline(always)]
    fn of(word: *mut D) -> Self {
        let flag = match word.addr() & FLAGS {
            0 => return Self::Clean(Clean(word.addr())),
            1 => Flag::One,
            2 => Flag::Two,
            _ => Flag::Three,
        };
        // SAFETY: a claimed word holds the address of a descriptor, which is not null.
        let descriptor = unsafe { NonNull::new_unchecked(word.map_addr(|a| a & !FLAGS)) };
        Self::Claimed(Claim { flag, descriptor })
    }
}

/// The word in memory. Every access of the protocol is here.
pub(super) struct AtomicClaim<D>(AtomicPtr<D>);

impl<D> AtomicClaim<D> {
    /// That of a new node.
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(without_provenance_mut(Clean::FIRST.0)))
    }

    #[inline(always)]
    pub(super) fn load(&self) -> State<D> {
        State::of(self.0.load(Ordering::SeqCst))
    }

    /// Whether the word is still what it was.
    pub(super) fn is(&self, clean: Clean) -> bool {
        self.0.load(Ordering::SeqCst).addr() == clean.0
    }

    fn swing(&self, current: *mut D, new: *mut D) -> Result<(), *mut D> {
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        self.0.compare_exchange(current, new, success, failure).map(|_| ())
    }

    /// Claims the node by the operation's own thread, which publishes the descriptor; or says what
    /// came before.
    pub(super) fn try_claim(&self, clean: Clean, claim: Claim<D>) -> Result<(), State<D>> {
        self.swing(without_provenance_mut(clean.0), claim.word()).map_err(State::of)
    }

    /// Claims the node by any thread that finishes the operation. Whether it is claimed, by this call
    /// or an earlier one, and not released yet.
    #[must_use]
    pub(super) fn claim(&self, clean: Clean, claim: Claim<D>) -> bool {
        match self.swing(without_provenance_mut(clean.0), claim.word()) {
            Ok(()) => true,
            Err(seen) => seen == claim.word(),
        }
    }

    /// Ends a claim, which had replaced `before`. Whether this call did (C3).
    #[must_use]
    pub(super) fn release(&self, claim: Claim<D>, before: Clean) -> bool {
        self.release_to(claim, before.next())
    }

    /// The same, with the clean word that follows. Any but `before.next()` is a mistake.
    pub(super) fn release_to(&self, claim: Claim<D>, clean: Clean) -> bool {
        self.swing(claim.word(), without_provenance_mut(clean.0)).is_ok()
    }
}
