//! Values of flags.

use crate::flags::error::Error;
use crate::flags::units;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The most threads that a flag can ask for.
pub const THREADS_MAX: usize = 4096;

/// The items of a comma-separated list, each once. `read` reads an item, or says what is wrong with
/// it.
pub fn list<T: PartialEq>(
    flag: &'static str,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<Vec<T>, Error> {
    let mut items = Vec::new();
    for item in text.split(',') {
        let item = single(flag, item, &read)?;
        if !items.contains(&item) {
            items.push(item);
        }
    }
    Ok(items)
}

pub fn single<T>(
    flag: &'static str,
    text: &str,
    read: impl Fn(&str) -> Result<T, String>,
) -> Result<T, Error> {
    read(text).map_err(|problem| Error::value(flag, problem))
}

pub fn parse<T: FromStr<Err: fmt::Display>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// The item with a name. The error says which one is close, or names all.
pub fn named<T: Copy, const N: usize>(
    text: &str,
    kind: &str,
    all: [T; N],
    name: fn(T) -> &'static str,
) -> Result<T, String> {
    if let Some(&found) = all.iter().find(|&&item| name(item) == text) {
        return Ok(found);
    }
    let names = all.map(name);
    let distances = names.iter().map(|name| (strsim::damerau_levenshtein(text, name), name));
    let close = distances.min().filter(|&(distance, _)| distance <= 3 && distance < text.len());
    let remedy = match close {
        Some((_, name)) => format!("did you mean `{name}`?"),
        None => format!("choose from {}", names.join(", ")),
    };
    Err(format!("`{text}` is not {kind}: {remedy}"))
}

pub fn number(text: &str, least: usize, most: usize) -> Result<usize, String> {
    match units::parse_count(text) {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(format!(
            "`{text}` is not a whole number from {least} to {most}: write for example {}",
            if most > 100_000 { "100k" } else { "2" }
        )),
    }
}

pub fn seconds(text: &str) -> Result<Duration, String> {
    let number: Option<f64> = text.parse().ok();
    match number {
        Some(number) if (0.001..=86_400.0).contains(&number) => Ok(Duration::from_secs_f64(number)),
        _ => Err(format!(
            "`{text}` is not a number of seconds from 0.001 to 86400: write for example 0.5"
        )),
    }
}

pub fn seed(text: &str) -> Result<u64, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not a whole number below 2^64: write for example 1"))
}
