//! Compiles the C++ part, if the feature `plugin` is on.

fn main() {
    #[cfg(feature = "plugin")]
    {
        println!("cargo:rerun-if-changed=cpp");
        // The registrar has no caller: without the modifier the linker would leave it out.
        cc::Build::new()
            .cpp(true)
            .std("c++17")
            .files(["cpp/art.cc", "cpp/register.cc", "cpp/skiplist.cc"])
            .link_lib_modifier("+whole-archive")
            .compile("silvics_rocksdb_cpp");
        println!("cargo:rustc-link-lib=dylib=rocksdb");
    }
}
