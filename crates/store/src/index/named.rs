//! Structures of silvics as indexes of tables, by their names.

use super::{FormOf, Scannable, Search};
use crate::error::SchemaError;
use crate::key::{FormKind, KeyForm};
use silvics::dynamic::{AnyIndex, Points, Scans};
use silvics::{
    AllocError, Batches, Create, Guard, Lookup, Options, OrderedIndex, OrderedScan, PoolStats,
    Pooled, Shared, TryInsertError,
};
use std::marker::PhantomData;
use std::ops::Bound;

/// A structure whose type is chosen at run time.
pub struct Named<F: KeyForm + ?Sized> {
    index: AnyIndex<F>,
    name: &'static str,
}

/// A constructor of an index with keys `F`.
type Make<F> = fn(&Options) -> Result<AnyIndex<F>, AllocError>;

/// The constructors of a build: with pools, and with the heap of the options.
#[doc(hidden)]
pub struct Makers<F: KeyForm + ?Sized> {
    pooled: Make<F>,
    shared: Make<F>,
}

/// A build of a structure of the table of structures.
#[doc(hidden)]
pub struct Build {
    structure: &'static str,
    /// The name after the colon. The first build of a structure also has the name of that alone.
    variant: &'static str,
    scans: bool,
    words: Option<Makers<u64>>,
    bytes: Option<Makers<[u8]>>,
}

/// `New::<I, F>::INDEX.scanning()` is the constructor of an index of type `I`, if its keys are `F`:
/// an inherent method comes before that of a trait. `I` must not be a type parameter.
struct New<I, F: ?Sized>(PhantomData<Types<I, F>>);

/// The types of an index and of its keys.
type Types<I, F> = (fn() -> I, fn() -> Box<F>);

impl<I, F: ?Sized> New<I, F> {
    const INDEX: Self = Self(PhantomData);
}

#[allow(clippy::unused_self, clippy::unnecessary_wraps)] // like the methods of the trait
impl<I: Create + Points<F> + 'static, F: KeyForm + ?Sized> New<I, F> {
    fn pointed(self) -> Option<Make<F>> {
        Some(|options| Ok(AnyIndex::new(I::with_options(options)?)))
    }
}

#[allow(clippy::unused_self, clippy::unnecessary_wraps)] // like the methods of the trait
impl<I: Create + Scans<F> + 'static, F: KeyForm + ?Sized> New<I, F> {
    fn scanning(self) -> Option<Make<F>> {
        Some(|options| Ok(AnyIndex::with_scans(I::with_options(options)?)))
    }
}

/// The answers for indexes with other keys.
trait Otherwise<F: KeyForm + ?Sized>: Sized {
    fn scanning(self) -> Option<Make<F>> {
        None
    }
}

impl<I, F: KeyForm + ?Sized> Otherwise<F> for New<I, F> {}

macro_rules! new {
    (points $index:ty, $form:ty) => {
        New::<$index, $form>::INDEX.pointed()
    };
    ($scanning:ident $index:ty, $form:ty) => {
        New::<$index, $form>::INDEX.scanning()
    };
}

macro_rules! makers {
    ($caps:ident $index:ty, $form:ty) => {
        new!($caps silvics::structures::At<$index, Pooled>, $form)
            .zip(new!($caps silvics::structures::At<$index, Shared>, $form))
            .map(|(pooled, shared)| Makers { pooled, shared })
    };
}

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
    silvics::for_each_structure!((table))
}

impl Build {
    fn is_called(&self, name: &str) -> bool {
        match name.split_once(':') {
            Some((structure, build)) => self.structure == structure && self.variant == build,
            None => self.structure == name,
        }
    }

    fn takes(&self, form: FormKind) -> bool {
        match form {
            FormKind::Word => self.words.is_some(),
            FormKind::Bytes => self.bytes.is_some(),
        }
    }
}

/// The names of the structures that take keys of a form, and scan if `scans`.
pub(crate) fn names(form: FormKind, scans: bool) -> String {
    let mut names: Vec<&str> = builds()
        .iter()
        .filter(|build| build.takes(form) && (build.scans || !scans))
        .map(|build| build.structure)
        .collect();
    names.dedup();
    names.join(", ")
}

/// A form of keys whose constructors the table has: `u64` or `[u8]`. The trait is sealed.
pub trait InTable: KeyForm {
    #[doc(hidden)]
    fn makers(build: &Build) -> Option<&Makers<Self>>;
}

impl InTable for u64 {
    fn makers(build: &Build) -> Option<&Makers<u64>> {
        build.words.as_ref()
    }
}

impl InTable for [u8] {
    fn makers(build: &Build) -> Option<&Makers<[u8]>> {
        build.bytes.as_ref()
    }
}

