//! Runs programs under the shared object: their traces are right, and the programs behave as
//! without it.

#![cfg(all(
    target_os = "linux",
    target_env = "gnu",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use silvics_layout::Trace;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::LazyLock;
use tempfile::TempDir;

/// The path of the shared object. Cargo does not build it for tests of its package, so this builds
/// it in a folder of its own: the usual one may be locked.
static OBJECT: LazyLock<PathBuf> = LazyLock::new(|| {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("preload");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--locked", "--lib", "--package", "silvics-preload"]);
    cargo.arg("--manifest-path").arg(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
    cargo.arg("--target-dir").arg(&target).env_remove("CARGO_BUILD_TARGET");
    assert!(cargo.status().expect("cargo runs").success(), "the shared object cannot be built");
    target.join("debug/libsilvics_preload.so")
});

const KNOWN: &str = env!("CARGO_BIN_EXE_silvics-preload-known");

/// A command that runs a program under the shared object and writes to a file of `folder`.
fn traced(folder: &TempDir, file: &str, program: &str) -> Command {
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", &*OBJECT).env("SILVICS_TRACE", folder.path().join(file));
    command.env_remove("SILVICS_TRACE_DEPTH");
    command
}

fn known(folder: &TempDir, what: &str) -> Command {
    let mut command = traced(folder, "trace", KNOWN);
    command.arg(what);
    command
}

/// The output of a command that must succeed and print nothing on standard error.
fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the program runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.is_empty(), "{}: {said}", output.status);
    output
}

fn read(path: &Path) -> Trace {
    let file = std::fs::File::open(path).expect("a trace was written");
    Trace::read(BufReader::new(file)).unwrap_or_else(|error| panic!("{} {error}", path.display()))
}

fn trace_of(command: &mut Command, folder: &TempDir) -> Trace {
    run(command);
    read(&folder.path().join("trace"))
}

fn folder() -> TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// Checks that no event was missed: each free is of a live object, and no object overlaps another.
fn assert_whole(trace: &Trace) {
    assert_eq!((trace.unknown_frees, trace.overlaps), (0, 0));
    for pair in trace.objects.windows(2) {
        assert!(pair[0].address + pair[0].size <= pair[1].address, "{pair:x?}");
    }
    let bytes: usize = trace.objects.iter().map(|object| object.size).sum();
    assert_eq!(bytes, trace.peak_bytes);
}

/// The number of objects of `size` bytes that are alive at the peak.
fn alive(trace: &Trace, size: usize) -> usize {
    trace.objects.iter().filter(|object| object.size == size).count()
}

/// The name of the only kind with objects of `size` bytes.
fn kind_of(trace: &Trace, size: usize) -> &str {
    let mut kinds: Vec<usize> =
        trace.objects.iter().filter(|object| object.size == size).map(|o| o.kind).collect();
    kinds.dedup();
    assert_eq!(kinds.len(), 1, "kinds of {size} bytes: {kinds:?}");
    &trace.kinds[kinds[0]].name
}

/// Whether a program is installed. If not, it prints that the test is skipped.
fn has(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    if !found {
        // Bypass the test harness, which would capture the output.
        let _ = writeln!(std::io::stderr(), "skipped: {program} is not on this machine");
    }
    found
}

#[test]
fn every_verb_is_in_the_trace() {
    let folder = folder();
    let trace = trace_of(&mut known(&folder, "verbs"), &folder);
    assert_whole(&trace);
    let sizes =
        [7_001, 7_003, 7_007, 7_009, 7_040, 7_013, 7_019, 7_027, 7_039, 7_043, 70_000, 7_057];
    let counts = sizes.map(|size| alive(&trace, size));
    assert_eq!(counts, [100, 0, 1, 1, 1, 1, 0, 1, 0, 0, 20, 1]);
    // Failed allocations are absent.
    assert!(trace.objects.iter().all(|object| object.size < 1 << 20));
    assert!(kind_of(&trace, 7_027).contains("strdup+0x"), "{}", kind_of(&trace, 7_027));
    // The program exports no functions, so the object is named.
    assert!(kind_of(&trace, 7_001).starts_with("silvics-preload-"), "{}", kind_of(&trace, 7_001));
    let site = trace.kinds.iter().find(|kind| kind.name == kind_of(&trace, 7_001));
    // 100 objects stay, 50 and the one of 7 069 bytes are freed, and 20 move.
    assert_eq!(site.map(|kind| (kind.allocations, kind.frees)), Some((171, 71)));
}

