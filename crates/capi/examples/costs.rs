//! Measures the C interface beside the Rust one, in one process:
//!
//! ```text
//! crates/capi/build.sh
//! cargo run --release -p silvics-capi --example costs -- target/silvics-c/lib/libsilvics.so
//! ```
//!
//! The shared library is loaded at run time, so each call is one through a pointer, as a C program
//! makes it. Both sides have a map of the same random keys, and look them up in the same random
//! order. Each round measures both twice, in the order A B B A. A ratio is the speed of C divided
//! by that of Rust: the median of the rounds, and the quartiles.

use silvics::Map;
use silvics::dynamic::AnyMap;
use silvics_capi::{
    silvics_cursor, silvics_guard, silvics_key, silvics_map, silvics_options, silvics_status,
    silvics_value,
};
use std::ffi::{CStr, CString, c_void};
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::time::Instant;

type Guard = *const silvics_guard;
type Places = (*mut silvics_key, *mut silvics_value);

/// The functions of the shared library.
struct Library {
    init: unsafe extern "C" fn(*mut silvics_options) -> silvics_status,
    create: unsafe extern "C" fn(*const silvics_options, *mut *mut silvics_map) -> silvics_status,
    pin: unsafe extern "C" fn(*const silvics_map, *mut silvics_guard) -> silvics_status,
    unpin: unsafe extern "C" fn(*mut silvics_guard) -> silvics_status,
    get: unsafe extern "C" fn(
        *const silvics_map,
        Guard,
        silvics_key,
        *mut silvics_value,
    ) -> silvics_status,
    get_words: unsafe extern "C" fn(
        *const silvics_map,
        Guard,
        *const u64,
        usize,
        *mut u64,
        *mut bool,
    ) -> silvics_status,
    insert: unsafe extern "C" fn(
        *const silvics_map,
        Guard,
        silvics_key,
        silvics_value,
        *mut silvics_value,
    ) -> silvics_status,
    open: unsafe extern "C" fn(
        *const silvics_map,
        *const silvics_key,
        *const silvics_key,
        *mut *mut silvics_cursor,
    ) -> silvics_status,
    first: unsafe extern "C" fn(
        *mut silvics_cursor,
        Guard,
        *mut silvics_key,
        *mut silvics_value,
    ) -> silvics_status,
    next: unsafe extern "C" fn(
        *mut silvics_cursor,
        Guard,
        *mut silvics_key,
        *mut silvics_value,
    ) -> silvics_status,
}

#[allow(clippy::missing_transmute_annotations)] // the types are those of the fields
impl Library {
    fn open(path: &str) -> Self {
        let path = CString::new(path).expect("a path");
        // SAFETY: the library has no constructors but those of its language.
        let library = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW) };
        // SAFETY: the string is valid until the next call of `dlerror`.
        assert!(!library.is_null(), "{:?}", unsafe { CStr::from_ptr(libc::dlerror()) });
        macro_rules! load {
            ($name:literal) => {{
                // SAFETY: the library is open.
                let symbol: *mut c_void = unsafe { libc::dlsym(library, $name.as_ptr()) };
                assert!(!symbol.is_null(), "there is no {:?}", $name);
                // SAFETY: the header declares the function with this type.
                unsafe { std::mem::transmute::<*mut c_void, _>(symbol) }
            }};
        }
        Self {
            init: load!(c"silvics_options_init"),
            create: load!(c"silvics_create"),
            pin: load!(c"silvics_pin"),
            unpin: load!(c"silvics_unpin"),
            get: load!(c"silvics_get"),
            get_words: load!(c"silvics_get_words"),
            insert: load!(c"silvics_insert"),
            open: load!(c"silvics_cursor_open"),
            first: load!(c"silvics_cursor_first"),
            next: load!(c"silvics_cursor_next"),
        }
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state ^ (*state >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn ok(status: silvics_status) {
    assert_eq!(status, silvics_status::SILVICS_OK);
}

/// The calls of one kind: each measures `count` of them, and returns a checksum.
struct Row<'a> {
    name: &'static str,
    bar: Option<f64>,
    c: Box<dyn FnMut() -> u64 + 'a>,
    rust: Box<dyn FnMut() -> u64 + 'a>,
}

