//! Latency of single lookups while another connection aggregates a large map.
//!
//! ```text
//! latency --module target/release/libsilvics_redis.so
//! latency --help
//! ```
//!
//! There are three phases. In each of them one connection sends GET of a string and OM.GET of the
//! map in turn, and waits for each reply:
//!
//! * `idle`: nothing else runs;
//! * `off loop`: another connection repeats `OM.AGG map - + SUM`, with the module's threads;
//! * `on loop`: the same on a server started with `threads 0`, where the aggregate runs on the
//!   event loop and each lookup waits for its end.
//!
//! Two ratios are required: the 99th percentile off the loop is at most 5 ms, and it is at most a
//! tenth of the pause on the loop, which is the longest latency there. The larger percentile of GET
//! and OM.GET counts, and the larger maximum.

use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use redis::{Cmd, Connection, RedisResult, cmd};
use silvics_sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

#[path = "common/server.rs"]
#[allow(dead_code, reason = "the example `cluster` uses the rest")]
mod server;

use server::{Failure, Launch, Server};

const HELP: &str = "\
Measures the latency of lookups while another connection aggregates a large map.

usage: latency --module LIBRARY [options]

  --module LIBRARY  the module
  --server PROGRAM  the server: a name in PATH, or a path (default: redis-server)
  --entries N       entries of the map (default: 10000000)
  --repeats R       aggregates per phase (default: 20)

exit code: 0 if both bars are met, 1 if not, 2 if an argument is wrong or a server does not start,
3 if the run cannot be completed";

/// The largest percentile off the loop.
const BAR_MICROS: f64 = 5_000.0;

/// The largest ratio of this percentile and the pause on the loop.
const BAR_RATIO: f64 = 0.1;

const MAP: &str = "numbers";
const STRING: &str = "string";

/// The time between two lookups of a client whose latency counts.
const INTERVAL: Duration = Duration::from_micros(100);

/// The time of the idle phase.
const IDLE: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    server::main("latency", HELP, Args::read, run)
}

struct Args {
    launch: Launch,
    entries: u64,
    repeats: u64,
}

impl Args {
    /// Reads the arguments; `None` if they ask for help.
    fn read(mut words: impl Iterator<Item = String>) -> Result<Option<Self>, Failure> {
        let wrong =
            |sentence: String| Failure::Setup(format!("{sentence}; --help lists the options"));
        let launch =
            Launch { server: "redis-server".to_owned(), module: None, module_arguments: vec![] };
        let mut args = Self { launch, entries: 10_000_000, repeats: 20 };
        while let Some(word) = words.next() {
            if word == "--help" || word == "-h" {
                return Ok(None);
            }
            let value = words.next().ok_or_else(|| wrong(format!("{word} needs a value")))?;
            let number = |value: &str| {
                let number = value.parse().ok().filter(|&number| number > 0);
                number.ok_or_else(|| wrong(format!("{word} needs a number, not `{value}`")))
            };
            match word.as_str() {
                "--module" => args.launch.module = Some(PathBuf::from(value)),
                "--server" => args.launch.server = value,
                "--entries" => args.entries = number(&value)?,
                "--repeats" => args.repeats = number(&value)?,
                _ => return Err(wrong(format!("no option is called `{word}`"))),
            }
        }
        let module = args.launch.module.as_ref();
        let module = module.ok_or_else(|| wrong("--module LIBRARY is needed".to_owned()))?;
        // The server runs in another folder.
        let module = module.canonicalize().map_err(|error| {
            wrong(format!("the module {} cannot be read: {error}", module.display()))
        })?;
        args.launch.module = Some(module);
        Ok(Some(args))
    }
}

