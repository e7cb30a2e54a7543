//! Constructors of the indexes under test.
//!
//! A property takes a [`Make`] and is generic over the type that it makes. The suite passes
//! [`points`] or [`scans`], which hide the type behind the trait objects of [`silvics::dynamic`]:
//! so a property is compiled once for each type of keys, and not for every index, build and
//! placement. A property that counts allocations of scans takes [`exact`], since a dynamic range
//! allocates.
//!
//! ```
//! use silvics::{BronsonTree, NatarajanTree};
//! use silvics_testkit::{holds, make, sequential};
//!
//! // One instance of the property, two trees.
//! holds(sequential::extremes(make::points::<NatarajanTree>));
//! holds(sequential::extremes(make::points::<BronsonTree>));
//! ```

use crate::mapped::{AnyMapped, Mapped, MappedKey};
use crate::ordmapped::{OrdKey, OrdMapped};
use silvics::dynamic::{Atomic, Ends, Points, Scans, Updates};
use silvics::{
    AllocError, AtomicRanges, Batches, Check, Create, Domain, Lookup, Options, OrderedEnds,
    OrderedScan, Placement, RangeUpdates,
};

/// The key type of an index.
pub type KeyOf<I> = <I as Lookup>::Key;

/// Makes an index of type `I`, which may be a trait object.
pub type Make<I> = fn(&Options) -> Result<Box<I>, AllocError>;

/// The default options with a new domain. Tests need it if they expect that objects are freed:
/// other tests pin the domain that the indexes of a process share.
#[must_use]
pub fn apart() -> Options {
    own_domain(&Options::default())
}

/// The options with a new domain, unless they name one.
fn own_domain(options: &Options) -> Options {
    let mut options = options.clone();
    options.domain.get_or_insert_with(Domain::new);
    options
}

/// Makes an index of type `I` as it is.
pub fn exact<I: Create>(options: &Options) -> Result<Box<I>, AllocError> {
    I::with_options(&own_domain(options)).map(Box::new)
}

/// Makes an index of type `I` and hides its type: see [`Points`].
pub fn points<I: Create + Batches + Check + 'static>(
    options: &Options,
) -> Result<Box<dyn Points<KeyOf<I>>>, AllocError> {
    Ok(Box::new(I::with_options(&own_domain(options))?))
}

/// Makes an index of type `I` with ranges and cursors and hides its type: see [`Scans`].
pub fn scans<I: Create + Batches + Check + OrderedScan + 'static>(
    options: &Options,
) -> Result<Box<dyn Scans<KeyOf<I>>>, AllocError> {
    Ok(Box::new(I::with_options(&own_domain(options))?))
}

/// Makes an index of type `I` with ranges, cursors and ends and hides its type: see [`Ends`].
pub fn ends<I: Create + Batches + Check + OrderedEnds + OrderedScan + 'static>(
    options: &Options,
) -> Result<Box<dyn Ends<KeyOf<I>>>, AllocError> {
    Ok(Box::new(I::with_options(&own_domain(options))?))
}

/// Makes an index of type `I` that also reads atomic ranges: see [`Atomic`].
pub fn atomic<I: Create + Batches + Check + OrderedEnds + AtomicRanges + 'static>(
    options: &Options,
) -> Result<Box<dyn Atomic<KeyOf<I>>>, AllocError> {
    Ok(Box::new(I::with_options(&own_domain(options))?))
}

/// Makes an index of type `I` that also updates atomic ranges: see [`Updates`].
pub fn updates<I: Create + Batches + Check + OrderedEnds + RangeUpdates + 'static>(
    options: &Options,
) -> Result<Box<dyn Updates<KeyOf<I>>>, AllocError> {
    Ok(Box::new(I::with_options(&own_domain(options))?))
}

/// Makes a map with keys `K` and hides its placement: see [`AnyMapped`].
pub fn mapped<K: MappedKey + ?Sized, P: Placement>(
    options: &Options,
) -> Result<Box<dyn AnyMapped<K>>, AllocError> {
    Ok(Box::new(Mapped::<K, P>::with_options(&own_domain(options))?))
}

/// Makes a map in the order of its keys `K`: see [`AnyMapped`].
pub fn ordmapped<K: OrdKey + ?Sized>(
    options: &Options,
) -> Result<Box<dyn AnyMapped<K>>, AllocError> {
    Ok(Box::new(OrdMapped::<K>::with_options(&own_domain(options))?))
}
