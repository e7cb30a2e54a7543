//! What nodes are aligned to, as types without size: `[A; 0]` aligns what it is part of.

/// A word.
#[derive(Debug)]
#[repr(align(8))]
pub struct Word;

/// Half a line: of nodes of that size, no part is in another line.
#[derive(Debug)]
#[repr(align(32))]
pub struct HalfLine;

/// A line, to which nodes are padded so.
#[derive(Debug)]
#[repr(align(64))]
pub struct Line;
