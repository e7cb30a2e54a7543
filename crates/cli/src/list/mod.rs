//! `silvics list`: the catalogue. With `--layout`, `layout` prints what each index allocates.

mod layout;

use crate::catalogue::{self, Entry};
use crate::flags::args::{Format, ListArgs};
use crate::flags::error::Error;
use crate::output;
use serde::Serialize;

#[derive(Serialize)]
struct Catalogue {
    indexes: Vec<Item>,
}

#[derive(Serialize)]
struct Item {
    name: &'static str,
    /// The crate it comes from.
    origin: &'static str,
    paper: &'static str,
    topology: &'static str,
    sync: &'static str,
    keys: Vec<&'static str>,
    ranges: Vec<&'static str>,
    variants: Vec<&'static str>,
    placements: Vec<&'static str>,
}

impl Item {
    fn of(entry: &'static Entry) -> Self {
        Self {
            name: &entry.name,
            origin: entry.origin,
            paper: entry.paper,
            topology: entry.topology,
            sync: entry.sync,
            keys: entry.keys(),
            ranges: entry.ranges(),
            variants: entry.variants.iter().map(|variant| variant.name).collect(),
            placements: entry.placements(),
        }
    }

    fn record(&self) -> Vec<String> {
        vec![
            self.name.into(),
            self.origin.into(),
            self.paper.into(),
            self.topology.into(),
            self.sync.into(),
            self.keys.join(" "),
            self.ranges.join(" "),
            self.variants.join(" "),
            self.placements.join(" "),
        ]
    }
}

const HEADER: &[&str] =
    &["name", "origin", "paper", "topology", "sync", "keys", "ranges", "variants", "placements"];

/// The columns that a narrow terminal does not show, the first ones first. The other columns fold.
const DROPPED: &[&str] = &["placements", "variants", "paper", "origin", "topology"];

/// Prints the catalogue.
pub fn list(args: &ListArgs) -> Result<(), Error> {
    let format = Format::parse(&args.format)?;
    if args.layout {
        return layout::list(format);
    }
    let indexes: Vec<Item> = catalogue::all().iter().map(Item::of).collect();
    match format {
        Format::Json => output::json(&Catalogue { indexes }),
        Format::Csv => output::csv(HEADER, indexes.iter().map(Item::record)),
        Format::Table => {
            let mut table = output::table(HEADER).drops(DROPPED);
            table.add_rows(indexes.iter().map(Item::record));
            output::text(&format!("{table}\n"))
        }
    }
}
