//! The facts in which two runs may differ.

use super::machine::Cache;
use serde::Deserialize;
use serde_json::Value;

/// The facts about a machine that change figures, by their names in reports.
pub const FIGURES: [&str; 12] = [
    "cpu",
    "cores",
    "caches",
    "memory_bytes",
    "os",
    "kernel",
    "arch",
    "thp",
    "hugetlb_pages",
    "clock",
    "allocator",
    "build",
];

/// The text of a fact.
pub fn shown(fact: &Value) -> String {
    let text = |name: &str| fact.get(name).and_then(Value::as_str);
    match fact {
        Value::Null => "nothing".into(),
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        Value::Object(_) => match (text("path"), text("digest")) {
            (Some(path), Some(digest)) => format!("`{path}` with the digest {digest}"),
            (Some(path), None) => format!("`{path}`"),
            _ => Cache::deserialize(fact).map_or(fact.to_string(), |cache| cache.to_string()),
        },
        other => other.to_string(),
    }
}