fn timed(call: &mut dyn FnMut() -> u64) -> (f64, u64) {
    let start = Instant::now();
    let sum = black_box(call());
    (start.elapsed().as_secs_f64(), sum)
}

fn measure(row: &mut Row<'_>, rounds: usize, count: usize) {
    let mut ratios = Vec::new();
    let (mut c_times, mut rust_times) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let ((c, sum), (rust, other)) = (timed(&mut row.c), timed(&mut row.rust));
        let ((rust_again, _), (c_again, _)) = (timed(&mut row.rust), timed(&mut row.c));
        assert_eq!(sum, other, "{}: the answers differ", row.name);
        if round > 0 {
            ratios.push((rust + rust_again) / (c + c_again));
            c_times.push(f64::midpoint(c, c_again));
            rust_times.push(f64::midpoint(rust, rust_again));
        }
    }
    let at = |list: &mut Vec<f64>, part: f64| {
        list.sort_by(f64::total_cmp);
        list[((list.len() - 1) as f64 * part).round() as usize]
    };
    let nanos = |seconds: f64| 1e9 * seconds / count as f64;
    println!(
        "| {} | {:.1} | {:.1} | {:.2} ({:.2} to {:.2}) | {} |",
        row.name,
        nanos(at(&mut c_times, 0.5)),
        nanos(at(&mut rust_times, 0.5)),
        at(&mut ratios, 0.5),
        at(&mut ratios, 0.25),
        at(&mut ratios, 0.75),
        row.bar.map_or("–".into(), |bar| {
            let missed = if at(&mut ratios, 0.5) < bar { ", missed" } else { "" };
            format!("≥ {bar}{missed}")
        }),
    );
}

/// Both maps, with the same keys.
struct Maps {
    c: *mut silvics_map,
    any: Arc<AnyMap<u64, u64>>,
    map: Map<u64, u64>,
}

fn load(library: &Library, keys: &[u64]) -> Maps {
    let mut options = MaybeUninit::uninit();
    let mut c = null_mut();
    // SAFETY: the places are writable; the options are initialised first.
    unsafe {
        ok((library.init)(options.as_mut_ptr()));
        ok((library.create)(options.as_ptr(), &raw mut c));
    }
    let any = AnyMap::<u64, u64>::with_options(&silvics::Options::default()).expect("memory");
    let map = Map::new();
    for &key in keys {
        let value = silvics_value { word: !key, data: null_mut() };
        // SAFETY: the map is open.
        ok(unsafe { (library.insert)(c, null(), word(key), value, null_mut()) });
        any.insert(key, !key);
        map.insert(key, !key);
    }
    Maps { c, any: Arc::new(any), map }
}

fn word(key: u64) -> silvics_key {
    silvics_key { word: key, data: null() }
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let usage = "costs: the first argument is the path of libsilvics.so, which build.sh makes; \
                 a second one is the number of keys";
    let Some(path) = arguments.next() else {
        eprintln!("{usage}");
        std::process::exit(2);
    };
    let keys: usize = arguments.next().map_or(1_000_000, |keys| keys.parse().expect(usage));
    let library = Library::open(&path);
    let mut state = 7;
    let mut loaded: Vec<u64> = (0..keys as u64).map(|_| random(&mut state)).collect();
    let maps = load(&library, &loaded);
    for at in (1..loaded.len()).rev() {
        loaded.swap(at, random(&mut state) as usize % (at + 1));
    }
    println!("{keys} random keys of 8 bytes, ns per call\n");
    println!("| call | C | Rust | C / Rust | bar |\n|---|---|---|---|---|");
    for mut row in rows(&library, &maps, &loaded) {
        measure(&mut row, if keys > 10_000 { 31 } else { 101 }, keys);
    }
}

/// Adds up the words that a call finds.
fn sum_of(keys: &[u64], mut get: impl FnMut(u64) -> u64) -> u64 {
    keys.iter().fold(0, |sum, &key| sum.wrapping_add(get(key)))
}

