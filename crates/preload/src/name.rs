//! The names of return addresses, and the frames of a call.
//!
//! `dladdr` is not used: it takes the lock that `dlopen` holds while it runs constructors. A
//! constructor that waits for an allocating thread would wait for ever. `dl_iterate_phdr` holds its
//! lock only briefly, but a child whose parent's thread held it at the `fork` never gets it.
//! `_dl_find_object` takes no lock (glibc 2.35, `dlfcn.h`). The symbols are those that `dladdr`
//! knows, of the dynamic table.
//!
//! libgcc finds the frames behind the first (`_Unwind_Backtrace`). It needs no frame pointers, and
//! stops if it finds no unwind information. It finds this by `_dl_find_object` as well (GCC 12).
//!
//! Older C libraries only have `dl_iterate_phdr`, for both purposes. With them, a copied process
//! (`fork.rs`) uses neither: its sites are addresses of one frame.

use crate::fork;
use crate::next;
use crate::sites::{DEPTH_MAX, Frames};
use crate::text::Text;
use libc::{
    Elf64_Phdr, Elf64_Sym, PT_DYNAMIC, PT_LOAD, c_char, c_int, c_void, dl_iterate_phdr,
    dl_phdr_info, size_t,
};
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// The longest name of an object or a function. If a function's name is longer, only the object is
/// named, so that no two sites get one name.
const PART_MAX: usize = 255;

/// The bytes sufficient for the names of all frames of a site.
pub(crate) const NAME_MAX: usize = DEPTH_MAX * (2 * PART_MAX + 32);

// The tags of the dynamic section (ELF gABI, chapter 5; the GNU hash table is an extension).
const DT_HASH: i64 = 4;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;

unsafe extern "C" {
    static program_invocation_short_name: *const c_char;
    fn _Unwind_Backtrace(step: Step, walk: *mut c_void) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}
type Step = extern "C" fn(*mut c_void, *mut c_void) -> c_int;
/// Values of libgcc's `_Unwind_Reason_Code` by which a step continues or ends the walk.
const URC_NO_REASON: c_int = 0;
const URC_NORMAL_STOP: c_int = 4;

/// `struct dl_find_object` of `dlfcn.h`.
#[repr(C)]
pub(crate) struct DlFindObject {
    flags: u64,
    map_start: *const c_void,
    map_end: *const c_void,
    link_map: *const LinkMap,
    eh_frame: *const c_void,
    reserved: [u64; 7],
}
const _: () = assert!(size_of::<DlFindObject>() == 96);

/// The place, path and dynamic section of an object: the head of `struct link_map` of `link.h`.
#[repr(C)]
struct LinkMap {
    base: usize,
    path: *const c_char,
    dynamic: *const [i64; 2],
}

struct Walk {
    caller: usize,
    frames: Frames,
    count: usize,
    depth: usize,
    /// The number of frames met before the caller's, which belong to the tracer.
    own: usize,
}

extern "C" fn step(context: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: `frames` passes it, and waits for the walk.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    // SAFETY: the context is the unwinder's own.
    let address = unsafe { _Unwind_GetIP(context) };
    if walk.count == 0 && address != walk.caller {
        walk.own += 1;
        // The walk never meets a caller without unwind information.
        return if walk.own < 2 * DEPTH_MAX { URC_NO_REASON } else { URC_NORMAL_STOP };
    }
    if address == 0 {
        return URC_NORMAL_STOP;
    }
    if let Some(frame) = walk.frames.get_mut(walk.count) {
        *frame = address;
    }
    walk.count += 1;
    if walk.count < walk.depth { URC_NO_REASON } else { URC_NORMAL_STOP }
}

/// Whether the loader's lock may be needed and may never be free again.
fn is_shut_out() -> bool {
    next::DL_FIND_OBJECT.get().is_none() && fork::was_copied()
}

/// The return addresses of the call that returns to `caller`: `depth` of them, or as many as are
/// found.
pub(crate) fn frames(caller: usize, depth: usize) -> Frames {
    let mut walk = Walk { caller, frames: [0; DEPTH_MAX], count: 0, depth, own: 0 };
    if depth > 1 && !is_shut_out() {
        // SAFETY: `step` and `walk` belong together, and `walk` lives until the call returns.
        unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    }
    if walk.count == 0 {
        walk.frames[0] = caller;
    }
    walk.frames
}

