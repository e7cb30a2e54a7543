//! Building a tree from sorted entries.
//!
//! # Algorithm
//! ```text
//! neighbours part at a bit. These bits are the inner nodes of the trie, from left to right, so one
//!     pass with a stack meets each subtree as soon as it is complete (as in a Cartesian tree)
//! a subtree of entries that fit in a block stays a list of them, until it is joined with another
//!     one and the two do not fit: then each becomes a block
//! a subtree of blocks stays the content of one node, until it is joined with another one:
//!     if one is higher, the lower one becomes a node, which is one child of both
//!     if one node can have the children of both, it will
//!     else each becomes a node, and both are the children of a higher one
//! ```
//! So the longest path has as few nodes as it can have over these blocks.
//!
//! Several threads build complete subtrees of entries that follow each other. One thread joins
//! these, as if it had built them.

use super::Blocks;
use super::block::{self, New, tag};
use super::edit::{Edit, Hold, Made};
use super::key::{Bit, BlockKey, MAX_INLINE};
use super::order::{Gap, Rank};
use super::plan::Plan;
use super::shape::{Bytes, REFERENCE, Shape, fits, prefix_of};
use super::word::Word;
use crate::domain::Guard;
use crate::error::{AllocError, BulkLoadError, reserved};
use crate::threads::{for_entries, share};
use silvics_pool::Placement;
use std::num::NonZeroUsize;
use std::ops::Range;

/// The entries are divided into at least this many pieces for each thread. The calling thread adds
/// the entries of a piece one by one if the piece is smaller than the largest by this factor.
const PIECES: usize = 8;

/// Entries that may become a block.
#[derive(Clone, Copy)]
struct Few {
    first: usize,
    len: usize,
    /// The number of keys that lie in their block.
    inside: usize,
    /// Their bytes.
    bytes: usize,
}

/// A complete subtree that has no object of its own yet.
#[derive(Clone, Copy)]
enum Part {
    Few(Few),
    /// The content of a node, whose children have at most this height. It is on a stack.
    Node(u8),
}

struct Builder<'t, 'k, K: BlockKey + ?Sized, P: Placement> {
    tree: &'t Blocks<K, P>,
    entries: &'t [(K::Ref<'k>, u64)],
    /// The position of its first entry.
    first: usize,
    guard: &'t Guard,
    /// All objects that are made. Dropping it frees them.
    edit: Edit<'t, K, P>,
    /// The subtrees that are part of larger ones, with the bits where these divide behind them.
    open: Vec<(Part, Bit)>,
    /// The contents of `Part::Node`s, those of `open` first, then that of `current`.
    plans: Vec<Plan>,
    /// The subtree of the last entries.
    current: Part,
}

/// A complete subtree that a thread has built.
struct Piece<'t, K: BlockKey + ?Sized, P: Placement> {
    /// The position of its first entry.
    position: usize,
    part: Part,
    plan: Option<Plan>,
    made: Made<'t, K, P>,
}

// SAFETY: nobody else has the objects, which the plan leads to.
unsafe impl<K: BlockKey + ?Sized, P: Placement> Send for Piece<'_, K, P> {}

