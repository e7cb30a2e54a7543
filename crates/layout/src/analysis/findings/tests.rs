use super::*;
use crate::record::Why;
use crate::{Among, Cache, Field};

const HOT: &[Field] = &[Field::new("key", 0, 8), Field::links("children", 8, 2)];
const fn layout(kind: &'static str, size: usize, search: &'static [Field]) -> NodeLayout {
    NodeLayout { kind, size, align: 8, search, found: search }
}
static SLIM: [NodeLayout; 1] = [layout("node", 48, HOT)];
static LINE: [NodeLayout; 1] = [layout("node", 64, HOT)];
static COLD: NodeLayout = layout("descriptor", 64, &[]);
static HALF: [NodeLayout; 1] = [layout("node", 32, HOT)];
static WIDE: [NodeLayout; 1] = [layout(
    "node",
    128,
    &[Field::new("version", 104, 8), Field::new("key", 0, 8), Field::links("children", 8, 2)],
)];

const START: usize = 1 << 32;

/// Blocks of these layouts in turns, 100 000 rounds from a huge page's start on.
fn in_turns(layouts: &[&'static NodeLayout]) -> Census {
    let (mut census, mut address) = (Census::default(), START);
    for _ in 0..100_000 {
        for layout in layouts {
            census.add(layout, address);
            address += layout.size;
        }
    }
    census
}

fn found(
    census: &mut Census,
    pages: PageSize,
    objects: &'static [NodeLayout],
    builds: &[Build],
    paths: Option<&Paths>,
) -> Vec<Finding> {
    let machine = Machine::named("haswell").unwrap();
    let survey = &census.survey(&machine.sets(Level::Llc));
    Situation { survey, machine: &machine, pages, paths, objects, builds }.findings()
}

fn names(findings: &[Finding]) -> Vec<(&'static str, &str)> {
    findings.iter().map(|finding| (finding.id.name(), finding.kind.as_str())).collect()
}

/// The findings for nodes of a kind that alternate with other kinds, on huge pages.
fn of(objects: &'static [NodeLayout], others: &[&'static NodeLayout]) -> Vec<Finding> {
    let layouts: Vec<_> = objects.iter().chain(others.iter().copied()).collect();
    found(&mut in_turns(&layouts), PageSize::Huge, objects, &[], None)
}

#[test]
fn each_layout_is_told_by_its_name() {
    assert_eq!(names(&of(&LINE, &[])), []);
    assert_eq!(names(&of(&HALF, &[])), []);
    let straddling = of(&SLIM, &[]);
    assert_eq!(names(&straddling), [("straddling", "node")]);
    assert_eq!(straddling[0].remedy, Remedy::Align(64));
    assert!(straddling[0].evidence.to_string().starts_with("25.0 % of 100000 objects of 48 bytes"));
    assert!(
        straddling[0].evidence.to_string().contains("1.250 lines per visit, 1.125 of them needed")
    );
    let two = of(&LINE, &[&COLD]);
    assert_eq!(names(&two), [("useless-neighbours", "node"), ("set-underutilization", "node")]);
    assert!(two[0].evidence.to_string().contains("descriptor 100.0 %"), "{}", two[0].evidence);
    assert!(two[1].evidence.to_string().contains("50.0 % of the L1, 50.0 % of the L2 sets"));
    let three = of(&LINE, &[&COLD, &COLD]);
    // Every neighbour is of another kind, and the powers of two are prime to three.
    assert_eq!(names(&three), [("useless-neighbours", "node"), ("sliced-stride", "node")]);
    assert!(
        three[1].evidence.to_string().contains("33.3 % of the sets of a last level in 12 slices")
    );
    assert!(
        three[1].evidence.to_string().contains("100.0 % of them lie 192 bytes behind the last")
    );
}

#[test]
fn what_a_pool_would_not_mend_is_not_laid_to_others() {
    // Alone on their pages, and a quarter of the sets: their own bytes lie between.
    let mut census = Census::default();
    let large = census.kind("large", Some(std::iter::once(0..24).collect()));
    (0..100_000).for_each(|n| census.add_sized(large, START + n * 256, 256));
    let findings = found(&mut census, PageSize::Huge, &[], &[], None);
    assert_eq!(names(&findings), []);
    // Six lines apart, and too few sets of every level.
    let six = of(&LINE, &[&COLD, &COLD, &COLD, &COLD, &COLD]);
    let wanted = ["useless-neighbours", "set-underutilization", "sliced-stride"];
    assert_eq!(names(&six), wanted.map(|id| (id, "node")));
}

