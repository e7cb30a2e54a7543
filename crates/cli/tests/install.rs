//! `silvics completions` and `silvics man`.

mod common;

use common::{refused, run, stderr, stdout};
use std::fs;
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
