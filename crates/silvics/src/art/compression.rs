//! The savings of path compression and lazy expansion.
//!
//! The tree is compared with one that has a node for every digit of every key, as there would be
//! without path compression and lazy expansion. In that tree a lookup passes as many nodes as its
//! key has digits.

use super::hot::sampler::Sampler;
use super::leaf::LeafOf;
use super::node::NodeRef;
use super::word::{Kind, Word};
use super::{Art, ArtKey};
use silvics_pool::Placement;

/// The savings of a radix tree against a tree that has a node for each digit of each key.
///
/// Path compression leaves out nodes that would have one child. Lazy expansion leaves out all nodes
/// below the digit at which a leaf hangs. The end of a byte string is a digit, too.
///
/// In the other tree a lookup of a key passes as many nodes as the key has digits:
/// `passed + passed_skipped + passed_below` is the number of the digits of all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCompression {
    /// The number of keys.
    pub keys: usize,
    /// The nodes that lookups pass if each key is looked up once.
    pub passed: usize,
    /// The nodes that are more than one digit below the node above.
    pub compressed: usize,
    /// The nodes that path compression leaves out.
    pub skipped: usize,
    /// The nodes left out by path compression that lookups would pass if each key were looked up
    /// once.
    pub passed_skipped: usize,
    /// The leaves that hang above the last digit of their keys.
    pub high: usize,
    /// The nodes that lazy expansion leaves out.
    pub below: usize,
    /// The nodes left out by lazy expansion that lookups would pass if each key were looked up
    /// once.
    pub passed_below: usize,
    /// The size in bytes of the smallest node: each node left out would take at least as many.
    pub node_bytes: usize,
}

/// A node that a walk has come to.
struct Open {
    word: Word,
    /// The number of nodes above it.
    passed: usize,
    /// The number of digits above it that have no node.
    skipped: usize,
}

impl<K: ArtKey + ?Sized, P: Placement, S: Sampler> Art<K, P, S> {
    /// Walks the tree, to which access is exclusive.
    pub(super) fn compressed(&mut self) -> PathCompression {
        let mut found =
            PathCompression { node_bytes: K::OBJECTS[0].size, ..PathCompression::default() };
        let root = self.root().map(|root| Open { word: root.word, passed: 0, skipped: 0 });
        let mut open = Vec::from_iter(root);
        while let Some(Open { word, passed, skipped }) = open.pop() {
            let passed = passed + 1;
            // SAFETY: I7: nodes only are opened. I8: each is linked, and access is exclusive.
            match unsafe { NodeRef::from_word(word) } {
                NodeRef::Values(node) => found.ends(node.all().count(), passed, skipped),
                NodeRef::Words(node) => {
                    for (_, child) in node.all() {
                        if child.kind() == Kind::Leaf {
                            // SAFETY: I7: the word leads to a leaf. I8: it is linked, and access is
                            // exclusive.
                            let leaf = unsafe { K::Leaf::from_word(child) };
                            found.ends(leaf.places().count(), passed, skipped);
                            found.hangs::<K>(leaf, word.depth());
                            continue;
                        }
                        let between = child.depth() - word.depth() - 1;
                        found.compressed += usize::from(between > 0);
                        found.skipped += between;
                        open.push(Open { word: child, passed, skipped: skipped + between });
                    }
                }
            }
        }
        found
    }
}

impl PathCompression {
    /// Counts keys that end below `passed` nodes.
    fn ends(&mut self, keys: usize, passed: usize, skipped: usize) {
        self.keys += keys;
        self.passed += keys * passed;
        self.passed_skipped += keys * skipped;
    }

    /// Counts a leaf that hangs from a node of this depth.
    fn hangs<K: ArtKey + ?Sized>(&mut self, leaf: K::Leaf<'_>, depth: usize) {
        let mut below = 0;
        let mut before = None;
        for at in leaf.places() {
            let key = leaf.key(at);
            let last = K::digits(key) - 1;
            self.passed_below += last - depth;
            // Down to where they part, it has the nodes of the key before it.
            below += last - before.map_or(depth, |before| K::parting(leaf.key(before), key));
            before = Some(at);
        }
        self.high += usize::from(below > 0);
        self.below += below;
    }
}

#[cfg(all(test, not(any(silvics_loom, silvics_shuttle))))]
mod tests {
    use super::*;
    use crate::{ArtTree, Check, Compression, Objects, Options};

    /// A number without a pattern.
    fn mixed(n: u64) -> u64 {
        let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
    }

