//! The input files of a verb, and digests of their bytes.

use crate::flags::error::Error;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// A file that a flag names as an input.
pub type Input<'a> = (&'static str, &'a Path);

/// The digests of files, by their paths.
pub fn digests(files: &[Input<'_>]) -> Result<BTreeMap<String, String>, Error> {
    let of = |&(flag, path): &Input<'_>| {
        let digest = digest(path).map_err(|error| {
            let problem = format!("cannot be read: {error}");
            Error::File { flag, path: path.into(), problem }
        })?;
        Ok((path.display().to_string(), digest))
    };
    files.iter().map(of).collect()
}

/// A digest of the bytes of a file, in hexadecimal digits. Two files with other bytes have the same
/// one by chance alone.
fn digest(path: &Path) -> io::Result<String> {
    let (mut file, mut sum) = (File::open(path)?, Xxh3::new());
    let mut bytes = vec![0; 1 << 16];
    loop {
        match file.read(&mut bytes)? {
            0 => return Ok(format!("{:032x}", sum.digest128())),
            read => sum.update(&bytes[..read]),
        }
    }
}
