//! `silvics inspect --svg` and `--html`: the files are complete, show the facts of the report, and
//! need no other file.

mod common;

use common::{Files, run, stderr};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The output of an inspection.
struct Written {
    report: Value,
    svg: String,
    html: String,
}

/// Inspects an index with these arguments.
fn inspect(args: &[&str]) -> Written {
    drawn(&[&["--lookups", "1k"], args].concat())
}

/// Inspects a trace with this text.
fn inspect_trace(text: &str) -> Written {
    drawn(&["--trace", &Files::new().write("a.trace", text)])
}

/// Inspects with these arguments.
fn drawn(args: &[&str]) -> Written {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (svg, html) = (path("x.svg"), path("x.html"));
    let fixed = ["inspect", "--machine", "haswell", "--format", "json"];
    let files = ["--svg", &svg, "--html", &html];
    let output = run(&[&fixed[..], &files, args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let names = fs::read_dir(folder.path()).expect("the folder is there");
    assert_eq!(names.count(), 2, "nothing else is left");
    let read = |path: &str| {
        let text = fs::read_to_string(path).expect("the file was written");
        assert!(text.len() < 1_500_000, "{}", text.len());
        text
    };
    let report = serde_json::from_slice(&output.stdout).expect("standard output is JSON");
    Written { report, svg: read(&svg), html: read(&html) }
}

fn parse(text: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).expect("well-formed")
}

fn with_class<'a>(file: &'a Document<'a>, class: &str) -> Vec<Node<'a, 'a>> {
    file.descendants().filter(|node| node.attribute("class") == Some(class)).collect()
}

fn texts<'a>(file: &'a Document<'a>, tag: &str) -> Vec<&'a str> {
    file.descendants()
        .filter(|node| node.has_tag_name(tag))
        .filter_map(|node| node.text())
        .collect()
}

/// All text, with its white space made single spaces.
fn words(file: &Document) -> String {
    let texts = file.descendants().filter(Node::is_text).filter_map(|node| node.text());
    texts.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
}

/// The numbers of cells of a class, map by map.
fn cells(file: &Document, class: &str) -> Vec<usize> {
    let maps = with_class(file, class).into_iter().filter_map(|node| node.attribute("d"));
    maps.map(|places| places.matches('z').count()).collect()
}

const STRIPES: [&str; 9] = [
    "--index",
    "int-lf:baseline",
    "--placement",
    "size-class",
    "--no-reuse",
    "--pages",
    "4k",
    "--keys",
    "20k",
];

#[test]
fn stripes_of_sets_show() {
    let written = inspect(&STRIPES);
    let (svg, page) = (parse(&written.svg), parse(&written.html));
    assert_eq!((with_class(&svg, "picture").len(), with_class(&page, "picture").len()), (3, 3));
    for file in [&svg, &page] {
        // Nodes lie on every other line, except near the first.
        let none = cells(file, "h0");
        assert!((31..=32).contains(&none[0]) && (224..=256).contains(&none[1]), "{none:?}");
        // The memory beside nodes is free: each pair has a node in one half, with bytes that are
        // read.
        assert_eq!((with_class(file, "k0").len(), with_class(file, "r0").len()), (33, 33));
        assert_eq!(with_class(file, "straddle").len(), 0);
    }
    let share =
        |name: &str| format!("{:.1} %", 100.0 * written.report["kinds"][0][name].as_f64().unwrap());
    let titles = texts(&page, "figcaption");
    let sets = titles.iter().find(|title| title.starts_with("Sets")).expect("a map of sets");
    for coverage in ["set_coverage_l1", "set_coverage_l2", "set_coverage", "set_coverage_expected"]
    {
        assert!(sets.contains(&share(coverage)), "{sets} does not show {coverage}");
    }
}

