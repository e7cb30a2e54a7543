//! Every rule finds the mistakes that are seeded here, and accepts the texts beside them.

use silvics_tidy::{Config, Finding, Report, Rule, Tree};

const CONFIG: &str = r#"
# A comment.
[budgets]
opener = 1

[phrases]
"whoever" = "name the thread"
"as above" = "state it again"
"#;

/// The findings in one file, as lines and rules.
fn found(path: &str, text: &str) -> Vec<(usize, Rule)> {
    let mut tree = Tree::default();
    tree.add(path, text);
    let config = Config::read(CONFIG).expect("the configuration is sound");
    tree.check(&config).into_iter().map(|finding| (finding.line, finding.rule)).collect()
}

fn accepts(path: &str, text: &str) {
    assert_eq!(found(path, text), [], "{path}:\n{text}");
}

fn objects(path: &str, text: &str, line: usize, rule: Rule) {
    assert_eq!(found(path, text), [(line, rule)], "{path}:\n{text}");
}

fn words(columns: usize) -> String {
    "word ".repeat(columns.div_ceil(5))[..columns].to_owned()
}

#[test]
fn wide_prose_is_found() {
    let wide = format!("{}x", words(100));
    objects("a.md", &format!("Short.\n\n{wide}\n"), 3, Rule::Width);
    objects("a.md", &format!("# {wide}\n"), 1, Rule::Width);
    objects("a.rs", &format!("fn f() {{}}\n/// {wide}\n"), 2, Rule::Width);
    objects("a.rs", &format!("    //! {wide}\n"), 1, Rule::Width);
    objects("a.rs", &format!("let a = 1; // {wide}\n"), 1, Rule::Width);
    objects("a.rs", &format!("/* short\n   {wide}\n*/\n"), 2, Rule::Width);
    objects("a.toml", &format!("a = 1 # {wide}\n"), 1, Rule::Width);
    objects("a.sh", &format!("# {wide}\n"), 1, Rule::Width);
    objects("justfile", &format!("# {wide}\n"), 1, Rule::Width);
    objects(".ci/run", &format!("#!/usr/bin/env bash\n# {wide}\n"), 2, Rule::Width);
}

#[test]
fn prose_of_a_hundred_columns_tables_code_and_links_are_accepted() {
    let wide = words(120);
    accepts("a.md", &format!("{}x\n", words(99)));
    accepts("a.md", &format!("| {wide} |\n|---|\n"));
    accepts("a.md", &format!("```text\n{wide}\n```\n"));
    accepts("a.md", &format!("~~~\n```\n{wide}\n~~~\n"));
    accepts("a.md", &format!("{} <https://example.org/{}>\n", words(79), "long".repeat(20)));
    accepts("a.md", &format!("[page]: https://example.org/{}\n", "long".repeat(30)));
    accepts("a.rs", &format!("let a = \"{wide} // {wide}\";\n"));
    accepts("a.rs", &format!("let a = r#\"\" // {wide}\"#;\n"));
    accepts("a.rs", &format!("/// ```\n/// {wide}\n/// ```\n"));
    accepts("a.rs", &format!("let a = '\"'; let b = \"// {wide}\";\n"));
    accepts("a.rs", &format!("fn f<'a>() {{}} let b = '\\''; let c = \"// {wide}\";\n"));
    accepts("a.sh", &format!("echo \"a # {wide}\" ${{x#y}} $#{wide}\n"));
    accepts("a.txt", &wide);
}

#[test]
fn sentences_without_a_subject_are_found() {
    for word in ["What", "Who", "Whoever", "Where", "Of"] {
        let config = if word == "Whoever" { Rule::Phrase } else { Rule::Opener };
        let text = format!("{word} it is, is there.");
        assert!(found("a.rs", &format!("// {text}\n")).contains(&(1, config)), "{text}");
        assert!(found("a.md", &format!("* {text}\n")).contains(&(1, Rule::Opener)), "{text}");
        let inner = format!("/// It is. {text}\nfn f() {{}}\n");
        assert!(found("a.rs", &inner).contains(&(1, Rule::InnerOpener)), "{text}");
    }
    objects("a.rs", "// It is\n// there.\n// What it is.\n", 3, Rule::Opener);
    objects("a.rs", "//! Title.\n//!\n//! 1. **What** it is.\n", 3, Rule::Opener);
    objects("a.rs", "// SAFETY: What is read stays.\n", 1, Rule::InnerOpener);
    objects("a.rs", "let a = 1; // What it is.\n", 1, Rule::Opener);
    objects("a.md", "Is it `So? What`. What is\nthere?\nOf it, all.\n", 3, Rule::Opener);
}

#[test]
fn questions_and_continued_sentences_are_accepted() {
    accepts("a.rs", "// What is it?\n// Where is it, then, and\n// why?\n");
    accepts("a.rs", "// It says\n// What it says, e.g.\n// What a reader expects.\n");
    accepts("a.rs", "// Of course it is. The rest, of it, where it is.\n");
    accepts("a.md", "# What it is\n\n| What | Of |\n|---|---|\n");
    accepts("a.md", "```sh\nWhat it is\n```\nIt prints `a. What` and (what it can).\n");
    accepts("a.rs", "let a = \"What it is. Of it.\";\nlet What = 1;\n");
}

