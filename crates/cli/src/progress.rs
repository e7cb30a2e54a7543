//! Progress and notes on standard error. The bar shows only on a terminal and leaves nothing
//! behind; standard output carries results alone.

use crate::terminal::NOTE;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar over the steps of a benchmark.
pub struct Progress(ProgressBar);

impl Progress {
    /// A bar of `steps` steps.
    pub fn new(steps: usize) -> Self {
        let bar = ProgressBar::new(steps as u64); // draws on stderr, hidden if that is no terminal
        if let Ok(style) = ProgressStyle::with_template("{bar:30} {pos}/{len}  {msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Says what is being done.
    pub fn doing(&self, what: impl Into<String>) {
        self.0.set_message(what.into());
    }

    /// One step is done.
    pub fn step(&self) {
        self.0.inc(1);
    }

    /// A line that stays.
    pub fn note(&self, text: &str) {
        self.0.suspend(|| note(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// Some lines on a terminal that are drawn over each other.
pub struct Live(ProgressBar);

impl Live {
    /// Nothing yet.
    pub fn new() -> Self {
        let bar = ProgressBar::new_spinner();
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        Self(bar)
    }

    /// Whether anybody can see it: whether standard error is a terminal.
    pub fn is_visible(&self) -> bool {
        !self.0.is_hidden()
    }

    /// Draws the lines.
    pub fn show(&self, lines: String) {
        self.0.set_message(lines); // this draws, at most 20 times a second
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

/// A line on standard error, outside of any progress.
pub fn note(text: &str) {
    anstream::eprintln!("{NOTE}note:{NOTE:#} {text}");
}
