//! Each mechanism alone, on machines small enough to follow by hand.

use super::*;
use crate::SetHash;
use Reached::Memory;
use std::collections::HashSet;

const L1: Reached = Reached::Cache(Level::L1);
const L2: Reached = Reached::Cache(Level::L2);
const LLC: Reached = Reached::Cache(Level::Llc);

/// A cache of `sets` sets with `ways` lines each.
const fn cache(sets: usize, ways: usize, inclusion: Inclusion) -> Cache {
    Cache { bytes: sets * ways * 64, ways, hash: SetHash::Modulo, inclusion }
}

/// A last level that keeps all lines that the tests read.
const AMPLE: Cache = cache(64, 8, Inclusion::Neither);

/// Two sets of two lines above four sets of two.
const TINY: Machine = Machine {
    name: "tiny",
    source: "made up",
    line: 64,
    l1: cache(2, 2, Inclusion::Neither),
    l2: cache(4, 2, Inclusion::Neither),
    llc: AMPLE,
    adjacent_line: false,
    tlb: [
        Tlb::Split {
            small: Entries { entries: 4, ways: 2 },
            huge: Entries { entries: 2, ways: 2 },
        },
        Tlb::Shared(Entries { entries: 8, ways: 4 }),
    ],
};

/// A machine with one set in each level.
const fn sets_of_one(l1: usize, l2: (usize, Inclusion), llc: (usize, Inclusion)) -> Machine {
    let l1 = cache(1, l1, Inclusion::Neither);
    Machine { l1, l2: cache(1, l2.0, l2.1), llc: cache(1, llc.0, llc.1), ..TINY }
}

/// Reads a word of each line. Returns where each line was, and the model afterwards.
fn read(machine: &Machine, lines: &[usize]) -> (Vec<Reached>, Model) {
    let mut model = Model::new(machine).unwrap();
    let reached = lines.iter().map(|line| model.read(line * 64, 8, PageSize::Small)).collect();
    (reached, model)
}

fn reached(machine: &Machine, lines: &[usize]) -> Vec<Reached> {
    read(machine, lines).0
}

/// Reads `lines` lines that are `apart` lines apart, `rounds` times.
fn rounds(machine: &Machine, lines: usize, apart: usize, rounds: usize) -> Counts {
    let mut model = Model::new(machine).unwrap();
    for _ in 0..rounds {
        for line in 0..lines {
            model.read(line * apart * machine.line, 8, PageSize::Huge);
        }
    }
    model.counts()
}

fn haswell() -> Machine {
    Machine::named("haswell").unwrap().without_prefetch()
}

#[test]
fn the_least_recently_used_line_of_a_set_goes() {
    // L1 set 0: 4 meets 0 and 2, and evicts 2 as the older one. L2 sets 0 and 2 keep all three.
    assert_eq!(reached(&TINY, &[0, 2, 0, 4, 0, 2]), [Memory, Memory, L1, Memory, L1, L2]);
}

#[test]
fn one_line_more_than_ways_misses_always() {
    for (apart, ways, misses) in [
        (64, 8, (|counts: Counts| counts.l1_misses) as fn(Counts) -> u64),
        (512, 8, |counts| counts.l2_misses),
        (12 * 2048, 20, |counts| counts.llc_misses),
    ] {
        let machine = haswell().with_llc_hash(SetHash::Modulo).unwrap();
        assert_eq!(misses(rounds(&machine, ways, apart, 10)), ways as u64);
        assert_eq!(misses(rounds(&machine, ways + 1, apart, 10)), 10 * (ways as u64 + 1));
    }
}

#[test]
fn what_an_inclusive_level_evicts_leaves_the_levels_above() {
    let llc = |inclusion| sets_of_one(4, (4, Inclusion::Neither), (2, inclusion));
    // L1 used line 0 last, but the LLC saw its use first: there 2 evicts 0, and 0 evicts 1.
    let lines = [0, 1, 0, 2, 0, 2, 1];
    assert_eq!(
        reached(&llc(Inclusion::Inclusive), &lines),
        [Memory, Memory, L1, Memory, Memory, L1, Memory]
    );
    assert_eq!(reached(&llc(Inclusion::Neither), &lines), [Memory, Memory, L1, Memory, L1, L1, L1]);
    let l2 = |inclusion| sets_of_one(4, (2, inclusion), (8, Inclusion::Neither));
    assert_eq!(reached(&l2(Inclusion::Inclusive), &[0, 1, 0, 2, 0])[3..], [Memory, LLC]);
    assert_eq!(reached(&l2(Inclusion::Neither), &[0, 1, 0, 2, 0])[3..], [Memory, L1]);
    // Not only L1 has lost the line, but L2 as well.
    let small_l1 = sets_of_one(1, (4, Inclusion::Neither), (2, Inclusion::Inclusive));
    assert_eq!(reached(&small_l1, &[0, 1, 2, 0])[3], Memory);
}

