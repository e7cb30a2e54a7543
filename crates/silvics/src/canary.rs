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
    ($($index:literal: $($(#[$meta:meta])* $canary:ident $name:literal;)*)*) => {
        /// A mistake that can be switched on.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Canary {
            $($($(#[$meta])* $canary,)*)*
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
    /// A node is copied before it is locked. A key that is inserted in between is not in the copy.
    CopiedBeforeLocked "copied-before-locked";
    /// A node that a copy has replaced is unlocked without being marked obsolete. A writer that
    /// waited for its lock then writes to a node that no lookup reaches.
    ReplacedNotObsolete "replaced-not-obsolete";
    /// A writer trusts what it read before it had the lock, and does not validate it under the
    /// lock.
    SeenBeforeLocked "seen-before-locked";
    /// Before a writer locks a node of all bytes, it reads that a place is empty. It does not read
    /// the place again under the lock.
    GuessTrusted "guess-trusted";
    /// A writer waits for the lock of a node. Meanwhile its digit gets a place there. The writer
    /// adds the digit to the node a second time.
    DigitAddedTwice "digit-added-twice";
    /// An insert into a node of all bytes does not note there that the place holds a value. The
    /// next writer takes the place for empty, even if no other thread runs.
    HeldForgotten "held-forgotten";
    /// A copy is linked although the parent no longer leads to the node.
    ParentWordTrusted "parent-word-trusted";
    /// A writer that has to shrink a node finds another word in the node's parent, and concludes
    /// that the node was replaced. In fact, a node may have been inserted between the two. The node
    /// then stays below it with one key or none.
    ShrinkForgotten "shrink-forgotten";
    /// A thread that moves a leaf does not check under the lock that the node still leads to that
    /// leaf. A leaf that has replaced it is lost.
    MovedLeafTrusted "moved-leaf-trusted";
    /// A leaf is copied before the node that leads to it is locked. A value that is written in
    /// between is not in the copy.
    LeafCopiedBeforeLocked "leaf-copied-before-locked";
    /// The old copy of a moved leaf is freed at once, not retired. Its region can be unmapped while
    /// lookups read it.
    MovedLeafFreedAtOnce "moved-leaf-freed-at-once";
    /// A search for the first entry does not validate the nodes on its path. An entry may be
    /// inserted before a place that the search has passed, while the entries after that place are
    /// removed. The search then returns an entry that was never the first.
    EndNotValidated "end-not-validated";
    /// A removal of the first entry finds the entry, and then removes its key. It returns the entry
    /// that it has found. If another thread removes that entry in between, both return it.
    PopInTwoSteps "pop-in-two-steps";
    /// A removal of the first entry unlocks each node on its path when it has locked the next one.
    /// A smaller key may be inserted in a node above, and then the removed entry was not the first.
    PopPathUnlocked "pop-path-unlocked";

    "words":
    /// A search does not go on to the next group if a key of its group may be there.
    PassedIgnored "passed-ignored";
    /// An insert that puts a key into a later group does not note that in the groups that it has
    /// passed.
    PassedNotNoted "passed-not-noted";
    /// A value is moved by a load and a store. One that is written in between is lost.
    ValueMovedTwice "value-moved-twice";
    /// The values of a leaf move before the leaf has a successor, and a walk takes such a value for
    /// absent.
    MovedIsAbsent "moved-is-absent";
    /// A value has moved, and is looked up in the successor of its leaf, although the move was
    /// taken back and the successor is another one.
    SuccessorTrusted "successor-trusted";
    /// A leaf that another one has replaced is unlocked as if it were still linked.
    LeafStaysValid "leaf-stays-valid";
    /// A leaf becomes the first one, although another thread has the lock of the one that was the
    /// first before.
    EndUnlocked "end-unlocked";
    /// A search for the first entry does not check that no leaf has become the first one since it
    /// began.
    EndNotChecked "end-not-checked";
    /// A leaf is unlinked when it has no value, although one was removed after the leaf was closed,
    /// and its place is open.
    OpenPlaceTrusted "open-place-trusted";
    /// A search for the first entry does not close the places before that entry. A smaller key may
    /// be inserted there meanwhile.
    EndNotClosed "end-not-closed";

    "ca-tree":
    /// A lookup returns what it has read without a look at the version of the base node's lock.
    ValueNotValidated "value-not-validated";
    /// A base node that was split is unlocked as if it were still linked.
    SplitBaseStaysValid "split-base-stays-valid";
    /// The neighbour with which a base node was joined is unlocked as if it were still linked.
    JoinedBaseStaysValid "joined-base-stays-valid";
    /// A join does not lock the route node above the one that goes away. Another join may take that
    /// one away meanwhile.
    RouteNotLocked "route-not-locked";
    /// A walk goes on at the bound of a route node that was unlinked before its base node was made.
    OldBoundTrusted "old-bound-trusted";
    /// A container node that was copied is freed at once, not retired.
    ContainerFreedAtOnce "container-freed-at-once";
    /// The object of a removed key is forgotten.
    ObjectNotRetired "object-not-retired";
    /// A range of several base nodes is read without looking at their versions again.
    RangeNotValidated "range-not-validated";
    /// A range update puts its values after it has released the locks.
    RangeUnlockedEarly "range-unlocked-early";
    /// A writer that has a readers–writer lock does not wait for the readers inside.
    ReadersNotAwaited "readers-not-awaited";

    "lfca-tree":
    /// A split stores its route node without a look at the place. A base node that another thread
    /// has put there meanwhile is lost.
    SplitOverwrites "split-overwrites";
    /// A join does not claim the place of the neighbour. A write there is lost.
    NeighbourNotClaimed "neighbour-not-claimed";
    /// A join does not claim the other child of the parent. Another join may change it meanwhile.
    OtherNotClaimed "other-not-claimed";
    /// A join does not claim the place above the parent, which may lead elsewhere meanwhile.
    AboveNotClaimed "above-not-claimed";
    /// A thread that meets a claimed place tries again without helping. The tree is then not
    /// lock-free.
    JoinNotHelped "join-not-helped";
    /// The objects that a write replaces are freed at once, not retired.
    ReplacedFreedAtOnce "replaced-freed-at-once";
    /// A walk goes on at a bound although it has taken keys behind it: the route node of the bound
    /// was unlinked before the base node was made.
    StaleBoundTrusted "stale-bound-trusted";
    /// A search for the first entry passes empty base nodes, and does not validate that they were
    /// empty at one moment. Neither does a snapshot.
    SnapshotNotValidated "snapshot-not-validated";
    /// A removal of the first entry passes empty base nodes without joining them.
    PopsBehindEmpty "pops-behind-empty";
    /// A removal retires its key without asking whether a route node has it.
    HeldKeyRetired "held-key-retired";
    /// A split notes that its route node has a key when the route node is already linked.
    KeyHeldLate "key-held-late";
    /// A join forgets that its route node had a key whose entry is removed.
    HeldKeyForgotten "held-key-forgotten";
    /// A bound stays the key of an entry that is not the first one below it any more.
    OldFirstEntry "old-first-entry";

    "blocks":
    /// A block is copied before updates are kept out. A value that is written in between is not in
    /// the copy.
    CopiedBeforeBarred "copied-before-barred";
    /// A block that a copy has replaced is unlocked as if it were still linked. A writer that
    /// waited for its lock then writes to a block that no lookup reaches.
    BlockStaysValid "block-stays-valid";
    /// A split leaves out the first entry of the right block.
    SplitDropsFence "split-drops-fence";
    /// A lookup takes an entry whose tag is right for that of its key, and does not compare the
    /// keys.
    TagTakenForKey "tag-taken-for-key";
    /// A lookup does not check that the entry is still present after it has read the value. The
    /// value may be one that is about to be put back.
    PutBackTrusted "put-back-trusted";
    /// An insert makes a removed entry present again before it has written the value.
    PutBackEarly "put-back-early";
    /// An update does not count itself. The block is copied while the update is in progress.
    UpdateNotCounted "update-not-counted";
    /// A removal does not keep updates out. An update may replace the value that the removal
    /// returns.
    RemovalLetsUpdatesIn "removal-lets-updates-in";
    /// An insert trusts that its key is absent, as it was before the block was locked.
    AbsenceTrusted "absence-trusted";
    /// An insert does not check that its key belongs to the block that it came to. Lookups come to
    /// this block, too, but scans find the key in the wrong place.
    DepthIgnored "depth-ignored";
    /// A key is put beside the tree, although the root is no longer the subtree that the key was
    /// compared with.
    BesideAnything "beside-anything";
    /// A scan takes the sorted entries of a block for all, although others were added since.
    OrderTrusted "order-trusted";
    /// An insert puts its entry in front of another, and does not change the gap of that one.
    GapForgotten "gap-forgotten";
    /// An insert puts the rest of its key behind a prefix that the key does not have.
    PrefixIgnored "prefix-ignored";
    /// A new first block is linked without the lock of the block that was the first.
    NeighbourUnlocked "neighbour-unlocked";
    /// A search for the first entry does not validate the version of its block.
    FirstNotValidated "first-not-validated";
    /// A replaced block is freed at once, not retired.
    BlockFreedAtOnce "block-freed-at-once";

    "lpm":
    /// The nodes that an update of a table of prefixes replaces are freed at once, not retired. A
    /// lookup may still read them.
    #[cfg_attr(not(feature = "lpm"), allow(dead_code))] // its module is absent
    LpmNodeFreedAtOnce "lpm-node-freed-at-once";
    /// A writer of a table of prefixes reads the root before it has the lock. The update of another
    /// writer is lost.
    #[cfg_attr(not(feature = "lpm"), allow(dead_code))] // its module is absent
    LpmRootReadEarly "lpm-root-read-early";

    "patricia-16":
    /// A writer takes the locks at the end of its path without a look at the versions that it has
    /// read on the way: the nodes may have changed since.
    TeleportNotValidated "teleport-not-validated";
    /// A removal makes the grandparent lead to the sibling without its lock. The grandparent may
    /// have been replaced meanwhile.
    GrandparentNotLocked "grandparent-not-locked";

    "map":
    /// A value that was removed from the index is freed at once. A thread that holds a reference to
    /// it then reads the next value in that slot.
    ValueFreedAtOnce "value-freed-at-once";
    /// A `compare_exchange` finds another value than the one that it has compared. It takes the new
    /// value for equal without comparing it.
    OtherValueTrusted "other-value-trusted";

    "versions":
    /// A batch is marked as ready before all of its versions are in their chains. A reader then
    /// draws its number, and sees a part of it.
    BatchReadyEarly "batch-ready-early";
    /// A version gets its number before it is in its chain. A snapshot at this number, or later,
    /// does not see it at first.
    NumberDrawnEarly "number-drawn-early";
    /// A version with a given number becomes final even if the watermark has passed it. A snapshot
    /// that has read without it then sees it.
    LateVersionKept "late-version-kept";
    /// A writer drops versions without looking for snapshots.
    SnapshotNotSeen "snapshot-not-seen";
    /// A snapshot announces itself after it has chosen its number. A writer in between does not
    /// know of it, and drops what it can see.
    AnnouncedLate "announced-late";
    /// A reader passes a version of an open batch, and does not look at it again. The batch becomes
    /// visible, and the versions below it are dropped, before the reader follows the link.
    OpenPassedOnce "open-passed-once";
    /// A version of a batch that has failed stays in its chain, and the link from it is cut with
    /// the versions below. A reader that stands at it finds nothing.
    FailedVersionKept "failed-version-kept";
    /// A writer drops what is below its version, without asking whether that is still in the chain.
    /// Another one has dropped it with the versions below.
    OutOfChainTrusted "out-of-chain-trusted";

    "counts":
    /// An operation marks its bucket before it takes effect. A thread that counts in between takes
    /// the mark away, and does not count the key.
    MarkedBefore "marked-before";
    /// A mark is taken away after the bucket has been counted. A key that came in between is not
    /// counted.
    UnmarkedLate "unmarked-late";
    /// An operation does not look whether the node that it has marked has been replaced.
    OldNodeMarked "old-node-marked";
    /// A thread that replaces a node does not look for marks that came after it was copied.
    MarksNotCarried "marks-not-carried";

    "multi":
    /// The nodes that a change of a list replaces are retired before the exchange that replaces
    /// them. The exchange may fail, and another writer retires them again.
    PathRetiredEarly "path-retired-early";
    /// An exchange that has found another list counts as done. The list that it has made is in no
    /// index, and nodes that are still in use are retired.
    FailedExchangeTrusted "failed-exchange-trusted";

    "edge-ext-lf":
    /// A removal reads the edge to the sibling, but does not tag it, before the ancestor's edge
    /// swings to the sibling. A key that is inserted at that edge in between is cut off. Ports of
    /// the paper's `cleanup` omit this step, since the CAS succeeds without it.
    SiblingNotTagged "sibling-not-tagged";
    /// An insert expects a marked edge, with its marks, in its CAS, and so overwrites the flag of a
    /// removal in progress. It compares the whole word although only the child is meant.
    InsertIgnoresMark "insert-ignores-mark";
    /// An operation that meets a marked edge retries without finishing the removal. The tree is
    /// correct while the remover runs, but it is not lock-free.
    MissingHelp "missing-help";
    /// A removal frees the nodes that it cuts out at once instead of retiring them, as sequential
    /// programs do.
    FreedAtOnce "freed-at-once";
    /// A removal retires the leaf when it has flagged the leaf's edge, so at the logical removal
    /// instead of the physical one. Threads that pin later can still reach the leaf.
    RetiredBeforeUnlink "retired-before-unlink";
    /// An upsert replaces a leaf whose edge is flagged. Both the upsert and the removal return the
    /// old value, and the key stays present.
    UpsertResurrects "upsert-resurrects";
    /// One CAS cuts out a chain of nodes, but the removal retires only the last node and its leaf.
    /// The nodes that other removals have flagged further up leak, as in published benchmark code.
    ChainLeaked "chain-leaked";
    /// A scan that meets a frozen edge treats everything below it as removed, as it does with the
    /// edge's node. But one of the node's two subtrees has moved up.
    ScanTakesFrozenForGone "scan-takes-frozen-for-gone";
    /// A scan assumes that all keys to the right of its position are larger. But a subtree that has
    /// moved up can get keys to its left that the scan has passed.
    ScanForgetsItsPlace "scan-forgets-its-place";

    "edge-ext-lf:collocated":
    /// A leaf and an internal node share a block. The block is retired when either of them is
    /// removed, instead of when both are.
    BlockRetiredByHalves "block-retired-by-halves";

    "ext-lf":
    /// An insert uses the leaf that it found as the sibling of its new leaf, instead of a copy.
    /// When the new leaf is removed, the old leaf is the parent's child again. A late helper of the
    /// insert then links the insert's node a second time.
    LeafNotCopied "leaf-not-copied";
    /// A flag is released without a new count. An operation that has read the word before can then
    /// claim the node although its edges have changed. The paper prevents this: the last descriptor
    /// stays in a clean word.
    FlagNotCounted "flag-not-counted";
    /// A deletion flags the grandparent but does not mark the parent, whose other child may then
    /// change. A key that is inserted there is removed with the parent.
    ParentNotMarked "parent-not-marked";
    /// An upsert replaces the leaf by a CAS on the edge, without a flag. This suffices in trees
    /// whose removals mark edges. In this tree, the leaf's parent may already be marked.
    UpdateUnflagged "update-unflagged";
    /// Every thread that helps an insert retires the descriptor, not only the thread that took it
    /// out of the word.
    HelperRetires "helper-retires";
    /// A deletion that takes its flag back does not retire its descriptor. Published benchmark code
    /// makes this mistake.
    BacktrackLeaks "backtrack-leaks";
    /// An operation that meets a claimed node retries without helping. The tree is then not
    /// lock-free.
    ClaimNotHelped "claim-not-helped";

    "int-lf":
    /// A search that ends at a null link does not check the node where it last went right. A
    /// relocation there may have moved the key up, past the search. The paper's `find` ends with
    /// this check.
    RelocationUnseen "relocation-unseen";
    /// A search that ends at a null link trusts the node where it last went right, although that
    /// node has left the tree. The relocation happened above that node.
    LeavingNodeTrusted "leaving-node-trusted";
    /// A search that ends at a null link trusts the node where it last went right, although a copy
    /// has replaced that node. The relocation happened at the copy.
    CopyNotFollowed "copy-not-followed";
    /// A relocation does not claim the successor. A concurrent removal or update of the successor
    /// is lost.
    SuccessorNotClaimed "successor-not-claimed";
    /// An upsert puts a copy in the place of a node but does not mark the node. A key that is
    /// inserted below the node after the copy was made is cut off.
    UpdateUnmarked "update-unmarked";
    /// All null links are equal. A late helper of an insertion then links a node again that has
    /// been removed. The paper marks null links to prevent this.
    NullNotCounted "null-not-counted";
    /// A helper of a relocation takes the successor's parent from the descriptor. The owner of the
    /// relocation may do so, because it has visited that node. Before the helper pinned, the node
    /// may have left the tree and been retired. The mistake is easy to make wherever a descriptor
    /// refers to nodes that its operation has not claimed yet.
    SuccessorsParentTrusted "successors-parent-trusted";
    /// A relocation that gives up does not retire the second part of its descriptor.
    FailedRelocationLeaks "failed-relocation-leaks";
    /// An operation that meets a claimed node retries without helping. The tree is then not
    /// lock-free.
    ClaimedNodeNotHelped "claimed-node-not-helped";

    "edge-int-lf":
    /// A search that does not find its key does not check whether its anchor has changed. It misses
    /// a key that moves up.
    AnchorUnchecked "anchor-unchecked";
    /// An edge that becomes empty again has the same value as when it was empty before. An insert
    /// that was delayed then puts its key at a place where the key no longer belongs.
    EmptyEdgeReused "empty-edge-reused";
    /// An update copies the right edge of a node without freezing it first. A key that is inserted
    /// there meanwhile is lost with the old node.
    OpenEdgeCopied "open-edge-copied";
    /// An upsert that has announced its copy assumes that the copy will be linked. A removal may
    /// have decided otherwise.
    FateTakenForGranted "fate-taken-for-granted";
    /// The right edge of a successor is not frozen before the successor moves up. A key that is
    /// inserted there meanwhile is cut off.
    SuccessorLeftOpen "successor-left-open";
    /// The successor is cut out before the copy has its key and value. For a while its key cannot
    /// be found.
    PromotedTooLate "promoted-too-late";
    /// No thread retires the successor.
    SuccessorLeaked "successor-leaked";
    /// A removal retires its node when it has claimed the node. Other threads can still reach it.
    RetiredAtClaim "retired-at-claim";
    /// A helper takes a mark on an edge as proof that the edge's owner has a fate. The edge may
    /// only be reserved. The owner is then cut out while its left edge is open.
    ReservedTakenForFate "reserved-taken-for-fate";
    /// An operation that meets a marked edge retries without helping. The tree is then not
    /// lock-free.
    MarkNotHelped "mark-not-helped";

    "occ-avl":
    /// The descent does not validate the version of the node that it leaves. A rotation that moves
    /// the node down in between hides the key.
    DescentUnvalidated "descent-unvalidated";
    /// The descent loads a node's link before the node's version. One rotation moves the node down
    /// and another moves it back. The link is then from in between, and the version from
    /// afterwards.
    NextReadEarly "next-read-early";
    /// The version of an unlinked node does not say that the node is unlinked. Inserts then link
    /// nodes below it, or write a value into it.
    UnlinkKeepsVersion "unlink-keeps-version";
    /// A rotation moves nodes down without marking them and without counting the move.
    RotationKeepsVersion "rotation-keeps-version";
    /// An insert does not validate under the lock that its place has not moved.
    AttachUnvalidated "attach-unvalidated";
    /// A lookup reads the presence and then the value, and does not read the presence again. It
    /// returns a value whose insertion has not taken effect yet.
    PresenceUnvalidated "presence-unvalidated";
    /// A repair goes to the node above a changed height, and does not check whether a rotation has
    /// moved the child below another node. The height of that other node then stays wrong.
    DamageLost "damage-lost";
    /// A repair unlocks a node to lock its parent first. When it has both locks, it does not check
    /// that this is still the node's parent, and rotates at the wrong place.
    RepairsBelowOldParent "repairs-below-old-parent";
    /// An insert that finds its place taken is counted before it restarts.
    CountedOnFailure "counted-on-failure";

    "log-int":
    /// A removed node leaves the list before it leaves the tree, as published. The target of its
    /// frozen link can then be reclaimed while lookups still reach the node. After its key is
    /// inserted again, lookups find the old node.
    ListBeforeTree "list-before-tree";
    /// An insert sets the link that leads back to its node before the link that leads forward to
    /// it, as published code does. A lookup that follows links backwards finds the key before the
    /// insert takes effect.
    LinkedBackwardsFirst "linked-backwards-first";
    /// An insert links its node behind a node that was removed before the insert locked its
    /// interval.
    AttachedBehindRemoved "attached-behind-removed";
    /// An upsert does not check under the lock that the node has not been removed.
    UpdateOfRemoved "update-of-removed";
    /// A removal that has locked its node's parent does not check that this is still the parent.
    ParentUnvalidated "parent-unvalidated";
    /// A descending scan follows the link to the predecessor without checking it. It misses a key
    /// whose insertion has not set that link yet.
    BackwardLinkTrusted "backward-link-trusted";

    "ticket":
    /// The version of an edge's lock is read after the edge. The lock can then be taken although
    /// the edge has changed in between.
    VersionReadLate "version-read-late";
    /// A removal locks only the edge to its leaf. A key that is inserted below the sibling's edge
    /// meanwhile is removed with the parent.
    SiblingUnlocked "sibling-unlocked";
    /// A removal unlocks the node that it has cut out. Other threads then link nodes below it.
    RemovedUnlocked "removed-unlocked";
    /// An upsert takes the lock of its edge at any version. It may then replace another leaf than
    /// the one it found.
    UpsertUnvalidated "upsert-unvalidated";
    /// A removal retires the leaf but not its parent.
    ParentLeaked "parent-leaked";
    /// Versions have too few bits, so an edge that has changed often enough counts as unchanged.
    /// The authors' code has 16 bits. This mistake has 1.
    VersionTooShort "version-too-short";

    "citrus":
    /// A removal unlinks the successor below its copy without waiting for earlier lookups. Those
    /// may have passed the copy's place before the copy was linked.
    GraceSkipped "grace-skipped";
    /// An insert that finds its place empty under the lock does not check whether a node was there
    /// in between. That node may have had the insert's key, been copied further up, and been
    /// removed.
    TagIgnored "tag-ignored";
    /// The tag is read after the read section, so it proves nothing about the time before.
    TagReadLate "tag-read-late";
    /// The successor's value is read for its copy before the successor is locked. An update in
    /// between is lost.
    ValueCopiedEarly "value-copied-early";
    /// An upsert does not check under the lock that the node has not been removed or copied.
    UpdateOfMarked "update-of-marked";
    /// The successor is retired when its copy is linked, while threads can still reach the
    /// successor.
    SuccessorRetiredEarly "successor-retired-early";

    "skiplist":
    /// A descent of a batch reads a link to a node and visits the node later. It takes the node for
    /// present without checking the node's mark then.
    BatchTrustsLink "batch-trusts-link";
    /// A thread that has built a tower does not check whether the node was removed meanwhile. The
    /// node stays linked on an upper level for good. The fences in `take` and `build_tower` prevent
    /// this.
    TowerLinkedAfterRemoval "tower-linked-after-removal";
    /// The first thread to unlink a node from any level retires it, while other levels still lead
    /// to it.
    RetiredWhileLinked "retired-while-linked";
    /// A scan that meets a removed node continues after its key, and so also skips the node that
    /// has replaced it. It misses a key that is present throughout.
    ScanSkipsReplacement "scan-skips-replacement";
    /// A cursor at a removed node follows the node's frozen link, although its guard is newer than
    /// the removal. The target of that link may have been reclaimed.
    CursorFollowsFrozenLink "cursor-follows-frozen-link";
    /// An upsert links its new node after a node that is already removed, so a frozen link changes.
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
