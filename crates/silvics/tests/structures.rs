//! The table of structures is complete, and the catalogue of the documents follows it.

use silvics::structures::{STRUCTURES, StructureFacts};
use silvics::{AtomicRanges, OrderedEnds, OrderedScan, RangeUpdates};
use std::any::TypeId;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The sources of the library.
fn sources() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// The Rust files below a folder.
fn rust_files(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// A source file of the library: its path in `src`, and its text.
type Source<'s> = (&'s str, &'s str);

/// Calls `check` with all source files of the library.
fn with_sources<R>(check: impl FnOnce(&[Source<'_>]) -> R) -> R {
    let mut paths = Vec::new();
    rust_files(&sources(), &mut paths);
    let texts: Vec<(String, String)> = paths
        .iter()
        .map(|path| {
            let name = path.strip_prefix(sources()).unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        })
        .collect();
    let files: Vec<Source<'_>> = texts.iter().map(|(name, text)| (&**name, &**text)).collect();
    check(&files)
}

/// The text behind the type parameters at the start of `text`.
fn behind_parameters(text: &str) -> &str {
    let mut depth = 0;
    for (at, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            '>' if !text[..at].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return text[at..].strip_prefix('>').unwrap_or(text);
        }
    }
    text
}

/// The implementations of a trait in a source file: the name of each type, and the text behind it.
fn implementations<'s>(source: &'s str, of: &str) -> Vec<(&'s str, &'s str)> {
    let mut found = Vec::new();
    for (at, _) in source.match_indices(of) {
        let before = &source[..at];
        let is_part = before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let line = before.rsplit('\n').next().unwrap_or(before);
        if is_part || line.trim_start().starts_with("//") {
            continue;
        }
        let rest = behind_parameters(source[at + of.len()..].trim_start()).trim_start();
        let Some(ty) = rest.strip_prefix("for").filter(|ty| ty.starts_with(char::is_whitespace))
        else {
            continue;
        };
        let ty = ty.trim_start();
        let end = ty.find(|c: char| c == '<' || c == '{' || c.is_whitespace()).unwrap_or(ty.len());
        found.push((last_name(&ty[..end]), &ty[end..]));
    }
    found
}

/// The names that occur more than once.
fn repeated<'n>(names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    let mut seen = BTreeSet::new();
    names.into_iter().filter(|name| !seen.insert(*name)).collect()
}

/// An algorithm that is no structure: it counts the keys of any other one.
const COUNTED: &str = "Counted";

/// The algorithms of the library: the type and `Algorithm::NAME` of each. A name that is no literal
/// is empty.
fn algorithms<'s>(files: &[Source<'s>]) -> Vec<(&'s str, &'s str)> {
    let found = files.iter().flat_map(|(_, text)| implementations(text, "Algorithm"));
    let found = found.filter(|(ty, _)| *ty != COUNTED);
    let named = found.map(|(ty, rest)| {
        let name = rest.split("const NAME: &'static str = \"").nth(1);
        (ty, name.and_then(|text| text.split('"').next()).unwrap_or_default())
    });
    named.collect()
}