fn run(args: &Args) -> Result<(), Failure> {
    let server = Loaded::start(args, &[])?;
    println!("phase     command   samples      p50 µs      p99 µs      max µs");
    let idle = server.idle()?;
    idle.print("idle");
    let off_loop = server.beside_aggregates(args)?;
    off_loop.print("off loop");
    drop(server);
    let on_loop = Loaded::start(args, &["threads", "0"])?.beside_aggregates(args)?;
    on_loop.print("on loop");

    let percentile = off_loop.worst(|samples| samples.percentile(99));
    let pause = on_loop.worst(|samples| samples.percentile(100));
    let ratio = percentile / pause;
    let missed = |reached: bool| if reached { "" } else { ", missed" };
    let reached = [percentile <= BAR_MICROS, ratio <= BAR_RATIO];
    println!(
        "p99 off the loop: {percentile:.0} µs; the bar is {BAR_MICROS:.0} µs{}",
        missed(reached[0])
    );
    println!(
        "p99 off the loop / pause on the loop: {ratio:.4}; the bar is {BAR_RATIO}{}",
        missed(reached[1])
    );
    if reached == [true; 2] { Ok(()) } else { Err(Failure::Verdict("a bar is not met".to_owned())) }
}

/// A server with a map and a string.
struct Loaded {
    server: Server,
    entries: u64,
    /// Deleted after the server has ended.
    _folder: TempDir,
}

impl Loaded {
    fn start(args: &Args, module_arguments: &[&str]) -> Result<Self, Failure> {
        let folder = TempDir::with_prefix("silvics-latency.").map_err(|error| {
            Failure::Setup(format!("no temporary folder can be made: {error}; set TMPDIR"))
        })?;
        let mut launch = args.launch.clone();
        launch.module_arguments = module_arguments.iter().map(|&word| word.to_owned()).collect();
        let port = server::free_ports(1)?[0];
        let server = launch.start(folder.path(), port, &[])?;
        let loaded = Self { server, entries: args.entries, _folder: folder };
        loaded.load()?;
        Ok(loaded)
    }

    /// Writes the numbers from 0 to the number of entries, each under itself.
    fn load(&self) -> Result<(), Failure> {
        let start = Instant::now();
        let mut connection = self.server.connect()?;
        cmd("SET").arg(STRING).arg("value").exec(&mut connection)?;
        for first in (0..self.entries).step_by(10_000) {
            let mut pipe = redis::pipe();
            for number in first..(first + 10_000).min(self.entries) {
                pipe.cmd("OM.SET").arg(MAP).arg(&key(number)[..]).arg(number).ignore();
            }
            pipe.exec(&mut connection)?;
        }
        let entries: u64 = cmd("OM.LEN").arg(MAP).query(&mut connection)?;
        if entries != self.entries {
            return Err(Failure::Run(format!("the map has {entries} of {}", self.entries)));
        }
        println!("loaded {entries} entries in {:.1} s", start.elapsed().as_secs_f64());
        Ok(())
    }

    fn idle(&self) -> Result<Phase, Failure> {
        let stop = AtomicBool::new(false);
        let phase = thread::scope(|scope| {
            let lookups = scope.spawn(|| self.look_up(&stop));
            thread::sleep(IDLE);
            // Relaxed: the join orders all else.
            stop.store(true, Ordering::Relaxed);
            joined(lookups)
        })?;
        Ok(phase)
    }

