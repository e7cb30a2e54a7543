//! How each mistake shows.

use super::{BLOCK_END_CANARIES, LFCA_END_CANARIES, POPS, RANGE_CANARIES, WORD_END_CANARIES};
use silvics::canary::Canary;

/// The failures for which a schedule may catch each canary: one of these, whichever comes first.
const REASONS: &[(&[Canary], &[&str])] = &[
    // A write to an unlinked node is lost, or is freed with it; or an object is freed twice.
    (
        &[
            Canary::CopiedBeforeLocked,
            Canary::ReplacedNotObsolete,
            Canary::SeenBeforeLocked,
            Canary::ParentWordTrusted,
            Canary::MovedLeafTrusted,
        ],
        &[
            "not linearizable",
            "objects are live",
            "use after free",
            "double free",
            "free of an object",
            "check: ",
        ],
    ),
    (&[Canary::ShrinkForgotten], &["I6", "max_steps"]),
    (
        &[
            Canary::CopiedBeforeBarred,
            Canary::BlockStaysValid,
            Canary::SplitDropsFence,
            Canary::TagTakenForKey,
            Canary::PutBackTrusted,
            Canary::PutBackEarly,
            Canary::UpdateNotCounted,
            Canary::RemovalLetsUpdatesIn,
            Canary::AbsenceTrusted,
            Canary::BesideAnything,
        ],
        &["not linearizable", "check: I", "check: len", "objects are live", "free of an object"],
    ),
    (&[Canary::DepthIgnored], &["check: I", "range", "not linearizable"]),
    (&[Canary::ValueNotValidated, Canary::OldBoundTrusted], &["not linearizable", "range in this"]),
    (
        &[Canary::SplitBaseStaysValid, Canary::JoinedBaseStaysValid],
        &[
            "not linearizable",
            "double free",
            "free of an object",
            "use after free",
            "objects are live",
            "check: ",
        ],
    ),
    // A node is linked where another one is already, or where no lookup comes; or a node that is
    // obsolete stays linked, and lookups abort there for ever. The same if the grandparent is not
    // locked.
    (
        &[Canary::TeleportNotValidated, Canary::GrandparentNotLocked],
        &[
            "not linearizable",
            "objects are live",
            "use after free",
            "double free",
            "free of an object",
            "check: ",
            "max_steps",
        ],
    ),
    // A route node is linked that was taken away, and the one below it is not found any more.
    (
        &[Canary::RouteNotLocked],
        &["max_steps", "not linearizable", "double free", "use after free", "check: "],
    ),
    // A write is lost, or is freed with the nodes that it was linked to.
    (
        &[
            Canary::SplitOverwrites,
            Canary::NeighbourNotClaimed,
            Canary::OtherNotClaimed,
            Canary::AboveNotClaimed,
        ],
        &[
            "not linearizable",
            "double free",
            "free of an object",
            "use after free",
            "objects are live",
            "check: ",
            "max_steps",
        ],
    ),
    (&[Canary::JoinNotHelped], &["max_steps"]),
    (&[Canary::ReplacedFreedAtOnce], &["use after free", "free of an object", "double free"]),
    (&[Canary::StaleBoundTrusted], &["not linearizable", "range in this"]),
    (&LFCA_END_CANARIES, &["not linearizable"]),
    (
        &[Canary::HeldKeyRetired, Canary::KeyHeldLate],
        &["not linearizable", "check: ", "use after free", "double free", "free of an object"],
    ),
    (&[Canary::HeldKeyForgotten], &["objects are live"]),
    (&[Canary::OldFirstEntry], &["check: C3", "not linearizable"]),
    (&[Canary::ContainerFreedAtOnce], &["use after free", "free of an object", "double free"]),
    (&[Canary::ReadersNotAwaited], &["use after free", "not linearizable"]),
    (&[Canary::ObjectNotRetired], &["objects are live"]),
    (&RANGE_CANARIES, &["not linearizable"]),
    (&[Canary::OrderTrusted], &["not linearizable"]),
    (&[Canary::GapForgotten], &["check: I8", "not linearizable", "range in this order"]),
    (&[Canary::PrefixIgnored], &["check: I", "not linearizable", "range in this order"]),
    (&BLOCK_END_CANARIES, &["not linearizable"]),
    (
        &[
            Canary::PassedIgnored,
            Canary::PassedNotNoted,
            Canary::ValueMovedTwice,
            Canary::OpenPlaceTrusted,
        ],
        &["not linearizable", "check: I", "check: len"],
    ),
    (&[Canary::MovedIsAbsent, Canary::SuccessorTrusted], &["not linearizable"]),
    (
        &[Canary::LeafStaysValid],
        &["not linearizable", "double free", "free of an object", "use after free", "check: len"],
    ),
    (&WORD_END_CANARIES, &["not linearizable"]),
    (&[Canary::BlockFreedAtOnce], &["use after free", "free of an object", "double free"]),
    (
        &[Canary::HeldForgotten, Canary::GuessTrusted, Canary::DigitAddedTwice],
        &["not linearizable", "check: I4", "check: len"],
    ),
    (&[Canary::LeafCopiedBeforeLocked, Canary::EndNotValidated], &["not linearizable"]),
    (&POPS, &["not linearizable"]),
    (&[Canary::MovedLeafFreedAtOnce], &["use after free"]),
    (&[Canary::ValueFreedAtOnce, Canary::OtherValueTrusted], &["not linearizable"]),
    (
        &[
            Canary::BatchReadyEarly,
            Canary::NumberDrawnEarly,
            Canary::LateVersionKept,
            Canary::SnapshotNotSeen,
            Canary::AnnouncedLate,
        ],
        &["a snapshot"],
    ),
    (&[Canary::OpenPassedOnce, Canary::FailedVersionKept], &["it stays"]),
    (&[Canary::LpmNodeFreedAtOnce], &["use after free", "double free", "free of an object"]),
    (
        &[Canary::LpmRootReadEarly],
        &[
            "an update is lost",
            "double free",
            "use after free",
            "free of an object",
            "check: ",
            "after",
        ],
    ),
    (&[Canary::PathRetiredEarly], &["double free", "use after free", "free of an object"]),
    (
        &[Canary::FailedExchangeTrusted],
        &["a list", "double free", "use after free", "free of an object", "check: ", "objects are"],
    ),
    (
        &[
            Canary::MarkedBefore,
            Canary::UnmarkedLate,
            Canary::OldNodeMarked,
            Canary::MarksNotCarried,
        ],
        &["check: C5", "the rank", "keys"],
    ),
    (&[Canary::OutOfChainTrusted], &["double free", "use after free", "free of an object"]),
    // A live part that is cut off with others is freed with them, or by both removers.
    (
        &[Canary::SiblingNotTagged, Canary::InsertIgnoresMark],
        &["use after free", "free of an object", "double free", "not linearizable"],
    ),
    (&[Canary::MissingHelp], &["max_steps"]),
    (&[Canary::FreedAtOnce, Canary::RetiredBeforeUnlink], &["use after free"]),
    (&[Canary::RetiredWhileLinked], &["use after free", "objects are live"]),
    (&[Canary::UpsertResurrects], &["double free", "free of an object", "not linearizable"]),
    (&[Canary::ChainLeaked], &["objects are live"]),
    (&[Canary::EmptyEdgeReused], &["not linearizable", "check: I2"]),
    (&[Canary::AnchorUnchecked, Canary::PromotedTooLate], &["not linearizable"]),
    // Nodes that are cut off with the old node, or with the successor, are lost, or its remover
    // frees them.
    (
        &[Canary::OpenEdgeCopied, Canary::SuccessorLeftOpen],
        &["not linearizable", "objects are live", "use after free", "double free", "check: "],
    ),
    (&[Canary::FateTakenForGranted], &["not linearizable", "objects are live"]),
    (&[Canary::SuccessorLeaked], &["objects are live"]),
    (&[Canary::RetiredAtClaim], &["use after free"]),
    // Nodes that are cut off stay, are lost, or are removed twice.
    (
        &[Canary::ReservedTakenForFate],
        &["not linearizable", "use after free", "double free", "check: ", "objects are live"],
    ),
    (&[Canary::MarkNotHelped], &["max_steps"]),
    (
        &[
            Canary::DescentUnvalidated,
            Canary::NextReadEarly,
            Canary::PresenceUnvalidated,
            Canary::ScanSkipsReplacement,
            Canary::BatchTrustsLink,
            Canary::UpdateReplacesRemoved,
        ],
        &["not linearizable"],
    ),
    (&[Canary::UnlinkKeepsVersion], &["double free", "use after free", "not linearizable"]),
    (&[Canary::RotationKeepsVersion, Canary::AttachUnvalidated], &["not linearizable", "check: "]),
    (&[Canary::DamageLost], &["check: I5"]),
    (&[Canary::RepairsBelowOldParent], &["not linearizable", "check: "]),
    (&[Canary::CountedOnFailure], &["check: len"]),
    (
        &[Canary::GraceSkipped, Canary::ValueCopiedEarly, Canary::UpdateOfMarked],
        &["not linearizable"],
    ),
    // The key is in the tree twice.
    (&[Canary::TagIgnored, Canary::TagReadLate], &["check: I4", "not linearizable"]),
    (&[Canary::SuccessorRetiredEarly], &["use after free"]),
    (&[Canary::ListBeforeTree], &["use after free", "not linearizable"]),
    (
        &[Canary::LinkedBackwardsFirst, Canary::UpdateOfRemoved, Canary::BackwardLinkTrusted],
        &["not linearizable"],
    ),
    // A node attached behind a removed node is lost, or the tree has no place for it.
    (
        &[Canary::AttachedBehindRemoved],
        &["not linearizable", "check: ", "objects are live", "max_steps"],
    ),
    // The node stays in the tree, and is freed.
    (&[Canary::ParentUnvalidated], &["use after free", "check: "]),
    (&[Canary::TowerLinkedAfterRemoval], &["check: I3", "use after free"]),
    (&[Canary::CursorFollowsFrozenLink], &["a cursor went", "not linearizable"]),
    (&[Canary::ScanTakesFrozenForGone], &["not linearizable"]),
    (&[Canary::ScanForgetsItsPlace], &["range in this order", "max_steps"]),
    (&[Canary::BlockRetiredByHalves], &["use after free", "double free"]),
    // A node attached below a removed node is lost, is freed with it, or is removed there again.
    (
        &[Canary::SiblingUnlocked, Canary::RemovedUnlocked],
        &["not linearizable", "use after free", "double free", "objects are live"],
    ),
    // Two threads unlink one leaf, or one undoes the other's change.
    (
        &[Canary::VersionReadLate, Canary::VersionTooShort, Canary::UpsertUnvalidated],
        &["not linearizable", "double free", "use after free", "free of an object"],
    ),
    (&[Canary::ParentLeaked], &["objects are live"]),
    // An edge changes back to an earlier leaf or node, which is removed a second time.
    (
        &[Canary::LeafNotCopied, Canary::FlagNotCounted],
        &["use after free", "free of an object", "double free", "not linearizable", "check: "],
    ),
    // The node at the parent's other edge is cut off, or is freed with the parent.
    (
        &[Canary::ParentNotMarked, Canary::UpdateUnflagged],
        &["use after free", "free of an object", "double free", "not linearizable", "objects are"],
    ),
    (&[Canary::HelperRetires], &["double free", "use after free"]),
    (&[Canary::BacktrackLeaks, Canary::FailedRelocationLeaks], &["objects are live"]),
    (&[Canary::ClaimNotHelped, Canary::ClaimedNodeNotHelped], &["max_steps"]),
    (
        &[Canary::RelocationUnseen, Canary::LeavingNodeTrusted, Canary::CopyNotFollowed],
        &["not linearizable"],
    ),
    (&[Canary::SuccessorsParentTrusted], &["use after free"]),
    (
        &[Canary::SuccessorNotClaimed],
        &["not linearizable", "double free", "use after free", "check: ", "objects are live"],
    ),
    (&[Canary::UpdateUnmarked], &["not linearizable", "objects are live", "use after free"]),
    (&[Canary::NullNotCounted], &["use after free", "not linearizable", "double free", "check: "]),
];

pub(crate) fn reasons(canary: Canary) -> &'static [&'static str] {
    let row = REASONS.iter().find(|(canaries, _)| canaries.contains(&canary));
    row.unwrap_or_else(|| panic!("{canary:?} has no reason to be caught for")).1
}