/// The structures of the library that the table lacks or cannot tell apart.
fn lost_structures(files: &[Source<'_>], rows: &[StructureFacts]) -> Vec<String> {
    let found = algorithms(files);
    let is_in_the_table = |name: &str| {
        let builds = rows.iter().flat_map(|row| row.builds);
        builds.flat_map(|build| build.types).any(|ty| last_name(ty) == name)
    };
    let lost = found.iter().filter(|(_, name)| !is_in_the_table(name));
    let mut lost: Vec<_> = lost.map(|(ty, name)| format!("{ty}: no row has `{name}`")).collect();
    let repeated = repeated(found.iter().map(|(_, name)| *name));
    lost.extend(repeated.iter().map(|name| format!("two algorithms have the NAME `{name}`")));
    lost
}

/// The builds in the folders of structures that no row of the structure names. Unit tests may have
/// others.
fn lost_builds(files: &[Source<'_>], rows: &[StructureFacts]) -> Vec<String> {
    let mut lost = Vec::new();
    for (path, text) in files.iter().filter(|(path, _)| !path.ends_with("/tests.rs")) {
        let of_row = |row: &&StructureFacts| path.starts_with(&format!("{}/", row.page));
        let builds = rows.iter().filter(of_row).flat_map(|row| row.builds);
        let types = builds.flat_map(|build| build.types);
        let of_rows: BTreeSet<_> = types.map(|ty| last_build(ty)).collect();
        let found = implementations(text, "Build").into_iter().map(|(ty, _)| ty);
        lost.extend(found.filter(|ty| !of_rows.contains(ty)).map(|ty| format!("{path}: {ty}")));
    }
    lost
}

/// The name of the last type parameter of a type, without its path.
fn last_build(ty: &str) -> &str {
    let parameters = ty.split_once('<').map_or("", |(_, parameters)| parameters);
    let parameters = parameters.trim_end().trim_end_matches('>').trim_end().trim_end_matches(',');
    last_name(parameters.rsplit(',').next().unwrap_or_default())
}

/// The words of a row's citation that the section `Source` of the module docs lacks.
fn lost_words<'r>(row: &'r StructureFacts, docs: &str) -> Vec<&'r str> {
    let source = docs.split("//! # Source\n").nth(1).unwrap_or_default();
    let source = source.split("//! # ").next().unwrap_or_default();
    let has: BTreeSet<&str> = words(source).collect();
    words(row.paper).filter(|word| *word != "and" && !has.contains(word)).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
}

#[test]
fn every_structure_of_the_library_is_in_the_table() {
    with_sources(|files| {
        let lost = lost_structures(files, STRUCTURES);
        assert!(lost.is_empty(), "correct the rows of structures.rs: {lost:#?}");
        let found = algorithms(files).len();
        assert!(found >= 9, "only {found} algorithms were found: does this test still see them?");
    });
}

#[test]
fn every_build_of_a_structure_is_in_the_table() {
    with_sources(|files| {
        let lost = lost_builds(files, STRUCTURES);
        assert!(lost.is_empty(), "add builds to structures.rs: {lost:#?}");
        let found: usize = files.iter().map(|(_, text)| implementations(text, "Build").len()).sum();
        assert!(found >= 20, "only {found} builds were found: does this test still see them?");
    });
}

#[test]
fn citations_agree_with_the_module_docs() {
    for row in STRUCTURES {
        let docs = fs::read_to_string(sources().join(row.page).join("mod.rs")).unwrap();
        let lost = lost_words(row, &docs);
        assert!(lost.is_empty(), "{}: `# Source` of {} has no {lost:?}", row.name, row.page);
    }
}

/// A structure is found however its implementation is written, and not where none is.
#[test]
fn a_structure_that_is_not_in_the_table_is_seen() {
    let name = "const NAME: &'static str = \"NewTree\";";
    for head in [
        "unsafe impl<P> Algorithm for New<P> {",
        "unsafe impl<P: Fn() -> u64>Algorithm for New<P>\nwhere\n    P: Placement,\n{",
        "unsafe impl crate::frame::Algorithm for New {",
        "unsafe impl<P> Algorithm<P, fn() -> Vec<P>> for crate::New<P> {",
        "unsafe impl<P> Algorithm\n    for New<P>\n{",
    ] {
        let source = format!("{head}\n    {name}\n}}");
        let files = [("new/mod.rs", &*source)];
        assert_eq!(algorithms(&files), [("New", "NewTree")], "{head}");
        assert_eq!(lost_structures(&files, STRUCTURES), ["New: no row has `NewTree`"], "{head}");
    }
    let others = "// unsafe impl Algorithm for New {\nimpl<A: Algorithm<Key = u64>> Create for New<A> \
                  {\nimpl SomeAlgorithm for New {\nimpl Algorithms for New {";
    assert!(implementations(others, "Algorithm").is_empty());
    let unnamed = "unsafe impl Algorithm for New { const NAME: &'static str = name(); }";
    let lost = lost_structures(&[("new/mod.rs", unnamed)], STRUCTURES);
    assert_eq!(lost, ["New: no row has ``"]);
}

