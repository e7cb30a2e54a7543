use super::*;
use roxmltree::{Document, Node};
use silvics_layout::Field;
use silvics_layout::record::Why;
use std::collections::BTreeMap;

static OBJECTS: [NodeLayout; 1] = [NodeLayout {
    kind: "node",
    size: 64,
    align: 8,
    search: &[Field::new("key", 0, 8), Field::links("children", 8, 2)],
    found: &[],
}];
const START: usize = 1 << 32;

/// A kind as a report might describe it.
fn kind(name: &str, hot_bytes: f64) -> Kind {
    Kind {
        name: name.into(),
        objects: 100,
        bytes: 64.0,
        bytes_min: 64,
        bytes_max: 64,
        bytes_median: 64,
        class: Some(64.0),
        study_class: 64,
        study_classes: BTreeMap::from([(64, 100)]),
        hot_bytes,
        straddle_share: 0.25,
        lines_per_visit: 1.25,
        lines_needed: 1.125,
        set_coverage: 0.5,
        set_coverage_l1: 0.25,
        set_coverage_l2: 0.125,
        set_coverage_expected: 0.9,
        set_coverage_physical: None,
        pages_absent: None,
        huge_page_share: None,
        neighbour_useful_share: 0.75,
        in_lines: BTreeMap::new(),
        in_neighbours: BTreeMap::new(),
        in_pages: BTreeMap::new(),
        stride_histogram: BTreeMap::new(),
        offsets: BTreeMap::new(),
        pages_4k: 1,
        regions_2m: 1,
        page_run: 1.0,
    }
}

/// A report about these kinds.
fn report(kinds: Vec<Kind>) -> Report {
    Report {
        config: None,
        trace: None,
        kinds,
        physical_note: None,
        compression: None,
        prefixes: None,
        collocation: None,
        model: None,
        findings: Vec::new(),
        fixes: Vec::new(),
    }
}

/// The file of what is drawn of a census with nodes and rows.
fn drawn(census: &mut Census, paths: &Paths) -> String {
    let report = report(vec![kind("node", 24.0), kind("<row>", 0.0)]);
    let machine = Machine::named("haswell").unwrap();
    let pictures = Pictures::of(&report, census, paths, Whose::Index(&OBJECTS), &machine);
    svg::file("a & b", &pictures.all())
}

/// The pictures of a file.
fn pictures<'a>(file: &'a Document<'a>) -> Vec<Node<'a, 'a>> {
    let groups = file.descendants();
    groups.filter(|node| node.attribute("class") == Some("picture")).collect()
}

/// How many rectangles of a class there are.
fn rects(picture: Node, class: &str) -> usize {
    let of_class =
        |node: &Node| node.has_tag_name("rect") && node.attribute("class").unwrap() == class;
    picture.descendants().filter(of_class).count()
}

/// How many cells of a map have a class, in each group of them.
fn cells(picture: Node, class: &str) -> Vec<usize> {
    let paths = picture.descendants().filter(|node| node.has_tag_name("path"));
    let of_class = paths.filter(|node| node.attribute("class") == Some(class));
    of_class.map(|node| node.attribute("d").unwrap().matches('z').count()).collect()
}

#[test]
fn of_nothing_there_is_no_picture() {
    let file = drawn(&mut Census::default(), &Paths::default());
    let file = Document::parse(&file).unwrap();
    assert_eq!(pictures(&file).len(), 0);
    assert!(file.descendants().any(|node| node.text() == Some(svg::NOTHING)));
    assert!(file.descendants().any(|node| node.text() == Some("a & b")));
}

#[test]
fn one_object_is_drawn() {
    let mut census = Census::default();
    census.add(&OBJECTS[0], START + 32);
    let file = drawn(&mut census, &Paths::default());
    let file = Document::parse(&file).unwrap();
    let [lines, sets, pages] = pictures(&file)[..] else { panic!("three pictures") };
    // A pair and its entry in the legend; the object with the bytes read, and theirs.
    assert_eq!((rects(lines, "none"), rects(lines, "k0"), rects(lines, "r0")), (2, 2, 2));
    assert_eq!((rects(lines, "k1"), rects(lines, "straddle"), rects(lines, "step")), (0, 0, 0));
    // 64 and 512 sets, and 24 rows of 64 cells.
    assert_eq!((cells(sets, "h0"), cells(sets, "h8")), (vec![63, 511, 24 * 64 - 1], vec![1, 1, 1]));
    assert_eq!((cells(pages, "h0"), cells(pages, "h1")), (vec![], vec![1]));
}

