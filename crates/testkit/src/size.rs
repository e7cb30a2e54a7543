//! The amount of work of each property: full in release builds, less in debug builds, and a handful
//! of steps under Miri, which runs some thousand times slower. The gate, and builds for other tools
//! (`.ci/sanitize`), set `SILVICS_HALVINGS` when the testkit is compiled: it is the number of times
//! that the amounts are halved.

/// Returns the number for this build.
pub const fn pick(release: usize, debug: usize, miri: usize) -> usize {
    let full = pick_whole(release, debug, miri);
    // A halved power of two is still a power of two.
    let halved = full >> HALVINGS;
    if halved < miri { miri } else { halved }
}

/// As [`pick`], but for the size of one thing that a property makes many times: the first two
/// halvings make fewer of them, and leave the size.
pub const fn pick_each(release: usize, debug: usize, miri: usize) -> usize {
    let halved = pick_whole(release, debug, miri) >> HALVINGS.saturating_sub(2);
    if halved < miri { miri } else { halved }
}

/// As [`pick`], but never halved: for a property that says nothing about less work.
pub const fn pick_whole(release: usize, debug: usize, miri: usize) -> usize {
    if cfg!(miri) {
        miri
    } else if cfg!(debug_assertions) {
        debug
    } else {
        release
    }
}

const HALVINGS: u32 = match option_env!("SILVICS_HALVINGS") {
    Some(text) => match u32::from_str_radix(text, 10) {
        Ok(halvings) if halvings < 32 => halvings,
        _ => panic!("SILVICS_HALVINGS is how often to halve the work: a number from 0 to 31"),
    },
    None => 0,
};

/// The insert/remove pairs of the churn properties, if `SILVICS_CHURN_PAIRS` is set.
pub fn churn_pairs() -> Option<usize> {
    number("SILVICS_CHURN_PAIRS")
}

/// The schedules per scenario and scheduler, if `SILVICS_SCHEDULES` is set.
pub fn schedules() -> Option<usize> {
    number("SILVICS_SCHEDULES")
}

/// The seed of every random choice that proptest does not make: `SILVICS_SEED`, or a constant.
pub fn seed() -> u64 {
    number("SILVICS_SEED").map_or(0x5117_1c5e, |n| n as u64)
}

/// Reads an environment variable as a number.
///
/// # Panics
/// Panics if the variable is set and is not a number: a stress run must not silently do something
/// else.
fn number(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    match text.replace('_', "").parse() {
        Ok(number) => Some(number),
        Err(error) => panic!("{name}={text}: {error}; give a whole number"),
    }
}
