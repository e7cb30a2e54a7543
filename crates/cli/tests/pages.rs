//! `--html` of `bench` and of `reproduce`: the pages are well-formed, complete, need no other file,
//! and contain the data of `--format json`.

mod common;

use common::{Files, bench, command, refused, run, stderr, stdout};
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::Value;
use std::fs;

fn parse(page: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(page, options).expect("well-formed")
}

/// The elements with this name.
fn elements<'a>(page: &'a Document<'a>, name: &str) -> Vec<Node<'a, 'a>> {
    page.descendants().filter(|node| node.has_tag_name(name)).collect()
}

/// All text of an element.
fn text(node: Node) -> String {
    node.descendants().filter(Node::is_text).filter_map(|node| node.text()).collect()
}

fn texts(page: &Document, name: &str) -> Vec<String> {
    elements(page, name).into_iter().map(text).collect()
}

/// The data that a page contains.
fn data(page: &Document) -> String {
    let mut scripts = elements(page, "script").into_iter();
    let script = scripts.find(|node| node.attribute("id") == Some("data"));
    text(script.expect("a page with data"))
}

/// Checks what holds for each page.
#[track_caller]
fn assert_sound(html: &str) {
    let page = parse(html);
    for node in page.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        assert!(!["link", "img", "iframe", "image", "use", "object"].contains(&name), "{name}");
        for attribute in node.attributes() {
            let value = attribute.value();
            assert!(!["src", "srcset"].contains(&attribute.name()), "{attribute:?}");
            assert!(attribute.name() != "href" || value.starts_with('#'), "{value}");
            assert!(attribute.name() != "style", "{value}");
        }
        let is_drawn = node.attribute("role") == Some("img");
        assert!(!is_drawn || node.attribute("aria-label").is_some_and(|label| label.len() > 20));
    }
    for style in texts(&page, "style") {
        assert!(!style.contains("http") && !style.contains("url(") && !style.contains("@import"));
        assert!(style.contains("prefers-color-scheme: dark") && style.contains("@media print"));
    }
    // Links lead to headings, and no two elements have one name.
    let ids: Vec<&str> = page.descendants().filter_map(|node| node.attribute("id")).collect();
    for (at, id) in ids.iter().enumerate() {
        assert!(!ids[..at].contains(id), "two elements are called {id}");
    }
    for link in elements(&page, "a") {
        let to = link.attribute("href").and_then(|to| to.strip_prefix('#')).expect("a link");
        assert!(ids.contains(&to), "nothing is called {to}");
    }
    // Each section has a link.
    let linked: Vec<String> = elements(&page, "nav")
        .into_iter()
        .flat_map(|nav| {
            nav.descendants().filter_map(|node| node.attribute("href")).map(str::to_owned)
        })
        .collect();
    for section in elements(&page, "h2") {
        let id = section.attribute("id").expect("a section with a name");
        assert!(linked.contains(&format!("#{id}")), "no link leads to {id}: {linked:?}");
    }
    // Without a script the page lacks its buttons, and nothing else.
    let buttons = elements(&page, "button");
    assert!(buttons.iter().all(|button| button.attribute("hidden").is_some()));
    assert!(!buttons.is_empty());
}

/// Runs `bench` with these arguments, and returns its JSON and its page.
fn bench_page(args: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.html");
    let file = path.to_string_lossy();
    let output = bench(&[&["--format", "json", "--html", &file], args].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1);
    let json = serde_json::from_slice(&output.stdout).expect("standard output is JSON");
    (json, fs::read_to_string(&path).expect("the page was written"))
}

const LISTS: [&str; 8] = [
    "--index",
    "skiplist,art",
    "--keys",
    "500,1k",
    "--mix",
    "100/0/0,80/10/10",
    "--threads",
    "1,2",
];

#[test]
fn a_page_of_lists_has_lines_and_all_figures() {
    let (json, html) = bench_page(&LISTS);
    assert_sound(&html);
    let page = parse(&html);
    assert_eq!(serde_json::from_str::<Value>(&data(&page)).expect("JSON"), json);
    let titles = texts(&page, "figcaption");
    let count = |part: &str| titles.iter().filter(|title| title.contains(part)).count();
    // For each of two key spaces and two mixes; by keys for each mix, and by mix for each space.
    assert_eq!((count("Throughput by threads"), count("Ratio to skiplist")), (4, 4), "{titles:?}");
    assert_eq!((count("Speed of the load"), count("Memory after the load")), (2, 2), "{titles:?}");
    assert_eq!(count(", 2 threads"), 4, "{titles:?}");
    assert!(html.contains("silvics bench ") && html.contains(" UTC</dd>"), "no command or date");
    // A table for each number of threads in each of those four, of each load, by keys and by mix.
    assert_eq!(elements(&page, "table").len(), 8 + 2 + 2 + 1);
    assert_figures(&page, &json);
}

