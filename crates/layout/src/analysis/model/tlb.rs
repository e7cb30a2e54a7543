//! Two levels of address translations.

use super::cache::Lru;
use super::machine::{Entries, Tlb};

/// The size of the page that maps an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 2 MiB.
    Huge,
}

impl PageSize {
    /// The bytes of a page.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Small => 4096,
            Self::Huge => 2 << 20,
        }
    }

    /// The bytes of a page in words.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Small => "4 KiB",
            Self::Huge => "2 MiB",
        }
    }
}

/// The place where a translation was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Translation {
    First,
    Second,
    /// In neither level, so a walk of the page table found it.
    Walked,
}

/// A table of translations. A key is a page number with the size of the page in the lowest bit.
#[derive(Clone, Debug)]
struct Table(Lru);

impl Table {
    fn new(Entries { entries, ways }: Entries) -> Self {
        Self(Lru::new(entries / ways, ways))
    }

    #[inline]
    fn hit(&mut self, key: usize) -> bool {
        self.0.hit(self.0.modulo(key >> 1), key).is_some()
    }

    fn insert(&mut self, key: usize) {
        self.0.insert(self.0.modulo(key >> 1), key, false);
    }
}

/// A level of translations, which may have no table for a page size.
#[derive(Clone, Debug)]
enum Tables {
    Split { small: Table, huge: Table },
    Small(Table),
    Shared(Table),
}

impl Tables {
    fn new(tlb: Tlb) -> Self {
        match tlb {
            Tlb::Split { small, huge } => {
                Self::Split { small: Table::new(small), huge: Table::new(huge) }
            }
            Tlb::Small(table) => Self::Small(Table::new(table)),
            Tlb::Shared(table) => Self::Shared(Table::new(table)),
        }
    }

    #[inline]
    fn of(&mut self, page: PageSize) -> Option<&mut Table> {
        match (self, page) {
            (Self::Split { small: table, .. } | Self::Small(table), PageSize::Small)
            | (Self::Split { huge: table, .. }, PageSize::Huge)
            | (Self::Shared(table), _) => Some(table),
            (Self::Small(_), PageSize::Huge) => None,
        }
    }
}

/// Both levels of translations. A walk fills both levels, and a hit in the second fills the first.
/// They evict independently.
#[derive(Clone, Debug)]
pub(super) struct Translations {
    first: Tables,
    second: Tables,
}

impl Translations {
    pub(super) fn new([first, second]: [Tlb; 2]) -> Self {
        Self { first: Tables::new(first), second: Tables::new(second) }
    }

    /// Translates an address and returns where the translation was found.
    #[inline]
    pub(super) fn translate(&mut self, address: usize, page: PageSize) -> Translation {
        let key = match page {
            PageSize::Small => address >> 12 << 1,
            PageSize::Huge => address >> 21 << 1 | 1,
        };
        if self.first.of(page).is_some_and(|table| table.hit(key)) {
            return Translation::First;
        }
        let mut found = Translation::Walked;
        if let Some(table) = self.second.of(page) {
            if table.hit(key) {
                found = Translation::Second;
            } else {
                table.insert(key);
            }
        }
        if let Some(table) = self.first.of(page) {
            table.insert(key);
        }
        found
    }
}
