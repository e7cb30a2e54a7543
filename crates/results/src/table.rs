//! The text of a table: what stands in its region of a page.

use crate::data::{Stamp, cells};
use crate::fault::{Fault, fault};
use crate::manifest::{Column, Row, Selection, Show, Table, Value, Values};
use crate::page::tables_of;
use crate::select::{Runs, figure, records, word};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The share of the machine from which on a table mentions the programs that use it.
pub(crate) const BUSY: f64 = 0.1;

/// The width of prose.
const WIDTH: usize = 100;

/// The region of a table: commands, tables, and where they were measured.
pub(crate) fn render(table: &Table, runs: &Runs) -> Result<String, Fault> {
    let at = |fault: Fault| Fault(format!("table `{}`: {fault}", table.id));
    let ids = table.runs();
    let stamps: Vec<&Stamp> = ids.iter().map(|id| &runs[id].stamp).collect();
    let mut text = String::new();
    if table.commands {
        text.push_str(&commands(&stamps));
    }
    if table.verbatim || table.take.is_some() {
        for id in &ids {
            text.push_str(&taken(table, &runs[id].text).map_err(at)?);
        }
    } else {
        text.push_str(&grids(table, runs).map_err(at)?);
    }
    for line in ids.iter().flat_map(|id| &runs[id].left_out) {
        let line = format!("Left out: {line}.");
        writeln!(text, "{}\n", wrapped(&line, WIDTH).join("\n")).expect("a string");
    }
    text.push_str(&stamped(&stamps));
    if !table.commands {
        let runs = format!("<!-- The runs: {} -->", ids.join(", "));
        writeln!(text, "\n{}", wrapped(&runs, WIDTH).join("\n")).expect("a string");
    }
    Ok(text)
}

/// The commands, in lines that fit.
fn commands(stamps: &[&Stamp]) -> String {
    let mut text = String::from("```sh\n");
    for stamp in stamps {
        let lines = wrapped(&stamp.command, WIDTH - 6);
        writeln!(text, "{}", lines.join(" \\\n    ")).expect("a string");
    }
    text + "```\n\n"
}

/// The commit, the date and the machine.
fn stamped(stamps: &[&Stamp]) -> String {
    let mut places: BTreeMap<(String, &str), Vec<&str>> = BTreeMap::new();
    for stamp in stamps {
        let commit = short(&stamp.commit);
        let trial = if stamp.trial { ", as a trial" } else { "" };
        let beside = if stamp.busy > BUSY { ", beside other programs" } else { "" };
        let place = (format!("`{commit}`{trial}{beside}"), &*stamp.machine);
        places.entry(place).or_default().push(&stamp.date);
    }
    let mut text = String::new();
    for ((commit, machine), mut dates) in places {
        dates.sort_unstable();
        dates.dedup();
        let line = format!("Measured at {commit} on {}, on {machine}.", dates.join(" and "));
        writeln!(text, "{}", wrapped(&line, WIDTH).join("\n")).expect("a string");
    }
    text
}

/// The first letters of a commit.
pub(crate) fn short(commit: &str) -> &str {
    &commit[..commit.len().min(8)]
}

/// Lines of whole words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("there is one");
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.into());
        } else {
            let space = if line.is_empty() { "" } else { " " };
            write!(line, "{space}{word}").expect("a string");
        }
    }
    lines
}

/// Tables of the output, or the output.
fn taken(table: &Table, lines: &[String]) -> Result<String, Fault> {
    if table.verbatim {
        return Ok(format!("```text\n{}\n```\n\n", lines.join("\n")));
    }
    let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
    let found = tables_of(&lines);
    let numbers = table.take.clone().unwrap_or_default();
    let numbers = if numbers.is_empty() { (0..found.len()).collect() } else { numbers };
    if numbers.is_empty() {
        return fault("the output has no table");
    }
    let mut text = String::new();
    for number in numbers {
        let Some(range) = found.get(number) else {
            return fault(format!("the output has {} tables, and not table {number}", found.len()));
        };
        text.push_str(&lines[range.clone()].join("\n"));
        text.push_str("\n\n");
    }
    Ok(text)
}

fn grids(table: &Table, runs: &Runs) -> Result<String, Fault> {
    let Some(each) = &table.each else { return grid(table, runs, &table.selection) };
    let mut text = String::new();
    for value in distinct(runs, &table.selection, each)? {
        let only = with(&table.selection, each, &value);
        let heading = table.heading.as_deref().unwrap_or("{}").replace("{}", &value);
        write!(text, "### {heading}\n\n{}", grid(table, runs, &only)?).expect("a string");
    }
    Ok(text)
}