    /// The savings of a tree of these keys.
    fn compression<K: ArtKey + ?Sized>(keys: &[K::Ref<'_>]) -> PathCompression {
        let mut tree: ArtTree<K> = ArtTree::with_options(&Options::default()).unwrap();
        for key in keys {
            tree.pin().insert(K::shorten(*key), 7).unwrap();
        }
        tree.check().unwrap();
        match tree.compression() {
            Some(Compression::Paths(found)) => found,
            other => panic!("{other:?}"),
        }
    }

    /// The numbers were counted by hand: every tree has a root, and below it up to seven digits.
    #[test]
    fn paths_without_nodes_are_counted() {
        let none = compression::<u64>(&[]);
        assert_eq!(
            none,
            PathCompression { node_bytes: none.node_bytes, ..PathCompression::default() }
        );
        assert!(none.node_bytes >= 64);
        let of = |keys: &[u64]| PathCompression { node_bytes: 0, ..compression::<u64>(keys) };
        // One leaf hangs from the root, which saves seven nodes.
        let one = PathCompression {
            keys: 1,
            passed: 1,
            high: 1,
            below: 7,
            passed_below: 7,
            ..PathCompression::default()
        };
        assert_eq!(of(&[0x0102_0304_0506_0708]), one);
        // The two keys of a leaf part at the last digit, or at the second one: below the root they
        // share six nodes, or none.
        let two = PathCompression { keys: 2, passed: 2, passed_below: 14, ..one };
        assert_eq!(of(&[0x0102_0304_0506_0708, 0x0102_0304_0506_0709]), two);
        assert_eq!(
            of(&[0x0102_0304_0506_0708, 0x0103_0304_0506_0708]),
            PathCompression { below: 13, ..two }
        );
        // Five keys need a node of the last digit below the root; six digits are skipped.
        let five: Vec<u64> = (1..=5).collect();
        let skipped = PathCompression {
            keys: 5,
            passed: 10,
            compressed: 1,
            skipped: 6,
            passed_skipped: 30,
            ..PathCompression::default()
        };
        assert_eq!(of(&five), skipped);
        // The leaf of a sixth key hangs from the root.
        let six = [&five[..], &[1 << 56]].concat();
        assert_eq!(
            of(&six),
            PathCompression { keys: 6, passed: 11, high: 1, below: 7, passed_below: 7, ..skipped }
        );
    }

    /// The end of a byte string is a digit, and a leaf has one key.
    #[test]
    fn paths_of_byte_strings_are_counted() {
        let of = |keys: &[&[u8]]| PathCompression { node_bytes: 0, ..compression::<[u8]>(keys) };
        // The nodes for `b`, `c` and the end are left out. The empty key ends at the root.
        let one = PathCompression {
            keys: 1,
            passed: 1,
            high: 1,
            below: 3,
            passed_below: 3,
            ..PathCompression::default()
        };
        assert_eq!(of(&[b"abc"]), one);
        assert_eq!(of(&[b"abc", b""]), PathCompression { keys: 2, passed: 2, ..one });
        // A node for the fourth digit: `a` is the root's, `b` and `c` are skipped. One key ends
        // there, the other has an end below.
        let two = of(&[b"abc", b"abcd"]);
        let expected = PathCompression {
            keys: 2,
            passed: 4,
            compressed: 1,
            skipped: 2,
            passed_skipped: 4,
            high: 1,
            below: 1,
            passed_below: 1,
            node_bytes: 0,
        };
        assert_eq!(two, expected);
    }

    /// The nodes that lookups pass and those that are left out add up to all digits of all keys.
    #[test]
    fn digits_add_up() {
        let keys = |dense: bool| (0..20_000).map(move |n| if dense { n } else { mixed(n) });
        for dense in [true, false] {
            let found = compression::<u64>(&keys(dense).collect::<Vec<_>>());
            assert_eq!(found.keys, 20_000);
            assert_eq!(found.passed + found.passed_skipped + found.passed_below, 8 * 20_000);
            // 79 nodes of the last digit hang from one of the seventh, which hangs from the root.
            if dense {
                assert_eq!((found.compressed, found.skipped, found.high), (1, 5, 0));
            }
        }
        let text = |n: u64| format!("{:x}/{n}", mixed(n) % 50).into_bytes();
        let texts: Vec<Vec<u8>> = (0..5000).map(text).collect();
        let found = compression::<[u8]>(&texts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let digits: usize = texts.iter().map(|text| text.len() + 1).sum();
        assert_eq!(found.passed + found.passed_skipped + found.passed_below, digits);
    }
}
