//! What compressed paths and leaves that hang high save.
//!
//! The tree is held against one with a node for every digit of every key: without path compression, which leaves out nodes
//! that would have one child, and without lazy expansion, which leaves out all nodes below the one where a leaf's
//! keys part from others. In that tree a lookup passes as many nodes as its key has digits.

use super::ArtKey;
use super::ArtTree;
use super::leaf::LeafOf;
use super::node::NodeRef;
use super::word::{Kind, Word};
use silvics_pool::Placement;

/// The savings of a radix tree against a tree that has a node for each digit of each key.
///
/// Path compression leaves out nodes that would have one child. Lazy expansion leaves out all nodes
/// below the digit at which a leaf hangs. The end of a byte string is a digit, too.
///
/// In the other tree a lookup of a key passes as many nodes as the key has digits:
/// `passed + passed_skipped + passed_below` is the number of the digits of all keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compression {
    /// The number of keys.
    pub keys: usize,
    /// The nodes that lookups pass if each key is looked up once.
    pub passed: usize,
    /// The nodes that are more than one digit below the node above.
    pub compressed: usize,
    /// The nodes that path compression leaves out.
    pub skipped: usize,
    /// The nodes left out by path compression that lookups would pass if each key were looked up once.
    pub passed_skipped: usize,
    /// The leaves that hang above the last digit of their keys.
    pub high: usize,
    /// The nodes that lazy expansion leaves out.
    pub below: usize,
    /// The nodes left out by lazy expansion that lookups would pass if each key were looked up once.
    pub passed_below: usize,
    /// The size in bytes of the smallest node: each node left out would take at least as many.
    pub node_bytes: usize,
}

/// A node that a walk has come to.
struct Open {
    word: Word,
    /// The nodes above it.
    passed: usize,
    /// The digits above it that no node is for.
    skipped: usize,
}

impl<K: ArtKey + ?Sized, P: Placement> ArtTree<K, P> {
    /// Walks a tree that nobody changes: its own is exclusive.
    pub(super) fn compressed(&mut self) -> Compression {
        let mut found = Compression { node_bytes: K::OBJECTS[0].size, ..Compression::default() };
        let mut open = vec![Open { word: self.root_word(), passed: 0, skipped: 0 }];
        while let Some(Open { word, passed, skipped }) = open.pop() {
            let passed = passed + 1;
            // SAFETY: nobody else has the tree.
            match unsafe { NodeRef::from_word(word) } {
                NodeRef::Values(node) => found.ends(node.all().count(), passed, skipped),
                NodeRef::Words(node) => {
                    for (_, child) in node.all() {
                        if child.kind() == Kind::Leaf {
                            // SAFETY: as above.
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

impl Compression {
    /// So many keys end below as many nodes.
    fn ends(&mut self, keys: usize, passed: usize, skipped: usize) {
        self.keys += keys;
        self.passed += keys * passed;
        self.passed_skipped += keys * skipped;
    }

    /// A leaf hangs at a digit of a node of that depth.
    fn hangs<K: ArtKey + ?Sized>(&mut self, leaf: K::Leaf<'_>, depth: usize) {
        let mut below = 0;
        let mut before = None;
        for at in leaf.places() {
            let key = leaf.key(at);
            let last = K::digits(key) - 1;
            self.passed_below += last - depth;
            // Down to there it has the nodes of the key before it.
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
    use crate::{Check, Objects, Options};

    /// Numbers without a pattern.
    fn mixed(n: u64) -> u64 {
        let n = (n ^ n >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (n ^ n >> 27).wrapping_mul(0x94D0_49BB_1331_11EB)
    }

    /// What a tree of these keys saves.
    fn compression<K: ArtKey + ?Sized>(keys: &[K::Ref<'_>]) -> Compression {
        let mut tree: ArtTree<K> = ArtTree::with_options(&Options::default()).unwrap();
        for key in keys {
            tree.pin().insert(K::shorten(*key), 7).unwrap();
        }
        tree.check().unwrap();
        tree.compression().unwrap()
    }

    /// Counted by hand: a root that every tree has, and nodes of eight digits below it.
    #[test]
    fn paths_without_nodes_are_counted() {
        let none = compression::<u64>(&[]);
        assert_eq!(none, Compression { node_bytes: none.node_bytes, ..Compression::default() });
        assert!(none.node_bytes >= 64);
        let of = |keys: &[u64]| Compression { node_bytes: 0, ..compression::<u64>(keys) };
        // A leaf at the root: seven nodes less.
        let one = Compression {
            keys: 1,
            passed: 1,
            high: 1,
            below: 7,
            passed_below: 7,
            ..Compression::default()
        };
        assert_eq!(of(&[0x0102_0304_0506_0708]), one);
        // Two keys of a leaf that part at the last digit, or at the second one: they share all nodes below the root, or
        // one of them.
        let two = Compression { keys: 2, passed: 2, passed_below: 14, ..one };
        assert_eq!(of(&[0x0102_0304_0506_0708, 0x0102_0304_0506_0709]), two);
        assert_eq!(
            of(&[0x0102_0304_0506_0708, 0x0103_0304_0506_0708]),
            Compression { below: 13, ..two }
        );
        // Five are more than a leaf takes: a node of the last digit below the root, six digits skipped.
        let five: Vec<u64> = (1..=5).collect();
        let skipped = Compression {
            keys: 5,
            passed: 10,
            compressed: 1,
            skipped: 6,
            passed_skipped: 30,
            ..Compression::default()
        };
        assert_eq!(of(&five), skipped);
        // Another one beside it, whose leaf is at the root.
        let six = [&five[..], &[1 << 56]].concat();
        assert_eq!(
            of(&six),
            Compression { keys: 6, passed: 11, high: 1, below: 7, passed_below: 7, ..skipped }
        );
    }

    /// The end of a byte string is a digit; a leaf has one key.
    #[test]
    fn paths_of_byte_strings_are_counted() {
        let of = |keys: &[&[u8]]| Compression { node_bytes: 0, ..compression::<[u8]>(keys) };
        // Nodes of `b`, `c` and the end are left out; of the empty key none, as it ends at the root.
        let one = Compression {
            keys: 1,
            passed: 1,
            high: 1,
            below: 3,
            passed_below: 3,
            ..Compression::default()
        };
        assert_eq!(of(&[b"abc"]), one);
        assert_eq!(of(&[b"abc", b""]), Compression { keys: 2, passed: 2, ..one });
        // A node of the fourth digit, `a`, `b` and `c` before it: one digit at the root, two skipped. One key ends there; the
        // other has an end below.
        let two = of(&[b"abc", b"abcd"]);
        let expected = Compression {
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

    /// What lookups pass and what they are spared are all digits of all keys, whatever the keys are.
    #[test]
    fn digits_add_up() {
        let keys = |dense: bool| (0..20_000).map(move |n| if dense { n } else { mixed(n) });
        for dense in [true, false] {
            let found = compression::<u64>(&keys(dense).collect::<Vec<_>>());
            assert_eq!(found.keys, 20_000);
            assert_eq!(found.passed + found.passed_skipped + found.passed_below, 8 * 20_000);
            // 79 nodes of the last digit below one of the seventh, which hangs at the root.
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
