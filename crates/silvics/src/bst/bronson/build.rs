//! The builds: where the words of a node are, which lock it has, and how far a descent whose
//! validation fails goes back.

use super::node::Node;
use crate::bst::build::sealed::Sealed;
use crate::bst::build::{Baseline, Fixed};
use silvics_layout::{Field, NodeLayout};
use silvics_sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};
use silvics_sync::lock::{RawLock, SpinLock};
use silvics_sync::pthread::PthreadLock;
use std::mem::offset_of;
use std::ptr::null_mut;

/// A build of the tree.
pub trait Build: Sealed + 'static {
    /// The words of a node.
    type Words: Words;
    /// Whether a descent goes back by one level, by returning from a recursive call as the paper
    /// has it, or to the root.
    const RECURSES: bool;
}

/// `occ-avl` as it is best: the node of [`Fixed`], descents that start again at the root.
#[derive(Debug)]
pub struct Restarting;

/// `occ-avl-2` as published.
#[derive(Debug)]
pub struct Baseline2;

/// `occ-avl-2`, in which the study found no oversight, so this build is the published one.
pub type Fixed2 = Baseline2;

/// `occ-avl-2` with descents that start again at the root: the study's `-ret`.
#[derive(Debug)]
pub struct Restarting2;

impl Sealed for Restarting {}

impl Build for Restarting {
    type Words = Line;
    const RECURSES: bool = false;
}

impl Build for Fixed {
    type Words = Line;
    const RECURSES: bool = true;
}

impl Build for Baseline {
    type Words = Spread;
    const RECURSES: bool = true;
}

impl Sealed for Baseline2 {}

impl Build for Baseline2 {
    type Words = Padded;
    const RECURSES: bool = true;
}

impl Sealed for Restarting2 {}

impl Build for Restarting2 {
    type Words = Padded;
    const RECURSES: bool = false;
}

/// The words of a node.
pub trait Words: Sized + Send + Sync + 'static {
    /// Their places in the node.
    const NODE: NodeLayout;
    /// The lock's type.
    type Lock: RawLock;

    /// Makes the words of a node of height 1 without children and parent.
    fn new(key: u64, version: u64, value: u64) -> Self;
    /// Never changes.
    fn key(&self) -> &AtomicU64;
    /// See `node.rs`.
    fn version(&self) -> &AtomicU64;
    /// Left and right.
    fn children(&self) -> &[AtomicPtr<Node<Self>>; 2];
    /// The value. It counts only while the version says that the node has one.
    fn value(&self) -> &AtomicU64;
    /// The parent.
    fn parent(&self) -> &AtomicPtr<Node<Self>>;
    /// The height as last computed.
    fn height(&self) -> &AtomicU32;
    /// The lock.
    fn lock(&self) -> &Self::Lock;
}

/// The position of the version among the fields that a search reads.
pub(super) const VERSION: usize = 1;
/// The position of the links among the fields that a search reads.
pub(super) const CHILDREN: usize = 2;

/// Declares where the words of a node are.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $lock:ty, [$($field:ident: $type:ty,)*]) => {
        $(#[$doc])*
        pub struct $name {
            $($field: $type,)*
        }

        impl Words for $name {
            const NODE: NodeLayout = NodeLayout::of::<Self>(
                "node",
                &[
                    Field::new("key", offset_of!(Self, key), 8),
                    Field::new("version", offset_of!(Self, version), 8),
                    Field::links("children", offset_of!(Self, children), 2),
                ],
                &[
                    Field::new("key", offset_of!(Self, key), 8),
                    Field::new("version", offset_of!(Self, version), 8),
                    Field::new("value", offset_of!(Self, value), 8),
                ],
            );
            type Lock = $lock;

            fn new(key: u64, version: u64, value: u64) -> Self {
                Self {
                    key: AtomicU64::new(key),
                    version: AtomicU64::new(version),
                    children: [AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut())],
                    value: AtomicU64::new(value),
                    parent: AtomicPtr::new(null_mut()),
                    height: AtomicU32::new(1),
                    lock: <$lock>::default(),
                    unused: Default::default(),
                }
            }
            #[inline(always)]
            fn key(&self) -> &AtomicU64 {
                &self.key
            }
            #[inline(always)]
            fn version(&self) -> &AtomicU64 {
                &self.version
            }
            #[inline(always)]
            fn children(&self) -> &[AtomicPtr<Node<Self>>; 2] {
                &self.children
            }
            #[inline(always)]
            fn value(&self) -> &AtomicU64 {
                &self.value
            }
            #[inline(always)]
            fn parent(&self) -> &AtomicPtr<Node<Self>> {
                &self.parent
            }
            #[inline(always)]
            fn height(&self) -> &AtomicU32 {
                &self.height
            }
            #[inline(always)]
            fn lock(&self) -> &$lock {
                &self.lock
            }
        }
    };
}

words! {
    /// A line, with what a search reads first.
    #[repr(C, align(64))]
    Line, SpinLock, [
        key: AtomicU64,
        version: AtomicU64,
        children: [AtomicPtr<Node<Self>>; 2],
        value: AtomicU64,
        parent: AtomicPtr<Node<Self>>,
        height: AtomicU32,
        lock: SpinLock,
        unused: [u64; 0],
    ]
}

words! {
    /// Two lines: a mutex between the children and the version.
    #[repr(C)]
    Spread, PthreadLock, [
        key: AtomicU64,
        value: AtomicU64,
        height: AtomicU32,
        parent: AtomicPtr<Node<Self>>,
        children: [AtomicPtr<Node<Self>>; 2],
        unused: [u64; 2],
        lock: PthreadLock,
        version: AtomicU64,
    ]
}

words! {
    /// A line, with what a search reads anywhere in it.
    #[repr(C, align(64))]
    Padded, SpinLock, [
        key: AtomicU64,
        value: AtomicU64,
        height: AtomicU32,
        lock: SpinLock,
        version: AtomicU64,
        parent: AtomicPtr<Node<Self>>,
        children: [AtomicPtr<Node<Self>>; 2],
        unused: [u64; 0],
    ]
}

// Loom's atomics have sizes of their own.
#[cfg(not(silvics_loom))]
const _: () = {
    assert!(Line::NODE.size == 64 && Line::NODE.search_end() == 32);
    assert!(Padded::NODE.size == 64 && Padded::NODE.search_end() == 56);
    assert!(Spread::NODE.size == 112 && offset_of!(Spread, version) == 104);
};
