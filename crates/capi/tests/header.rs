//! The header in the repository is that of the crate.

mod generate;

#[test]
fn the_header_is_up_to_date() {
    let kept = include_str!("../include/silvics.h");
    let generated = generate::header();
    let differs = kept.lines().zip(generated.lines()).position(|(kept, new)| kept != new);
    assert!(
        kept == generated,
        "line {:?} of include/silvics.h differs: \
         cargo run -p silvics-capi --example header > crates/capi/include/silvics.h",
        differs.map(|line| line + 1)
    );
}
