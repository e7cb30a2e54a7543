//! The C header.

use std::path::Path;

/// Generates the header from the crate.
pub(crate) fn header() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).expect("a configuration");
    let bindings = cbindgen::Builder::new().with_crate(root).with_config(config).generate();
    let mut header = Vec::new();
    bindings.expect("the crate is readable").write(&mut header);
    String::from_utf8(header).expect("text")
}
