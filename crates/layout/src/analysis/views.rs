//! Views of memory for pictures: a window of lines, the sets of a cache, the pages.
//!
//! # Source
//! Arbel-Raviv, Brown and Morrison, USENIX ATC 2018. Their Figure 3 draws lines with the nodes in
//! them, and Figures 6 and 7 the pages that contain nodes. Their closing question asks how kinds
//! spread over sets.

mod pages;
mod sets;
mod window;

pub use pages::{PageCell, PageMap, PageRow};
pub use sets::SetMap;
pub use window::{Pair, Part, Window};

/// The most columns of a map.
const COLUMNS: usize = 64;

#[cfg(test)]
mod tests {
    use crate::{Census, Field, NodeLayout};

    const HOT: &[Field] = &[Field::new("key", 0, 8), Field::links("children", 8, 2)];
    pub(super) const fn layout(
        kind: &'static str,
        size: usize,
        search: &'static [Field],
    ) -> NodeLayout {
        NodeLayout { kind, size, align: 8, search, found: &[] }
    }
    pub(super) static NODE: NodeLayout = layout("node", 64, HOT);
    pub(super) static SLIM: NodeLayout = layout("slim", 48, HOT);
    pub(super) static COLD: NodeLayout = layout("descriptor", 64, &[]);
    pub(super) const START: usize = 1 << 30;

    /// A census of blocks of these layouts in turns, each adjacent to the previous one.
    pub(super) fn in_turns(layouts: &[&'static NodeLayout], rounds: usize) -> Census {
        let (mut census, mut address) = (Census::default(), START);
        for _ in 0..rounds {
            for layout in layouts {
                census.add(layout, address);
                address += layout.size;
            }
        }
        census
    }
}
