//! The verbs of history files, and the values of their lines.

use super::{Kind, TraceKey, bad_key, same_kind};
use crate::history::Op;
use crate::linearizable::ordered::{EndVerb, OrderedOp};
use serde_json::Value;

/// The verb of a call: the field `f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Get,
    TryInsert,
    Insert,
    Remove,
    Put,
    Delete,
    CompareExchange,
    End(EndVerb),
    CollectRange,
    UpdateRange,
}

impl Verb {
    pub(super) const NAMES: [&'static str; 13] = [
        "get",
        "try_insert",
        "insert",
        "remove",
        "put",
        "delete",
        "compare_exchange",
        "first",
        "last",
        "pop_first",
        "pop_last",
        "collect_range",
        "update_range",
    ];

    pub(super) fn of(name: &str) -> Option<Self> {
        Some(match name {
            "get" => Self::Get,
            "try_insert" => Self::TryInsert,
            "insert" => Self::Insert,
            "remove" => Self::Remove,
            "put" => Self::Put,
            "delete" => Self::Delete,
            "compare_exchange" => Self::CompareExchange,
            "collect_range" => Self::CollectRange,
            "update_range" => Self::UpdateRange,
            _ => Self::End(EndVerb::ALL.into_iter().find(|verb| verb.name() == name)?),
        })
    }

    pub(super) fn is_of(self, op: &OrderedOp<TraceKey>) -> bool {
        match op {
            OrderedOp::End { verb, .. } => self == Self::End(*verb),
            OrderedOp::Range { mask: 0, .. } => self == Self::CollectRange,
            OrderedOp::Range { .. } => self == Self::UpdateRange,
            OrderedOp::Point { op, .. } => matches!(
                (self, op),
                (Self::Get, Op::Get { .. })
                    | (Self::TryInsert, Op::TryInsert { .. })
                    | (Self::Insert, Op::Insert { .. })
                    | (Self::Remove, Op::Remove { .. })
                    | (Self::Put, Op::Put { .. })
                    | (Self::Delete, Op::Delete)
                    | (Self::CompareExchange, Op::CompareExchange { .. })
            ),
        }
    }

    /// Whether a call concerns no single key.
    pub(super) fn has_no_key(self) -> bool {
        matches!(self, Self::End(_) | Self::CollectRange | Self::UpdateRange)
    }

    /// The call on a range as invoked.
    fn range(self, value: &Value, words: &mut Option<bool>) -> Result<OrderedOp<TraceKey>, String> {
        let wanted =
            if self == Self::CollectRange { "[first, last]" } else { "[first, last, mask]" };
        let parts = value.as_array().map(Vec::as_slice);
        let (low, high, mask) = match (parts, self) {
            (Some([low, high]), Self::CollectRange) => (low, high, 0),
            (Some([low, high, mask]), Self::UpdateRange) => (low, high, word(mask)?),
            _ => return Err(format!("{value} is not {wanted}")),
        };
        if mask == 0 && self == Self::UpdateRange {
            return Err("the mask is 0, so the call changes nothing: use collect_range".into());
        }
        let mut key = |key: &Value| {
            let key = TraceKey::of(key).ok_or_else(|| bad_key(key))?;
            same_kind(&key, words).map(|()| key)
        };
        Ok(OrderedOp::Range { low: key(low)?, high: key(high)?, mask, found: Vec::new() })
    }

