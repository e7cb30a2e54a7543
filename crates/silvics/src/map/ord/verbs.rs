//! The verbs of a map of any order, each declared once for its faces, as in `map/verbs.rs`.

/// The verbs that concern one key. They return values as `$R`.
macro_rules! point_verbs {
    ($face:ident, $R:ty) => {
        $crate::map::verbs::declare! { $face;
            /// Returns the value of `key`, `None` if it is absent. With a pin, the call takes no
            /// lock and writes no memory that another thread reads.
            #[inline]
            fn get<Q: ?Sized>(&self, key: &Q) -> Option<$R>
            where
                C: Compares<K, Q>,
                = self do_get(key), reads;

            /// Whether `key` is present.
            #[inline]
            fn contains_key<Q: ?Sized>(&self, key: &Q) -> bool
            where
                C: Compares<K, Q>,
                = self do_contains_key(key), reads;

            /// Upserts like [`Self::insert`], and returns an error if an allocation fails.
            #[inline(always)]
            fn try_upsert(&self, key: K, value: V) -> Result<Option<$R>, Rejected<(K, V)>>
                = self do_insert((key, value)), inserts;

            /// Put-if-absent: gives `key` the value `value` unless the key is present. Returns the
            /// new value, or the present one, with the key and the value, as an error.
            #[inline]
            fn try_insert(&self, key: K, value: V) -> Result<$R, TryInsertError<$R, (K, V)>>
                = self do_try_insert((key, value)), inserts;

            /// Removes like [`Self::remove`], and returns an error if an allocation fails: a
            /// removal copies a part of the tree. A map with a memory limit reserves some memory
            /// for removals.
            #[inline(always)]
            fn try_remove<Q: ?Sized>(&self, key: &Q) -> Result<Option<$R>, AllocError>
            where
                C: Compares<K, Q>,
                = self do_remove(key), writes;

            /// Removes like [`Self::remove_if`], and returns an error if an allocation fails.
            fn try_remove_if<Q: ?Sized>(
                &self,
                key: &Q,
                mut condition: impl FnMut(&V) -> bool,
            ) -> Result<Option<$R>, RemoveIfError<$R>>
            where
                C: Compares<K, Q>,
                = self do_remove_if(key, &mut condition), writes;

            /// Updates like [`Self::update`], and returns an error if an allocation fails.
            fn try_update<Q: ?Sized>(
                &self,
                key: &Q,
                mut change: impl FnMut(&V) -> V,
            ) -> Result<Option<$R>, Rejected<Option<V>>>
            where
                C: Compares<K, Q>,
                = self do_update(key, &mut change), writes;

            /// Computes like [`Self::compute`], and returns an error with the key if an allocation
            /// fails.
            fn try_compute<T>(
                &self,
                key: K,
                mut decide: impl FnMut(Option<&V>) -> Operation<V, T>,
            ) -> Result<Compute<$R, T>, Rejected<(K, Option<V>)>>
                = self do_compute(key, &mut decide), computes;

            /// Gives `key` the state `new` if its value equals `expected`, in one atomic step;
            /// `None` is the state *absent*. Returns the value that the key had. To insert an
            /// absent key, use [`Self::try_insert`].
            ///
            /// Values are compared by `==`. The step replaces the very value that was compared: if
            /// the key gets another value in between, the call compares again.
            fn compare_exchange<Q: ?Sized>(
                &self,
                key: &Q,
                expected: &V,
                new: Option<V>,
            ) -> Result<$R, CompareExchangeError<$R, V>>
            where
                C: Compares<K, Q>,
                V: PartialEq,
                = self do_compare_exchange(key, expected, new), writes new;
        }

        /// Upsert: gives `key` the value `value`. Returns the value that the key had before, `None`
        /// if it was absent. If the key is present, the map keeps the key that it has, and drops
        /// this one.
        #[inline]
        pub fn insert(&self, key: K, value: V) -> Option<$R> {
            self.try_upsert(key, value).or_panic()
        }

        /// Returns the value of `key`, after inserting `value` if the key was absent.
        pub fn get_or_insert(&self, key: K, value: V) -> $R {
            self.get_or_insert_with(key, || value)
        }

        /// Returns the value of `key`, after inserting the result of `make` if the key was absent.
        ///
        /// `make` runs at most once, and only if a lookup found the key absent. If another thread
        /// inserts the key first, the result of `make` is dropped.
        pub fn get_or_insert_with(&self, key: K, make: impl FnOnce() -> V) -> $R {
            if let Some(present) = self.get(&key) {
                return present;
            }
            match self.try_insert(key, make()) {
                Ok(present) | Err(TryInsertError::Occupied { present, .. }) => present,
                Err(TryInsertError::Alloc(rejected)) => refuse(rejected.error),
            }
        }

        /// Removes `key` and returns the value that it had, `None` if it was absent.
        #[inline]
        pub fn remove<Q: ?Sized>(&self, key: &Q) -> Option<$R>
        where
            C: Compares<K, Q>,
        {
            self.try_remove(key).or_panic()
        }

        /// Removes `key` if `condition` holds for its value, in one atomic step: the condition
        /// holds for the very value that is removed. Returns that value, `None` if the key was
        /// absent, and the present value as an error if the condition does not hold.
        ///
        /// `condition` runs once for each value found, and again if another thread replaces that
        /// value. A method of [`OrdMap`] itself runs it again if an allocation fails.
        pub fn remove_if<Q: ?Sized>(
            &self,
            key: &Q,
            condition: impl FnMut(&V) -> bool,
        ) -> Result<Option<$R>, $R>
        where
            C: Compares<K, Q>,
        {
            self.try_remove_if(key, condition).or_panic()
        }

        /// Gives `key` the value that `change` makes of its present value, in one atomic step.
        /// Returns the new value, `None` if the key is absent.
        ///
        /// `change` runs once for each value found, and again if another thread replaces that
        /// value. A method of [`OrdMap`] itself runs it again if an allocation fails.
        pub fn update<Q: ?Sized>(&self, key: &Q, change: impl FnMut(&V) -> V) -> Option<$R>
        where
            C: Compares<K, Q>,
        {
            self.try_update(key, change).or_panic()
        }

        /// Inserts, replaces or removes `key` as `decide` says, in one atomic step. `decide` is
        /// given the value of the key, `None` if it is absent, and returns an [`Operation`]. The
        /// step changes the very state that `decide` was given. The key is dropped unless it is
        /// inserted.
        ///
        /// `decide` runs once for each state found, and again if another thread changes that state;
        /// so it runs exactly once if no other thread writes this key. A value that it returned is
        /// dropped if it runs again. A method of [`OrdMap`] itself runs it again if an allocation
        /// fails. If it panics, the map is unchanged.
        pub fn compute<T>(
            &self,
            key: K,
            decide: impl FnMut(Option<&V>) -> Operation<V, T>,
        ) -> Compute<$R, T> {
            self.try_compute(key, decide).or_panic()
        }
    };
}

