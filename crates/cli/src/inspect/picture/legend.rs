//! Kinds, with their colours.

use super::super::render::Names;
use super::super::report::{Kind, Report};
use super::Whose;
use crate::svg::{Canvas, KIND_COLOURS};
use std::collections::HashMap;

/// The legend of kinds beside a picture.
pub struct Legend<'a> {
    /// The names of the kinds.
    pub names: Names<'a>,
    /// The owner of the objects.
    pub whose: Whose,
    /// The kinds, in the order of their colours.
    kinds: HashMap<&'a str, (usize, &'a Kind)>,
}

/// The colour of all kinds without a colour of their own.
const OTHERS: usize = KIND_COLOURS - 1;
/// The most such kinds that are named.
const NAMED: usize = 8;

impl<'a> Legend<'a> {
    /// The legend of a report's kinds. The kinds of `first` get colours of their own before others.
    pub fn new(report: &'a Report, first: &[&'a Kind], whose: Whose) -> Self {
        let mut kinds: Vec<&Kind> = report.kinds.iter().collect();
        kinds.sort_by_key(|kind| !first.iter().any(|first| first.name == kind.name));
        let kinds = kinds.into_iter().enumerate();
        Self {
            names: Names::new(report),
            whose,
            kinds: kinds.map(|(number, kind)| (kind.name.as_str(), (number, kind))).collect(),
        }
    }

    /// The colour of a kind.
    pub fn colour(&self, kind: &str) -> usize {
        self.kinds.get(kind).map_or(OTHERS, |(number, _)| (*number).min(OTHERS))
    }

    /// Draws entries of the kinds with these names: one for each colour.
    pub fn draw(&self, canvas: &mut Canvas, names: &[&str]) {
        let mut kinds: Vec<(usize, &Kind)> =
            names.iter().filter_map(|name| self.kinds.get(name)).copied().collect();
        kinds.sort_by_key(|(number, _)| *number);
        kinds.dedup_by_key(|(number, _)| *number);
        let own = kinds.partition_point(|(number, _)| *number < OTHERS);
        let (own, others) = kinds.split_at(if kinds.len() == own + 1 { own + 1 } else { own });
        for (number, kind) in own {
            let text = format!("{}: {}", self.names.long(&kind.name), what(kind, self.whose));
            entry(canvas, (*number).min(OTHERS), &[kind], &text);
        }
        if !others.is_empty() {
            let kinds: Vec<&Kind> = others.iter().map(|(_, kind)| *kind).collect();
            let named = kinds.iter().take(NAMED).map(|kind| self.names.short(&kind.name));
            let named = named.collect::<Vec<_>>().join(", ");
            let more = if kinds.len() > NAMED { ", …" } else { "" };
            entry(canvas, OTHERS, &kinds, &format!("{} other kinds: {named}{more}", kinds.len()));
        }
    }
}

/// Draws an entry with samples of these kinds as the picture shows them.
fn entry(canvas: &mut Canvas, colour: usize, kinds: &[&Kind], text: &str) {
    let unread = kinds.iter().any(|kind| kind.hot_bytes < kind.bytes);
    let read = kinds.iter().any(|kind| kind.hot_bytes > 0.0);
    let samples = [(unread, format!("k{colour}")), (read, format!("r{colour}"))];
    let samples: Vec<&str> =
        samples.iter().filter(|(seen, _)| *seen).map(|(_, class)| class.as_str()).collect();
    canvas.entry(&samples, text);
}

/// The size of a kind's objects, and the parts that searches read.
fn what(kind: &Kind, whose: Whose) -> String {
    let mean = if kind.bytes_min < kind.bytes_max { " on average" } else { "" };
    let bytes = format!("{:.0} bytes{mean}", kind.bytes);
    let reads =
        format!("{bytes}; a search reads {:.0} of them, in the stronger colour", kind.hot_bytes);
    let layout = match whose {
        Whose::Index(layouts) => layouts.iter().find(|layout| layout.kind == kind.name),
        Whose::Program => None,
    };
    match (layout, whose) {
        _ if kind.hot_bytes == 0.0 => format!("{bytes}; searches read nothing of it"),
        (Some(layout), _) => {
            let mut fields: Vec<&str> = layout.search.iter().map(|field| field.name).collect();
            fields.dedup();
            format!("{reads}: {}", fields.join(", "))
        }
        (None, Whose::Index(_)) => {
            format!("{bytes}, of the program around the index; counted as read whole")
        }
        (None, Whose::Program) if kind.hot_bytes < kind.bytes => reads,
        (None, Whose::Program) => format!("{bytes}; counted as read whole"),
    }
}
