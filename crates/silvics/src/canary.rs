//! Seeded mistakes in the real structures, which test the tests.
//!
//! A canary is one small mistake of a kind that real code has made. The feature `canaries` compiles
//! the canaries in, and [`plant`] switches one on for the whole process. A schedule scenario must
//! find each canary within a stated number of schedules (`tests/canaries.rs`); other tests state
//! which canaries they find. Canaries are branches of the real code, so they are declared here and
//! not in `silvics-testkit`, whose broken structures are its own.
//!
//! Without the feature, `planted` is the constant `false`, and no canary is compiled.

#[cfg(feature = "canaries")]
use silvics_sync::model::Setting;

/// Declares the canaries of each index.
macro_rules! canaries {
    ($($index:literal: $($(#[doc = $doc:literal])* $canary:ident $name:literal;)*)*) => {
        /// A mistake that can be switched on.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Canary {
            $($($(#[doc = $doc])* $canary,)*)*
        }

        #[cfg(feature = "canaries")]
        impl Canary {
            /// All canaries.
            pub const ALL: &[Self] = &[$($(Self::$canary,)*)*];

            /// The name of the canary, in kebab case.
            pub fn name(self) -> &'static str {
                match self {
                    $($(Self::$canary => $name,)*)*
                }
            }

            /// The catalogue name of the index that has the canary, with the build if only that
            /// build has it.
            pub fn index(self) -> &'static str {
                match self {
                    $($(Self::$canary => $index,)*)*
                }
            }
        }
    };
}

canaries! {
    "art":
    /// A node is copied before it is locked: what comes into it in between is not in the copy.
    CopiedBeforeLocked "copied-before-locked";
    /// A node that a copy has replaced is unlocked without being marked obsolete. A writer that
    /// waited for its lock then writes to a node that no lookup reaches.
    ReplacedNotObsolete "replaced-not-obsolete";
    /// A writer believes what it saw before it had the lock, as if validation were the lock's
    /// business.
    SeenBeforeLocked "seen-before-locked";
    /// Before a writer has the lock of a node of all bytes, it reads that a place is empty. It does
    /// not look again under the lock.
    GuessTrusted "guess-trusted";
    /// A digit that has got a place while a writer waited for the lock gets another one.
    DigitAddedTwice "digit-added-twice";
    /// A value that comes into a node of all bytes is not noted there: the next writer takes its
    /// place for empty, with or without another thread.
    HeldForgotten "held-forgotten";
    /// A copy is linked though the parent does not lead to the node any more.
    ParentWordTrusted "parent-word-trusted";
    /// A writer that is to make a node smaller finds another word in its parent and concludes that
    /// the node was replaced. In fact a node may have been inserted between the two, and the node
    /// stays below it, with one key or none.
    ShrinkForgotten "shrink-forgotten";
    /// A thread that moves a leaf does not check, under the lock, whether the node still leads to
    /// it. The leaf that has replaced it is lost.
    MovedLeafTrusted "moved-leaf-trusted";
    /// A leaf is copied before the node that leads to it is locked: a value that is written in
    /// between is not in the copy.
    LeafCopiedBeforeLocked "leaf-copied-before-locked";
    /// A leaf that was moved is freed at once: a region goes with it while readers are there.
    MovedLeafFreedAtOnce "moved-leaf-freed-at-once";
    /// A search for the first entry does not validate the nodes on its way. If an entry comes
    /// before a place that the search has passed, while the entries behind that place go, the
    /// search returns an entry that was never the first.
    EndNotValidated "end-not-validated";

    "map":
    /// A value that was taken out of the index is freed at once: a reader that holds a reference to
    /// it reads the next value in that slot.
    ValueFreedAtOnce "value-freed-at-once";
    /// A `compare_exchange` that finds another value than the one it compared takes the new one for
    /// equal without comparing it.
    OtherValueTrusted "other-value-trusted";

    "edge-ext-lf":
    /// The edge to the sibling is read, not tagged, before the ancestor's edge swings to the
    /// sibling: what is inserted at that edge in between is cut off. The step that ports of the
    /// paper's `cleanup` drop, as its CAS succeeds without it.
    SiblingNotTagged "sibling-not-tagged";
    /// An insert takes a marked edge as it is, marks and all, for the one to replace, and so wipes
    /// out the flag of a removal under way: comparing the whole word where the child is meant.
    InsertIgnoresMark "insert-ignores-mark";
    /// An operation that meets a marked edge tries again without finishing the removal: correct
    /// as long as the remover runs, and not lock-free.
    MissingHelp "missing-help";
    /// A removal frees the nodes that it cuts out at once instead of retiring them, as sequential
    /// programs do.
    FreedAtOnce "freed-at-once";
    /// A removal retires the leaf when it has flagged its edge. The leaf can still be reached by
    /// threads that pin later: retirement tied to the logical removal instead of the physical one.
    RetiredBeforeUnlink "retired-before-unlink";
    /// An upsert replaces a leaf whose edge is flagged: both it and the remover report the old
    /// value, and the key lives on.
    UpsertResurrects "upsert-resurrects";
    /// A removal retires only the last node and its leaf of a chain that one CAS cuts out. The
    /// nodes of removals that others had begun further up leak, as in published benchmark code.
    ChainLeaked "chain-leaked";
    /// A scan that meets a frozen edge takes everything below for removed, like the edge's node:
    /// but one of the node's two subtrees has moved up.
    ScanTakesFrozenForGone "scan-takes-frozen-for-gone";
    /// A scan trusts that what is to the right of its place has larger keys: but a subtree that has
    /// moved up gets keys to its left that the scan has passed.
    ScanForgetsItsPlace "scan-forgets-its-place";

    "edge-ext-lf:collocated":
    /// The block that a leaf and an internal node share is retired with each of them instead of
    /// with the second to die.
    BlockRetiredByHalves "block-retired-by-halves";

    "ext-lf":
    /// An insert takes the leaf found as the sibling of its own instead of a copy: when the new
    /// leaf is removed, the old one is the parent's child again, and a helper of the insert that
    /// comes late puts the insert's node there once more.
    LeafNotCopied "leaf-not-copied";
    /// The flag is taken away without counting: an operation that has read the word before claims
    /// the node though its edges have changed. In the paper, the last descriptor stays in a clean
    /// word to prevent this.
    FlagNotCounted "flag-not-counted";
    /// A deletion flags the grandparent and does not mark the parent, whose other child may change
    /// meanwhile: what is inserted there goes with the parent.
    ParentNotMarked "parent-not-marked";
    /// An upsert replaces the leaf without a flag, by a CAS on the edge that suffices in trees
    /// whose removals mark edges: here the leaf's parent may be marked already.
    UpdateUnflagged "update-unflagged";
    /// Every thread that helps an insert retires its descriptor, not only the thread that took it
    /// out of the word.
    HelperRetires "helper-retires";
    /// The descriptor of a deletion that gives up is forgotten. As published benchmark code does.
    BacktrackLeaks "backtrack-leaks";
    /// An operation that meets a claimed node tries again without helping: not lock-free.
    ClaimNotHelped "claim-not-helped";

    "int-lf":
    /// A search that ends at a null link does not look again at the node where it went right last:
    /// a relocation there has lifted the key over its head. The check that the paper's `find` ends
    /// with.
    RelocationUnseen "relocation-unseen";
    /// The same search trusts that node though it has left the tree: the relocation was above it.
    LeavingNodeTrusted "leaving-node-trusted";
    /// The same search trusts that node though a copy has taken its place: it was the copy that was
    /// relocated.
    CopyNotFollowed "copy-not-followed";
    /// A relocation does not claim the successor: what becomes of it meanwhile is lost, its removal
    /// or another value.
    SuccessorNotClaimed "successor-not-claimed";
    /// An upsert puts a copy in the node's place and does not mark the node: what is inserted below
    /// it between the copying and then is cut off.
    UpdateUnmarked "update-unmarked";
    /// All null links are alike: a helper of an insertion that comes late links the node again when
    /// it has been removed. The paper marks null links to prevent this.
    NullNotCounted "null-not-counted";
    /// A helper of a relocation takes the successor's parent from the descriptor. The owner of the
    /// relocation may do so, because it has visited that node. Before the helper pinned, the node
    /// may have left the tree and been retired. The mistake is easy to make wherever a descriptor
    /// refers to nodes that its operation has not claimed yet.
    SuccessorsParentTrusted "successors-parent-trusted";
    /// A relocation that gives up forgets the second part of its descriptor.
    FailedRelocationLeaks "failed-relocation-leaks";
    /// An operation that meets a claimed node tries again without helping: not lock-free.
    ClaimedNodeNotHelped "claimed-node-not-helped";

    "edge-int-lf":
    /// A search that has missed its key believes it, whatever became of the anchor meanwhile: a key
    /// that moves up is missed.
    AnchorUnchecked "anchor-unchecked";
    /// An edge that is empty again looks as it did when it was empty before: an insert that has
    /// been asleep puts its key where it would have belonged then.
    EmptyEdgeReused "empty-edge-reused";
    /// The copy of an update takes the right edge as it is, without freezing it first: what is
    /// inserted there meanwhile is lost with the old node.
    OpenEdgeCopied "open-edge-copied";
    /// An upsert that has announced its copy takes for granted that the copy comes, though a
    /// removal may have decided otherwise.
    FateTakenForGranted "fate-taken-for-granted";
    /// The right edge of a successor is not frozen before it is moved up: what is inserted there
    /// meanwhile is cut off.
    SuccessorLeftOpen "successor-left-open";
    /// The successor is cut out before the copy has its pair: for a while its key is nowhere.
    PromotedTooLate "promoted-too-late";
    /// Nobody retires the successor.
    SuccessorLeaked "successor-leaked";
    /// A removal retires its node when the node is decided to go, while others can still come to
    /// it.
    RetiredAtClaim "retired-at-claim";
    /// A helper takes a marked edge for a sign that its owner has a fate. It may be reserved only:
    /// the owner is cut out with a left edge that is open.
    ReservedTakenForFate "reserved-taken-for-fate";
    /// An operation that meets a marked edge tries again without helping.
    MarkNotHelped "mark-not-helped";

    "occ-avl":
    /// The descent does not look again at the version of the node it leaves: a rotation that moves
    /// the node down in between hides the key.
    DescentUnvalidated "descent-unvalidated";
    /// The descent loads a node's link before the node's version: a rotation that moves the node
    /// down and one that brings it back leave a link from in between beside a version from
    /// afterwards.
    NextReadEarly "next-read-early";
    /// A node that is unlinked does not say so in its version: inserts go below it, or into it.
    UnlinkKeepsVersion "unlink-keeps-version";
    /// A rotation moves nodes down without marking them and counting the move.
    RotationKeepsVersion "rotation-keeps-version";
    /// An insert does not look again, under the lock, whether its place has moved.
    AttachUnvalidated "attach-unvalidated";
    /// A lookup reads a value after its presence and does not look at the presence again: it
    /// returns what is being inserted before it is.
    PresenceUnvalidated "presence-unvalidated";
    /// Repair comes to the node above a height that has changed and does not look whether a
    /// rotation has moved the child below another, whose height is then never set right.
    DamageLost "damage-lost";
    /// Repair lets go of a node to lock its parent first and does not look, when it has both,
    /// whether that still is its parent: it rotates at the wrong place.
    RepairsBelowOldParent "repairs-below-old-parent";
    /// An insert that finds its place taken is counted before it gives up.
    CountedOnFailure "counted-on-failure";

    "log-int":
    /// A removed node leaves the list before it leaves the tree, as published: the node that its
    /// frozen link leads to can be reclaimed while it can still be found, and when its key is
    /// inserted again, lookups find the old node.
    ListBeforeTree "list-before-tree";
    /// An insert sets the link that leads back to its node before the one that leads to it, as
    /// published code does: who comes from behind finds the key before it is there.
    LinkedBackwardsFirst "linked-backwards-first";
    /// An insert puts its node behind one that was removed before its interval was locked.
    AttachedBehindRemoved "attached-behind-removed";
    /// An upsert does not look, under the lock, whether the node has been removed.
    UpdateOfRemoved "update-of-removed";
    /// A removal that has locked its node's parent does not look whether it still is that.
    ParentUnvalidated "parent-unvalidated";
    /// A descending scan goes where the link to the predecessor leads and trusts it: an insertion
    /// that has not set it yet is missed.
    BackwardLinkTrusted "backward-link-trusted";

    "ticket":
    /// The version of an edge's lock is read after the edge: the lock can be taken though the edge
    /// has changed in between.
    VersionReadLate "version-read-late";
    /// A removal takes the lock of the edge to its leaf alone: what is put below the sibling's edge
    /// meanwhile goes with the parent.
    SiblingUnlocked "sibling-unlocked";
    /// A removal gives the locks of the node back that it has cut out, and others link below it.
    RemovedUnlocked "removed-unlocked";
    /// An upsert takes the lock of its edge at whatever version it finds, and replaces a leaf that
    /// may be another one by then.
    UpsertUnvalidated "upsert-unvalidated";
    /// A removal retires the leaf and forgets its parent.
    ParentLeaked "parent-leaked";
    /// Versions have too few bits: an edge that has changed often enough counts as unchanged. As in
    /// the authors' code, with 1 bit instead of 16.
    VersionTooShort "version-too-short";

    "citrus":
    /// A removal takes the successor out from below its copy without waiting for the lookups that
    /// have passed the place before the copy was there.
    GraceSkipped "grace-skipped";
    /// An insert that finds its place empty again does not look whether it was in between: the key
    /// may have come there, been copied further up, and been taken out.
    TagIgnored "tag-ignored";
    /// The tag is read when the read section is over, and vouches for nothing that came before.
    TagReadLate "tag-read-late";
    /// The successor's value is read for its copy before the successor is locked: an update in
    /// between is lost.
    ValueCopiedEarly "value-copied-early";
    /// An upsert does not look, under the lock, whether the node has been removed or copied.
    UpdateOfMarked "update-of-marked";
    /// The successor is retired when its copy is there, while it still can be reached.
    SuccessorRetiredEarly "successor-retired-early";

    "skiplist":
    /// A descent of a batch that has waited for a node takes the node for present because it was
    /// when its link was read, and does not look at its mark.
    BatchTrustsLink "batch-trusts-link";
    /// A thread that has built a tower does not check whether the node was removed meanwhile. The
    /// node stays linked on an upper level for good. The fences in `take` and `build_tower` prevent
    /// this.
    TowerLinkedAfterRemoval "tower-linked-after-removal";
    /// The first to unlink a node from some level retires it, while other levels still lead to it.
    RetiredWhileLinked "retired-while-linked";
    /// A scan that meets a removed node goes on behind its key, and so behind the node that has
    /// replaced it: a key that is present throughout is missed.
    ScanSkipsReplacement "scan-skips-replacement";
    /// A cursor at a removed node follows that node's frozen link, without a guard that is as old
    /// as the link, to where it led when the node was removed.
    CursorFollowsFrozenLink "cursor-follows-frozen-link";
    /// An upsert puts its node behind one that is removed already: the frozen link changes.
    UpdateReplacesRemoved "update-replaces-removed";
}

/// The canary that is switched on: 0 for none, else the canary's number plus one.
#[cfg(feature = "canaries")]
static PLANTED: Setting = Setting::new(0);

/// Switches one canary on, or none, in all indexes of this process. Call it only while no operation
/// is running.
#[cfg(feature = "canaries")]
pub fn plant(canary: Option<Canary>) {
    PLANTED.set(canary.map_or(0, |canary| canary as u8 + 1));
}

/// Whether this canary is switched on.
#[cfg(feature = "canaries")]
#[inline]
pub(crate) fn planted(canary: Canary) -> bool {
    PLANTED.get() == canary as u8 + 1
}

/// Whether this canary is switched on: never in this build.
#[cfg(not(feature = "canaries"))]
#[inline(always)]
pub(crate) const fn planted(_canary: Canary) -> bool {
    false
}

#[cfg(all(test, feature = "canaries"))]
mod tests {
    use super::*;

    #[test]
    fn each_canary_has_a_name_of_its_own() {
        for (at, canary) in Canary::ALL.iter().enumerate() {
            assert!(Canary::ALL[..at].iter().all(|other| other.name() != canary.name()));
            assert!(canary.name().chars().all(|c| c.is_ascii_lowercase() || c == '-'));
        }
    }
}