#[test]
fn frames_tell_the_callers_of_a_wrapper() {
    let folder = folder();
    let one = trace_of(&mut known(&folder, "sites"), &folder);
    assert_eq!((alive(&one, 7_001), alive(&one, 7_003)), (10, 10));
    assert_eq!(kind_of(&one, 7_001), kind_of(&one, 7_003));
    assert!(!kind_of(&one, 7_001).contains('<'));
    for (depth, frames) in [("4", 4), ("16", 16)] {
        let mut command = known(&folder, "sites");
        let deep = trace_of(command.env("SILVICS_TRACE_DEPTH", depth), &folder);
        assert_whole(&deep);
        let kinds = [7_001, 7_003].map(|size| kind_of(&deep, size));
        assert_ne!(kinds[0], kinds[1]);
        assert!(kinds[0].starts_with(kind_of(&one, 7_001)), "{kinds:?}");
        let found = kinds[0].split('<').count();
        assert!(found == frames || found < frames && frames == 16 && found > 4, "{kinds:?}");
    }
}

#[test]
fn threads_that_free_each_others_objects_leave_a_whole_trace() {
    let folder = folder();
    for depth in ["1", "3"] {
        let mut command = known(&folder, "threads");
        let trace = trace_of(command.env("SILVICS_TRACE_DEPTH", depth), &folder);
        assert_whole(&trace);
        let allocations: u64 = trace.kinds.iter().map(|kind| kind.allocations).sum();
        assert!(allocations > 80_000, "{allocations}");
    }
}

/// Commands that run the known program: with the kernel as it is, and where it does not wipe
/// memory.
fn on_all_kernels(file: &str, what: &str) -> [(&'static str, TempDir, Command); 3] {
    ["wiped", "refused", "ignored"].map(|kernel| {
        let folder = folder();
        let mut command = traced(&folder, file, KNOWN);
        if kernel != "wiped" {
            command.args(["unwiped", kernel]);
        }
        command.arg(what);
        (kernel, folder, command)
    })
}

fn files_of(folder: &TempDir) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder.path()).expect("the folder is there");
    files.map(|file| file.expect("readable").path()).collect()
}

/// The traces of a program and of its child, whose number the program prints.
fn family(command: &mut Command, folder: &TempDir) -> (Trace, Trace) {
    let child = String::from_utf8(run(command).stdout).expect("a number");
    let child = folder.path().join(format!("trace.{}.txt", child.trim()));
    let files = files_of(folder);
    assert!(files.len() == 2 && files.contains(&child), "{files:?}");
    let parent = files.iter().find(|file| **file != child).expect("one of two");
    (read(parent), read(&child))
}

fn assert_forked(parent: &Trace, child: &Trace, kernel: &str) {
    assert_whole(parent);
    assert_eq!([7_001, 7_003, 7_009].map(|size| alive(parent, size)), [10, 0, 20], "{kernel}");
    assert_eq!([7_001, 7_003, 7_009].map(|size| alive(child, size)), [0, 30, 0], "{kernel}");
    // The child frees some of its parent's objects.
    assert!((10..20).contains(&child.unknown_frees), "{kernel}: {}", child.unknown_frees);
    assert_eq!(child.overlaps, 0);
}

