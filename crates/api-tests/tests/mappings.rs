//! The limit of mappings of a process, which this test reaches: so it is alone in its process.
#![cfg(all(target_os = "linux", not(miri)))]

use silvics::{AllocError, Map};
use std::ptr::null_mut;

/// The system's limit, if the test can reach it in a moment.
fn limit() -> Option<usize> {
    let limit = std::fs::read_to_string("/proc/sys/vm/max_map_count").ok()?.trim().parse().ok()?;
    (limit <= 1 << 20).then_some(limit)
}

/// Maps a page. Neighbours with other rights are mappings of their own.
fn page(rights: libc::c_int) -> Option<*mut libc::c_void> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: an anonymous mapping without a fixed address changes no existing mapping.
    let page = unsafe { libc::mmap(null_mut(), 4096, rights, flags, -1, 0) };
    (page != libc::MAP_FAILED).then_some(page)
}

#[test]
fn a_process_without_room_for_a_mapping_gets_an_error_that_names_the_limit() {
    let Some(limit) = limit() else {
        println!("skipped: the system allows more mappings than a test should make");
        return;
    };
    let map: Map<u64, u64> = Map::new();
    map.insert(0, 0);
    let mut pages = Vec::with_capacity(limit);
    while let Some(page) = page([libc::PROT_READ, libc::PROT_NONE][pages.len() % 2]) {
        pages.push(page);
    }
    // Small maps need no mapping.
    let small: Map<u64, u64> = Map::new();
    let few = (0..10).try_for_each(|key| small.try_upsert(key, key).map(drop));
    let refused = (1..100_000u64).find_map(|key| map.try_upsert(key << 40, key).err());
    for page in pages {
        // SAFETY: mapped above, and used by nobody.
        unsafe { libc::munmap(page, 4096) };
    }
    assert!(few.is_ok(), "{few:?}");
    let error = refused.expect("a large map needs mappings").error;
    assert_eq!(error, AllocError::Mappings { limit });
    assert!(error.to_string().contains("vm.max_map_count"), "{error}");
    // Nothing is lost, and there is room again.
    let len = map.len() as u64;
    assert!((0..len).all(|key| map.get(key << 40).as_deref() == Some(&key)));
    map.extend((1..1000).map(|key| (key << 40, key)));
    assert_eq!(map.len() as u64, len.max(1000));
}
