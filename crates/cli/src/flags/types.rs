//! The types of keys and values that the command line names.

use std::fmt;

/// A type of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyType {
    /// 64-bit words.
    U64,
    /// 128-bit numbers.
    U128,
    /// Byte strings.
    Bytes,
    /// Text: a map holds it as `String`, an index as bytes.
    String,
}

impl KeyType {
    /// The types that an index can be asked for; text is bytes to it.
    pub const OF_INDEXES: [Self; 3] = [Self::U64, Self::U128, Self::Bytes];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::U64 => "u64",
            Self::U128 => "u128",
            Self::Bytes => "bytes",
            Self::String => "string",
        }
    }

    /// Reads its name.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "u64" => Ok(Self::U64),
            "u128" => Ok(Self::U128),
            "bytes" => Ok(Self::Bytes),
            "string" => Ok(Self::String),
            _ => Err(format!("`{text}` is not a type of keys: choose u64, u128, bytes or string")),
        }
    }

    /// Reads the name of a type that indexes take.
    pub fn of_indexes(text: &str) -> Result<Self, String> {
        match Self::parse(text) {
            Ok(Self::String) => {
                Err("`string` is for maps, which `silvics bench` measures: choose bytes".into())
            }
            Err(_) => Err(format!("`{text}` is not a type of keys: choose u64, u128 or bytes")),
            other => other,
        }
    }
}

impl fmt::Display for KeyType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::U64 => "u64",
            Self::U128 => "u128",
            Self::Bytes => "byte",
            Self::String => "string",
        })
    }
}

/// A type of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueType {
    /// 64-bit words.
    U64,
    /// Reference-counted bytes, `Arc<[u8]>`. Only maps hold them.
    Arc,
}

impl ValueType {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::U64 => "u64",
            Self::Arc => "arc",
        }
    }

    /// Reads its name.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "u64" => Ok(Self::U64),
            "arc" => Ok(Self::Arc),
            _ => Err(format!("`{text}` is not a type of values: choose u64 or arc")),
        }
    }
}

/// The types of the keys and values that a contender holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types {
    pub key: KeyType,
    pub value: ValueType,
}

impl Types {
    /// Keys of a type, with words as values.
    pub const fn words(key: KeyType) -> Self {
        Self { key, value: ValueType::U64 }
    }
}
