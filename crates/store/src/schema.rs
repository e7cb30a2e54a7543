//! Definitions of tables.

use crate::column::Type;
use crate::error::{Error, SchemaError};
use crate::index::{Maker, Search};
use crate::key::FormKind;
use silvics::Options;
use std::collections::HashSet;

/// The most columns of a key.
pub const KEY_COLUMNS: usize = 8;

/// The most bytes of a row.
pub const ROW_BYTES: usize = 64 << 10;

/// The definition of a table: its columns and indexes.
///
/// ```
/// use silvics_store::{IndexSpec, Schema, Type};
///
/// let schema = Schema::new("accounts")
///     .column("id", Type::U64)
///     .column("owner", Type::Text(40))
///     .column("balance", Type::I64)
///     .primary(["id"])
///     .index(IndexSpec::multi("by_owner", ["owner"]));
/// ```
#[derive(Clone, Debug)]
pub struct Schema {
    pub(crate) name: String,
    pub(crate) columns: Vec<(String, Type)>,
    pub(crate) indexes: Vec<IndexSpec>,
}

impl Schema {
    /// Begins the definition of a table with this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), columns: Vec::new(), indexes: Vec::new() }
    }

    /// Adds a column.
    #[must_use]
    pub fn column(mut self, name: impl Into<String>, kind: Type) -> Self {
        self.columns.push((name.into(), kind));
        self
    }

    /// Adds the primary index over these columns, with the default structure. Each table has one.
    #[must_use]
    pub fn primary<const N: usize>(self, columns: [&str; N]) -> Self {
        self.index(IndexSpec::primary(columns))
    }

    /// Adds an index.
    #[must_use]
    pub fn index(mut self, index: IndexSpec) -> Self {
        self.indexes.push(index);
        self
    }
}

/// The kind of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Unique, and each row has a key that never changes.
    Primary,
    /// Unique.
    Unique,
    /// Several rows may have one key. The key of the index is that of the row, followed by its
    /// primary key.
    Composite,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Primary => "primary",
            Self::Unique => "unique",
            Self::Composite => "not unique",
        }
    }
}

/// The definition of an index.
#[derive(Clone, Debug)]
pub struct IndexSpec {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) kind: Kind,
    pub(crate) structure: Structure,
    pub(crate) scans: bool,
}

/// The structure of an index.
#[derive(Clone, Debug)]
pub(crate) enum Structure {
    /// `words` for numbers, `blocks` for other keys.
    Default,
    /// A structure of the table of structures.
    Named(String),
    /// A type.
    Static(Maker),
}

impl IndexSpec {
    fn new<const N: usize>(name: impl Into<String>, columns: [&str; N], kind: Kind) -> Self {
        Self {
            name: name.into(),
            columns: columns.map(String::from).into(),
            kind,
            structure: Structure::Default,
            scans: true,
        }
    }

    /// The primary index, called `primary`. No two rows have equal values in these columns, and an
    /// update cannot change them.
    pub fn primary<const N: usize>(columns: [&str; N]) -> Self {
        Self::new("primary", columns, Kind::Primary)
    }

    /// A unique index: no two rows have equal values in these columns.
    pub fn unique<const N: usize>(name: impl Into<String>, columns: [&str; N]) -> Self {
        Self::new(name, columns, Kind::Unique)
    }

    /// An index with several rows for a key. The structure holds these columns followed by the
    /// primary key, and a lookup scans the entries that begin with the columns.
    pub fn multi<const N: usize>(name: impl Into<String>, columns: [&str; N]) -> Self {
        Self::new(name, columns, Kind::Composite)
    }

    /// Chooses the structure by its name in the table of structures, such as `art`, or
    /// `edge-ext-lf:fixed` with its build. Each call then costs an indirect jump.
    #[must_use]
    pub fn named(mut self, structure: impl Into<String>) -> Self {
        self.structure = Structure::Named(structure.into());
        self
    }