/// The verbs that find or remove an entry. They return entries as `$E`.
macro_rules! entry_verbs {
    ($face:ident, $E:ty) => {
        $crate::map::verbs::declare! { $face;
            /// Returns the entry of `key`, with the key as the map holds it.
            fn get_key_value<Q: ?Sized>(&self, key: &Q) -> Option<$E>
            where
                C: Compares<K, Q>,
                = self do_get_key_value(key), reads_entry;

            /// Removes `key` and returns its entry, or an error if an allocation fails.
            fn try_remove_entry<Q: ?Sized>(&self, key: &Q) -> Result<Option<$E>, AllocError>
            where
                C: Compares<K, Q>,
                = self do_remove_entry(key), writes_entry;

            /// Returns the first entry at or after a bound.
            ///
            /// It is the first entry of a scan from there. If other threads write, there may be no
            /// moment at which it was the first entry beyond the bound.
            fn lower_bound<Q: ?Sized>(&self, bound: Bound<&Q>) -> Option<$E>
            where
                C: Compares<K, Q>,
                = self do_lower_bound(bound), reads_entry;

            /// Returns the last entry at or before a bound.
            ///
            /// It is the first entry of a descending scan from there. If other threads write, there
            /// may be no moment at which it was the last entry before the bound.
            fn upper_bound<Q: ?Sized>(&self, bound: Bound<&Q>) -> Option<$E>
            where
                C: Compares<K, Q>,
                = self do_upper_bound(bound), reads_entry;

            /// Returns the entry with the smallest key. Linearizable: at some moment during the
            /// call it was the first entry of the whole map.
            fn first(&self) -> Option<$E> = self do_first(), reads_entry;

            /// Returns the entry with the largest key. Linearizable: at some moment during the call
            /// it was the last entry of the whole map.
            fn last(&self) -> Option<$E> = self do_last(), reads_entry;

            /// Removes like [`Self::pop_first`], and returns an error if an allocation fails.
            fn try_pop_first(&self) -> Result<Option<$E>, AllocError>
                = self do_pop_first(), writes_entry;

            /// Removes like [`Self::pop_last`], and returns an error if an allocation fails.
            fn try_pop_last(&self) -> Result<Option<$E>, AllocError>
                = self do_pop_last(), writes_entry;
        }

        /// Removes `key` and returns its entry, `None` if it was absent.
        pub fn remove_entry<Q: ?Sized>(&self, key: &Q) -> Option<$E>
        where
            C: Compares<K, Q>,
        {
            self.try_remove_entry(key).or_panic()
        }

        /// Removes the entry with the smallest key and returns it.
        pub fn pop_first(&self) -> Option<$E> {
            self.try_pop_first().or_panic()
        }

        /// Removes the entry with the largest key and returns it.
        pub fn pop_last(&self) -> Option<$E> {
            self.try_pop_last().or_panic()
        }
    };
}

pub(super) use {entry_verbs, point_verbs};
