//! Building a tree from sorted entries.
//!
//! In one pass: the depth at which an entry parts from the one before tells which nodes are complete. Those
//! that are not yet are on a stack, each with what it has so far; a complete one is made just as large as
//! what is in it. Subtrees that several threads have built are put together in the same way, as if each were
//! an entry.

use super::ArtKey;
use super::ArtTree;
use super::alloc::{Allocator, Room};
use super::key::Digit;
use super::leaf::{Entries, LeafKey};
use super::node::{AnySize, NodeRef};
use super::word::{ABSENT, Word};
use crate::domain::Guard;
use crate::error::BulkLoadError;
use silvics_pool::{AllocError, Placement};
use silvics_sync::Mutex;
use silvics_sync::atomic::{AtomicUsize, Ordering};
use std::num::NonZeroUsize;

/// A complete subtree.
struct Built<'k, K: LeafKey + ?Sized> {
    first: K::Ref<'k>,
    last: K::Ref<'k>,
    root: Top<'k, K>,
}

/// What a subtree begins with.
enum Top<'k, K: LeafKey + ?Sized> {
    /// So few entries that they make a leaf, once it is known what they hang from.
    Few(Entries<'k, K>),
    Node(Word),
}

// SAFETY: nobody else has the subtree.
unsafe impl<K: LeafKey + ?Sized> Send for Built<'_, K> {}

impl<'k, K: LeafKey + ?Sized> Built<'k, K> {
    fn entry((key, value): (K::Ref<'k>, u64)) -> Self {
        Self { first: key, last: key, root: Top::Few(Entries::one(key, value)) }
    }
}

/// A node that is not complete.
struct Open<'k, K: LeafKey + ?Sized> {
    depth: usize,
    first: K::Ref<'k>,
    last: K::Ref<'k>,
    /// All entries below it, as long as they are few.
    few: Option<Entries<'k, K>>,
    /// Where its children begin; of a node of the last byte, its values.
    start: usize,
}

/// Subtrees and nodes on the way to a tree.
struct Builder<'t, 'k, K: LeafKey + ?Sized, P: Placement> {
    alloc: &'t Allocator<K, P>,
    guard: &'t Guard,
    /// From the outermost to the innermost.
    open: Vec<Open<'k, K>>,
    /// Of all open nodes, one after the other.
    children: Vec<(Digit, Word)>,
    values: Vec<(Digit, u64)>,
    /// Where the last one added belongs is not known before the next.
    current: Option<Built<'k, K>>,
}

/// Makes room for one more.
fn reserved<T>(list: &mut Vec<T>) -> Result<&mut Vec<T>, AllocError> {
    let requested = (list.capacity() + 1) * size_of::<T>();
    list.try_reserve(1).map_err(|_| AllocError::System { requested })?;
    Ok(list)
}

impl<'t, 'k, K: LeafKey + ?Sized, P: Placement> Builder<'t, 'k, K, P> {
    fn new(alloc: &'t Allocator<K, P>, guard: &'t Guard) -> Self {
        let (open, children, values) = (Vec::new(), Vec::new(), Vec::new());
        Self { alloc, guard, open, children, values, current: None }
    }

    /// Adds what comes behind all that has been added: entry number `position`, or a subtree that begins
    /// with it. Frees it if that cannot be.
    fn add(&mut self, position: usize, next: Built<'k, K>) -> Result<(), BulkLoadError> {
        let outcome = self.make_way(position, next.first);
        match (&outcome, &next.root) {
            (Ok(()), _) => self.current = Some(next),
            // SAFETY: nobody else has it.
            (Err(_), Top::Node(word)) => unsafe { self.alloc.free_all(*word) },
            (Err(_), Top::Few(_)) => {}
        }
        outcome
    }

