//! A table with its domain pinned, its results, and the methods of the table itself.

use super::Lpm;
use super::ops::Walk;
use super::prefix::{InsertError, RemoveError};
use crate::domain::{Domain, Guard};
use crate::map::lend::{GuardPlace, Lends, Lent, ValueGuard, without_value};
use crate::map::value::{Value, ValueRef};
use ipnet::IpNet;
use silvics_pool::{Placement, Pooled};
use std::fmt;
use std::iter::FusedIterator;
use std::marker::PhantomData;
use std::net::IpAddr;
use std::num::NonZeroU8;

/// A table with its domain pinned: the everyday way to call several methods. It cannot leave its
/// thread.
///
/// Values that it returns borrow the view. They are valid while the view lives, even if they are
/// removed from the table. While a view lives, nothing that the table replaces is freed: call
/// [`LpmView::repin`] from time to time in a long loop.
pub struct LpmView<'m, V: Value, P: Placement = Pooled> {
    table: &'m Lpm<V, P>,
    guard: Guard,
}

impl<'m, V: Value, P: Placement> LpmView<'m, V, P> {
    pub(super) fn new(table: &'m Lpm<V, P>) -> Self {
        Self { table, guard: table.one_shot() }
    }

    /// The table.
    pub fn table(&self) -> &'m Lpm<V, P> {
        self.table
    }

    /// Pins anew, so that what was replaced since the last pin can be freed. Values that the view
    /// returned before are no longer valid; the exclusive borrow enforces this.
    pub fn repin(&mut self) {
        self.table.values.drop_some();
        self.guard.repin();
    }

    /// Returns the longest prefix that contains this address, and its value.
    ///
    /// The call is wait-free and atomic: it reads the table as it is at one moment of the call. It
    /// writes no memory that another thread reads.
    ///
    /// ```
    /// use silvics::Lpm;
    /// use std::net::{IpAddr, Ipv4Addr};
    ///
    /// let table = Lpm::new();
    /// let view = table.pin();
    /// view.insert("10.0.0.0/8".parse()?, "all of ten")?;
    /// view.insert("10.1.0.0/16".parse()?, "ten-one")?;
    /// let (prefix, value) = view.lookup(Ipv4Addr::new(10, 1, 2, 3)).expect("covered");
    /// assert_eq!((prefix.prefix_len(), *value), (16, "ten-one"));
    /// let address: IpAddr = "10.2.0.1".parse()?;
    /// assert_eq!(*view.lookup(address).expect("covered").1, "all of ten");
    /// assert!(view.lookup(Ipv4Addr::LOCALHOST).is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline(always)]
    pub fn lookup(&self, address: impl Into<IpAddr>) -> Option<(IpNet, ValueRef<'_, V>)> {
        self.table.do_lookup(address.into(), (&self.guard).into())
    }

    /// Looks up every address, and writes its longest prefix to the same position in `found`; the
    /// shorter slice decides how many. Addresses of both families may be mixed; a batch of one
    /// family is faster.
    ///
    /// Groups of 32 addresses go down the table step by step, and their cache misses overlap. All
    /// addresses of a family are looked up at one moment.
    ///
    /// ```
    /// use silvics::Lpm;
    /// use std::net::Ipv4Addr;
    ///
    /// let table: Lpm<u32> = Lpm::new();
    /// table.insert("10.0.0.0/8".parse()?, 7)?;
    /// let view = table.pin();
    /// let addresses = [Ipv4Addr::new(10, 1, 2, 3), Ipv4Addr::LOCALHOST];
    /// let mut found = [const { None }; 2];
    /// view.get_many(&addresses, &mut found);
    /// let hop = found[0].as_ref().expect("covered");
    /// assert_eq!((**hop, hop.prefix(addresses[0])), (7, "10.0.0.0/8".parse()?));
    /// assert!(found[1].is_none());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn get_many<'g, T: Copy + Into<IpAddr>>(
        &'g self,
        addresses: &[T],
        found: &mut [Option<Match<'g, V>>],
    ) {
        self.table.do_get_many(addresses, found, (&self.guard).into());
    }

    /// Returns the value of exactly this prefix. A prefix with bits set behind its length is in no
    /// table.
    pub fn get(&self, prefix: IpNet) -> Option<ValueRef<'_, V>> {
        self.table.do_get(prefix, (&self.guard).into())
    }

    /// Gives a prefix this value, and returns its former value.
    ///
    /// All readers see the change at one moment, whatever the length of the prefix. Fails if bits
    /// behind the length are set, or if an allocation fails. Then the table is unchanged, and the
    /// error has the value.
    pub fn insert(
        &self,
        prefix: IpNet,
        value: V,
    ) -> Result<Option<ValueRef<'_, V>>, InsertError<V>> {
        self.table.do_insert(prefix, value, (&self.guard).into())
    }

    /// Removes a prefix, and returns its value.
    ///
    /// All readers see the change at one moment. Fails if bits behind the length are set, or if an
    /// allocation fails: the call copies the nodes above the prefix. Then the table is unchanged.
    pub fn remove(&self, prefix: IpNet) -> Result<Option<ValueRef<'_, V>>, RemoveError> {
        self.table.do_remove(prefix, (&self.guard).into())
    }

    /// All prefixes in order: IPv4 first, then by address, and a shorter prefix before the longer
    /// ones in it.
    ///
    /// `iter` takes a snapshot of each family, and returns the prefixes of the snapshots.
    pub fn iter(&self) -> Prefixes<'_, V, P> {
        Prefixes::new(Walk::all(self.table, &self.guard))
    }

    /// The prefixes inside this one, itself included, in the order of [`LpmView::iter`]. Bits
    /// behind its length are ignored.
    ///
    /// The method takes a snapshot, and returns the prefixes of the snapshot.
    ///
    /// ```
    /// # use silvics::Lpm;
    /// let table = Lpm::new();
    /// for text in ["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24", "11.0.0.0/8"] {
    ///     table.insert(text.parse()?, text)?;
    /// }
    /// let view = table.pin();
    /// let inside = view.covered("10.1.0.0/16".parse()?).map(|(_, text)| *text);
    /// assert!(inside.eq(["10.1.0.0/16", "10.1.2.0/24"]));
    /// let around = view.covering("10.1.2.0/24".parse()?).map(|(_, text)| *text);
    /// assert!(around.eq(["10.0.0.0/8", "10.1.0.0/16", "10.1.2.0/24"]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn covered(&self, prefix: IpNet) -> Prefixes<'_, V, P> {
        Prefixes::new(Walk::covered(self.table, prefix, &self.guard))
    }

    /// The prefixes that contain this one, itself included, from the shortest one on. Bits behind
    /// its length are ignored.
    ///
    /// The method takes a snapshot, and returns the prefixes of the snapshot.
    pub fn covering(&self, prefix: IpNet) -> Prefixes<'_, V, P> {
        Prefixes::new(Walk::covering(self.table, prefix, &self.guard))
    }

    /// The number of prefixes: see [`Lpm::len`].
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether [`LpmView::len`] is zero.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }
}

