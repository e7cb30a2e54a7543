//! The layout of slots, slabs and regions in a pool.

use crate::{HUGE_PAGE, SMALL_PAGE};
use std::fmt;
use std::num::NonZeroU8;

/// The layout of slots, slabs and regions in a pool, as far as a type's size and alignment leave it
/// open.
///
/// The default suits most uses. Each setting is checked when it is made, so a pool accepts every
/// `Tuning`. The counts show the cost of a setting: `live_bytes` counts slots at their tuned size,
/// and the budget counts slabs and regions.
///
/// ```
/// use silvics_pool::{Config, Pool, Tuning};
///
/// let tuning = Tuning::default().slot_align(64)?;
/// let pool = Pool::<[u64; 6]>::new("node", &Config { tuning, ..Config::default() });
/// let node = pool.alloc().unwrap();
/// assert_eq!(node.addr().get() % 64, 0); // the node lies in one line
/// assert_eq!(pool.stats().live_bytes, 64); // 16 bytes of which stay unused
/// # Ok::<(), silvics_pool::TuningError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuning {
    // Small: each index keeps its settings.
    slot_align: u16,
    pub(crate) colouring: bool,
    /// The binary logarithm of a slab's bytes.
    slab_log: Option<NonZeroU8>,
    /// Granules.
    first_region: u32,
    largest_region: u32,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            slot_align: 8,
            colouring: false,
            slab_log: None,
            first_region: 1,
            // Larger regions would save only a few more system calls.
            largest_region: 32,
        }
    }
}

const LEAST_SLAB: usize = 16 << 10;
/// Far more than any machine has, so that sums of a few regions do not overflow.
const LARGEST_REGION: usize = if usize::BITS == 64 { 1 << 40 } else { 1 << 28 };

impl Tuning {
    /// Aligns slots to `bytes`, a power of two from 8 to 4096. The default is 8. A larger alignment
    /// of the type itself wins.
    ///
    /// With 64, no object of 48 bytes crosses a line, and each takes 64 bytes. (By default two of
    /// four consecutive objects cross one.) In a [`BytesPool`](crate::BytesPool) every class gets
    /// the larger slots: with 64, objects from 1 to 64 bytes take slots of 64 bytes, still in slabs
    /// of their own class.
    pub fn slot_align(self, bytes: usize) -> Result<Self, TuningError> {
        if bytes.is_power_of_two() && (8..=SMALL_PAGE).contains(&bytes) {
            return Ok(Self { slot_align: bytes as u16, ..self });
        }
        Err(TuningError::SlotAlign { bytes })
    }

    /// Makes slabs begin at varying lines. Off by default.
    ///
    /// Without colouring, every slab of a class places its slots at the same offsets from a
    /// multiple of the slab size. If the slots cover all lines evenly, each slab uses all cache
    /// sets evenly and colouring gains nothing. It helps in two cases:
    ///
    /// * Slots have an even number of lines, two or more, and a search mostly reads the first. With
    ///   256-byte slots it then uses one set in four, with 2048-byte slots one set in 32, the same
    ///   ones in every slab.
    /// * There are many pools with few objects. The first slot of each, often a root, then falls
    ///   into the same set.
    ///
    /// With colouring, slab *n* of a class begins (*g* + *n*) mod *c* lines (or slot alignments, if
    /// these are larger) further in. Here *g* is the number of its granule in the address space,
    /// and *c* is the number of lines in a sixteenth of a slab. A slab of 64 KiB has 64 such lines,
    /// as many as a small page. Colouring costs 3 % of each slab on average, and many slabs lose
    /// their last slot.
    #[must_use]
    pub fn colouring(self, on: bool) -> Self {
        Self { colouring: on, ..self }
    }

