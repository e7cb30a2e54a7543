//! Building a tree from sorted entries.
//!
//! This takes one pass: the depth at which an entry parts from the one before says which nodes are
//! complete. The others are on a stack, each with its contents so far. A complete node is made just
//! as large as its contents. Subtrees that several threads have built are put together in this way,
//! too, as if each were an entry.

use super::alloc::{Allocator, Room};
use super::hot::sampler::Sampler;
use super::key::Digit;
use super::leaf::{Entries, LeafKey};
use super::root::FULL_FROM;
use super::word::{ABSENT, Word};
use super::{Art, ArtKey};
use crate::domain::Guard;
use crate::error::{BulkLoadError, reserved};
use crate::threads::{for_entries, share};
use silvics_pool::{AllocError, Placement};
use silvics_sync::Mutex;
use std::num::NonZeroUsize;

/// A complete subtree.
struct Built<'k, K: LeafKey + ?Sized> {
    first: K::Ref<'k>,
    last: K::Ref<'k>,
    root: Top<'k, K>,
}

/// The top of a subtree.
enum Top<'k, K: LeafKey + ?Sized> {
    /// Entries that fit in a leaf. The leaf is made when the node above it is known.
    Few(Entries<'k, K>),
    Node(Word),
}

// SAFETY: the subtree is not linked, so nobody else has it (I8), and keys may be sent.
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
    /// All entries below it, while they fit in a leaf.
    few: Option<Entries<'k, K>>,
    /// The position of its first child, or of its first value if it is a node of values.
    start: usize,
}

/// A builder of a tree: its open nodes and their contents.
struct Builder<'t, 'k, K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    alloc: &'t Allocator<K, P, S>,
    guard: &'t Guard,
    /// The open nodes, from the outermost to the innermost.
    open: Vec<Open<'k, K>>,
    /// The children of all open nodes, one node after the other.
    children: Vec<(Digit, Word)>,
    /// The values of the open node of values.
    values: Vec<(Digit, u64)>,
    /// The subtree added last. Its node is not known before the next one comes.
    current: Option<Built<'k, K>>,
}

impl<'t, 'k, K: LeafKey + ?Sized, P: Placement, S: Sampler> Builder<'t, 'k, K, P, S> {
    fn new(alloc: &'t Allocator<K, P, S>, guard: &'t Guard) -> Self {
        let (open, children, values) = (Vec::new(), Vec::new(), Vec::new());
        Self { alloc, guard, open, children, values, current: None }
    }

    /// Adds a subtree behind all others. It begins with entry number `position`. On failure its
    /// nodes are freed.
    fn add(&mut self, position: usize, next: Built<'k, K>) -> Result<(), BulkLoadError> {
        let outcome = self.make_way(position, next.first);
        match (&outcome, &next.root) {
            (Ok(()), _) => self.current = Some(next),
            // SAFETY: the subtree has not been linked, so nobody else has it (I8).
            (Err(_), Top::Node(word)) => unsafe { self.alloc.free_all(*word) },
            (Err(_), Top::Few(_)) => {}
        }
        outcome
    }

    /// Puts the current subtree into its node, now that the next key is known.
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

    /// Opens a node for the current subtree.
    fn open_node(&mut self, depth: usize) -> Result<(), AllocError> {
        let Some(current) = &self.current else { return Ok(()) };
        let start = if K::is_direct(depth) { self.values.len() } else { self.children.len() };
        let (first, last) = (current.first, current.last);
        reserved(&mut self.open, 1)?.push(Open { depth, first, last, few: None, start });
        Ok(())
    }

    /// Completes the open nodes that are deeper than `depth`. The outermost becomes current.
    fn close(&mut self, depth: usize) -> Result<(), AllocError> {
        while self.open.last().is_some_and(|open| open.depth > depth) {
            self.attach()?;
            self.complete()?;
        }
        Ok(())
    }

    /// Puts the current subtree into the innermost open node.
    fn attach(&mut self) -> Result<(), AllocError> {
        let (Some(current), Some(open)) = (&self.current, self.open.last_mut()) else {
            return Ok(());
        };
        let digit = K::digit(current.first, open.depth);
        open.last = current.last;
        let joined = match current.root {
            Top::Few(entries) if K::is_direct(open.depth) => {
                reserved(&mut self.values, 1)?.push((digit, entries.as_slice()[0].1));
                self.current = None;
                return Ok(());
            }
            Top::Few(entries) if self.children.len() == open.start => joined(open.few, entries),
            Top::Few(_) | Top::Node(_) => None,
        };
        if joined.is_some() {
            open.few = joined;
        } else {
            self.spread()?;
            self.hang(digit)?;
        }
        self.current = None;
        Ok(())
    }

