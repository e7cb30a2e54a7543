//! How a pool lays out its slots, slabs and regions.

use crate::HUGE_PAGE;
use std::fmt;

/// How a pool lays out its slots, slabs and regions: what a type's own size and alignment leave open.
///
/// The default is what is best without knowing more. Every setting is checked when it is made, so that a
/// pool can take all of them. What a setting costs is in the counts: `live_bytes` has slots as large as
/// they were made, the budget the slabs and regions.
///
/// ```
/// use silvics_pool::{Config, Pool, Tuning};
///
/// let tuning = Tuning::default().slot_align(64)?;
/// let pool = Pool::<[u64; 6]>::new("node", &Config { tuning, ..Config::default() });
/// let node = pool.alloc().unwrap();
/// assert_eq!(node.addr().get() % 64, 0); // in one line, …
/// assert_eq!(pool.stats().live_bytes, 64); // … of which it leaves 16 bytes unused
/// # Ok::<(), silvics_pool::TuningError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    pub(crate) slot_align: usize,
    pub(crate) colouring: bool,
    pub(crate) slab_bytes: Option<usize>,
    pub(crate) first_region: usize,
    pub(crate) largest_region: usize,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            slot_align: 8,
            colouring: false,
            slab_bytes: None,
            first_region: HUGE_PAGE,
            // Larger ones would save system calls nobody notices.
            largest_region: 64 << 20,
        }
    }
}

const LEAST_SLAB: usize = 16 << 10;
/// Far beyond what a machine has: sums of a few do not overflow.
const LARGEST_REGION: usize = if usize::BITS == 64 { 1 << 40 } else { 1 << 28 };

impl Tuning {
    /// Slots begin at multiples of `bytes`, a power of two from 8 to 4096, or of their type's own
    /// alignment where that is larger. 8 unless asked otherwise.
    ///
    /// With 64 no object of 48 bytes crosses a line (of consecutive ones two in four do), and takes 64. In
    /// a [`BytesPool`](crate::BytesPool) each class takes slots that much larger, so that the sizes from
    /// 1 to 64 have slots of 64 bytes, still in slabs of their own.
    pub fn slot_align(self, bytes: usize) -> Result<Self, TuningError> {
        if bytes.is_power_of_two() && (8..=4096).contains(&bytes) {
            return Ok(Self { slot_align: bytes, ..self });
        }
        Err(TuningError::SlotAlign { bytes })
    }

    /// Whether slabs begin at varying lines. Not unless asked for.
    ///
    /// Slabs lie at multiples of their size, and so do the lines in which their slots begin. Where slots
    /// fill lines evenly that is no harm: in each slab every cache set has its share. It is harm
    ///
    /// * if slots are of two lines or more, their number of lines even, and a search reads mostly the
    ///   first: of 256 bytes it then uses one set in four, of 2048 bytes one in 32, and all slabs the same;
    /// * if there are many pools of few objects: the first slot of each, often a root, is in the same set.
    ///
    /// With colouring, slab *n* of a class begins (*g* + *n*) mod *c* lines (or alignments, if larger) in,
    /// *g* the number of its granule in the address space, *c* the lines in a sixteenth of a slab: 64
    /// of 64 KiB, as many as a small page has. It costs 3 % of the slabs on average, and the last slot of
    /// many.
    #[must_use]
    pub fn colouring(self, on: bool) -> Self {
        Self { colouring: on, ..self }
    }

    /// The size of slabs: a power of two from 16 KiB to 2 MiB. 64 KiB for a [`Pool`](crate::Pool) and
    /// 16 KiB for a [`BytesPool`](crate::BytesPool) unless asked otherwise.
    ///
    /// Small slabs keep small pools small, and those of many classes; large ones keep the objects of a
    /// class together that others are opened between. A pool's slab has from 8 to 4096 slots, and is
    /// larger or smaller than asked for where they need that; that of a `BytesPool`, whose classes share
    /// one size, at most 4096 of its smallest slots: 64 KiB, if those have 16 bytes.
    pub fn slab_bytes(self, bytes: usize) -> Result<Self, TuningError> {
        if bytes.is_power_of_two() && (LEAST_SLAB..=HUGE_PAGE).contains(&bytes) {
            return Ok(Self { slab_bytes: Some(bytes), ..self });
        }
        Err(TuningError::SlabBytes { bytes })
    }

    /// How regions grow: the first of `first` bytes, then each as large as all before, up to `largest`;
    /// multiples of 2 MiB up to 1 TiB. 2 MiB and 64 MiB unless asked otherwise.
    ///
    /// A region is address space. Its granules of 2 MiB get memory, and enter the budget, one after
    /// the other. Regions from hugetlb are backed when they are mapped, and are one granule each whatever
    /// is asked for here.
    pub fn regions(self, first: usize, largest: usize) -> Result<Self, TuningError> {
        let fits = |bytes: usize| bytes.is_multiple_of(HUGE_PAGE) && bytes <= LARGEST_REGION;
        if first > 0 && fits(first) && fits(largest) && first <= largest {
            return Ok(Self { first_region: first, largest_region: largest, ..self });
        }
        Err(TuningError::Regions { first, largest })
    }

    /// The alignment of slots whose type asks for no more.
    pub fn slot_alignment(&self) -> usize {
        self.slot_align
    }

    /// The bytes of a slab that are `default` unless asked otherwise, within these bounds.
    pub(crate) fn slab(&self, default: usize, least: usize, most: usize) -> usize {
        let most = 1 << most.min(HUGE_PAGE).ilog2();
        let least = least.next_power_of_two().clamp(LEAST_SLAB, most);
        self.slab_bytes.unwrap_or(default).clamp(least, most)
    }

    /// The granules of the next region of a pool that has `granules`.
    pub(crate) fn region_granules(&self, granules: usize) -> usize {
        granules.clamp(self.first_region / HUGE_PAGE, self.largest_region / HUGE_PAGE)
    }
}

/// A setting of [`Tuning`] that no pool could take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TuningError {
    /// Of [`Tuning::slot_align`].
    SlotAlign {
        /// What was asked for.
        bytes: usize,
    },
    /// Of [`Tuning::slab_bytes`].
    SlabBytes {
        /// What was asked for.
        bytes: usize,
    },
    /// Of [`Tuning::regions`].
    Regions {
        /// What was asked for as the first one.
        first: usize,
        /// What was asked for as the largest.
        largest: usize,
    },
}

impl fmt::Display for TuningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SlotAlign { bytes } => write!(
                f,
                "slots cannot be aligned to {bytes} bytes: use a power of two from 8 to 4096"
            ),
            Self::SlabBytes { bytes } => write!(
                f,
                "slabs cannot have {bytes} bytes: use a power of two from {LEAST_SLAB} to {HUGE_PAGE}"
            ),
            Self::Regions { first, largest } => write!(
                f,
                "regions cannot grow from {first} to {largest} bytes: use multiples of {HUGE_PAGE} up to \
                 {LARGEST_REGION}, the first no larger than the largest"
            ),
        }
    }
}

impl std::error::Error for TuningError {}
