//! Makes uses of free slots visible to memory checkers.
//!
//! To a memory checker, a pool is one object that is always in use: the checker sees neither leaked
//! slots nor uses of freed ones. Built with `--cfg silvics_poison`, pools tell the checker which
//! slots are free. Other builds contain nothing of this. `.ci/sanitize` makes these builds.
//!
//! | tool | a free slot | effect of using it |
//! |---|---|---|
//! | none | holds [`PATTERN`], which is no valid address | a fault if it is used as a pointer; a panic when the slot is handed out, if somebody wrote to it |
//! | `ThreadSanitizer` | is overwritten by the thread that frees it | a race with every reader that does not happen before the free |
//! | `AddressSanitizer` (with `--cfg silvics_poison_asan`) | is poisoned | use-after-poison, at the access |
//! | Valgrind | is no memory | an invalid read or write, at the access |
//! | Miri | is uninitialised | undefined behaviour, at the read |
//!
//! Slots are poisoned when their slab is opened and when they are freed. Packed objects are
//! poisoned when their region is mapped and when they are taken back, until the region is unmapped.
//! The bytes of an arena are poisoned when they are charged, until they are handed out.
//! Only the requested bytes of a live slot are usable; the bytes that its class adds stay poisoned
//! under tools that track single bytes. A double free is found too, because it writes to poisoned
//! bytes.

use std::ptr::NonNull;

/// The value of each byte of a free slot. As an address it is outside user space.
#[cfg(not(miri))]
const PATTERN: u8 = 0xdb;

/// Uninitialised bytes that Miri copies into free slots.
#[cfg(miri)]
static UNINITIALISED: [std::mem::MaybeUninit<u8>; crate::SMALL_PAGE] =
    [std::mem::MaybeUninit::uninit(); crate::SMALL_PAGE];

/// Marks `bytes` bytes as free: those of a new slab, or those that [`hand_out`] marked used.
///
/// # Safety
/// The bytes are mapped, in use, and the caller's alone.
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

/// Marks `bytes` bytes of a free slot as used. The slot's other bytes stay poisoned.
///
/// # Safety
/// The slot was marked free, has at least this size, and is the caller's alone.
pub(crate) unsafe fn hand_out(slot: NonNull<u8>, bytes: usize) {
    #[cfg(miri)]
    let _ = (slot, bytes);
    #[cfg(not(miri))]
    {
        // SAFETY: the caller's promise.
        unsafe { tool::unpoison(slot, bytes, true) };
        // SAFETY: `free` initialised these bytes.
        let content = unsafe { std::slice::from_raw_parts(slot.as_ptr(), bytes) };
        let written = content.iter().position(|&byte| byte != PATTERN);
        assert!(written.is_none(), "byte {written:?} of the free slot {slot:p} was written");
        // SAFETY: the caller's promise.
        unsafe { tool::unpoison(slot, bytes, false) };
    }
}

/// Ends the poisoning of memory that returns to the system, as its next mapping is unrelated to
/// slots.
///
/// # Safety
/// The memory is mapped, and the caller's alone.
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
    /// The memory is mapped, and the caller's alone.
    pub(super) unsafe fn poison(memory: NonNull<u8>, bytes: usize) {
        // SAFETY: mapped memory of the caller's, which the runtime shadows.
        unsafe { __asan_poison_memory_region(memory.as_ptr().cast(), bytes) };
    }

    /// # Safety
    /// The memory is mapped, and the caller's alone.
    pub(super) unsafe fn unpoison(memory: NonNull<u8>, bytes: usize, _defined: bool) {
        // SAFETY: mapped memory of the caller's, which the runtime shadows.
        unsafe { __asan_unpoison_memory_region(memory.as_ptr().cast(), bytes) };
    }
}

/// Valgrind's requests: instruction sequences without effect outside of Valgrind.
#[cfg(all(target_arch = "x86_64", not(silvics_poison_asan), not(miri)))]
mod tool {
    use std::ptr::NonNull;