#[test]
fn an_exclusive_level_holds_what_others_do_not() {
    let llc = |inclusion| sets_of_one(1, (2, Inclusion::Neither), (2, inclusion));
    // Two lines in L2 and two in the LLC change places.
    let lines = [0, 1, 2, 3, 0, 1, 2, 3, 0];
    assert_eq!(reached(&llc(Inclusion::Exclusive), &lines)[..4], [Memory; 4]);
    assert_eq!(reached(&llc(Inclusion::Exclusive), &lines)[4..], [LLC; 5]);
    assert_eq!(reached(&llc(Inclusion::Neither), &lines), [Memory; 9]);
    // A line from memory bypasses the LLC: after 0 and 1 it is empty, and 2 sends 0 down to it.
    assert_eq!(reached(&llc(Inclusion::Exclusive), &[0, 1, 2, 0, 1, 2])[3..], [LLC; 3]);
    assert_eq!(reached(&llc(Inclusion::Exclusive), &[0, 1, 2, 3, 4, 0])[5], Memory);
    let l2 = |inclusion| sets_of_one(2, (2, inclusion), (8, Inclusion::Neither));
    assert_eq!(reached(&l2(Inclusion::Exclusive), &lines)[4..], [L2; 5]);
    assert_eq!(reached(&l2(Inclusion::Neither), &lines)[4..], [LLC; 5]);
}

/// Checks M1 and M2 of the module's docs, and that a line is not both in an exclusive level and in
/// the one above.
fn check_invariants(model: &Model) {
    let held = [&model.l1, &model.l2, &model.llc].map(|level| {
        let lines: Vec<usize> = level.lines().collect();
        let distinct: HashSet<usize> = lines.iter().copied().collect();
        assert_eq!(distinct.len(), lines.len(), "{lines:?}");
        distinct
    });
    for (at, level) in [(1, &model.l2), (2, &model.llc)] {
        match level.inclusion {
            Inclusion::Inclusive => {
                assert!(held[..at].iter().all(|above| above.is_subset(&held[at])));
            }
            Inclusion::Exclusive => assert!(held[at - 1].is_disjoint(&held[at])),
            Inclusion::Neither => {}
        }
    }
}

#[test]
fn reads_at_random_keep_the_invariants() {
    const ALL: [Inclusion; 3] = [Inclusion::Inclusive, Inclusion::Exclusive, Inclusion::Neither];
    for (at, l2) in (0..).zip(ALL.repeat(6)) {
        let (llc, adjacent_line) = (ALL[at / 3 % 3], at >= 9);
        let machine = Machine {
            l2: cache(4, 2, l2),
            llc: Cache { hash: SetHash::Slices(3), ..cache(6, 2, llc) },
            adjacent_line,
            ..TINY
        };
        let (mut model, mut random) = (Model::new(&machine).unwrap(), 1_usize);
        for _ in 0..3000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            model.read((random >> 40) % 40 * 64, 8, PageSize::Small);
            check_invariants(&model);
        }
        let Counts { l1_misses, l2_misses, llc_misses, prefetched, prefetched_used, .. } =
            model.counts();
        assert!(l1_misses > l2_misses && l2_misses > llc_misses && llc_misses > 0);
        assert!(prefetched >= prefetched_used && (prefetched_used > 0) == adjacent_line);
    }
}

