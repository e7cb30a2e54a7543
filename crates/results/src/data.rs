//! The kept output of a run: docs/results/data/ID.json.

use crate::fault::{Fault, fault, read, write};
use crate::manifest::Format;
use crate::page::tables_of;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The folder of the kept output.
pub(crate) const FOLDER: &str = "docs/results/data";

/// Fields and their values. Fields of nested objects are named `mops.median`.
pub(crate) type Record = serde_json::Map<String, Value>;

/// When, where and how a run was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Stamp {
    pub(crate) command: String,
    pub(crate) commit: String,
    pub(crate) date: String,
    pub(crate) machine: String,
    pub(crate) seconds: u64,
    /// The share of the machine that other programs used before the run.
    pub(crate) busy: f64,
    pub(crate) trial: bool,
}

/// A run's output.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Data {
    pub(crate) stamp: Stamp,
    /// The fields that all records share.
    common: Record,
    records: Vec<Record>,
    /// The contenders that were left out, each with the reason.
    #[serde(default)]
    pub(crate) left_out: Vec<String>,
    /// The lines of the output, if it is text.
    pub(crate) text: Vec<String>,
}

/// Fields of the JSON that no table needs: they would make up half of the data.
const DROPPED: [&str; 16] = [
    "aborts",
    "kinds",
    "memory",
    "model",
    "cell",
    "variant",
    "cpu_share",
    "cpu_mops",
    "cpu_ratio",
    "ratio_to_first",
    "lookups",
    "hits",
    "scanned",
    "pages_given",
    "bytes_source",
    "key_space",
];

impl Data {
    /// Makes records of what a command printed.
    pub(crate) fn of(stamp: Stamp, format: Format, output: &str) -> Result<Self, Fault> {
        if let Some(line) = output.lines().find(|line| line.starts_with("skipped")) {
            return fault(format!("the command did not run: {line}"));
        }
        let lines = || output.trim().lines().map(str::to_owned).collect();
        let (records, left_out, text) = match format {
            Format::Json => {
                let (records, left_out) = of_json(output)?;
                (records, left_out, Vec::new())
            }
            Format::Text => (of_tables(output), Vec::new(), lines()),
        };
        if records.is_empty() && text.is_empty() {
            return fault("the command printed nothing");
        }
        let (common, records) = hoist(records);
        Ok(Self { stamp, common, records, left_out, text })
    }

    /// The records, whole.
    pub(crate) fn records(&self) -> impl Iterator<Item = Record> {
        self.records.iter().map(|record| {
            let mut whole = self.common.clone();
            whole.extend(record.clone());
            whole
        })
    }

    /// Reads the data of a run. `None` if there is none.
    pub(crate) fn read(folder: &Path, id: &str) -> Result<Option<Self>, Fault> {
        let path = path(folder, id);
        if !path.exists() {
            return Ok(None);
        }
        let parsed = serde_json::from_str(&read(&path)?);
        parsed.map(Some).map_err(|error| {
            Fault(format!("{}: it is damaged: delete it, and run again: {error}", path.display()))
        })
    }

    /// Writes the data of a run, one record a line.
    pub(crate) fn write(&self, folder: &Path, id: &str) -> Result<(), Fault> {
        let lines = |items: Vec<String>| {
            if items.is_empty() { String::new() } else { format!("\n{}\n", items.join(",\n")) }
        };
        let text = format!(
            "{{\n\"stamp\": {},\n\"common\": {},\n\"records\": [{}],\n\"left_out\": {},\n\"text\": [{}]\n}}\n",
            json(&self.stamp),
            json(&self.common),
            lines(self.records.iter().map(json).collect()),
            json(&self.left_out),
            lines(self.text.iter().map(json).collect()),
        );
        std::fs::create_dir_all(folder)
            .map_err(|error| Fault(format!("{}: {error}", folder.display())))?;
        write(&path(folder, id), &text)
    }
}

/// The file of a run.
pub(crate) fn path(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.json"))
}

fn json<T: Serialize + ?Sized>(value: &T) -> String {
    serde_json::to_string(value).expect("maps with names as keys have a form in JSON")
}

