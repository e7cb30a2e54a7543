//! The README's example: `cargo run --release -p silvics --example readme`.

use silvics::{Cursor, Options, OrderedIndex, OrderedScan, SkipList};
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let index: Arc<SkipList<[u8]>> = Arc::new(SkipList::with_options(&Options {
        memory_limit: Some(64 << 20), // insertions fail with a value beyond this
        ..Options::default()
    })?);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let index = &index;
            scope.spawn(move || {
                let view = index.pin(); // pin once, call often
                for row in 0..1000 {
                    view.insert(format!("user/{thread}/{row:04}").as_bytes(), row).unwrap();
                }
            });
        }
    });
    let view = index.pin();
    view.compare_exchange(b"user/0/0007", Some(7), Some(70))?;
    let found: Vec<u64> = view.range(&b"user/0/0006"[..]..).take(3).map(|(_, row)| row).collect();
    assert_eq!(found, [6, 70, 8]);
    let mut cursor = index.cursor(); // owned, Send, holds no pin between calls
    assert!(cursor.seek(b"user/3/0999") && !cursor.next());
    println!("{} keys in {} bytes", index.len(), index.bytes());
    Ok(())
}
