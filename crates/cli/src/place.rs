//! Where the nodes of our indexes live, as the command line names it.

use crate::error::Error;
use crate::flags::list;
use silvics::Pages;

/// Where the nodes of our indexes live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Pools on these pages.
    Pooled(Pages),
    /// The global allocator, on whatever pages it has.
    Shared,
}

impl Place {
    /// The placement's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pooled(_) => "pooled",
            Self::Shared => "shared",
        }
    }

    /// The pages' name.
    pub fn pages(self) -> String {
        match self {
            Self::Pooled(pages) => pages.to_string(),
            Self::Shared => SYSTEM_PAGES.into(),
        }
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
        _ => Err(format!("`{text}` is no placement: choose pooled or shared")),
    })?;
    let places: Vec<Place> = places.concat();
    Ok(places)
}