#[test]
fn the_page_says_what_the_report_says_and_needs_nothing_else() {
    let Written { report, html, .. } = inspect(&STRIPES);
    let page = parse(&html);
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.len() >= 2, "{findings:?}");
    let headings = texts(&page, "h3");
    let all: String = page.descendants().filter(Node::is_text).filter_map(|of| of.text()).collect();
    for finding in findings {
        let heading =
            format!("{} ({})", finding["id"].as_str().unwrap(), finding["kind"].as_str().unwrap());
        assert!(headings.contains(&heading.as_str()), "{heading}");
        // The page shows code without its backticks.
        let evidence = finding["evidence"].as_str().unwrap()[1..].replace('`', "");
        assert!(all.contains(&evidence), "{evidence}");
    }
    assert_eq!(texts(&page, "h2").len(), 1 + 4, "findings and four questions");
    let objects = report["kinds"][0]["objects"].to_string();
    assert!(texts(&page, "td").contains(&objects.as_str()));
    assert!(!html.contains("<script") && !html.contains("@import") && !html.contains("url("));
    for node in page.descendants().filter(Node::is_element) {
        assert!(!["link", "img", "script", "iframe"].contains(&node.tag_name().name()));
        assert!(node.attributes().all(|attribute| !["href", "src"].contains(&attribute.name())));
    }
    assert!(html.matches("prefers-color-scheme: dark").count() == 2 && html.contains("viewport"));
}

#[test]
fn other_kinds_and_last_steps_show() {
    let rows = [
        "--index",
        "occ-avl:fixed",
        "--placement",
        "size-class",
        "--keys",
        "20k",
        "--host",
        "row:64,wrapper:64",
    ];
    let written = inspect(&rows);
    let svg = parse(&written.svg);
    let colours = ["k0", "k1", "k2"].map(|class| with_class(&svg, class).len() - 1);
    assert!(
        colours.iter().all(|count| (21..=22).contains(count)),
        "64 lines in turns: {colours:?}"
    );
    let shifted = ["--index", "edge-ext-lf:shifted", "--placement", "size-class", "--keys", "20k"];
    let written = inspect(&shifted);
    let svg = parse(&written.svg);
    assert!(with_class(&svg, "step").iter().filter(|node| node.has_tag_name("rect")).count() > 8);
}

#[test]
fn two_kinds_that_are_read_and_one_key() {
    let written = inspect(&["--index", "ext-lf", "--keys", "1"]);
    assert_eq!(
        with_class(&parse(&written.html), "picture").len(),
        5,
        "lines and sets of each, pages"
    );
}

/// A trace with objects of five kinds. The kind with most bytes is never read. Nodes lie side by
/// side, and half of each is read. Buffers are 1 MiB apart. Small and tiny objects alternate.
fn program() -> String {
    let mut text = String::from("kind <node> hot 0 24\nkind cold hot 0 0\n");
    for number in 0..1000_usize {
        let mut object = |kind: &str, address: usize, bytes: usize| {
            let _ = writeln!(text, "{kind} {address:#x} {bytes}");
        };
        object("cold", (0x5f << 40) + 1000 * number, 1000);
        object("buffer", (0x6f << 40) + (number << 20), 100 + number % 2 * 200);
        object("<node>", (0x7f << 40) + 48 * number, 48);
        object("small", (0x4f << 40) + 32 * number, 16);
        object("tiny", (0x4f << 40) + 32 * number + 16, 8);
    }
    text
}

