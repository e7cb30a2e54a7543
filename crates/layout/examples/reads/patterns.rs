//! Patterns of reads over an arena, for a program that makes the reads and for a model that gets
//! them. Every read is one aligned word, so none spans two lines.

/// The words of a line.
const LINE: usize = 8;
/// The bytes of the arena: four times the last level through which it is read.
pub(crate) const ARENA_BYTES: usize = 4 << 20;
/// The words of a node of the tree: 48 bytes.
const NODE: usize = 6;
/// The number of nodes of the tree, which fill the arena.
const NODES: usize = ARENA_BYTES / 8 / NODE;

/// The pattern of the reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Random lines.
    Random,
    /// Descents of a binary search tree to random keys: in each node the key, then a link.
    Descents,
    /// Lines that share a set, as many as a cache has ways, or one more.
    Strides,
}

impl Pattern {
    /// All patterns by name.
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("random", Self::Random), ("descents", Self::Descents), ("strides", Self::Strides)];

    /// Fills the arena: for descents with the tree, its nodes at random places, and otherwise with
    /// the number of each word.
    pub(crate) fn fill(self, arena: &mut [u64]) {
        if self != Self::Descents {
            for (word, value) in (0..).zip(arena) {
                *value = word;
            }
            return;
        }
        let mut places: Vec<usize> = (0..NODES).collect();
        let mut random = Random(1);
        for at in (1..NODES).rev() {
            places.swap(at, random.below(at + 1));
        }
        link(arena, &places, 0);
    }

    /// Makes `reads` reads, or a few more to end a descent or a round, by calling `read` with the
    /// number of a word. Returns a sum over the words read.
    #[inline]
    pub(crate) fn run(self, reads: usize, mut read: impl FnMut(usize) -> u64) -> u64 {
        let (mut random, mut made, mut sum) = (Random(2), 0, 0_u64);
        while made < reads {
            match self {
                Self::Random => {
                    sum = sum.wrapping_add(read(random.below(ARENA_BYTES / 8 / LINE) * LINE));
                    made += 1;
                }
                Self::Descents => {
                    let (key, mut node) = (random.below(NODES) as u64, read(0) as usize);
                    made += 1;
                    while node != 0 {
                        let found = read(node);
                        sum = sum.wrapping_add(found);
                        made += 2;
                        node = read(node + 1 + usize::from(key > found)) as usize;
                    }
                }
                // Lines 4 KiB apart share one of 64 sets, and lines 64 KiB apart also one of 1024.
                Self::Strides => {
                    let round = made / 1000;
                    let (ways, apart) = [(8, 64), (9, 64), (16, 1024), (17, 1024)][round % 4];
                    for at in 0..1000 {
                        let line = at % ways * apart + round * 7 % 64;
                        sum = sum.wrapping_add(read(line * LINE));
                    }
                    made += 1000;
                }
            }
        }
        sum
    }
}

/// Makes a balanced tree of the nodes at `places`, in the order of their keys, from `first` on.
/// Returns the number of the first word of its root. Word 0 of the arena, which belongs to no node,
/// leads to the root of all.
fn link(arena: &mut [u64], places: &[usize], first: usize) -> u64 {
    if places.is_empty() {
        return 0;
    }
    let middle = places.len() / 2;
    let (word, key) = (places[middle] * NODE + 1, first + middle);
    arena[word] = key as u64;
    arena[word + 1] = link(arena, &places[..middle], first);
    arena[word + 2] = link(arena, &places[middle + 1..], key + 1);
    arena[0] = word as u64;
    word as u64
}

/// Marsaglia's xorshift generator, which runs in registers alone.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