#[test]
fn processes_of_a_fork_have_their_own_files() {
    for (kernel, folder, mut command) in on_all_kernels("trace.%p.txt", "fork") {
        let (parent, child) = family(&mut command, &folder);
        assert_forked(&parent, &child, kernel);
    }
}

/// The tracer must not hold its lock over the fork, from before the handler that joins a thread
/// until after the one in the child: each handler would wait for ever.
#[test]
fn handlers_of_fork_that_others_registered_first_may_allocate() {
    for (kernel, folder, mut command) in on_all_kernels("trace.%p.txt", "handlers") {
        let (parent, child) = family(&mut command, &folder);
        assert_forked(&parent, &child, kernel);
        assert_eq!([7_013, 7_019].map(|size| alive(&parent, size)), [3, 0], "{kernel}");
        // If the kernel does not mark a copy, the tracer's own handler does, which runs later.
        let in_child = if kernel == "wiped" { 5 } else { 0 };
        assert_eq!([7_013, 7_019].map(|size| alive(&child, size)), [0, in_child], "{kernel}");
    }
}

/// The child must not continue with the numbers of its parent's sites, which its file does not
/// declare.
#[test]
fn a_fork_that_no_handler_is_told_of_is_one() {
    for (kernel, folder, mut command) in on_all_kernels("trace.%p.txt", "clone") {
        if kernel == "wiped" {
            let (parent, child) = family(&mut command, &folder);
            assert_forked(&parent, &child, kernel);
        } else {
            run(&mut command);
            let files = files_of(&folder);
            assert_eq!(files.len(), 1, "the child is not traced");
            let parent = read(&files[0]);
            assert_whole(&parent);
            assert_eq!([7_001, 7_009].map(|size| alive(&parent, size)), [10, 20], "{kernel}");
        }
    }
}

/// Checks the traces of a program and of `count` children.
fn assert_forked_often(what: &str, count: usize) {
    for (kernel, folder, mut command) in on_all_kernels("trace.%p.txt", what) {
        run(&mut command);
        let traces: Vec<Trace> = files_of(&folder).iter().map(|file| read(file)).collect();
        let (children, parents): (Vec<_>, Vec<_>) =
            traces.iter().partition(|trace| alive(trace, 7_003) == 30);
        assert_eq!((children.len(), parents.len()), (count, 1), "{kernel}");
        assert_whole(parents[0]);
        assert!(children.iter().all(|child| child.overlaps == 0), "{kernel}");
    }
}

#[test]
fn a_fork_among_threads_that_allocate_leaves_whole_traces() {
    assert_forked_often("fork-busy", 10);
}

/// A site must not be named under the loader's lock. If a thread of the parent holds it at the
/// fork, the children wait for ever.
#[test]
fn a_fork_under_the_loaders_lock_leaves_whole_traces() {
    assert_forked_often("fork-loader", 10);
}

/// An older C library needs the loader's lock to name a site. It is simulated by a shared object
/// that asks for another name.
#[test]
fn an_older_c_library_names_no_sites_of_children() {
    let folder = folder();
    let mut object = std::fs::read(&*OBJECT).expect("built");
    let (name, other) = (b"_dl_find_object\0", b"_dl_find_absent\0");
    let at = object.windows(name.len()).position(|bytes| bytes == name).expect("looked up");
    object[at..at + name.len()].copy_from_slice(other);
    let older = folder.path().join("older.so");
    std::fs::write(&older, object).expect("the folder is writable");
    for depth in ["1", "4"] {
        let mut command = traced(&folder, &format!("trace.{depth}.%p"), KNOWN);
        command.env("LD_PRELOAD", &older).env("SILVICS_TRACE_DEPTH", depth);
        run(command.arg("fork-loader"));
    }
    let traces = files_of(&folder).into_iter().filter(|file| *file != older);
    let traces: Vec<Trace> = traces.map(|file| read(&file)).collect();
    let (children, parents): (Vec<_>, Vec<_>) =
        traces.iter().partition(|trace| alive(trace, 7_003) == 30);
    assert_eq!((children.len(), parents.len()), (20, 2));
    for kind in children.iter().flat_map(|trace| &trace.kinds) {
        assert!(kind.name.starts_with("?+0x") && !kind.name.contains('<'), "{}", kind.name);
    }
    for parent in parents {
        assert!(parent.kinds.iter().all(|kind| !kind.name.starts_with('?')), "{parent:?}");
    }
}

