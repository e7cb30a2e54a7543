//! Structures by their names. The module compiles each build of each structure.

use super::{AnyIndex, AnyMap, AnyOrdered, InTable, Points};
use crate::encoding::IndexKey;
use crate::error::AllocError;
use crate::index::{Check, Create, Lookup, Options, OrderedEnds};
use crate::map::key::Key;
use crate::map::{Map, MapIndex, Value};
use crate::{Pooled, Shared};
use std::fmt;
use std::marker::PhantomData;

/// A structure with keys `F`, which is `u64` or `[u8]`, found by its name.
///
/// ```
/// use silvics::dynamic::{AnyMap, Structure};
///
/// let structure = Structure::<[u8]>::named("art")?;
/// let map: AnyMap<String, Vec<u32>> = structure.map(&silvics::Options::default())?;
/// map.insert("one", vec![1]);
/// assert_eq!(map.get("one").as_deref(), Some(&vec![1]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Structure<F: InTable + ?Sized> {
    /// The name in the table of structures.
    name: &'static str,
    pooled: Maker<F>,
    shared: Maker<F>,
}

impl<F: InTable + ?Sized> Clone for Structure<F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: InTable + ?Sized> Copy for Structure<F> {}

impl<F: InTable + ?Sized> fmt::Debug for Structure<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Structure").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The reason why there is no structure of a name with some keys, or no map of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StructureError {
    /// There is no structure of this name.
    Unknown {
        /// The name.
        name: String,
        /// The names of the structures that take these keys.
        known: String,
    },
    /// The structure does not take keys of this form.
    Keys {
        /// The name of the structure.
        name: String,
        /// The keys: `u64` or byte strings.
        keys: &'static str,
        /// The names of the structures that take these keys.
        known: String,
    },
    /// A map scans its index, and the structure has no scans.
    NoScans {
        /// The name of the structure.
        name: String,
        /// The names of the structures that take these keys and scan.
        known: String,
    },
    /// An allocation failed.
    Alloc(AllocError),
}

impl fmt::Display for StructureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown { name, known } => {
                write!(f, "there is no structure `{name}`: choose one of {known}")
            }
            Self::Keys { name, keys, known } => {
                write!(f, "structure `{name}` does not take {keys} as keys: choose one of {known}")
            }
            Self::NoScans { name, known } => {
                write!(f, "structure `{name}` does not scan: choose one of {known}")
            }
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StructureError {}

impl From<AllocError> for StructureError {
    fn from(error: AllocError) -> Self {
        Self::Alloc(error)
    }
}

/// A constructor of an index with keys `F`.
#[doc(hidden)]
pub enum Maker<F: IndexKey + ?Sized> {
    /// An index that does not scan.
    Points(fn(&Options) -> Result<AnyIndex<F>, AllocError>),
    Ordered(fn(&Options) -> Result<AnyOrdered<F>, AllocError>),
}

impl<F: IndexKey + ?Sized> Clone for Maker<F> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<F: IndexKey + ?Sized> Copy for Maker<F> {}

/// A build of a structure of the table of structures.
#[doc(hidden)]
pub struct Build {
    structure: &'static str,
    /// The name after the colon. The first build of a structure also has the name of that alone.
    variant: &'static str,
    scans: bool,
    pub(super) words: Option<[Maker<u64>; 2]>,
    pub(super) bytes: Option<[Maker<[u8]>; 2]>,
}

/// `New::<I, F>::INDEX.points()` is the constructor of an index of type `I`, if its keys are `F`:
/// an inherent method comes before that of a trait. `I` must not be a type parameter.
struct New<I, F: ?Sized>(PhantomData<Types<I, F>>);

/// The types of an index and of its keys.
type Types<I, F> = (fn() -> I, fn() -> Box<F>);

impl<I, F: ?Sized> New<I, F> {
    const INDEX: Self = Self(PhantomData);
}

#[allow(clippy::unused_self, clippy::unnecessary_wraps)] // like the methods of the trait
impl<I: Create + Points<F> + 'static, F: IndexKey + ?Sized> New<I, F> {
    fn points(self) -> Option<Maker<F>> {
        Some(Maker::Points(|options| Ok(AnyIndex::new(I::with_options(options)?))))
    }
}

#[allow(clippy::unused_self, clippy::unnecessary_wraps)] // like the methods of the trait
impl<I: MapIndex + Check + Lookup<Key = F> + 'static, F: IndexKey + ?Sized> New<I, F> {
    fn scans(self) -> Option<Maker<F>> {
        Some(Maker::Ordered(|options| Ok(AnyOrdered::new(I::with_options(options)?))))
    }
}

#[allow(clippy::unused_self, clippy::unnecessary_wraps)] // like the methods of the trait
impl<I: MapIndex + OrderedEnds + Check + Lookup<Key = F> + 'static, F: IndexKey + ?Sized>
    New<I, F>
{
    fn ends(self) -> Option<Maker<F>> {
        Some(Maker::Ordered(|options| Ok(AnyOrdered::with_ends(I::with_options(options)?))))
    }
    fn atomic(self) -> Option<Maker<F>> {
        self.ends()
    }
    fn updates(self) -> Option<Maker<F>> {
        self.ends()
    }
}

