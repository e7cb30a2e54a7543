//! `silvics list --layout`: the objects that each build allocates, as its code describes them.

use crate::catalogue::{self, Entry, Variant};
use crate::flags::args::Format;
use crate::flags::error::Error;
use crate::output;
use serde::Serialize;
use silvics_layout::{NodeLayout, study_class};

/// The line of a cache.
const LINE: usize = 64;

#[derive(Serialize)]
struct Layouts {
    builds: Vec<Layout>,
}

/// One build of one index; the figures are those of the kind that a search passes through.
#[derive(Serialize)]
struct Layout {
    name: &'static str,
    build: &'static str,
    node_bytes: usize,
    class: usize,
    hot_bytes: usize,
    lines_per_visit: f64,
    oversights: &'static [&'static str],
    kinds: Vec<Object>,
}

/// A kind of object.
#[derive(Serialize)]
struct Object {
    kind: &'static str,
    /// The bytes of an object, or of the smallest object if there are several sizes.
    bytes: usize,
    align: usize,
    /// The size class in the allocator of the study.
    class: usize,
    /// The bytes that searches read.
    hot_bytes: usize,
    /// The lines of 64 bytes that one visit touches, on average over the objects of a pool, which
    /// lie end to end.
    lines_per_visit: f64,
    /// The lines of 64 bytes that one visit touches, on average over objects that lie as far apart
    /// as their size class.
    lines_per_visit_in_class: f64,
    /// Pointers that a search may follow.
    edges: usize,
}

impl Object {
    fn of(layout: &NodeLayout) -> Self {
        let class = study_class(layout.size);
        Self {
            kind: layout.kind,
            bytes: layout.size,
            align: layout.align,
            class,
            hot_bytes: layout.hot_bytes(),
            lines_per_visit: layout.lines_per_visit(layout.size, LINE),
            lines_per_visit_in_class: layout.lines_per_visit(class, LINE),
            edges: layout.edges(),
        }
    }

    fn record(&self) -> Vec<String> {
        vec![
            self.kind.into(),
            self.bytes.to_string(),
            self.class.to_string(),
            self.hot_bytes.to_string(),
            self.lines_per_visit.to_string(),
            self.lines_per_visit_in_class.to_string(),
        ]
    }
}

impl Layout {
    fn of(entry: &'static Entry, variant: &'static Variant) -> Option<Self> {
        let kinds: Vec<Object> = variant.objects.iter().map(Object::of).collect();
        let node = kinds.first()?;
        Some(Self {
            name: &entry.name,
            build: variant.name,
            node_bytes: node.bytes,
            class: node.class,
            hot_bytes: node.hot_bytes,
            lines_per_visit: node.lines_per_visit,
            oversights: variant.oversights,
            kinds,
        })
    }

    /// A record per kind.
    fn records(&self) -> impl Iterator<Item = Vec<String>> {
        self.kinds.iter().map(|kind| {
            let mut record = vec![self.name.into(), self.build.into()];
            record.extend(kind.record());
            record.push(self.oversights.join(", "));
            record
        })
    }
}

const HEADER: &[&str] = &[
    "name",
    "build",
    "kind",
    "bytes",
    "class",
    "hot bytes",
    "lines/visit",
    "in class",
    "oversights",
];

/// Prints the layouts.
pub fn list(format: Format) -> Result<(), Error> {
    let builds: Vec<Layout> = catalogue::all()
        .iter()
        .flat_map(|entry| entry.variants.iter().filter_map(|variant| Layout::of(entry, variant)))
        .collect();
    let records = || builds.iter().flat_map(Layout::records);
    match format {
        Format::Csv => output::csv(HEADER, records()),
        Format::Table => {
            let mut table = output::table(HEADER).drops(&["in class", "hot bytes", "class"]);
            table.add_rows(records());
            output::text(&format!("{table}\n"))
        }
        Format::Json => output::json(&Layouts { builds }),
    }
}