#[test]
fn a_name_that_two_algorithms_have_is_seen() {
    let name = "const NAME: &'static str = \"EllenTree\";";
    let source =
        format!("impl Algorithm for Ellen {{ {name} }}\nimpl Algorithm for Other {{ {name} }}");
    let lost = lost_structures(&[("bst/ellen/mod.rs", &source)], STRUCTURES);
    assert_eq!(lost, ["two algorithms have the NAME `EllenTree`"]);
    assert_eq!(repeated(["a", "b", "a", "c", "a"]), ["a", "a"]);
}

/// A build counts only if a row of its own structure names it.
#[test]
fn a_build_that_is_not_in_the_table_is_seen() {
    let source = "impl Build for Compact {}\nimpl<W> Build for Newest<W> {}";
    let lost = |path| lost_builds(&[(path, source)], STRUCTURES);
    assert_eq!(lost("bst/ellen/build.rs"), ["bst/ellen/build.rs: Newest"]);
    assert_eq!(
        lost("bst/citrus/build.rs"),
        ["bst/citrus/build.rs: Compact", "bst/citrus/build.rs: Newest"]
    );
    assert_eq!(lost("new/build.rs"), ["new/build.rs: Compact", "new/build.rs: Newest"]);
    assert_eq!(last_build("$crate::T<$crate::Pooled, $crate::build::Fixed>"), "Fixed");
}

#[test]
fn a_citation_that_the_module_docs_lack_is_seen() {
    let row = StructureFacts { paper: "Pugh, CACM 1990; Fraser and Lev 2007", ..STRUCTURES[0] };
    let docs = "//! Lev 2007\n//! # Source\n//! Pugh, \"Skip lists\", CACM 1990; Fraser,\n\
                //! \"Practical\n//! lock-freedom\", 2004.\n//! # Algorithm\n//! Of Lev.";
    assert_eq!(lost_words(&row, docs), ["Lev", "2007"]);
}

#[test]
fn rows_are_well_formed() {
    let twice = repeated(STRUCTURES.iter().map(|row| row.name));
    assert!(twice.is_empty(), "rows with the same name: {twice:?}");
    for row in STRUCTURES {
        assert!(sources().join(row.page).join("mod.rs").exists(), "{}: no {}", row.name, row.page);
        let twice = repeated(row.builds.iter().map(|build| build.name));
        assert!(twice.is_empty(), "{}: builds with the same name: {twice:?}", row.name);
        for build in row.builds {
            assert!(!build.objects.is_empty(), "{}:{}", row.name, build.name);
        }
    }
}

/// An index type as a row of the table declares it, and as it is.
#[derive(Clone, Debug)]
struct Declared {
    structure: &'static str,
    build: &'static str,
    keys: &'static str,
    runs: &'static str,
    capability: &'static str,
    is: TypeId,
    can: &'static str,
}

/// Whether a type implements a trait: an inherent constant comes before that of a trait.
macro_rules! implements {
    ($ty:ty: $bound:path) => {{
        #[allow(dead_code)] // for types with the trait
        trait Fallback {
            const IS: bool = false;
        }
        impl<T: ?Sized> Fallback for T {}
        struct Probe<T: ?Sized>(std::marker::PhantomData<T>);
        #[allow(dead_code)] // for types without the trait
        impl<T: ?Sized + $bound> Probe<T> {
            const IS: bool = true;
        }
        <Probe<$ty>>::IS
    }};
}

/// All index types of the table.
fn declared() -> Vec<Declared> {
    let mut all = Vec::new();
    macro_rules! declare {
        ($structure:ident $build:ident $keys:ident $runs:ident $face:ident $faults:ident
         $index:ty) => {
            all.push(Declared {
                structure: stringify!($structure),
                build: stringify!($build),
                keys: stringify!($keys),
                runs: stringify!($runs),
                capability: stringify!($face),
                is: TypeId::of::<$index>(),
                can: [
                    ("updates", implements!($index: RangeUpdates)),
                    ("atomic", implements!($index: AtomicRanges)),
                    ("ends", implements!($index: OrderedEnds)),
                    ("scans", implements!($index: OrderedScan)),
                    ("points", true),
                ]
                .into_iter()
                .find_map(|(name, can)| can.then_some(name))
                .unwrap(),
            });
        };
    }
    silvics::for_each_index! { declare }
    all
}