    /// Makes leaves of the entries of the innermost open node, which do not fit in one leaf.
    fn spread(&mut self) -> Result<(), AllocError> {
        let Some(open) = self.open.last_mut() else { return Ok(()) };
        let Some(few) = open.few.take() else { return Ok(()) };
        let digit = |entry: &(K::Ref<'k>, u64)| K::digit(entry.0, open.depth);
        for group in few.as_slice().chunk_by(|a, b| digit(a) == digit(b)) {
            let children = reserved(&mut self.children, 1)?;
            children.push((digit(&group[0]), self.alloc.leaf(group, self.guard)?));
        }
        Ok(())
    }

    /// Makes the current subtree a child of the innermost open node.
    fn hang(&mut self, digit: Digit) -> Result<(), AllocError> {
        let Some(current) = &self.current else { return Ok(()) };
        let children = reserved(&mut self.children, 1)?;
        let word = match current.root {
            Top::Few(entries) => self.alloc.leaf(entries.as_slice(), self.guard)?,
            Top::Node(word) => word,
        };
        children.push((digit, word));
        Ok(())
    }

    /// Makes the innermost open node, which becomes current.
    fn complete(&mut self) -> Result<(), AllocError> {
        let Some(&Open { depth, first, last, few, start }) = self.open.last() else {
            return Ok(());
        };
        let place = Room::exact(K::before(first, depth), depth);
        let root = match few {
            Some(few) => Top::Few(few),
            None if K::is_direct(depth) => self.direct(place, start, first)?,
            None => {
                let word = self.alloc.node(&self.children[start..], place, self.guard)?;
                self.children.truncate(start);
                Top::Node(word)
            }
        };
        self.open.pop();
        self.current = Some(Built { first, last, root });
        Ok(())
    }

    /// A node of values, or a leaf, or a node of leaves if one value cannot lie in a node.
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
                match reserved(&mut self.children, 1) {
                    Ok(children) => children.push((*digit, leaf)),
                    Err(error) => {
                        // SAFETY: the leaf has not been linked, so nobody else has it (I8).
                        unsafe { self.alloc.free(leaf) };
                        return Err(error);
                    }
                }
            }
            let word = self.alloc.node(&self.children[begin..], place, self.guard)?;
            self.children.truncate(begin);
            Top::Node(word)
        } else {
            Top::Node(self.alloc.node(values, place, self.guard)?)
        };
        self.values.truncate(start);
        Ok(top)
    }

    /// Completes everything, as the children of a root that `make` returns.
    fn root(
        mut self,
        make: impl FnOnce(&[(Digit, Word)]) -> Result<Word, AllocError>,
    ) -> Result<Word, AllocError> {
        while self.open.last().is_some_and(|open| open.depth > 0) {
            self.attach()?;
            self.complete()?;
        }
        if self.open.is_empty() {
            self.open_node(0)?;
        }
        self.attach()?;
        self.spread()?;
        let root = make(&self.children)?;
        self.children.clear();
        Ok(root)
    }

    /// Completes everything, as one subtree.
    fn finish(mut self) -> Result<Option<Built<'k, K>>, AllocError> {
        while !self.open.is_empty() {
            self.attach()?;
            self.complete()?;
        }
        Ok(self.current.take())
    }
}

