//! The radix tree that the paper's nodes would make of a set of keys.
//!
//! # Source
//! Leis, Kemper and Neumann, ICDE 2013. A level has a byte of a key. Nodes have room for 4, 16, 48
//! and 256 children, and the smallest that suffices is taken. A node with one child is left out
//! (path compression), and so are nodes below a single key (lazy expansion), because the pointer to
//! it holds the key's value. A child takes a pointer of 8 bytes. Nodes of 4 and 16 have a byte of
//! key for each child, nodes of 48 an index of 256 bytes. A node of 4 then has 36 bytes, as Wong et
//! al. state, so their sizes exclude a header.

/// The children that nodes have room for, and the bytes of these nodes without a header.
const KINDS: [(usize, usize); 4] =
    [(4, 4 + 4 * 8), (16, 16 + 16 * 8), (48, 256 + 48 * 8), (256, 256 * 8)];

/// The nodes of a tree, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Nodes([usize; KINDS.len()]);

impl Nodes {
    /// The nodes of a tree with these 32-bit keys, which are distinct and ascending.
    pub fn of(keys: &[u32]) -> Self {
        let mut nodes = Self::default();
        nodes.add(keys, 0);
        nodes
    }

    /// Adds the nodes of keys that have this many bytes in common.
    fn add(&mut self, keys: &[u32], alike: u32) {
        let [first, .., last] = keys else { return };
        // All keys in order have the bytes in common that the first and the last have.
        let byte = ((first ^ last).leading_zeros() / 8).max(alike);
        let children = keys.chunk_by(|a, b| (a ^ b).leading_zeros() / 8 > byte);
        let count = children.clone().count();
        if let Some(kind) = KINDS.iter().position(|(room, _)| count <= *room) {
            self.0[kind] += 1;
        }
        for child in children {
            self.add(child, byte + 1);
        }
    }

    /// The bytes of the nodes, with headers of this many bytes.
    pub fn bytes(&self, header: usize) -> usize {
        self.0.iter().zip(KINDS).map(|(nodes, (_, bytes))| nodes * (bytes + header)).sum()
    }

    /// The number of nodes of each kind.
    pub fn text(&self) -> String {
        let counts = self.0.iter().zip(KINDS);
        counts.map(|(nodes, (room, _))| format!("{nodes} of {room}")).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_as_the_paper_has_them() {
        assert_eq!(Nodes::of(&[]), Nodes([0; 4]));
        // A single key is in the pointer to it.
        assert_eq!(Nodes::of(&[7]), Nodes([0; 4]));
        assert_eq!(Nodes::of(&[7, 9]), Nodes([1, 0, 0, 0]));
        // The keys differ in the last byte, or in the first: one node, and no chain above or below
        // it.
        assert_eq!(Nodes::of(&[0x0102_0304, 0x0102_0305]), Nodes([1, 0, 0, 0]));
        assert_eq!(Nodes::of(&[0x0102_0304, 0x0202_0304]), Nodes([1, 0, 0, 0]));
        // Two nodes below one with two children.
        assert_eq!(Nodes::of(&[0x0102_0304, 0x0102_0305, 0x0202_0304]), Nodes([2, 0, 0, 0]));
        for (keys, kind) in [(4, 0), (5, 1), (16, 1), (17, 2), (48, 2), (49, 3), (256, 3)] {
            let mut expected = Nodes::default();
            expected.0[kind] = 1;
            assert_eq!(Nodes::of(&(0..keys).collect::<Vec<u32>>()), expected, "{keys}");
        }
        // 257 keys: a node with two children above a node of 256 and a single key.
        assert_eq!(Nodes::of(&(0..257).collect::<Vec<u32>>()), Nodes([1, 0, 0, 1]));
    }

    #[test]
    fn sizes_are_those_of_the_nodes() {
        let one_of_each = Nodes([1; 4]);
        assert_eq!(
            (Nodes([1, 0, 0, 0]).bytes(0), one_of_each.bytes(0)),
            (36, 36 + 144 + 640 + 2048)
        );
        assert_eq!(one_of_each.bytes(16), one_of_each.bytes(0) + 64);
        assert_eq!(Nodes([1, 2, 3, 4]).text(), "1 of 4, 2 of 16, 3 of 48, 4 of 256");
    }

    /// A million keys from 1 on: 3907 nodes of the last byte, of which the last has 65 children,
    /// below 16 nodes of the byte before, of which the last has 67 children, below one node.
    #[test]
    fn a_million_dense_keys() {
        let keys: Vec<u32> = (1..=1_000_000).collect();
        assert_eq!(Nodes::of(&keys), Nodes([0, 1, 0, 3907 + 16]));
    }
}