    /// Looks up while another connection repeats the aggregate.
    fn beside_aggregates(&self, args: &Args) -> Result<Phase, Failure> {
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let lookups = scope.spawn(|| self.look_up(&stop));
            let aggregates = self.aggregate(args.repeats);
            // Relaxed: the join orders all else.
            stop.store(true, Ordering::Relaxed);
            let mut phase = joined(lookups)?;
            phase.aggregates = aggregates?;
            Ok(phase)
        })
    }

    /// The times of the aggregates, whose result is checked.
    fn aggregate(&self, repeats: u64) -> Result<Vec<Duration>, Failure> {
        let expected = self.entries * (self.entries - 1) / 2;
        let mut connection = self.server.connect()?;
        let mut times = Vec::new();
        for _ in 0..repeats {
            let start = Instant::now();
            let command = cmd("OM.AGG").arg(MAP).arg("-").arg("+").arg("SUM").take();
            let reply: redis::Value = command.query(&mut connection)?;
            times.push(start.elapsed());
            if number_in(&reply) != Some(expected) {
                return Err(Failure::Run(format!(
                    "the sum is {reply:?}, but {expected} is expected"
                )));
            }
        }
        Ok(times)
    }

    /// Sends GET and OM.GET in turn until `stop`, and records the time of each.
    fn look_up(&self, stop: &AtomicBool) -> RedisResult<Phase> {
        let mut connection = self.server.connect()?;
        let get = cmd("GET").arg(STRING).take();
        let mut phase = Phase::default();
        let mut number = 0;
        // Relaxed: nothing but the flag is read because of it.
        while !stop.load(Ordering::Relaxed) {
            phase.get.record(time(&get, &mut connection)?);
            number = (number + 7_919_777) % self.entries;
            let get = cmd("OM.GET").arg(MAP).arg(&key(number)[..]).take();
            phase.map_get.record(time(&get, &mut connection)?);
        }
        phase.get.0.sort_unstable();
        phase.map_get.0.sort_unstable();
        Ok(phase)
    }
}

fn key(number: u64) -> [u8; 8] {
    number.to_be_bytes()
}

fn joined(thread: thread::ScopedJoinHandle<'_, RedisResult<Phase>>) -> Result<Phase, Failure> {
    let panicked = |_| Failure::Run("the lookups panicked".to_owned());
    Ok(thread.join().map_err(panicked)??)
}

fn time(command: &Cmd, connection: &mut Connection) -> RedisResult<Duration> {
    let start = Instant::now();
    command.exec(connection)?;
    Ok(start.elapsed())
}

/// The integer of a reply, which may be text, or the one item of an array.
fn number_in(reply: &redis::Value) -> Option<u64> {
    match reply {
        redis::Value::Array(items) if items.len() == 1 => number_in(&items[0]),
        other => redis::from_redis_value(other.clone()).ok(),
    }
}

/// The latencies of one phase.
#[derive(Default)]
struct Phase {
    get: Samples,
    map_get: Samples,
    aggregates: Vec<Duration>,
}

/// Latencies in ascending order.
#[derive(Default)]
struct Samples(Vec<Duration>);

impl Samples {
    /// Adds a latency. A client that sends a lookup every [`INTERVAL`] would have sent others
    /// meanwhile, which would have waited for the rest of the time: they are added, too.
    fn record(&mut self, latency: Duration) {
        let mut waited = Some(latency);
        while let Some(latency) = waited {
            self.0.push(latency);
            waited = latency.checked_sub(INTERVAL).filter(|rest| !rest.is_zero());
        }
    }

    /// A percentile in microseconds; 0 without samples.
    fn percentile(&self, percent: usize) -> f64 {
        let last = self.0.len().saturating_sub(1);
        let sample = self.0.get(last * percent / 100);
        sample.map_or(0.0, |sample| sample.as_secs_f64() * 1e6)
    }
}

impl Phase {
    /// The larger result of both commands.
    fn worst(&self, of: impl Fn(&Samples) -> f64) -> f64 {
        of(&self.get).max(of(&self.map_get))
    }

    fn print(&self, name: &str) {
        for (command, samples) in [("GET", &self.get), ("OM.GET", &self.map_get)] {
            let [p50, p99, max] = [50, 99, 100].map(|percent| samples.percentile(percent));
            println!(
                "{name:8}  {command:7} {:9} {p50:11.1} {p99:11.1} {max:11.1}",
                samples.0.len()
            );
        }
        if let (Some(least), Some(most)) =
            (self.aggregates.iter().min(), self.aggregates.iter().max())
        {
            println!(
                "{name:8}  OM.AGG  {:9} {:.1} ms to {:.1} ms",
                self.aggregates.len(),
                least.as_secs_f64() * 1e3,
                most.as_secs_f64() * 1e3
            );
        }
    }
}