/// The rows that would leave tests of their structure out.
fn untested(all: &[Declared]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (at, row) in all.iter().enumerate() {
        let name = format!("{}:{} with {}", row.structure, row.build, row.keys);
        if row.capability != row.can {
            wrong.push(format!("{name} has {}, and its row says {}", row.can, row.capability));
        }
        let is_again = all[..at].iter().any(|earlier| earlier.is == row.is);
        if is_again != (row.runs == "alias") {
            wrong.push(format!("{name} runs as {}, but is new: {}", row.runs, !is_again));
        }
        // The rows of one module share its code.
        let page = |row: &Declared| {
            let named = |facts: &&StructureFacts| facts.name.replace('-', "_") == row.structure;
            STRUCTURES.iter().find(named).map(|facts| facts.page)
        };
        let same = |other: &&Declared| page(other) == page(row) && other.keys == row.keys;
        if !all.iter().filter(same).any(|other| other.runs == "full") {
            wrong.push(format!("{name}: no build of the structure runs in full"));
        }
    }
    wrong
}

/// No row silences a test: by a capability that it leaves out, a build that it takes for another,
/// or long tests that no build runs.
#[test]
fn rows_leave_no_test_out() {
    assert_eq!(untested(&declared()), [""; 0]);
}

#[test]
fn a_row_that_leaves_tests_out_is_seen() {
    let with = |structure: &str, build: &str, change: fn(&mut Declared)| {
        let mut all = declared();
        let named = |row: &&mut Declared| row.structure == structure && row.build == build;
        all.iter_mut().filter(named).for_each(change);
        untested(&all)
    };
    assert_eq!(
        with("log_int", "fixed", |row| row.capability = "points"),
        ["log_int:fixed with u64_keys has scans, and its row says points"]
    );
    assert_eq!(
        with("log_int", "baseline", |row| row.runs = "alias"),
        ["log_int:baseline with u64_keys runs as alias, but is new: true"]
    );
    assert_eq!(
        with("occ_avl_2", "baseline", |row| row.runs = "suite"),
        ["occ_avl_2:baseline with u64_keys runs as suite, but is new: false"]
    );
    let silenced = with("citrus", "fixed", |row| row.runs = "suite");
    assert_eq!(silenced.len(), 2, "one for each build: {silenced:?}");
    assert!(silenced.iter().all(|wrong| wrong.ends_with("no build of the structure runs in full")));
}

/// The name of a type without its path and parameters.
fn last_name(ty: &str) -> &str {
    let path = ty.split('<').next().unwrap_or(ty);
    path.rsplit("::").next().unwrap_or(path).trim()
}

/// The key types of a row, as the documents name them.
fn keys(row: &StructureFacts) -> String {
    let keys = row.builds[0].keys.iter().map(|keys| match *keys {
        "u64_keys" => "`u64`".to_owned(),
        "u128_keys" => "`u128`".to_owned(),
        _ => match row.max_key_bytes {
            Some(most) => format!("`[u8]` up to {} KiB", most >> 10),
            None => "`[u8]` of any length".to_owned(),
        },
    });
    keys.collect::<Vec<_>>().join(", ")
}

/// A link to the type of a row from a page in a folder that is `up` from the root.
fn type_of(row: &StructureFacts, up: &str) -> String {
    format!("[`{}`]({up}crates/silvics/src/{}/mod.rs)", last_name(row.builds[0].types[0]), row.page)
}

/// The first table of docs/structures.md.
fn catalogue() -> String {
    let mut table = String::from(
        "| name | type | paper | topology | synchronisation | progress | keys | ranges | builds \
         | checked by |\n|---|---|---|---|---|---|---|---|---|---|\n",
    );
    for row in STRUCTURES {
        let builds: Vec<_> = row.builds.iter().map(|build| format!("`{}`", build.name)).collect();
        writeln!(
            table,
            "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            row.name,
            type_of(row, "../"),
            row.paper,
            row.topology,
            row.sync,
            row.progress,
            keys(row),
            row.scans,
            builds.join(", "),
            row.checked,
        )
        .unwrap();
    }
    table
}