/// Children must not crash, nor write the rest of a half line of their parent's.
#[test]
fn a_fork_in_a_signal_handler_leaves_whole_traces() {
    assert_forked_often("fork-signal", 60);
}

/// The second child must not continue as its parent by mistaking its parent's number for its own.
#[test]
fn a_fork_in_a_child_that_becomes_an_owner_leaves_whole_traces() {
    assert_forked_often("fork-again", 2);
}

/// The child must not take its parent's trace for a copy and drop it when the buffer is full. Nor
/// may it end the trace if it has closed the descriptor or lowered a limit of its own.
#[test]
fn a_child_in_its_parents_memory_goes_on_with_its_trace() {
    // More than the tracer writes at once, but less than it keeps.
    for bars in [["none", "0"], ["close", "2500"], ["file-size", "2500"]] {
        for (kernel, folder, mut command) in on_all_kernels("trace", "vfork") {
            let trace = trace_of(command.args(bars), &folder);
            assert_eq!([7_001, 7_013].map(|size| alive(&trace, size)), [1, 20], "{kernel}");
            if kernel == "wiped" {
                assert_whole(&trace);
                assert_eq!(alive(&trace, 7_009), 10);
            } else {
                // Such a child cannot be distinguished from others, and is not traced.
                let facts = (alive(&trace, 7_009), trace.unknown_frees, trace.overlaps);
                assert_eq!(facts, (0, 10, 0));
            }
        }
        // The parent has no file yet.
        let folder = folder();
        let mut command = traced(&folder, "trace.%p.txt", KNOWN);
        let (_, trace) = family(command.arg("fork-vfork").args(bars), &folder);
        assert_eq!([7_001, 7_009, 7_013].map(|size| alive(&trace, size)), [1, 10, 20]);
        assert!(trace.unknown_frees < 10 && trace.overlaps == 0, "{trace:?}");
    }
}

/// The child must not end the trace of its parent, which has room and memory.
#[test]
fn events_that_a_child_in_its_parents_memory_cannot_write_are_counted() {
    let folder = folder();
    for (bar, rounds, lost) in [
        ("close", "20000", 30_000..40_000),
        ("file-size", "20000", 30_000..40_000),
        ("memory", "0", 10..11),
    ] {
        let whole = trace_of(known(&folder, "vfork").args(["none", rounds]), &folder);
        let output =
            known(&folder, "vfork").args([bar, rounds]).output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && said.lines().count() == 1, "{bar}: {said}");
        let count = said.strip_prefix("silvics-preload: ").and_then(|said| said.split(' ').next());
        let count: u64 = count.expect("a word").parse().expect("a number");
        assert!(lost.contains(&count), "{bar}: {said}");
        let trace = read(&folder.path().join("trace"));
        assert_eq!(trace.events + count, whole.events, "{bar}");
        assert_eq!([7_001, 7_009, 7_013].map(|size| alive(&trace, size)), [1, 0, 20], "{bar}");
        // The child's last free may be missing.
        assert!(trace.unknown_frees == 10 && trace.overlaps <= 1, "{bar}: {trace:?}");
    }
}

