//! Prints the C header, which cbindgen generates from the crate:
//! `cargo run -p silvics-capi --example header > crates/capi/include/silvics.h`.

#[path = "../tests/generate/mod.rs"]
mod generate;

fn main() {
    print!("{}", generate::header());
}
