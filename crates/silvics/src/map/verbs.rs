//! The verbs of a map, each declared once: its docs, arguments, result and operation.
//!
//! A map has three faces. They call the same operations (`ops.rs`, `scan.rs`, `batch.rs`) and
//! differ in the pin of a call and in the type of what it returns:
//!
//! | face | pin of a call | value | key | if an allocation fails |
//! |---|---|---|---|---|
//! | [`View`](super::View) | the view's | [`ValueRef`](super::ValueRef) | `K::Ref` | the call fails |
//! | [`Map`](super::Map) | one of its own | [`ValueGuard`](super::ValueGuard), which holds the pin | `K` | the call unpins, shrinks the map and repeats the operation once |
//! | [`OwnedView`](super::OwnedView) | one of its own, beside the view's | `ValueRef`, protected by the view's pin | `K` | the call fails |
//!
//! # The tables
//! A table is a macro that takes the name of a macro of the face and the face's types. It has two
//! kinds of entries:
//! * `fn verb(…) -> … = self operation(…), kind;` is implemented by the macro of the face, which
//!   adds the pin to the arguments. `kind` says what [`Map`](super::Map) does if an allocation
//!   fails: `reads` (that cannot happen), `writes` (it repeats the operation), or `writes x` (it
//!   repeats the operation with `x` as the error returns it).
//! * `fn verb(…) -> … { … }` is made of other verbs and has one body for all faces.
//!
//! To add a verb, add its entry here and its operation in one of the files above.