/// No event may be missing from the middle of the trace, and an object moved by `realloc` must not
/// stay at its old place.
#[test]
fn a_site_that_there_is_no_memory_to_name_ends_the_trace() {
    for what in ["malloc", "realloc"] {
        let folder = folder();
        let output = known(&folder, "no-memory").arg(what).output().expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}");
        let sentence = "the trace ends early because it cannot be written (Cannot allocate memory)";
        assert!(said.contains(sentence) && said.lines().count() == 1, "{what}: {said}");
        let trace = read(&folder.path().join("trace"));
        assert_whole(&trace);
        assert_eq!([7_001, 7_003].map(|size| alive(&trace, size)), [1, 0], "{what}");
    }
}

#[test]
fn a_file_is_one_process() {
    let folder = folder();
    let forked = trace_of(&mut known(&folder, "fork"), &folder);
    assert_whole(&forked);
    assert_eq!([7_001, 7_003, 7_009].map(|size| alive(&forked, size)), [10, 0, 20]);
    // Children that run other programs leave the file alone as well.
    let mut shell = traced(&folder, "trace", "sh");
    let script = format!("{KNOWN} fork; {KNOWN} verbs | cat; :");
    let trace = trace_of(shell.arg("-c").arg(script), &folder);
    assert_whole(&trace);
    assert_eq!(alive(&trace, 7_001), 0);
}

#[test]
fn nothing_is_lost_at_exit_and_exec() {
    let folder = folder();
    let output = known(&folder, "exit-now").output().expect("the program runs");
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(alive(&read(&folder.path().join("trace")), 7_001), 1);
    let trace = trace_of(&mut known(&folder, "exec"), &folder);
    assert_eq!(alive(&trace, 7_001), 1);
    // A traced program that replaces another begins a new trace.
    let mut shell = traced(&folder, "trace", "sh");
    let trace = trace_of(shell.arg("-c").arg(format!("exec {KNOWN} sites")), &folder);
    assert_eq!((alive(&trace, 7_001), alive(&trace, 7_003)), (10, 10));
}

#[test]
fn a_program_that_is_killed_loses_the_last_lines_only() {
    let folder = folder();
    assert!(!known(&folder, "killed").output().expect("the program runs").status.success());
    let trace = read(&folder.path().join("trace"));
    assert_eq!((trace.unknown_frees, trace.overlaps), (0, 0));
    // There are 20 000 events of about 20 bytes, of which 64 KiB may be missing.
    assert!((14_000..20_100).contains(&trace.events), "{}", trace.events);
}

#[test]
fn programs_notice_nothing() {
    let folder = folder();
    for what in ["errno", "cancel"] {
        for depth in ["1", "4"] {
            run(known(&folder, what).env("SILVICS_TRACE_DEPTH", depth));
        }
    }
    let line = |n: u64| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a));
    let lines: Vec<String> = (0..50_000).map(line).collect();
    let input = folder.path().join("input");
    std::fs::write(&input, lines.join("\n")).expect("the folder is writable");
    let plain = run(Command::new("sort").arg("--parallel=2").arg(&input));
    let sorted = run(traced(&folder, "trace", "sort").arg("--parallel=2").arg(&input));
    assert!(plain.stdout == sorted.stdout && !plain.stdout.is_empty());
    assert_whole(&read(&folder.path().join("trace")));
}

#[test]
fn a_descriptor_that_the_program_takes_over_is_not_written_to() {
    let folder = folder();
    let other = folder.path().join("other");
    std::fs::write(&other, "").expect("the folder is writable");
    let mut command = known(&folder, "close");
    let output = command.arg(&other).output().expect("the program runs");
    assert!(output.status.success());
    assert_eq!(std::fs::read(&other).expect("still there"), b"");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("the trace ends early") && said.lines().count() == 1, "{said}");
}

#[test]
fn a_limit_of_file_sizes_ends_the_trace_and_not_the_program() {
    let folder = folder();
    let mut shell = Command::new("sh");
    // The shell counts blocks of 512 or of 1024 bytes.
    let script = "ulimit -f 200; LD_PRELOAD=$0 SILVICS_TRACE=$1 $2 errno";
    shell.args(["-c", script]).arg(&*OBJECT).arg(folder.path().join("trace")).arg(KNOWN);
    let output = shell.output().expect("the program runs");
    assert!(output.status.success());
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("File too large") && said.lines().count() == 1, "{said}");
    let trace = read(&folder.path().join("trace"));
    assert!(trace.events > 1000 && trace.unknown_frees + trace.overlaps == 0, "{trace:?}");
}