impl<V: Value + fmt::Debug, P: Placement> fmt::Debug for LpmView<'_, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<'g, V: Value, P: Placement> IntoIterator for &'g LpmView<'_, V, P> {
    type Item = (IpNet, ValueRef<'g, V>);
    type IntoIter = Prefixes<'g, V, P>;

    fn into_iter(self) -> Prefixes<'g, V, P> {
        self.iter()
    }
}

/// The result of one lookup of [`LpmView::get_many`]: the value, and the length of its prefix.
pub struct Match<'g, V> {
    /// The length and one, so that `Option<Match>` is no larger.
    pub(super) len_and_one: NonZeroU8,
    pub(super) value: ValueRef<'g, V>,
}

impl<'g, V: Value> Match<'g, V> {
    /// The length of the prefix.
    #[inline(always)]
    pub fn prefix_len(&self) -> u8 {
        self.len_and_one.get() - 1
    }

    /// The prefix, given the address that was looked up. An address of the other family has none of
    /// a length beyond its own, and gets the longest that it has.
    pub fn prefix(&self, address: impl Into<IpAddr>) -> IpNet {
        let address = address.into();
        let most = if address.is_ipv4() { 32 } else { 128 };
        IpNet::new_assert(address, self.prefix_len().min(most)).trunc()
    }

    /// The value.
    #[inline(always)]
    pub fn into_value(self) -> ValueRef<'g, V> {
        self.value
    }
}