#[test]
fn a_line_prefetched_is_used_by_the_first_read_of_it() {
    let machine = Machine { adjacent_line: true, ..TINY };
    let counts = |lines: &[usize]| {
        let counts = read(&machine, lines).1.counts();
        (counts.prefetched, counts.prefetched_used)
    };
    assert_eq!(reached(&machine, &[0, 1, 1]), [Memory, L2, L1]);
    assert_eq!(reached(&machine, &[3, 2]), [Memory, L2]);
    assert_eq!(reached(&TINY, &[0, 1]), [Memory; 2]);
    assert_eq!((counts(&[0]), counts(&[0, 1, 1])), ((1, 0), (1, 1)));
    // 5 and 9 evict 1 from set 1 of L1 and L2, after it was used. L1 still holds its pair.
    assert_eq!(reached(&machine, &[0, 1, 5, 9, 1])[4], LLC);
    assert_eq!(counts(&[0, 1, 5, 9, 1]), (3, 1));
    // An L2 hit fetches no pair, nor does a miss whose pair L2 holds: 8 evicts 0, and 9 evicts 5.
    assert_eq!(reached(&machine, &[0, 4, 1, 8, 0])[4], LLC);
    assert_eq!(counts(&[0, 4, 1, 8, 0]), (3, 1));
}

#[test]
fn a_line_prefetched_into_the_last_level_is_used_from_there() {
    // 3 fetches 2, and 6 and 10 evict it from set 2 of L2.
    let lines = [3, 6, 10, 2];
    let after = |llc| {
        let machine = Machine { adjacent_line: true, llc, ..TINY };
        let (reached, model) = read(&machine, &lines);
        (reached[3], model.counts().prefetched, model.counts().prefetched_used)
    };
    assert_eq!(after(AMPLE), (LLC, 3, 1));
    assert_eq!(after(cache(64, 8, Inclusion::Inclusive)), (LLC, 3, 1));
    assert_eq!(after(cache(64, 8, Inclusion::Exclusive)), (LLC, 3, 1));
    // With one set, the LLC has evicted it as well.
    assert_eq!(after(cache(1, 4, Inclusion::Neither)), (Memory, 3, 0));
    // 6 and 10 evict 2, then 7 and 11 evict 3. All these were prefetched, and read before that. 3,
    // read from the LLC, brings 2 into L2 again, and 14 and 18 evict it. The LLC still has 2 from
    // the first read.
    let machine = Machine { adjacent_line: true, ..TINY };
    let (reached, model) = read(&machine, &[2, 3, 6, 10, 7, 11, 3, 14, 18, 2]);
    assert_eq!((reached[6], reached[9]), (LLC, LLC));
    assert_eq!((model.counts().prefetched, model.counts().prefetched_used), (6, 3));
    // 3 fetches 2, and 6 and 10 evict it from L2. 7 and 11 evict 3, which fetches 2 again; 14 and
    // 18 evict 2. Then 2 is read for the first time, from the LLC.
    let lines = [3, 6, 10, 7, 11, 3, 14, 18];
    let (_, before) = read(&machine, &lines);
    let (reached, model) = read(&machine, &[&lines[..], &[2]].concat());
    assert_eq!(reached[8], LLC);
    assert_eq!(model.counts().prefetched_used, before.counts().prefetched_used + 1);
}

#[test]
fn a_page_is_looked_for_in_both_levels_of_translations() {
    let walks = |pages: &[usize]| {
        let mut model = Model::new(&TINY).unwrap();
        for page in pages {
            model.read(page << 12, 8, PageSize::Small);
        }
        (model.counts().tlb_misses, model.counts().page_walks)
    };
    // Even pages share set 0 of both levels: two entries in one, four in the other.
    assert_eq!(walks(&[0, 2, 0, 2]), (2, 2));
    assert_eq!(walks(&[0, 2, 4, 0, 4, 0]), (4, 3));
    assert_eq!(walks(&[0, 2, 4, 6, 0, 2, 4, 6]), (8, 4));
    assert_eq!(walks(&[0, 2, 4, 6, 8, 0, 2, 4, 6, 8]), (10, 10));
    // Odd pages have a set of their own.
    assert_eq!(walks(&[0, 2, 1, 3, 0, 2, 1, 3]), (4, 4));
}

