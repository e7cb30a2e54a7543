//! The program in a repository of its own, with commands that take no time. Each kind of stale page
//! is planted, and must be found.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A repository with a page, two runs, a library and a change log.
struct Repository(TempDir);

const MANIFEST: &str = r#"
page = "docs/results/page.md"

[[run]]
id = "rates"
command = '''echo '{"results": [{"index": "map", "mops": {"median": 2.0}}, {"index": "peer", "mops": {"median": 1.0}}]}' '''
minutes = 3
format = "json"

[[run]]
id = "calls"
command = '''printf '| call | ns |\n|---|---|\n| get | 5.5 |\n' '''
minutes = 1
format = "text"

[[table]]
id = "rates"
where = { run = "rates" }
head = "index"
rows_by = "index"
column = [{ head = "Mops/s", field = "mops" }]

[[table]]
id = "calls"
where = { run = "calls" }
take = []

[[table]]
id = "first"
page = "README.md"
where = { run = "rates" }
commands = false
row = [{ label = "the map", where = { index = "map" }, bars = ["≥ 1.5"] }]
column = [
  { head = "to the peer", field = "mops", of = { index = "peer" } },
  { head = "bar", show = "bar" },
]
"#;

fn region(id: &str) -> String {
    format!(
        "<!-- measured: {id} begins, written by `just results` -->\nold\n\
         <!-- measured: {id} ends -->\n"
    )
}

impl Repository {
    fn new() -> Self {
        let new = Self(tempfile::tempdir().unwrap());
        fs::create_dir_all(new.path("docs/results")).unwrap();
        fs::create_dir_all(new.path("crates/pool/src")).unwrap();
        fs::write(new.path("crates/pool/src/lib.rs"), "// a pool\n").unwrap();
        fs::write(new.path("CHANGELOG.md"), "# Changelog\n\n## Unreleased\n").unwrap();
        fs::write(new.path(".gitignore"), "/target\n").unwrap();
        fs::write(new.path("docs/results/page.toml"), MANIFEST).unwrap();
        let page = format!("# A page\n\n{}\ntext\n\n{}", region("rates"), region("calls"));
        fs::write(new.path("docs/results/page.md"), page).unwrap();
        fs::write(new.path("README.md"), format!("# Silvics\n\n{}", region("first"))).unwrap();
        new.git(&["init", "--quiet"]);
        new.commit();
        new
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn git(&self, arguments: &[&str]) {
        let names = ["-c", "user.name=a", "-c", "user.email=a@b"];
        let mut git = Command::new("git");
        let git = git.current_dir(&self.0).args(names).args(arguments);
        assert!(git.status().unwrap().success());
    }

    fn commit(&self) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "a commit"]);
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_silvics-results"));
        command.current_dir(&self.0).args(arguments);
        command
    }

    fn run(&self, arguments: &[&str]) -> (i32, String) {
        let Output { status, stdout, stderr } = self.command(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&stdout) + String::from_utf8_lossy(&stderr);
        (status.code().unwrap_or(-1), text.into_owned())
    }

    /// Runs, and expects success.
    fn must(&self, arguments: &[&str]) -> String {
        let (code, text) = self.run(arguments);
        assert_eq!(code, 0, "{text}");
        text
    }

    /// Checks, and expects a finding with this text.
    fn finds(&self, expected: &str) {
        let (code, text) = self.run(&["--check"]);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains(expected), "{text}");
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn replace(&self, name: &str, old: &str, new: &str) {
        let text = self.read(name);
        assert!(text.contains(old), "{text}");
        fs::write(self.path(name), text.replace(old, new)).unwrap();
    }
}

