//! Builds: the differences between two implementations of one algorithm.
//!
//! # Source
//! Arbel-Raviv, Brown and Morrison, "Getting to the root of concurrent binary search tree
//! performance", USENIX ATC 2018, section 3.1: the oversights of ten published implementations, and
//! the gain of fixing them.
//!
//! # How
//! A tree's algorithm is written once. The choices that an implementation is free to make form a
//! policy: a `Build` trait in the tree's folder, which each build here or there implements. It
//! names a node type (the order of fields, padding, the lock) and how much bookkeeping a lookup
//! does. The catalogue calls a build `NAME:BUILD`.

/// The tree as published, with the oversights that the study found: padding, scattered fields,
/// locks of 40 bytes, lookups that keep what only updates need.
#[derive(Debug)]
pub struct Baseline;

/// The tree with those oversights fixed.
#[derive(Debug)]
pub struct Fixed;

/// The tree with nodes as small as the algorithm allows: inner nodes and leaves are separate kinds.
#[derive(Debug)]
pub struct Compact;

pub(crate) mod sealed {
    /// A type that this crate gives to a tree as its build. Trees rely on what a build names: nodes
    /// whose fields stay where they are, locks that exclude each other. So only this crate makes
    /// builds.
    pub trait Sealed {}
}

impl sealed::Sealed for Baseline {}
impl sealed::Sealed for Fixed {}
impl sealed::Sealed for Compact {}
