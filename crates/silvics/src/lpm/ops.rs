//! The operations of a table, under a pin.

use super::address::{Address, Family, number, parts};
use super::batch::GROUP;
use super::count::Portable;
use super::prefix::{InsertError, RemoveError, network};
use super::tree::{Snapshot, Tree};
use super::values::Slots;
use super::walk::{Covered, Covering};
use super::word::Word;
use super::{Lpm, Match};
use crate::domain::Guard;
use crate::map::Rejected;
use crate::map::lend::Pin;
use crate::map::value::{Value, ValueRef};
use ipnet::IpNet;
use silvics_pool::Placement;
use std::net::IpAddr;
use std::num::NonZeroU8;

/// The result of a lookup: the prefix and its value.
type Entry<'g, V> = (IpNet, ValueRef<'g, V>);

impl<V: Value, P: Placement> Lpm<V, P> {
    /// The value of a leaf.
    ///
    /// # Safety
    /// The leaf was read in a tree of the table, under a guard that protects values for `'g`.
    #[inline(always)]
    pub(super) unsafe fn value<'g>(leaf: Word) -> ValueRef<'g, V> {
        // SAFETY: our contract.
        unsafe { Slots::<V, P>::value(leaf.payload()) }
    }

    /// The leaf of the longest prefix that covers an address; none if there is none.
    #[inline(always)]
    fn find<A: Address>(&self, snapshot: Snapshot<'_, A>, address: A) -> Word {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(count) = self.popcnt {
            // SAFETY: the value says that the processor has the instruction.
            return unsafe { find_popcnt(snapshot, address, count) };
        }
        snapshot.find(address, Portable)
    }

    #[inline(always)]
    fn find_in<'g, A: Address>(
        &self,
        tree: &Tree<A>,
        address: A,
        pin: Pin<'g, '_>,
    ) -> Option<Entry<'g, V>> {
        let leaf = self.find(tree.snapshot(pin.guard), address);
        // SAFETY: the leaf was read under the guard of the pin, whose values live for `'g`.
        leaf.is_leaf().then(|| (address.net(leaf.len()), unsafe { Self::value(leaf) }))
    }

    #[inline(always)]
    pub(super) fn do_lookup<'g>(&self, address: IpAddr, pin: Pin<'g, '_>) -> Option<Entry<'g, V>> {
        match number(address) {
            Family::V4(address) => self.find_in(&self.v4, address, pin),
            Family::V6(address) => self.find_in(&self.v6, address, pin),
        }
    }

    pub(super) fn do_get<'g>(&self, net: IpNet, pin: Pin<'g, '_>) -> Option<ValueRef<'g, V>> {
        let leaf = match parts(network(net).ok()?) {
            Family::V4((net, len)) => self.v4.snapshot(pin.guard).get(net, len),
            Family::V6((net, len)) => self.v6.snapshot(pin.guard).get(net, len),
        };
        // SAFETY: the leaf was read under the guard of the pin, whose values live for `'g`.
        leaf.map(|leaf| unsafe { Self::value(leaf) })
    }

    pub(super) fn do_insert<'g>(
        &self,
        net: IpNet,
        value: V,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, InsertError<V>> {
        let parts = match network(net) {
            Ok(net) => parts(net),
            Err(error) => return Err(InsertError::Prefix { error, value }),
        };
        let refused = |value, error| InsertError::Alloc(Rejected { value, error });
        let pending = self.values.pending(value, pin.guard);
        let pending = pending.map_err(|(value, error)| refused(value, error))?;
        let leaf = Word::leaf(pending.payload(), net.prefix_len());
        let inserted = match parts {
            Family::V4((net, _)) => self.v4.insert(net, leaf, &self.objects, pin.guard),
            Family::V6((net, _)) => self.v6.insert(net, leaf, &self.objects, pin.guard),
        };
        match inserted {
            Ok(old) => {
                pending.placed();
                if old.is_none() {
                    self.objects.frame().len.add(1);
                }
                Ok(self.taken(old, pin))
            }
            Err(error) => Err(refused(pending.into_value(), error)),
        }
    }

    pub(super) fn do_remove<'g>(
        &self,
        net: IpNet,
        pin: Pin<'g, '_>,
    ) -> Result<Option<ValueRef<'g, V>>, RemoveError> {
        let removed = match parts(network(net).map_err(RemoveError::Prefix)?) {
            Family::V4(prefix) => self.v4.remove(prefix, &self.objects, pin.guard),
            Family::V6(prefix) => self.v6.remove(prefix, &self.objects, pin.guard),
        };
        let old = removed.map_err(RemoveError::Alloc)?;
        if old.is_some() {
            self.objects.frame().len.add(-1);
        }
        Ok(self.taken(old, pin))
    }

    /// The value of a leaf that the caller has taken out of the table, which is retired. No lock is
    /// held any more: retiring may run destructors (L2).
    fn taken<'g>(&self, old: Option<Word>, pin: Pin<'g, '_>) -> Option<ValueRef<'g, V>> {
        let old = old?;
        // SAFETY: L1: the value was in the table when the pin was taken or later, so the pin
        // protects it for `'g`. The caller took it out, and retires it once.
        unsafe {
            let value = Self::value(old);
            self.values.retire(old.payload(), pin.guard);
            Some(value)
        }
    }

    /// Looks up some addresses of one family, in a snapshot that was read under the guard of the
    /// pin.
    #[inline(always)]
    fn find_some<'g, A: Address>(
        &self,
        snapshot: Snapshot<'_, A>,
        addresses: &[A; GROUP],
        found: &mut [Option<Match<'g, V>>],
        _pin: Pin<'g, '_>,
    ) {
        let leaves = self.find_group(snapshot, addresses);
        for (found, leaf) in found.iter_mut().zip(leaves) {
            // SAFETY: the leaf was read under the guard of the pin, whose values live for `'g`.
            *found = leaf.is_leaf().then(|| unsafe { Match::of(leaf, Self::value(leaf)) });
        }
    }

    #[inline(always)]
    fn find_group<A: Address>(
        &self,
        tree: Snapshot<'_, A>,
        addresses: &[A; GROUP],
    ) -> [Word; GROUP] {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        if let Some(count) = self.popcnt {
            // SAFETY: the value says that the processor has the instruction.
            return unsafe { find_group_popcnt(tree, addresses, count) };
        }
        tree.find_group(addresses, Portable)
    }

    pub(super) fn do_get_many<'g, T: Copy + Into<IpAddr>>(
        &self,
        addresses: &[T],
        found: &mut [Option<Match<'g, V>>],
        pin: Pin<'g, '_>,
    ) {
        // One moment of each family for the whole batch.
        let (of_v4, of_v6) = (self.v4.snapshot(pin.guard), self.v6.snapshot(pin.guard));
        for (addresses, found) in addresses.chunks(GROUP).zip(found.chunks_mut(GROUP)) {
            let some = addresses.len().min(found.len());
            // Unused lanes of a group look up address zero.
            let (mut v4, mut v6, mut is_v4, mut count) =
                ([0; GROUP], [0; GROUP], [false; GROUP], 0);
            for (at, address) in addresses[..some].iter().enumerate() {
                match number((*address).into()) {
                    Family::V4(address) => {
                        (v4[at], is_v4[at]) = (address, true);
                        count += 1;
                    }
                    Family::V6(address) => v6[at] = address,
                }
            }
            if count == some {
                self.find_some(of_v4, &v4, &mut found[..some], pin);
            } else if count == 0 {
                self.find_some(of_v6, &v6, &mut found[..some], pin);
            } else {
                for (at, found) in found[..some].iter_mut().enumerate() {
                    let leaf =
                        if is_v4[at] { self.find(of_v4, v4[at]) } else { self.find(of_v6, v6[at]) };
                    // SAFETY: the leaf was read under the guard of the pin.
                    *found = leaf.is_leaf().then(|| unsafe { Match::of(leaf, Self::value(leaf)) });
                }
            }
        }
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "popcnt")]
fn find_popcnt<A: Address>(tree: Snapshot<'_, A>, address: A, count: super::count::Popcnt) -> Word {
    tree.find(address, count)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[target_feature(enable = "popcnt")]
fn find_group_popcnt<A: Address>(
    tree: Snapshot<'_, A>,
    addresses: &[A; GROUP],
    count: super::count::Popcnt,
) -> [Word; GROUP] {
    tree.find_group(addresses, count)
}

impl<'g, V: Value> Match<'g, V> {
    #[inline(always)]
    fn of(leaf: Word, value: ValueRef<'g, V>) -> Self {
        Self::new(leaf.len(), value)
    }

    #[inline(always)]
    pub(super) fn new(len: u8, value: ValueRef<'g, V>) -> Self {
        // No length is 255, so the sum is not zero.
        Self { len_and_one: NonZeroU8::MIN.saturating_add(len), value }
    }
}

/// A walk in either family, or over both.
#[allow(clippy::large_enum_variant)] // a walk allocates nothing
pub(super) enum Walk<'g> {
    Covered(Option<Covered<'g, u32>>, Option<Covered<'g, u128>>),
    Covering4(Covering<'g, u32>),
    Covering6(Covering<'g, u128>),
}

impl<'g> Walk<'g> {
    /// All prefixes of a table.
    pub(super) fn all<V: Value, P: Placement>(table: &Lpm<V, P>, guard: &'g Guard) -> Self {
        let v4 = Covered::new(table.v4.snapshot(guard), 0, 0);
        Self::Covered(Some(v4), Some(Covered::new(table.v6.snapshot(guard), 0, 0)))
    }

    /// The prefixes that one covers.
    pub(super) fn covered<V: Value, P: Placement>(
        table: &Lpm<V, P>,
        net: IpNet,
        guard: &'g Guard,
    ) -> Self {
        match parts(net.trunc()) {
            Family::V4((net, len)) => {
                Self::Covered(Some(Covered::new(table.v4.snapshot(guard), net, len)), None)
            }
            Family::V6((net, len)) => {
                Self::Covered(None, Some(Covered::new(table.v6.snapshot(guard), net, len)))
            }
        }
    }

    /// The prefixes that cover one.
    pub(super) fn covering<V: Value, P: Placement>(
        table: &Lpm<V, P>,
        net: IpNet,
        guard: &'g Guard,
    ) -> Self {
        match parts(net.trunc()) {
            Family::V4((net, len)) => {
                Self::Covering4(Covering::new(table.v4.snapshot(guard), net, len))
            }
            Family::V6((net, len)) => {
                Self::Covering6(Covering::new(table.v6.snapshot(guard), net, len))
            }
        }
    }
}

impl Iterator for Walk<'_> {
    type Item = (IpNet, Word);

    fn next(&mut self) -> Option<(IpNet, Word)> {
        fn of<A: Address>((address, leaf): (A, Word)) -> (IpNet, Word) {
            (address.net(leaf.len()), leaf)
        }
        match self {
            Self::Covered(v4, v6) => {
                let next = v4.as_mut().and_then(Iterator::next).map(of);
                next.or_else(|| v6.as_mut()?.next().map(of))
            }
            Self::Covering4(walk) => walk.next().map(of),
            Self::Covering6(walk) => walk.next().map(of),
        }
    }
}
