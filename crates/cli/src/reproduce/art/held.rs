//! The memory of a tree, and the pages that it lies on.

use super::Keys;
use super::curve::inspection;
use crate::flags::error::Error;
use crate::host::memory::{self, Resident};
use crate::inspect::built::Built;
use crate::reproduce::lab::Lab;
use silvics::Pages;
use silvics_layout::Level;
use silvics_pool::{HUGE_PAGE, SMALL_PAGE};
use std::collections::HashSet;

/// The memory of a tree.
pub struct Held {
    /// The number of nodes of each kind.
    pub kinds: Vec<(String, usize)>,
    /// The bytes of the nodes, and those that the tree holds from the system.
    pub bytes: usize,
    pub memory: usize,
    /// The pages of 4 KiB on which nodes lie, and the aligned 2 MiB in which they do.
    pub small_pages: usize,
    pub huge_pages: usize,
    /// The tree's resident memory, if the system reports it.
    pub resident: Option<Resident>,
}

impl Held {
    /// Builds a tree of these keys on these pages, and measures its memory.
    pub fn of(lab: &Lab, keys: Keys, count: usize, pages: Pages) -> Result<Self, Error> {
        let traffic = keys.traffic(count, lab.plan.seed);
        let plan = inspection(lab, count, pages)?;
        let mut built = Built::new(&plan, &plan.subject, &traffic)?;
        let mut census = built.census()?;
        let names: Vec<String> = census.kinds().map(str::to_owned).collect();
        let survey = census.survey(&plan.machine.sets(Level::Llc));
        let (mut small, mut huge, mut bytes) = (HashSet::new(), HashSet::new(), 0);
        let mut kinds = Vec::new();
        for (number, name) in names.into_iter().enumerate() {
            bytes += survey.sizes(number).sum::<usize>();
            kinds.push((name, survey.sizes(number).count()));
            for address in survey.pages(number).into_iter().flat_map(|run| run.step_by(SMALL_PAGE))
            {
                small.insert(address / SMALL_PAGE);
                huge.insert(address / HUGE_PAGE);
            }
        }
        let pools = built.index().pool_stats();
        let regions: Vec<_> = pools.into_iter().flat_map(|pool| pool.regions).collect();
        Ok(Self {
            kinds,
            bytes,
            memory: built.index().bytes(),
            small_pages: small.len(),
            huge_pages: huge.len(),
            resident: memory::of_regions(&regions),
        })
    }
}
