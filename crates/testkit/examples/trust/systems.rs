//! The figures of maps with versions, of the write buffer, of the store and of TPC-C.

use crate::count;
use crate::logs::{Logs, before, behind, plain, sum};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The tables.
pub(crate) fn tables(logs: &Logs) -> Result<String, String> {
    let parts = [counts(logs)?, kinds(logs)?, tpcc(logs)?];
    Ok(parts.map(|part| part.trim().to_owned()).join("\n\n"))
}

/// The count of each kind of run, and what it is called.
fn counts(logs: &Logs) -> Result<String, String> {
    let mut page = String::from("| job | run | figures |\n|---|---|---|\n");
    let mut row = |name: &str, run: &str, job: &str, figures: Figures| -> Result<(), String> {
        let cell = match logs.text(job)? {
            None => "skipped".to_owned(),
            Some(text) => figures(job, text)?,
        };
        let _ = writeln!(page, "| {name} | {run} | {cell} |");
        Ok(())
    };
    row("structures", "`verify` with four and eight threads", "verify.txt", recorded)?;
    row("maps with versions", "`verify --index versioned`", "versions.txt", recorded)?;
    row("write buffer", "tests", "memtable.txt", passed)?;
    row("write buffer", "losses of power", "memtable.txt", |job, text| {
        Ok(count(sum(job, "line `losses of power: N`", behind(text, "losses of power: "))?))
    })?;
    row("write buffer", "processes that were killed", "memtable.txt", |job, text| {
        let kills = sum(job, "line `kills: N`", behind(text, "kills: "))?;
        let batches = sum(job, "line `kills: N, batches: N`", behind(text, ", batches: "))?;
        Ok(format!("{}, with {} batches", count(kills), count(batches)))
    })?;
    row("write buffer", "schedules", "memtable-schedules.txt", schedules)?;
    row("store", "tests", "store.txt", passed)?;
    row("store", "processes that were killed", "store.txt", |job, text| {
        let kills = sum(job, "line `kills: N`", behind(text, "kills: "))?;
        Ok(count(kills))
    })?;
    row("store", "schedules", "store-schedules.txt", schedules)?;
    row("store", "`oracle.rs` with 30 000 cases", "store-oracle.txt", passed)?;
    row("store", "beside SQLite, redb and surrealmx", "databases.txt", passed)?;
    row("TPC-C", "tests", "tpcc.txt", passed)?;
    row("TPC-C", "losses of power", "tpcc.txt", |job, text| {
        const LINE: &str = "line `N losses of power: N acknowledged, N checkpoints`";
        let losses = sum(job, LINE, before(text, " losses of power: "))?;
        let transactions = sum(job, LINE, before(text, " acknowledged, "))?;
        let checkpoints = sum(job, LINE, before(text, " checkpoints"))?;
        Ok(format!(
            "{}, with {} acknowledged transactions and {} checkpoints",
            count(losses),
            count(transactions),
            count(checkpoints)
        ))
    })?;
    Ok(page)
}

/// The figures of a job's output.
type Figures = fn(&str, &str) -> Result<String, String>;

/// The summary of `silvics verify`: `N operations in N histories, N violations`.
fn recorded(job: &str, text: &str) -> Result<String, String> {
    const LINE: &str = "line `N operations in N histories`";
    let calls = sum(job, LINE, before(text, " operations in "))?;
    let histories = sum(job, LINE, behind(text, " operations in "))?;
    let wrong = sum(job, "number of violations", before(text, " violations"))?;
    let wrong = if wrong == 0 { String::new() } else { format!(", {wrong} WRONG") };
    Ok(format!("{} calls in {} histories{wrong}", count(calls), count(histories)))
}

/// The number of tests that have passed.
fn passed(job: &str, text: &str) -> Result<String, String> {
    Ok(format!("{} tests", sum(job, "test that passed", before(text, " passed; "))?))
}

/// The sum of the lines `schedules NAME SCENARIO random N pct N`.
fn schedules(job: &str, text: &str) -> Result<String, String> {
    let lines = || text.lines().map(plain).filter(|line| line.starts_with("schedules "));
    let numbers = lines().flat_map(str::split_whitespace).filter_map(|word| word.parse().ok());
    let played = sum(job, "line `schedules …`", numbers)?;
    Ok(format!("{} of {} programs", count(played), lines().count()))
}

