//! The arguments.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use super::commands::Commands;
use super::server::{Failure, Launch};

pub(crate) const HELP: &str = "\
Starts a cluster of six servers on 127.0.0.1, writes to it while primaries are killed and slots
move, and checks that no acknowledged write is lost.

usage: cluster (--module LIBRARY | --hashes) [options]

  --module LIBRARY  load this module, and write to its ordered maps
  --hashes          write to the server's own hashes instead, as a control
  --server PROGRAM  the server: a name in PATH, or a path (default: redis-server)
  --entries N       entries to load (default: 1000000)
  --maps M          maps that have them (default: 1000)
  --rounds R        rounds in which a primary is killed, and rounds in which slots move: R of each,
                    in turn (default: 20)
  --quick           20000 entries, 50 maps, 1 round of each; less than 60 s
  --seed S          chooses what is killed, moved and written (default: from the time)
  --keep            do not delete the folder with the servers' logs
  --plant no-wait   a mistake that has to be found: writes count as acknowledged without WAIT. Each
                    round of this run also pauses the replica of the primary that is killed, and
                    cuts its link, so writes of this round are lost with certainty. Without the
                    pause, a loss would not be certain in each round.

exit code: 0 if nothing acknowledged is lost; 1 if something is, or a scan or a server fails; 2 if
an argument is wrong or a server does not start; 3 if the run cannot be completed";

/// The cluster to start, and the work on it.
#[derive(Debug)]
pub(crate) struct Args {
    pub(crate) launch: Launch,
    pub(crate) commands: Commands,
    pub(crate) entries: u64,
    pub(crate) maps: u64,
    pub(crate) rounds: u64,
    pub(crate) seed: u64,
    pub(crate) keep: bool,
    /// Whether writes count as acknowledged without WAIT.
    pub(crate) no_wait: bool,
}

impl Args {
    /// Reads the arguments; `None` if they ask for help.
    pub(crate) fn read(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, Failure> {
        let launch =
            Launch { server: "redis-server".to_owned(), module: None, module_arguments: vec![] };
        let time = SystemTime::now().duration_since(UNIX_EPOCH);
        let mut args = Self {
            launch,
            commands: Commands::Maps,
            entries: 1_000_000,
            maps: 1000,
            rounds: 20,
            seed: time.map_or(1, |time| u64::from(time.subsec_nanos())),
            keep: false,
            no_wait: false,
        };
        while let Some(word) = words.next() {
            let mut value = || words.next().ok_or_else(|| wrong(&format!("{word} needs a value")));
            match word.as_str() {
                "--help" | "-h" => return Ok(None),
                "--module" => args.launch.module = Some(PathBuf::from(value()?)),
                "--server" => args.launch.server = value()?,
                "--hashes" => args.commands = Commands::Hashes,
                "--entries" => args.entries = number(&word, &value()?)?,
                "--maps" => args.maps = number(&word, &value()?)?,
                "--rounds" => args.rounds = number(&word, &value()?)?,
                "--seed" => args.seed = number(&word, &value()?)?,
                "--keep" => args.keep = true,
                "--quick" => (args.entries, args.maps, args.rounds) = (20_000, 50, 1),
                "--plant" => match value()?.as_str() {
                    "no-wait" => args.no_wait = true,
                    other => return Err(wrong(&format!("no mistake is called `{other}`"))),
                },
                _ => return Err(wrong(&format!("no option is called `{word}`"))),
            }
        }
        args.check().map(Some)
    }

    fn check(mut self) -> Result<Self, Failure> {
        if self.entries < 1000 || self.maps == 0 || self.maps > self.entries / 10 {
            return Err(wrong("use 1000 entries or more, and at least 10 entries per map"));
        }
        if self.commands == Commands::Hashes {
            return Ok(self);
        }
        let Some(module) = &self.launch.module else {
            return Err(wrong("a module is needed: use --module LIBRARY, or --hashes for none"));
        };
        // The servers run in other folders.
        match module.canonicalize() {
            Ok(module) => self.launch.module = Some(module),
            Err(error) => {
                return Err(Failure::Setup(format!(
                    "the module {} cannot be read: {error}; build it by `cargo build --release -p \
                     silvics-redis --features module`",
                    module.display()
                )));
            }
        }
        Ok(self)
    }
}

fn wrong(sentence: &str) -> Failure {
    Failure::Setup(format!("{sentence}; --help lists the options"))
}

fn number(word: &str, value: &str) -> Result<u64, Failure> {
    value.parse().map_err(|_| wrong(&format!("{word} needs a number, not `{value}`")))
}