#[test]
fn kinds_lines_and_sets_are_told_apart() {
    let (mut census, mut paths) = (Census::default(), Paths::default());
    let row = census.kind("<row>", Some(Vec::new()));
    for round in 0..1024 {
        census.add(&OBJECTS[0], START + round * 128);
        census.add_sized(row, START + round * 128 + 64, 64);
    }
    let at = std::ptr::without_provenance::<u8>;
    for round in 0..1023 {
        // To the next pair.
        let (parent, end) = (at(START + round * 128), at(START + round * 128 + 128));
        let ended = OBJECTS[0].read(end, 0, 8, Why::Found);
        paths.add(&OBJECTS[0].passed(parent, 1).chain([ended]).collect::<Vec<_>>());
    }
    let text = drawn(&mut census, &paths);
    let file = Document::parse(&text).unwrap();
    let [lines, sets, pages] = pictures(&file)[..] else { panic!("three pictures") };
    assert_eq!((rects(lines, "none"), rects(lines, "k0"), rects(lines, "r0")), (33, 33, 33));
    assert_eq!((rects(lines, "k1"), rects(lines, "r1"), rects(lines, "straddle")), (33, 0, 0));
    assert_eq!(rects(lines, "step"), 31 + 1, "from each pair but the last, and an entry");
    assert!(
        lines
            .descendants()
            .any(|node| node.text() == Some("<row>: 64 bytes; searches read nothing of it"))
    );
    // Every other set of L1 and L2; of the last level, an eighth of it, as many as there are.
    let (none, most) = (cells(sets, "h0"), cells(sets, "h8"));
    assert_eq!((&none[..2], &most[..2]), (&[32, 256][..], &[32, 256][..]));
    // 32 pages, half of which are nodes; the rest of the row holds nothing.
    assert_eq!(
        (cells(pages, "h4"), rects(pages, "none"), cells(pages, "beside")),
        (vec![32], 2, vec![])
    );
    for colour in ["k0", "r0", "k1", "r1", "h0", "h8", "none", "straddle", "step", "freed"] {
        let both = svg::STYLE.matches(&format!(".{colour} {{ fill: #")).count();
        assert_eq!(both, 2, "{colour} in both schemes");
    }
}

#[test]
fn what_lies_across_lines_is_marked_and_gaps_are_told() {
    let mut census = Census::default();
    for object in [48, 48 + 64, 10_000 * 128] {
        census.add(&OBJECTS[0], START + object);
    }
    let row = census.kind("<row>", Some(Vec::new()));
    census.add_sized(row, START + 4 * 4096, 64);
    census.add_sized(row, START + (64 << 20), 64);
    let freed = census.freed("node");
    census.add_sized(freed, START + (64 << 20) + 8192, 64);
    let text = drawn(&mut census, &Paths::default());
    let file = Document::parse(&text).unwrap();
    let [lines, _, pages] = pictures(&file)[..] else { panic!("three pictures") };
    // The first two; of the second one each pair holds a part, and an entry in the legend.
    assert_eq!((rects(lines, "straddle"), rects(lines, "k0")), (3 + 1, 4 + 1));
    let texts = |picture: Node, part: &str| {
        let of = picture.descendants().filter(Node::is_text).filter_map(|node| node.text());
        of.filter(|text| text.contains(part)).count()
    };
    assert_eq!(texts(lines, "without any node"), 1);
    assert_eq!((texts(pages, "without objects"), rects(pages, "none")), (2, 3 + 1));
    assert_eq!((cells(pages, "beside"), cells(pages, "freed")), (vec![2], vec![1]));
}

#[test]
fn those_that_are_drawn_have_colours_of_their_own_and_others_share_one() {
    let names: Vec<String> = (0..40).map(|number| format!("kind{number}")).collect();
    let mut kinds: Vec<Kind> = names.iter().map(|name| kind(name, 0.0)).collect();
    // These objects, of which a search reads a part or all, come late in the report.
    (kinds[20].hot_bytes, kinds[30].hot_bytes) = (24.0, 64.0);
    let report = report(kinds);
    let drawn = [&report.kinds[30], &report.kinds[20]];
    let legend = Legend::new(&report, &drawn, Whose::Program);
    let colours = |numbers: &[usize]| -> Vec<usize> {
        numbers.iter().map(|number| legend.colour(&names[*number])).collect()
    };
    assert_eq!(colours(&[20, 30, 0, 1, 2, 3, 4]), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(colours(&[5, 19, 39]), [7, 7, 7]);
    assert_eq!(legend.colour("none"), 7);
    let entries = |numbers: std::ops::Range<usize>| {
        let mut canvas = svg::Canvas::new();
        // In any order, and more than once.
        let shown: Vec<&str> = numbers.clone().chain(numbers).map(|n| names[n].as_str()).collect();
        legend.draw(&mut canvas, &shown);
        svg::file("", &[&canvas.finish(String::new())])
    };
    let few = entries(4..6);
    let few = Document::parse(&few).unwrap();
    let picture = pictures(&few)[0];
    assert_eq!((rects(picture, "k6"), rects(picture, "k7"), rects(picture, "r7")), (1, 1, 0));
    let texts: Vec<&str> = picture.descendants().filter_map(|node| node.text()).collect();
    let unread =
        ["kind4", "kind5"].map(|kind| format!("{kind}: 64 bytes; searches read nothing of it"));
    assert!(unread.iter().all(|text| texts.contains(&text.as_str())), "{texts:?}");
    let all = entries(0..40);
    let all = Document::parse(&all).unwrap();
    let picture = pictures(&all)[0];
    let samples = ["k0", "r0", "k1", "r1", "k6", "k7", "r7"].map(|class| rects(picture, class));
    assert_eq!(samples, [1, 1, 0, 1, 1, 1, 0], "kind30 is read whole");
    let texts: Vec<&str> = picture.descendants().filter_map(|node| node.text()).collect();
    let others = "33 other kinds: kind5, kind6, kind7, kind8, kind9, kind10, kind11, kind12, …";
    assert!(texts.contains(&others), "{texts:?}");
}