/// Writes the names of frames, the innermost first, joined by `<`.
pub(crate) fn write<B: AsRef<[u8]> + AsMut<[u8]>>(frames: &Frames, to: &mut Text<B>) {
    let used = frames.iter().take_while(|frame| **frame != 0);
    for (at, frame) in used.enumerate() {
        if at > 0 {
            to.push(b"<");
        }
        // The call lies before the address to which it returns, which may belong to the next
        // function.
        if let Some(found) = find(frame - 1) {
            found.write(*frame, to);
        } else {
            to.push(b"?+");
            to.push_hex(*frame);
        }
    }
}

/// Finds the object and function of the address of a call that this thread is in.
fn find(address: usize) -> Option<Found> {
    let Some(find_object) = next::DL_FIND_OBJECT.get() else {
        let mut search = Search { address, found: None };
        if !is_shut_out() {
            // SAFETY: the callback and its data belong together.
            unsafe { dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        }
        return search.found;
    };
    let mut object = MaybeUninit::uninit();
    // SAFETY: `object` has room for the struct that the call fills in if it returns 0.
    let object = unsafe {
        if find_object(address as *mut c_void, object.as_mut_ptr()) != 0 {
            return None;
        }
        object.assume_init()
    };
    // SAFETY: the object stays loaded, because this thread returns into it.
    Some(unsafe { Found::new(&*object.link_map, address) })
}

struct Search {
    address: usize,
    found: Option<Found>,
}

/// The object and function of an address. Their names are copied, because `visit` must not keep
/// data that the lock protects.
struct Found {
    object: Part,
    base: usize,
    function: Option<(Part, usize)>,
}

/// A name, cut to its first bytes.
struct Part {
    bytes: [u8; PART_MAX],
    len: usize,
}

impl Part {
    fn new(name: &[u8]) -> Self {
        let mut bytes = [0; PART_MAX];
        for (to, from) in bytes.iter_mut().zip(name) {
            *to = *from;
        }
        Self { bytes, len: name.len().min(PART_MAX) }
    }

    fn as_bytes(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or_default()
    }
}

impl Found {
    /// # Safety
    /// The object stays loaded during the call.
    unsafe fn new(object: &LinkMap, address: usize) -> Self {
        let LinkMap { base, path, dynamic } = *object;
        // SAFETY: the dynamic section belongs to an object that stays loaded.
        let function =
            (!dynamic.is_null()).then(|| unsafe { function_at(base, dynamic, address) }).flatten();
        Self { object: object_name(path), base, function }
    }

    fn write<B: AsRef<[u8]> + AsMut<[u8]>>(&self, frame: usize, to: &mut Text<B>) {
        match self.object.as_bytes() {
            // This character would begin a comment.
            [b'#', rest @ ..] => {
                to.push(b"_");
                to.push_clean(rest);
            }
            name => to.push_clean(name),
        }
        let start = match &self.function {
            Some((name, start)) => {
                to.push(b"!");
                to.push_clean(name.as_bytes());
                *start
            }
            None => self.base,
        };
        to.push(b"+");
        to.push_hex(frame.wrapping_sub(start));
    }
}

unsafe extern "C" fn visit(info: *mut dl_phdr_info, _: size_t, search: *mut c_void) -> c_int {
    // SAFETY: `find` passes it, and waits for the search.
    let search = unsafe { &mut *search.cast::<Search>() };
    // SAFETY: the loader's description of an object that stays loaded during the call.
    let info = unsafe { &*info };
    let base = info.dlpi_addr as usize;
    // SAFETY: the loader's description of an object that stays loaded during the call.
    let headers: &[Elf64_Phdr] =
        unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let holds = |header: &Elf64_Phdr| {
        let start = base.wrapping_add(header.p_vaddr as usize);
        header.p_type == PT_LOAD && search.address.wrapping_sub(start) < header.p_memsz as usize
    };
    if !headers.iter().any(holds) {
        return 0;
    }
    let dynamic = headers.iter().find(|header| header.p_type == PT_DYNAMIC);
    let dynamic = dynamic.map_or(0, |header| base.wrapping_add(header.p_vaddr as usize));
    let object = LinkMap { base, path: info.dlpi_name, dynamic: dynamic as *const [i64; 2] };
    // SAFETY: the object stays loaded during the call.
    search.found = Some(unsafe { Found::new(&object, search.address) });
    1
}

/// The last part of an object's path. The program itself has no path.
fn object_name(path: *const c_char) -> Part {
    // SAFETY: both are strings of the loader; the second one is set before any constructor runs.
    let (path, program) = unsafe { (bytes(path), bytes(program_invocation_short_name)) };
    let path = if path.is_empty() { program } else { path };
    Part::new(path.rsplit(|byte| *byte == b'/').next().unwrap_or_default())
}

/// # Safety
/// `text` is a C string or null.
unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: by the contract, a C string if it is not null.
    if text.is_null() { b"" } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}

