//! The repository around the check, as git lists it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Tree;

fn git(arguments: &[&str], folder: &Path) -> Result<String, String> {
    let call = format!("`git {}`", arguments.join(" "));
    let output = Command::new("git").args(arguments).current_dir(folder).output();
    let output = output.map_err(|error| format!("{call} did not start: {error}; install git"))?;
    if !output.status.success() {
        return Err(format!("{call} failed: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| format!("{call} printed a path that is not UTF-8: rename the file"))
}

/// The root of the repository around the current folder.
///
/// # Errors
/// Git is missing, or there is no repository.
pub fn root() -> Result<PathBuf, String> {
    Ok(PathBuf::from(git(&["rev-parse", "--show-toplevel"], Path::new("."))?.trim_end()))
}

/// Every file that git knows of or would add. Files that are no UTF-8 have an empty text.
///
/// # Errors
/// Git is missing, or there is no repository.
pub fn tree(root: &Path) -> Result<Tree, String> {
    let mut tree = Tree::default();
    let listed = git(&["ls-files", "-z", "--cached", "--others", "--exclude-standard"], root)?;
    for path in listed.split_terminator('\0') {
        // A file that was deleted and is still in the index has nothing to check.
        if let Ok(bytes) = std::fs::read(root.join(path)) {
            tree.add(path, String::from_utf8(bytes).unwrap_or_default());
        }
    }
    Ok(tree)
}