    /// Sets the size of slabs: a power of two from 16 KiB to 2 MiB. The default is 64 KiB for a
    /// [`Pool`](crate::Pool) and 16 KiB for a [`BytesPool`](crate::BytesPool).
    ///
    /// Small slabs save memory in small pools and in pools with many classes. Large slabs keep more
    /// objects of a class together when slabs of other classes are opened in between. The pool
    /// adjusts the size if it must: a slab of a `Pool` has from 8 to 4096 slots. A slab of a
    /// `BytesPool`, whose classes share one slab size, has at most 4096 of its smallest slots (64
    /// KiB if these have 16 bytes).
    pub fn slab_bytes(self, bytes: usize) -> Result<Self, TuningError> {
        if bytes.is_power_of_two() && (LEAST_SLAB..=HUGE_PAGE).contains(&bytes) {
            return Ok(Self { slab_log: NonZeroU8::new(bytes.ilog2() as u8), ..self });
        }
        Err(TuningError::SlabBytes { bytes })
    }

    /// Sets the growth of regions: the first has `first` bytes, each later one as many as all
    /// regions before it, up to `largest`. Both are multiples of 2 MiB up to 1 TiB. The default is
    /// 2 MiB and 64 MiB.
    ///
    /// A region is address space. Its granules of 2 MiB get memory, and enter the budget, one after
    /// the other. Regions of hugetlb pages are backed as soon as they are mapped, so they ignore
    /// this setting and have one granule each.
    pub fn regions(self, first: usize, largest: usize) -> Result<Self, TuningError> {
        let fits = |bytes: usize| bytes.is_multiple_of(HUGE_PAGE) && bytes <= LARGEST_REGION;
        if first > 0 && fits(first) && fits(largest) && first <= largest {
            let granules = |bytes: usize| (bytes / HUGE_PAGE) as u32; // below 2^20
            let (first_region, largest_region) = (granules(first), granules(largest));
            return Ok(Self { first_region, largest_region, ..self });
        }
        Err(TuningError::Regions { first, largest })
    }

    /// Whether [`Tuning::slab_bytes`] was called.
    pub fn has_slab_bytes(&self) -> bool {
        self.slab_log.is_some()
    }

    /// Whether two settings differ at most in the size of slabs.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        *self == Self { slab_log: self.slab_log, ..*other }
    }

    /// The alignment of slots whose type needs no larger one.
    pub fn slot_alignment(&self) -> usize {
        usize::from(self.slot_align)
    }

    /// The bytes of a slab: as set, or `default`; never outside `least` and `most`.
    pub(crate) fn slab(&self, default: usize, least: usize, most: usize) -> usize {
        let most = 1 << most.min(HUGE_PAGE).ilog2();
        let least = least.next_power_of_two().clamp(LEAST_SLAB, most);
        self.slab_log.map_or(default, |log| 1 << log.get()).clamp(least, most)
    }

    /// The number of granules of the next region of a pool that has `granules`.
    pub(crate) fn region_granules(&self, granules: usize) -> usize {
        granules.clamp(self.first_region as usize, self.largest_region as usize)
    }
}

/// A value that a setting of [`Tuning`] does not accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TuningError {
    /// [`Tuning::slot_align`] rejected its argument.
    SlotAlign {
        /// The rejected alignment.
        bytes: usize,
    },
    /// [`Tuning::slab_bytes`] rejected its argument.
    SlabBytes {
        /// The rejected size.
        bytes: usize,
    },
    /// [`Tuning::regions`] rejected its arguments.
    Regions {
        /// The rejected size of the first region.
        first: usize,
        /// The rejected size of the largest region.
        largest: usize,
    },
}

impl fmt::Display for TuningError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SlotAlign { bytes } => write!(
                f,
                "slots cannot be aligned to {bytes} bytes: \
                 use a power of two from 8 to {SMALL_PAGE}"
            ),
            Self::SlabBytes { bytes } => write!(
                f,
                "slabs cannot have {bytes} bytes: \
                 use a power of two from {LEAST_SLAB} to {HUGE_PAGE}"
            ),
            Self::Regions { first, largest } => write!(
                f,
                "regions cannot grow from {first} to {largest} bytes: use multiples of \
                 {HUGE_PAGE} up to {LARGEST_REGION}, the first no larger than the largest"
            ),
        }
    }
}

impl std::error::Error for TuningError {}
