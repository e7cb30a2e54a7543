//! The reasons why properties describe no workload.

use super::Origin;
use std::fmt;
use std::io;

/// The reason why properties describe no workload. Each message is one sentence: the property, its
/// place, and the remedy.
#[derive(Debug)]
#[non_exhaustive]
pub enum PropertyError {
    /// A file cannot be read.
    Io {
        /// The name of the file.
        file: String,
        /// The error of the system.
        error: io::Error,
    },
    /// A file is too large, has a zero byte, or is no UTF-8.
    NotText {
        /// The name of the file.
        file: String,
    },
    /// A `\u` is not followed by four hexadecimal digits, or is half of a pair.
    Escape {
        /// The place.
        origin: Origin,
    },
    /// An override is not `name=value`.
    Override {
        /// The text of the override.
        text: String,
    },
    /// A property that must be set is not.
    Missing {
        /// The name of the property.
        name: &'static str,
        /// An example of its value.
        example: &'static str,
    },
    /// The value of a property cannot be used.
    Value {
        /// The name of the property.
        name: &'static str,
        /// The value.
        value: String,
        /// The place.
        origin: Origin,
        /// The remedy: the values that can be used.
        remedy: String,
    },
    /// The proportions do not sum to 1.
    Proportions {
        /// The sum.
        sum: f64,
        /// The name, the value and the place of each proportion above 0.
        parts: Vec<(&'static str, f64, Origin)>,
    },
}

impl fmt::Display for PropertyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, error } => {
                write!(f, "{file} cannot be read ({error}): name a property file that can be read")
            }
            Self::NotText { file } => {
                write!(
                    f,
                    "{file} is larger than 1 MiB, or is not text in UTF-8: name a property file"
                )
            }
            Self::Escape { origin } => write!(
                f,
                "a `\\u` ({origin}) does not stand for a character: write four hexadecimal digits \
                 behind it, or a second backslash before it"
            ),
            Self::Override { text } => {
                write!(f, "`{text}` (-p) sets no property: write name=value")
            }
            Self::Missing { name, example } => {
                write!(f, "`{name}` is not set: write for example {name}={example}")
            }
            Self::Value { name, value, origin, remedy } => {
                write!(f, "`{name}={value}` ({origin}) cannot be used: {remedy}")
            }
            Self::Proportions { sum, parts } => {
                write!(f, "the proportions sum to {sum} instead of 1")?;
                for (at, (name, value, origin)) in parts.iter().enumerate() {
                    let before = if at == 0 { ", with " } else { " and " };
                    write!(f, "{before}{name}={value} ({origin})")?;
                }
                f.write_str(": change them, or set those that you do not need to 0")
            }
        }
    }
}

impl std::error::Error for PropertyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