/// The function that contains an address, by the dynamic symbols of an object.
///
/// # Safety
/// `base` and `entry` are the base and the dynamic section of an object that stays loaded.
unsafe fn function_at(
    base: usize,
    mut entry: *const [i64; 2],
    address: usize,
) -> Option<(Part, usize)> {
    let (mut symbols, mut strings, mut hash, mut gnu_hash) = (0, 0, 0, 0);
    // SAFETY: the section ends with an entry of zeros.
    while let [tag, value] = unsafe { entry.read() }
        && tag != 0
    {
        // glibc has turned these offsets into addresses; other loaders and the vDSO have not.
        let value = if (value as usize) < base { base + value as usize } else { value as usize };
        match tag {
            DT_SYMTAB => symbols = value,
            DT_STRTAB => strings = value,
            DT_HASH => hash = value,
            DT_GNU_HASH => gnu_hash = value,
            _ => {}
        }
        // SAFETY: the current entry is not the last one.
        entry = unsafe { entry.add(1) };
    }
    if symbols == 0 || strings == 0 {
        return None;
    }
    // SAFETY: the addresses are those of the object's hash tables and symbols.
    let symbols: &[Elf64_Sym] = unsafe {
        let count = match (hash, gnu_hash) {
            (0, 0) => 0,
            (0, table) => gnu_hash_symbols(table as *const u32),
            // The second word of the table is the number of chains, one for each symbol.
            (table, _) => (table as *const u32).add(1).read() as usize,
        };
        std::slice::from_raw_parts(symbols as *const Elf64_Sym, count)
    };
    let offset = address.wrapping_sub(base) as u64;
    let holds = |symbol: &&Elf64_Sym| {
        // Thread-local symbols (type 6) are offsets, not addresses.
        symbol.st_shndx != 0
            && symbol.st_info & 15 != 6
            && offset.wrapping_sub(symbol.st_value) < symbol.st_size
    };
    let symbol = symbols.iter().filter(holds).max_by_key(|symbol| symbol.st_value)?;
    // SAFETY: a string in the object's table.
    let name = unsafe { bytes((strings + symbol.st_name as usize) as *const c_char) };
    (name.len() <= PART_MAX).then(|| (Part::new(name), base.wrapping_add(symbol.st_value as usize)))
}

/// The number of symbols that a GNU hash table covers: one past the end of the chain that begins
/// last.
///
/// # Safety
/// `table` is the hash table of a loaded object.
unsafe fn gnu_hash_symbols(table: *const u32) -> usize {
    // SAFETY: the table consists of four words, the Bloom filter of 64-bit words, the buckets, and
    // the chains. A chain ends with an odd word.
    unsafe {
        let [buckets, first, filter, _] = table.cast::<[u32; 4]>().read();
        let heads = table.add(4 + 2 * filter as usize);
        let chains = heads.add(buckets as usize);
        let last = (0..buckets as usize).map(|at| heads.add(at).read()).max().unwrap_or(0);
        if last < first {
            return first as usize;
        }
        let mut last = last as usize;
        while chains.add(last - first as usize).read() & 1 == 0 {
            last += 1;
        }
        last + 1
    }
}
