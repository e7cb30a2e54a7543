//! The machines of the studies, and current ones.
//!
//! The numbers describe one core's path to memory. If several sources agree, the first one is
//! named. Such machines choose a slice by exclusive ors of address bits. A hash over a power of two
//! of slices models that, not the exact function.

use super::machine::{Cache, Entries, Inclusion, Machine, Tlb};
use crate::SetHash;

/// All presets.
pub(super) const ALL: [Machine; 7] =
    [HASWELL, ABU_DHABI, I7_2630QM, I7_4770, SAPPHIRE_RAPIDS, ZEN4, GRAVITON3];

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

const fn cache(bytes: usize, ways: usize, inclusion: Inclusion) -> Cache {
    Cache { bytes, ways, hash: SetHash::Modulo, inclusion }
}

const fn sliced(bytes: usize, ways: usize, inclusion: Inclusion, slices: usize) -> Cache {
    Cache { bytes, ways, hash: SetHash::Slices(slices), inclusion }
}

const fn entries(entries: usize, ways: usize) -> Entries {
    Entries { entries, ways }
}

/// The first level of data translations in Intel's cores from Nehalem to Haswell.
const INTEL_TLB: Tlb = Tlb::Split { small: entries(64, 4), huge: entries(32, 4) };

/// The Xeon of Arbel-Raviv, Brown and Morrison, USENIX ATC 2018. Its last level of 30 MiB has 12
/// slices of 2.5 MiB. The translations are those of the Xeon of Wong et al., without a second level
/// for 2 MiB pages; cores called Haswell have 1024 shared entries there (see [`I7_4770`]). L2 is
/// neither inclusive nor exclusive, the last level is inclusive. The spatial prefetcher completes
/// pairs of lines in L2 and the last level (Intel 64 and IA-32 Architectures Optimization Reference
/// Manual, on Sandy Bridge).
const HASWELL: Machine = Machine {
    name: "haswell",
    source: "the studies' Xeons: caches of USENIX ATC 2018 (30 MiB, 12 slices), TLB of Wong et al.",
    line: 64,
    l1: cache(32 * KIB, 8, Inclusion::Neither),
    l2: cache(256 * KIB, 8, Inclusion::Neither),
    llc: sliced(30 * MIB, 20, Inclusion::Inclusive, 12),
    adjacent_line: true,
    tlb: [INTEL_TLB, Tlb::Small(entries(512, 4))],
};

/// AMD Opteron 6300 (Piledriver), one of the two dies of a package. The last level has 8 MiB in 64
/// ways. A system of several sockets, like the study's, uses 2 MiB of it as a directory: hwloc's
/// record of a 6348 with four sockets has the 6 MiB in 48 ways taken here. The levels and
/// translations follow the Software Optimization Guide for AMD Family 15h (47414). L2 is "mostly
/// inclusive", modelled as inclusive, and the last level is a victim cache. Its prefetchers follow
/// strides and regions; none completes pairs, as the study confirms. How its four banks are chosen
/// is not documented, so they are chosen by modulo.
const ABU_DHABI: Machine = Machine {
    name: "abu-dhabi",
    source: "AMD 47414 (Family 15h optimization guide), hwloc's record of a 4-socket Opteron 6348",
    line: 64,
    l1: cache(16 * KIB, 4, Inclusion::Neither),
    l2: cache(2 * MIB, 16, Inclusion::Inclusive),
    llc: cache(6 * MIB, 48, Inclusion::Exclusive),
    adjacent_line: false,
    tlb: [Tlb::Shared(entries(64, 64)), Tlb::Shared(entries(1024, 8))],
};

/// Sandy Bridge with four slices of 1.5 MiB in 12 ways. The source is Intel's optimization manual,
/// and for the slices Hund, Willems and Holz, S&P 2013, who found that exclusive ors choose them. 2
/// MiB pages have no second level of translations.
const I7_2630QM: Machine = Machine {
    name: "i7-2630qm",
    source: "Intel's optimization manual on Sandy Bridge; slices as in Hund et al., S&P 2013",
    line: 64,
    l1: cache(32 * KIB, 8, Inclusion::Neither),
    l2: cache(256 * KIB, 8, Inclusion::Neither),
    llc: sliced(6 * MIB, 12, Inclusion::Inclusive, 4),
    adjacent_line: true,
    tlb: [INTEL_TLB, Tlb::Small(entries(512, 4))],
};

