//! Evidence of facts and of the model.

use super::facts::Facts;
use super::model::Modelled;
use crate::drive::replayed::Misses;
use crate::reproduce::evidence::{Evidence, Expected, Unit};

/// Half, with a tolerance for the nodes that are there before the first row, and for the last page.
const HALF: f64 = 0.51;
/// The least regions of which a half can be told from a whole.
const REGIONS: usize = 4;
/// The tolerance of a share of pages.
const PAGES: f64 = 0.01;

/// The lines on the places of a tree's nodes, mixed and segregated.
pub fn of_nodes(tree: &str, [mixed, segregated]: [&Facts; 2]) -> Vec<Evidence> {
    let mut lines = vec![pages(tree, [mixed, segregated])];
    let what = format!("{tree}: regions of 2 MiB with nodes, segregated / mixed");
    let regions = [mixed, segregated].map(|facts| facts.regions);
    let few = format!("{} regions are too few: give it more --keys", mixed.regions);
    let line = part(what, regions, Expected::AtMost(HALF, 1.0));
    lines.push(line.unless((mixed.regions < REGIONS).then_some(few)));
    let what = format!("{tree}: mean run of neighbouring pages with nodes, segregated / mixed");
    let grown = segregated.run / mixed.run.max(f64::MIN_POSITIVE);
    let figures = format!("({:.1} → {:.1})", mixed.run, segregated.run);
    let line = Evidence::fact(what, Unit::Number(1), Expected::AtLeast(5.0, 1.0), grown);
    lines.push(line.with(&figures));
    lines
}

/// A line on a count in both places, as a part.
fn part(what: String, [before, after]: [usize; 2], expected: Expected) -> Evidence {
    let figures = format!("({before} → {after})");
    let part = after as f64 / before.max(1) as f64;
    Evidence::fact(what, Unit::Number(2), expected, part).with(&figures)
}

/// The pages with nodes. Without database objects in their size classes, nodes lie on as many pages
/// in both places. With some, the pages fall to the nodes' share of their classes.
pub fn pages(tree: &str, [mixed, segregated]: [&Facts; 2]) -> Evidence {
    let what = format!("{tree}: pages of 4 KiB with nodes, segregated / mixed");
    let pages = [mixed.pages, segregated.pages];
    if mixed.share <= HALF {
        return part(what, pages, Expected::AtMost(HALF, 1.0));
    }
    // The source gives no figure for such a tree.
    let line = part(what, pages, Expected::about(mixed.share, PAGES));
    line.with("as its nodes are most of their size class").aside()
}

/// The part of the misses that the source's figures imply.
const MISSES: Expected = Expected::AtMost(0.6, 1.0);

/// Misses of a transaction that are too few to say anything.
const FEW: f64 = 1.0;

/// The lines on translations, mixed and segregated.
pub fn of_model(tree: &str, [mixed, segregated]: [&Modelled; 2]) -> [Evidence; 2] {
    let line = |what: &str, of: fn(&Modelled) -> [Misses; 2]| {
        misses(&format!("{tree}: {what}"), of(mixed), of(segregated))
    };
    [line("4 KiB pages", |model| model.small), line("2 MiB pages", |model| model.huge)]
}

/// A line on walks of the page table, which processors report as TLB misses.
fn misses(what: &str, mixed: [Misses; 2], segregated: [Misses; 2]) -> Evidence {
    let what = format!("{what}: TLB misses of a transaction, segregated / mixed");
    let in_tree = [mixed[0].walks, segregated[0].walks];
    let [mixed, segregated] = [mixed, segregated].map(|[index, rows]| index.and(rows));
    let part = segregated.walks / mixed.walks.max(f64::MIN_POSITIVE);
    let figures = format!(
        "({:.1} → {:.1}, in the tree {:.1} → {:.1}; of the first level alone {:.1} → {:.1})",
        mixed.walks, segregated.walks, in_tree[0], in_tree[1], mixed.tlb, segregated.tlb
    );
    let line = Evidence::model(what, Unit::Number(2), MISSES, part).with(&figures);
    let few = "the translations hold the whole database: give it more --keys";
    line.unless((mixed.walks < FEW).then(|| few.into()))
}
