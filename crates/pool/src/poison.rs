//! Free slots that nobody uses unnoticed.
//!
//! To the tools that watch memory a pool is one object that is always in use: they see neither
//! leaks of slots nor uses of freed ones. Built with `--cfg silvics_poison`, pools tell them what is
//! free; in other builds nothing of this exists. `.ci/sanitize` makes these builds.
//!
//! | tool | a free slot | what its use gives |
//! |---|---|---|
//! | none | holds [`PATTERN`], which is no address | a fault where it is taken for a pointer; a panic when the slot is handed out, if somebody wrote to it |
//! | `ThreadSanitizer` | is overwritten by whoever frees it | a race with every reader that this thread does not come after |
//! | `AddressSanitizer` (`--cfg silvics_poison_asan` as well) | is poisoned | use-after-poison, at the access |
//! | Valgrind | is no memory | an invalid read or write, at the access |
//! | Miri | is uninitialised | undefined behaviour, at the read |
//!
//! Slots are poisoned when their slab is opened and when they are freed; packed objects when their region is mapped and when they
//! are taken back, until the region is unmapped. Of a slot handed out the
//! bytes that were asked for can be used, and what its class adds to them stays poisoned under the
//! tools that know single bytes. Slots freed twice are written while poisoned.

use std::ptr::NonNull;

/// What the bytes of a free slot hold. As an address it is not one of user space.
#[cfg(not(miri))]
const PATTERN: u8 = 0xdb;

/// What Miri copies into them.
#[cfg(miri)]
static UNINITIALISED: [std::mem::MaybeUninit<u8>; 4096] = [std::mem::MaybeUninit::uninit(); 4096];

/// Marks `bytes` bytes as those of free slots: all of a new slab, or what [`hand_out`] gave.
///
/// # Safety
/// They are mapped, in use, and the caller's alone.
pub(crate) unsafe fn free(memory: NonNull<u8>, bytes: usize) {
    #[cfg(miri)]
    for at in (0..bytes).step_by(UNINITIALISED.len()) {
        let part = UNINITIALISED.len().min(bytes - at);
        // SAFETY: the caller's promise.
        unsafe {
            UNINITIALISED.as_ptr().copy_to_nonoverlapping(memory.add(at).cast().as_ptr(), part)
        };
    }
    #[cfg(not(miri))]
    // SAFETY: the caller's promise.
    unsafe {
        memory.write_bytes(PATTERN, bytes);
        tool::poison(memory, bytes);
    }
}

/// Gives `bytes` bytes of a free slot to a user; the slot's others stay as they are.
///
/// # Safety
/// The slot was marked free, is of this size or larger, and is the caller's alone.
pub(crate) unsafe fn hand_out(slot: NonNull<u8>, bytes: usize) {
    #[cfg(miri)]
    let _ = (slot, bytes);
    #[cfg(not(miri))]
    {
        // SAFETY: the caller's promise.
        unsafe { tool::unpoison(slot, bytes, true) };
        // SAFETY: `free` initialised them.
        let content = unsafe { std::slice::from_raw_parts(slot.as_ptr(), bytes) };
        let written = content.iter().position(|&byte| byte != PATTERN);
        assert!(written.is_none(), "byte {written:?} of the free slot {slot:p} was written");
        // SAFETY: as above.
        unsafe { tool::unpoison(slot, bytes, false) };
    }
}

/// Memory goes back to the system: what is mapped there next has nothing to do with slots.
///
/// # Safety
/// It is mapped, and the caller's alone.
pub(crate) unsafe fn forget(memory: NonNull<u8>, bytes: usize) {
    #[cfg(miri)]
    let _ = (memory, bytes);
    #[cfg(not(miri))]
    // SAFETY: the caller's promise.
    unsafe {
        tool::unpoison(memory, bytes, true);
    }
}

#[cfg(all(silvics_poison_asan, not(miri)))]
mod tool {
    use std::ffi::c_void;
    use std::ptr::NonNull;

    unsafe extern "C" {
        fn __asan_poison_memory_region(start: *const c_void, bytes: usize);
        fn __asan_unpoison_memory_region(start: *const c_void, bytes: usize);
    }

    /// # Safety
    /// It is mapped, and the caller's alone.
    pub(super) unsafe fn poison(memory: NonNull<u8>, bytes: usize) {
        // SAFETY: mapped memory of the caller's, which the runtime shadows.
        unsafe { __asan_poison_memory_region(memory.as_ptr().cast(), bytes) };
    }

    /// # Safety
    /// As for `poison`.
    pub(super) unsafe fn unpoison(memory: NonNull<u8>, bytes: usize, _defined: bool) {
        // SAFETY: as above.
        unsafe { __asan_unpoison_memory_region(memory.as_ptr().cast(), bytes) };
    }
}