/// Haswell with four slices of 2 MiB in 16 ways (Intel's optimization manual).
const I7_4770: Machine = Machine {
    name: "i7-4770",
    source: "Intel's optimization manual on Haswell; slices as in Hund et al., S&P 2013",
    line: 64,
    l1: cache(32 * KIB, 8, Inclusion::Neither),
    l2: cache(256 * KIB, 8, Inclusion::Neither),
    llc: sliced(8 * MIB, 16, Inclusion::Inclusive, 4),
    adjacent_line: true,
    tlb: [INTEL_TLB, Tlb::Shared(entries(1024, 8))],
};

/// A Xeon Platinum 8480+: 56 slices of 1.875 MiB in 15 ways, as in hwloc's record of a Max 9460,
/// filled by L2's victims. The translations for loads follow Intel's optimization manual on Golden
/// Cove, which omits the ways of the second level: 16, as in Ice Lake. `McCalpin` (Mapping
/// Addresses to L3/CHA Slices in Intel Processors, 2021) shows that the hash functions for numbers
/// of slices that are no powers of two are no modulo. [`SetHash::Slices`] is used nevertheless, so
/// a stride of seven lines looks worse here than it is.
pub(super) const SAPPHIRE_RAPIDS: Machine = Machine {
    name: "sapphire-rapids",
    source: "Intel on Golden Cove, hwloc's record of a Max 9460; 105 MiB as in an 8480+",
    line: 64,
    l1: cache(48 * KIB, 12, Inclusion::Neither),
    l2: cache(2 * MIB, 16, Inclusion::Neither),
    llc: sliced(105 * MIB, 15, Inclusion::Exclusive, 56),
    adjacent_line: true,
    tlb: [
        Tlb::Split { small: entries(96, 6), huge: entries(32, 4) },
        Tlb::Shared(entries(2048, 16)),
    ],
};

/// A core complex of eight cores. The source is the Software Optimization Guide for the AMD Zen4
/// Microarchitecture (57647), and for the caches hwloc's record of an EPYC 9654: L2 includes L1, L3
/// holds L2's victims. Low-order bits interleave its slices (AMD at Hot Chips 28, on Zen), which is
/// modulo. The L2 Up/Down prefetcher takes the next or previous line as its history suggests. This
/// does not complete pairs, so the prefetcher is off here.
pub(super) const ZEN4: Machine = Machine {
    name: "zen4",
    source: "AMD 57647 (Zen 4 optimization guide), hwloc's record of an EPYC 9654",
    line: 64,
    l1: cache(32 * KIB, 8, Inclusion::Neither),
    l2: cache(MIB, 8, Inclusion::Inclusive),
    llc: cache(32 * MIB, 16, Inclusion::Exclusive),
    adjacent_line: false,
    tlb: [Tlb::Shared(entries(72, 72)), Tlb::Shared(entries(3072, 24))],
};

/// AWS Graviton3: Neoverse V1 with 1 MiB of L2, which includes L1's data, and 32 MiB behind a
/// CMN-650 mesh (`WikiChip`). The mesh's cache allocates lines that cores evict, so it is modelled
/// as exclusive, in 16 ways. Exclusive ors choose its home nodes; their number is not documented,
/// and taken as 32. The translations are 40 entries as in the Cortex-X1, from which V1 is derived,
/// and "2K" (Arm, Teratec 2021), in 256 sets as in Neoverse N1.
pub(super) const GRAVITON3: Machine = Machine {
    name: "graviton3",
    source: "Arm on Neoverse V1 (Teratec 2021), Cortex-X1 and CMN-650; WikiChip on Graviton3",
    line: 64,
    l1: cache(64 * KIB, 4, Inclusion::Neither),
    l2: cache(MIB, 8, Inclusion::Inclusive),
    llc: sliced(32 * MIB, 16, Inclusion::Exclusive, 32),
    adjacent_line: false,
    tlb: [Tlb::Shared(entries(40, 40)), Tlb::Shared(entries(2048, 8))],
};
