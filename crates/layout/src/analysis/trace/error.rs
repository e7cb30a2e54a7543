//! The reasons why a trace cannot be used.

use std::fmt;
use std::io;

/// The reason why a trace cannot be used. Each message continues a sentence that begins with the
/// file's name.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be read any further.
    Io {
        /// The line that was being read, counted from 1.
        line: u64,
        /// The system's error.
        error: io::Error,
    },
    /// A line has no known meaning.
    Line {
        /// The number of the line, counted from 1.
        line: u64,
        /// The fault of the line.
        fault: LineFault,
    },
    /// The trace allocates no object of a byte or more.
    Empty,
}

/// The fault of a line of a trace. Messages quote at most 40 characters of a word.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LineFault {
    /// The line has none of the forms of a line.
    Form,
    /// The line begins with `kind`, but is no known declaration.
    Declaration,
    /// A word that should be an address is none.
    Address {
        /// The word.
        word: String,
    },
    /// A word that should be a number of bytes is none.
    Number {
        /// The word.
        word: String,
    },
    /// The bytes reach beyond the last address.
    Beyond {
        /// The start of the bytes.
        start: usize,
        /// The number of bytes.
        bytes: usize,
    },
    /// The word cannot name a kind.
    Reserved {
        /// The word.
        word: String,
    },
    /// The name of the kind is not UTF-8.
    NotText {
        /// The name, with its invalid parts replaced.
        word: String,
    },
    /// The short word already stands for another kind.
    Taken {
        /// The short word.
        word: String,
        /// The kind for which it stands.
        kind: String,
    },
    /// The line is longer than any line of a trace.
    TooLong {
        /// The limit in bytes.
        limit: usize,
    },
}

/// At most 40 characters of a word, without control characters.
fn quoted(word: &[u8]) -> String {
    String::from_utf8_lossy(word).escape_debug().take(40).collect()
}

impl LineFault {
    pub(super) fn address(word: &[u8]) -> Self {
        Self::Address { word: quoted(word) }
    }

    pub(super) fn number(word: &[u8]) -> Self {
        Self::Number { word: quoted(word) }
    }

    pub(super) fn reserved(word: &[u8]) -> Self {
        Self::Reserved { word: quoted(word) }
    }

    pub(super) fn not_text(word: &[u8]) -> Self {
        Self::NotText { word: quoted(word) }
    }

    pub(super) fn taken(word: &[u8], kind: &str) -> Self {
        Self::Taken { word: quoted(word), kind: quoted(kind.as_bytes()) }
    }
}

impl fmt::Display for LineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => write!(
                f,
                "is not a line of a trace: write `KIND ADDRESS SIZE`, `- ADDRESS`, `kind NAME …` or \
                 `# comment`"
            ),
            Self::Declaration => write!(
                f,
                "declares nothing: write `kind NAME hot OFFSET BYTES` or `kind NAME short WORD`"
            ),
            Self::Address { word } => write!(
                f,
                "has `{word}` where an address belongs: write it in hex with 0x, \
                 of at most {} bits",
                usize::BITS
            ),
            Self::Number { word } => write!(
                f,
                "has `{word}` where a number of bytes belongs: write it in decimal, at most {}",
                usize::MAX
            ),
            Self::Beyond { start, bytes } => write!(
                f,
                "has {bytes} bytes from {start:#x}, which reach beyond the last address: write \
                 smaller ones"
            ),
            Self::Reserved { word } => write!(
                f,
                "calls a kind `{word}`, which begins lines of another form: choose another word"
            ),
            Self::NotText { word } => {
                write!(f, "calls a kind `{word}`, which is not UTF-8: write names in UTF-8")
            }
            Self::Taken { word, kind } => write!(
                f,
                "makes `{word}` short for a second kind beside `{kind}`: choose another word"
            ),
            Self::TooLong { limit } => {
                write!(f, "has more than {limit} bytes: name a trace, and keep its lines short")
            }
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { line: 1, error } => {
                write!(f, "cannot be read ({error}): name a file that can")
            }
            Self::Io { line, error } => {
                write!(f, "cannot be read beyond line {} ({error}): copy it anew", line - 1)
            }
            Self::Line { line, fault } => write!(f, "line {line} {fault}"),
            Self::Empty => write!(
                f,
                "has no objects: name a trace with at least one line `KIND ADDRESS SIZE` of a byte \
                 or more"
            ),
        }
    }
}

impl std::error::Error for TraceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