/// The longest run of each kind of store: `POLICY over STRUCTURE: N committed, N aborted, N open`.
fn kinds(logs: &Logs) -> Result<String, String> {
    const JOB: &str = "store.txt";
    let mut kinds: BTreeMap<&str, [u64; 3]> = BTreeMap::new();
    for line in logs.text(JOB)?.unwrap_or_default().lines().map(plain) {
        let Some((kind, _)) = line.split_once(": ").filter(|(kind, _)| kind.contains(" over "))
        else {
            continue;
        };
        let figures = [" committed", " aborted", " open"].map(|word| before(line, word).next());
        if let [Some(committed), Some(aborted), Some(open)] = figures {
            let most = kinds.entry(kind).or_default();
            *most = (*most).max([committed, aborted, open]);
        }
    }
    if kinds.is_empty() {
        return Err(format!("{JOB}: its output has no histories of transactions"));
    }
    let mut page = String::from(
        "| histories of a store | committed | aborted attempts | open choices |\n|---|---|---|---|\n",
    );
    for (kind, [committed, aborted, open]) in kinds {
        let _ = writeln!(
            page,
            "| {} | {} | {} | {} |",
            kind.replace(" over ", " over `") + "`",
            count(committed),
            count(aborted),
            count(open)
        );
    }
    Ok(page)
}

/// The transactions of each policy that `silvics store tpcc check` has checked: the lines `map
/// POLICY: N KIND, N timed: …`.
fn tpcc(logs: &Logs) -> Result<String, String> {
    const JOB: &str = "tpcc-check.txt";
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for line in logs.text(JOB)?.unwrap_or_default().lines() {
        let Some((cell, rest)) =
            line.split_once(": ").filter(|(_, rest)| rest.contains(" timed: "))
        else {
            continue;
        };
        let number = rest.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
        *sums.entry(cell).or_default() += number.unwrap_or(0);
    }
    if sums.is_empty() {
        return Err(format!("{JOB}: its output has no transactions"));
    }
    let mut page =
        String::from("| TPC-C with a serial order, two warehouses | transactions |\n|---|---|\n");
    for (cell, sum) in sums {
        let (index, policy) = cell.split_once(' ').unwrap_or((cell, ""));
        let _ = writeln!(page, "| `{index}`, {policy} | {} |", count(sum));
    }
    Ok(page)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_from_what_the_jobs_print() {
        let summary =
            "| index | violations |\n\n1196699 operations in 221 histories, 0 violations; 2.0 s";
        assert_eq!(recorded("a", summary).unwrap(), "1 196 699 calls in 221 histories");
        let wrong = summary.replace(", 0", ", 3");
        assert_eq!(recorded("a", &wrong).unwrap(), "1 196 699 calls in 221 histories, 3 WRONG");
        let tests = "test result: ok. 12 passed; 0 failed\ntest result: ok. 3 passed; 0 failed";
        assert_eq!(passed("a", tests).unwrap(), "15 tests");
        let played = "test a ... schedules store:no-wait:words two-keys random 40 pct 60\nschedules \
                      store:no-wait durable random 10 pct 20\n";
        assert_eq!(schedules("a", played).unwrap(), "130 of 2 programs");
        assert!(schedules("a", tests).unwrap_err().starts_with("a: its output has no line"));
    }

    #[test]
    fn the_longest_histories_of_a_kind_are_shown() {
        let output = "test a ... no-wait over words: 40000 committed, 7 aborted, 0 open\n\
                      no-wait over words: 10000001 committed, 812 aborted, 3 open\n\
                      seed 3, after 4 calls, sync true\n";
        let logs = Logs::of(&[("store.txt", output)]);
        let table = kinds(&logs).unwrap();
        assert!(table.ends_with("| no-wait over `words` | 10 000 001 | 812 | 3 |\n"), "{table}");
        assert!(kinds(&Logs::of(&[("store.txt", "")])).is_err());
        let output = "map no-wait: aborted attempts by reason: row-locked 53783\n\
                      map no-wait: 320 DELIVERY, 14 timed: p50 26.66 us\n\
                      map no-wait: 3440 PAYMENT, 190 timed: p50 1.79 us\n";
        let table = tpcc(&Logs::of(&[("tpcc-check.txt", output)])).unwrap();
        assert!(table.ends_with("| `map`, no-wait | 3 760 |\n"), "{table}");
    }
}
