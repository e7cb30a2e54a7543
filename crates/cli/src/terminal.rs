//! The terminal: its width, and colours.
//!
//! # Width
//! If standard output is a terminal, tables fit its width ([`crate::table`]), unless the user gives
//! `--wide`. The environment variable `COLUMNS` overrides the width, also where the terminal does
//! not report one. It counts on a terminal only: what a pipe or a file gets is always whole.
//!
//! # Colour
//! Text is written with colours through `anstream`, which removes them where standard output or
//! standard error is no terminal, or where `NO_COLOR` is set. `--color` overrides that.

use crate::flags::error::Error;
use anstyle::{AnsiColor, Style};
use std::io::{self, IsTerminal};
use std::sync::OnceLock;

/// The style of `error:`.
pub const ERROR: Style = AnsiColor::Red.on_default().bold();
/// The style of `note:`.
pub const NOTE: Style = AnsiColor::Yellow.on_default();
/// The style of good news.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// The style of bad news.
pub const BAD: Style = AnsiColor::Red.on_default();
/// The style of the best row of a table.
pub const BEST: Style = Style::new().bold();

/// The least width for which a table is made narrower.
const LEAST: usize = 20;

/// The width of tables, once the flags are read. `None` if they are not limited.
static WIDTH: OnceLock<Option<usize>> = OnceLock::new();

/// Reads the flags for the terminal. `None` if standard output is no terminal.
pub fn set(wide: bool, color: &str) -> Result<(), Error> {
    let choice = match color {
        "auto" => anstream::ColorChoice::Auto,
        "always" => anstream::ColorChoice::Always,
        "never" => anstream::ColorChoice::Never,
        _ => {
            let problem = format!("`{color}` says not when to color: choose auto, always or never");
            return Err(Error::value("--color", problem));
        }
    };
    choice.write_global();
    let width = || width_of(std::env::var("COLUMNS").ok().as_deref(), measured());
    let limited = !wide && io::stdout().is_terminal();
    WIDTH.get_or_init(|| if limited { width() } else { None });
    Ok(())
}

/// The width that tables must fit, if there is one.
pub fn width() -> Option<usize> {
    WIDTH.get().copied().flatten()
}

/// The width of the terminal that standard output is.
fn measured() -> Option<usize> {
    terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0))
}

/// The width from the value of `COLUMNS` and that of the terminal. A value that is no number, and a
/// width of 0, which some terminals report, do not count.
fn width_of(columns: Option<&str>, measured: Option<usize>) -> Option<usize> {
    let columns = columns.and_then(|text| text.parse().ok()).filter(|&width| width > 0);
    columns.or(measured.filter(|&width| width > 0)).map(|width| width.max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_override_the_terminal() {
        assert_eq!(width_of(Some("100"), Some(80)), Some(100));
        assert_eq!(width_of(Some("many"), Some(80)), Some(80));
        assert_eq!(width_of(Some("0"), Some(80)), Some(80));
        assert_eq!(width_of(None, Some(0)), None);
        assert_eq!(width_of(Some("5"), None), Some(LEAST));
    }
}
