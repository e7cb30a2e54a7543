//! The builds: where the words of a node are.

use super::node::Node;
use crate::bst::build::sealed::Sealed;
use crate::bst::build::{Baseline, Fixed};
use silvics_layout::{Field, NodeLayout};
use silvics_sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};
use silvics_sync::lock::SpinLock;
use std::mem::offset_of;
use std::ptr::null_mut;

/// A build of the tree.
pub trait Build: Sealed + 'static {
    /// The words of a node.
    type Words: Words;
}

impl Build for Fixed {
    type Words = Packed;
}

impl Build for Baseline {
    type Words = Padded;
}

/// The words of a node.
pub trait Words: Sized + Send + Sync + 'static {
    /// Their places in the node.
    const NODE: NodeLayout;

    /// Makes the words of a node whose links all lead nowhere.
    fn new(key: u64, value: u64) -> Self;
    /// Never changes.
    fn key(&self) -> &AtomicU64;
    /// Left and right.
    fn children(&self) -> &[AtomicPtr<Node<Self>>; 2];
    /// The value. It counts only while the node is not marked.
    fn value(&self) -> &AtomicU64;
    /// The parent.
    fn parent(&self) -> &AtomicPtr<Node<Self>>;
    /// The node before it in the list.
    fn pred(&self) -> &AtomicPtr<Node<Self>>;
    /// The node after it in the list.
    fn succ(&self) -> &AtomicPtr<Node<Self>>;
    /// Whether it is removed.
    fn marked(&self) -> &AtomicBool;
    /// Protects `succ`, the successor's `pred`, the value and the mark.
    fn succ_lock(&self) -> &SpinLock;
    /// Protects the children and their `parent`.
    fn tree_lock(&self) -> &SpinLock;
}

/// A lock in four bytes, as published.
#[repr(C, align(4))]
#[derive(Default)]
struct Wide(SpinLock);

/// Declares where the words of a node are.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident, [$($field:ident: $type:ty,)*]) => {
        $(#[$doc])*
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

            fn new(key: u64, value: u64) -> Self {
                Self {
                    key: AtomicU64::new(key),
                    children: [AtomicPtr::new(null_mut()), AtomicPtr::new(null_mut())],
                    value: AtomicU64::new(value),
                    parent: AtomicPtr::new(null_mut()),
                    pred: AtomicPtr::new(null_mut()),
                    succ: AtomicPtr::new(null_mut()),
                    succ_lock: Wide::default(),
                    tree_lock: Wide::default(),
                    marked: AtomicBool::new(false),
                    unused: Default::default(),
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
            fn parent(&self) -> &AtomicPtr<Node<Self>> {
                &self.parent
            }
            #[inline(always)]
            fn pred(&self) -> &AtomicPtr<Node<Self>> {
                &self.pred
            }
            #[inline(always)]
            fn succ(&self) -> &AtomicPtr<Node<Self>> {
                &self.succ
            }
            #[inline(always)]
            fn marked(&self) -> &AtomicBool {
                &self.marked
            }
            #[inline(always)]
            fn succ_lock(&self) -> &SpinLock {
                &self.succ_lock.0
            }
            #[inline(always)]
            fn tree_lock(&self) -> &SpinLock {
                &self.tree_lock.0
            }
        }
    };
}

words! {
    /// The words that a search reads come first, and there is no padding.
    #[repr(C)]
    Packed, [
        key: AtomicU64,
        children: [AtomicPtr<Node<Self>>; 2],
        value: AtomicU64,
        parent: AtomicPtr<Node<Self>>,
        pred: AtomicPtr<Node<Self>>,
        succ: AtomicPtr<Node<Self>>,
        succ_lock: Wide,
        tree_lock: Wide,
        marked: AtomicBool,
        unused: [u8; 0],
    ]
}

words! {
    /// A line and a half, the key behind links and locks.
    #[repr(C)]
    Padded, [
        children: [AtomicPtr<Node<Self>>; 2],
        parent: AtomicPtr<Node<Self>>,
        succ: AtomicPtr<Node<Self>>,
        pred: AtomicPtr<Node<Self>>,
        tree_lock: Wide,
        succ_lock: Wide,
        key: AtomicU64,
        value: AtomicU64,
        marked: AtomicBool,
        unused: [u8; 31],
    ]
}

// Loom's atomics have sizes of their own.
#[cfg(not(silvics_loom))]
const _: () = {
    assert!(Packed::NODE.size == 72 && Packed::NODE.search_end() == 24);
    assert!(offset_of!(Packed, key) == 0 && offset_of!(Packed, children) == 8);
    assert!(Padded::NODE.size == 96 && Padded::NODE.search_end() == 56);
    assert!(offset_of!(Padded, key) == 48 && offset_of!(Padded, children) == 0);
};