/// The values of a field, in the order of the records.
fn distinct(runs: &Runs, selection: &Selection, field: &str) -> Result<Vec<String>, Fault> {
    let mut values = Vec::new();
    for record in records(runs, selection)? {
        if let Some(value) = record.get(field).map(word)
            && !values.contains(&value)
        {
            values.push(value);
        }
    }
    if values.is_empty() { fault(format!("no record has the field `{field}`")) } else { Ok(values) }
}

fn with(selection: &Selection, field: &str, value: &str) -> Selection {
    let mut more = selection.clone();
    more.0.insert(field.into(), Values::One(Value::Word(value.into())));
    more
}

fn grid(table: &Table, runs: &Runs, selection: &Selection) -> Result<String, Fault> {
    let mut rows = table.row.clone();
    if let Some(field) = &table.rows_by {
        for value in distinct(runs, selection, field)? {
            let only = with(&Selection::default(), field, &value);
            let label = format!("`{value}`");
            rows.push(Row { label, selection: only, field: None, bars: Vec::new(), scale: None });
        }
    }
    let body: Result<Vec<Vec<String>>, Fault> =
        rows.iter().map(|row| line(table, runs, selection, row)).collect();
    let body = body?;
    for (at, column) in table.column.iter().enumerate() {
        if column.show != Show::Bar && body.iter().all(|cells| cells[at] == "–") {
            return fault(format!("the column `{}` selects nothing", column.head));
        }
    }
    let heads = table.column.iter().map(|column| &*column.head);
    let mut text = format!("| {} | {} |\n|", table.head, heads.collect::<Vec<_>>().join(" | "));
    text += &"---|".repeat(table.column.len() + 1);
    for (row, cells) in rows.iter().zip(body) {
        write!(text, "\n| {} | {} |", row.label, cells.join(" | ")).expect("a string");
    }
    Ok(text + "\n\n")
}

/// The cells of a row. A row whose selections find nothing is a mistake in the manifest.
fn line(
    table: &Table,
    runs: &Runs,
    selection: &Selection,
    row: &Row,
) -> Result<Vec<String>, Fault> {
    let mut bars = row.bars.iter();
    let mut last = None;
    let mut line = Vec::new();
    for column in &table.column {
        if column.show == Show::Bar {
            let bar = bars.next().map_or("", |bar| bar);
            line.push(match last {
                _ if bar.is_empty() => String::new(),
                Some(figure) => crate::select::Figure::beside(figure, bar)?,
                None => format!("{bar}, not measured"),
            });
            continue;
        }
        let chosen = selection.with(&row.selection).with(&column.selection);
        if column.show == Show::Word {
            line.push(of_words(runs, &chosen, column)?);
            continue;
        }
        let Some(field) = column.field.as_ref().or(row.field.as_ref()) else {
            return fault(format!("neither the column `{}` nor its row has a field", column.head));
        };
        last = figure(runs, &chosen, field, column.of.as_ref())?
            .map(|figure| figure.scaled(column.scale.or(row.scale).unwrap_or(1.0)));
        line.push(last.map_or("–".into(), |figure| figure.text(column.show)));
    }
    if line.iter().zip(&table.column).all(|(cell, column)| column.show == Show::Bar || cell == "–")
    {
        return fault(format!("the row `{}` selects nothing", row.label));
    }
    Ok(line)
}

fn of_words(runs: &Runs, selection: &Selection, column: &Column) -> Result<String, Fault> {
    let field = column.field.as_deref().unwrap_or_default();
    let found = records(runs, selection)?;
    Ok(found.first().and_then(|record| record.get(field)).map_or("–".into(), word))
}

/// Whether a Markdown table has a column of figures, the first column aside: more than half of its
/// cells begin with a digit and have no long words.
pub(crate) fn has_figures(lines: &[&str]) -> bool {
    let rows: Vec<Vec<&str>> = lines.iter().skip(2).map(|line| cells(line)).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    (1..columns).any(|column| {
        let filled: Vec<&str> = rows
            .iter()
            .filter_map(|row| row.get(column).copied())
            .filter(|cell| !cell.is_empty() && *cell != "–")
            .collect();
        let figures = filled.iter().filter(|cell| is_figure(cell)).count();
        figures > 0 && figures * 2 > filled.len()
    })
}

