//! The word by which an operation claims a node for its descriptor.
//!
//! # Source
//! Ellen et al., PODC 2010, and Howley and Jones, SPAA 2012, keep such a word in each node
//! (`update`, `op`): two bits of state beside a pointer to the descriptor of an operation, which
//! any thread can finish. Both papers rely on a collector, and leave the pointer to the last
//! descriptor in a clean word, so that no word ever has the same value twice.
//!
//! # Protocol
//! A word is *clean*, with a count in place of a pointer, or *claimed* for a descriptor, with one
//! of three flags.
//! ```text
//! clean(n)      → claimed(d)       try_claim, claim: for an operation that has read clean(n)
//! claimed(d)    → clean(n + 1)     release: the operation is over, or gives up
//! ```
//! A flag that is never released marks the node for good.
//!
//! * C1: a word is clean with a given count at most once, in one stretch of time. So a claim
//!   succeeds only if no thread has claimed the node since the clean word was read. Values that
//!   change under such claims alone (the links of the node), and were read after the word, are then
//!   unchanged. The count has 62 bits: it does not wrap.
//! * C2: once a claim of one descriptor has been released, no claim for it succeeds again: each of
//!   them expects the one clean word that the first has replaced.
//! * C3: exactly one thread's `release` of a claim succeeds.
//! * C4: a clean word refers to no object. A descriptor that is in no word any more can be reached
//!   only by threads that have read it before, under older guards. An object that a guard protects
//!   is not reused; so a word that is seen to hold a descriptor's address holds that descriptor.
//!
//! # Memory ordering
//! | site | ordering | pairs with | why |
//! |---|---|---|---|
//! | `load`, `is`; claims that fail | `SeqCst` | every successful CAS | the descriptor is initialised; links read behind a clean word are no older than it (C1) |
//! | all CASes, success | `SeqCst` | `load` | publishes the descriptor; a thread that sees the release sees the links changed under the claim |

use silvics_sync::atomic::{AtomicPtr, Ordering};
use std::fmt;
use std::ptr::{NonNull, without_provenance_mut};

/// The state of a claimed node. Each tree gives the three flags its own names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flag {
    One = 1,
    Two = 2,
    Three = 3,
}

/// The bits of the flag, which are zero in a clean word.
const FLAGS: usize = 3;
/// The step by which a clean word counts.
const STEP: usize = 4;

/// A clean word as a thread has read it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Clean(usize);

impl Clean {
    /// The clean word of a new node.
    pub(super) const FIRST: Self = Self(0);

    /// The clean word that a release puts in place of a claim.
    pub(super) fn next(self) -> Self {
        Self(self.0.wrapping_add(STEP))
    }

    /// The number of earlier claims of the node.
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
        // SAFETY: a word with a flag was made from a `Claim`, whose descriptor's address is not
        // null.
        let descriptor = unsafe { NonNull::new_unchecked(word.map_addr(|a| a & !FLAGS)) };
        Self::Claimed(Claim { flag, descriptor })
    }
}

/// The word in memory. This type contains every atomic access to such words.
pub(super) struct AtomicClaim<D>(AtomicPtr<D>);

impl<D> AtomicClaim<D> {
    /// The word of a new node.
    pub(super) fn new() -> Self {
        Self(AtomicPtr::new(without_provenance_mut(Clean::FIRST.0)))
    }

    #[inline(always)]
    pub(super) fn load(&self) -> State<D> {
        State::of(self.0.load(Ordering::SeqCst))
    }

    /// Whether the word is still `clean`.
    pub(super) fn is(&self, clean: Clean) -> bool {
        self.0.load(Ordering::SeqCst).addr() == clean.0
    }

    fn swing(&self, current: *mut D, new: *mut D) -> Result<(), *mut D> {
        let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
        self.0.compare_exchange(current, new, success, failure).map(|_| ())
    }

    /// Claims the node by the operation's own thread, which thereby publishes the descriptor. If
    /// the word has changed, returns its present state.
    pub(super) fn try_claim(&self, clean: Clean, claim: Claim<D>) -> Result<(), State<D>> {
        self.swing(without_provenance_mut(clean.0), claim.word()).map_err(State::of)
    }

    /// Claims the node by any thread that finishes the operation. Returns whether the node is
    /// claimed, by this call or an earlier one, and not released yet.
    #[must_use]
    pub(super) fn claim(&self, clean: Clean, claim: Claim<D>) -> bool {
        match self.swing(without_provenance_mut(clean.0), claim.word()) {
            Ok(()) => true,
            Err(seen) => seen == claim.word(),
        }
    }

    /// Ends a claim, which had replaced `before`. Returns whether this call did (C3).
    #[must_use]
    pub(super) fn release(&self, claim: Claim<D>, before: Clean) -> bool {
        self.release_to(claim, before.next())
    }

    /// Ends a claim with the clean word that follows. Any word but `before.next()` is a mistake.
    pub(super) fn release_to(&self, claim: Claim<D>, clean: Clean) -> bool {
        self.swing(claim.word(), without_provenance_mut(clean.0)).is_ok()
    }
}

/// Loom checks the claims in every execution (`.ci/step loom`).
#[cfg(all(test, silvics_loom))]
mod loom_tests {
    use super::*;
    use loom::thread;
    use silvics_sync::atomic::AtomicU64;
    use silvics_sync::cell::UnsafeCell;
    use std::sync::Arc;

    /// A descriptor that holds the new value of the link.
    #[repr(align(64))]
    struct Descriptor(UnsafeCell<u64>);

