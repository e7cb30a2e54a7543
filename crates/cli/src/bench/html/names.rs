//! The contenders of a report, with their names.

use crate::bench::report::{Report, RowKey};
use crate::page::chart::{Point, Series};

/// The contenders of a report. Each has a number, which is its colour in all charts.
pub(super) struct Names {
    contenders: Vec<Contender>,
}

#[derive(Clone, PartialEq, Eq)]
struct Contender {
    index: String,
    placement: &'static str,
    pages: String,
}

impl Contender {
    fn of(key: &RowKey) -> Self {
        Self { index: key.index.clone(), placement: key.placement, pages: key.pages.clone() }
    }
}

impl Names {
    /// The contenders, in the order of the report.
    pub(super) fn of(report: &Report) -> Self {
        let keys = report.results.iter().map(|row| &row.key);
        let keys = keys.chain(report.loads.iter().map(|load| &load.key));
        Self { contenders: super::distinct(keys.map(Contender::of)) }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.contenders.len()
    }

    /// The number of a contender.
    pub(super) fn number(&self, key: &RowKey) -> usize {
        let contender = Contender::of(key);
        self.contenders.iter().position(|of| *of == contender).unwrap_or(0)
    }

    /// The name of a contender: that of its index, with its place if the index has several.
    pub(super) fn name(&self, key: &RowKey) -> String {
        let same = self.contenders.iter().filter(|of| of.index == key.index);
        let [mut placements, mut pages] = [false; 2];
        for of in same {
            placements |= of.placement != key.placement;
            pages |= of.pages != key.pages;
        }
        let mut name = key.index.clone();
        if placements {
            name.push_str(", ");
            name.push_str(key.placement);
        }
        if pages {
            name.push_str(", ");
            name.push_str(&key.pages);
        }
        name
    }

    /// A line for each contender of the keys that has points.
    pub(super) fn series<'a>(
        &self,
        keys: impl Iterator<Item = &'a RowKey>,
        points: impl Fn(usize) -> Vec<Point>,
    ) -> Vec<Series> {
        let keys = super::distinct(keys.map(|key| (self.number(key), self.name(key))));
        let series = keys.into_iter().map(|(number, name)| {
            let points = points(number);
            Series { name, number, points }
        });
        series.filter(|series| !series.points.is_empty()).collect()
    }
}
