//! The origin of a page: its date, its command, and the build of that.

use crate::host::machine::Machine;
use std::time::{SystemTime, UNIX_EPOCH};

/// The facts about the origin of a page, by name.
pub fn facts(machine: &Machine) -> Vec<(&'static str, String)> {
    let build = match machine.commit {
        Some(commit) => format!("silvics {}, commit {commit}", machine.silvics),
        None => format!("silvics {}", machine.silvics),
    };
    vec![
        ("Machine", machine.to_string()),
        ("Build", build),
        ("Date", now()),
        ("Command", command()),
    ]
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
