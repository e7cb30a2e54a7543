//! The files into which pictures are written.

use crate::flags::args::InspectArgs;
use crate::flags::error::Error;
use crate::output::File;
use std::path::PathBuf;

/// The files that were requested.
#[derive(Clone, Debug, Default)]
pub struct Files {
    pub(super) svg: Option<File>,
    pub(super) html: Option<File>,
}

impl Files {
    /// Reads `--svg` and `--html`. Fails at once if one of the files could not be written at the
    /// end.
    pub fn new(args: &InspectArgs) -> Result<Self, Error> {
        let file = |flag, path: &Option<PathBuf>| {
            path.as_deref().map(|path| File::new(flag, path)).transpose()
        };
        let (svg, html) = (file("--svg", &args.svg)?, file("--html", &args.html)?);
        let trace = args.trace.clone().map(|path| File { flag: "--trace", path });
        let keys = args.key_file.file.clone().map(|path| File { flag: "--key-file", path });
        File::distinct([&trace, &keys, &svg, &html])?;
        Ok(Self { svg, html })
    }
}