    /// The requests of memcheck, with the values in its `memcheck.h`.
    const TOOL: u64 = (b'M' as u64) << 24 | (b'C' as u64) << 16;
    const MAKE_NO_ACCESS: u64 = TOOL;
    const MAKE_UNDEFINED: u64 = TOOL + 1;
    const MAKE_DEFINED: u64 = TOOL + 2;

    /// # Safety
    /// The memory is mapped, and the caller's alone.
    pub(super) unsafe fn poison(memory: NonNull<u8>, bytes: usize) {
        request(MAKE_NO_ACCESS, memory, bytes);
    }

    /// # Safety
    /// The memory is mapped, and the caller's alone.
    pub(super) unsafe fn unpoison(memory: NonNull<u8>, bytes: usize, defined: bool) {
        request(if defined { MAKE_DEFINED } else { MAKE_UNDEFINED }, memory, bytes);
    }

    fn request(request: u64, memory: NonNull<u8>, bytes: usize) {
        let start = memory.as_ptr().expose_provenance();
        let block: [u64; 6] = [request, start as u64, bytes as u64, 0, 0, 0];
        // SAFETY: the rotations add up to 128 bits, so `rdi` keeps its value, and exchanging a
        // register with itself has no effect. Valgrind recognises the sequence as a request (its
        // `valgrind.h`), reads the block and writes an answer to `rdx`.
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
    use crate::{BytesPool, ConcurrentArena, Config, Packed, Pool};
    use std::alloc::Layout;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    fn panics<T>(work: impl FnOnce() -> T) -> bool {
        catch_unwind(AssertUnwindSafe(work)).is_err()
    }

    #[test]
    fn a_free_slot_that_was_written_is_not_handed_out() {
        let pool = Pool::<[u64; 4]>::new("node", &Config::default());
        let slot = pool.alloc().unwrap();
        // SAFETY: allocated above, and used no more, except for the planted write into mapped
        // memory.
        unsafe {
            slot.write([1; 4]);
            pool.free(slot);
            assert_eq!(slot.read(), [u64::from_ne_bytes([super::PATTERN; 8]); 4]);
            slot.cast::<u64>().add(2).write(7);
        }
        assert!(panics(|| pool.alloc()));
        assert!(pool.alloc().is_ok(), "other slots are available");
    }

    #[test]
    fn a_write_beyond_an_object_is_found_in_the_slot_behind_it() {
        let pool = BytesPool::new("bytes", &Config::default());
        let object = pool.alloc(100).unwrap();
        // SAFETY: the planted write: beyond the object's class of 104 bytes, but inside its slab.
        unsafe { object.add(104).write(1) };
        assert!((0..100).any(|_| panics(|| pool.alloc(100))));
    }

    #[test]
    fn packed_objects_are_free_before_they_are_handed_out_and_when_they_are_taken_back() {
        let packed = Packed::new(&Config::default());
        let mut packer = packed.region(4096).unwrap().unwrap();
        let layout = Layout::new::<[u64; 4]>();
        let [a, b] = [(); 2].map(|()| packer.alloc(layout).unwrap().cast::<[u64; 4]>());
        // SAFETY: allocated above. The packer keeps the region mapped, for the read after the free
        // and for the planted write.
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

    #[test]
    fn bytes_of_an_arena_are_free_before_they_are_handed_out() {
        for shards in [false, true] {
            let arena = ConcurrentArena::new(&Config::default(), 1 << 20);
            if shards {
                arena.make_shards().unwrap();
            }
            let object = arena.alloc(Layout::new::<[u64; 5]>()).unwrap();
            // SAFETY: allocated above; the last write is planted, into mapped memory behind it.
            unsafe {
                object.write_bytes(1, 40);
                assert_eq!(object.add(40).read(), super::PATTERN);
                object.add(44).write(7);
            }
            assert!(panics(|| arena.alloc(Layout::new::<[u64; 5]>())));
            assert!(arena.alloc(Layout::new::<u32>()).is_ok(), "the arena is not locked");
        }
    }
}
