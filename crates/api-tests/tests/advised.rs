//! The Rust that `silvics advise` gives, so that the compiler checks it. A test of the command
//! writes `lines.in`.

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

include!("advised/lines.in");
