//! The rounds: what happens to the cluster while the writers write.

use std::thread;
use std::time::{Duration, Instant};

use redis::{RedisResult, cmd};
use silvics_sync::atomic::{AtomicBool, Ordering};

use super::check::{Scans, Sharded, compare};
use super::commands::Commands;
use super::nodes::Cluster;
use super::server::Failure;
use super::writer::{Counts, Layout, Random, Writer};

/// The most slots that move in a round.
const MOVED_SLOTS: usize = 100;

/// The time for which the maps of a slot are on the target, and the slot is the source's.
const MOVING: Duration = Duration::from_millis(10);

/// Keys of a call of MIGRATE.
const MIGRATED_KEYS: usize = 10;

/// The time that writers write before and after the event of a round.
const BESIDE: Duration = Duration::from_millis(800);

/// The time of writes that the replica of the planted mistake does not receive. It is shorter than
/// the time after which the cluster thinks that the replica is down.
const UNSEEN: Duration = Duration::from_millis(500);

/// All that a round uses.
pub(crate) struct Scene {
    pub(crate) cluster: Cluster,
    pub(crate) layout: Layout,
    pub(crate) writers: Vec<Writer>,
    pub(crate) sharded: Sharded,
    pub(crate) random: Random,
}

/// The result of a round.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) took: Duration,
    pub(crate) counts: Counts,
    pub(crate) lost: u64,
    pub(crate) first_loss: Option<String>,
    pub(crate) scans: Scans,
    /// The event of the round, in words.
    pub(crate) event: String,
}

impl Scene {
    /// Kills a primary, waits for the failover, and restarts the process as a replica.
    pub(crate) fn kill_round(&mut self) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let owners = self.cluster.wait_for_owners()?;
        let victim = owners[self.random.below(owners.len())];
        let no_wait = self.layout.no_wait;
        let (failover, counts, scans) = self.beside_writers(|cluster| {
            let paused = if no_wait { Some(cut_off_replica(cluster, victim)?) } else { None };
            cluster.kill(victim);
            let killed = Instant::now();
            if let Some(replica) = paused {
                cluster.server(replica)?.resume()?;
            }
            cluster.wait_for_owners()?;
            Ok(killed.elapsed())
        })?;
        self.cluster.restart(victim)?;
        let event = format!("failover {:.1} s", failover.as_secs_f64());
        self.outcome(start, counts, scans, event)
    }

    /// Moves slots from one primary to another. One of them has a shard of the sharded map.
    pub(crate) fn reshard_round(&mut self, round: usize) -> Result<Outcome, Failure> {
        let start = Instant::now();
        let owners = self.cluster.wait_for_owners()?;
        let names = self.sharded.shards.names();
        let shard = &names[round % names.len()];
        let slot: usize = self.cluster.ask(owners[0], cmd("CLUSTER").arg("KEYSLOT").arg(shard))?;
        let source = owners[slot];
        let mut targets: Vec<usize> = owners.iter().copied().filter(|&to| to != source).collect();
        targets.sort_unstable();
        targets.dedup();
        let target = targets[self.random.below(targets.len())];
        // The slots of maps that the writers write to, and slots beside that of the shard.
        let mut moved: Vec<usize> = self.layout.slots.clone();
        moved.retain(|&slot| owners[slot] == source);
        let turn = 7 * round % moved.len().max(1);
        moved.rotate_left(turn);
        moved.truncate(MOVED_SLOTS / 2);
        moved.extend(
            (slot..owners.len()).filter(|&slot| owners[slot] == source).take(MOVED_SLOTS / 2),
        );
        moved.sort_unstable();
        moved.dedup();
        let (maps, counts, scans) = self.beside_writers(|cluster| {
            let mut maps = 0;
            for &slot in &moved {
                maps += move_slot(cluster, slot, source, target)?;
            }
            cluster.wait_for_owners()?;
            Ok(maps)
        })?;
        // MIGRATE deletes a map from the source before the replica of the target has it, so no
        // primary may be killed now.
        self.cluster.wait_until_whole()?;
        let (slots, asked) = (moved.len(), counts.asked);
        let event = format!("{slots} slots and {maps} maps moved, {asked} writes sent on");
        self.outcome(start, counts, scans, event)
    }

    /// Runs `event` while the writers write and the cursor scans.
    fn beside_writers<T>(
        &mut self,
        event: impl FnOnce(&mut Cluster) -> Result<T, Failure>,
    ) -> Result<(T, Counts, Scans), Failure> {
        let Self { cluster, layout, writers, sharded, .. } = self;
        let (layout, sharded) = (&*layout, &*sharded);
        let stop = AtomicBool::new(false);
        let (result, scans) = thread::scope(|scope| {
            let stop_at_end = StopAtEnd(&stop);
            for writer in writers.iter_mut() {
                writer.counts = Counts::default();
                scope.spawn(|| writer.run(layout, &stop));
            }
            let scanner = (layout.commands == Commands::Maps)
                .then(|| scope.spawn(|| sharded.scan_until(&layout.ports, &stop)));
            thread::sleep(BESIDE);
            let result = event(cluster);
            thread::sleep(BESIDE);
            drop(stop_at_end);
            let scans = scanner.map(|scanner| {
                let panicked = |_| Err(Failure::Run("the scanner panicked".to_owned()));
                scanner.join().unwrap_or_else(panicked)
            });
            (result, scans)
        });
        let mut counts = Counts::default();
        for writer in &self.writers {
            counts.written += writer.counts.written;
            counts.acknowledged += writer.counts.acknowledged;
            counts.asked += writer.counts.asked;
        }
        if let Some(fault) = self.writers.iter_mut().find_map(|writer| writer.fault.take()) {
            return Err(Failure::Verdict(format!("a write or a read fails: {fault}")));
        }
        Ok((result?, counts, scans.transpose()?.unwrap_or_default()))
    }

    fn outcome(
        &mut self,
        start: Instant,
        counts: Counts,
        scans: Scans,
        event: String,
    ) -> Result<Outcome, Failure> {
        compare(&self.layout, &mut self.writers)?;
        let (mut lost, mut first_loss) = (0, None);
        for (index, writer) in self.writers.iter_mut().enumerate() {
            let losses = writer.model.take_losses();
            lost += losses.keys.len() as u64;
            let sentence =
                losses.first.map(|sentence| format!("a key of writer {index} {sentence}"));
            first_loss = first_loss.or(sentence);
        }
        Ok(Outcome { took: start.elapsed(), counts, lost, first_loss, scans, event })
    }
}

