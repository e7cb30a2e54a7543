//! The alignments of nodes, as types without size: `[A; 0]` aligns the type that contains it.

/// The alignment of a word.
#[derive(Debug)]
#[repr(align(8))]
pub struct Word;

/// The alignment of half a line: a node of that size lies in one line.
#[derive(Debug)]
#[repr(align(32))]
pub struct HalfLine;

/// The alignment of a line, to which it pads nodes.
#[derive(Debug)]
#[repr(align(64))]
pub struct Line;
