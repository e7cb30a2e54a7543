//! The verbs of a multimap and of its view, each declared once: see [`crate::map::verbs`].

/// Declares the verbs that both faces have. They return values as `$R`.
macro_rules! multi_verbs {
    ($face:ident, $R:ty) => {
        $crate::map::verbs::declare! { $face;
            /// Whether `key` has a value.
            #[inline]
            fn contains_key(&self, key: impl AsKey<K>) -> bool = self do_contains_key(&key), reads;

            /// The number of values of `key`. O(1) after the lookup of the key.
            #[inline]
            fn count(&self, key: impl AsKey<K>) -> usize = self do_count(&key), reads;

            /// Returns the first value of `key`. If the key has one value, this costs what
            /// [`View::get`](crate::View::get) costs.
            #[inline]
            fn first_of(&self, key: impl AsKey<K>) -> Option<$R> = self do_first_of(&key), reads;

            /// Returns the last value of `key`.
            fn last_of(&self, key: impl AsKey<K>) -> Option<$R> = self do_last_of(&key), reads;

            /// Whether `key` has a value that is equal to `value`. O(log n) comparisons if values
            /// are [`Sorted`](super::Sorted), O(n) if they are in the order of insertion.
            fn contains(&self, key: impl AsKey<K>, value: &V) -> bool
            where
                O: FindOrder<V>,
                = self do_contains(&key, value), reads;

            /// Inserts like [`Self::insert`], and returns an error with the value if an allocation
            /// fails. The map is unchanged then.
            #[inline(always)]
            fn try_insert(&self, key: impl AsKey<K>, value: V) -> Result<Insertion<V>, Rejected<V>>
            where
                O: Order<V>,
                = self do_insert(&key, value), writes value;

            /// Removes like [`Self::remove`], and returns an error if an allocation fails. The map
            /// is unchanged then.
            fn try_remove(&self, key: impl AsKey<K>, value: &V) -> Result<Option<$R>, AllocError>
            where
                O: FindOrder<V>,
                = self do_remove(&key, value), writes;

            /// Removes like [`Self::remove_all`], and returns an error if an allocation fails: some
            /// indexes allocate to remove. With a default index, the call never fails.
            fn try_remove_all(&self, key: impl AsKey<K>) -> Result<usize, AllocError>
                = self do_remove_all(&key), writes;

            /// Removes like [`Self::remove_range`] until an allocation fails: see
            /// [`Self::try_remove_all`].
            fn try_remove_range(&self, range: impl KeyRange<K>) -> Result<usize, AllocError>
                = self do_remove_range(range), sweeps;
        }

        /// Gives `key` the value `value` beside those that it has. If values are
        /// [`Sorted`](super::Sorted) and the key has an equal one, that one stays, and the result
        /// has `value`. If they are in the order of insertion, `value` becomes the last one.
        ///
        /// # Panics
        /// If an allocation fails, or the key is longer than the index takes.
        /// [`Self::try_insert`] returns an error instead.
        #[inline]
        pub fn insert(&self, key: impl AsKey<K>, value: V) -> Insertion<V>
        where
            O: Order<V>,
        {
            self.try_insert(key, value).or_panic()
        }

        /// Removes the first value of `key` that is equal to `value`, and returns it.
        ///
        /// # Panics
        /// If an allocation fails: a key with three values or more gets a copy of a part of its
        /// list. A key with two numbers gets a new list if the one that is left looks like the
        /// address of a list. [`Self::try_remove`] returns an error instead, and
        /// [`Self::remove_all`] does not need memory.
        pub fn remove(&self, key: impl AsKey<K>, value: &V) -> Option<$R>
        where
            O: FindOrder<V>,
        {
            self.try_remove(key, value).or_panic()
        }

        /// Removes `key` with all its values, at one moment. Returns their number. O(n).
        pub fn remove_all(&self, key: impl AsKey<K>) -> usize {
            self.try_remove_all(key).or_panic()
        }

        /// Removes the keys of `range` with all their values, and returns the number of values. The
        /// call is not atomic: each key is removed at its own moment. A key that is inserted
        /// during the call may or may not be removed.
        pub fn remove_range(&self, range: impl KeyRange<K>) -> usize {
            self.try_remove_range(range).or_panic()
        }

        /// Removes all keys like [`Self::remove_range`], and returns the number of values.
        pub fn clear(&self) -> usize {
            self.remove_range(..)
        }

        /// Inserts every pair like [`Self::insert`], in order. Returns the number of values that
        /// were added. The call is not atomic.
        ///
        /// Each insert into the list of a key copies up to 2 KiB, and the old nodes are held while
        /// any pin of the domain lasts. A view keeps its pin during the call, so it may hold much
        /// memory: 100 000 inserts into one key held 160 MiB. With a pin for each insert, as
        /// [`MultiMap::extend`](super::MultiMap::extend) takes it, they held 1.3 MiB.
        pub fn extend<Q: AsKey<K>>(&self, pairs: impl IntoIterator<Item = (Q, V)>) -> usize
        where
            O: Order<V>,
        {
            self.try_extend(pairs).or_panic()
        }

        /// Inserts like [`Self::extend`] until an allocation fails. The pairs before that one stay
        /// in the map; the error returns it and the rest. `done` of the error counts the pairs that
        /// were present, too.
        pub fn try_extend<Q: AsKey<K>, E: IntoIterator<Item = (Q, V)>>(
            &self,
            pairs: E,
        ) -> Result<usize, ExtendError<Q, V, E::IntoIter>>
        where
            O: Order<V>,
        {
            let (mut pairs, mut done, mut added) = (pairs.into_iter(), 0, 0);
            while let Some((key, value)) = pairs.next() {
                match self.try_insert(&key, value) {
                    Ok(insertion) => added += usize::from(insertion.is_added()),
                    Err(Rejected { value, error }) => {
                        let rest = vec![(key, value)].into_iter().chain(pairs);
                        return Err(ExtendError { done, error, rest });
                    }
                }
                done += 1;
            }
            Ok(added)
        }
    };
}

pub(super) use multi_verbs;