    /// A node with one link.
    struct Node {
        word: AtomicClaim<Descriptor>,
        link: AtomicU64,
        descriptors: [Descriptor; 2],
    }
    // SAFETY: descriptors are written before they are published, and read by threads that have seen
    // them in the word; loom checks that.
    unsafe impl Sync for Node {}
    // SAFETY: a node has no tie to the thread that made it.
    unsafe impl Send for Node {}

    impl Node {
        fn new() -> Arc<Self> {
            let descriptors = [(); 2].map(|()| Descriptor(UnsafeCell::new(0)));
            Arc::new(Self { word: AtomicClaim::new(), link: AtomicU64::new(0), descriptors })
        }

        fn claim(&self, at: usize, to: u64) -> Claim<Descriptor> {
            // SAFETY: one thread fills each descriptor, and has not published it yet.
            self.descriptors[at].0.with_mut(|content| unsafe { *content = to });
            Claim::new(Flag::One, NonNull::from(&self.descriptors[at]))
        }

        /// Does what the descriptor says, as a helper or the owner. Returns whether this call
        /// released the node.
        fn help(&self, claim: Claim<Descriptor>, before: Clean) -> bool {
            // SAFETY: the descriptor was seen in the word, or is the thread's own.
            let to = unsafe { claim.descriptor.as_ref() }.0.with(|content| unsafe { *content });
            // Relaxed: the word's orderings must suffice.
            let seen = (to - 1, Ordering::Relaxed, Ordering::Relaxed);
            let _ = self.link.compare_exchange(seen.0, to, seen.1, seen.2);
            self.word.release(claim, before)
        }
    }

    fn spawn<T: 'static>(
        node: &Arc<Node>,
        work: impl FnOnce(&Node) -> T + 'static,
    ) -> thread::JoinHandle<T> {
        let node = Arc::clone(node);
        thread::spawn(move || work(&node))
    }

    /// C1: one thread changes the link under a claim. Another reads word and link, and claims the
    /// node for the values that it has read.
    fn what_was_read_is_so(release: fn(&Node, Claim<Descriptor>, Clean)) {
        loom::model(move || {
            let node = Node::new();
            let other = spawn(&node, move |node| {
                let claim = node.claim(0, 1);
                if node.word.try_claim(Clean::FIRST, claim).is_ok() {
                    node.link.store(1, Ordering::Relaxed);
                    release(node, claim, Clean::FIRST);
                }
            });
            if let State::Clean(clean) = node.word.load() {
                let link = node.link.load(Ordering::Relaxed);
                if node.word.try_claim(clean, node.claim(1, 2)).is_ok() {
                    assert_eq!(node.link.load(Ordering::Relaxed), link, "the link has changed");
                }
            }
            other.join().unwrap();
        });
    }

    #[test]
    fn a_claim_is_for_what_was_read() {
        what_was_read_is_so(|node, claim, before| {
            assert!(node.word.release(claim, before));
        });
    }

    #[test]
    #[should_panic(expected = "the link has changed")]
    fn a_release_that_does_not_count_is_caught() {
        what_was_read_is_so(|node, claim, before| {
            node.word.release_to(claim, before);
        });
    }

    /// C2, C3: however many threads help, the step is made once, and one release succeeds.
    #[test]
    fn one_of_all_who_help_releases_the_node() {
        loom::model(|| {
            let node = Node::new();
            let helper = |node: &Node| match node.word.load() {
                State::Claimed(claim) => node.help(claim, Clean::FIRST),
                State::Clean(_) => false,
            };
            let helpers = [spawn(&node, helper), spawn(&node, helper)];
            let claim = node.claim(0, 1);
            assert!(node.word.try_claim(Clean::FIRST, claim).is_ok());
            let mut releases = usize::from(node.help(claim, Clean::FIRST));
            for helper in helpers {
                releases += usize::from(helper.join().unwrap());
            }
            assert_eq!(releases, 1);
            assert!(node.word.is(Clean::FIRST.next()) && !node.word.claim(Clean::FIRST, claim));
            assert_eq!(node.link.load(Ordering::Relaxed), 1);
        });
    }

    /// Two claims of one node exclude each other, whichever threads make them.
    #[test]
    fn a_node_is_claimed_for_one_descriptor() {
        loom::model(|| {
            let node = Node::new();
            let other = spawn(&node, |node| node.word.claim(Clean::FIRST, node.claim(0, 1)));
            let own = node.word.try_claim(Clean::FIRST, node.claim(1, 1)).is_ok();
            assert!(own != other.join().unwrap());
        });
    }

    /// A thread that meets a claim reads its descriptor.
    fn published(load: fn(&AtomicClaim<Descriptor>) -> State<Descriptor>) {
        loom::model(move || {
            let node = Node::new();
            let owner =
                spawn(&node, |node| node.word.try_claim(Clean::FIRST, node.claim(0, 1)).is_ok());
            if let State::Claimed(claim) = load(&node.word) {
                // SAFETY: the descriptor was seen in the word.
                let to = unsafe { claim.descriptor.as_ref() }.0.with(|content| unsafe { *content });
                assert_eq!(to, 1);
            }
            assert!(owner.join().unwrap());
        });
    }

    #[test]
    fn who_meets_a_claim_sees_its_descriptor_initialised() {
        published(AtomicClaim::load);
    }

    #[test]
    #[should_panic(expected = "Causality violation")]
    fn a_relaxed_load_is_caught() {
        published(|word| State::of(word.0.load(Ordering::Relaxed)));
    }
}