#[test]
fn fields_in_the_middle_of_large_objects_are_scattered() {
    let mut census = Census::default();
    let late = census.kind("late", Some(std::iter::once(40..72).collect()));
    (0..1000).for_each(|n| census.add_sized(late, START + n * 128, 128));
    let findings = found(&mut census, PageSize::Huge, &[], &[], None);
    assert_eq!(names(&findings), [("scattered-fields", "late")]);
    assert_eq!(findings[0].remedy, Remedy::Reorder);
    assert!(
        findings[0]
            .evidence
            .to_string()
            .starts_with("a search reads 32 bytes, from byte 40 to byte 71")
    );
}

#[test]
fn what_is_declared_beyond_an_object_is_none_of_it() {
    let mut census = Census::default();
    let long = census.kind("long", Some(std::iter::once(0..usize::MAX).collect()));
    (0..1000).for_each(|n| census.add_sized(long, START + n * 40, 40));
    let findings = found(&mut census, PageSize::Huge, &[], &[], None);
    // Five lines hold eight objects, four of which cross a border of lines.
    assert_eq!(names(&findings), [("straddling", "long")]);
    assert_eq!(findings[0].remedy, Remedy::Align(64));
    assert!(findings[0].evidence.to_string().starts_with("50.0 % of 1000 objects of 40 bytes"));
}

#[test]
fn a_few_large_objects_hide_nothing() {
    let mut census = Census::default();
    let kind = census.kind("site", Some(std::iter::once(0..24).collect()));
    (0..100_000).for_each(|n| census.add_sized(kind, START + n * 192, 64));
    census.add_sized(kind, START + 100_000 * 192, 192);
    let findings = found(&mut census, PageSize::Huge, &[], &[], None);
    let wanted = ["useless-neighbours", "sliced-stride"];
    assert_eq!(names(&findings), wanted.map(|id| (id, "site")));
}

#[test]
fn a_cache_that_nobody_indexes_by_modulo_says_nothing() {
    let haswell = Machine::named("haswell").unwrap();
    let llc = Cache { bytes: 13 * 64 * 64 * 16, ways: 16, hash: SetHash::Modulo, ..haswell.llc };
    let odd = Machine { llc, ..haswell };
    let mut census = Census::default();
    (0..100_000).for_each(|n| census.add(&LINE[0], START + n * 13 * 64));
    let survey = &census.survey(&odd.sets(Level::Llc));
    let pages = PageSize::Huge;
    let of = Situation { survey, machine: &odd, pages, paths: None, objects: &LINE, builds: &[] };
    assert!(of.findings().iter().all(|finding| finding.id != Id::SetUnderutilization));
}

#[test]
fn objects_of_which_nothing_is_declared_straddle_if_they_would_fit_a_line() {
    let mut census = Census::default();
    let (mixed, large) = (census.kind("mixed", None), census.kind("large", None));
    let mut address = START;
    for number in 0..1000 {
        // Ten lines hold nine objects of 40 bytes and a large one. The four objects at bytes 32 and
        // 48 of a line cross its end.
        let (bytes, slot) = if number % 10 == 9 { (200, 208) } else { (40, 48) };
        census.add_sized(mixed, address, bytes);
        address += slot;
    }
    (0..1000).for_each(|number| census.add_sized(large, 2 * START + 1040 * number, 1030));
    let findings = found(&mut census, PageSize::Small, &[], &[], None);
    assert_eq!(names(&findings), [("straddling", "mixed")], "large ones fit no line");
    assert_eq!(findings[0].remedy, Remedy::Align(64));
    let evidence = findings[0].evidence.to_string();
    let begins = "40.0 % of 1000 objects of 40 to 200 bytes, 40 in the middle, would fit a line";
    assert!(evidence.starts_with(begins), "{evidence}");
}

#[test]
fn pages_are_scattered_or_too_small() {
    let small =
        |census: &mut Census| names(&found(census, PageSize::Small, &LINE, &[], None)).len();
    // 1563 pages, where 512 translations are kept.
    assert_eq!(small(&mut in_turns(&[&LINE[0]])), 1);
    let spread = |pages: usize| {
        let mut census = Census::default();
        (0..pages)
            .for_each(|page| census.add(&LINE[0], START + page * 4096 + 64 * (page / 8 % 64)));
        census
    };
    let findings = found(&mut spread(600), PageSize::Small, &LINE, &[], None);
    assert_eq!(names(&findings), [("useless-neighbours", "node"), ("scattered-pages", "node")]);
    assert!(
        findings[1]
            .evidence
            .to_string()
            .contains("600 pages of 4 KiB and would fill 10, in runs of 600.0")
    );
    assert_eq!(findings[1].remedy, Remedy::OwnHugePages);
    let few = found(&mut spread(500), PageSize::Small, &LINE, &[], None);
    assert_eq!(names(&few), [("useless-neighbours", "node")], "translations of all are kept");
    assert_eq!(names(&found(&mut spread(600), PageSize::Huge, &LINE, &[], None)).len(), 1);
}

