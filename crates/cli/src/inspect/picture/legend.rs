//! Kinds, with their colours.

use super::super::report::Kind;
use super::svg::{Canvas, KIND_COLOURS};
use silvics_layout::NodeLayout;

/// What there is to say of kinds beside a picture.
pub struct Legend {
    /// Names and what they stand for, in the order of colours.
    kinds: Vec<(String, String)>,
}

impl Legend {
    /// Of the kinds of a report, of which the index describes `objects`.
    pub fn new(kinds: &[Kind], objects: &[NodeLayout]) -> Self {
        let entry = |kind: &Kind| {
            let layout = objects.iter().find(|layout| layout.kind == kind.name);
            (kind.name.clone(), what(kind, layout))
        };
        Self { kinds: kinds.iter().map(entry).collect() }
    }

    /// The colour of a kind.
    pub fn colour(&self, kind: &str) -> usize {
        let number = self.kinds.iter().position(|(name, _)| name == kind);
        number.map_or(KIND_COLOURS - 1, |number| number.min(KIND_COLOURS - 1))
    }

    /// Entries of the kinds with these names.
    pub fn draw(&self, canvas: &mut Canvas, names: &[&str]) {
        for (name, what) in self.kinds.iter().filter(|(name, _)| names.contains(&name.as_str())) {
            let colour = self.colour(name);
            let samples = [format!("k{colour}"), format!("r{colour}")];
            let read = if what.contains(NOT_READ) { 1 } else { 2 };
            let samples: Vec<&str> = samples.iter().take(read).map(String::as_str).collect();
            canvas.entry(&samples, &format!("{name}: {what}"));
        }
    }
}

const NOT_READ: &str = "searches read nothing of it";

/// Its size, and which parts searches read.
fn what(kind: &Kind, layout: Option<&NodeLayout>) -> String {
    let bytes = format!("{:.0} bytes", kind.bytes);
    match layout {
        _ if kind.hot_bytes == 0.0 => format!("{bytes}; {NOT_READ}"),
        Some(layout) => {
            let mut fields: Vec<&str> = layout.search.iter().map(|field| field.name).collect();
            fields.dedup();
            format!(
                "{bytes}; a search reads {:.0} of them, in the stronger colour: {}",
                kind.hot_bytes,
                fields.join(", ")
            )
        }
        None => format!("{bytes}, of the program around the index; counted as read whole"),
    }
}