/// The parts of a text that are numbers.
fn numbers(text: &str) -> Vec<f64> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').flat_map(str::parse).collect()
}

/// The median of a row and the ends of its interval.
fn mops(row: &Value) -> Vec<f64> {
    ["median", "low", "high"].map(|of| row["mops"][of].as_f64().expect("a figure")).to_vec()
}

/// Whether a table shows these figures, each with three digits, or with two behind the point.
fn shows(shown: &[f64], figures: &[f64]) -> bool {
    let is = |(shown, of): (&f64, &f64)| (shown - of).abs() <= (0.005_1 * of).max(0.005_1);
    shown.len() == figures.len() && shown.iter().zip(figures).all(is)
}

/// Checks that each run has a row in the table of its keys, its mix and its threads, with its own
/// figures.
#[track_caller]
fn assert_figures(page: &Document, json: &Value) {
    let main = elements(page, "main")[0];
    let (mut cell, mut mix, mut found) = (None, String::new(), 0);
    for node in main.children().filter(Node::is_element) {
        match node.tag_name().name() {
            "h2" => cell = node.attribute("id").and_then(|id| id.strip_prefix("cell-")),
            "h3" => mix = text(node),
            _ => {}
        }
        let table = node.descendants().find(|node| node.has_tag_name("caption"));
        let (Some(cell), Some(caption)) = (cell, table) else { continue };
        let threads = numbers(&text(caption))[0];
        let is = |row: &&Value| {
            row["cell"].as_u64() == cell.parse().ok()
                && mix == format!("Mix {}", row["mix"].as_str().expect("a mix"))
                && row["threads"].as_f64() == Some(threads)
        };
        let runs: Vec<&Value> = json["results"].as_array().unwrap().iter().filter(is).collect();
        let rows = node.descendants().filter(|node| node.has_tag_name("tr")).skip(1);
        let rows: Vec<Vec<String>> =
            rows.map(|row| row.children().filter(Node::is_element).map(text).collect()).collect();
        assert_eq!(rows.len(), runs.len(), "{mix}, {threads} threads");
        for (row, run) in rows.iter().zip(runs) {
            assert_eq!(Some(row[0].as_str()), run["index"].as_str());
            let shown = [numbers(&row[3]), numbers(&row[4])].concat();
            assert!(shows(&shown, &mops(run)), "{mix}, {threads} threads: {row:?} of {run}");
            found += 1;
        }
    }
    assert_eq!(found, json["results"].as_array().unwrap().len());
}

/// A cell of the table by mix has the figures of its contender, its keys and its mix.
#[test]
fn mixes_have_rows_of_dots_and_their_own_figures() {
    let mixes = "100/0/0,90/5/5,80/10/10,50/25/25,0/50/50,20/40/40,40/30/30";
    let args = ["--index", "skiplist,art", "--keys", "500", "--threads", "1,2", "--mix", mixes];
    let (json, html) = bench_page(&args);
    assert_sound(&html);
    let page = parse(&html);
    let dots = page.descendants().find(|node| node.attribute("class") == Some("bars dots"));
    let dots = dots.expect("a chart of dots");
    let signs = dots
        .descendants()
        .filter(|node| node.attribute("class").is_some_and(|class| class.starts_with("sign")));
    // Two contenders in each row and in the legend.
    assert_eq!(signs.count(), 2 * (7 + 1));
    let mut labels = dots.children().filter(|node| node.attribute("class") == Some("of"));
    assert!(mixes.split(',').all(|mix| labels.next().is_some_and(|label| text(label) == mix)));
    // Seven mixes are in two tables.
    let by_mix = "Million operations per second, with intervals";
    let tables = elements(&page, "table").into_iter().filter(|table| {
        table.children().any(|node| node.has_tag_name("caption") && text(node) == by_mix)
    });
    let mut seen = 0;
    for table in tables {
        let columns: Vec<String> = table
            .descendants()
            .filter(|node| node.has_tag_name("th"))
            .map(|node| text(node).trim_start_matches("mix ").into())
            .collect();
        for row in table.descendants().filter(|node| node.has_tag_name("tr")).skip(1) {
            let cells: Vec<String> = row.children().filter(Node::is_element).map(text).collect();
            for (mix, cell) in columns.iter().zip(&cells).skip(2) {
                let is = |run: &&Value| {
                    run["index"] == cells[0] && run["mix"] == *mix && run["threads"] == 2
                };
                let run = json["results"].as_array().unwrap().iter().find(is).expect("a run");
                assert!(shows(&numbers(cell), &mops(run)), "{cells:?} of {run}");
                seen += 1;
            }
        }
    }
    assert_eq!(seen, 2 * 7);
}