#[test]
fn other_builds_may_be_smaller_or_denser() {
    let builds = [Build { name: "large", objects: &WIDE }, Build { name: "fixed", objects: &SLIM }];
    let mut census = in_turns(&[&WIDE[0]]);
    let findings = found(&mut census, PageSize::Huge, &WIDE, &builds, None);
    assert_eq!(names(&findings), [("oversized-node", "node"), ("scattered-fields", "node")]);
    let slot = |kind: &str, bytes| {
        assert_eq!((kind, bytes), ("node", 48), "as the other build has them");
        Slot { bytes, among: Among::Size }
    };
    for finding in &findings {
        assert_eq!(finding.remedy, Remedy::Build("fixed".into()));
        let (moves, pages) =
            finding.remedied(&mut census, &Paths::default(), PageSize::Huge, slot).unwrap();
        assert_eq!(pages, PageSize::Huge);
        let at = std::ptr::without_provenance::<u8>(START + 3 * 128);
        let reads: Vec<_> = WIDE[0].passed(at, 1).map(|read| moves.address(&read)).collect();
        let first = reads[1];
        assert_eq!(reads[2..], [first + 8, first + 16], "as the other build has them");
    }
    assert_eq!(names(&found(&mut census, PageSize::Huge, &WIDE, &builds[..1], None)), []);
}

#[test]
fn locks_share_lines_unless_they_fill_them() {
    let locks = |bytes: usize| {
        let mut census = Census::default();
        let lock = census.kind("lock", None);
        census.are_locks(lock);
        (0..1000).for_each(|n| census.add_sized(lock, START + n * bytes, bytes));
        found(&mut census, PageSize::Small, &[], &[], None)
    };
    let findings = locks(48);
    assert_eq!(names(&findings), [("lock-false-sharing", "lock")]);
    assert!(
        findings[0]
            .evidence
            .to_string()
            .starts_with("100.0 % of 1000 share a line with another: 1.33")
    );
    assert_eq!(findings[0].remedy, Remedy::PadLocks(64));
    assert!(locks(64).is_empty() && locks(192).is_empty());
}

#[test]
fn collocation_is_lost_by_a_shift() {
    /// Pairs of leaf and parent, end to end from there on.
    fn shifted(by: usize) -> (Census, Paths) {
        let (mut census, mut paths) = (Census::default(), Paths::default());
        let at = std::ptr::without_provenance::<u8>;
        for pair in 0..1000 {
            let (leaf, parent) = (START + by + pair * 64, START + by + pair * 64 + 32);
            census.add(&HALF[0], leaf);
            census.add(&HALF[0], parent);
            let reads =
                HALF[0].passed(at(parent), 0).chain([HALF[0].read(at(leaf), 0, 8, Why::Found)]);
            paths.add(&reads.collect::<Vec<_>>());
        }
        (census, paths)
    }
    let (mut census, paths) = shifted(0);
    assert_eq!(names(&found(&mut census, PageSize::Huge, &HALF, &[], Some(&paths))), []);
    let (mut census, paths) = shifted(32);
    // Objects that fill a line each share none.
    let lines = found(&mut census, PageSize::Huge, &LINE, &[], Some(&paths));
    assert!(lines.iter().all(|finding| finding.id != Id::LostCollocation));
    let findings = found(&mut census, PageSize::Huge, &HALF, &[], Some(&paths));
    assert_eq!(names(&findings), [("lost-collocation", "node")]);
    assert!(
        findings[0].evidence.to_string().starts_with("100.0 % of the 1000"),
        "{}",
        findings[0].evidence
    );
    assert!(findings[0].evidence.to_string().contains("50.0 % of those in another pair"));
    let (moves, _) = findings[0]
        .remedied(&mut census, &paths, PageSize::Huge, |_, bytes| Slot {
            bytes,
            among: Among::Kind,
        })
        .unwrap();
    let line = |object: usize| {
        let object = std::ptr::without_provenance::<u8>(object);
        moves.address(&HALF[0].read(object, 0, 8, Why::Step)) / 64
    };
    assert_eq!(line(START + 32 + 640), line(START + 32 + 640 + 32));
}