#[test]
fn doc_comments_that_lean_on_others_are_found() {
    objects("a.rs", "/// … and the rest.\n", 1, Rule::Item);
    objects("a.rs", "/// The first …\nfn f() {}\n/// and its rest.\nfn g() {}\n", 1, Rule::Item);
    objects("a.rs", "//! Begins.\n//!\n//! Goes on ...\n", 3, Rule::Item);
    for text in [
        "The same.",
        "The same, padded.",
        "The same with keys.",
        "The same without keys.",
        "The same for a range.",
        "In the same way.",
        "Same as `get`.",
        "Looks it up. The same of a range.",
    ] {
        objects("a.rs", &format!("/// {text}\nfn f() {{}}\n"), 1, Rule::Item);
    }
}

#[test]
fn whole_doc_comments_are_accepted() {
    accepts("a.rs", "/// Returns the same value.\n/// The same key always has the same hash.\n");
    accepts("a.rs", "// … and so on …\n// The same with keys.\n");
    accepts("a.rs", "/// From `1…9`, … to the end.\n");
}

#[test]
fn phrases_are_found_across_lines_and_in_strings() {
    objects("a.rs", "/// It is\n/// as\n/// above.\n", 2, Rule::Phrase);
    objects("a.md", "| it | for Whoever calls |\n", 1, Rule::Phrase);
    objects("a.toml", "a = 1 # as above\n", 1, Rule::Phrase);
    objects("crates/a/src/b.rs", "let a = 1;\nlet b = \"one\nas above\";\n", 3, Rule::Phrase);
    objects("crates/a/src/b.rs", "let b = r\"as above\";\n", 1, Rule::Phrase);
}

#[test]
fn phrases_in_code_and_inside_words_are_accepted() {
    accepts("a.rs", "// `whoever` and whoevers\nlet whoever = 1;\n");
    accepts("a.md", "```\nwhoever\n```\n");
    accepts("crates/a/tests/b.rs", "let b = \"as above\";\n");
}

#[test]
fn long_files_are_found() {
    let long = "let a = 1;\n".repeat(601);
    objects("a.rs", &long, 1, Rule::File);
    objects("a.sh", &"a\n".repeat(601), 1, Rule::File);
    accepts("a.rs", &"let a = 1;\n".repeat(600));
    accepts("a.md", &"word\n\n".repeat(601));
}

#[test]
fn broken_links_are_found() {
    objects("docs/a.md", "See\n[b](b.md).\n", 2, Rule::Link);
    objects("docs/a.md", "See [b](../a.md).\n", 1, Rule::Link);
    objects("docs/a.md", "See [b](../../docs/a.md).\n", 1, Rule::Link);
    objects("docs/a.md", "| [b](b.md) |\n", 1, Rule::Link);
    objects("docs/a.md", "# Title\n\n[here](#titel)\n", 3, Rule::Link);
    objects("docs/a.md", "# Title\n\n[here](a.md#titel)\n", 3, Rule::Link);
    objects("docs/a.md", "[b]: b.md\n", 1, Rule::Link);
}

#[test]
fn sound_links_are_accepted() {
    let mut tree = Tree::default();
    tree.add(
        "README.md",
        "[a](docs/a.md), [b](docs/a.md#the-title-of-it), [c](docs), [d](./docs/)\n",
    );
    tree.add(
        "docs/a.md",
        "# The *title*, of `it`\n\n[r](../README.md) [x](https://x.org/y) [m](mailto:a)\n",
    );
    tree.add("docs/b.md", "`[a](none.md)`\n\n```\n[a](none.md)\n```\n\n# A\n# A\n[a](#a-1)\n");
    assert_eq!(tree.check(&Config::default()), []);
}

fn excused(config: &str, text: &str) -> Vec<Finding> {
    let mut tree = Tree::default();
    tree.add("a.rs", text);
    tree.check(&Config::read(config).expect("the configuration is sound"))
}

#[test]
fn an_excuse_takes_findings_out_and_is_found_where_nothing_needs_it() {
    let config = "[excused.file]\n\"a.rs\" = \"one table\"\n";
    assert_eq!(excused(config, &"a\n".repeat(601)), []);
    let [finding] = &excused(config, "a\n")[..] else { panic!("one finding") };
    assert_eq!(
        (finding.path.as_str(), finding.line, finding.rule),
        (".ci/tidy.toml", 2, Rule::Config)
    );
}

#[test]
fn mistakes_of_the_configuration_are_refused() {
    for (text, line) in [
        ("[budgets]\nwidht = 1", 2),
        ("[budgets]\nwidth = many", 2),
        ("[phrases]\nwhoever = \"name it\"", 2),
        ("[phrases]\n\"whoever\"", 2),
        ("[excused.file]\n\"a.rs\" = \"\"", 2),
        ("[excused.files]\n\"a.rs\" = \"long\"", 2),
        ("\n[other]\n\"a.rs\" = \"long\"", 3),
    ] {
        assert_eq!(Config::read(text).expect_err(text).line, line, "{text}");
    }
}

#[test]
fn a_report_lists_the_findings_of_rules_over_their_budgets() {
    let config = Config::read(CONFIG).expect("the configuration is sound");
    let mut tree = Tree::default();
    tree.add("a.rs", "// What it is.\n");
    assert!(Report::new(tree.check(&config), &config).is_within_budgets());
    tree.add("b.rs", "// What it is.\n");
    tree.add("c.rs", "// It is as above.\n");
    let report = Report::new(tree.check(&config), &config);
    assert!(!report.is_within_budgets());
    let listed: Vec<String> = report.over_budget().map(ToString::to_string).collect();
    assert_eq!(listed.len(), 3);
    assert_eq!(listed[2], "c.rs:1: phrase: \"as above\": state it again");
    assert!(report.to_string().contains("opener              2       1  too many"), "{report}");
}