/// The answers for indexes with other keys.
trait Otherwise<F: IndexKey + ?Sized>: Sized {
    fn ends(self) -> Option<Maker<F>> {
        None
    }
}

impl<I, F: IndexKey + ?Sized> Otherwise<F> for New<I, F> {}

/// Enters the constructors of one key type.
macro_rules! enter {
    ($build:ident, $caps:ident, u64_keys: $index:ty) => {
        $build.words = makers!($caps $index, u64);
    };
    ($build:ident, $caps:ident, byte_keys: $index:ty) => {
        $build.bytes = makers!($caps $index, [u8]);
    };
    ($build:ident, $caps:ident, u128_keys: $index:ty) => {};
}

macro_rules! makers {
    ($caps:ident $index:ty, $form:ty) => {
        New::<crate::structures::At<$index, Pooled>, $form>::INDEX
            .$caps()
            .zip(New::<crate::structures::At<$index, Shared>, $form>::INDEX.$caps())
            .map(<[_; 2]>::from)
    };
}

macro_rules! can_scan {
    (points) => {
        false
    };
    ($other:ident) => {
        true
    };
}

macro_rules! table {
    (() $({
        ident: $structure:ident, name: $name:literal, groups: [$($group:literal),*],
        caps: $caps:ident, paper: $paper:literal, topology: $topology:literal,
        sync: $sync:literal, progress: $progress:literal, scans: $scans:literal,
        page: $page:literal, checked: $checked:literal, max_key_bytes: $max:expr,
        builds: { $({
            ident: $build:ident, name: $build_name:literal,
            oversights: [$($oversight:literal),*], runs: $runs:ident, faults: $faults:ident,
            types: { $($keys:ident: $index:ty,)* }
        })+ }
    })+) => {
        vec![$($({
            #[allow(unused_mut)] // of builds that take only keys of 16 bytes
            let mut build = Build {
                structure: $name,
                variant: $build_name,
                scans: can_scan!($caps),
                words: None,
                bytes: None,
            };
            $(enter!(build, $caps, $keys: $index);)*
            build
        }),+),+]
    };
}

fn builds() -> Vec<Build> {
    crate::for_each_structure!((table))
}

impl Build {
    fn is_called(&self, name: &str) -> bool {
        match name.split_once(':') {
            Some((structure, build)) => self.structure == structure && self.variant == build,
            None => self.structure == name,
        }
    }
}

impl<F: InTable + ?Sized> Structure<F> {
    /// Finds a structure by its name in the catalogue ([`crate::structures`]), such as `skiplist`,
    /// or the name of one of its builds, such as `edge-ext-lf:baseline`.
    pub fn named(name: &str) -> Result<Self, StructureError> {
        Self::find(name, false)
    }

    /// Finds a structure that scans by its name.
    pub fn scanning(name: &str) -> Result<Self, StructureError> {
        Self::find(name, true)
    }

    fn find(name: &str, scans: bool) -> Result<Self, StructureError> {
        let all = builds();
        let mut called = all.iter().filter(|build| build.is_called(name)).peekable();
        let known = || Self::names(scans);
        if called.peek().is_none() {
            return Err(StructureError::Unknown { name: name.into(), known: known() });
        }
        let found = called.find_map(|build| Some((build, F::makers(build)?)));
        let Some((build, [pooled, shared])) = found else {
            return Err(StructureError::Keys { name: name.into(), keys: F::KEYS, known: known() });
        };
        if scans && !build.scans {
            return Err(StructureError::NoScans { name: name.into(), known: known() });
        }
        Ok(Self { name: build.structure, pooled, shared })
    }

    /// The names of the structures that take keys `F`, and scan if `scans`, divided by commas.
    pub fn names(scans: bool) -> String {
        let all = builds();
        let takes = |build: &&Build| F::makers(build).is_some() && (build.scans || !scans);
        let mut names: Vec<&str> = all.iter().filter(takes).map(|build| build.structure).collect();
        names.dedup();
        names.join(", ")
    }

    /// The name of the structure, without that of its build.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Whether the structure scans.
    pub fn scans(&self) -> bool {
        matches!(self.pooled, Maker::Ordered(_))
    }

    /// Makes an index with pools.
    pub fn index(&self, options: &Options) -> Result<AnyIndex<F>, AllocError> {
        self.pooled.make(options)
    }

    /// Makes an index with nodes in the [heap](Options::heap) of the options.
    pub fn index_in_heap(&self, options: &Options) -> Result<AnyIndex<F>, AllocError> {
        self.shared.make(options)
    }

    /// Makes a map. Fails with [`StructureError::NoScans`] if the structure does not scan.
    pub fn map<K: Key<Form = F>, V: Value>(
        &self,
        options: &Options,
    ) -> Result<AnyMap<K, V>, StructureError> {
        match self.pooled {
            Maker::Ordered(make) => Ok(Map::around(options, make)?),
            Maker::Points(_) => {
                Err(StructureError::NoScans { name: self.name.into(), known: Self::names(true) })
            }
        }
    }
}

impl<F: InTable + ?Sized> Maker<F> {
    fn make(&self, options: &Options) -> Result<AnyIndex<F>, AllocError> {
        match self {
            Self::Points(make) => make(options),
            Self::Ordered(make) => Ok(make(options)?.into()),
        }
    }
}
