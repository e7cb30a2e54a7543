//! Runs that are kept under a name, for later comparisons: `--save` and `--baseline`.
//!
//! A kept run is a JSON file of its own: the number of its format, its name, and the whole report.
//! Readers ignore fields that they do not know, so only a change of the meaning of a field needs
//! another number.

use super::report::Report;
use crate::flags::bench::KeptArgs;
use crate::flags::error::Error;
use crate::flags::values::single;
use crate::output::File;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The format of the files that this version writes, and the newest that it reads.
const FORMAT: u64 = 1;

/// The longest name of a run.
const NAME_MAX: usize = 64;

/// The least change that is reported, as a share.
const NOISE: f64 = 0.02;

/// The use of the result of a benchmark.
#[derive(Debug)]
pub struct Kept {
    save: Option<Save>,
    /// The run with which the result is compared.
    pub baseline: Option<Baseline>,
    /// Changes below this share are not reported.
    pub noise: f64,
}

/// The place that takes the result.
#[derive(Debug)]
struct Save {
    name: String,
    file: File,
    folder: Folder,
}

/// The folder of kept runs.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Whether the user has named it. Then its parent must be there.
    is_named: bool,
}

/// A kept run.
#[derive(Debug)]
pub struct Baseline {
    pub name: String,
    pub path: PathBuf,
    pub run: Run,
}

/// The parts of a kept report that comparisons read.
#[derive(Debug, Deserialize)]
pub struct Run {
    pub machine: Map<String, Value>,
    pub config: Map<String, Value>,
    pub results: Vec<KeptRow>,
}

/// A row of a kept report.
#[derive(Clone, Debug, Deserialize)]
pub struct KeptRow {
    #[serde(flatten)]
    pub id: RowId,
    /// The throughput of each round.
    pub samples: Vec<f64>,
    /// The pages that the index got, if it knew.
    #[serde(default)]
    pub pages_given: Option<String>,
    /// The share of huge pages in its memory, if that was known.
    #[serde(default)]
    pub huge_page_share: Option<f64>,
}

/// The key of a row: the index, and all that it was measured with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RowId {
    pub index: String,
    pub variant: String,
    pub placement: String,
    pub pages: String,
    pub keys: usize,
    pub key_space: usize,
    pub key_type: String,
    pub keyset: Option<String>,
    pub value_type: String,
    pub dist: String,
    pub threads: usize,
    pub mix: String,
    pub batch: usize,
    pub scan_by: Option<String>,
    pub scan_length: Option<usize>,
}

/// A kept run, as it is written.
#[derive(Serialize)]
struct Saved<'a> {
    format: u64,
    name: &'a str,
    report: &'a Report,
}

impl Kept {
    /// Reads the flags, and the baseline. Fails if the result could not be kept at the end.
    pub fn new(args: &KeptArgs) -> Result<Self, Error> {
        let noise = args.noise.as_ref().map(|text| single("--noise", text, percent)).transpose()?;
        if args.noise.is_some() && args.baseline.is_none() {
            return Err(Error::value("--noise", "is for --baseline: add that"));
        }
        if args.kept_in.is_some() && args.baseline.is_none() && args.save.is_none() {
            return Err(Error::value("--kept-in", "is for --save and --baseline: add one of them"));
        }
        let path = |flag: &'static str, text: &String| {
            let name = single(flag, text, name)?;
            let folder = Folder::of(flag, args.kept_in.as_deref())?;
            Ok::<_, Error>((folder.path.join(format!("{name}.json")), name, folder))
        };
        let baseline = match &args.baseline {
            Some(text) => {
                let (path, name, _) = path("--baseline", text)?;
                Some(Baseline::read(name, path)?)
            }
            None => None,
        };
        let save = match &args.save {
            Some(text) => {
                let (path, name, folder) = path("--save", text)?;
                let file = folder.tried(|| File::new("--save", &path))?;
                Some(Save { name, file, folder })
            }
            None => None,
        };
        Ok(Self { save, baseline, noise: noise.unwrap_or(NOISE) })
    }

    /// The file that takes the result, if the user asked for it.
    pub fn file(&self) -> Option<File> {
        self.save.as_ref().map(|save| save.file.clone())
    }

    /// Keeps the result, if the user asked for it. Fails if it was to be compared, but has no row
    /// in common with the baseline: then it keeps nothing.
    pub fn save(&self, report: &Report) -> Result<(), Error> {
        self.check_rows(report)?;
        let Some(Save { name, file, folder }) = &self.save else { return Ok(()) };
        if report.is_cut() {
            crate::progress::note(&format!("--save {name}: not kept, because it did not finish"));
            return Ok(());
        }
        let saved = Saved { format: FORMAT, name, report };
        let bytes = serde_json::to_vec(&saved).map_err(|error| Error::Output(error.into()))?;
        folder.make()?;
        file.write(&bytes)
    }
}