    /// Puts what is current where it belongs, now that the next key is known.
    fn make_way(&mut self, position: usize, next: K::Ref<'k>) -> Result<(), BulkLoadError> {
        let (bytes, limit) = (K::len(next), K::MAX_BYTES);
        if bytes > limit {
            return Err(AllocError::KeyLength { bytes, limit }.into());
        }
        let previous = self.current.as_ref().map(|current| current.last);
        if let Some(previous) = previous {
            match previous.cmp(&next) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => return Err(BulkLoadError::Duplicate { position }),
                std::cmp::Ordering::Greater => return Err(BulkLoadError::Unsorted { position }),
            }
            let depth = K::parting(previous, next);
            self.close(depth)?;
            if self.open.last().is_none_or(|open| open.depth < depth) {
                self.open_node(depth)?;
            }
            self.attach()?;
        }
        Ok(())
    }

    /// Opens a node, for what is current.
    fn open_node(&mut self, depth: usize) -> Result<(), AllocError> {
        let Some(current) = &self.current else { return Ok(()) };
        let start = if K::is_direct(depth) { self.values.len() } else { self.children.len() };
        let (first, last) = (current.first, current.last);
        reserved(&mut self.open)?.push(Open { depth, first, last, few: None, start });
        Ok(())
    }

    /// Completes the open nodes that are deeper; the outermost of them is current then.
    fn close(&mut self, depth: usize) -> Result<(), AllocError> {
        while self.open.last().is_some_and(|open| open.depth > depth) {
            self.attach()?;
            self.complete()?;
        }
        Ok(())
    }

    /// Puts what is current into the innermost open node.
    fn attach(&mut self) -> Result<(), AllocError> {
        let (Some(current), Some(open)) = (&self.current, self.open.last_mut()) else {
            return Ok(());
        };
        let digit = K::digit(current.first, open.depth);
        open.last = current.last;
        match current.root {
            Top::Few(entries) if K::is_direct(open.depth) => {
                reserved(&mut self.values)?.push((digit, entries.as_slice()[0].1));
            }
            Top::Few(entries)
                if self.children.len() == open.start
                    && let Some(few) = joined(open.few, entries) =>
            {
                open.few = Some(few);
            }
            Top::Few(_) | Top::Node(_) => {
                self.spread()?;
                self.hang(digit)?;
            }
        }
        self.current = None;
        Ok(())
    }

    /// The entries of the innermost open node become leaves: they are too many for one.
    fn spread(&mut self) -> Result<(), AllocError> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let Some(few) = open.few.take() else { return Ok(()) };
        let digit = |entry: &(K::Ref<'k>, u64)| K::digit(entry.0, open.depth);
        for group in few.as_slice().chunk_by(|a, b| digit(a) == digit(b)) {
            let children = reserved(&mut self.children)?;
            children.push((digit(&group[0]), self.alloc.leaf(group, self.guard)?));
        }
        Ok(())
    }

    /// What is current becomes a child of the innermost open node.
    fn hang(&mut self, digit: Digit) -> Result<(), AllocError> {
        let Some(current) = &self.current else { return Ok(()) };
        let children = reserved(&mut self.children)?;
        let word = match current.root {
            Top::Few(entries) => self.alloc.leaf(entries.as_slice(), self.guard)?,
            Top::Node(word) => word,
        };
        children.push((digit, word));
        Ok(())
    }

    /// Makes the innermost open node, which is current then.
    fn complete(&mut self) -> Result<(), AllocError> {
        let Some(&Open { depth, first, last, few, start }) = self.open.last() else {
            return Ok(());
        };
        let place = Room::exact(K::before(first, depth), depth);
        let root = match few {
            Some(few) => Top::Few(few),
            None if K::is_direct(depth) => self.direct(place, start, first)?,
            None => {
                let word = self.alloc.words(&self.children[start..], place, self.guard)?;
                self.children.truncate(start);
                Top::Node(word)
            }
        };
        self.open.pop();
        self.current = Some(Built { first, last, root });
        Ok(())
    }

    /// A node of values, or a leaf, or if a value cannot lie there a node of leaves.
    fn direct(
        &mut self,
        place: Room,
        start: usize,
        first: K::Ref<'k>,
    ) -> Result<Top<'k, K>, AllocError> {
        let values = &self.values[start..];
        let prefix = K::before(first, K::MAX_BYTES - 1);
        let key = |digit: Digit| K::shorten(K::direct(prefix, digit.expect("a byte")));
        let top = if values.len() <= K::LEAF_KEYS {
            let mut entries = Entries::one(key(values[0].0), values[0].1);
            values[1..].iter().for_each(|(digit, value)| entries.push(key(*digit), *value));
            Top::Few(entries)
        } else if values.iter().any(|(_, value)| *value == ABSENT) {
            let begin = self.children.len();
            for (digit, value) in values {
                let leaf = self.alloc.leaf(&[(key(*digit), *value)], self.guard)?;
                match reserved(&mut self.children) {
                    Ok(children) => children.push((*digit, leaf)),
                    Err(error) => {
                        // SAFETY: just made.
                        unsafe { self.alloc.free(leaf) };
                        return Err(error);
                    }
                }
            }
            let word = self.alloc.words(&self.children[begin..], place, self.guard)?;
            self.children.truncate(begin);
            Top::Node(word)
        } else {
            Top::Node(self.alloc.values(values, place, self.guard)?)
        };
        self.values.truncate(start);
        Ok(top)
    }

    /// Hangs everything from a tree's root, which has nothing yet.
    fn hang_from(mut self, root: AnySize<'_, Word>) -> Result<(), AllocError> {
        while self.open.last().is_some_and(|open| open.depth > 0) {
            self.attach()?;
            self.complete()?;
        }
        if self.open.is_empty() {
            self.open_node(0)?;
        }
        self.attach()?;
        self.spread()?;
        for (digit, word) in self.children.drain(..) {
            root.put(digit, word);
        }
        Ok(())
    }

    /// Everything as one subtree.
    fn finish(mut self) -> Result<Option<Built<'k, K>>, AllocError> {
        while !self.open.is_empty() {
            self.attach()?;
            self.complete()?;
        }
        Ok(self.current.take())
    }
}

