//! Parts of campaigns that end before all their units are measured.

mod common;

use common::campaign::{Verb, change, collected, cut, measured, units};
use common::{Files, refused, run, stderr, stdout};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Child;

/// A benchmark whose second unit takes an hour.
fn endless() -> Verb {
    Verb::new(
        "bench --index skiplist --keys 1k --threads 1,2 --mix 100/0/0 --seconds 3600 --rounds 1",
        2,
    )
}

/// The same one, with short units.
fn short() -> Verb {
    Verb::new(
        "bench --index skiplist --keys 1k --threads 1,2 --mix 100/0/0 --seconds 0.01 --rounds 1",
        2,
    )
}

const SHORT: &str = "\"seconds\":\"0.01\"";
const LONG: &str = "\"seconds\":\"3600\"";

/// Starts the endless benchmark behind its first unit. Returns when its process says so, with the
/// file as it is then.
fn at_work(files: &Files) -> (Child, String, Vec<u8>) {
    let out = measured(&short(), files, "part");
    cut(&out, 1, 0);
    change(&out, SHORT, LONG);
    let before = fs::read(&out).unwrap();
    let mut child = endless().start("1/1", &out);
    let mut said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut line = String::new();
    said.read_line(&mut line).expect("a line");
    assert_eq!(line, "note: part 1/1 has 2 of 2 units, 1 of which is left\n");
    (child, out, before)
}

/// Makes the units short again, and checks that the part goes on.
fn goes_on(out: &str) {
    change(out, LONG, SHORT);
    let output = short().part("1/1", out);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output).matches("note: measured: ").count(), 1);
    let result = collected(&[out]);
    let rows = result[0]["results"].as_array().unwrap();
    let threads: Vec<_> = rows.iter().map(|row| row["threads"].as_u64()).collect();
    assert_eq!(threads, [Some(1), Some(2)]);
    assert!(rows.iter().all(|row| row["checked"] == true));
}

#[test]
fn a_killed_part_goes_on() {
    let files = Files::new();
    let (mut child, out, before) = at_work(&files);
    child.kill().expect("it runs"); // SIGKILL on Unix
    child.wait().expect("it ends");
    assert_eq!(fs::read(&out).unwrap(), before, "each unit is written whole");
    goes_on(&out);
}

/// An interrupt ends a part. The unit that it cuts short is measured again.
#[cfg(unix)]
#[test]
fn an_interrupted_part_goes_on() {
    let files = Files::new();
    let (mut child, out, before) = at_work(&files);
    let pid = child.id().to_string();
    let sent = std::process::Command::new("kill").args(["-INT", &pid]).status();
    assert!(sent.expect("kill runs").success());
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(fs::read(&out).unwrap(), before);
    goes_on(&out);
}

/// A file may be cut at each of its bytes.
#[test]
fn a_part_goes_on_behind_its_whole_units() {
    let files = Files::new();
    for bytes in [0, 1, 40] {
        let out = measured(&short(), &files, &bytes.to_string());
        cut(&out, 1, bytes);
        let before = fs::read_to_string(&out).unwrap();
        let output = short().part("1/1", &out);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let whole = before.rfind('\n').unwrap();
        assert!(fs::read_to_string(&out).unwrap().starts_with(&before[..=whole]));
        assert_eq!(units(&out), 2);
    }
}

/// The first of two units needs more memory than there may be.
#[test]
fn a_unit_that_fails_does_not_end_its_part() {
    let files = Files::new();
    let verb = Verb::new(
        "bench --index skiplist --keys 200k,1k --threads 1 --mix 100/0/0 --seconds 0.01 --rounds 1 \
         --memory-limit 4M",
        2,
    );
    let out = files.path("part");
    for left in [2, 1] {
        let output = verb.part("1/1", &out);
        refused(&output, &["--memory-limit 4 MiB"]);
        let said = stderr(&output);
        assert!(said.contains(&format!("{left} of which")), "{said}");
        assert!(said.contains("note: not measured: 200k keys, "), "{said}");
        assert_eq!(said.matches("note: measured: 1k keys, ").count(), left - 1, "{said}");
        assert_eq!(units(&out), 1);
    }
    let output = run(&["collect", &out]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("missing: 200k keys, "), "{}", stderr(&output));
    assert!(stdout(&output).contains("1k"), "{}", stdout(&output));
}

/// A part without units may begin anew, also with another file of keys.
#[test]
fn a_mistyped_flag_does_not_take_the_file() {
    let files = Files::new();
    let keys = files.write("keys", "a\nb\nc\nd\ne\nf\n");
    let out = files.path("part");
    let part = |keys: &str| {
        let flags = "bench --index skiplist --threads 1 --mix 100/0/0 --seconds 0.01 --rounds 1";
        Verb::new(&format!("{flags} --key-type bytes --key-file {keys}"), 1).part("1/1", &out)
    };
    refused(&part(&files.missing()), &["--key-file", "cannot be read"]);
    refused(&part(&files.write("empty", "")), &["--key-file"]);
    assert_eq!(fs::read_to_string(&out).unwrap().lines().count(), 1, "the head alone");
    let output = part(&keys);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

/// Missing units are named, and outputs are checked, though there is no result.
#[test]
fn a_collection_without_units_checks_its_outputs() {
    let files = Files::new();
    let out = measured(&short(), &files, "part");
    cut(&out, 0, 0);
    let collect = |args: &[&str]| run(&[&["collect", &out], args].concat());
    refused(&collect(&["--format", "xml"]), &["--format", "`xml`"]);
    refused(&collect(&["--html", &files.path("")]), &["--html", "is a folder"]);
    let output = collect(&[]);
    assert_eq!((output.status.code(), &*stdout(&output)), (Some(1), ""));
    assert_eq!(stderr(&output).matches("note: missing: ").count(), 2);
    assert!(stderr(&output).contains("no unit was measured yet"), "{}", stderr(&output));
}

/// Units that are missing are named, and the page is written, though standard output is full.
#[cfg(target_os = "linux")]
#[test]
fn a_full_output_loses_nothing_else() {
    let files = Files::new();
    let experiments = "reproduce bst/1.3 bst/1.4 --quick --keys 2000 --level facts";
    for (name, verb) in [("bench", short()), ("reproduce", Verb::new(experiments, 2))] {
        let (out, page) = (measured(&verb, &files, name), files.path("page.html"));
        cut(&out, 1, 0);
        let full = fs::File::options().write(true).open("/dev/full").expect("Linux has it");
        let mut command = common::command(&["collect", &out, "--html", &page]);
        let output = command.stdout(full).output().expect("the command runs");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("error: ") && said.contains("standard output"), "{said}");
        assert_eq!(said.matches("note: missing: ").count(), 1, "{said}");
        let html = fs::read_to_string(&page).expect("a page");
        assert!(html.contains("Not measured yet: 1 unit: "), "{html}");
        fs::remove_file(&page).expect("it is there");
    }
}
