//! Builds: what differs between two implementations of one algorithm.
//!
//! # Source
//! Arbel-Raviv, Brown and Morrison, "Getting to the root of concurrent binary search tree
//! performance", USENIX ATC 2018, section 3.1: the oversights of ten published implementations, and
//! what mending them gains.
//!
//! # How
//! A tree's algorithm is written once. What an implementation chooses freely is a policy: a `Build`
//! trait in the tree's folder, of which each build here or there is an implementation. It names a
//! node type (the order of fields, padding, the lock) and how much bookkeeping a lookup does. The
//! catalogue calls a build `NAME:BUILD`.

/// As published, with the oversights the study found: padding, scattered fields, locks of 40 bytes,
/// lookups that keep what only updates need.
#[derive(Debug)]
pub struct Baseline;

/// With those oversights mended.
#[derive(Debug)]
pub struct Fixed;

/// As small as the algorithm allows: inner nodes and leaves are kinds of their own.
#[derive(Debug)]
pub struct Compact;
