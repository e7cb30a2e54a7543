//! The command line, checked.

use crate::catalogue::Make;
use crate::catalogue::select::{self, Chosen};
use crate::flags::args::{Format, WatchArgs};
use crate::flags::error::Error;
use crate::flags::place::Place;
use crate::flags::types::{KeyType, Types};
use crate::flags::values::{THREADS_MAX, number, parse, seconds, single};
use silvics::{Pages, Tuning};
use silvics_workload::{KEYS_MAX, Mix};
use std::time::Duration;

/// The threads of the first phase for each core. With more threads than cores, threads lose their
/// core while they have a lock, and others wait for it.
const THREADS_PER_CORE: usize = 4;

/// A checked command line.
pub struct Plan {
    pub chosen: Chosen,
    pub make: Make<u64>,
    pub keys: usize,
    /// The threads of the first phase.
    pub threads: usize,
    /// The duration of a phase.
    pub time: Duration,
    /// Upserts alone.
    pub mix: Mix,
    pub format: Format,
}

impl Plan {
    /// Reads the flags.
    pub fn new(args: &WatchArgs, cores: usize) -> Result<Self, Error> {
        let name = args.index.as_deref().or(args.name.as_deref()).unwrap_or("ca-tree");
        let types = Types::words(KeyType::U64);
        let mix: Mix = single("--index", "0/0/0/0/100", parse)?;
        let (chosen, _) = select::select(name, None, types, &[mix])?;
        let [chosen] = chosen[..] else {
            let problem = format!("`{name}` are several indexes: name one");
            return Err(Error::value("--index", problem));
        };
        chosen.must_adapt("--index")?;
        let place = Place::Pooled(Pages::default(), Tuning::default());
        let Some(make) = chosen.make::<u64>(place, types) else {
            return Err(Error::KeyType { index: chosen.name(), key_type: types.key });
        };
        let threads =
            |text: &String| single("--threads", text, |text| number(text, 1, THREADS_MAX));
        let format = Format::parse(&args.format)?;
        if format == Format::Csv {
            let problem = "there are frames and phases: choose table or json";
            return Err(Error::value("--format", problem));
        }
        Ok(Self {
            chosen,
            make,
            keys: single("--keys", &args.keys, |text| number(text, 1, KEYS_MAX / 2))?,
            threads: args.threads.as_ref().map_or(Ok(THREADS_PER_CORE * cores), threads)?,
            time: single("--seconds", &args.seconds, seconds)?,
            mix,
            format,
        })
    }
}