fn rows<'a>(library: &'a Library, maps: &'a Maps, keys: &'a [u64]) -> Vec<Row<'a>> {
    let c = maps.c;
    let get = move |guard: Guard, key: u64| {
        let mut value = MaybeUninit::<silvics_value>::uninit();
        // SAFETY: the map is open, the place writable, and initialised if the key is found.
        unsafe {
            ok((library.get)(c, guard, word(key), value.as_mut_ptr()));
            value.assume_init().word
        }
    };
    let pinned = move || {
        let mut guard = MaybeUninit::uninit();
        // SAFETY: the map is open, and the place writable.
        ok(unsafe { (library.pin)(c, guard.as_mut_ptr()) });
        let sum = sum_of(keys, |key| get(guard.as_ptr(), key));
        // SAFETY: the guard is pinned.
        ok(unsafe { (library.unpin)(guard.as_mut_ptr()) });
        sum
    };
    let pinned_rust = || {
        let view = maps.any.pin();
        sum_of(keys, |key| view.get(key).map_or(0, |value| *value))
    };
    vec![
        Row {
            name: "`get`, pinned",
            bar: Some(0.8),
            c: Box::new(pinned),
            rust: Box::new(pinned_rust),
        },
        Row {
            name: "`get`, beside `Map::get`",
            bar: Some(0.9),
            c: Box::new(move || sum_of(keys, |key| get(null(), key))),
            rust: Box::new(|| sum_of(keys, |key| maps.map.get(key).map_or(0, |value| *value))),
        },
        Row {
            name: "a step of a cursor",
            bar: Some(0.7),
            c: Box::new(c_steps(library, c)),
            rust: Box::new(|| {
                let (mut cursor, mut sum) = (maps.any.cursor(), 0_u64);
                while cursor.next() {
                    let (key, value) = cursor.current().expect("an entry");
                    sum = sum.wrapping_add(key).wrapping_add(value.unwrap_or(0));
                }
                sum
            }),
        },
        batches(library, maps, keys),
    ]
}

/// Batches of lookups.
fn batches<'a>(library: &'a Library, maps: &'a Maps, keys: &'a [u64]) -> Row<'a> {
    let c = maps.c;
    let batch = move || {
        let (mut words, mut found) = ([0; 64], [false; 64]);
        let group = |sum: u64, keys: &[u64]| {
            // SAFETY: the arrays have as many places as there are keys.
            let status = unsafe {
                (library.get_words)(
                    c,
                    null(),
                    keys.as_ptr(),
                    keys.len(),
                    words.as_mut_ptr(),
                    found.as_mut_ptr(),
                )
            };
            ok(status);
            words[..keys.len()].iter().fold(sum, |sum, &word| sum.wrapping_add(word))
        };
        keys.chunks(64).fold(0, group)
    };
    let batch_rust = || {
        let mut found = [const { None }; 64];
        let mut sum = 0_u64;
        for keys in keys.chunks(64) {
            let view = maps.any.pin();
            view.get_many(keys, &mut found[..keys.len()]);
            for value in found[..keys.len()].iter().flatten() {
                sum = sum.wrapping_add(**value);
            }
            found = [const { None }; 64];
        }
        sum
    };
    Row {
        name: "`get_words` of 64, each",
        bar: None,
        c: Box::new(batch),
        rust: Box::new(batch_rust),
    }
}

fn c_steps(library: &Library, c: *mut silvics_map) -> impl FnMut() -> u64 {
    let mut cursor = null_mut();
    // SAFETY: the map is open, and the place writable.
    ok(unsafe { (library.open)(c, null(), null(), &raw mut cursor) });
    move || {
        let (mut key, mut value) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        let places: Places = (key.as_mut_ptr(), value.as_mut_ptr());
        let mut sum = 0_u64;
        // SAFETY: the cursor is open, and the places are initialised if there is an entry.
        unsafe {
            let mut status = (library.first)(cursor, null(), places.0, places.1);
            while status == silvics_status::SILVICS_OK {
                sum = sum.wrapping_add((*places.0).word).wrapping_add((*places.1).word);
                status = (library.next)(cursor, null(), places.0, places.1);
            }
        }
        sum
    }
}