#[test]
fn a_trace_is_drawn_like_an_index() {
    let written = inspect_trace(&program());
    let (svg, page) = (parse(&written.svg), parse(&written.html));
    for file in [&svg, &page] {
        // Maps of lines and of sets for the three kinds of which most is read, and a map of pages.
        assert_eq!(with_class(file, "picture").len(), 7);
        // A legend has one sample of each kind that is drawn whole. A pair has four small and four
        // tiny objects.
        let rects = |class: &str| with_class(file, class).len();
        assert_eq!((rects("k2"), rects("r2")), (128, 128 + 1), "small, in the third colour");
        assert_eq!((rects("k4"), rects("r4")), (128, 128 + 1), "tiny, after those that are drawn");
        // Three pairs hold eight nodes. Two nodes have a part in two pairs each, and of one such
        // node one part is not read.
        let unread = rects("k1") - rects("r1");
        assert!((10..=11).contains(&unread), "{unread} parts of 32 pairs");
        let words = words(file);
        for part in [
            "#3 <node>: 48 bytes; a search reads 24 of them, in the stronger colour",
            "#2 buffer: 200 bytes on average; counted as read whole",
            "#5 tiny: 8 bytes; counted as read whole",
            "without any #2 …",
            "no object of the trace: free, or somebody else's",
            "Pages with objects: they lie on 1265 pages of 4 KiB and take 24.5 % of the bytes there.",
            "by the share of its bytes that objects take;",
        ] {
            assert!(words.contains(part), "`{part}` is not in {words}");
        }
        assert!(!words.contains("index") && !words.contains("around the"), "{words}");
    }
    let titles = texts(&page, "figcaption");
    let kinds = ["#2 buffer", "#3 <node>", "#4 small"];
    let beginnings = kinds
        .map(|kind| format!("32 pairs of lines of memory around typical objects of kind {kind}: "));
    let sets = kinds.map(|kind| format!("Sets that the lines read of {kind} map to: "));
    let beginnings = beginnings.iter().chain(&sets).map(String::as_str).chain(["Pages "]);
    for (title, beginning) in titles.iter().zip(beginnings) {
        assert!(title.starts_with(beginning), "{title}");
    }
}

#[test]
fn the_page_of_a_trace_goes_by_the_numbers_of_its_tables() {
    let written = inspect_trace(&program());
    let page = parse(&written.html);
    let title = texts(&page, "title");
    assert!(title[0].starts_with("Memory of the program traced in "), "{title:?}");
    assert!(title[0].ends_with("a.trace") && texts(&page, "h1") == title, "{title:?}");
    assert_eq!(texts(&page, "h2").len(), 1 + 3, "findings and three questions");
    let kinds = written.report["kinds"].as_array().unwrap().iter();
    let numbered =
        |(number, kind): (usize, &Value)| format!("#{number} {}", kind["kind"].as_str().unwrap());
    let numbered: Vec<String> = (1..).zip(kinds).map(numbered).collect();
    let cells = texts(&page, "td");
    assert!(numbered.iter().all(|kind| cells.contains(&kind.as_str())), "{numbered:?}");
    let findings = written.report["findings"].as_array().unwrap();
    let told = |finding: &Value| {
        let kind = finding["kind"].as_str().unwrap();
        let kind = numbered.iter().find(|numbered| numbered.ends_with(&format!(" {kind}")));
        format!("{} ({})", finding["id"].as_str().unwrap(), kind.unwrap())
    };
    let told: Vec<String> = findings.iter().map(told).collect();
    assert!(told.contains(&"straddling (#3 <node>)".into()), "{told:?}");
    assert_eq!(texts(&page, "h3"), told);
    assert!(!words(&page).contains("Gain"), "nothing can be predicted without lookups");
}

#[test]
fn names_of_a_trace_are_text_and_its_numbers_may_be_any() {
    let long = "f".repeat(40_000);
    let names = [
        "<script>alert(1)</script>",
        "</svg></text><x>",
        "a&b;\"'",
        "\u{1b}[2J|\u{fffe}\u{ffff}\u{85}",
        "]]>",
        "node#1",
        "node(free)",
        &long,
    ];
    let mut text = String::new();
    for number in 0..40 * names.len() {
        // Each pair of lines holds all kinds, and the first kind has most bytes.
        let kind = number % names.len();
        let _ = writeln!(text, "{} {:#x} {}", names[kind], 0x1000 + 16 * number, 15 - kind);
    }
    // The objects have more bytes than there is memory, up to the last address.
    for number in 1..2000_usize {
        let _ = writeln!(text, "huge<{{}}> {:#x} {}", number << 33, 1_usize << 33);
    }
    let _ = writeln!(text, "high {:#x} 200", usize::MAX - 200);
    let written = inspect_trace(&text);
    let (svg, page) = (parse(&written.svg), parse(&written.html));
    for (file, text) in [(&svg, &written.svg), (&page, &written.html)] {
        let known = ["script", "x"];
        assert!(!file.descendants().any(|node| known.contains(&node.tag_name().name())));
        assert!(!text.contains("&amp;lt;"), "escaped twice");
        assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        assert!(text.len() < 500_000 && !text.contains(&long[..57]), "{}", text.len());
        let words = words(file);
        for part in [
            "#1 huge<{}>: 4294967295 bytes; counted",
            "#2 <script>alert(1)</script>: 15 bytes",
            "#3 </svg></text><x>: 14 bytes",
            "2 other kinds: #8, #9",
        ] {
            assert!(words.contains(part), "`{part}` is not in {words}");
        }
    }
    let cells = texts(&page, "td");
    for name in [
        "a&b;\"'",
        "\u{fffd}[2J\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
        "]]>",
        "</svg></text><x>",
        "node#1",
    ] {
        assert!(cells.iter().any(|cell| cell.ends_with(&format!(" {name}"))), "{name}: {cells:?}");
    }
}

