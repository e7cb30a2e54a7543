//! Allocation sites by their return addresses, in an open-addressing table in mapped memory.

use libc::{MAP_ANONYMOUS, MAP_FAILED, MAP_PRIVATE, PROT_READ, PROT_WRITE, c_void, mmap, munmap};

/// The most frames of a site.
pub(crate) const DEPTH_MAX: usize = 16;

/// The return addresses of a call, the innermost first, with zeros behind the last.
pub(crate) type Frames = [usize; DEPTH_MAX];

/// Zeroed memory from the system.
pub(crate) struct Mapped<T: 'static>(&'static mut [T]);

impl<T> Mapped<T> {
    /// Maps `count` zeroed values. Returns `None` if the system refuses.
    ///
    /// # Safety
    /// Zeros are a valid value of `T`, whose alignment is at most a page.
    pub(crate) unsafe fn zeros(count: usize) -> Option<Self> {
        let protection = PROT_READ | PROT_WRITE;
        let bytes = count.checked_mul(size_of::<T>())?;
        // SAFETY: a new anonymous mapping replaces no existing one.
        let at = unsafe {
            mmap(std::ptr::null_mut(), bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
        };
        // SAFETY: mapped above for this value alone; zeros are valid by the contract.
        (at != MAP_FAILED)
            .then(|| Self(unsafe { std::slice::from_raw_parts_mut(at.cast(), count) }))
    }
}

impl<T> AsRef<[T]> for Mapped<T> {
    fn as_ref(&self) -> &[T] {
        self.0
    }
}

impl<T> AsMut<[T]> for Mapped<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self.0
    }
}

impl<T> Drop for Mapped<T> {
    fn drop(&mut self) {
        // SAFETY: `zeros` mapped it with this length, and nobody keeps the slice.
        unsafe { munmap(self.0.as_mut_ptr().cast::<c_void>(), size_of_val(self.0)) };
    }
}

/// The frames of a site and its number, counted from 1; number 0 marks an empty slot.
#[derive(Clone, Copy)]
struct Slot {
    frames: Frames,
    number: usize,
}

/// The sites met so far, numbered from 1 in the order of their first use.
pub(crate) struct Sites {
    /// A power of two of slots, of which at most half are used.
    slots: Option<Mapped<Slot>>,
    used: usize,
}

impl Sites {
    pub(crate) const fn new() -> Self {
        Self { slots: None, used: 0 }
    }

    /// The number of a known site, or `None`.
    pub(crate) fn find(&self, frames: &Frames) -> Option<usize> {
        let slots = self.slots.as_ref()?.as_ref();
        let slot = slots.get(place(slots, frames)?)?;
        (slot.number > 0).then_some(slot.number)
    }

    /// Adds a new site and returns its number, or `None` if an allocation failed.
    pub(crate) fn add(&mut self, frames: Frames) -> Option<usize> {
        let size = self.slots.as_ref().map_or(0, |slots| slots.as_ref().len());
        if size < 2 * (self.used + 1) {
            self.grow((2 * size).max(512))?;
        }
        self.used += 1;
        put(self.slots.as_mut()?.as_mut(), Slot { frames, number: self.used })?;
        Some(self.used)
    }

    fn grow(&mut self, size: usize) -> Option<()> {
        // SAFETY: a slot of zeros is a valid, empty one.
        let mut larger = unsafe { Mapped::<Slot>::zeros(size) }?;
        let known = self.slots.iter().flat_map(AsRef::as_ref);
        for slot in known.filter(|slot| slot.number > 0) {
            put(larger.as_mut(), *slot)?;
        }
        self.slots = Some(larger);
        Some(())
    }
}

/// The index of the slot that contains these frames, or would contain them.
fn place(slots: &[Slot], frames: &Frames) -> Option<usize> {
    let mask = slots.len().checked_sub(1)?;
    // The multiplier of Fibonacci hashing (Knuth, volume 3, section 6.4).
    let mix = |hash: u64, frame: &usize| {
        (hash.rotate_left(5) ^ *frame as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    };
    let used = frames.iter().take_while(|frame| **frame != 0);
    let first = (used.fold(0, mix) >> 32) as usize;
    (0..slots.len())
        .map(|step| (first + step) & mask)
        .find(|at| slots.get(*at).is_some_and(|slot| slot.number == 0 || slot.frames == *frames))
}

fn put(slots: &mut [Slot], slot: Slot) -> Option<()> {
    let at = place(slots, &slot.frames)?;
    *slots.get_mut(at)? = slot;
    Some(())
}