    /// Chooses the structure by its type, such as
    /// [`Scans<WordTree<u64>>`](crate::index::Scans). Calls are direct.
    #[must_use]
    pub fn over<I: Search>(self) -> Self {
        self.made_by(|options| Ok(I::make(options)?))
    }

    /// Chooses the structure by a function that makes it from the settings of the store's indexes.
    ///
    /// ```
    /// use silvics_store::index::{Lists, Named};
    /// use silvics_store::{IndexSpec, Schema, Store, Type};
    ///
    /// // The study's index, over a structure that is chosen by name.
    /// let spec = IndexSpec::primary(["key"]).points_only().made_by(|options| {
    ///     Lists::around(Named::<u64>::with_structure("occ-avl", false, options)?, options)
    /// });
    /// let store: Store = Store::new()?;
    /// let table = store.create_table(Schema::new("t").column("key", Type::U64).index(spec))?;
    /// let index = table.index_over::<u64, Lists<Named<u64>>>("primary")?;
    /// # Ok::<(), silvics_store::Error>(())
    /// ```
    #[must_use]
    pub fn made_by<I: Search>(
        mut self,
        make: impl Fn(&Options) -> Result<I, Error> + Send + Sync + 'static,
    ) -> Self {
        self.structure = Structure::Static(Maker::of(make));
        self
    }

    /// Declares that no transaction scans the index. Then its structure need not scan, and an
    /// insertion under the locking policies need not look for the next key. A scan of such an index
    /// is refused.
    #[must_use]
    pub fn points_only(mut self) -> Self {
        self.scans = false;
        self
    }
}

/// A column of a table as it lies in a row.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub name: String,
    pub kind: Type,
    pub start: usize,
}

/// The columns of a table as they lie in a row.
#[derive(Debug)]
pub(crate) struct Places {
    pub columns: Vec<Place>,
    /// The words of a row.
    pub words: usize,
}

impl Places {
    /// Places the columns one behind the other, each at its alignment.
    pub(crate) fn of(schema: &Schema) -> Result<Self, SchemaError> {
        let mut columns: Vec<Place> = Vec::new();
        let mut names = HashSet::new();
        let mut end = 0_usize;
        for (name, kind) in &schema.columns {
            if !names.insert(name) {
                return Err(SchemaError::Twice { kind: "column", name: name.clone() });
            }
            let start = end.next_multiple_of(kind.alignment());
            end = start + kind.width();
            columns.push(Place { name: name.clone(), kind: *kind, start });
        }
        if columns.is_empty() {
            return Err(SchemaError::NoColumns { table: schema.name.clone() });
        }
        if end > ROW_BYTES {
            return Err(SchemaError::TooLarge { table: schema.name.clone(), bytes: end });
        }
        Ok(Self { columns, words: end.div_ceil(8) })
    }

    /// The column with this name.
    pub(crate) fn column(&self, name: &str) -> Result<&Place, SchemaError> {
        self.columns.iter().find(|column| column.name == name).ok_or_else(|| {
            let known: Vec<&str> = self.columns.iter().map(|column| &*column.name).collect();
            SchemaError::Unknown { kind: "column", name: name.into(), known: known.join(", ") }
        })
    }

    /// The columns with these names.
    pub(crate) fn key(&self, spec: &IndexSpec) -> Result<Vec<Place>, SchemaError> {
        if spec.columns.is_empty() || spec.columns.len() > KEY_COLUMNS {
            return Err(SchemaError::KeyColumns { index: spec.name.clone() });
        }
        spec.columns.iter().map(|name| self.column(name).cloned()).collect()
    }
}

/// The form in which an index holds keys of these columns.
pub(crate) fn form(columns: &[Place]) -> FormKind {
    match columns {
        [Place { kind: Type::Bytes(_) | Type::Text(_), .. }] => FormKind::Bytes,
        [_] => FormKind::Word,
        _ => FormKind::Bytes,
    }
}