/// The records of an output, and the contenders that were left out.
fn of_json(output: &str) -> Result<(Vec<Record>, Vec<String>), Fault> {
    let whole: Value = serde_json::from_str(output)
        .map_err(|error| Fault(format!("the command printed no JSON: {error}")))?;
    if whole["interrupted"] == Value::Bool(true) {
        return fault("the command was interrupted");
    }
    if let Some(error) = whole["stopped"].as_str() {
        return fault(format!("the command stopped: {error}"));
    }
    let left_out = whole["left_out"].as_array().into_iter().flatten();
    let left_out = left_out.filter_map(Value::as_str).map(str::to_owned).collect();
    let mut records = Vec::new();
    for part in ["results", "loads", "builds"] {
        for item in whole[part].as_array().into_iter().flatten() {
            let mut record = Record::new();
            record.insert("part".into(), part.into());
            flatten("", item, &mut record);
            records.push(record);
        }
    }
    for best in whole["best"].as_array().into_iter().flatten() {
        let mut record = Record::new();
        record.insert("part".into(), "best".into());
        flatten("", row_of(&whole, best)?, &mut record);
        records.push(record);
    }
    if records.is_empty() {
        return fault("the JSON of the command has no results");
    }
    Ok((records, left_out))
}

/// The row of a contender of a store with its best number of threads.
fn row_of<'a>(whole: &'a Value, best: &Value) -> Result<&'a Value, Fault> {
    let is_same = |row: &&Value| {
        let mixed = if row["mixed"] == Value::Bool(true) { ", mixed" } else { "" };
        let text = |field: &str| row[field].as_str().unwrap_or_default();
        let place = format!("{} {}{mixed}", text("placement"), text("pages"));
        best["placement"] == place
            && ["index", "policy", "row_layout", "threads"]
                .iter()
                .all(|name| row[*name] == best[*name])
    };
    let row = whole["results"].as_array().into_iter().flatten().find(is_same);
    row.ok_or_else(|| Fault(format!("the JSON of the command has no row of its best: {best}")))
}

fn flatten(name: &str, value: &Value, record: &mut Record) {
    if DROPPED.contains(&name) {
        return;
    }
    match value {
        Value::Null => {}
        Value::Object(fields) => {
            for (field, value) in fields {
                let dot = if name.is_empty() { "" } else { "." };
                flatten(&format!("{name}{dot}{field}"), value, record);
            }
        }
        Value::Array(items) => {
            record.insert(name.into(), items.iter().map(rounded).collect());
        }
        value => {
            record.insert(name.into(), rounded(value));
        }
    }
}

/// Five digits of a number: more mean nothing, and take space.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => {
            let text = format!("{:.4e}", number.as_f64().unwrap_or_default());
            text.parse::<f64>().map_or(Value::Null, Value::from)
        }
        value => value.clone(),
    }
}

/// The rows of the Markdown tables of a text. The name of a field is the head of its column, and
/// that of the first column is `row`. `table` is the number of the table. Other lines become
/// records if they end in two spaces and a number, which is the field `value`.
fn of_tables(output: &str) -> Vec<Record> {
    let lines: Vec<&str> = output.lines().collect();
    let mut records = Vec::new();
    for (number, table) in tables_of(&lines).into_iter().enumerate() {
        let rows: Vec<Vec<&str>> = lines[table].iter().map(|line| cells(line)).collect();
        for row in rows.iter().skip(2) {
            let mut record = Record::new();
            record.insert("part".into(), "results".into());
            record.insert("table".into(), number.into());
            for (at, cell) in row.iter().enumerate() {
                let head = rows[0].get(at).copied().unwrap_or_default();
                let name = if at == 0 { "row" } else { head };
                record.insert(name.into(), figure(cell).unwrap_or_else(|| (*cell).into()));
            }
            records.push(record);
        }
    }
    let figures = lines.iter().filter_map(|line| {
        let (row, number) = line.trim().rsplit_once("  ")?;
        Some((row.trim_end(), number.trim().parse::<f64>().ok()?))
    });
    for (row, number) in figures {
        let mut record = Record::new();
        record.insert("part".into(), "results".into());
        record.insert("row".into(), row.into());
        record.insert("value".into(), number.into());
        records.push(record);
    }
    records
}