#[test]
fn huge_pages_reach_further() {
    let walks = |name, page, bytes: usize, rounds| {
        let mut model = Model::new(&Machine::named(name).unwrap()).unwrap();
        for _ in 0..rounds {
            for address in (0..bytes).step_by(4096) {
                model.read(address, 8, page);
            }
        }
        (model.counts().tlb_misses, model.counts().page_walks)
    };
    assert_eq!(walks("haswell", PageSize::Huge, 64 << 20, 2), (32, 32));
    assert_eq!(walks("haswell", PageSize::Small, 64 << 20, 2), (32768, 32768));
    // One page more: five pages in a set of four, and no second level for them.
    assert_eq!(walks("haswell", PageSize::Huge, 66 << 20, 3), (43, 43));
    assert_eq!(walks("haswell", PageSize::Small, 2 << 20, 2), (1024, 512));
    // The second level of a later core accepts both sizes.
    assert_eq!(walks("i7-4770", PageSize::Huge, 128 << 20, 2), (128, 64));
    assert_eq!(walks("i7-4770", PageSize::Small, 4 << 20, 2), (2048, 1024));
}

/// Reads one line of each of 8192 pages of 4 KiB, in rounds. The second level of translations has
/// 512 entries, so each read walks. The pages' entries fill 1024 lines of the page table.
#[test]
fn walks_read_the_page_table_through_the_caches() {
    let round = |model: &mut Model, page| {
        let before = model.counts();
        for number in 0..8192 {
            model.read((number << 12) + number / 128 * 64, 8, page);
        }
        model.counts() - before
    };
    let machine = Machine::named("i7-2630qm").unwrap().without_prefetch();
    let mut model = Model::new(&machine).unwrap().walking();
    let first = round(&mut model, PageSize::Small);
    // An entry at the top and one below it lead to a directory. Its 16 entries, in two lines, lead
    // to tables.
    assert_eq!((first.page_walks, first.table_reads), (8192, 8192 + 16 + 2));
    assert_eq!(first.table_llc_misses, 1024 + 4);
    // The entries that lead to tables are kept. A line of a table is read eight times in a row, and
    // again after 18 other lines have entered its set of L2.
    let second = round(&mut model, PageSize::Small);
    assert_eq!((second.page_walks, second.table_reads), (8192, 8192));
    let misses = (second.table_l1_misses, second.table_l2_misses, second.table_llc_misses);
    assert_eq!(misses, (1024, 1024, 0));
    assert_eq!((second.l1_misses, second.l2_misses, second.llc_misses), (8192, 8192, 0));
    assert_eq!(model.table_lines(Level::Llc), 1024 + 4);
    // 16 pages of 2 MiB all fit in the first level of translations.
    let mut huge = Model::new(&machine).unwrap().walking();
    let first = round(&mut huge, PageSize::Huge);
    assert_eq!((first.page_walks, first.table_reads), (16, 16 + 2));
    assert_eq!(first.table_llc_misses, 4);
    assert_eq!(round(&mut huge, PageSize::Huge).page_walks, 0);
    assert_eq!(huge.table_lines(Level::Llc), 4);
    // A model that does not walk counts walks, but reads no tables.
    let mut still = Model::new(&machine).unwrap();
    let counts = round(&mut still, PageSize::Small);
    assert_eq!((counts.page_walks, counts.table_reads), (8192, 0));
    assert_eq!(still.table_lines(Level::Llc), 0);
}

#[test]
fn walks_fetch_no_pairs() {
    let machine = Machine { adjacent_line: true, ..TINY };
    let mut model = Model::new(&machine).unwrap().walking();
    assert_eq!(model.read(0, 8, PageSize::Small), Memory);
    let counts = model.counts();
    assert_eq!((counts.table_reads, counts.table_llc_misses, counts.prefetched), (4, 4, 1));
    assert_eq!((counts.llc_misses, counts.l1_misses), (1, 1));
}

#[test]
fn pages_of_both_sizes_compete_where_entries_are_shared() {
    // There are 72 entries in one set: 71 small pages leave room for one huge page.
    let misses = |machine: &Machine, huge| {
        let mut model = Model::new(machine).unwrap();
        for _ in 0..2 {
            for page in 0..71 {
                model.read(page << 12, 8, PageSize::Small);
            }
            for page in 0..huge {
                model.read(page << 21, 8, PageSize::Huge);
            }
        }
        model.counts().tlb_misses
    };
    let zen4 = Machine::named("zen4").unwrap();
    assert_eq!((misses(&zen4, 1), misses(&zen4, 2)), (72, 146));
    let entries = Entries { entries: 72, ways: 72 };
    let split = Tlb::Split { small: entries, huge: entries };
    assert_eq!(misses(&Machine { tlb: [split, zen4.tlb[1]], ..zen4 }, 2), 73);
}

