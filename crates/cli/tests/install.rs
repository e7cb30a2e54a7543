//! `silvics completions` and `silvics man`.

mod common;

use common::{refused, run, stderr, stdout};
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a tool. `None` if it is not installed.
fn tool(name: &str, args: &[&str]) -> Option<std::process::Output> {
    Command::new(name).args(args).stdin(Stdio::null()).output().ok()
}

#[test]
fn bash_accepts_its_script_and_completes_names() {
    let folder = tempfile::tempdir().unwrap();
    let script = run(&["completions", "bash"]);
    assert_eq!((script.status.code(), stderr(&script)), (Some(0), String::new()));
    let path = folder.path().join("silvics.bash");
    fs::write(&path, &script.stdout).unwrap();
    let path = path.to_str().unwrap();
    let Some(checked) = tool("bash", &["-n", path]) else {
        println!("nothing was tested: bash is not installed");
        return;
    };
    assert_eq!((checked.status.code(), stderr(&checked)), (Some(0), String::new()));
    for (words, expected) in [
        ("silvics b", "bench"),
        ("silvics bench --lat", "--latency"),
        ("silvics bench --index occ-a", "occ-avl"),
        ("silvics bench --index bs", "bst"),
        ("silvics inspect --pages t", "thp"),
        ("silvics --wi", "--wide"),
    ] {
        let asked = format!(
            "source '{path}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _silvics silvics \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
             echo \"${{COMPREPLY[@]}}\""
        );
        let found = tool("bash", &["-c", &asked]).expect("bash is there");
        let names = stdout(&found);
        assert!(names.split_whitespace().any(|name| name == expected), "{words}: {names}");
    }
}

/// The values to which bash completes a flag of a verb, by a script at this path.
fn completed(script: &Path, verb: &[&str], flag: &str) -> Vec<String> {
    let words = [&["silvics"][..], verb, &[flag, "''"]].concat().join(" ");
    let asked = format!(
        "source '{}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
         _silvics silvics '' '{flag}'; echo \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    let found = tool("bash", &["-c", &asked]);
    let values = found.map(|found| stdout(&found)).unwrap_or_default();
    // Behind a flag that the verb does not have, all flags are completed.
    let is_flag = values.starts_with('-');
    values.split_whitespace().filter(|_| !is_flag).map(str::to_owned).collect()
}

/// Each value that a flag of a verb is completed to is one that the verb takes.
#[test]
#[ignore = "takes seconds: `just stress` runs it"]
fn verbs_take_what_is_completed() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("silvics.bash");
    fs::write(&script, run(&["completions", "bash"]).stdout).unwrap();
    let values = |verb: &[&str], flag: &str| completed(&script, verb, flag);
    if tool("bash", &["-c", "true"]).is_none() {
        println!("nothing was tested: bash is not installed");
        return;
    }
    for (verb, flag) in [("bench", "--format"), ("verify", "--index"), ("watch", "--color")] {
        assert!(!values(&[verb], flag).is_empty(), "{verb} {flag}");
    }
    let ycsb = ["store", "ycsb", "run"];
    let tpcc = ["store", "tpcc", "run"];
    let little = ["-p", "recordcount=50", "-p", "operationcount=50", "--threads", "1"];
    let halves = ["--mix", "half", "--reduced", "--transactions", "1", "--threads", "1"];
    let runs: [(&[&str], &[&str]); 8] = [
        (&["list"], &[]),
        (&["bench"], &["--keys", "50", "--seconds", "0.001", "--rounds", "1", "--threads", "1"]),
        (&["inspect"], &["--keys", "50", "--lookups", "50"]),
        (&["verify"], &["--seconds", "0.05", "--threads", "2"]),
        (&["watch"], &["--keys", "50", "--seconds", "0.01", "--threads", "2"]),
        (&["reproduce"], &[]),
        (&ycsb, &little),
        (&tpcc, &halves),
    ];
    for (verb, more) in runs {
        for flag in ["--color", "--format", "--key-type", "--placement", "--scan-by", "--index"] {
            let is_slow = verb == tpcc && flag != "--format"; // it takes what `ycsb` takes
            for value in values(verb, flag).iter().filter(|_| !is_slow) {
                let mut args = [verb, more, &[flag, value]].concat();
                if verb == ["bench"] {
                    args.extend(["--mix", "100/0/0"]);
                }
                if ["inspect", "verify"].contains(&verb[0]) && flag != "--index" {
                    args.extend(["--index", "art"]);
                }
                let mut output = run(&args);
                for key_type in ["u128", "bytes"] {
                    if flag == "--index" && stderr(&output).contains("keys: leave it out") {
                        output = run(&[&args[..], &["--key-type", key_type]].concat());
                    }
                }
                // Some peers are not linearizable, and a slow machine exceeds the budget.
                let taken: &[i32] = match (verb, flag) {
                    (["verify"], "--index") => &[0, 1, 3],
                    (["verify"], _) => &[0, 3],
                    _ => &[0],
                };
                let code = output.status.code().unwrap_or(-1);
                assert!(taken.contains(&code), "{args:?}: {}", stderr(&output));
            }
        }
    }
    // Each of these is a value of another verb.
    for (verb, flag, value) in [
        (&["inspect"][..], "--format", "csv"),
        (&["advise"], "--format", "csv"),
        (&["inspect"], "--key-type", "string"),
        (&["inspect"], "--index", "all"),
        (&["watch"], "--index", "art"),
        (&ycsb, "--index", "peers"),
    ] {
        assert!(!values(verb, flag).iter().any(|of| of == value), "{verb:?} {flag} {value}");
    }
    assert!(values(&ycsb, "--format").contains(&"ycsb".to_owned()));
}

#[test]
fn each_shell_has_a_script() {
    for shell in ["elvish", "fish", "powershell", "zsh"] {
        let script = stdout(&run(&["completions", shell]));
        assert!(script.contains("occ-avl") && script.contains("latency"), "{shell}");
    }
}

#[test]
fn pages_render_without_warnings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let output = run(&["man", path]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(0), String::new()));
    let hint = stderr(&output);
    let first = hint.split("`man ").nth(1).and_then(|rest| rest.split('`').next()).unwrap();
    assert!(first.contains('/') && fs::metadata(first).is_ok(), "{hint}");
    let mut names: Vec<String> = fs::read_dir(path)
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    for name in ["silvics.1", "silvics-bench.1", "silvics-store-ycsb-load.1", "silvics-man.1"] {
        assert!(names.iter().any(|found| found == name), "{names:?}");
    }
    let bench = fs::read_to_string(folder.path().join("silvics-bench.1")).unwrap();
    assert!(bench.contains("silvics\\-bench") && bench.contains("\\-\\-latency"), "{bench}");
    for name in names {
        let page = folder.path().join(&name);
        // `man --warnings` runs this. Messages are on standard error.
        let args = ["-man", "-ww", "-z", "-Tutf8", page.to_str().unwrap()];
        let Some(found) = tool("groff", &args) else {
            println!("not rendered: groff is not installed");
            return;
        };
        assert_eq!((found.status.code(), stderr(&found)), (Some(0), String::new()), "{name}");
    }
}

#[test]
fn wrong_shells_and_folders() {
    refused(&run(&["completions", "tcsh"]), &["completions", "`tcsh`", "bash, elvish, fish"]);
    refused(&run(&["man", "/no/such/folder"]), &["man", "silvics.1", "/no/such/folder"]);
}
