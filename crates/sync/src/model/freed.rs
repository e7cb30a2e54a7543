//! Memory that has been freed in this schedule and not yet given back: whoever meets it has kept a
//! pointer too long.

use std::cell::RefCell;
use std::collections::BTreeMap;

std::thread_local! {
    /// The freed ranges: their ends by their starts.
    static FREED: RefCell<BTreeMap<usize, usize>> = const { RefCell::new(BTreeMap::new()) };
}

/// Registers `len` bytes from `start` as freed. Their owner keeps them from being allocated again
/// until [`clear`].
pub fn insert(start: usize, len: usize) {
    FREED.with_borrow_mut(|freed| freed.insert(start, start + len));
}

/// Forgets all ranges.
pub fn clear() {
    FREED.with_borrow_mut(BTreeMap::clear);
}

/// Whether `address` lies in memory that has been freed.
pub fn contains(address: usize) -> bool {
    FREED.with_borrow(|freed| {
        freed.range(..=address).next_back().is_some_and(|(_, end)| address < *end)
    })
}

/// # Panics
/// If `address` lies in memory that has been freed, unless the thread is unwinding already.
pub fn check(address: usize) {
    assert!(
        !contains(address) || std::thread::panicking(),
        "use after free: {address:#x} was freed earlier in this schedule"
    );
}
