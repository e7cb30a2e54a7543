//! Which set of a cache a line goes to.

/// How addresses map to sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetHash {
    /// By the lowest bits of the line's number.
    Modulo,
    /// In one of so many slices. With `n = odd * 2^k` of them, the slice is chosen by the line's number
    /// modulo the odd part and by a fold of all its bits to `k`; so strides of powers of two are spread
    /// over all slices, and those that the odd part divides are not. A model, not the function of any
    /// processor.
    Slices(usize),
}

/// The shape of a cache, as far as it says where a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sets {
    /// Bytes of a line, a power of two.
    pub line: usize,
    /// Sets in all slices together.
    pub sets: usize,
    /// How lines map to them.
    pub hash: SetHash,
}

impl Sets {
    /// The set of a line, by its number.
    pub const fn of(&self, line: usize) -> usize {
        match self.hash {
            SetHash::Modulo => line % self.sets,
            SetHash::Slices(slices) => {
                let (each, bits) = (self.sets / slices, slices.trailing_zeros());
                let slice = ((line % (slices >> bits)) << bits) | fold(line, bits);
                slice * each + (line >> bits) % each
            }
        }
    }
}

/// The exclusive or of a number's digits of so many bits.
const fn fold(mut number: usize, bits: u32) -> usize {
    let mut folded = 0;
    while bits > 0 && number > 0 {
        folded ^= number & ((1 << bits) - 1);
        number >>= bits;
    }
    folded
}