/// Entries and more behind them, if a leaf takes them all.
fn joined<'k, K: LeafKey + ?Sized>(
    few: Option<Entries<'k, K>>,
    more: Entries<'k, K>,
) -> Option<Entries<'k, K>> {
    let Some(mut few) = few else { return Some(more) };
    let fit = few.as_slice().len() + more.as_slice().len() <= K::LEAF_KEYS;
    fit.then(|| {
        more.as_slice().iter().for_each(|(key, value)| few.push(*key, *value));
        few
    })
}

impl<K: LeafKey + ?Sized, P: Placement> Drop for Builder<'_, '_, K, P> {
    fn drop(&mut self) {
        let current = match self.current.as_ref().map(|current| &current.root) {
            Some(Top::Node(word)) => Some(*word),
            _ => None,
        };
        for word in self.children.iter().map(|(_, word)| *word).chain(current) {
            // SAFETY: they have not become part of a tree.
            unsafe { self.alloc.free_all(word) };
        }
    }
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// Fills an empty tree with entries in ascending order of their keys, on so many threads. Each node is
    /// just as large as what is in it. If anything is wrong, the tree stays empty.
    ///
    /// O(all bytes of all keys), and beside the tree some hundred bytes for each depth that nodes are at.
    ///
    /// ```
    /// use silvics::{ArtTree, Options, OrderedIndex};
    ///
    /// let mut tree: ArtTree = ArtTree::with_options(&Options::default())?;
    /// let squares: Vec<(u64, u64)> = (0..1000).map(|n| (n, n * n)).collect();
    /// tree.bulk_load(&squares, std::num::NonZero::<usize>::MIN)?;
    /// assert_eq!(tree.pin().get(30), Some(900));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn bulk_load(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        threads: NonZeroUsize,
    ) -> Result<(), BulkLoadError> {
        let guard = self.domain.pin();
        let NodeRef::Words(root) = self.root().node else { unreachable!("a node of words") };
        let present = self.len.sum();
        if present != 0 {
            return Err(BulkLoadError::NotEmpty { entries: present.max(0) as usize });
        }
        let mut builder = Builder::new(&self.alloc, &guard);
        if threads.get() == 1 {
            for (position, entry) in entries.iter().enumerate() {
                builder.add(position, Built::entry(*entry))?;
            }
        } else {
            let parts = split::<K>(entries, entries.len() / (8 * threads.get()) + 1);
            let pieces = Pieces { alloc: &self.alloc, built: Mutex::new(Vec::new()) };
            self.build(&parts, &pieces, threads)?;
            pieces.built.lock().sort_unstable_by_key(|(position, _)| std::cmp::Reverse(*position));
            while let Some((position, built)) = pieces.next() {
                builder.add(position, built)?;
            }
        }
        builder.hang_from(root)?;
        self.len.add(entries.len() as i64);
        Ok(())
    }

    /// Builds parts on several threads.
    fn build<'k>(
        &self,
        parts: &[Part<'_, 'k, K>],
        pieces: &Pieces<'_, 'k, K, P>,
        threads: NonZeroUsize,
    ) -> Result<(), BulkLoadError> {
        let next = AtomicUsize::new(0);
        let work = || {
            let guard = self.domain.pin();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed); // Relaxed: a number for each
                let Some(&Part { position, entries }) = parts.get(at) else { return Ok(()) };
                let mut builder = Builder::new(&self.alloc, &guard);
                for (offset, entry) in entries.iter().enumerate() {
                    builder.add(position + offset, Built::entry(*entry))?;
                }
                pieces.add(position, builder)?;
            }
        };
        // Parts are begun in their order: so of several mistakes the first one is among those found.
        let outcomes: Vec<Result<(), BulkLoadError>> = std::thread::scope(|scope| {
            let others: Vec<_> = (1..threads.get()).map(|_| scope.spawn(work)).collect();
            let mine = work();
            let others = others.into_iter().map(|other| match other.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            std::iter::once(mine).chain(others.collect::<Vec<_>>()).collect()
        });
        let errors = outcomes.into_iter().filter_map(Result::err);
        errors.min_by_key(BulkLoadError::position).map_or(Ok(()), Err)
    }
}

