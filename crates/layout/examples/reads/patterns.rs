//! Patterns of reads over an arena, the same for a program that makes them and for a model that is
//! told of them. Every read is of one aligned word, so none spans two lines.

/// Words of a line.
const LINE: usize = 8;
/// Bytes of the arena: four times the last level it is read through.
pub(crate) const ARENA_BYTES: usize = 4 << 20;
/// Words of a node of the tree: 48 bytes.
const NODE: usize = 6;
/// Nodes of the tree, which fill the arena.
const NODES: usize = ARENA_BYTES / 8 / NODE;

/// What is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Lines at random.
    Random,
    /// Descents of a binary search tree to random keys: in a node the key, then a link.
    Descents,
    /// Lines that share a set, as many as a cache has ways and one more.
    Strides,
}

impl Pattern {
    /// All of them, by the names they are asked for.
    pub(crate) const ALL: [(&'static str, Self); 3] =
        [("random", Self::Random), ("descents", Self::Descents), ("strides", Self::Strides)];

    /// What the arena holds: the tree, at random places, for descents, and its own word numbers
    /// otherwise.
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

    /// Makes that many reads, or a few more to end a descent or a round, by calling `read` with the
    /// number of a word. Returns a sum over what was read.
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
                // Lines 4 KiB apart share a set of 64, those 64 KiB apart one of 1024 as well.
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

/// Makes a balanced tree of the nodes at `places`, in the order of their keys, from `first` on: the
/// number of its root's first word. Word 0 of the arena, of no node, leads to the root of all.
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

/// Marsaglia's xorshift, in registers alone.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