#[test]
fn sets_need_not_be_a_power_of_two() {
    let machine = Machine { l1: cache(3, 1, Inclusion::Neither), ..TINY };
    assert_eq!(
        reached(&machine, &[0, 1, 2, 0, 1, 2, 3, 0, 1, 5, 2]),
        [Memory, Memory, Memory, L1, L1, L1, Memory, L2, L1, Memory, L2]
    );
}

#[test]
fn slices_spread_powers_of_two_and_not_what_their_odd_part_divides() {
    const LINES: usize = 3 << 16;
    let misses = |machine: &Machine, apart| rounds(machine, LINES, apart, 2).llc_misses as usize;
    let modulo = haswell().with_llc_hash(SetHash::Modulo).unwrap();
    // At most 15 lines fall into a set of 20, but 24 or 32 on average if only a third or a quarter
    // of the sets is used.
    assert_eq!((misses(&haswell(), 1), misses(&haswell(), 4)), (LINES, LINES));
    assert!(misses(&haswell(), 3) > LINES * 3 / 2);
    assert_eq!(misses(&modulo, 4), 2 * LINES);
}

#[test]
fn a_read_touches_each_line_it_spans() {
    let mut model = Model::new(&TINY).unwrap();
    assert_eq!(model.read(64, 1, PageSize::Small), Memory);
    // Reads that reach the further of two lines, the last byte of a line, and no byte, which counts
    // as one.
    assert_eq!(model.read(120, 16, PageSize::Small), Memory);
    assert_eq!(model.read(127, 1, PageSize::Small), L1);
    assert_eq!(model.read(191, 0, PageSize::Small), L1);
    let counts = model.counts();
    assert_eq!((counts.reads, counts.lines, counts.l1_misses), (4, 5, 2));
    assert_eq!((counts.tlb_misses, counts.page_walks), (1, 1));
    // Here the first of two lines is the further one: 3 and 5 have sent 1 from L1 to L2.
    assert_eq!(reached(&TINY, &[1, 3, 5, 1])[3], L2);
    model.read(3 * 64, 8, PageSize::Small);
    model.read(5 * 64, 8, PageSize::Small);
    assert_eq!(model.read(60, 8, PageSize::Small), Memory);
    let counts = model.counts();
    // Reads from page 0 into page 1, over three lines from line 63, and at the end of memory.
    model.read(4090, 10, PageSize::Small);
    assert_eq!((model.counts() - counts).page_walks, 1);
    assert_eq!((model.counts() - counts).lines, 2);
    let counts = model.counts();
    model.read(64 * 64, 129, PageSize::Small);
    assert_eq!((model.counts() - counts).lines, 3);
    let counts = model.counts();
    model.read(usize::MAX, 8, PageSize::Small);
    assert_eq!((model.counts() - counts).lines, 1);
}

#[test]
fn counts_are_subtracted_field_by_field() {
    let one = Counts {
        reads: 1,
        lines: 2,
        l1_misses: 3,
        l2_misses: 4,
        llc_misses: 5,
        prefetched: 6,
        prefetched_used: 7,
        tlb_misses: 8,
        page_walks: 9,
        table_reads: 10,
        table_l1_misses: 11,
        table_l2_misses: 12,
        table_llc_misses: 13,
    };
    let ten = Counts {
        reads: 11,
        lines: 22,
        l1_misses: 33,
        l2_misses: 44,
        llc_misses: 55,
        prefetched: 66,
        prefetched_used: 77,
        tlb_misses: 88,
        page_walks: 99,
        table_reads: 110,
        table_l1_misses: 121,
        table_l2_misses: 132,
        table_llc_misses: 143,
    };
    let difference = ten - one;
    assert_eq!(difference - one, Counts { reads: 9, lines: 18, ..difference - one });
    assert_eq!(
        format!("{difference:?}"),
        "Counts { reads: 10, lines: 20, l1_misses: 30, l2_misses: 40, llc_misses: 50, \
         prefetched: 60, prefetched_used: 70, tlb_misses: 80, page_walks: 90, table_reads: 100, \
         table_l1_misses: 110, table_l2_misses: 120, table_llc_misses: 130 }"
    );
}
