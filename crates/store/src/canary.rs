//! Mistakes that can be planted, so that the checks of the store must find them. For tests of the
//! tests only.

#[cfg(feature = "canaries")]
use silvics_sync::model::Setting;

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Canary {
    /// A transaction releases the lock of a row as soon as it has read it.
    LockReleasedEarly,
    /// Insertions and scans do not look at the locks of next keys.
    NextKeyIgnored,
    /// A transaction does not look whether the keys and ranges that it has read have changed.
    PhantomsIgnored,
    /// A transaction does not look whether the rows that it has read have changed.
    ReadsNotValidated,
    /// An update overwrites a row that has changed since it was read.
    LostUpdate,
    /// An update does not place the entries of the row's new keys.
    IndexNotUpdated,
    /// An update removes the entries of the row's old keys before it is committed.
    IndexTorn,
    /// A transaction that has found a key absent does not lock it.
    MissedKeyUnlocked,
    /// A transaction that is aborted leaves the entries that it has placed.
    EntryLeft,
    /// A row takes over an entry that another transaction has placed and may remove. `crowd.rs` and
    /// `schedules.rs` find it.
    EntryStolen,
    /// A transaction does not look whether the rows of a range that it has scanned still have their
    /// keys. `schedules.rs` finds it.
    ScannedKeysIgnored,
    /// A transaction that has only read is acknowledged before what it has read is durable.
    /// `durability.rs` finds it.
    ReadsNotAwaited,
    /// A transaction appends its record to the log after it has released its locks.
    /// `durability.rs` finds it.
    AppendedLate,
}

impl Canary {
    /// The mistakes that the checker of transactions finds.
    pub const ALL: [Self; 9] = [
        Self::LockReleasedEarly,
        Self::NextKeyIgnored,
        Self::PhantomsIgnored,
        Self::ReadsNotValidated,
        Self::LostUpdate,
        Self::IndexNotUpdated,
        Self::IndexTorn,
        Self::MissedKeyUnlocked,
        Self::EntryLeft,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::LockReleasedEarly => "lock-released-early",
            Self::NextKeyIgnored => "next-key-ignored",
            Self::PhantomsIgnored => "phantoms-ignored",
            Self::ReadsNotValidated => "reads-not-validated",
            Self::LostUpdate => "lost-update",
            Self::IndexNotUpdated => "index-not-updated",
            Self::IndexTorn => "index-torn",
            Self::MissedKeyUnlocked => "missed-key-unlocked",
            Self::EntryLeft => "entry-left",
            Self::EntryStolen => "entry-stolen",
            Self::ScannedKeysIgnored => "scanned-keys-ignored",
            Self::ReadsNotAwaited => "reads-not-awaited",
            Self::AppendedLate => "appended-late",
        }
    }
}

#[cfg(feature = "canaries")]
static PLANTED: Setting = Setting::new(0);

/// Plants a mistake in all stores of the process from now on, or none.
#[cfg(feature = "canaries")]
pub fn plant(canary: Option<Canary>) {
    PLANTED.set(canary.map_or(0, |canary| canary as u8 + 1));
}

/// Whether a mistake is planted. Without the feature `canaries` none is, and the compiler knows it.
#[inline(always)]
pub(crate) fn planted(canary: Canary) -> bool {
    #[cfg(feature = "canaries")]
    return PLANTED.get() == canary as u8 + 1;
    #[cfg(not(feature = "canaries"))]
    {
        let _ = canary;
        false
    }
}