/// The cells of a row.
pub(crate) fn cells(line: &str) -> Vec<&str> {
    let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
    inner.split('|').map(str::trim).collect()
}

/// The number of a cell that has nothing else.
fn figure(cell: &str) -> Option<Value> {
    let whole = cell.parse::<i64>().ok().map(Value::from);
    whole.or_else(|| cell.parse::<f64>().ok().map(Value::from))
}

/// Takes the fields that all records share out of them.
fn hoist(mut records: Vec<Record>) -> (Record, Vec<Record>) {
    let Some(first) = records.first() else { return (Record::new(), records) };
    let shared = |(field, value): &(&String, &Value)| {
        records.len() > 1 && records.iter().all(|record| record.get(*field) == Some(value))
    };
    let common: Record =
        first.iter().filter(shared).map(|(field, value)| (field.clone(), value.clone())).collect();
    for record in &mut records {
        record.retain(|field, _| !common.contains_key(field));
    }
    (common, records)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn stamp(commit: &str) -> Stamp {
        Stamp {
            command: "cargo run --release -- bench".into(),
            commit: commit.into(),
            date: "2026-12-01".into(),
            machine: "2 cores".into(),
            seconds: 1,
            busy: 0.0,
            trial: false,
        }
    }

    #[test]
    fn json_becomes_records_that_survive_a_file() {
        let output = r#"{"results": [
            {"index": "a", "threads": 2, "cell": 0, "mops": {"median": 1.234567, "low": 1.0}, "x": null},
            {"index": "b", "threads": 2, "samples": [1.5, 2.5]}],
            "loads": [{"index": "a", "threads": 1}], "interrupted": false, "stopped": null,
            "left_out": ["`peer:c` lost a key"]}"#;
        let data = Data::of(stamp("c"), Format::Json, output).unwrap();
        let folder = tempfile::tempdir().unwrap();
        data.write(folder.path(), "id").unwrap();
        let data = Data::read(folder.path(), "id").unwrap().unwrap();
        let records: Vec<Record> = data.records().collect();
        assert_eq!(records.len(), 3);
        assert_eq!(records[0]["mops.median"], 1.2346);
        assert_eq!(records[0]["threads"], 2);
        assert_eq!(records[1]["samples"][1], 2.5);
        assert_eq!(records[2]["part"], "loads");
        assert_eq!(data.left_out, ["`peer:c` lost a key"]);
        assert!(!records[0].contains_key("cell") && !records[0].contains_key("x"));
        assert!(Data::read(folder.path(), "other").unwrap().is_none());
    }

    #[test]
    fn an_interrupted_or_empty_output_is_refused() {
        let refused = |format, output| Data::of(stamp("c"), format, output).unwrap_err().0;
        let interrupted = r#"{"results": [], "interrupted": true}"#;
        assert_eq!(refused(Format::Json, interrupted), "the command was interrupted");
        let stopped = r#"{"results": [{"index": "a"}], "stopped": "no memory"}"#;
        assert_eq!(refused(Format::Json, stopped), "the command stopped: no memory");
        assert!(refused(Format::Json, r#"{"results": []}"#).contains("no results"));
        assert!(refused(Format::Json, "{").contains("no JSON"));
        assert!(refused(Format::Text, "\n").contains("nothing"));
        let skipped = refused(Format::Text, "skipped: RocksDB is missing (apt-get install …)");
        assert!(skipped.contains("the command did not run: skipped: RocksDB"), "{skipped}");
    }

    #[test]
    fn rows_of_tables_become_records() {
        let output = "a rank     3.40\n\n| pattern | threads | malloc |\n|---|---|---|\n| `lifo` | 1 | 2.93 |\n";
        let data = Data::of(stamp("c"), Format::Text, output).unwrap();
        let records: Vec<Record> = data.records().collect();
        assert_eq!(records[0]["row"], "`lifo`");
        assert_eq!(records[0]["malloc"], 2.93);
        assert_eq!(records[0]["table"], 0);
        assert_eq!(data.text.len(), 5);
        assert_eq!(records[1]["row"], "a rank");
        assert_eq!(records[1]["value"], 3.4);
    }
}