#[test]
fn values_that_cannot_be_used_are_named_and_the_program_runs() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().is_ok_and(|status| status.success()));
    let long = "x".repeat(5000);
    let depths = ["", "0", "17", "-1", "2x", "1 000"];
    let depths = depths.map(|depth| ("trace", depth, "is `"));
    let paths = [
        ("none/trace", "1", "No such file or directory"),
        (".", "1", "cannot be written (Is a directory)"),
        ("pipe", "1", "cannot be written ("),
        ("/dev/null", "1", "is not a regular file"),
        (long.as_str(), "1", "SILVICS_TRACE is too long"),
    ];
    for (path, depth, sentence) in depths.into_iter().chain(paths) {
        let mut command = traced(&folder, path, "echo");
        let output = command.env("SILVICS_TRACE_DEPTH", depth).arg("ran").output();
        let output = output.expect("the program runs");
        let said = String::from_utf8_lossy(&output.stderr);
        let begins = said.starts_with("silvics-preload: the program runs untraced: SILVICS_TRACE");
        assert!(begins && said.contains(sentence) && said.lines().count() == 1, "{said}");
        assert!(output.status.success() && output.stdout == b"ran\n");
        assert!(!folder.path().join("trace").exists());
    }
    let mut empty = traced(&folder, "trace", "echo");
    let output = empty.env("SILVICS_TRACE", "").output().expect("the program runs");
    assert!(String::from_utf8_lossy(&output.stderr).contains("SILVICS_TRACE is empty"));
    // Without the variable, nothing is printed.
    let mut silent = traced(&folder, "trace", KNOWN);
    run(silent.env_remove("SILVICS_TRACE").arg("verbs"));
    assert!(!folder.path().join("trace").exists());
}

#[test]
fn a_database_and_an_interpreter_compute_what_they_do_untraced() {
    let folder = folder();
    let sql = "create table t(a integer primary key, b text);\n\
               insert into t with recursive n(i) as (select 1 union all select i+1 from n limit 20000) \
               select i, 'row '||i from n;\nselect count(*), sum(length(b)) from t;\n";
    let script = "import threading, subprocess\n\
                  lists = [[str(i) for i in range(j * 1000)] for j in range(20)]\n\
                  threads = [threading.Thread(target=sorted, args=(l,)) for l in lists]\n\
                  [t.start() for t in threads]; [t.join() for t in threads]\n\
                  print(sum(map(len, lists)), subprocess.check_output(['echo', 'child']))\n";
    let programs = [("sqlite3", ":memory:", sql), ("python3", "-", script)];
    for (program, argument, input) in programs.into_iter().filter(|(program, ..)| has(program)) {
        for depth in ["1", "5"] {
            let feed = |command: &mut Command| {
                command.arg(argument).stdin(Stdio::piped()).stdout(Stdio::piped());
                let mut child = command.spawn().expect("the program runs");
                let mut stdin = child.stdin.take().expect("a pipe");
                stdin.write_all(input.as_bytes()).expect("the program reads");
                drop(stdin);
                let output = child.wait_with_output().expect("the program ends");
                assert!(output.status.success());
                output.stdout
            };
            let plain = feed(&mut Command::new(program));
            let mut command = traced(&folder, "trace", program);
            assert_eq!(feed(command.env("SILVICS_TRACE_DEPTH", depth)), plain);
            let trace = read(&folder.path().join("trace"));
            assert_whole(&trace);
            assert!(trace.objects.len() > 100 && !plain.is_empty());
        }
    }
}
