//! How much work each property does: full size in release builds, less in debug builds, and a
//! handful of steps under Miri, which runs some thousand times slower.

/// The number that fits the build.
pub const fn pick(release: usize, debug: usize, miri: usize) -> usize {
    if cfg!(miri) {
        miri
    } else if cfg!(debug_assertions) {
        debug
    } else {
        release
    }
}

/// The insert/remove pairs of the churn properties, if `SILVICS_CHURN_PAIRS` says so.
pub fn churn_pairs() -> Option<usize> {
    number("SILVICS_CHURN_PAIRS")
}

/// The seed of every random choice that proptest does not make: `SILVICS_SEED`, or a constant.
pub fn seed() -> u64 {
    number("SILVICS_SEED").map_or(0x5117_1c5e, |n| n as u64)
}

/// An environment variable as a number.
///
/// # Panics
/// If it is set and is none: a stress run must not silently do something else.
fn number(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    match text.replace('_', "").parse() {
        Ok(number) => Some(number),
        Err(error) => panic!("{name}={text}: {error}; give a whole number"),
    }
}