    /// The call as invoked. It has no answer yet; in its place stands that of a call which took
    /// effect.
    pub(super) fn op(
        self,
        key: Option<TraceKey>,
        value: &Value,
        words: &mut Option<bool>,
    ) -> Result<OrderedOp<TraceKey>, String> {
        let takes_nothing = matches!(self, Self::End(_) | Self::Get | Self::Remove | Self::Delete);
        if takes_nothing && !value.is_null() {
            return Err(format!("{value} is not null: this operation takes no value"));
        }
        let op = match self {
            Self::End(verb) => {
                return Ok(OrderedOp::End { verb, found: Some((TraceKey::Word(0), 0)) });
            }
            Self::CollectRange | Self::UpdateRange => return self.range(value, words),
            Self::Get => Op::Get { found: None },
            Self::TryInsert => Op::TryInsert { value: word(value)?, outcome: Ok(()) },
            Self::Insert => Op::Insert { value: word(value)?, old: None },
            Self::Remove => Op::Remove { old: Some(0) },
            Self::Put => Op::Put { value: word(value)? },
            Self::Delete => Op::Delete,
            Self::CompareExchange => match value.as_array().map(Vec::as_slice) {
                Some([expected, new]) => {
                    let (expected, new) = (state(expected)?, state(new)?);
                    Op::CompareExchange { expected, new, outcome: Ok(()) }
                }
                _ => return Err(format!("{value} is not [expected, new]")),
            },
        };
        key.map(|key| OrderedOp::Point { key, op }).ok_or_else(|| "the key is missing".into())
    }

    /// The call with its answer.
    pub(super) fn completed(
        self,
        invoked: &OrderedOp<TraceKey>,
        (kind, value): (Kind, &Value),
        words: &mut Option<bool>,
    ) -> Result<OrderedOp<TraceKey>, String> {
        let ok = kind == Kind::Ok;
        match invoked {
            OrderedOp::End { verb, .. } if ok => {
                let found = entry(value)?;
                if let Some((key, _)) = &found {
                    same_kind(key, words)?;
                }
                Ok(OrderedOp::End { verb: *verb, found })
            }
            OrderedOp::Point { key, op } => {
                let op = match *op {
                    Op::Get { .. } if ok => Op::Get { found: state(value)? },
                    Op::Insert { value: new, .. } if ok => {
                        Op::Insert { value: new, old: state(value)? }
                    }
                    Op::Remove { .. } if ok => Op::Remove { old: state(value)? },
                    Op::Put { .. } | Op::Delete if ok => none::<()>(value).map(|_| *op)?,
                    Op::TryInsert { value: new, .. } => {
                        let outcome = if ok { none(value)? } else { Err(word(value)?) };
                        Op::TryInsert { value: new, outcome }
                    }
                    Op::CompareExchange { expected, new, .. } => {
                        let outcome = if ok { none(value)? } else { Err(state(value)?) };
                        Op::CompareExchange { expected, new, outcome }
                    }
                    _ => return Err(self.cannot_fail()),
                };
                Ok(OrderedOp::Point { key: key.clone(), op })
            }
            OrderedOp::Range { low, high, mask, .. } if ok => {
                let entries = value.as_array().ok_or("the value is no list of [key, value]")?;
                let mut found = Vec::with_capacity(entries.len());
                for value in entries {
                    let entry = entry(value)?.ok_or("null is not [key, value]")?;
                    same_kind(&entry.0, words)?;
                    found.push(entry);
                }
                Ok(OrderedOp::Range { low: low.clone(), high: high.clone(), mask: *mask, found })
            }
            OrderedOp::End { .. } | OrderedOp::Range { .. } => Err(self.cannot_fail()),
        }
    }

    fn cannot_fail(self) -> String {
        let name = Self::NAMES.into_iter().find(|name| Self::of(name) == Some(self));
        format!("`{}` has no type fail: it completes with ok or info", name.unwrap_or_default())
    }
}

fn word(value: &Value) -> Result<u64, String> {
    value.as_u64().ok_or_else(|| format!("{value} is not a value: write a whole number below 2^64"))
}

fn state(value: &Value) -> Result<Option<u64>, String> {
    if value.is_null() { Ok(None) } else { word(value).map(Some) }
}

/// The answer of a success without a value.
fn none<E>(value: &Value) -> Result<Result<(), E>, String> {
    if value.is_null() { Ok(Ok(())) } else { Err(format!("{value} is not null")) }
}

fn entry(value: &Value) -> Result<Option<(TraceKey, u64)>, String> {
    match value.as_array().map(Vec::as_slice) {
        None if value.is_null() => Ok(None),
        Some([key, value]) => {
            let key = TraceKey::of(key).ok_or_else(|| bad_key(key))?;
            Ok(Some((key, word(value)?)))
        }
        _ => Err(format!("{value} is not [key, value]")),
    }
}
