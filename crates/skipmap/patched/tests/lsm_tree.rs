//! The storage engine `lsm-tree` beside a model. All that it reads comes from its memtables: from
//! the active one, and from those that it is about to write to disk.

use lsm_tree::{AbstractTree, Config, Tree};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

fn key(n: u64) -> Vec<u8> {
    format!("key {:05}", n % 1000).into_bytes()
}

/// The tree has what the model has, from both ends and in parts.
fn compare(tree: &Tree, model: &Model, seqno: u64) -> lsm_tree::Result<()> {
    let all = |pairs: Vec<lsm_tree::Result<lsm_tree::KvPair>>| {
        let pair = |pair: lsm_tree::Result<lsm_tree::KvPair>| {
            pair.map(|(key, value)| (key.to_vec(), value.to_vec()))
        };
        pairs.into_iter().map(pair).collect::<lsm_tree::Result<Vec<_>>>()
    };
    let expected: Vec<_> = model.clone().into_iter().collect();
    assert_eq!(all(tree.iter(Some(seqno), None).collect())?, expected);
    let mut backwards = all(tree.iter(Some(seqno), None).rev().collect())?;
    backwards.reverse();
    assert_eq!(backwards, expected);
    let (low, high) = (key(200), key(700));
    let part: Vec<_> =
        model.range(low.clone()..high.clone()).map(|(k, v)| (k.clone(), v.clone())).collect();
    assert_eq!(all(tree.range(low..high, Some(seqno), None).collect())?, part);
    for n in 0..1000 {
        let found = tree.get(key(n), Some(seqno))?.map(|value| value.to_vec());
        assert_eq!(found.as_ref(), model.get(&key(n)));
    }
    Ok(())
}

#[test]
fn an_engine_reads_what_it_wrote() -> lsm_tree::Result<()> {
    let folder = tempfile::tempdir()?;
    let tree = Config::new(&folder).open()?;
    let (mut model, mut versions) = (Model::new(), Vec::new());
    for seqno in 0..30_000_u64 {
        let n = seqno.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        if n % 4 == 0 {
            tree.remove(key(n), seqno);
            model.remove(&key(n));
        } else {
            tree.insert(key(n), n.to_string(), seqno);
            model.insert(key(n), n.to_string().into_bytes());
        }
        if seqno % 5000 == 4999 {
            compare(&tree, &model, seqno + 1)?;
            versions.push((model.clone(), seqno + 1));
        }
        if seqno == 22_222 {
            for (model, seqno) in &versions {
                compare(&tree, model, *seqno)?; // an older version, in the same memtable
            }
            tree.flush_active_memtable(0)?;
        }
    }
    compare(&tree, &model, 30_000)?;
    tree.flush_active_memtable(0)?;
    drop(tree);
    compare(&Config::new(&folder).open()?, &model, 30_000)
}

#[test]
fn threads_write_to_one_memtable() -> lsm_tree::Result<()> {
    let folder = tempfile::tempdir()?;
    let tree = Config::new(&folder).open()?;
    let seqnos = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4_u64 {
            let (tree, seqnos) = (tree.clone(), &seqnos);
            scope.spawn(move || {
                for n in (thread..20_000).step_by(4) {
                    let seqno = seqnos.fetch_add(1, Ordering::Relaxed);
                    tree.insert(format!("{n:05}"), n.to_string(), seqno);
                    let found = tree.get(format!("{n:05}"), None).expect("it reads");
                    assert_eq!(found.map(|value| value.to_vec()), Some(n.to_string().into_bytes()));
                }
            });
        }
    });
    assert_eq!(tree.len(None, None)?, 20_000);
    let last = tree.last_key_value(None, None)?.map(|(key, _)| key.to_vec());
    assert_eq!(last.as_deref(), Some(&b"19999"[..]));
    Ok(())
}