impl<'t, 'k, K: BlockKey + ?Sized, P: Placement> Builder<'t, 'k, K, P> {
    /// A builder without entries. The first one that it gets is that at `first`.
    fn new(
        tree: &'t Blocks<K, P>,
        entries: &'t [(K::Ref<'k>, u64)],
        first: usize,
        guard: &'t Guard,
    ) -> Self {
        let (edit, open, plans) = (Edit::new(tree, guard), Vec::new(), Vec::new());
        let current = Part::Few(Few { first, len: 0, inside: 0, bytes: 0 });
        Self { tree, entries, first, guard, edit, open, plans, current }
    }

    fn key(&self, at: usize) -> K::Ref<'k> {
        self.entries[at].0
    }

    fn one(&self, at: usize) -> Result<Part, AllocError> {
        let len = Blocks::<K, P>::check_len(self.key(at))?;
        let is_inside = K::FIXED > 0 || len <= MAX_INLINE;
        let (inside, bytes) = (usize::from(is_inside), if is_inside { len } else { 0 });
        Ok(Part::Few(Few { first: at, len: 1, inside, bytes }))
    }

    /// Adds the next entries.
    fn add_entries(&mut self, positions: Range<usize>) -> Result<(), BulkLoadError> {
        for at in positions {
            let next = self.one(at)?;
            self.add(at, next)?;
        }
        Ok(())
    }

    /// Adds the next subtree, whose first entry is at `at`.
    fn add(&mut self, at: usize, next: Part) -> Result<(), BulkLoadError> {
        let bit = if at == 0 { None } else { Some(parting::<K>(self.entries, at)?) };
        if let Some(bit) = bit.filter(|_| at > self.first) {
            self.close(bit)?;
            reserved(&mut self.open, 1)?.push((self.current, bit));
        }
        self.current = next;
        Ok(())
    }

    /// Adds the next subtree, which a thread has built.
    fn add_piece(&mut self, piece: Piece<'t, K, P>) -> Result<(), BulkLoadError> {
        self.edit.adopt(piece.made)?;
        self.add(piece.position, piece.part)?;
        reserved(&mut self.plans, 1).map_err(BulkLoadError::from)?.extend(piece.plan);
        Ok(())
    }

    /// Joins the last subtrees, as far as they part behind a bit.
    fn close(&mut self, bit: Bit) -> Result<(), AllocError> {
        while let Some((left, parting)) = self.open.pop_if(|(_, parting)| *parting > bit) {
            self.current = self.join(left, self.current, parting)?;
        }
        Ok(())
    }

    fn join(&mut self, left: Part, right: Part, bit: Bit) -> Result<Part, AllocError> {
        if let (Part::Few(left), Part::Few(right)) = (left, right) {
            let both = Few {
                first: left.first,
                len: left.len + right.len,
                inside: left.inside + right.inside,
                bytes: left.bytes + right.bytes,
            };
            if fits::<K>(both.len, self.bytes(both, 0)) {
                return Ok(Part::Few(both));
            }
        }
        // The plan of the right one is the last.
        let (mut right, right_height) = self.plan(right, bit + 1)?;
        let (mut left, left_height) = self.plan(left, bit + 1)?;
        let mut height = left_height.max(right_height);
        if left_height < height {
            left = Plan::one(self.edit.encode(&left)?);
        }
        if right_height < height {
            right = Plan::one(self.edit.encode(&right)?);
        }
        let plan = if let Some(plan) = Plan::joined::<K>(&left, &right, bit) {
            plan
        } else {
            height = height.saturating_add(1);
            let mut pair = Plan::one(self.edit.encode(&left)?);
            pair.insert(0, bit, true, self.edit.encode(&right)?);
            pair
        };
        reserved(&mut self.plans, 1)?.push(plan);
        Ok(Part::Node(height))
    }

    /// The content of a node that has a subtree, and the height of its children. The subtree has
    /// this depth if it becomes a block.
    fn plan(&mut self, part: Part, depth: Bit) -> Result<(Plan, u8), AllocError> {
        match part {
            Part::Few(few) => Ok((Plan::one(self.block(few, depth)?), 0)),
            Part::Node(height) => {
                let Some(plan) = self.plans.pop() else { unreachable!("one for each `Node`") };
                Ok((plan, height))
            }
        }
    }

    /// The bytes of the keys of some entries in a block of a depth.
    fn bytes(&self, few: Few, depth: Bit) -> Bytes {
        if K::FIXED > 0 {
            return Bytes { prefix: 0, keys: 0 };
        }
        let ends = (self.key(few.first), self.key(few.first + few.len - 1));
        let prefix = prefix_of::<K>(ends, depth);
        let outside = few.len - few.inside;
        Bytes { prefix, keys: few.bytes - few.inside * prefix + outside * REFERENCE }
    }

    fn block(&mut self, few: Few, depth: Bit) -> Result<Word, AllocError> {
        self.edit.reserve(1 + few.len - few.inside)?;
        let shape = Shape::exact::<K>(few.len, self.bytes(few, depth));
        let block = self.tree.objects.block(shape, depth, self.guard)?;
        self.edit.made(Word::block(block.as_ptr()));
        block.set_prefix(self.key(few.first));
        for at in few.first..few.first + few.len {
            let (key, value) = self.entries[at];
            let outside = self.tree.objects.long_key(key, self.guard)?;
            if let Some(key) = outside {
                self.edit.made(Word::long_key(key));
            }
            let gap = if at == few.first || K::FIXED > 0 {
                Gap::NONE
            } else {
                K::difference(self.key(at - 1), key).map_or(Gap::NONE, Gap::of)
            };
            block.append(&New { key, value, outside }, tag(K::hash(key)), Rank::last(gap));
        }
        block.set_live(block::all(few.len));
        Ok(Word::block(block.as_ptr()))
    }

    /// Joins all subtrees.
    fn close_all(&mut self) -> Result<(), AllocError> {
        while let Some((left, parting)) = self.open.pop() {
            self.current = self.join(left, self.current, parting)?;
        }
        Ok(())
    }

    /// The subtree of all entries.
    fn piece(mut self, tree: &Blocks<K, P>) -> Result<Piece<'_, K, P>, AllocError> {
        self.close_all()?;
        let (part, plan, made) = (self.current, self.plans.pop(), self.edit.into_made(tree));
        Ok(Piece { position: self.first, part, plan, made })
    }

    /// Makes the objects of all that is left, and returns the root.
    fn finish(mut self) -> Result<(Word, Edit<'t, K, P>), AllocError> {
        self.close_all()?;
        let (plan, _) = self.plan(self.current, 0)?;
        let root = self.edit.encode(&plan)?;
        Ok((root, self.edit))
    }
}