impl<V: Value> std::ops::Deref for Match<'_, V> {
    type Target = V;

    #[inline(always)]
    fn deref(&self) -> &V {
        &self.value
    }
}

impl<V: Value + fmt::Debug> fmt::Debug for Match<'_, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/{}: {:?}", self.prefix_len(), &**self)
    }
}

/// Prefixes of a table with their values: see [`LpmView::iter`].
pub struct Prefixes<'g, V: Value, P: Placement = Pooled> {
    walk: Walk<'g>,
    table: PhantomData<&'g Lpm<V, P>>,
}

impl<'g, V: Value, P: Placement> Prefixes<'g, V, P> {
    fn new(walk: Walk<'g>) -> Self {
        Self { walk, table: PhantomData }
    }
}

impl<'g, V: Value, P: Placement> Iterator for Prefixes<'g, V, P> {
    type Item = (IpNet, ValueRef<'g, V>);

    fn next(&mut self) -> Option<Self::Item> {
        let (net, leaf) = self.walk.next()?;
        // SAFETY: the walk has read the leaf under the guard of a view, which lives for `'g`.
        Some((net, unsafe { Lpm::<V, P>::value(leaf) }))
    }
}

impl<V: Value, P: Placement> FusedIterator for Prefixes<'_, V, P> {}

impl<V: Value, P: Placement> fmt::Debug for Prefixes<'_, V, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Prefixes").finish_non_exhaustive()
    }
}

// SAFETY: the error has no value that borrows a table.
unsafe impl<V: Value> Lent<'_, V> for InsertError<V> {
    type Held = Self;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe { without_value(guard, then(self)) }
    }
}

// SAFETY: the error has no value that borrows a table.
unsafe impl<V: Value> Lent<'_, V> for RemoveError {
    type Held = Self;

    #[inline(always)]
    unsafe fn hold<R>(self, guard: GuardPlace<'_>, then: impl FnOnce(Self) -> R) -> R {
        // SAFETY: the caller's promise.
        unsafe { without_value(guard, then(self)) }
    }
}

impl<V: Value, P: Placement> Lends<V> for Lpm<V, P> {
    #[inline(always)]
    fn domain(&self) -> &Domain {
        &self.objects.frame().domain
    }

    #[inline(always)]
    fn one_shot(&self) -> Guard {
        self.values.drop_some();
        self.domain().pin()
    }

    fn give_back(&self) {
        self.shrink();
    }
}

/// Methods that pin for the call: the values that they return hold the pin. An [`LpmView`] has all
/// of them and more, and pins once for many calls.
///
/// If an allocation fails, a method unpins, returns free memory by [`Lpm::shrink`], and tries once
/// more.
impl<V: Value, P: Placement> Lpm<V, P> {
    /// Returns the longest prefix that contains this address, and its value: see
    /// [`LpmView::lookup`].
    #[inline]
    pub fn lookup(&self, address: impl Into<IpAddr>) -> Option<(IpNet, ValueGuard<'_, V>)> {
        let address = address.into();
        // SAFETY: the operation keeps no value, except in its result.
        unsafe { self.held(|pin| self.do_lookup(address, pin)) }
    }

    /// Returns the value of exactly this prefix: see [`LpmView::get`].
    pub fn get(&self, prefix: IpNet) -> Option<ValueGuard<'_, V>> {
        // SAFETY: the operation keeps no value, except in its result.
        unsafe { self.held(|pin| self.do_get(prefix, pin)) }
    }

    /// Gives a prefix this value, and returns its former value: see [`LpmView::insert`].
    pub fn insert(
        &self,
        prefix: IpNet,
        value: V,
    ) -> Result<Option<ValueGuard<'_, V>>, InsertError<V>> {
        let again = std::convert::identity;
        // SAFETY: the operation keeps no value, except in its result.
        unsafe {
            self.held_or_repeated(value, |value, pin| self.do_insert(prefix, value, pin), again)
        }
    }

    /// Removes a prefix, and returns its value: see [`LpmView::remove`].
    pub fn remove(&self, prefix: IpNet) -> Result<Option<ValueGuard<'_, V>>, RemoveError> {
        // SAFETY: the operation keeps no value, except in its result.
        unsafe { self.held_or_repeated((), |(), pin| self.do_remove(prefix, pin), drop) }
    }
}
