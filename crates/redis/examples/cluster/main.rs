//! Kills primaries of a real cluster, and moves its slots, while two writers write: no acknowledged
//! write may be lost.
//!
//! ```text
//! cluster --module target/release/libsilvics_redis.so --quick
//! cluster --help
//! ```
//!
//! A write is *acknowledged* if WAIT, on its connection, reports that a replica has it. The program
//! starts three primaries and three replicas on 127.0.0.1, in a temporary folder, loads maps, and
//! runs rounds of two kinds in turn:
//!
//! * `kill`: a primary is killed by SIGKILL. When its replica has taken over, the process is
//!   started again, and the round ends when it is a replica in sync.
//! * `reshard`: a hundred slots move to another primary with all their maps. Nothing is killed,
//!   because MIGRATE deletes a map from its source before a replica of the target has it.
//!
//! After each round all maps are read. Each key has to have its acknowledged value or a later one.
//! In each round a cursor also scans a map over 16 shards, up and down, which has to be complete
//! and in order. The servers end with the program, also if it panics; SIGKILL of the program leaves
//! them running.
//!
//! | file | holds |
//! |---|---|
//! | `args.rs` | the arguments |
//! | `nodes.rs`, `topology.rs` | the servers as a cluster, and as the nodes see it |
//! | `commands.rs` | the names of the commands |
//! | `writer.rs` | the writers, with WAIT |
//! | `model.rs` | what each key may have |
//! | `rounds.rs` | the two kinds of rounds |
//! | `check.rs` | comparison of all maps with the model; the scanned map |
//! | `../common/server.rs` | processes of servers |

mod args;
mod check;
mod commands;
mod model;
mod nodes;
mod rounds;
#[path = "../common/server.rs"]
mod server;
mod topology;
mod writer;

use std::process::ExitCode;
use std::thread;
use std::time::Instant;

use args::Args;
use check::Sharded;
use nodes::Cluster;
use rounds::{Outcome, Scene};
use server::Failure;
use writer::{Layout, Random, WRITERS, Writer};

fn main() -> ExitCode {
    server::main("cluster", args::HELP, Args::read, run)
}

fn run(args: &Args) -> Result<(), Failure> {
    let start = Instant::now();
    let mut scene = set_up(args)?;
    println!(
        "seed {}: {} entries in {} maps, loaded after {:.1} s",
        args.seed,
        args.entries,
        args.maps,
        start.elapsed().as_secs_f64()
    );
    if args.keep {
        println!("the servers' folder is {}", scene.cluster.folder());
    }
    let mut totals = Totals::default();
    let result = totals.run(&mut scene, args.rounds as usize);
    if let Some(crash) = scene.cluster.crash() {
        return Err(Failure::Verdict(crash));
    }
    result?;
    totals.print(start);
    match totals.first_loss {
        None => Ok(()),
        Some(first) => Err(Failure::Verdict(format!(
            "acknowledged writes of {} keys are lost: {first}",
            totals.lost
        ))),
    }
}

/// Starts the cluster and loads all maps.
fn set_up(args: &Args) -> Result<Scene, Failure> {
    let cluster = Cluster::start(&args.launch, args.keep)?;
    let maps: Vec<String> = (0..args.maps).map(|map| format!("map:{map:04}")).collect();
    let ports = cluster.ports();
    let mut connection = server::connect(ports[0])?;
    let slots = topology::slots_of(&mut connection, &maps)?;
    let layout = Layout { commands: args.commands, ports, maps, slots, no_wait: args.no_wait };

    let keys = args.entries as usize / WRITERS;
    let writers = (0..WRITERS).map(|writer| Writer::new(writer, keys, args.seed));
    let mut writers: Vec<Writer> = writers.collect();
    let loads: Vec<_> = thread::scope(|scope| {
        let layout = &layout;
        let loads = writers.iter_mut().map(|writer| scope.spawn(move || writer.load(layout)));
        loads.collect::<Vec<_>>().into_iter().map(thread::ScopedJoinHandle::join).collect()
    });
    for load in loads {
        load.unwrap_or_else(|_| Err(Failure::Run("the load panicked".to_owned())))?;
    }

    let sharded = Sharded::new((args.entries / 10).min(100_000))?;
    let slots = topology::slots_of(&mut connection, sharded.shards.names())?;
    let owners = cluster.wait_for_owners()?;
    let owner = |shard: usize| server::connect(layout.ports[owners[slots[shard]]]);
    sharded.load(args.commands, owner)?;
    Ok(Scene { cluster, layout, writers, sharded, random: Random(args.seed) })
}

/// The sums over all rounds.
#[derive(Debug, Default)]
struct Totals {
    rounds: u64,
    written: u64,
    acknowledged: u64,
    lost: u64,
    scans: u64,
    first_loss: Option<String>,
}

impl Totals {
    fn run(&mut self, scene: &mut Scene, rounds: usize) -> Result<(), Failure> {
        for round in 0..rounds {
            self.add(round, "kill", scene.kill_round()?)?;
            self.add(round, "reshard", scene.reshard_round(round)?)?;
        }
        Ok(())
    }

    /// Prints a round and adds it. A round without acknowledged writes, or a move without writes to
    /// the target, shows nothing, so it fails.
    fn add(&mut self, round: usize, kind: &str, outcome: Outcome) -> Result<(), Failure> {
        let Outcome { took, counts, lost, first_loss, scans, event } = outcome;
        println!(
            "{kind:7} {:2}  {:5.1} s  {:7} written  {:7} acknowledged  {lost} lost  {} scans, {} \
             retries  {event}",
            round + 1,
            took.as_secs_f64(),
            counts.written,
            counts.acknowledged,
            scans.complete,
            scans.retries,
        );
        self.rounds += 1;
        self.written += counts.written;
        self.acknowledged += counts.acknowledged;
        self.lost += lost;
        self.scans += scans.complete;
        self.first_loss = self.first_loss.take().or(first_loss);
        if counts.acknowledged == 0 || kind == "reshard" && counts.asked == 0 {
            let what = if counts.acknowledged == 0 { "acknowledged" } else { "sent on" };
            let sentence = format!("no write of {kind} round {} is {what}", round + 1);
            return Err(Failure::Verdict(sentence));
        }
        Ok(())
    }

    fn print(&self, start: Instant) {
        println!(
            "total: {} rounds, {} written, {} acknowledged, {} lost, {} scans, {:.1} s",
            self.rounds,
            self.written,
            self.acknowledged,
            self.lost,
            self.scans,
            start.elapsed().as_secs_f64()
        );
    }
}