/// Declares the verbs that each face implements by its own macro: `$face!` is given the kind, the
/// argument to repeat with, the operation and its arguments, and makes the body.
macro_rules! declare {
    ($face:ident; $(
        $(#[$attr:meta])*
        fn $name:ident $(<$($T:ident $(: ?$maybe:ident)? $(: $bound:path)?),+>)?
            ($($args:tt)*) -> $result:ty
        $(where $($bounded:ident: $by:path,)+)?
            = $self:ident $operation:ident($($pass:expr),*), $kind:ident $($argument:ident)?;
    )*) => {$(
        $(#[$attr])*
        pub fn $name $(<$($T $(: ?$maybe)? $(: $bound)?),+>)? ($($args)*) -> $result
        $(where $($bounded: $by),+)? {
            $face!($kind $($argument)?: $self, $operation($($pass),*))
        }
    )*};
}

/// The verbs that concern one key. They return values as `$R`.
macro_rules! point_verbs {
    ($face:ident, $R:ty) => {
        $crate::map::verbs::declare! { $face;
            /// Returns the value of `key`, `None` if it is absent. With a pin and a default index,
            /// the call takes no lock and writes no memory that another thread reads. Without a pin
            /// it also pins, and may drop removed values.
            ///
            /// It allocates only if the key has several parts and more than 128 bytes: then the
            /// thread keeps a buffer for such keys.
            #[inline]
            fn get(&self, key: impl AsKey<K>) -> Option<$R> = self do_get(&key), reads;

            /// Whether `key` is present.
            #[inline]
            fn contains_key(&self, key: impl AsKey<K>) -> bool = self do_contains_key(&key), reads;

            /// Upserts like [`Self::insert`], and returns an error if an allocation fails.
            #[inline(always)]
            fn try_upsert(
                &self,
                key: impl AsKey<K>,
                value: V,
            ) -> Result<Option<$R>, Rejected<V>> = self do_insert(&key, value), writes value;

            /// Upserts like [`Self::insert_keyed`], and returns an error if an allocation fails.
            fn try_upsert_keyed(&self, value: V) -> Result<Option<$R>, Rejected<V>>
            where
                V: Keyed<Key = K>,
                = self do_insert_keyed(value), writes value;

            /// Put-if-absent: gives `key` the value `value` unless the key is present. Returns the
            /// new value, or the present one and `value` as an error.
            ///
            /// ```
            /// use silvics::map::TryInsertError;
            ///
            /// let map: silvics::Map<u64, String> = silvics::Map::new();
            /// map.insert(1, "one".into());
            /// let Err(TryInsertError::Occupied { present, value }) = map.try_insert(1, "uno".into())
            /// else {
            ///     unreachable!("the key is present")
            /// };
            /// assert_eq!((present.as_str(), value.as_str()), ("one", "uno"));
            /// ```
            #[inline]
            fn try_insert(
                &self,
                key: impl AsKey<K>,
                value: V,
            ) -> Result<$R, TryInsertError<$R, V>> = self do_try_insert(&key, value), writes value;

            /// Removes like [`Self::remove`], and returns an error if an allocation fails: some
            /// indexes allocate to remove. A removal from a default index never fails.
            #[inline(always)]
            fn try_remove(&self, key: impl AsKey<K>) -> Result<Option<$R>, AllocError>
                = self do_remove(&key), writes;

            /// Removes like [`Self::remove_if`], and returns an error if an allocation fails.
            fn try_remove_if(
                &self,
                key: impl AsKey<K>,
                mut condition: impl FnMut(&V) -> bool,
            ) -> Result<Option<$R>, RemoveIfError<$R>>
                = self do_remove_if(&key, &mut condition), writes;

            /// Updates like [`Self::update`], and returns an error if an allocation fails.
            fn try_update(
                &self,
                key: impl AsKey<K>,
                mut change: impl FnMut(&V) -> V,
            ) -> Result<Option<$R>, Rejected<Option<V>>>
                = self do_update(&key, &mut change), writes;

            /// Computes like [`Self::compute`], and returns an error if an allocation fails.
            fn try_compute<T>(
                &self,
                key: impl AsKey<K>,
                mut decide: impl FnMut(Option<&V>) -> Operation<V, T>,
            ) -> Result<Compute<$R, T>, Rejected<Option<V>>>
                = self do_compute(&key, &mut decide), computes;

            /// Brings `key` from state `expected` to state `new` in one atomic step; `None` is the
            /// state *absent*. Returns the value that the key had.
            ///
            /// Values are compared by `==`. The step replaces the very value that was compared: if
            /// the key gets another value in between, the call compares again.
            ///
            /// ```
            /// let map: silvics::Map<u64, u64> = [(1, 10)].into_iter().collect();
            /// assert!(map.compare_exchange(1, Some(&10), Some(11)).is_ok()); // 10 to 11
            /// assert!(map.compare_exchange(2, None, Some(20)).is_ok()); // inserts
            /// assert!(map.compare_exchange(1, Some(&10), None).is_err()); // it is 11
            /// assert!(map.compare_exchange(1, Some(&11), None).is_ok()); // removes
            /// ```
            fn compare_exchange(
                &self,
                key: impl AsKey<K>,
                expected: Option<&V>,
                new: Option<V>,
            ) -> Result<Option<$R>, CompareExchangeError<$R, V>>
            where
                V: PartialEq,
                = self do_compare_exchange(&key, expected, new), writes new;
        }

        /// Upsert: gives `key` the value `value`. Returns the value that the key had before, `None`
        /// if it was absent.
        ///
        /// # Panics
        /// If an allocation fails, or if the key is longer than the [limit](crate::key#limits).
        ///
        /// ```
        /// let map: silvics::Map<u64, u64> = silvics::Map::new();
        /// assert!(map.insert(1, 10).is_none());
        /// assert_eq!(map.insert(1, 11).as_deref(), Some(&10));
        /// assert_eq!(map.get(1).as_deref(), Some(&11));
        /// assert_eq!(map.remove(1).as_deref(), Some(&11));
        /// ```
        #[inline]
        pub fn insert(&self, key: impl AsKey<K>, value: V) -> Option<$R> {
            self.try_upsert(key, value).or_panic()
        }

        /// Upserts a value that contains its key: see [`Keyed`]. Returns the value that the key had
        /// before, `None` if it was absent.
        #[inline]
        pub fn insert_keyed(&self, value: V) -> Option<$R>
        where
            V: Keyed<Key = K>,
        {
            self.try_upsert_keyed(value).or_panic()
        }

        /// Returns the value of `key`, after inserting `value` if the key was absent.
        ///
        /// # Panics
        /// If an allocation fails, or if the key is longer than the [limit](crate::key#limits).
        pub fn get_or_insert(&self, key: impl AsKey<K>, value: V) -> $R {
            self.get_or_insert_with(key, || value)
        }

        /// Returns the value of `key`, after inserting the result of `make` if the key was absent.
        ///
        /// `make` runs at most once, and only if a lookup found the key absent. If another thread
        /// inserts the key first, the result of `make` is dropped.
        ///
        /// # Panics
        /// If an allocation fails, or if the key is longer than the [limit](crate::key#limits).
        ///
        /// ```
        /// let map: silvics::Map<String, String> = silvics::Map::new();
        /// assert_eq!(&*map.get_or_insert_with("one", || "eins".into()), "eins");
        /// assert_eq!(&*map.get_or_insert_with("one", || unreachable!()), "eins");
        /// ```
        pub fn get_or_insert_with(&self, key: impl AsKey<K>, make: impl FnOnce() -> V) -> $R {
            self.try_get_or_insert_with(key, make).or_panic()
        }

        /// Inserts like [`Self::get_or_insert_with`], and returns an error if an allocation fails.
        pub fn try_get_or_insert_with(
            &self,
            key: impl AsKey<K>,
            make: impl FnOnce() -> V,
        ) -> Result<$R, Rejected<V>> {
            if let Some(present) = self.get(&key) {
                return Ok(present);
            }
            match self.try_insert(&key, make()) {
                Ok(present) | Err(TryInsertError::Occupied { present, .. }) => Ok(present),
                Err(TryInsertError::Alloc(rejected)) => Err(rejected),
            }
        }

        /// Removes `key` and returns the value that it had, `None` if it was absent.
        ///
        /// # Panics
        /// If an index other than the defaults allocates to remove, and the allocation fails.
        #[inline]
        pub fn remove(&self, key: impl AsKey<K>) -> Option<$R> {
            self.try_remove(key).or_panic()
        }

        /// Removes `key` if `condition` holds for its value, in one atomic step: the condition
        /// holds for the very value that is removed. Returns that value, `None` if the key was
        /// absent, and the present value as an error if the condition does not hold.
        ///
        /// `condition` runs once for each value found, and again if another thread replaces that
        /// value. A method of [`Map`](super::Map) itself runs it again if an allocation fails.
        /// Panics like [`Self::remove`].
        ///
        /// ```
        /// let map: silvics::Map<u64, u64> = [(1, 10)].into_iter().collect();
        /// assert!(map.remove_if(1, |value| *value > 10).is_err_and(|present| *present == 10));
        /// assert!(map.remove_if(1, |value| *value == 10).is_ok_and(|removed| removed.is_some()));
        /// assert!(map.remove_if(1, |_| true).is_ok_and(|removed| removed.is_none()));
        /// ```
        pub fn remove_if(
            &self,
            key: impl AsKey<K>,
            condition: impl FnMut(&V) -> bool,
        ) -> Result<Option<$R>, $R> {
            self.try_remove_if(key, condition).or_panic()
        }

        /// Gives `key` the value that `change` makes of its present value, in one atomic step.
        /// Returns the new value, `None` if the key is absent.
        ///
        /// `change` runs once for each value found, and again if another thread replaces that
        /// value. A method of [`Map`](super::Map) itself runs it again if an allocation fails.
        ///
        /// # Panics
        /// If an allocation fails, or if the key is longer than the [limit](crate::key#limits).
        ///
        /// ```
        /// let map: silvics::Map<u64, u64> = [(1, 10)].into_iter().collect();
        /// assert_eq!(map.update(1, |value| value + 1).as_deref(), Some(&11));
        /// assert!(map.update(2, |value| value + 1).is_none());
        /// ```
        pub fn update(&self, key: impl AsKey<K>, change: impl FnMut(&V) -> V) -> Option<$R> {
            self.try_update(key, change).or_panic()
        }

        /// Inserts, replaces or removes `key` as `decide` says, in one atomic step. `decide` is
        /// given the value of the key, `None` if it is absent, and returns an [`Operation`], whose
        /// docs have an example. The step changes the very state that `decide` was given.
        ///
        /// `decide` runs once for each state found, and again if another thread changes that state;
        /// so it runs exactly once if no other thread writes this key. A value that it returned is
        /// dropped if it runs again. A method of [`Map`](super::Map) itself runs it again if an
        /// allocation fails. If it panics, the map is unchanged.
        ///
        /// # Panics
        /// If an allocation fails, or if the key is longer than the [limit](crate::key#limits).
        pub fn compute<T>(
            &self,
            key: impl AsKey<K>,
            decide: impl FnMut(Option<&V>) -> Operation<V, T>,
        ) -> Compute<$R, T> {
            self.try_compute(key, decide).or_panic()
        }
    };
}

/// The verbs that find the entry at or beside a key. They return keys as `$Key`, which `$key_of`
/// makes of a form, and values as `$R`.
macro_rules! entry_verbs {
    ($face:ident, $Key:ty, $R:ty, $key_of:path) => {
        $crate::map::verbs::declare! { $face;
            /// Returns the entry of `key`, with the key as the map holds it.
            fn get_key_value(&self, key: impl AsKey<K>) -> Option<($Key, $R)>
                = self do_get_key_value(&key, $key_of), reads;

            /// Returns the first entry within a lower bound: at or after the key of `Included`,
            /// after the key of `Excluded`, the first of all for `Unbounded`. Returns `None` if
            /// there is none.
            ///
            /// ```
            /// use std::ops::Bound::Excluded;
            ///
            /// let map: silvics::Map<String, u64> = silvics::Map::new();
            /// map.extend([("a", 1), ("b", 2)]);
            /// let view = map.pin();
            /// let after = view.lower_bound(Excluded("a")).map(|(key, _)| key);
            /// assert_eq!(after.as_deref(), Some("b"));
            /// ```
            ///
            /// It is the first entry of a scan from there. If other threads write, there may be no
            /// moment at which it was the first entry beyond the bound.
            fn lower_bound<Q: AsKey<K>>(&self, bound: Bound<Q>) -> Option<($Key, $R)>
                = self do_lower_bound(bound, $key_of), reads;

            /// Returns the last entry within an upper bound: at or before the key of `Included`,
            /// before the key of `Excluded`, the last of all for `Unbounded`. Returns `None` if
            /// there is none.
            ///
            /// It is the first entry of a descending scan from there. If other threads write, there
            /// may be no moment at which it was the last entry before the bound.
            fn upper_bound<Q: AsKey<K>>(&self, bound: Bound<Q>) -> Option<($Key, $R)>
                = self do_upper_bound(bound, $key_of), reads;
        }
    };
}

/// The verbs at both ends of a map. They return keys as `$Key`, which `$key_of` makes of a form,
/// and values as `$R`.
macro_rules! end_verbs {
    ($face:ident, $Key:ty, $R:ty, $key_of:path) => {
        $crate::map::verbs::declare! { $face;
            /// Returns the entry with the smallest key. Linearizable: at some moment during the
            /// call it was the first entry of the whole map.
            fn first(&self) -> Option<($Key, $R)> = self do_first($key_of), reads;

            /// Returns the entry with the largest key. Linearizable: at some moment during the call
            /// it was the last entry of the whole map.
            fn last(&self) -> Option<($Key, $R)> = self do_last($key_of), reads;

            /// Removes like [`Self::pop_first`], and returns an error if an allocation fails.
            fn try_pop_first(&self) -> Result<Option<($Key, $R)>, AllocError>
                = self do_pop_first($key_of), writes;

            /// Removes like [`Self::pop_last`], and returns an error if an allocation fails.
            fn try_pop_last(&self) -> Result<Option<($Key, $R)>, AllocError>
                = self do_pop_last($key_of), writes;
        }

        /// Removes the entry with the smallest key and returns it, `None` if the map is empty.
        /// Linearizable: at the moment of its removal it was the first entry of the whole map.
        /// Panics like [`Self::remove`].
        pub fn pop_first(&self) -> Option<($Key, $R)> {
            self.try_pop_first().or_panic()
        }

        /// Removes the entry with the largest key and returns it, `None` if the map is empty.
        /// Linearizable: at the moment of its removal it was the last entry of the whole map.
        /// Panics like [`Self::remove`].
        pub fn pop_last(&self) -> Option<($Key, $R)> {
            self.try_pop_last().or_panic()
        }
    };
}

/// The verbs of a map whose index counts its keys. They return keys as `$Key`, which `$key_of`
/// makes of a form, and values as `$R`.
macro_rules! rank_verbs {
    ($face:ident, $Key:ty, $R:ty, $key_of:path) => {
        $crate::map::verbs::declare! { $face;
            /// Returns the number of keys that are smaller than `key`, which need not be present.
            ///
            /// It is exact if no key is inserted or removed during the call. Otherwise it differs
            /// from the exact number at the beginning of the call by at most the number of
            /// insertions and removals that overlap the call. The first call, and the first one
            /// after many insertions and removals, counts all keys.
            fn rank(&self, key: impl AsKey<K>) -> usize = self do_rank(&key), reads;

            /// Returns the number of keys of `range`, with the guarantee of [`Self::rank`]. If the
            /// range has two bounds, only insertions and removals within it can change the result.
            /// The call visits only the keys near both ends. A range whose start is past its end
            /// has none.
            fn count(&self, range: impl KeyRange<K>) -> usize = self do_count(range), reads;

            /// Returns the entry whose key has `number` smaller keys, with the guarantee of
            /// [`Self::rank`]; `None` if there are fewer keys.
            fn nth(&self, number: usize) -> Option<($Key, $R)>
                = self do_nth(number, $key_of), reads;
        }
    };
}

/// The verbs that write many entries and return none. The macro of the face adds the guard for the
/// whole call, or none: then the operation pins anew from time to time, and repeats what fails
/// after a shrink of the map.
macro_rules! sweep_verbs {
    ($face:ident) => {
        $crate::map::verbs::declare! { $face;
            /// Upserts like [`Self::extend`] until an allocation fails. The entries before that one
            /// stay in the map; the error returns it and the rest.
            fn try_extend<Q: AsKey<K>, E: IntoIterator<Item = (Q, V)>>(
                &self,
                entries: E,
            ) -> Result<usize, ExtendError<Q, V, E::IntoIter>>
                = self do_extend(entries.into_iter(), |_| ()), sweeps;

            /// Removes like [`Self::retain`] until an allocation fails: see [`Self::try_remove`].
            /// The entries removed before that stay removed, and their number is not returned.
            fn try_retain(
                &self,
                keep: impl FnMut(&K::Ref<'_>, &V) -> bool,
            ) -> Result<usize, AllocError> = self do_retain(keep), sweeps;

            /// Removes like [`Self::remove_range`] until an allocation fails: see
            /// [`Self::try_remove`]. The entries removed before that stay removed, and their number
            /// is not returned.
            fn try_remove_range(&self, range: impl KeyRange<K>) -> Result<usize, AllocError>
                = self do_remove_range(range), sweeps;
        }

        /// Inserts every entry like [`Self::insert`], in order: if a key occurs twice, the later
        /// entry wins. Returns the number of entries of the iterator, also if their keys were
        /// present.
        ///
        /// The call takes up to 64 entries from the iterator before it inserts them, and is pinned
        /// meanwhile. Do not pass an iterator that waits, such as that of a channel: while it
        /// waits, no removed entry of the domain can be freed.
        ///
        /// The call is not atomic: each upsert takes effect at its own moment. If the iterator
        /// panics, the entries before that are inserted as far as memory allows.
        pub fn extend<Q: AsKey<K>>(&self, entries: impl IntoIterator<Item = (Q, V)>) -> usize {
            self.try_extend(entries).or_panic()
        }

        /// Removes the entries for which `keep` does not hold, and returns their number.
        ///
        /// An entry is removed together with the value that `keep` was given: if another thread
        /// replaces that value first, `keep` runs again. It also runs again if the index allocates
        /// to remove and the allocation fails. An entry that is inserted during the call may or may
        /// not be visited. If `keep` panics, the removals it has decided before are done.
        pub fn retain(&self, keep: impl FnMut(&K::Ref<'_>, &V) -> bool) -> usize {
            self.try_retain(keep).or_panic()
        }

        /// Removes the entries of `range` and returns their number. An entry that is inserted
        /// during the call may or may not be removed.
        pub fn remove_range(&self, range: impl KeyRange<K>) -> usize {
            self.try_remove_range(range).or_panic()
        }

        /// Removes all entries and returns their number. An entry that is inserted during the call
        /// may or may not be removed.
        pub fn clear(&self) -> usize {
            self.try_clear().or_panic()
        }

        /// Removes like [`Self::clear`] until an allocation fails: see [`Self::try_remove`].
        pub fn try_clear(&self) -> Result<usize, AllocError> {
            self.try_remove_range(..)
        }
    };
}

pub(super) use {declare, end_verbs, entry_verbs, point_verbs, rank_verbs, sweep_verbs};
