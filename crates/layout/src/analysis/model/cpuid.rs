//! The caches and translations that x86-64 processors report by CPUID.

use super::host::{Found, assemble};
use super::machine::{Entries, Inclusion, Machine, Tlb};
use super::presets;
use raw_cpuid::{CacheType, CpuId, CpuIdReader, DatInfo, DatType};

/// The machine, if CPUID reports three levels of caches (Intel's leaf 4, AMD's `8000_001D`).
pub(super) fn machine<R: CpuIdReader>(cpuid: &CpuId<R>) -> Option<Machine> {
    let caches: Vec<Found> = cpuid
        .get_cache_parameters()?
        .filter(|cache| matches!(cache.cache_type(), CacheType::Data | CacheType::Unified))
        .map(|cache| {
            let (ways, line) = (cache.associativity(), cache.coherency_line_size());
            let level = usize::from(cache.level());
            Found {
                level,
                bytes: ways * line * cache.physical_line_partitions() * cache.sets(),
                ways,
                line,
                // A last level that does not include the others holds L2's victims. This is so in
                // AMD's processors, and in Intel's since Skylake-SP.
                inclusion: match (cache.is_inclusive(), level) {
                    (true, _) => Inclusion::Inclusive,
                    (false, 3) => Inclusion::Exclusive,
                    (false, _) => Inclusion::Neither,
                },
            }
        })
        .collect();
    let intel = cpuid.get_vendor_info().is_some_and(|vendor| vendor.as_str() == "GenuineIntel");
    if !intel {
        // Leaves 8000_0005 and 8000_0006 do not say whether page sizes share entries.
        return assemble(&caches, "CPUID; TLB as in zen4", false, presets::ZEN4.tlb);
    }
    let told = cpuid
        .get_deterministic_address_translation_info()
        .and_then(|tables| translations(&tables.collect::<Vec<_>>()));
    let presumed = (presets::SAPPHIRE_RAPIDS.tlb, "CPUID; TLB as in sapphire-rapids");
    // Impossible tables are ignored, like missing ones.
    told.and_then(|tlb| assemble(&caches, "CPUID", true, tlb))
        .or_else(|| assemble(&caches, presumed.1, true, presumed.0))
}

/// Both levels of translations for loads, if leaf 18H has one table in each level for a page size.
/// (It has two if part of a level serves 4 KiB and 1 GiB pages, and none if a hypervisor hides it.)
fn translations(tables: &[DatInfo]) -> Option<[Tlb; 2]> {
    let level = |level| {
        let of = |has: fn(&DatInfo) -> bool| {
            let mut found = tables.iter().filter(|table| {
                table.cache_level() == level
                    && has(table)
                    && matches!(
                        table.cache_type(),
                        DatType::DataTLB | DatType::UnifiedTLB | DatType::LoadOnly
                    )
            });
            (found.next(), found.next())
        };
        let entries = |table: &DatInfo| {
            let (sets, ways) = (table.sets() as usize, usize::from(table.ways()));
            Entries { entries: sets * ways, ways }
        };
        match (of(DatInfo::has_4k_entries), of(DatInfo::has_2mb_entries)) {
            ((Some(small), None), (Some(huge), None)) if std::ptr::eq(small, huge) => {
                Some(Tlb::Shared(entries(small)))
            }
            ((Some(small), None), (Some(huge), None)) => {
                Some(Tlb::Split { small: entries(small), huge: entries(huge) })
            }
            ((Some(small), None), (None, _)) => Some(Tlb::Small(entries(small))),
            _ => None,
        }
    };
    Some([level(1)?, level(2)?])
}

#[cfg(test)]
mod tests {
    use super::*;
    use raw_cpuid::CpuIdResult;

    const NONE: CpuIdResult = CpuIdResult { eax: 0, ebx: 0, ecx: 0, edx: 0 };

    /// A cache as leaves 4 and `8000_001D` report it. Kind 1 is data, 2 instructions, 3 both.
    fn cache(kind: u32, level: u32, ways: u32, sets: u32, inclusive: bool) -> CpuIdResult {
        CpuIdResult {
            eax: kind | level << 5,
            ebx: 63 | (ways - 1) << 22,
            ecx: sets - 1,
            edx: u32::from(inclusive) << 1,
        }
    }

    /// A table of translations as leaf 18H reports it. Pages 1 are of 4 KiB, 2 of 2 MiB, 8 of 1
    /// GiB.
    fn table(kind: u32, level: u32, pages: u32, ways: u32, sets: u32) -> CpuIdResult {
        CpuIdResult { eax: 0, ebx: pages | ways << 16, ecx: sets, edx: kind | level << 5 }
    }

    /// The reported properties of a processor: its vendor, caches and tables of translations.
    #[derive(Clone)]
    struct Told {
        vendor: &'static [u8; 12],
        caches: Vec<CpuIdResult>,
        tables: Vec<CpuIdResult>,
    }

