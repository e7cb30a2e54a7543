//! The source of keys: a distribution, a key set, or a file.

use crate::drive::keys::BenchKey;
use crate::flags::args::KeyFileArgs;
use crate::flags::error::Error;
use crate::flags::types::KeyType;
use crate::flags::values::{parse, single};
use crate::names::{self, Name};
use crate::output::File;
use crate::progress;
use serde::{Deserialize, Serialize};
use silvics_workload::keyfile::Format;
use silvics_workload::{Dist, KeySet};
use std::path::{Path, PathBuf};

/// A file of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySource {
    path: PathBuf,
    format: Format,
}

/// The facts about a key file in reports.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeyFileConfig {
    pub path: String,
    #[serde(deserialize_with = "names::one")]
    pub format: Name,
    /// The number of distinct keys.
    pub keys: usize,
    pub duplicates_dropped: usize,
    /// A digest of the keys in their order, in hexadecimal digits.
    pub digest: String,
}

impl KeySource {
    /// The file, which no output may replace.
    pub fn file(&self) -> File {
        File { flag: "--key-file", path: self.path.clone() }
    }

    /// Reads `--key-file` and `--key-format`. `None` if keys are generated. `counted` says whether
    /// `--keys` is given, and `dists` are the distributions that `--dist` names.
    pub fn new(args: &KeyFileArgs, counted: bool, dists: &[Dist]) -> Result<Option<Self>, Error> {
        let Some(path) = &args.file else {
            if args.format.is_some() {
                let problem =
                    "there is no key file to read: name it with --key-file, or leave it out";
                return Err(Error::value("--key-format", problem));
            }
            return Ok(None);
        };
        if counted {
            return Err(Error::Conflict {
                flag: "--keys",
                other: "--key-file",
                remedy: "a key file brings its own keys, so leave one of them out",
            });
        }
        refuse_sparse(dists, "--key-file")?;
        let format = key_format(args.format.as_deref(), path)?;
        Ok(Some(Self { path: path.clone(), format }))
    }

    /// Reads the file for these distributions, and reports dropped duplicates.
    pub fn read<K: BenchKey + ?Sized>(
        &self,
        dists: &[Dist],
    ) -> Result<(K::Space, KeyFileConfig), Error> {
        let path = self.path.clone();
        let file = K::read(&path, self.format);
        let file = file.map_err(|error| Error::KeyFile { path: path.clone(), error })?;
        if let Some(at) = file.unsorted_at
            && let Some(&dist) = dists.iter().find(|&&dist| dist == Dist::Sequential)
        {
            return Err(Error::Unsorted { path, dist, at });
        }
        let keys = K::len(&file.keys);
        if file.duplicates > 0 {
            progress::note(&format!(
                "--key-file `{}`: {} duplicate key{} dropped, {keys} left",
                path.display(),
                file.duplicates,
                crate::flags::units::plural(file.duplicates)
            ));
        }
        let config = KeyFileConfig {
            path: path.display().to_string(),
            format: match self.format {
                Format::Lines => "lines",
                Format::Sosd => "sosd",
            },
            keys,
            duplicates_dropped: file.duplicates,
            digest: digest::<K>(&file.keys),
        };
        Ok((file.keys, config))
    }
}

/// A digest of keys in their order. Two files with other keys have the same one by chance alone.
fn digest<K: BenchKey + ?Sized>(keys: &K::Space) -> String {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15; // 2^64 over the golden ratio
    let add =
        |sum: u64, position| (sum.rotate_left(5) ^ K::value(keys, position)).wrapping_mul(ODD);
    format!("{:016x}", (0..K::len(keys) as u32).fold(0, add))
}

/// Reads `--keyset`. `None` if keys are generated integers or come from a file.
pub fn key_set(args: &KeyFileArgs, dists: &[Dist]) -> Result<Option<KeySet>, Error> {
    let Some(name) = &args.set else { return Ok(None) };
    let set = single("--keyset", name, parse)?;
    if args.file.is_some() {
        return Err(Error::Conflict {
            flag: "--keyset",
            other: "--key-file",
            remedy: "each of them names all keys, so leave one of them out",
        });
    }
    refuse_sparse(dists, "--keyset")?;
    Ok(Some(set))
}

/// Refuses distributions of hashed integers for the keys that the flag `other` names.
fn refuse_sparse(dists: &[Dist], other: &'static str) -> Result<(), Error> {
    let (flag, remedy) = match dists.iter().find(|dist| dist.is_sparse()) {
        None => return Ok(()),
        Some(Dist::SparseZipf(_)) => (
            "--dist sparse+zipf",
            "sparse keys are generated integers, so choose --dist zipf:EXPONENT for other keys",
        ),
        Some(_) => (
            "--dist sparse",
            "sparse keys are generated integers, so choose --dist uniform for other keys",
        ),
    };
    Err(Error::Conflict { flag, other, remedy })
}

fn key_format(text: Option<&str>, path: &Path) -> Result<Format, Error> {
    match text {
        None => Ok(Format::of(path)),
        Some("lines") => Ok(Format::Lines),
        Some("sosd") => Ok(Format::Sosd),
        Some(text) => {
            let problem = format!("`{text}` is not a format of key files: choose lines or sosd");
            Err(Error::value("--key-format", problem))
        }
    }
}

/// Reads `--key-type`, each name with `read`.
pub fn key_type(
    args: &KeyFileArgs,
    source: Option<&KeySource>,
    read: fn(&str) -> Result<KeyType, String>,
) -> Result<KeyType, Error> {
    let lines = source.is_some_and(|source| source.format == Format::Lines);
    let set = args.set.is_some();
    match args.key_type.as_deref() {
        None if lines || set => Ok(KeyType::Bytes),
        None => Ok(KeyType::U64),
        Some(number @ ("u64" | "u128")) if lines => {
            let problem = format!(
                "`{number}` keys cannot be read from a file of lines: choose bytes, or name a SOSD \
                 file and --key-format sosd"
            );
            Err(Error::value("--key-type", problem))
        }
        Some(number @ ("u64" | "u128")) if set => {
            let problem = format!(
                "`{number}` keys are numbers, but a key set has byte strings: choose bytes, or leave \
                 out --keyset"
            );
            Err(Error::value("--key-type", problem))
        }
        Some(text) => single("--key-type", text, read),
    }
}