fn is_figure(cell: &str) -> bool {
    let bare = cell.trim_start_matches(['≥', '≤', '~', '+', '−', '-', ' ']);
    bare.starts_with(|first: char| first.is_ascii_digit())
        && bare.split_whitespace().filter(|word| word.chars().all(char::is_alphabetic)).count() <= 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::Data;
    use crate::data::tests::stamp;
    use crate::manifest::{Format, Page};

    fn rendered(manifest: &str) -> Result<String, Fault> {
        let output = r#"{"results": [
            {"index": "peer", "mix": "100/0/0", "pages": "system", "mops": {"median": 1.0, "low": 0.9, "high": 1.1}},
            {"index": "map", "mix": "100/0/0", "pages": "thp", "mops": {"median": 2.0, "low": 1.5, "high": 2.5}},
            {"index": "map", "mix": "0/50/50", "pages": "thp", "mops": {"median": 3.0, "low": 2, "high": 4}}]}"#;
        let text =
            "| call | ns |\n|---|---|\n| get | 5 |\n\nthen\n\n| x | y |\n|---|---|\n| z | 6 |";
        let runs = Runs::from([
            ("r".to_owned(), Data::of(stamp("0123456789"), Format::Json, output)?),
            ("t".to_owned(), Data::of(stamp("0123456789"), Format::Text, text)?),
        ]);
        let page: Page = toml::from_str(&format!("page = 'p.md'\n{manifest}")).unwrap();
        render(&page.table[0], &runs)
    }

    #[test]
    fn a_table_has_commands_rows_and_a_stamp() {
        let text = rendered(
            "[[table]]\nid = 't'\nhead = 'index'\nwhere = { run = 'r' }\neach = 'mix'\n\
             heading = 'Mix {}'\nrows_by = 'index'\n\
             column = [{ head = 'pages', field = 'pages', show = 'word' },
                       { head = 'Mops/s', field = 'mops' }]",
        )
        .unwrap();
        assert_eq!(
            text,
            "```sh\ncargo run --release -- bench\n```\n\n\
             ### Mix 100/0/0\n\n| index | pages | Mops/s |\n|---|---|---|\n\
             | `peer` | system | 1.00 |\n| `map` | thp | 2.00 |\n\n\
             ### Mix 0/50/50\n\n| index | pages | Mops/s |\n|---|---|---|\n| `map` | thp | 3.00 |\n\n\
             Measured at `01234567` on 2026-12-01, on 2 cores.\n"
        );
    }

    #[test]
    fn bars_stand_beside_the_figures_that_they_judge() {
        let text = rendered(
            "[[table]]\nid = 't'\nhead = ''\nwhere = { run = 'r', mix = '100/0/0' }\ncommands = false\n\
             row = [{ label = 'the map', where = { index = 'map' }, bars = ['≥ 2.5'] },
                    { label = 'the peer', where = { index = 'peer' } }]\n\
             column = [{ head = 'M/s', field = 'mops' }, { head = 'bar', show = 'bar' }]",
        )
        .unwrap();
        assert!(
            text.ends_with("on 2 cores.\n\n<!-- The runs: r -->\n")
                && text.contains("| the map | 2.00 | ≥ 2.5, missed |\n| the peer | 1.00 |  |"),
            "{text}"
        );
    }

    #[test]
    fn tables_of_the_output_are_taken_as_they_are() {
        let text = rendered("[[table]]\nid = 't'\nwhere = { run = 't' }\ntake = [1]\n").unwrap();
        assert!(text.contains("\n| x | y |\n|---|---|\n| z | 6 |\n\nMeasured"), "{text}");
        assert!(!text.contains("get"));
        let fault =
            rendered("[[table]]\nid = 't'\nwhere = { run = 't' }\ntake = [2]\n").unwrap_err();
        assert_eq!(fault.0, "table `t`: the output has 2 tables, and not table 2");
        let text =
            rendered("[[table]]\nid = 't'\nwhere = { run = 't' }\nverbatim = true\n").unwrap();
        assert!(text.contains("```text\n| call | ns |"), "{text}");
    }

    #[test]
    fn a_row_or_column_that_selects_nothing_is_a_mistake() {
        let with = |row: &str, column: &str| {
            let manifest = format!(
                "[[table]]\nid = 't'\nwhere = {{ run = 'r' }}\nrow = [{{ label = 'a', where = {{ \
                 index = 'peer' }} }}, {row}]\ncolumn = [{{ head = 'x', field = 'mops' }}, {column}]"
            );
            rendered(&manifest).unwrap_err().0
        };
        let good = "{ head = 'y', field = 'mops' }";
        assert!(with("{ label = 'b', where = { index = 'typo' } }", good).contains("row `b`"));
        let column = "{ head = 'y', field = 'mopps' }";
        assert!(with("{ label = 'b', where = { index = 'map' } }", column).contains("column `y`"));
    }

    #[test]
    fn figures_are_told_from_words() {
        let table = |cells: &[&str]| {
            let rows = cells.iter().map(|cell| format!("| a | {cell} |"));
            let lines: Vec<String> =
                ["| x | y |".into(), "|---|---|".into()].into_iter().chain(rows).collect();
            has_figures(&lines.iter().map(|line| &**line).collect::<Vec<_>>())
        };
        assert!(table(&["1.5", "≥ 2", "–"]) && table(&["0.22 s", "12 % – 14 %"]));
        assert!(!table(&["a word", "1.5", "words"]) && !table(&["", "–"]));
        assert!(!table(&["64 blocks that are kept in order", "no"]));
    }
}
