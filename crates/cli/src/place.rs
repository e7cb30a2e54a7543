//! Where the nodes of our indexes live, as the command line names it.

use crate::error::Error;
use crate::flags::list;
use silvics::{Heap, Options, Pages, SizeClassHeap};
use std::sync::Arc;

/// Where the nodes of our indexes live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Pools on these pages.
    Pooled(Pages),
    /// The global allocator, on whatever pages it has.
    Shared,
    /// A size-class heap of the index's own, on these pages.
    SizeClass(Pages),
}

impl Place {
    /// The placement's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pooled(_) => "pooled",
            Self::Shared => "shared",
            Self::SizeClass(_) => "size-class",
        }
    }

    /// The pages' name.
    pub fn pages(self) -> String {
        match self {
            Self::Pooled(pages) | Self::SizeClass(pages) => pages.to_string(),
            Self::Shared => SYSTEM_PAGES.into(),
        }
    }
}

impl Place {
    /// How an index is set up that lives there.
    pub fn options(self, memory_limit: Option<usize>) -> Options {
        let (pages, heap): (_, Option<Arc<dyn Heap>>) = match self {
            Self::Pooled(pages) => (pages, None),
            Self::Shared => (Pages::Small, None),
            Self::SizeClass(pages) => (pages, Some(Arc::new(SizeClassHeap::new(pages)))),
        };
        Options { pages, memory_limit, domain: None, heap }
    }
}

/// The pages of whoever does not ask for any.
pub const SYSTEM_PAGES: &str = "system";

/// Reads `--placement` and `--pages`.
pub fn read(placement: &str, pages: &str) -> Result<Vec<Place>, Error> {
    let pages = list("--pages", pages, |text| match text {
        "4k" => Ok(Pages::Small),
        "thp" => Ok(Pages::Thp),
        "hugetlb" => Ok(Pages::HugeTlb),
        _ => Err(format!("`{text}` are no pages: choose 4k, thp or hugetlb")),
    })?;
    // The global allocator has the pages it has: one cell, whatever pages pools have.
    let places = list("--placement", placement, |text| match text {
        "pooled" => Ok(pages.iter().copied().map(Place::Pooled).collect()),
        "shared" => Ok(vec![Place::Shared]),
        "size-class" => Ok(pages.iter().copied().map(Place::SizeClass).collect()),
        _ => Err(format!("`{text}` is no placement: choose pooled, shared or size-class")),
    })?;
    let places: Vec<Place> = places.concat();
    Ok(places)
}