/// Valgrind's requests: instructions that do nothing outside of it.
#[cfg(all(target_arch = "x86_64", not(silvics_poison_asan), not(miri)))]
mod tool {
    use std::ptr::NonNull;

    /// The requests of memcheck, from its `memcheck.h`.
    const TOOL: u64 = (b'M' as u64) << 24 | (b'C' as u64) << 16;
    const MAKE_NO_ACCESS: u64 = TOOL;
    const MAKE_UNDEFINED: u64 = TOOL + 1;
    const MAKE_DEFINED: u64 = TOOL + 2;

    /// # Safety
    /// It is mapped, and the caller's alone.
    pub(super) unsafe fn poison(memory: NonNull<u8>, bytes: usize) {
        request(MAKE_NO_ACCESS, memory, bytes);
    }

    /// # Safety
    /// As for `poison`.
    pub(super) unsafe fn unpoison(memory: NonNull<u8>, bytes: usize, defined: bool) {
        request(if defined { MAKE_DEFINED } else { MAKE_UNDEFINED }, memory, bytes);
    }

    fn request(request: u64, memory: NonNull<u8>, bytes: usize) {
        let start = memory.as_ptr().expose_provenance();
        let block: [u64; 6] = [request, start as u64, bytes as u64, 0, 0, 0];
        // SAFETY: the rotations add up to 128 bits, so that `rdi` is as before, and an exchange of a
        // register with itself does nothing. Valgrind takes the sequence for a request (its
        // `valgrind.h`), reads the block and puts an answer into `rdx`.
        unsafe {
            std::arch::asm!(
                "rol rdi, 3",
                "rol rdi, 13",
                "rol rdi, 61",
                "rol rdi, 51",
                "xchg rbx, rbx",
                inout("rdi") 0u64 => _,
                in("rax") block.as_ptr(),
                inout("rdx") 0u64 => _,
                options(nostack),
            );
        }
    }
}

#[cfg(all(not(target_arch = "x86_64"), not(silvics_poison_asan), not(miri)))]
mod tool {
    use std::ptr::NonNull;

    /// # Safety
    /// None is needed.
    pub(super) unsafe fn poison(_: NonNull<u8>, _: usize) {}
    /// # Safety
    /// None is needed.
    pub(super) unsafe fn unpoison(_: NonNull<u8>, _: usize, _: bool) {}
}

#[cfg(all(test, not(any(miri, silvics_poison_asan))))]
mod tests {
    use crate::{BytesPool, Config, Packed, Pool};
    use std::alloc::Layout;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn panics<T>(work: impl FnOnce() -> T) -> bool {
        catch_unwind(AssertUnwindSafe(work)).is_err()
    }

    #[test]
    fn a_free_slot_that_was_written_is_not_handed_out() {
        let pool = Pool::<[u64; 4]>::new("node", &Config::default());
        let slot = pool.alloc().unwrap();
        // SAFETY: allocated above, used no more but for the planted write, into mapped memory.
        unsafe {
            slot.write([1; 4]);
            pool.free(slot);
            assert_eq!(slot.read(), [u64::from_ne_bytes([super::PATTERN; 8]); 4]);
            slot.cast::<u64>().add(2).write(7);
        }
        assert!(panics(|| pool.alloc()));
        assert!(pool.alloc().is_ok(), "other slots can be had");
    }

    #[test]
    fn a_write_beyond_an_object_is_found_in_the_slot_behind_it() {
        let pool = BytesPool::new("bytes", &Config::default());
        let object = pool.alloc(100).unwrap();
        // SAFETY: the planted write: beyond the object's class of 104 bytes, into its slab.
        unsafe { object.add(104).write(1) };
        assert!((0..100).any(|_| panics(|| pool.alloc(100))));
    }

    #[test]
    fn packed_objects_are_free_before_they_are_handed_out_and_when_they_are_taken_back() {
        let packed = Packed::new(&Config::default());
        let mut packer = packed.region(4096).unwrap().unwrap();
        let layout = Layout::new::<[u64; 4]>();
        let [a, b] = [(); 2].map(|()| packer.alloc(layout).unwrap().cast::<[u64; 4]>());
        // SAFETY: allocated above; what is read after it was taken back is mapped, as is what the planted write
        // is to: the packer has the region.
        unsafe {
            a.write([1; 4]);
            packed.take_back(a.cast(), layout.size());
            assert_eq!(a.read(), [u64::from_ne_bytes([super::PATTERN; 8]); 4]);
            b.cast::<u64>().add(4).write(7); // beyond it
        }
        assert!(panics(|| packer.alloc(layout)));
        // SAFETY: allocated above, used no more.
        unsafe { packed.take_back(b.cast(), layout.size()) };
    }
}