/// Facts are shown as they are, and one contender is compared with nothing.
#[test]
fn a_page_of_one_contender_and_one_round_claims_no_more() {
    let files = Files::new();
    let file = files.write("a `b`.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    let args = ["--index", "art", "--key-file", &file, "--rounds", "1", "--threads", "1"];
    let (_, html) = bench_page(&args);
    assert_sound(&html);
    let page = parse(&html);
    let facts = texts(&page, "dd");
    let keys = format!("6 of {file}, half of them loaded");
    assert!(facts.contains(&keys), "{keys}: {facts:?}");
    assert!(
        facts.iter().any(|fact| fact.contains("that of the only round, so there is no interval"))
    );
    assert!(!facts.iter().any(|fact| fact.contains("covers it") || fact.contains("ratio")));
    assert!(!texts(&page, "figcaption").iter().any(|title| title.starts_with("Ratio")));
}

#[test]
fn one_number_of_threads_has_bars() {
    let (json, html) = bench_page(&["--index", "art,skiplist", "--keys", "1k", "--threads", "1"]);
    assert_sound(&html);
    let page = parse(&html);
    let titles = texts(&page, "figcaption");
    assert!(titles.contains(&"Throughput with 1 thread".into()), "{titles:?}");
    let bars = page.descendants().filter(|node| {
        node.has_tag_name("rect") && node.attribute("class").is_some_and(|of| of.contains("fill"))
    });
    // Two mixes, loads and bytes, of two indexes.
    assert_eq!(bars.count(), 8);
    assert!(texts(&page, "h2").contains(&"All medians".into()));
    assert_eq!(json["results"][0]["latency"], serde_json::json!([]));
}

/// The page has each row of the comparison in the JSON, and what differs.
#[test]
fn a_page_with_a_baseline_has_the_comparison() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kept = folder.path().to_string_lossy();
    let args = ["--keys", "1k", "--mix", "100/0/0,80/10/10", "--threads", "1", "--kept-in", &kept];
    let first = [&args[..], &["--rounds", "5", "--index", "skiplist,art", "--save", "a"]].concat();
    assert!(bench(&first).status.success());
    let later = ["--rounds", "5", "--seed", "7", "--index", "skiplist,occ-avl", "--baseline", "a"];
    let (json, html) = bench_page(&[&args[..], &later].concat());
    assert_sound(&html);
    let page = parse(&html);
    assert!(texts(&page, "h2").contains(&"Comparison".into()));
    assert!(texts(&page, "a").contains(&"Comparison".into()), "it is among the contents");
    let tables = elements(&page, "table");
    let is_compared = |table: &Node| text(*table).contains("verdict");
    let table = tables.into_iter().find(is_compared).expect("a table with verdicts");
    let rows = table.descendants().filter(|node| node.has_tag_name("tr")).skip(1);
    let rows: Vec<Vec<String>> =
        rows.map(|row| row.children().filter(Node::is_element).map(text).collect()).collect();
    let compared = json["comparison"]["rows"].as_array().unwrap();
    assert_eq!((rows.len(), compared.len()), (2, 2));
    for (row, compared) in rows.iter().zip(compared) {
        let median = format!("{:.2}", compared["ratio"]["median"].as_f64().unwrap());
        let verdict = compared["verdict"].as_str().unwrap().replace('-', " ");
        for cell in ["skiplist", compared["mix"].as_str().unwrap(), &median, &verdict] {
            assert!(row.iter().any(|of| of == cell), "`{cell}` is not in {row:?}");
        }
    }
    let items = texts(&page, "li");
    for part in ["seed: 1, now 7", "occ-avl (pooled, thp): 1k", "art (pooled, thp): 1k"] {
        assert!(items.iter().any(|item| item.contains(part)), "`{part}` is not in {items:?}");
    }
}

