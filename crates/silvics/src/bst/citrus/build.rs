//! The builds: where the words of a node are, and which lock it has.

use super::node::Node;
use crate::bst::build::sealed::Sealed;
use crate::bst::build::{Baseline, Fixed};
use silvics_layout::{Field, NodeLayout};
use silvics_sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};
use silvics_sync::lock::{RawLock, SpinLock};
use silvics_sync::pthread::PthreadLock;
use std::mem::offset_of;
use std::ptr::null_mut;

/// A build of the tree.
pub trait Build: Sealed + 'static {
    /// The words of a node.
    type Words: Words;
}

impl Build for Fixed {
    type Words = Small;
}

impl Build for Baseline {
    type Words = Large;
}

/// The words of a node.
pub trait Words: Sized + Send + Sync + 'static {
    /// Their places in the node.
    const NODE: NodeLayout;
    /// The lock's type.
    type Lock: RawLock;

    /// Makes the words of a node without children.
    fn new(key: u64, value: u64) -> Self;
    /// Never changes.
    fn key(&self) -> &AtomicU64;
    /// Left and right.
    fn children(&self) -> &[AtomicPtr<Node<Self>>; 2];
    /// The value.
    fn value(&self) -> &AtomicU64;
    /// For each child, how often it has been taken away.
    fn tags(&self) -> &[AtomicU32; 2];
    /// Whether the node has left the tree.
    fn marked(&self) -> &AtomicBool;
    /// The lock.
    fn lock(&self) -> &Self::Lock;
}

/// Declares where the words of a node are.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, $lock:ty, [$($field:ident: $type:ty,)*]) => {
        $(#[$doc])*
        #[repr(C)]
        pub struct $name {
            $($field: $type,)*
        }

        impl Words for $name {
            const NODE: NodeLayout = NodeLayout::of::<Self>(
                "node",
                &[
                    Field::new("key", offset_of!(Self, key), 8),
                    Field::links("children", offset_of!(Self, children), 2),
                ],
                &[
                    Field::new("key", offset_of!(Self, key), 8),
                    Field::new("value", offset_of!(Self, value), 8),
                ],
            );
            type Lock = $lock;

            fn new(key: u64, value: u64) -> Self {
                Self {
                    key: AtomicU64::new(key),
                    children: [AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut())],
                    value: AtomicU64::new(value),
                    tags: [AtomicU32::new(0), AtomicU32::new(0)],
                    marked: AtomicBool::new(false),
                    lock: <$lock>::default(),
                }
            }
            #[inline(always)]
            fn key(&self) -> &AtomicU64 {
                &self.key
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
            fn tags(&self) -> &[AtomicU32; 2] {
                &self.tags
            }
            #[inline(always)]
            fn marked(&self) -> &AtomicBool {
                &self.marked
            }
            #[inline(always)]
            fn lock(&self) -> &$lock {
                &self.lock
            }
        }
    };
}

words! {
    /// The words that a lookup reads come first, and the lock is a byte.
    Small, SpinLock, [
        key: AtomicU64,
        children: [AtomicPtr<Node<Self>>; 2],
        value: AtomicU64,
        tags: [AtomicU32; 2],
        lock: SpinLock,
        marked: AtomicBool,
    ]
}

words! {
    /// A mutex of 40 bytes between the children and the value.
    Large, PthreadLock, [
        key: AtomicU64,
        children: [AtomicPtr<Node<Self>>; 2],
        lock: PthreadLock,
        marked: AtomicBool,
        tags: [AtomicU32; 2],
        value: AtomicU64,
    ]
}

// Loom's atomics have sizes of their own.
#[cfg(not(silvics_loom))]
const _: () = {
    assert!(Small::NODE.size == 48 && Small::NODE.search_end() == 24);
    assert!(offset_of!(Small, key) == 0 && offset_of!(Small, value) == 24);
    assert!(Large::NODE.size == 88 && Large::NODE.search_end() == 24);
    assert!(offset_of!(Large, key) == 0 && offset_of!(Large, value) == 80);
};