#[test]
fn tables_are_measured_written_and_checked() {
    let repository = Repository::new();
    let (code, text) = repository.run(&["--check"]);
    assert_eq!(code, 1);
    assert!(text.contains("table `rates`: a run is not measured: rates"), "{text}");
    repository.must(&["--check", "--unmeasured"]);
    repository.replace("README.md", "# Silvics", "# Silvics\n\nA call takes 5 ns.");
    let (code, text) = repository.run(&["--check", "--unmeasured"]);
    assert!(code == 1 && text.contains("README.md: line 3: `5 ns` outside"), "{text}");
    repository.replace("README.md", "\n\nA call takes 5 ns.", "");

    repository.must(&["--only", "calls"]);
    assert!(repository.must(&["--list"]).contains("3 minutes to measure, 1 done"));
    let text = repository.must(&[]);
    assert!(text.contains("1 of 1: rates") && !text.contains(": calls:"), "{text}");
    let page = repository.read("docs/results/page.md");
    assert!(page.contains("| `map` | 2.00 |\n| `peer` | 1.00 |"), "{page}");
    assert!(page.contains("| call | ns |\n|---|---|\n| get | 5.5 |"), "{page}");
    assert!(repository.read("README.md").contains("| the map | 2.00 | ≥ 1.5 |"));
    repository.must(&["--check"]);

    // Commits of code and of pages make nothing stale. They are counted.
    fs::write(repository.path("crates/pool/src/lib.rs"), "// a better pool\n").unwrap();
    repository.commit();
    let text = repository.must(&["--check"]);
    assert!(text.contains("1 commits changed the library"), "{text}");
    // All runs are measured again at the new commit.
    assert!(repository.must(&["--list"]).contains("4 minutes to measure, 0 done"));
}

