//! The invariants of a tree, checked one by one.

use super::address::{Address, LEVELS, home, stride};
use super::count::Portable;
use super::node::{NODE, Node, extent};
use super::tree::Snapshot;
use super::word::Word;
use crate::error::Violation;
use crate::frame::violation;
use silvics_layout::Placed;

/// Verifies the nodes below a snapshot, and shows `see` each. Returns the number of prefixes.
pub(super) fn check<A: Address>(
    snapshot: Snapshot<'_, A>,
    see: &mut dyn FnMut(Placed),
) -> Result<usize, Violation> {
    // SAFETY: the word is the root.
    let root = unsafe { snapshot.node(snapshot.root()) };
    match root {
        None if snapshot.root().is_none() => Ok(0),
        None => violation("N3", "the root is a leaf".to_string()),
        Some(root) if !root.inherited().is_none() => {
            violation("N5", "the root inherits a leaf".to_string())
        }
        Some(root) => below(root, A::from_path([0; 2]), 0, see),
    }
}

/// Verifies a node in a slot that ends at `end`, and what is below it.
fn below<A: Address>(
    node: Node<'_, A>,
    address: A,
    end: u8,
    see: &mut dyn FnMut(Placed),
) -> Result<usize, Violation> {
    // SAFETY: the node is readable.
    let (memory, bytes) = unsafe { extent(node.word()) };
    see(Placed { layout: &NODE, address: memory.addr().get(), before: 0, bytes });
    let depth = node.depth();
    let at = || format!("the node at {} of length {depth}", address.net(end));
    let fits = if A::SKIPS { depth >= end && depth == home(depth + 1) } else { depth == end };
    if !fits || node.is_on_path(address, end) != (!A::SKIPS || node.path().common(address) >= end) {
        return violation("N3", format!("{} is not where its slot leads to", at()));
    }
    if A::SKIPS && (!node.is_on_path(address, end) || node.path().first_bits(depth) != node.path())
    {
        return violation("N3", format!("{} has another path", at()));
    }
    let address = if A::SKIPS { node.path() } else { address };
    let mut prefixes = shown_as_longest(node, &at)?;
    let (mut children, own) = (0, prefixes);
    for slot in 0..node.slots() {
        // SAFETY: the word was read in this node.
        if let Some(child) = unsafe { node.child(node.slot(slot, Portable)) } {
            children += 1;
            let end = depth + stride(depth);
            prefixes += below(child, address.with_digit(depth, slot), end, see)?;
        }
    }
    if own == 0 && (children == 0 || A::SKIPS && children == 1) {
        return violation("N6", format!("{} has no prefix and {children} children", at()));
    }
    Ok(prefixes)
}

/// Verifies that each slot shows the longest prefix of the node that covers it, and that exactly
/// the others are hidden. Returns the number of prefixes.
fn shown_as_longest<A: Address>(
    node: Node<'_, A>,
    at: &dyn Fn() -> String,
) -> Result<usize, Violation> {
    let (depth, stride) = (node.depth(), stride(node.depth()));
    // SAFETY: the words were read in this node.
    let shown = |slot| unsafe { node.shown(node.slot(slot, Portable)) };
    let mut leaves: Vec<Word> = vec![Word::NONE; 1 << (stride + 1)];
    for slot in 0..node.slots() {
        let leaf = shown(slot);
        if leaf.is_none() {
            continue;
        }
        let behind = leaf.len().wrapping_sub(depth);
        if !leaf.is_leaf() || behind > stride || (behind == 0 && depth > 0) {
            return violation("N5", format!("{} shows a prefix of another node", at()));
        }
        let number = 1 << behind | slot >> (stride - behind);
        if !leaves[number].is_none() && leaves[number] != leaf {
            return violation("N5", format!("{} shows two leaves of one prefix", at()));
        }
        leaves[number] = leaf;
    }
    for hidden in node.hidden() {
        let number = 1 << hidden.behind() | hidden.first() >> (stride - hidden.behind());
        if hidden.behind() > stride || !leaves[number].is_none() {
            return violation("N5", format!("{} hides what a slot shows", at()));
        }
        leaves[number] = Word::leaf(hidden.payload(), depth + hidden.behind());
    }
    for slot in 0..node.slots() {
        let longest = (0..=stride).rev().find_map(|behind| {
            Some(leaves[1 << behind | slot >> (stride - behind)]).filter(|leaf| leaf.is_leaf())
        });
        if shown(slot) != longest.unwrap_or(Word::NONE) {
            return violation("N5", format!("{}: slot {slot} shows a shorter prefix", at()));
        }
    }
    Ok(leaves.iter().filter(|leaf| leaf.is_leaf()).count())
}

/// Calls `see` with each node below a word, a parent after its children, and with its prefixes.
pub(super) fn each_node<A: Address>(snapshot: Snapshot<'_, A>, mut see: impl FnMut(Node<'_, A>)) {
    let mut open: [Option<(Node<'_, A>, usize)>; LEVELS] = [None; LEVELS];
    let mut len = 0_usize;
    // SAFETY: the word is the root.
    if let Some(root) = unsafe { snapshot.node(snapshot.root()) } {
        (open[0], len) = (Some((root, 0)), 1);
    }
    while let Some(Some((node, slot))) = len.checked_sub(1).map(|last| &mut open[last]) {
        if *slot == node.slots() {
            len -= 1;
            see(*node);
            continue;
        }
        // SAFETY: the word was read in this node.
        let child = unsafe { node.child(node.slot(*slot, Portable)) };
        *slot += 1;
        if let Some(child) = child {
            open[len] = Some((child, 0));
            len += 1;
        }
    }
}
