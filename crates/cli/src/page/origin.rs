//! The origin of a page: its date, its command, and the build of that.

use crate::host::machine::Machine;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The date and the command line of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The date and the time of its start.
    pub date: String,
    /// The command line, as a shell takes it.
    pub command: String,
}

impl Run {
    /// This process.
    pub fn this() -> Self {
        Self { date: START.get_or_init(now).clone(), command: command() }
    }
}

/// The date and the time at which this process began.
static START: OnceLock<String> = OnceLock::new();

/// Notes that this process begins.
pub fn begin() {
    START.get_or_init(now);
}

/// The facts about the origin of a page, by name. `parts` are the runs that were collected, if the
/// figures come from parts of a campaign.
pub fn facts(machine: &Machine, parts: &[Run]) -> Vec<(&'static str, String)> {
    let build = match machine.commit {
        Some(commit) => format!("silvics {}, commit {commit}", machine.silvics),
        None => format!("silvics {}", machine.silvics),
    };
    let mut facts = vec![("Machine", machine.to_string()), ("Build", build)];
    let here = Run::this();
    let Some(first) = parts.first() else {
        facts.extend([("Date", here.date), ("Command", here.command)]);
        return facts;
    };
    let dates = || parts.iter().map(|run| &run.date);
    let mut date = dates().min().cloned().unwrap_or_default();
    if let Some(last) = dates().max().filter(|last| **last != date) {
        date = format!("parts began from {date} to {last}");
    }
    let mut command = first.command.clone();
    if parts.len() > 1 {
        command.push_str(" (other parts: another --shard and --out)");
    }
    let collected = format!("{} by {}", now(), here.command);
    facts.extend([("Date", date), ("Command", command), ("Collected", collected)]);
    facts
}

/// The command line of this process, as a shell takes it.
fn command() -> String {
    let arguments = std::env::args_os().skip(1);
    let arguments = arguments.map(|argument| quoted(&argument.to_string_lossy()));
    std::iter::once("silvics".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// An argument, in quotes if a shell would change it.
fn quoted(argument: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:,=+%@".contains(c);
    if !argument.is_empty() && argument.chars().all(is_plain) {
        return argument.into();
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// The present date and time.
fn now() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    time(now.as_secs())
}

/// A number of seconds since the start of 1970, as a date and a time.
fn time(seconds: u64) -> String {
    let (mut days, minutes) = (seconds / 86_400, seconds / 60 % 1440);
    let is_leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    format!("{year}-{month:02}-{:02} {:02}:{:02} UTC", days + 1, minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_where_a_shell_needs_it() {
        let shown = ["90/5/5,100/0/0", "a b", "", "it's", "$x"].map(quoted);
        assert_eq!(shown, ["90/5/5,100/0/0", "'a b'", "''", r"'it'\''s'", "'$x'"]);
    }

    /// A page of parts showed the date and the command of `collect` as those of the measurement.
    #[test]
    fn a_measurement_in_parts_has_its_own_date_and_command() {
        let run = |date: &str, shard: &str| Run {
            date: date.into(),
            command: format!("silvics bench --shard {shard}"),
        };
        let parts = [run("2026-01-02 00:00 UTC", "1/2"), run("2026-01-01 00:00 UTC", "2/2")];
        let of = |parts: &[Run], name: &str| {
            let facts = facts(&Machine::this(1), parts);
            facts.into_iter().find(|(of, _)| *of == name).map(|(_, text)| text)
        };
        let all = of(&parts, "Date").unwrap();
        assert_eq!(all, "parts began from 2026-01-01 00:00 UTC to 2026-01-02 00:00 UTC");
        assert!(of(&parts, "Command").unwrap().starts_with("silvics bench --shard 1/2 (other"));
        assert_eq!(of(&parts[..1], "Command").unwrap(), "silvics bench --shard 1/2");
        assert_eq!(of(&parts[..1], "Date").unwrap(), "2026-01-02 00:00 UTC");
        let collected = of(&parts, "Collected").unwrap();
        assert!(collected.ends_with(&format!(" by {}", command())), "{collected}");
        assert_eq!((of(&[], "Collected"), of(&[], "Command")), (None, Some(command())));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, date) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_399, "2000-02-28 23:59 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (951_868_800, "2000-03-01 00:00 UTC"),
            (1_735_689_599, "2024-12-31 23:59 UTC"),
            (1_735_689_600, "2025-01-01 00:00 UTC"),
            (4_107_542_400, "2100-03-01 00:00 UTC"),
        ] {
            assert_eq!(time(seconds), date);
        }
    }
}
