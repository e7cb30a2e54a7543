//! The size classes of an allocator.

/// The size class of a block of `bytes` bytes in the allocator of the ATC'18 study, an early
/// jemalloc.
///
/// Classes are 16 bytes apart up to 128, 64 apart up to 512, and powers of two beyond (Arbel-Raviv,
/// Brown and Morrison, USENIX ATC 2018, section 2).
pub const fn study_class(bytes: usize) -> usize {
    match bytes {
        0..=8 => 8,
        9..=128 => bytes.next_multiple_of(16),
        129..=512 => bytes.next_multiple_of(64),
        _ => bytes.next_power_of_two(),
    }
}

#[cfg(test)]
mod tests {
    use super::study_class;

    #[test]
    fn classes_are_those_of_the_study() {
        let listed = [8, 16, 32, 48, 64, 80, 96, 112, 128, 192, 256, 320, 384, 448, 512, 1024];
        for (at, class) in listed.into_iter().enumerate() {
            assert_eq!(study_class(class), class);
            let below = at.checked_sub(1).map_or(0, |at| listed[at]);
            assert_eq!(study_class(below + 1), class);
        }
    }
}