/// The default structure for keys of a form, as for a [`Map`](silvics::Map).
pub(crate) fn default_structure(form: FormKind) -> &'static str {
    match form {
        FormKind::Word => "words",
        FormKind::Bytes => "blocks",
    }
}

impl<F: InTable + ?Sized> Named<F> {
    /// Makes an index with this structure, which takes its nodes from the heap of the options if
    /// `in_heap`, and from pools otherwise.
    pub fn with_structure(
        structure: &str,
        in_heap: bool,
        options: &Options,
    ) -> Result<Self, crate::Error> {
        Self::of(structure, structure, false, in_heap, options)
    }

    /// Makes an index with this structure. `index` is its name, for errors.
    pub(crate) fn of(
        index: &str,
        structure: &str,
        scans: bool,
        shared: bool,
        options: &Options,
    ) -> Result<Self, crate::Error> {
        let form = F::KIND;
        let all = builds();
        let mut called = all.iter().filter(|build| build.is_called(structure)).peekable();
        if called.peek().is_none() {
            let (name, known) = (structure.into(), names(form, scans));
            return Err(SchemaError::Unknown { kind: "structure", name, known }.into());
        }
        let (index, structure) = (index.to_string(), structure.to_string());
        let found = called.find_map(|build| Some((build, F::makers(build)?)));
        let Some((build, makers)) = found else {
            let (others, form) = (names(form, scans), form.name());
            return Err(SchemaError::NoKeys { index, structure, form, others }.into());
        };
        if scans && !build.scans {
            let others = names(form, true);
            return Err(SchemaError::NoScans { index, structure, others }.into());
        }
        let make = if shared { makers.shared } else { makers.pooled };
        Ok(Self { index: make(options)?, name: build.structure })
    }
}

// SAFETY: the index is one of silvics, since only `of` makes this type. So S1 to S6 hold as for
// `Scans`.
unsafe impl<F: InTable + ?Sized> Search for Named<F> {
    type Form = F;

    /// Makes the default structure for keys of this form.
    fn make(options: &Options) -> Result<Self, AllocError> {
        let made = Self::of("primary", default_structure(F::KIND), true, false, options);
        made.map_err(|error| match error {
            crate::Error::Alloc(error) => error,
            _ => AllocError::Address, // the default structure takes these keys
        })
    }

    fn structure(&self) -> String {
        self.name.into()
    }
    #[inline]
    fn get(&self, key: FormOf<'_, Self>, guard: &Guard) -> Option<u64> {
        Lookup::get(&*self.index, key, guard)
    }
    #[inline]
    fn get_many(&self, keys: &[FormOf<'_, Self>], words: &mut [Option<u64>], guard: &Guard) {
        Batches::get_many(&*self.index, keys, words, guard);
    }
    unsafe fn try_insert(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<Option<u64>, AllocError> {
        match OrderedIndex::try_insert(&*self.index, key, word, guard) {
            Ok(()) => Ok(None),
            Err(TryInsertError::Occupied(present)) => Ok(Some(present)),
            Err(TryInsertError::Alloc(error)) => Err(error),
            Err(_) => Err(AllocError::Address),
        }
    }
    unsafe fn replace(
        &self,
        key: FormOf<'_, Self>,
        word: u64,
        guard: &Guard,
    ) -> Result<(), AllocError> {
        OrderedIndex::insert(&*self.index, key, word, guard).map(|_| ())
    }
    unsafe fn remove(&self, key: FormOf<'_, Self>, guard: &Guard) -> Result<(), AllocError> {
        OrderedIndex::remove(&*self.index, key, guard).map(|_| ())
    }
    fn walk(
        &self,
        bounds: (Bound<FormOf<'_, Self>>, Bound<FormOf<'_, Self>>),
        descending: bool,
        guard: &Guard,
        visit: &mut dyn FnMut(FormOf<'_, Self>, u64) -> bool,
    ) {
        let Some(index) = self.index.scans() else { return };
        let bounds = (bounds.0.map(F::shorten), bounds.1.map(F::shorten));
        if descending {
            let _ = index.range_rev(bounds, guard).all(|(key, word)| visit(key, word));
        } else {
            let _ = index.range(bounds, guard).all(|(key, word)| visit(key, word));
        }
    }
    fn scans(&self) -> bool {
        self.index.scans().is_some()
    }
    fn count(&self) -> usize {
        Lookup::len(&*self.index)
    }
    fn bytes(&self) -> Option<usize> {
        Some(Lookup::bytes(&*self.index))
    }
    fn pool_stats(&self) -> Vec<PoolStats> {
        Lookup::pool_stats(&*self.index)
    }
}

impl<F: InTable + ?Sized> Scannable for Named<F> {}
