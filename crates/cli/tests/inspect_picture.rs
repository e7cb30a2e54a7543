//! `silvics inspect --svg` and `--html`: the files are whole, show what the report says, and need nothing
//! else.

mod common;

use common::{run, stderr, stdout};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// What an inspection wrote.
struct Written {
    report: Value,
    svg: String,
    html: String,
}

/// Inspects with these arguments.
fn inspect(args: &[&str]) -> Written {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (svg, html) = (path("x.svg"), path("x.html"));
    let fixed = ["inspect", "--machine", "haswell", "--lookups", "1k", "--format", "json"];
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

/// Cells of a class, of each map.
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
        // Nodes lie on every other line, but for the first.
        let none = cells(file, "h0");
        assert!((31..=32).contains(&none[0]) && (224..=256).contains(&none[1]), "{none:?}");
        // Memory beside them is free: each pair has a node, with bytes that are read, in one half.
        assert_eq!((with_class(file, "k0").len(), with_class(file, "r0").len()), (33, 33));
        assert_eq!(with_class(file, "straddle").len(), 0);
    }
    let share =
        |name: &str| format!("{:.1} %", 100.0 * written.report["kinds"][0][name].as_f64().unwrap());
    let titles = texts(&page, "figcaption");
    let sets = titles.iter().find(|title| title.starts_with("Sets")).expect("a map of sets");
    for coverage in ["set_coverage_l1", "set_coverage_l2", "set_coverage", "set_coverage_expected"]
    {
        assert!(sets.contains(&share(coverage)), "{sets} does not tell {coverage}");
    }
}

#[test]
fn the_page_says_what_the_report_says_and_needs_nothing_else() {
    let Written { report, html, .. } = inspect(&STRIPES);
    let page = parse(&html);
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.len() >= 2, "{findings:?}");
    let headings = texts(&page, "h3");
    for finding in findings {
        let heading =
            format!("{} ({})", finding["id"].as_str().unwrap(), finding["kind"].as_str().unwrap());
        assert!(headings.contains(&heading.as_str()), "{heading}");
        assert!(
            texts(&page, "p")
                .iter()
                .any(|text| text.contains(&finding["evidence"].as_str().unwrap()[1..]))
        );
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

/// One sentence, nothing on standard output, and no file.
fn refused(folder: &Path, args: &[&str], parts: &[&str]) {
    let output = run(&[&["inspect", "--keys", "1k"], args].concat());
    let text = stderr(&output);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in: {text}");
    }
    assert_eq!(fs::read_dir(folder).expect("the folder is there").count(), 0);
}

#[test]
fn files_that_cannot_be_written_are_refused_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let (good, missing) = (path("x.svg"), path("none/x.html"));
    refused(
        folder.path(),
        &["--svg", &good, "--html", &missing],
        &["--html", "there is no folder"],
    );
    refused(folder.path(), &["--svg", &path("")], &["--svg", "is a folder: name a file"]);
    refused(folder.path(), &["--svg", &good, "--html", &good], &["--svg", "--html", "name two"]);
}
