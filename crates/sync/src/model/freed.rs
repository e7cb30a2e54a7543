//! The memory that was freed in this schedule and not yet returned to the system. An access to it
//! is a use after free.

use std::cell::RefCell;
use std::collections::BTreeMap;

std::thread_local! {
    /// The freed ranges: the end of each by its start.
    static FREED: RefCell<BTreeMap<usize, usize>> = const { RefCell::new(BTreeMap::new()) };
}

/// Registers `len` bytes from `start` as freed. Their owner prevents their reuse until [`clear`].
pub fn insert(start: usize, len: usize) {
    FREED.with_borrow_mut(|freed| freed.insert(start, start + len));
}

/// Removes all ranges.
pub fn clear() {
    FREED.with_borrow_mut(BTreeMap::clear);
}

/// Whether `address` lies in a freed range.
pub fn contains(address: usize) -> bool {
    FREED.with_borrow(|freed| {
        freed.range(..=address).next_back().is_some_and(|(_, end)| address < *end)
    })
}

/// Checks that `address` does not lie in a freed range.
///
/// # Panics
/// Panics if it does, unless the thread is already unwinding.
pub fn check(address: usize) {
    assert!(
        !contains(address) || std::thread::panicking(),
        "use after free: {address:#x} was freed earlier in this schedule"
    );
}
