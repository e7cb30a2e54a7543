//! The mapping of cache lines to sets.

/// The mapping of addresses to cache sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetHash {
    /// The line's number modulo the number of sets; its lowest bits if that is a power of two.
    Modulo,
    /// A cache of this many slices.
    ///
    /// With `n = odd * 2^k` slices, the line's number modulo the odd part chooses the slice,
    /// together with a fold of all bits of the quotient to `k`. So strides of powers of two are
    /// spread over all slices, while strides divisible by the odd part are not. As many consecutive
    /// lines as there are sets lie in one set each. This is a model, not the function of any
    /// processor.
    Slices(usize),
}

/// The shape of a cache, as far as it determines the set of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sets {
    /// The bytes of a line, a power of two.
    pub line: usize,
    /// The number of sets in all slices together.
    pub sets: usize,
    /// The mapping of lines to sets.
    pub hash: SetHash,
}

impl Sets {
    /// The number of slices of the cache; 1 if they would differ in size.
    pub const fn slices(&self) -> usize {
        match self.hash {
            SetHash::Slices(slices)
                if slices > 0 && self.sets >= slices && self.sets.is_multiple_of(slices) =>
            {
                slices
            }
            SetHash::Slices(_) | SetHash::Modulo => 1,
        }
    }

    /// The set of a line, by the line's number. A cache without sets counts as having one.
    pub const fn of(&self, line: usize) -> usize {
        match self.hash {
            SetHash::Slices(_) if self.slices() > 1 => {
                let slices = self.slices();
                let (each, bits) = (self.sets / slices, slices.trailing_zeros());
                let odd = slices >> bits;
                let slice = ((line % odd) << bits) | fold(line / odd, bits);
                slice * each + ((line / odd) >> bits) % each
            }
            _ if self.sets > 0 => line % self.sets,
            _ => 0,
        }
    }
}

/// The exclusive or of a number's digits of `bits` bits each.
const fn fold(mut number: usize, bits: u32) -> usize {
    let mut folded = 0;
    while bits > 0 && number > 0 {
        folded ^= number & ((1 << bits) - 1);
        number >>= bits;
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_lines_in_a_row_as_sets_lie_in_one_each() {
        for (slices, each) in [(12, 2048), (56, 2048), (3, 5), (8, 64), (1, 16)] {
            let sets = Sets { line: 64, sets: slices * each, hash: SetHash::Slices(slices) };
            for run in [0, 7, 1 << 40] {
                // Start at a multiple of them: elsewhere the last few lines share sets with the
                // next run.
                let first = run * sets.sets;
                let mut met: Vec<usize> =
                    (first..first + sets.sets).map(|line| sets.of(line)).collect();
                met.sort_unstable();
                assert!(met.into_iter().eq(0..sets.sets), "{slices} slices of {each}");
            }
        }
    }

    #[test]
    fn there_is_a_set_even_if_there_are_none() {
        for (sets, hash) in [
            (0, SetHash::Modulo),
            (0, SetHash::Slices(0)),
            (0, SetHash::Slices(4)),
            (3, SetHash::Slices(4)),
            (10, SetHash::Slices(4)),
        ] {
            let sets = Sets { line: 64, sets, hash };
            let mut met: Vec<usize> =
                (usize::MAX - 99..=usize::MAX).map(|line| sets.of(line)).collect();
            met.sort_unstable();
            met.dedup();
            assert!(met.into_iter().eq(0..sets.sets.max(1)), "{sets:?}");
        }
    }
}
