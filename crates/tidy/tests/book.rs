//! Mistakes in the sources of the book and in its pages, each of which must be found.

use std::collections::BTreeSet;

use silvics_tidy::Tree;
use silvics_tidy::book::{Page, broken};

/// A repository of these files.
fn tree(files: &[(&str, &str)]) -> Tree {
    let mut tree = Tree::default();
    for (path, text) in files {
        tree.add(*path, *text);
    }
    tree
}

const GOOD: [(&str, &str); 4] = [
    ("docs/SUMMARY.md", "# Summary\n\n- [Home](../README.md)\n  - [A](a.md)\n"),
    ("README.md", "See [a](docs/a.md#part) and [code](src/lib.rs).\n"),
    ("docs/a.md", "## Part\n\n[home](../README.md)\n\n{{#include ../README.md}}\n"),
    ("src/lib.rs", ""),
];

/// The sentences about the repository with one file changed.
fn wrong(path: &str, text: &str) -> Vec<String> {
    let mut files = GOOD.to_vec();
    files.retain(|(other, _)| *other != path);
    files.push((path, text));
    tree(&files).book().expect_err("the mistake is found")
}

#[test]
fn the_sources_are_the_chapters_and_the_files_that_they_link_to() {
    let sources = tree(&GOOD).book().expect("nothing is wrong");
    assert_eq!(sources.summary, "# Summary\n\n- [Home](README.md)\n  - [A](docs/a.md)\n");
    let files: Vec<_> = sources.files.iter().map(String::as_str).collect();
    assert_eq!(files, ["README.md", "docs/a.md", "src/lib.rs"]);
}

#[test]
fn a_document_that_is_no_chapter_is_found() {
    assert_eq!(wrong("docs/b.md", "B.\n"), ["docs/b.md is no chapter: add it to docs/SUMMARY.md"]);
    let mut tree = tree(&GOOD);
    tree.add("fuzz/README.md", "Outside of docs no chapter is needed, unless one links to it.\n");
    tree.book().expect("nothing is wrong");
    assert_eq!(
        tree_with_link("../fuzz/README.md"),
        ["docs/a.md links to fuzz/README.md: add it to docs/SUMMARY.md"]
    );
}

fn tree_with_link(target: &str) -> Vec<String> {
    wrong("docs/a.md", &format!("## Part\n\n[b]({target})\n"))
}

#[test]
fn a_link_to_a_folder_or_to_nothing_is_found() {
    for (target, path) in [("../src", "src"), ("../src/gone.rs", "src/gone.rs")] {
        let sentence = format!("docs/a.md links to `{path}`, which is no file: name a file");
        assert_eq!(tree_with_link(target), [sentence]);
    }
}

#[test]
fn an_include_of_nothing_is_found() {
    for named in ["../GONE.md", "../README.md:gone"] {
        let text = format!("## Part\n\n{{{{#include {named}}}}}\n");
        let sentence = format!("docs/a.md includes `{named}`, which does not exist");
        assert_eq!(wrong("docs/a.md", &text), [sentence]);
    }
    let text =
        "See [a](docs/a.md#part).\n\n<!-- ANCHOR: here -->\n\nA.\n\n<!-- ANCHOR_END: here -->\n";
    let files = [GOOD[0], ("README.md", text), ("docs/a.md", "{{#include ../README.md:here}}\n")];
    tree(&files).book().expect("the anchor exists");
}

/// The sentences about a book of two pages, the first of which has these links.
fn broken_of(links: &str) -> Vec<String> {
    let pages = [
        Page { path: "docs/a.html".into(), text: format!("<h1 id=\"a\">A</h1>{links}") },
        Page { path: "index.html".into(), text: "<p id=\"größe\">é</p>".into() },
    ];
    let files = ["docs/a.html", "index.html", "src/lib.rs"].map(str::to_owned);
    broken(&pages, &BTreeSet::from(files))
}

#[test]
fn a_link_of_a_page_that_leads_nowhere_is_found() {
    assert_eq!(
        broken_of("<a href=\"b.html\">"),
        ["docs/a.html: `b.html` leads to no file of the book"]
    );
    assert_eq!(broken_of("<img alt=x\n src=\"../b.svg\"/>").len(), 1);
    assert_eq!(
        broken_of("<a class=\"c\" href=\"../index.html#b\">"),
        ["docs/a.html: `../index.html#b` leads to no anchor of index.html"]
    );
    assert_eq!(broken_of("<a href=\"#b\">").len(), 1);
    assert_eq!(broken_of("<a href=\"../../index.html\">").len(), 1);
}

#[test]
fn good_links_are_accepted() {
    let none: [&str; 0] = [];
    assert_eq!(broken_of("<a href=\"#a\"><a href=\"../index.html#gr%C3%B6%C3%9Fe\">"), none);
    assert_eq!(broken_of("<a href=\"../src/lib.rs?plain=1\"><a href=\"\"><a href=\"#\">"), none);
    assert_eq!(broken_of("<a href=\"https://example.org/x\"><a href=\"mailto:a@b\">"), none);
    assert_eq!(broken_of("<!-- <a href=\"b.html\"> --><script>\"<a href='b'>\"</script>"), none);
}
