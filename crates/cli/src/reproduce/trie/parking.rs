//! Hand-over-hand locking with the mutexes of `parking_lot`.

use parking_lot::lock_api::{GuardNoSend, RawMutex as _};
use silvics::patricia::policy::{HandOverHand, RawLock};

/// Such a mutex has one byte. A thread that waits spins, and then sleeps in a table of queues that
/// the process shares.
pub type Parking = HandOverHand<ParkingLock>;

/// A mutex of `parking_lot`.
pub struct ParkingLock(parking_lot::RawMutex);

impl Default for ParkingLock {
    fn default() -> Self {
        Self(parking_lot::RawMutex::INIT)
    }
}

// SAFETY: `lock_api::RawMutex` demands mutual exclusion of its implementations. A free mutex has no
// address inside, and no thread waits for it, so it may be moved. Its methods do not panic.
unsafe impl RawLock for ParkingLock {
    #[inline]
    fn lock(&self) {
        let _guard = self.0.lock(); // it has no state
    }

    #[inline]
    fn try_lock(&self) -> bool {
        self.0.try_lock().is_some()
    }

    #[inline]
    unsafe fn unlock(&self) {
        // SAFETY: the caller's promise. The guard has no state.
        unsafe { self.0.unlock(GuardNoSend::default()) };
    }
}
