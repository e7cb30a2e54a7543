//! Seeded mistakes in the real memtable, which test the tests.
//!
//! A canary is one small mistake of a kind that real code has made. The feature `canaries` compiles
//! the canaries in, and [`plant`] switches one on for the whole process. The tests that must find a
//! canary name it. The canaries of the indexes are in `silvics::canary`.
//!
//! Without the feature, `planted` is the constant `false`, and no canary is compiled.

#[cfg(feature = "canaries")]
use silvics_sync::model::Setting;

/// A mistake that can be switched on.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// An add to the Bloom filter writes its bits by a load and a store. Bits that another
    /// thread sets in between are lost, and a lookup misses a present key.
    LostBloomBit,
    /// The sequence number of a write group is published before all its entries are in the table. A
    /// snapshot of that number misses some of them.
    SequencePublishedEarly,
    /// Recovery accepts a record of the log although its checksum is wrong: the end of a write that
    /// a crash has torn.
    TornRecordAccepted,
    /// The leader claims the batches of followers that have not begun, and inserts none of them.
    ClaimedAndForgotten,
    /// A table is frozen although a batch of its numbers is not inserted yet. In a pipeline a flush
    /// misses it; in the unordered mode it comes into the next table, where it hides newer writes.
    PendingIgnored,
}

#[cfg(feature = "canaries")]
impl Canary {
    /// All canaries.
    pub const ALL: &[Self] = &[
        Self::LostBloomBit,
        Self::SequencePublishedEarly,
        Self::TornRecordAccepted,
        Self::ClaimedAndForgotten,
        Self::PendingIgnored,
    ];

    /// The name of the canary, in kebab case.
    pub fn name(self) -> &'static str {
        match self {
            Self::LostBloomBit => "lost-bloom-bit",
            Self::SequencePublishedEarly => "sequence-published-early",
            Self::TornRecordAccepted => "torn-record-accepted",
            Self::ClaimedAndForgotten => "claimed-and-forgotten",
            Self::PendingIgnored => "pending-ignored",
        }
    }
}

/// The canary that is switched on: 0 for none, else the canary's number plus one.
#[cfg(feature = "canaries")]
static PLANTED: Setting = Setting::new(0);

/// Switches one canary on, or none, in all memtables of this process. Call it only while no
/// operation is running.
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