/// Entries that are all there are below some node, from a position on.
struct Part<'e, 'k, K: LeafKey + ?Sized> {
    position: usize,
    entries: &'e [(K::Ref<'k>, u64)],
}

/// Subtrees that threads have built, by the position of their first entry.
struct Pieces<'t, 'k, K: LeafKey + ?Sized, P: Placement> {
    alloc: &'t Allocator<K, P>,
    built: Mutex<Vec<(usize, Built<'k, K>)>>,
}

impl<'k, K: LeafKey + ?Sized, P: Placement> Pieces<'_, 'k, K, P> {
    fn add(&self, position: usize, builder: Builder<'_, 'k, K, P>) -> Result<(), AllocError> {
        let mut built = self.built.lock();
        let list = reserved(&mut built)?;
        list.extend(builder.finish()?.map(|piece| (position, piece)));
        Ok(())
    }

    /// Takes the last one of the list.
    fn next(&self) -> Option<(usize, Built<'k, K>)> {
        self.built.lock().pop()
    }
}

impl<K: LeafKey + ?Sized, P: Placement> Drop for Pieces<'_, '_, K, P> {
    fn drop(&mut self) {
        while let Some((_, piece)) = self.next() {
            if let Top::Node(word) = piece.root {
                // SAFETY: nobody else has it.
                unsafe { self.alloc.free_all(word) };
            }
        }
    }
}

/// Entries in parts of at most so many, as far as they can be divided: each has all entries below one node.
fn split<'e, 'k, K: LeafKey + ?Sized>(
    entries: &'e [(K::Ref<'k>, u64)],
    most: usize,
) -> Vec<Part<'e, 'k, K>> {
    let (mut parts, mut open) = (Vec::new(), vec![Part::<K> { position: 0, entries }]);
    while let Some(Part { position, entries }) = open.pop() {
        let ends = (entries.first(), entries.last());
        let (Some((first, _)), Some((last, _))) = ends else { continue };
        if entries.len() <= most || first == last {
            parts.push(Part { position, entries });
            continue;
        }
        let depth = K::parting(*first, *last);
        let (begin, mut from) = (open.len(), 0);
        while from < entries.len() {
            let digit = K::digit(entries[from].0, depth);
            let rest = &entries[from..];
            // Entries that are not sorted come to any parts; that is found when these are built.
            let len = rest.partition_point(|entry| K::digit(entry.0, depth) <= digit).max(1);
            open.push(Part { position: position + from, entries: &rest[..len] });
            from += len;
        }
        open[begin..].reverse();
        if open.len() == begin + 1 {
            parts.extend(open.pop());
        }
    }
    parts
}
