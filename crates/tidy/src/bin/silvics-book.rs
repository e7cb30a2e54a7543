//! `silvics-book`: the parts of building the book that mdBook does not do (`.ci/step book`).
//!
//! ```text
//! silvics-book stage FOLDER    writes the sources of the book; exits 1 if a chapter is wrong
//! silvics-book check FOLDER    checks all links of the built book; exits 1 if one leads nowhere
//! ```

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use silvics_tidy::book::{Page, broken};
use silvics_tidy::repository;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["stage", folder] => stage(Path::new(folder)),
        ["check", folder] => check(Path::new(folder)),
        _ => Err("usage: `silvics-book stage FOLDER` or `silvics-book check FOLDER`".to_owned()),
    };
    match done {
        Ok(wrong) if wrong.is_empty() => ExitCode::SUCCESS,
        Ok(wrong) => {
            for sentence in &wrong {
                println!("{sentence}");
            }
            ExitCode::from(1)
        }
        Err(message) => {
            eprintln!("book: {message}");
            ExitCode::from(2)
        }
    }
}

/// Writes the sources of the book to a folder, which is emptied first.
fn stage(folder: &Path) -> Result<Vec<String>, String> {
    let root = repository::root()?;
    let sources = match repository::tree(&root)?.book() {
        Ok(sources) => sources,
        Err(wrong) => return Ok(wrong),
    };
    let failed = |error| format!("{} cannot be written: {error}", folder.display());
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failed)?;
    }
    for file in &sources.files {
        let to = folder.join(file);
        fs::create_dir_all(to.parent().unwrap_or(folder)).map_err(failed)?;
        fs::copy(root.join(file), to).map_err(failed)?;
    }
    fs::write(folder.join("SUMMARY.md"), sources.summary).map_err(failed)?;
    Ok(Vec::new())
}

/// Checks the links of a built book.
fn check(folder: &Path) -> Result<Vec<String>, String> {
    let mut paths = Vec::new();
    let failed = |error| format!("{} cannot be read: {error}: build it first", folder.display());
    files(folder, &mut paths).map_err(failed)?;
    let mut pages = Vec::new();
    let mut names = BTreeSet::new();
    for path in &paths {
        let inner = path.strip_prefix(folder).unwrap_or(path);
        let name = inner.to_string_lossy().replace('\\', "/");
        if path.extension().is_some_and(|extension| extension == "html") {
            let text = fs::read_to_string(path).map_err(failed)?;
            pages.push(Page { path: name.clone(), text });
        }
        names.insert(name);
    }
    if pages.is_empty() {
        return Err(format!("{} has no pages: build the book first", folder.display()));
    }
    Ok(broken(&pages, &names))
}

/// All files below a folder.
fn files(folder: &Path, found: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else {
            found.push(path);
        }
    }
    Ok(())
}
