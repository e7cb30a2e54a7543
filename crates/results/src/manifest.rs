//! The manifests: docs/results/*.toml, one for each page. [docs/results/README.md] explains them.
//!
//! [docs/results/README.md]: ../../../docs/results/README.md

use crate::fault::{Fault, fault, read};
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The folder of the pages and of their manifests.
pub(crate) const FOLDER: &str = "docs/results";

/// All manifests, in the order of their names.
pub(crate) struct Manifest {
    pub(crate) pages: Vec<Page>,
}

/// The runs and tables of a page.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    #[serde(rename = "page")]
    pub(crate) path: PathBuf,
    #[serde(default)]
    pub(crate) file: Vec<Source>,
    #[serde(default)]
    pub(crate) run: Vec<Run>,
    #[serde(default)]
    pub(crate) table: Vec<Table>,
}

/// A file that commands read, and the command that makes it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) command: String,
}

/// A command whose output is kept.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) id: String,
    pub(crate) command: String,
    /// How long it takes on two cores, builds excluded.
    pub(crate) minutes: f64,
    pub(crate) format: Format,
    /// The command under `--trial`. Else that is the command with smaller numbers.
    pub(crate) trial: Option<String>,
}

/// The form of a command's output.
#[derive(Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// The JSON of a verb of `silvics`: its `results`, `loads`, `builds` and `best` become records.
    Json,
    /// Text. The rows of its Markdown tables become records, too.
    Text,
}

/// A table, or one table for each value of a field.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Table {
    pub(crate) id: String,
    /// The page, if it is not that of the manifest.
    pub(crate) page: Option<PathBuf>,
    /// The part of the selection that all cells share.
    #[serde(default, rename = "where")]
    pub(crate) selection: Selection,
    /// A table for each value of this field, in the order of the records.
    pub(crate) each: Option<String>,
    /// The heading of each of these tables, with `{}` for the value.
    pub(crate) heading: Option<String>,
    /// A row for each value of this field, in the order of the records.
    pub(crate) rows_by: Option<String>,
    /// Rows with labels of their own.
    #[serde(default)]
    pub(crate) row: Vec<Row>,
    #[serde(default)]
    pub(crate) column: Vec<Column>,
    /// The heads of the labels' column.
    #[serde(default)]
    pub(crate) head: String,
    /// Instead of rows and columns: these Markdown tables of the output, counted from 0. Without
    /// numbers: all.
    pub(crate) take: Option<Vec<usize>>,
    /// Instead of rows and columns: the output as it is.
    #[serde(default)]
    pub(crate) verbatim: bool,
    /// Whether the commands are shown above the table.
    #[serde(default = "shown")]
    pub(crate) commands: bool,
}

fn shown() -> bool {
    true
}

/// A row with a label of its own.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) label: String,
    #[serde(default, rename = "where")]
    pub(crate) selection: Selection,
    /// The field of its cells, if the columns name none.
    pub(crate) field: Option<String>,
    /// The bars, one for each column of bars: `≥ 1.4`, `≤ 0.75`, or empty.
    #[serde(default)]
    pub(crate) bars: Vec<String>,
    /// The factor by which figures are multiplied.
    pub(crate) scale: Option<f64>,
}

/// A column.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Column {
    pub(crate) head: String,
    #[serde(default, rename = "where")]
    pub(crate) selection: Selection,
    pub(crate) field: Option<String>,
    #[serde(default)]
    pub(crate) show: Show,
    /// The figures are divided by those of this selection, round by round if there are samples.
    pub(crate) of: Option<Selection>,
    pub(crate) scale: Option<f64>,
}

/// The part of a figure that a cell shows.
#[derive(Clone, Copy, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Show {
    /// The median; `lowest to highest` of the medians if several records are selected.
    #[default]
    Median,
    /// The interval of the median.
    Interval,
    /// The median, and its interval in brackets.
    Both,
    /// The median in percent.
    Percent,
    /// A word, as it is in the record.
    Word,
    /// The bar of the row for the column before this one, and whether that was missed.
    Bar,
}