/// Stops the writers also if the event fails or panics.
struct StopAtEnd<'a>(&'a AtomicBool);

impl Drop for StopAtEnd<'_> {
    fn drop(&mut self) {
        // Relaxed: the join of the threads orders all else.
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Makes the writes of the next moment certain to be lost with their primary: its replica is
/// paused, and its link is cut, so not even the system has a copy of the writes.
fn cut_off_replica(cluster: &Cluster, primary: usize) -> Result<usize, Failure> {
    let replica = cluster.replica_of(primary)?;
    cluster.server(replica)?.pause()?;
    cluster.ask::<i64>(primary, cmd("CLIENT").arg("KILL").arg("TYPE").arg("replica"))?;
    thread::sleep(UNSEEN);
    Ok(replica)
}

/// Moves a slot with its maps, whose number it returns.
fn move_slot(cluster: &Cluster, slot: usize, source: usize, target: usize) -> RedisResult<usize> {
    let set_slot = |node: usize, words: &[&str]| -> RedisResult<()> {
        cluster.ask(node, cmd("CLUSTER").arg("SETSLOT").arg(slot).arg(words))
    };
    let source_id: String = cluster.ask(source, cmd("CLUSTER").arg("MYID"))?;
    let target_id: String = cluster.ask(target, cmd("CLUSTER").arg("MYID"))?;
    set_slot(target, &["IMPORTING", &source_id])?;
    set_slot(source, &["MIGRATING", &target_id])?;
    let mut moved = 0;
    loop {
        let mut command = cmd("CLUSTER");
        command.arg("GETKEYSINSLOT").arg(slot).arg(MIGRATED_KEYS);
        let maps: Vec<Vec<u8>> = cluster.ask(source, &command)?;
        if maps.is_empty() {
            break;
        }
        let mut migrate = cmd("MIGRATE");
        migrate.arg("127.0.0.1").arg(cluster.ports()[target]).arg("").arg(0).arg(30_000);
        cluster.ask::<()>(source, migrate.arg("KEYS").arg(&maps))?;
        moved += maps.len();
    }
    if moved > 0 {
        thread::sleep(MOVING); // the source sends writes on to the target
    }
    // The target first: until the source knows, it sends clients on.
    set_slot(target, &["NODE", &target_id])?;
    set_slot(source, &["NODE", &target_id])?;
    Ok(moved)
}
