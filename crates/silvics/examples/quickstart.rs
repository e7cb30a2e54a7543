//! A tour of `Map` in fifty lines: `cargo run --release -p silvics --example quickstart`.

use silvics::Map;
use silvics::map::Operation;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Keys of any type with an order, values of any type that threads can share.
    let users: Arc<Map<(String, u64), String>> =
        Arc::new(Map::builder().memory_limit(64 << 20).build()?);
    std::thread::scope(|scope| {
        for team in ["blue", "green", "red"] {
            let users = &users;
            scope.spawn(move || {
                let users = users.pin(); // pin once, call often
                for number in 0..1000 {
                    users.insert((team, number), format!("{team} {number}"));
                }
            });
        }
    });

    let view = users.pin();
    let seven = view.get(("green", 7)).expect("inserted"); // no owned key is needed
    view.remove(("green", 7));
    assert_eq!(*seven, "green 7"); // valid while the view lives
    let team: Vec<u64> = view.prefix(("green",)).take(8).map(|((_, number), _)| number).collect();
    assert_eq!(team, [0, 1, 2, 3, 4, 5, 6, 8]);
    let last = view.range_rev(..("green", 0)).next().map(|((team, number), _)| (team, number));
    assert_eq!(last, Some(("blue".into(), 999)));

    // Decides on the present value and changes it, in one atomic step.
    view.compute(("red", 1), |name| match name {
        Some(name) if name.starts_with("red") => Operation::Insert(name.to_uppercase()),
        _ => Operation::Abort(()),
    });
    assert_eq!(view.get(("red", 1)).as_deref().map(String::as_str), Some("RED 1"));

    let mut cursor = users.cursor(); // owned, Send, holds no pin between calls
    assert!(cursor.seek(("red", 998)) && cursor.next() && !cursor.next());

    // At its limit the map returns an error with the entries that it did not take.
    let many = (0..10_000_000).map(|number| (("gray", number), "x".repeat(100)));
    let error = users.try_extend(many).expect_err("64 MiB do not hold ten million");
    let ((_, number), _) = { error.rest }.next().expect("the first that was refused");
    assert_eq!(number, error.done as u64);
    println!("{} users in {} bytes", users.len(), users.bytes());
    Ok(())
}