/// Every number of the list has a row with a verdict or a reason.
#[test]
fn a_page_of_experiments_has_a_row_for_each_number() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.html");
    let args = ["bst/1.8", "ets/5.5", "--quick", "--keys", "8k", "--level", "facts"];
    let file = path.to_string_lossy();
    let output = run(&[&["reproduce", "--format", "json", "--html", &file], &args[..]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let html = fs::read_to_string(&path).expect("the page was written");
    assert_sound(&html);
    let page = parse(&html);
    assert_eq!(data(&page), stdout(&output), "lines of JSON");
    let listed = stdout(&run(&["reproduce", "--format", "json"]));
    let listed: Value = serde_json::from_str(&listed).expect("the list");
    let listed = listed["experiments"].as_array().expect("experiments");
    let rows: Vec<Vec<String>> = elements(&page, "tr")
        .into_iter()
        .map(|row| row.children().filter(Node::is_element).map(text).collect())
        .collect();
    let row = |name: &str| rows.iter().find(|row| row[0] == name).expect(name);
    for one in listed {
        let [name, title, verdict, why] = &row(one["experiment"].as_str().unwrap())[..] else {
            panic!("four cells")
        };
        assert!(!verdict.is_empty() && !why.is_empty(), "{name} {title}");
        let ran = ["bst/1.8", "ets/5.5"].contains(&name.as_str());
        assert_eq!(verdict == "not run", !ran, "{name}");
    }
    for part in ["bst/1.1", "ets/5.1"] {
        assert_eq!(row(part)[2], "part of others");
    }
    for line in stdout(&output).lines() {
        let report: Value = serde_json::from_str(line).expect("a report");
        for line in report["evidence"].as_array().unwrap() {
            let what = row(line["what"].as_str().unwrap());
            assert!(what[3].starts_with(line["verdict"].as_str().unwrap()), "{what:?}");
            assert_eq!(what[2], line["found"].as_str().unwrap());
        }
    }
}

#[test]
fn files_that_cannot_be_written_are_refused_before_anything_runs() {
    let files = Files::new();
    let (one, missing) = (files.write("one.html", ""), files.missing());
    let folder = std::path::Path::new(&one).parent().unwrap().to_string_lossy().into_owned();
    let beside = format!("{missing}/x.html");
    for verb in [&["bench", "--keys", "100M"][..], &["reproduce", "--all"]] {
        let refuses = |path: &str, parts: &[&str]| {
            refused(&run(&[verb, &["--html", path]].concat()), parts);
        };
        refuses(&folder, &["--html", "is a folder", "name a file"]);
        refuses(&beside, &["--html", "there is no folder"]);
        refuses("/proc/x.html", &["--html", "cannot be written"]);
    }
    let adapts = ["bench", "--index", "ca-tree", "--keys", "100M", "--html", &one];
    let traced = [&adapts[..], &["--trace-adaptation", &one]].concat();
    refused(&run(&traced), &["--trace-adaptation", "--html", "both name one file"]);
    let drawn = ["reproduce", "--all", "--html", &one, "--svg", &one];
    refused(&run(&drawn), &["--svg", "--html", "both name one file"]);
    assert_eq!(fs::read_to_string(&one).expect("the file"), "", "it is as it was");
}

#[test]
fn all_experiments_and_some_exclude_each_other() {
    refused(&run(&["reproduce", "--all", "bst/1.4"]), &["--all", "EXPERIMENT", "exclude"]);
    let page = Files::new().write("x.html", "");
    refused(&run(&["reproduce", "--html", &page]), &["--html", "name experiments, or add --all"]);
}

/// A reader who closes standard output early still gets the page.
#[test]
fn a_page_is_written_beside_a_closed_pipe() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("x.html");
    let file = path.to_string_lossy();
    let args = ["bench", "--index", "art", "--keys", "1k", "--rounds", "1", "--seconds", "0.01"];
    let mut child = command(&[&args[..], &["--html", &file]].concat())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the command starts");
    drop(child.stdout.take());
    assert!(child.wait().expect("it ends").success());
    assert_sound(&fs::read_to_string(&path).expect("the page was written"));
}