#[test]
fn stale_pages_are_found() {
    let repository = Repository::new();
    repository.must(&[]);
    repository.commit();
    repository.must(&["--check"]);
    let planted = |name: &str, old: &str, new: &str, expected: &str| {
        repository.replace(name, old, new);
        repository.finds(expected);
        repository.replace(name, new, old);
        repository.must(&["--check"]);
    };
    let page = "docs/results/page.md";
    planted(page, "| `map` | 2.00 |", "| `map` | 2.50 |", "page.md: table `rates` differs");
    planted(
        "README.md",
        "| 2.00 | ≥ 1.5 |",
        "| 2.00 | ≥ 1.0 |",
        "README.md: table `first` differs",
    );
    let table = "text\n\n| a | b |\n|---|---|\n| x | 7.5 |";
    planted(page, "\ntext", &format!("\n{table}"), "a table of figures outside of regions");
    let told = "text, which takes 7.5 ns";
    planted(page, "\ntext", &format!("\n{told}"), "page.md: line 20: `7.5 ns` outside of regions");
    planted(page, "measured: calls ends", "measured: cals ends", "has no partner");
    let other = repository.path("docs/structures");
    fs::create_dir_all(&other).unwrap();
    fs::write(other.join("a.md"), "It is 1.3 times\nas fast.\n").unwrap();
    repository.finds("docs/structures/a.md: line 1: `1.3 times as fast`");
    fs::write(other.join("a.md"), "<!-- exact -->\n\nIt is 1.3 times\nas fast.\n").unwrap();
    repository.must(&["--check"]);
    let other = "docs/results/data/calls.json";
    planted(
        other,
        "\"trial\":false",
        "\"trial\":true",
        "run `calls`: its figures are those of a trial",
    );
    let experiments = repository.path("docs/results/experiments.jsonl");
    let line = |commit: &str| {
        format!(r#"{{"experiment": "bst/1.2", "machine": {{"commit": {commit}}}}}"#) + "\n"
    };
    for (old, expected) in [
        ("null", "is of a command without a commit"),
        (r#""1234567""#, "is of commit 1234567, and the tables are of"),
    ] {
        fs::write(&experiments, line(old)).unwrap();
        repository.finds(&format!("the result of bst/1.2 {expected}"));
        repository.must(&["--check", "--unmeasured"]);
    }
    let data = repository.read(other);
    let commit = data.split("\"commit\":\"").nth(1).unwrap();
    fs::write(&experiments, line(&format!("\"{}\"", &commit[..7]))).unwrap();
    fs::write(repository.path("docs/trust.md"), "Commit `1234567`, on a day\n").unwrap();
    assert!(repository.must(&["--check"]).contains("docs/trust.md is of 1234567"));
    let orphan = repository.path("docs/results/data/old.json");
    fs::copy(repository.path(other), &orphan).unwrap();
    repository.finds("data/old.json: no manifest has this run");
    fs::remove_file(&orphan).unwrap();
    planted(
        "docs/results/page.toml",
        "| 5.5 |",
        "| 5 |",
        "run `calls`: the manifest has another command",
    );
}

#[test]
fn a_release_or_another_commit_or_machine_makes_figures_stale() {
    let repository = Repository::new();
    repository.must(&[]);
    repository.commit();
    repository.replace("CHANGELOG.md", "## Unreleased\n", "## Unreleased\n\n## 0.2.0\n");
    repository.finds("before the release `0.2.0`");
    repository.replace("CHANGELOG.md", "\n## 0.2.0\n", "");
    repository.must(&["--only", "calls"]);
    let (_, text) = repository.run(&["--check"]);
    assert!(text.contains("the figures are of 2 commits"), "{text}");
    repository.must(&[]);
    repository.must(&["--check"]);
    repository.git(&["commit", "--quiet", "--amend", "--allow-empty", "-m", "another history"]);
    let (_, text) = repository.run(&["--check"]);
    assert!(text.contains("no ancestor of this commit"), "{text}");
    repository.must(&[]);
    let data = repository.read("docs/results/data/calls.json");
    let machine = data.split("\"machine\":\"").nth(1).unwrap().split('"').next().unwrap();
    repository.replace("docs/results/data/calls.json", machine, "another machine");
    let (_, text) = repository.run(&["--check"]);
    let place = "README, docs/results and the ways from other crates";
    assert!(text.contains(&format!("the figures of {place} are of 2 machines")), "{text}");
}

/// A page that is read alone.
#[test]
fn a_page_of_docs_may_be_of_another_machine() {
    let repository = Repository::new();
    let runs = |id: &str| {
        format!(
            "[[run]]\nid = \"{id}\"\ncommand = \"cat calls\"\nminutes = 1\nformat = \"text\"\n\
             [[table]]\nid = \"{id}\"\nwhere = {{ run = \"{id}\" }}\ntake = []\n"
        )
    };
    let manifest = format!("page = \"docs/alone.md\"\n{}{}", runs("one"), runs("two"));
    fs::write(repository.path("docs/results/alone.toml"), manifest).unwrap();
    fs::write(repository.path("calls"), "| call | ns |\n|---|---|\n| get | 5.5 |\n").unwrap();
    let page = format!("# A page\n\n{}\ntext\n\n{}", region("one"), region("two"));
    fs::write(repository.path("docs/alone.md"), page).unwrap();
    repository.commit();
    repository.must(&[]);
    let elsewhere = |id: &str| {
        let name = format!("docs/results/data/{id}.json");
        let data = repository.read(&name);
        let machine = data.split("\"machine\":\"").nth(1).unwrap().split('"').next().unwrap();
        repository.replace(&name, machine, "another machine");
        repository.must(&["--write"]);
    };
    elsewhere("one");
    repository.finds("the figures of docs/alone.md are of 2 machines");
    elsewhere("two");
    repository.must(&["--check"]);
}

/// The results of two experiments, which no manifest has.
#[test]
fn stale_results_of_experiments_are_found() {
    let repository = Repository::new();
    let manifest = "[workspace.package]\nversion = \"0.2.0\"\n";
    fs::write(repository.path("Cargo.toml"), manifest).unwrap();
    repository.commit();
    repository.must(&[]);
    let file = "docs/results/experiments.jsonl";
    let line = |experiment: &str, machine: &str| {
        format!("{{\"experiment\":\"{experiment}\",\"machine\":{{{machine}}},\"evidence\":[]}}\n")
    };
    let write = |first: &str, second: &str| {
        let lines = line("bst/1.2", first) + &line("ets/5.2", second);
        fs::write(repository.path(file), lines).unwrap();
    };
    let short = Command::new("git")
        .current_dir(&repository.0)
        .args(["rev-parse", "--short", "HEAD"])
        .output()
        .unwrap();
    let short = String::from_utf8(short.stdout).unwrap();
    let of = |cpu: &str, version: &str, commit: &str| {
        format!("\"cpu\":\"{cpu}\",\"silvics\":\"{version}\",\"commit\":{commit}")
    };
    let commit = format!("\"{}\"", short.trim());
    let right = of("one", "0.2.0", &commit);
    write(&right, &right);
    repository.must(&["--check"]);
    let finds = |second: &str, expected: &str| {
        write(&right, second);
        repository.finds(&format!("{file}: {expected}"));
    };
    finds(
        &of("one", "0.1.0", &commit),
        "the result of ets/5.2 is of silvics 0.1.0, and this is 0.2.0: `just experiments`",
    );
    finds(
        &of("one", "0.2.0", "null"),
        "the result of ets/5.2 is of a command without a commit: `just experiments`",
    );
    finds(
        &of("two", "0.2.0", &commit),
        "the results are of 2 machines: cpu \"one\" (bst/1.2); cpu \"two\" (ets/5.2)",
    );
    write(&right, &of("one", "0.2.0", "\"00000000\""));
    repository.finds("the result of ets/5.2 is of commit 00000000, and the tables are of ");
    fs::remove_dir_all(repository.path("docs/results/data")).unwrap();
    repository.finds("the results are of 2 commits: 00000000 (ets/5.2); ");
    fs::write(repository.path(file), "{}\n").unwrap();
    let (code, text) = repository.run(&["--check"]);
    assert!(code == 2 && text.contains(&format!("{file}: missing field `experiment`")), "{text}");
}

#[test]
fn changes_and_bad_input_are_refused_with_a_sentence() {
    let repository = Repository::new();
    fs::write(repository.path("crates/pool/src/lib.rs"), "// not committed\n").unwrap();
    let refused = |arguments: &[&str], expected: &str| {
        let (code, text) = repository.run(arguments);
        assert_eq!(code, 2, "{text}");
        assert!(text.contains(expected), "{text}");
    };
    refused(&[], "(`M crates/pool/src/lib.rs`): commit them, or add --trial");
    refused(&["--only", "typo"], "there is no run `typo`");
    refused(&["--shard", "3/2"], "with I from 1 to N");
    refused(&["collect", "nowhere"], "nowhere: there is no such folder");
    repository.must(&["--trial"]);
    assert!(repository.read("README.md").contains(", as a trial"));
    let (code, text) = repository.run(&["--check"]);
    assert!(code == 1 && text.contains("run `rates`: its figures are those of a trial"), "{text}");
    repository.replace("docs/results/page.toml", "minutes = 3", "minute = 3");
    refused(&["--list"], "docs/results/page.toml: ");
    repository.replace("docs/results/page.toml", "minute = 3", "minutes = 3");
}

/// The last run of a night, or one table, must not keep all pages from being written.
#[test]
fn a_run_or_a_table_that_fails_does_not_stop_the_others() {
    let repository = Repository::new();
    let page = "docs/results/page.toml";
    repository.replace(page, "'''printf", "'''false && printf");
    repository.commit();
    let fails = |arguments: &[&str], expected: &str| {
        let (code, text) = repository.run(arguments);
        assert_eq!(code, 1, "{text}");
        assert!(text.contains(expected), "{text}");
    };
    fails(&[], "error: run `calls`: `false && printf");
    let text = repository.read("docs/results/page.md");
    assert!(text.contains("| `map` | 2.00 |") && text.contains("old"), "{text}");
    assert!(repository.read("README.md").contains("| the map | 2.00 |"));

    // A table that selects nothing: the data of its run is named. The other tables are written.
    repository.replace(page, "false && printf", "printf");
    repository.replace(page, "{ index = \"peer\" }", "{ index = \"typo\" }");
    repository.commit();
    fails(
        &[],
        "error: README.md: table `first`: the row `the map` selects nothing: if the output is \
         wrong, delete docs/results/data/rates.json",
    );
    assert!(repository.read("docs/results/page.md").contains("| get | 5.5 |"));

    // A manifest whose table is corrected after the runs: the pages are written without a run.
    repository.replace(page, "{ index = \"typo\" }", "{ index = \"peer\" }");
    repository.replace("README.md", "first begins", "second begins");
    repository.replace("README.md", "first ends", "second ends");
    fails(&["--write"], "README.md: it has no region for the table `first`: add a line `<!-- m");
    repository.replace("README.md", "second begins", "first begins");
    repository.replace("README.md", "second ends", "first ends");
    repository.must(&["--write"]);
    assert!(repository.read("README.md").contains("| the map | 2.00 | ≥ 1.5 |"));
}

/// Two workers measure a half each. One of them is killed in its second run, and begins again.
#[test]
fn shards_are_collected_and_a_killed_one_goes_on() {
    let repository = Repository::new();
    let runs = (0..6).map(|at| {
        format!(
            "[[run]]\nid = \"run-{at}\"\nminutes = 1\nformat = \"text\"\ncommand = \"echo {at} >> \
             target/begun && if [ -e target/slow ] && [ {at} = 2 ]; then sleep 60; fi; echo {at}\"\n"
        )
    });
    let tables = "[[table]]\nid = \"all\"\nverbatim = true\ncommands = false\nwhere = { run = \
                  [\"run-0\", \"run-1\", \"run-2\", \"run-3\", \"run-4\", \"run-5\"] }\n";
    let manifest = format!("page = \"docs/results/page.md\"\n{}{tables}", runs.collect::<String>());
    fs::write(repository.path("docs/results/page.toml"), manifest).unwrap();
    fs::write(repository.path("docs/results/page.md"), region("all")).unwrap();
    fs::write(repository.path("README.md"), "# Silvics\n").unwrap();
    repository.commit();
    fs::create_dir_all(repository.path("target")).unwrap();
    fs::write(repository.path("target/slow"), "").unwrap();

    let first = repository.command(&["--shard", "1/2"]).stdout(Stdio::null()).spawn();
    let second = repository.command(&["--shard", "2/2"]).stdout(Stdio::null()).spawn();
    let (mut first, mut second) = (first.unwrap(), second.unwrap());
    wait_for(&repository.path("target/begun"), "2");
    first.kill().unwrap(); // with SIGKILL, in run-2
    first.wait().unwrap();
    assert!(second.wait().unwrap().success());

    let folders = ["collect", "target/results/1-of-2", "target/results/2-of-2"];
    let (code, text) = repository.run(&folders);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("missing: 2 of 6 runs: run-2, run-4"), "{text}");

    fs::remove_file(repository.path("target/slow")).unwrap();
    let text = repository.must(&["--shard", "1/2"]);
    assert!(text.contains("1 of 2: run-2") && !text.contains("run-0"), "{text}");
    let text = repository.must(&folders);
    assert!(text.contains("all 6 runs are there"), "{text}");
    let begun = repository.read("target/begun");
    assert_eq!(begun.matches('0').count(), 1, "run-0 was measured once: {begun}");
    assert_eq!(begun.matches('2').count(), 2, "run-2 was measured twice: {begun}");
    assert!(repository.read("docs/results/page.md").contains("```text\n5\n```"));
    repository.must(&["--check"]);
}

/// Waits until a file has a line.
fn wait_for(path: &Path, line: &str) {
    let start = Instant::now();
    while !fs::read_to_string(path).unwrap_or_default().lines().any(|of| of == line) {
        assert!(start.elapsed() < Duration::from_secs(60), "{} has no line {line}", path.display());
        thread::sleep(Duration::from_millis(20));
    }
}