/// Checks that the command refuses with one sentence, prints nothing on standard output, and writes
/// no file.
#[track_caller]
fn refused(folder: &Path, args: &[&str], parts: &[&str]) {
    common::refused(&run(&[&["inspect"], args].concat()), parts);
    assert_eq!(fs::read_dir(folder).expect("the folder is there").count(), 0);
}

#[test]
fn files_that_cannot_be_written_are_refused_at_once() {
    let (folder, files) = (tempfile::tempdir().expect("a temporary folder"), Files::new());
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (good, missing, folder_itself) = (path("x.svg"), path("none/x.html"), path(""));
    // The trace is not even opened.
    for subject in [["--keys", "1k"], ["--trace", &files.missing()]] {
        let refused = |files: &[&str], parts: &[&str]| {
            refused(folder.path(), &[&subject[..], files].concat(), parts);
        };
        refused(&["--svg", &good, "--html", &missing], &["--html", "there is no folder"]);
        refused(&["--svg", &folder_itself], &["--svg", "is a folder: name a file"]);
        refused(&["--svg", &good, "--html", &good], &["--svg", "--html", "name two"]);
        refused(&["--html", &good, "--format", "csv"], &["--format", "table or json"]);
    }
}

#[test]
fn a_trace_is_neither_written_over_nor_drawn_if_it_is_none() {
    let (folder, files) = (tempfile::tempdir().expect("a temporary folder"), Files::new());
    let drawing = folder.path().join("x.svg").to_string_lossy().into_owned();
    let (trace, broken) = (files.write("a", "node 0x10 8\n"), files.write("b", "node\n"));
    let same = ["--trace", &trace, "--svg", &trace];
    refused(folder.path(), &same, &["--trace", "--svg", "both name one file: name two"]);
    assert_eq!(fs::read_to_string(&trace).expect("it is still there"), "node 0x10 8\n");
    refused(folder.path(), &["--trace", &broken, "--svg", &drawing], &["line 1 is not a line"]);
}

/// A trace is not overwritten if an output has its name, or is a link to it.
#[test]
#[cfg(unix)]
fn a_trace_outlives_pictures_by_whatever_name() {
    const TEXT: &str = "node 0x10 8\n";
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (trace, link, other) = (path("x.svg.part"), path("link.svg"), path("there.html"));
    fs::write(&trace, TEXT).expect("it can be written");
    std::os::unix::fs::symlink(&trace, &link).expect("links can be made");
    let args = ["inspect", "--trace", &trace, "--svg", &link];
    common::refused(&run(&args), &["both name one file: name two"]);
    assert_eq!(fs::read_to_string(&trace).expect("it is still there"), TEXT);
    // The page is written to the file to which a link leads. The link stays, and nothing else is
    // written.
    std::os::unix::fs::symlink(path("page"), &other).expect("links can be made");
    let args = ["inspect", "--trace", &trace, "--svg", &path("x.svg"), "--html", &other];
    assert!(run(&args).status.success());
    assert_eq!(fs::read_to_string(&trace).expect("it is still there"), TEXT);
    assert!(fs::read_to_string(path("page")).expect("it is there").contains("<svg"));
    assert!(fs::symlink_metadata(&other).expect("it is there").is_symlink());
    assert_eq!(fs::read_dir(folder.path()).expect("the folder is there").count(), 5);
}