/// The bit at which an entry parts from the one before it.
fn parting<K: BlockKey + ?Sized>(
    entries: &[(K::Ref<'_>, u64)],
    at: usize,
) -> Result<Bit, BulkLoadError> {
    let (before, key) = (entries[at - 1].0, entries[at].0);
    match K::difference(before, key) {
        Some(bit) if K::has(key, bit) => Ok(bit),
        Some(_) => Err(BulkLoadError::Unsorted { position: at }),
        None => Err(BulkLoadError::Duplicate { position: at }),
    }
}

/// Divides sorted entries into pieces of at most `most`, each of which is a complete subtree.
fn pieces<K: BlockKey + ?Sized>(
    entries: &[(K::Ref<'_>, u64)],
    most: usize,
) -> Result<Vec<Range<usize>>, AllocError> {
    let (mut pieces, mut open) = (Vec::new(), Vec::new());
    reserved(&mut open, 1)?.push(0..entries.len());
    while let Some(Range { start, end }) = open.pop() {
        let bit = K::difference(entries[start].0, entries[end - 1].0);
        let Some(bit) = bit.filter(|_| end - start > most.max(1)) else {
            reserved(&mut pieces, 1)?.push(start..end);
            continue;
        };
        let low = entries[start..end].partition_point(|entry| !K::has(entry.0, bit));
        let middle = start + low;
        reserved(&mut open, 2)?.extend([middle..end, start..middle]);
    }
    Ok(pieces)
}

impl<K: BlockKey + ?Sized, P: Placement> Blocks<K, P> {
    /// See [`BlockTree::bulk_load`](super::BlockTree::bulk_load).
    pub(super) fn load_sorted(
        &mut self,
        entries: &[(K::Ref<'_>, u64)],
        threads: NonZeroUsize,
    ) -> Result<(), BulkLoadError> {
        let present = self.objects.frame().len.sum();
        if present != 0 {
            return Err(BulkLoadError::NotEmpty { entries: present.max(0) as usize });
        }
        if entries.is_empty() {
            return Ok(());
        }
        let guard = self.objects.frame().domain.pin();
        let builder = self.built(entries, threads, &guard)?;
        let (root, edit) = builder.finish()?;
        let Some(held) = Hold::new(&self.root_lock) else { unreachable!("a root is not obsolete") };
        let old = self.root.word();
        edit.link(&self.root, root, held, &mut []);
        // SAFETY: access is exclusive, and the objects of the empty tree are no longer linked.
        unsafe { self.objects.free_all(old) };
        self.objects.frame().len.add(entries.len() as i64);
        Ok(())
    }

    /// A builder that has all entries.
    fn built<'t, 'k>(
        &'t self,
        entries: &'t [(K::Ref<'k>, u64)],
        threads: NonZeroUsize,
        guard: &'t Guard,
    ) -> Result<Builder<'t, 'k, K, P>, BulkLoadError> {
        let mut builder = Builder::new(self, entries, 0, guard);
        let threads = for_entries(entries.len(), threads);
        if threads.get() == 1 {
            builder.add_entries(0..entries.len())?;
            return Ok(builder);
        }
        Self::check_sorted(entries, threads)?;
        let most = entries.len() / (PIECES * threads.get()) + 1;
        let pieces = pieces::<K>(entries, most)?;
        // Small pieces are not worth an object for each.
        let mut large = Vec::new();
        let is_large = |piece: &&Range<usize>| piece.len() >= most.div_ceil(PIECES);
        reserved(&mut large, pieces.len())?.extend(pieces.iter().filter(is_large).cloned());
        let outcomes = share(large.len(), threads, |numbers| {
            let guard = self.objects.frame().domain.pin();
            let mut list = Vec::new();
            for at in numbers {
                let piece = large[at].clone();
                let mut builder = Builder::new(self, entries, piece.start, &guard);
                builder.add_entries(piece)?;
                reserved(&mut list, 1)?.push(builder.piece(self)?);
            }
            Ok::<_, BulkLoadError>(list)
        });
        let mut built = Vec::new();
        for outcome in outcomes {
            let list = outcome?;
            reserved(&mut built, list.len())?.extend(list);
        }
        built.sort_unstable_by_key(|piece: &Piece<'_, K, P>| piece.position);
        let mut built = built.into_iter().peekable();
        for piece in pieces {
            match built.next_if(|built| built.position == piece.start) {
                Some(built) => builder.add_piece(built)?,
                None => builder.add_entries(piece)?,
            }
        }
        Ok(builder)
    }

    /// Fails with the first entry that is not in order, or whose key is too long.
    fn check_sorted(
        entries: &[(K::Ref<'_>, u64)],
        threads: NonZeroUsize,
    ) -> Result<(), BulkLoadError> {
        let each = entries.len().div_ceil(threads.get());
        let check = |start: usize| {
            // The key before the first one is compared with it.
            let first = start.saturating_sub(1);
            for at in first..entries.len().min(start + each) {
                let len = Self::check_len(entries[at].0);
                let found = len.map_err(BulkLoadError::from).and_then(|_| {
                    if at > first { parting::<K>(entries, at).map(drop) } else { Ok(()) }
                });
                found.map_err(|error| (at, error))?;
            }
            Ok(())
        };
        let outcomes = share(threads.get(), threads, |mut numbers| {
            numbers.try_for_each(|number| check(number * each))
        });
        let failed = outcomes.into_iter().filter_map(Result::err);
        failed.min_by_key(|(at, _)| *at).map_or(Ok(()), |(_, error)| Err(error))
    }
}