impl Baseline {
    /// The file that it was read from.
    pub fn file(&self) -> File {
        File { flag: "--baseline", path: self.path.clone() }
    }

    fn read(name: String, path: PathBuf) -> Result<Self, Error> {
        let failed = |problem| Error::File { flag: "--baseline", path: path.clone(), problem };
        let text = fs::read(&path).map_err(|error| {
            if error.kind() == ErrorKind::NotFound {
                failed(format!("is not there: {}", remedy(&name, path.parent())))
            } else {
                failed(format!("cannot be read: {error}"))
            }
        })?;
        let run = parse(&text).map_err(failed)?;
        Ok(Self { name, path, run })
    }
}

/// Reads a kept run. The problem continues the sentence that the file's name begins.
fn parse(text: &[u8]) -> Result<Run, String> {
    #[derive(Deserialize)]
    struct Head {
        format: u64,
    }
    #[derive(Deserialize)]
    struct Body {
        report: Run,
    }
    let damaged = |problem: String| {
        format!("is no whole kept run ({problem}): keep a new one with --save, or name another")
    };
    let head: Head = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
    if head.format > FORMAT {
        return Err(format!(
            "has format {}, but this version reads formats up to {FORMAT}: use the newer version \
             that kept it, or keep a new run with --save",
            head.format
        ));
    }
    let body: Body = serde_json::from_slice(text).map_err(|error| damaged(error.to_string()))?;
    let is_rate = |sample: &f64| sample.is_finite() && *sample > 0.0;
    for row in &body.report.results {
        if row.samples.is_empty() || !row.samples.iter().all(is_rate) {
            return Err(damaged(format!("the samples of `{}` are no rates", row.id.index)));
        }
    }
    Ok(body.report)
}

/// The remedy if there is no run of a name.
fn remedy(name: &str, folder: Option<&Path>) -> String {
    let files = folder.and_then(|folder| fs::read_dir(folder).ok()).into_iter().flatten().flatten();
    let names = files.filter_map(|file| {
        let path = file.path();
        let is_run = path.extension().is_some_and(|ending| ending == "json");
        is_run.then(|| path.file_stem().map(|stem| stem.to_string_lossy().into_owned()))?
    });
    let mut names: Vec<String> = names.collect();
    names.sort_unstable();
    let first = format!("keep a run with --save {name} first");
    if names.is_empty() { first } else { format!("{first}, or choose from {}", names.join(", ")) }
}

/// A name that is a file's on every system.
fn name(text: &str) -> Result<String, String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_name = (1..=NAME_MAX).contains(&text.len())
        && text.chars().all(fits)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric());
    if is_reserved(text) {
        return Err(format!("`{text}` is a device on Windows, not a name of a run: take another"));
    }
    if is_name {
        return Ok(text.into());
    }
    Err(format!(
        "`{text}` is not a name of a run: take up to {NAME_MAX} letters, digits, dots, dashes and \
         underscores, the first one a letter or a digit"
    ))
}

/// Whether Windows takes the name for a device, with whatever ending.
fn is_reserved(text: &str) -> bool {
    let stem = text.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = stem.strip_prefix("com").or(stem.strip_prefix("lpt"));
    let is_digit = |rest: &str| matches!(rest.as_bytes(), [b'0'..=b'9']);
    matches!(&*stem, "con" | "prn" | "aux" | "nul") || numbered.is_some_and(is_digit)
}

