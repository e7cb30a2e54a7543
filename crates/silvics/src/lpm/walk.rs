//! Walks over prefixes in order: by address, and a shorter prefix before the longer ones that it
//! covers.

use super::address::{Address, LEVELS, MOST, home, stride};
use super::count::Portable;
use super::node::Node;
use super::tree::Snapshot;
use super::word::Word;

/// The prefixes of a node, as bits: that of `behind` bits with these first bits has the number
/// `1 << behind | first bits`.
type Present = [u64; 2 * MOST / 64];

/// The prefixes that a node has.
fn present<A: Address>(node: Node<'_, A>) -> Present {
    let mut present = [0; 2 * MOST / 64];
    let (depth, stride) = (node.depth(), stride(node.depth()));
    let mut add = |behind: u8, first: usize| {
        let number = 1 << behind | first;
        present[number / 64] |= 1_u64 << (number % 64);
    };
    for (first, last, word) in node.runs() {
        // SAFETY: the word was read in this node.
        let shown = unsafe { node.shown(word) };
        if shown.is_leaf() {
            let behind = shown.len() - depth;
            let shift = stride - behind;
            (first >> shift..=last >> shift).for_each(|first| add(behind, first));
        }
    }
    for hidden in node.hidden() {
        add(hidden.behind(), hidden.first() >> (stride - hidden.behind()));
    }
    present
}

/// A node on the way of a walk, and the place in it.
#[derive(Clone, Copy)]
struct Level<'g, A> {
    node: Node<'g, A>,
    address: A,
    present: Present,
    /// The slot, and the length behind the depth of the next prefix that begins there.
    slot: usize,
    behind: u8,
    /// The slot at which the walk of this node ends.
    end: usize,
}

impl<'g, A: Address> Level<'g, A> {
    /// All of a node that an address leads to.
    fn of(node: Node<'g, A>, address: A) -> Self {
        let depth = node.depth();
        let address = if A::SKIPS { node.path() } else { address.first_bits(depth) };
        Self { node, address, present: present(node), slot: 0, behind: 0, end: node.slots() }
    }

    /// The next prefix of the node that comes before the next child, or that child.
    fn step(&mut self) -> Option<Step<'g, A>> {
        let depth = self.node.depth();
        let stride = stride(depth);
        while self.slot < self.end {
            let (slot, least) =
                (self.slot, stride - (self.slot.trailing_zeros() as u8).min(stride));
            for behind in self.behind.max(least)..=stride {
                let number = 1 << behind | slot >> (stride - behind);
                if self.present[number / 64] >> (number % 64) & 1 == 1 {
                    self.behind = behind + 1;
                    let leaf = self.node.prefix(slot, behind)?;
                    return Some(Step::Prefix(self.address.with_digit(depth, slot), leaf));
                }
            }
            (self.slot, self.behind) = (slot + 1, 0);
            // SAFETY: the word is of this node.
            if let Some(child) = unsafe { self.node.child(self.node.slot(slot, Portable)) } {
                return Some(Step::Child(Level::of(child, self.address.with_digit(depth, slot))));
            }
        }
        None
    }
}

enum Step<'g, A> {
    Prefix(A, Word),
    Child(Level<'g, A>),
}

/// A walk over the prefixes that a prefix covers, itself included.
pub(super) struct Covered<'g, A> {
    levels: [Option<Level<'g, A>>; LEVELS],
    len: usize,
}

impl<'g, A: Address> Covered<'g, A> {
    pub(super) fn new(snapshot: Snapshot<'g, A>, net: A, len: u8) -> Self {
        let mut walk = Self { levels: [const { None }; LEVELS], len: 0 };
        let (mut word, home) = (snapshot.root(), home(len));
        // SAFETY: the words are the root, and words that were read in nodes of the tree.
        while let Some(node) = unsafe { snapshot.node(word) } {
            let depth = node.depth();
            if !node.is_on_path(net, depth.min(len)) {
                break;
            }
            if depth >= home {
                let mut level = Level::of(node, net);
                if depth == home {
                    level.behind = len - depth;
                    level.slot = net.digit(depth);
                    level.end = level.slot + (1 << (stride(depth) - level.behind));
                }
                walk.push(level);
                break;
            }
            word = node.slot(net.digit(depth), Portable);
        }
        walk
    }

    fn push(&mut self, level: Level<'g, A>) {
        self.levels[self.len] = Some(level);
        self.len += 1;
    }
}

impl<A: Address> Iterator for Covered<'_, A> {
    type Item = (A, Word);

    fn next(&mut self) -> Option<(A, Word)> {
        loop {
            let level = self.levels[self.len.checked_sub(1)?].as_mut()?;
            match level.step() {
                Some(Step::Prefix(address, leaf)) => return Some((address, leaf)),
                Some(Step::Child(child)) => self.push(child),
                None => self.len -= 1,
            }
        }
    }
}

/// A walk over the prefixes that cover a prefix, itself included, from the shortest one on.
pub(super) struct Covering<'g, A> {
    node: Option<Node<'g, A>>,
    /// The length behind the depth of the next prefix.
    behind: u8,
    net: A,
    len: u8,
}

impl<'g, A: Address> Covering<'g, A> {
    pub(super) fn new(snapshot: Snapshot<'g, A>, net: A, len: u8) -> Self {
        // SAFETY: the word is the root.
        let node = unsafe { snapshot.node(snapshot.root()) };
        let mut walk = Self { node: None, behind: 0, net, len };
        walk.enter(node);
        walk
    }

    /// Goes on in a node, if it is on the path and has prefixes that are short enough. Only the
    /// root has one whose length is the depth.
    fn enter(&mut self, node: Option<Node<'g, A>>) {
        let leads = |node: &Node<'g, A>| {
            let depth = node.depth();
            (depth == 0 || depth < self.len) && node.is_on_path(self.net, depth)
        };
        self.node = node.filter(leads);
        self.behind = self.node.map_or(0, |node| node.depth().min(1));
    }
}

impl<A: Address> Iterator for Covering<'_, A> {
    type Item = (A, Word);

    fn next(&mut self) -> Option<(A, Word)> {
        while let Some(node) = self.node {
            let depth = node.depth();
            let (stride, digit) = (stride(depth), self.net.digit(depth));
            while self.behind <= stride.min(self.len - depth) {
                let behind = self.behind;
                self.behind += 1;
                let first = digit >> (stride - behind) << (stride - behind);
                if let Some(leaf) = node.prefix(first, behind) {
                    return Some((self.net.first_bits(depth + behind), leaf));
                }
            }
            // SAFETY: the word is of this node.
            let child = unsafe { node.child(node.slot(digit, Portable)) };
            self.enter(child);
        }
        None
    }
}
