//! Counting the bits of a word. The baseline of x86-64 has no instruction for it, and each packed
//! node on a lookup's way counts once.

/// The way to count the bits of a word.
pub(super) trait Count: Copy {
    fn ones(self, word: u64) -> usize;
}

/// Counts bits by what the target has.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Count for Portable {
    #[inline(always)]
    fn ones(self, word: u64) -> usize {
        word.count_ones() as usize
    }
}

/// Counts bits by the instruction POPCNT. A value of this type says that the processor has it.
///
/// The count is the portable one: a function with the feature, into which it is inlined, makes it
/// the instruction.
#[cfg(all(target_arch = "x86_64", not(miri)))]
#[derive(Clone, Copy)]
pub(super) struct Popcnt(());

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Popcnt {
    /// The count, if the processor has the instruction.
    pub(super) fn detect() -> Option<Self> {
        std::is_x86_feature_detected!("popcnt").then_some(Self(()))
    }
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
impl Count for Popcnt {
    #[inline(always)]
    fn ones(self, word: u64) -> usize {
        word.count_ones() as usize
    }
}
