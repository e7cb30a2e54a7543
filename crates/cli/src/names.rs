//! Names that reports contain, read again from a file.
//!
//! Reports hold the names that the command itself prints as `&'static str`. A report that is read
//! from a file has the same few names, so each is kept once, for the life of the process.

use serde::{Deserialize, Deserializer};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// A name. Fields have this type by its name, because `serde` would borrow a `&'static str` from
/// the text that it reads.
pub type Name = &'static str;

/// All names that were read so far.
static KNOWN: Mutex<BTreeSet<Name>> = Mutex::new(BTreeSet::new());

/// The name, for the life of the process.
pub fn known(name: &str) -> Name {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(name) {
        return found;
    }
    let name: Name = String::from(name).leak();
    known.insert(name);
    name
}

/// Reads a name.
pub fn one<'de, D: Deserializer<'de>>(from: D) -> Result<Name, D::Error> {
    String::deserialize(from).map(|name| known(&name))
}

/// Reads a name that may be missing.
pub fn maybe<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Name>, D::Error> {
    Option::<String>::deserialize(from).map(|name| name.as_deref().map(known))
}

/// Reads texts by name, which may be missing.
pub fn keys<'de, D: Deserializer<'de>>(
    from: D,
) -> Result<Option<BTreeMap<Name, String>>, D::Error> {
    let read = Option::<BTreeMap<String, String>>::deserialize(from)?;
    let named = |all: BTreeMap<String, String>| {
        all.into_iter().map(|(name, text)| (known(&name), text)).collect()
    };
    Ok(read.map(named))
}

#[cfg(test)]
mod tests {
    use super::known;

    #[test]
    fn a_name_is_kept_once() {
        let (first, again) = (known("once"), known("once"));
        assert!(std::ptr::eq(first, again));
        assert_eq!(known("another"), "another");
    }
}