/// The entries of both lists, if a leaf takes them all.
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

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Drop for Builder<'_, '_, K, P, S> {
    fn drop(&mut self) {
        let current = match self.current.as_ref().map(|current| &current.root) {
            Some(Top::Node(word)) => Some(*word),
            _ => None,
        };
        for word in self.children.iter().map(|(_, word)| *word).chain(current) {
            // SAFETY: the subtrees have not been linked, so nobody else has them (I8).
            unsafe { self.alloc.free_all(word) };
        }
    }
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// See [`ArtTree::bulk_load`](super::ArtTree::bulk_load).
    pub(super) fn bulk_load(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        threads: NonZeroUsize,
    ) -> Result<(), BulkLoadError> {
        let guard = self.alloc.frame().domain.pin();
        let present = self.alloc.frame().len.sum();
        if present != 0 {
            return Err(BulkLoadError::NotEmpty { entries: present.max(0) as usize });
        }
        if entries.is_empty() {
            return Ok(());
        }
        let mut builder = Builder::new(&self.alloc, &guard);
        let threads = for_entries(entries.len(), threads);
        if threads.get() == 1 {
            for (position, entry) in entries.iter().enumerate() {
                builder.add(position, Built::entry(*entry))?;
            }
        } else {
            let parts = split::<K>(entries, entries.len() / (8 * threads.get()) + 1)?;
            let pieces = Pieces { alloc: &self.alloc, built: Mutex::new(Vec::new()) };
            self.build(&parts, &pieces, threads)?;
            pieces.built.lock().sort_unstable_by_key(|(position, _)| std::cmp::Reverse(*position));
            while let Some((position, built)) = pieces.next() {
                builder.add(position, built)?;
            }
        }
        let large = self.alloc.frame().config.budget.held() >= FULL_FROM;
        let root = builder.root(|children| {
            if large {
                self.alloc.full(children, &guard)
            } else {
                self.alloc.node(children, Room::exact(0, 0), &guard)
            }
        })?;
        self.hang(root, &guard);
        self.alloc.frame().len.add(entries.len() as i64);
        Ok(())
    }

    /// Builds the subtrees of parts on several threads.
    fn build<'k>(
        &self,
        parts: &[Part<'_, 'k, K>],
        pieces: &Pieces<'_, 'k, K, P, S>,
        threads: NonZeroUsize,
    ) -> Result<(), BulkLoadError> {
        let (domain, alloc) = (&self.alloc.frame().domain, &self.alloc);
        let outcomes: Vec<Result<(), BulkLoadError>> = share(parts.len(), threads, |numbers| {
            let guard = domain.pin();
            for at in numbers {
                let Part { position, entries } = parts[at];
                let mut builder = Builder::new(alloc, &guard);
                for (offset, entry) in entries.iter().enumerate() {
                    builder.add(position + offset, Built::entry(*entry))?;
                }
                pieces.add(position, builder)?;
            }
            Ok(())
        });
        // Threads take parts in order, so the first of several errors is among those found.
        let errors = outcomes.into_iter().filter_map(Result::err);
        errors.min_by_key(BulkLoadError::position).map_or(Ok(()), Err)
    }
}

/// All entries below some node, from a position on.
struct Part<'e, 'k, K: LeafKey + ?Sized> {
    position: usize,
    entries: &'e [(K::Ref<'k>, u64)],
}

/// The subtrees that threads have built, with the position of their first entries.
struct Pieces<'t, 'k, K: LeafKey + ?Sized, P: Placement, S: Sampler> {
    alloc: &'t Allocator<K, P, S>,
    built: Mutex<Vec<(usize, Built<'k, K>)>>,
}

impl<'k, K: LeafKey + ?Sized, P: Placement, S: Sampler> Pieces<'_, 'k, K, P, S> {
    fn add(&self, position: usize, builder: Builder<'_, 'k, K, P, S>) -> Result<(), AllocError> {
        let mut built = self.built.lock();
        let list = reserved(&mut built, 1)?;
        list.extend(builder.finish()?.map(|piece| (position, piece)));
        Ok(())
    }

    /// Takes the last subtree of the list.
    fn next(&self) -> Option<(usize, Built<'k, K>)> {
        self.built.lock().pop()
    }
}

impl<K: LeafKey + ?Sized, P: Placement, S: Sampler> Drop for Pieces<'_, '_, K, P, S> {
    fn drop(&mut self) {
        while let Some((_, piece)) = self.next() {
            if let Top::Node(word) = piece.root {
                // SAFETY: the subtree has not been linked, so nobody else has it (I8).
                unsafe { self.alloc.free_all(word) };
            }
        }
    }
}

/// The entries in parts of at most `most`, as far as they can be divided. Each part has all entries
/// below one node.
fn split<'e, 'k, K: LeafKey + ?Sized>(
    entries: &'e [(K::Ref<'k>, u64)],
    most: usize,
) -> Result<Vec<Part<'e, 'k, K>>, AllocError> {
    let (mut parts, mut open) = (Vec::new(), Vec::new());
    reserved(&mut open, 1)?.push(Part::<K> { position: 0, entries });
    while let Some(Part { position, entries }) = open.pop() {
        let ends = (entries.first(), entries.last());
        let (Some((first, _)), Some((last, _))) = ends else { continue };
        if entries.len() <= most || first == last {
            reserved(&mut parts, 1)?.push(Part { position, entries });
            continue;
        }
        let depth = K::parting(*first, *last);
        let (begin, mut from) = (open.len(), 0);
        while from < entries.len() {
            let digit = K::digit(entries[from].0, depth);
            let rest = &entries[from..];
            // Unsorted entries come to some part or other. Building the parts finds them.
            let len = rest.partition_point(|entry| K::digit(entry.0, depth) <= digit).max(1);
            reserved(&mut open, 1)?.push(Part { position: position + from, entries: &rest[..len] });
            from += len;
        }
        open[begin..].reverse();
        if open.len() == begin + 1 {
            reserved(&mut parts, 1)?.extend(open.pop());
        }
    }
    Ok(parts)
}