/// A threshold in percent, as a share.
fn percent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    match number {
        Some(percent) if (0.0..=100.0).contains(&percent) => Ok(percent / 100.0),
        _ => Err(format!("`{text}` is not a number of percent from 0 to 100: write for example 2")),
    }
}

impl Folder {
    fn of(flag: &'static str, named: Option<&Path>) -> Result<Self, Error> {
        if let Some(folder) = named {
            return Ok(Self { path: folder.to_owned(), is_named: true });
        }
        let target = Path::new("target");
        if target.is_dir() {
            return Ok(Self { path: target.join("silvics"), is_named: false });
        }
        let data = etcetera::choose_base_strategy().map(|user| {
            let folder = etcetera::BaseStrategy::data_dir(&user);
            folder.join("silvics")
        });
        let path = data.map_err(|_| {
            let problem = "the system names no folder for the user's data: name one with --kept-in";
            Error::value(flag, problem)
        })?;
        Ok(Self { path, is_named: false })
    }

    /// Makes the folder, unless it is there.
    fn make(&self) -> Result<(), Error> {
        let Self { path, is_named } = self;
        let made = if *is_named && !path.is_dir() {
            fs::create_dir(path)
        } else {
            fs::create_dir_all(path)
        };
        made.map_err(|error| Error::File {
            flag: if *is_named { "--kept-in" } else { "--save" },
            path: path.clone(),
            problem: format!("cannot be made: {error}"),
        })
    }

    /// Tries something in the folder. Leaves no folder that was not there: the run may end without
    /// a result.
    fn tried<T>(&self, what: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let is_missing = |of: &&Path| !of.as_os_str().is_empty() && !of.is_dir();
        let missing: Vec<&Path> = self.path.ancestors().take_while(is_missing).collect();
        let result = self.make().and_then(|()| what());
        for folder in missing {
            let _ = fs::remove_dir(folder);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"cell": 0, "index": "art", "variant": "default", "placement": "pooled",
        "pages": "thp", "keys": 1, "key_space": 2, "key_type": "u64", "keyset": null,
        "value_type": "u64", "dist": "uniform", "threads": 1, "mix": "100/0/0", "batch": 1,
        "scan_by": null, "scan_length": null, "samples": [1.5], "more": {}}"#;

    fn kept(format: u64, row: &str) -> String {
        let report = format!(r#"{{"machine": {{}}, "config": {{}}, "results": [{row}]}}"#);
        format!(r#"{{"format": {format}, "name": "x", "report": {report}}}"#)
    }

    #[test]
    fn kept_runs_are_read() {
        let run = parse(kept(FORMAT, ROW).as_bytes()).unwrap();
        assert_eq!(
            (run.results[0].id.keys, run.results[0].samples[0].to_bits()),
            (1, 1.5_f64.to_bits())
        );
    }

    #[test]
    fn damaged_and_newer_runs_are_refused() {
        let whole = kept(FORMAT, ROW);
        for end in 0..whole.len() {
            let problem = parse(&whole.as_bytes()[..end]).unwrap_err();
            assert!(problem.contains("is no whole kept run"), "{end}: {problem}");
        }
        let newer = parse(kept(FORMAT + 1, "7").as_bytes()).unwrap_err();
        assert!(newer.contains("has format 2, but this version reads formats up to 1"), "{newer}");
        for samples in ["[]", "[0]", "[-1]", "[1.5, null]"] {
            let row = ROW.replace("[1.5]", samples);
            assert!(parse(kept(FORMAT, &row).as_bytes()).is_err(), "{samples}");
        }
    }

    #[test]
    fn names_are_those_of_files() {
        for good in ["main", "v0.1-2_x", "1", "console", "com", "com10", "x.con"] {
            assert_eq!(name(good).as_deref(), Ok(good));
        }
        for bad in ["con", "CON", "nul.1", "Com1", "lpt9.x"] {
            assert!(name(bad).unwrap_err().contains("device"), "{bad}");
        }
        let long = "x".repeat(65);
        for bad in ["", ".", "..", ".x", "a/b", "a\\b", "../x", "-x", "a b", "a:b", "é", &long] {
            assert!(name(bad).is_err(), "{bad}");
        }
    }
}
