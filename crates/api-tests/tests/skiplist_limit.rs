//! A skip list at its memory limit takes back what it has removed.

use silvics::{AllocError, AsKey, Check, Map, SkipList};

/// Fills a map up to its limit, then removes each of many keys and puts it back.
fn takes_back<K>(key: impl Fn(u64) -> K)
where
    K: silvics::Key + AsKey<K>,
    SkipList<K::Form>: silvics::map::MapIndex<Key = K::Form> + Check,
    K::Form: silvics::SkipKey,
{
    let map = Map::<K, u64, SkipList<K::Form>>::builder().memory_limit(4 << 20).build();
    let mut map = map.unwrap();
    let refused = (0..).find_map(|n| map.try_upsert(key(n), n).err().map(|error| (n, error)));
    let (count, error) = refused.unwrap();
    assert!(matches!(error.error, AllocError::Limit { .. }), "{}", error.error);
    for n in (0..count).step_by(7) {
        assert_eq!(map.try_remove(key(n)).unwrap().as_deref(), Some(&n));
        assert!(map.try_upsert(key(n), n).unwrap().is_none(), "{n} of {count}");
    }
    assert_eq!(map.check(), Ok(count as usize));
}

#[test]
fn integers() {
    takes_back(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15));
}

#[test]
fn byte_strings() {
    takes_back(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_string().repeat(1 + n as usize % 3));
}
