//! Tables and colours on a terminal, and in a pipe.

mod common;

use common::{command, refused, run, stdout};

const BENCH: [&str; 11] = [
    "bench",
    "--index",
    "art,skiplist",
    "--keys",
    "1k",
    "--seconds",
    "0.01",
    "--rounds",
    "2",
    "--mix",
    "90/5/5",
];

fn widest(text: &str) -> usize {
    let tables = text.lines().filter(|line| line.trim_start_matches("\u{1b}[1m").starts_with('|'));
    tables.map(|line| strip(line).chars().count()).max().unwrap_or(0)
}

/// Text without the sequences that colour it.
fn strip(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.split_once('m').map_or(part, |(_, rest)| rest))
}

#[test]
fn a_pipe_gets_whole_tables_without_colours() {
    for columns in ["40", "400"] {
        let list = command(&["list"]).env("COLUMNS", columns).output().unwrap();
        assert!(widest(&stdout(&list)) > 200, "{}", widest(&stdout(&list)));
        assert!(!stdout(&list).contains("not shown"));
    }
    let wide = stdout(&run(&["list", "--wide"]));
    assert_eq!(wide, stdout(&run(&["list"])));
    assert!(!stdout(&run(&BENCH)).contains('\u{1b}'));
    let error = run(&["list", "--format", "x"]);
    refused(&error, &["--format"]);
}

#[test]
fn color_is_a_choice() {
    let always = run(&[&BENCH[..], &["--color", "always"]].concat());
    assert!(stdout(&always).contains("\u{1b}[1m| "), "{}", stdout(&always));
    let error = run(&["list", "--format", "x", "--color", "always"]);
    assert!(common::stderr(&error).starts_with("\u{1b}["), "{}", common::stderr(&error));
    refused(&run(&["list", "--color", "red"]), &["--color", "`red`", "auto, always or never"]);
    // Also for errors in flags, wherever the choice stands, and for help.
    for args in [
        &["list", "--color", "always", "--nothing"][..],
        &["list", "--nothing", "--color=always"],
        &["inspect", "--trace", "x", "--index", "art", "--color", "always", "--nothing"],
    ] {
        let error = common::stderr(&run(args));
        assert!(error.contains("\u{1b}[") && strip(&error).starts_with("error: "), "{error}");
        let never: Vec<&str> = args
            .iter()
            .map(|arg| if arg.contains("always") { "--color=never" } else { *arg })
            .collect();
        let never: Vec<&str> = never.into_iter().filter(|arg| *arg != "--color").collect();
        assert!(!common::stderr(&run(&never)).contains('\u{1b}'));
    }
    let help = stdout(&run(&["list", "--help", "--color", "always"]));
    assert!(help.contains("\u{1b}[") && strip(&help).contains("Usage: silvics list"), "{help}");
    assert!(!stdout(&run(&["list", "--help"])).contains('\u{1b}'));
}

#[cfg(unix)]
mod terminal {
    use super::{BENCH, command, strip, widest};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::FromRawFd;
    use std::process::{Command, Stdio};

    /// The text that the command writes to a terminal of this width.
    fn shown(command: &mut Command, columns: u16) -> String {
        let size = libc::winsize { ws_row: 50, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let (mut ours, mut its) = (0, 0);
        // SAFETY: both pointers to descriptors are to words of ours, and so is that to the size.
        // No name and no attributes are given.
        let opened = unsafe {
            libc::openpty(
                &raw mut ours,
                &raw mut its,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
                (&raw const size).cast_mut(),
            )
        };
        assert_eq!(opened, 0, "{}", std::io::Error::last_os_error());
        // SAFETY: `openpty` has opened both descriptors, and nothing else owns them.
        let (mut ours, its) = unsafe { (File::from_raw_fd(ours), File::from_raw_fd(its)) };
        command.env_remove("COLUMNS").env_remove("NO_COLOR").env("TERM", "xterm");
        let child = command.stdin(Stdio::null()).stdout(its).stderr(Stdio::null()).spawn();
        let mut child = child.expect("the command runs");
        command.stdout(Stdio::null()); // closes our copy of the command's end
        let mut text = Vec::new();
        let mut part = [0; 4096];
        // Linux reports an error when the other end is closed.
        while let Ok(read @ 1..) = ours.read(&mut part) {
            text.extend_from_slice(&part[..read]);
        }
        assert!(child.wait().expect("it ends").success());
        String::from_utf8_lossy(&text).replace("\r\n", "\n")
    }

    #[test]
    fn tables_fit() {
        for width in [60, 80, 120] {
            for args in [&["list"][..], &["list", "--layout"], &["reproduce"], &BENCH] {
                let text = shown(&mut command(args), width);
                let found = widest(&text);
                assert!((1..=usize::from(width)).contains(&found), "{args:?}: {found}\n{text}");
            }
        }
        let help = shown(&mut command(&["list", "--help", "--color", "never"]), 80);
        assert!(help.contains("Usage: silvics list") && !help.contains('\u{1b}'), "{help}");
        assert!(shown(&mut command(&["list", "--help"]), 80).contains('\u{1b}'));
        let text = shown(&mut command(&["list"]), 80);
        assert!(text.contains("(not shown: placements, variants"), "{text}");
        assert!(text.contains("; --wide shows all columns)"), "{text}");
    }

    #[test]
    fn wide_and_columns_override_the_width() {
        let wide = shown(&mut command(&["list", "--wide"]), 80);
        assert!(widest(&wide) > 200 && !wide.contains("not shown"));
        // `shown` removes the variable, so a shell sets it again.
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("COLUMNS=70 {} list", env!("CARGO_BIN_EXE_silvics"))]);
        let text = shown(&mut shell, 200);
        assert!((40..=70).contains(&widest(&text)), "{text}");
    }

    #[test]
    fn the_best_row_is_bold_unless_no_color_is_set() {
        let text = shown(&mut command(&BENCH), 120);
        assert_eq!(text.matches("\u{1b}[1m| ").count(), 1, "{text}");
        let mut shell = Command::new("sh");
        let line = format!("NO_COLOR=1 {} {}", env!("CARGO_BIN_EXE_silvics"), BENCH.join(" "));
        shell.args(["-c", &line]);
        let text = shown(&mut shell, 120);
        assert_eq!(strip(&text), text);
    }
}
