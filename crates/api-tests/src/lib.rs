//! This package has tests only: `Map`, its keys, and the radix tree, as users of the library call
//! them.