/// The facts of the structures of one page, a column for each, and the objects of their builds.
fn facts(rows: &[&StructureFacts]) -> String {
    let mut table = String::new();
    let mut line = |name: &str, cell: &dyn Fn(&StructureFacts) -> String| {
        let cells: Vec<_> = rows.iter().map(|row| cell(row)).collect();
        writeln!(table, "| {name} | {} |", cells.join(" | ")).unwrap();
    };
    line("", &|row| format!("`{}`", row.name));
    line("---", &|_| "---".to_owned());
    line("type", &|row| type_of(row, "../../"));
    line("paper", &|row| row.paper.to_owned());
    line("shape", &|row| row.topology.to_owned());
    line("synchronisation", &|row| row.sync.to_owned());
    line("progress", &|row| row.progress.to_owned());
    line("keys", &keys);
    line("ranges", &|row| row.scans.to_owned());
    line("checked by", &|row| row.checked.to_owned());
    table.push_str(
        "\n| build | object | bytes, of the smallest if they vary | read by a search | oversights \
         in the study |\n",
    );
    table.push_str("|---|---|---|---|---|\n");
    for (row, build) in rows.iter().flat_map(|row| row.builds.iter().map(move |build| (row, build)))
    {
        for object in build.objects {
            let read: usize = object.search.iter().map(|field| field.bytes).sum();
            let (name, oversights) = (build.name, build.oversights.join(", "));
            let (kind, size) = (object.kind, object.size);
            writeln!(
                table,
                "| `{}:{name}` | `{kind}` | {size} | {read} | {oversights} |",
                row.name
            )
            .unwrap();
        }
    }
    table
}

/// Fails unless the text between two markers of a document is as wanted; with `SILVICS_BLESS=1` in
/// the environment, writes it.
fn follows(path: &Path, begin: &str, end: &str, wanted: &str) {
    let text = fs::read_to_string(path).unwrap();
    let name = path.display();
    let (before, rest) = text.split_once(begin).unwrap_or_else(|| panic!("{name} has no {begin}"));
    let (found, after) = rest.split_once(end).unwrap_or_else(|| panic!("{name} has no {end}"));
    if std::env::var_os("SILVICS_BLESS").is_some() {
        fs::write(path, format!("{before}{begin}{wanted}{end}{after}")).unwrap();
        return;
    }
    assert!(
        found == wanted,
        "{name} is not what the table says: run this test with SILVICS_BLESS=1 in the environment"
    );
}

fn documents() -> PathBuf {
    sources().join("../../../docs")
}

#[test]
fn the_catalogue_of_the_documents_follows_the_table() {
    const BEGIN: &str =
        "<!-- The table of structures begins: generated, see tests/structures.rs -->\n";
    const END: &str = "<!-- The table of structures ends -->";
    follows(&documents().join("structures.md"), BEGIN, END, &catalogue());
}

/// The names of the structures in the marker that begins the facts of a page.
fn named_by(page: &str) -> Vec<&str> {
    let marker = page.split("<!-- Facts of ").nth(1).and_then(|rest| rest.split(" (").next());
    marker.into_iter().flat_map(|names| names.split(", ")).collect()
}

/// Each structure has a page in docs/structures, with the facts of the table.
#[test]
fn the_page_of_each_structure_follows_the_table() {
    let mut lost: BTreeSet<&str> = STRUCTURES.iter().map(|row| row.name).collect();
    for entry in fs::read_dir(documents().join("structures")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let names = named_by(&text);
        if names.is_empty() {
            continue;
        }
        let named = |name: &&str| STRUCTURES.iter().find(|row| row.name == *name);
        let rows: Vec<_> = names.iter().filter_map(named).collect();
        assert_eq!(rows.len(), names.len(), "{}: one of {names:?} is no structure", path.display());
        let marker = names.join(", ");
        let begin = format!("<!-- Facts of {marker} (tests/structures.rs) -->\n");
        follows(&path, &begin, "<!-- End of facts -->", &facts(&rows));
        lost.retain(|name| !names.contains(name));
    }
    assert!(lost.is_empty(), "structures without a page in docs/structures: {lost:?}");
}

#[test]
fn a_marker_of_a_page_names_its_structures() {
    assert_eq!(named_by("A.\n<!-- Facts of a, b-2 (tests/structures.rs) -->\n"), ["a", "b-2"]);
    assert_eq!(named_by("A page of no structure.\n"), [""; 0]);
}