    impl CpuIdReader for Told {
        fn cpuid2(&self, leaf: u32, part: u32) -> CpuIdResult {
            let word = |at: usize| u32::from_le_bytes(self.vendor[at..at + 4].try_into().unwrap());
            let of = |parts: &[CpuIdResult]| parts.get(part as usize).copied().unwrap_or(NONE);
            match leaf {
                0 => CpuIdResult { eax: 0x18, ebx: word(0), edx: word(4), ecx: word(8) },
                0x8000_0000 => CpuIdResult { eax: 0x8000_001d, ..NONE },
                4 if self.vendor == b"GenuineIntel" => of(&self.caches),
                0x8000_001d if self.vendor == b"AuthenticAMD" => of(&self.caches),
                0x18 => CpuIdResult { eax: self.tables.len() as u32 - 1, ..of(&self.tables) },
                _ => NONE,
            }
        }
    }

    /// The report of a virtual machine on a processor of the Emerald Rapids family.
    fn emerald() -> Told {
        Told {
            vendor: b"GenuineIntel",
            caches: vec![
                cache(1, 1, 12, 64, false),
                cache(2, 1, 8, 64, false),
                cache(3, 2, 16, 2048, false),
                cache(3, 3, 20, 212_992, false),
            ],
            tables: vec![NONE],
        }
    }

    fn machine_of(told: Told) -> Option<Machine> {
        machine(&CpuId::with_cpuid_reader(told))
    }

    #[test]
    fn an_intel_processor_tells_its_caches() {
        let machine = machine_of(emerald()).unwrap();
        let spr = presets::SAPPHIRE_RAPIDS;
        assert_eq!((machine.l1, machine.l2), (spr.l1, spr.l2));
        assert_eq!((machine.llc.bytes, machine.llc.ways), (260 << 20, 20));
        assert_eq!(machine.llc.inclusion, Inclusion::Exclusive);
        assert_eq!((machine.line, machine.adjacent_line), (64, true));
        assert_eq!((machine.source, machine.tlb), ("CPUID; TLB as in sapphire-rapids", spr.tlb));
        let mut told = emerald();
        told.caches[3] = cache(3, 3, 16, 8192, true);
        assert_eq!(machine_of(told.clone()).unwrap().llc.inclusion, Inclusion::Inclusive);
        // A cache with two lines per tag.
        told.caches[0].ebx |= 1 << 12;
        assert_eq!(machine_of(told.clone()).unwrap().l1.bytes, 96 << 10);
        told.caches.pop();
        assert_eq!(machine_of(told), None);
    }

    #[test]
    fn an_amd_processor_has_another_leaf_and_no_pairs() {
        let caches = vec![
            cache(1, 1, 8, 64, false),
            cache(3, 2, 8, 2048, true),
            cache(3, 3, 16, 32768, false),
        ];
        let told = Told { vendor: b"AuthenticAMD", caches, tables: vec![NONE] };
        let machine = machine_of(told).unwrap();
        let zen4 = presets::ZEN4;
        assert_eq!((machine.l1, machine.l2, machine.llc), (zen4.l1, zen4.l2, zen4.llc));
        assert_eq!((machine.adjacent_line, machine.tlb), (false, zen4.tlb));
    }

    #[test]
    fn tables_of_translations_are_taken_where_they_are_plain() {
        let tlb = |tables: &[CpuIdResult]| {
            let machine = machine_of(Told { tables: tables.to_vec(), ..emerald() }).unwrap();
            (machine.source == "CPUID").then_some(machine.tlb)
        };
        let entries = |entries, ways| Entries { entries, ways };
        let (small, huge) = (table(4, 1, 1, 6, 16), table(4, 1, 2, 4, 8));
        let (instructions, stores) = (table(2, 1, 3, 8, 32), table(5, 1, 3, 16, 1));
        let first = Tlb::Split { small: entries(96, 6), huge: entries(32, 4) };
        let (shared, small_alone) = (table(3, 2, 3, 16, 128), table(3, 2, 1, 4, 128));
        assert_eq!(
            tlb(&[instructions, small, huge, stores, shared]),
            Some([first, Tlb::Shared(entries(2048, 16))])
        );
        assert_eq!(tlb(&[small, huge, small_alone]), Some([first, Tlb::Small(entries(512, 4))]));
        let as_many_ways = table(4, 1, 1, 4, 16);
        let first = Tlb::Split { small: entries(64, 4), huge: entries(32, 4) };
        assert_eq!(tlb(&[as_many_ways, huge, shared]).map(|tlb| tlb[0]), Some(first));
        // Two tables for small pages in the second level, or none in the first, or none in the
        // second.
        assert_eq!(tlb(&[small, huge, table(3, 2, 3, 8, 128), table(3, 2, 9, 8, 128)]), None);
        assert_eq!(tlb(&[small, huge, small_alone, small_alone]), None);
        assert_eq!(tlb(&[huge, shared]), None);
        assert_eq!(tlb(&[small, huge]), None);
        assert_eq!(tlb(&[table(4, 1, 1, 0, 16), huge, shared]), None, "no ways");
    }
}