/// Fields and the values that they may have. `run` is the id of a run, and `part` the part of its
/// JSON, by default `results`.
#[derive(Clone, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Selection(pub(crate) BTreeMap<String, Values>);

/// One value, or several.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Values {
    One(Value),
    Many(Vec<Value>),
}

/// A word or a number.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum Value {
    Word(String),
    Number(i64),
}

impl Values {
    /// Whether the text is one of the values.
    pub(crate) fn has(&self, text: &str) -> bool {
        self.words().iter().any(|word| word == text)
    }

    /// The values, as text.
    pub(crate) fn words(&self) -> Vec<String> {
        let word = |value: &Value| match value {
            Value::Word(word) => word.clone(),
            Value::Number(number) => number.to_string(),
        };
        match self {
            Self::One(value) => vec![word(value)],
            Self::Many(values) => values.iter().map(word).collect(),
        }
    }
}

impl Selection {
    /// This selection, with the fields of another one in place of its own.
    #[must_use]
    pub(crate) fn with(&self, other: &Self) -> Self {
        let mut merged = self.clone();
        merged.0.extend(other.0.iter().map(|(field, values)| (field.clone(), values.clone())));
        merged
    }

    /// The runs that are named.
    pub(crate) fn runs(&self) -> Vec<String> {
        self.0.get("run").map(Values::words).unwrap_or_default()
    }
}

impl Table {
    /// The runs from which its figures come, in order.
    pub(crate) fn runs(&self) -> Vec<String> {
        let rows = self.row.iter().map(|row| &row.selection);
        let columns = self.column.iter().map(|column| &column.selection);
        let bases = self.column.iter().filter_map(|column| column.of.as_ref());
        let mut runs = Vec::new();
        for selection in std::iter::once(&self.selection).chain(rows).chain(columns).chain(bases) {
            for run in selection.runs() {
                if !runs.contains(&run) {
                    runs.push(run);
                }
            }
        }
        runs
    }
}

impl Manifest {
    /// Reads the manifests of the current folder.
    pub(crate) fn read() -> Result<Self, Fault> {
        let folder = fs::read_dir(FOLDER).map_err(|_| {
            Fault(format!("{FOLDER}: it is not there: start in the root of the repository"))
        })?;
        let mut paths: Vec<PathBuf> = folder.flatten().map(|entry| entry.path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        let pages: Result<Vec<Page>, Fault> = paths.iter().map(|path| parse(path)).collect();
        let manifest = Self { pages: pages? };
        manifest.validate()?;
        Ok(manifest)
    }

    /// All runs, in order.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.pages.iter().flat_map(|page| &page.run)
    }

    /// All tables, each with its page.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&Path, &Table)> {
        self.pages.iter().flat_map(|page| {
            page.table.iter().map(|table| (&**table.page.as_ref().unwrap_or(&page.path), table))
        })
    }

    fn validate(&self) -> Result<(), Fault> {
        let mut runs = HashSet::new();
        for run in self.runs() {
            if !run.id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
                return fault(format!("run `{}`: an id has letters, digits and `-` only", run.id));
            }
            if !runs.insert(&*run.id) {
                return fault(format!("run `{}`: two runs have this id: rename one", run.id));
            }
        }
        let mut tables = HashSet::new();
        for (_, table) in self.tables() {
            if !tables.insert(&*table.id) {
                return fault(format!("table `{}`: two tables have this id: rename one", table.id));
            }
            let named = table.runs();
            if let Some(run) = named.iter().find(|run| !runs.contains(&***run)) {
                return fault(format!("table `{}`: there is no run `{run}`", table.id));
            }
            if named.is_empty() {
                return fault(format!("table `{}`: it names no run: add `where.run`", table.id));
            }
        }
        Ok(())
    }
}

fn parse(path: &Path) -> Result<Page, Fault> {
    toml::from_str(&read(path)?).map_err(|error| Fault(format!("{}: {error}", path.display())))
}
