//! Comparison of the cluster with the models, and the map that is read by the cursor.

use std::num::NonZeroUsize;
use std::thread;
use std::time::{Duration, Instant};

use redis::cluster::{ClusterClient, ClusterConnection};
use redis::{Connection, ErrorKind, RedisError, RedisResult, ServerErrorKind};
use silvics_redis::client::{Entry, Reconnecting, Scan, Shards};
use silvics_sync::atomic::{AtomicBool, Ordering};

use super::commands::Commands;
use super::server::Failure;
use super::writer::{Layout, WRITERS, Writer, key_of};

/// Entries per page of a scan.
const PAGE: NonZeroUsize = NonZeroUsize::new(500).unwrap();

/// The shards of the map that is read by the cursor.
const SHARDS: usize = 16;

/// A connection of the stock client to the cluster. It tries a command a few times, so that a
/// failover takes longer than it tries.
pub(crate) fn connect(ports: &[u16]) -> RedisResult<ClusterConnection> {
    let nodes = ports.iter().map(|port| format!("redis://127.0.0.1:{port}/"));
    let client = ClusterClient::builder(nodes).retries(3).min_retry_wait(10).max_retry_wait(100);
    let client = client.connection_timeout(Duration::from_millis(500));
    client.response_timeout(Duration::from_secs(60)).build()?.get_connection()
}

/// Whether a failover or a move of slots explains the error. Any other error is one of the module.
pub(crate) fn passes(error: &RedisError) -> bool {
    match error.kind() {
        ErrorKind::Io | ErrorKind::ClusterConnectionNotFound => true,
        ErrorKind::Server(kind) => matches!(
            kind,
            ServerErrorKind::Moved
                | ServerErrorKind::Ask
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::BusyLoading
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ReadOnly
        ),
        _ => error.code() == Some("UNBLOCKED"), // a primary has become a replica during WAIT
    }
}

/// Reads all maps and compares each key with the model of its writer.
pub(crate) fn compare(layout: &Layout, writers: &mut [Writer]) -> Result<(), Failure> {
    let mut connection = connect(&layout.ports)?;
    for (map, name) in layout.maps.iter().enumerate() {
        let entries = read(layout.commands, name, &mut connection)?;
        let length: u64 = layout.commands.len(name).query(&mut connection)?;
        if length != entries.len() as u64 {
            return Err(Failure::Verdict(format!(
                "the map {name} counts {length} entries, but a scan returns {}",
                entries.len()
            )));
        }
        let mut found = vec![vec![None; WRITERS]; keys_of(layout, writers, map)];
        for (key, value) in entries {
            let position = key_of(&key).filter(|&(_, key)| layout.map_of(key) == map);
            let place = position.and_then(|(writer, key)| {
                found.get_mut(key / layout.maps.len()).map(|values| &mut values[writer])
            });
            let number = std::str::from_utf8(&value).ok().and_then(|value| value.parse().ok());
            match (place, number) {
                (Some(place), Some(number)) => *place = Some(number),
                _ => {
                    return Err(Failure::Verdict(format!(
                        "the map {name} has an entry that nobody wrote: {key:?} with {value:?}"
                    )));
                }
            }
        }
        for (row, values) in found.iter().enumerate() {
            let key = row * layout.maps.len() + map;
            for (writer, &found) in writers.iter_mut().zip(values) {
                if key < writer.model.keys() {
                    writer.model.settle(key, found);
                }
            }
        }
    }
    Ok(())
}

/// The number of keys in a map that a writer may have at most.
fn keys_of(layout: &Layout, writers: &[Writer], map: usize) -> usize {
    let keys = writers.iter().map(|writer| writer.model.keys()).max().unwrap_or(0);
    keys.saturating_sub(map).div_ceil(layout.maps.len())
}

/// All entries of one map.
fn read(
    commands: Commands,
    name: &str,
    connection: &mut ClusterConnection,
) -> RedisResult<Vec<Entry>> {
    match commands {
        Commands::Maps => Scan::over([name]).page(PAGE).merge(connection).collect(),
        Commands::Hashes => Commands::whole_hash(name).query(connection),
    }
}

/// A map over shards that does not change, and is read while the cluster does.
#[derive(Debug)]
pub(crate) struct Sharded {
    pub(crate) shards: Shards,
    /// In key order.
    entries: Vec<Entry>,
}

/// Scans of one round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Scans {
    /// Scans that returned all entries in order.
    pub(crate) complete: u64,
    /// Errors after which the cursor went on.
    pub(crate) retries: u64,
}

impl Sharded {
    pub(crate) fn new(count: u64) -> Result<Self, Failure> {
        let shards = Shards::new("orders", SHARDS);
        let shards = shards.map_err(|error| Failure::Run(error.to_string()))?;
        // Keys with all bytes, in another order than their values. The factor is odd, so that no
        // two keys are equal.
        let key = |index: u64| index.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_be_bytes().to_vec();
        let entries = (0..count).map(|index| (key(index), index.to_string().into_bytes()));
        let mut entries: Vec<Entry> = entries.collect();
        entries.sort_unstable();
        Ok(Self { shards, entries })
    }

    /// Writes all entries. `to` returns a connection to the owner of a map, by the number of the
    /// shard.
    pub(crate) fn load(
        &self,
        commands: Commands,
        mut to: impl FnMut(usize) -> RedisResult<Connection>,
    ) -> Result<(), Failure> {
        for (shard, name) in self.shards.names().iter().enumerate() {
            let mut connection = to(shard)?;
            let entries = self.entries.iter().filter(|(key, _)| self.shards.shard_of(key) == shard);
            let entries: Vec<&Entry> = entries.collect();
            for entries in entries.chunks(1024) {
                let mut pipe = redis::pipe();
                for (key, value) in entries {
                    pipe.add_command(commands.set(name, key, value)).ignore();
                }
                pipe.exec(&mut connection)?;
            }
            let replicas: u64 = redis::cmd("WAIT").arg(1).arg(30_000).query(&mut connection)?;
            if replicas == 0 {
                return Err(Failure::Run("a replica does not receive the load".to_owned()));
            }
        }
        Ok(())
    }

    /// Scans up and down until `stop`, and completes at least one scan.
    pub(crate) fn scan_until(&self, ports: &[u16], stop: &AtomicBool) -> Result<Scans, Failure> {
        let mut scans = Scans::default();
        // Relaxed: nothing but the flag is read because of it.
        while scans.complete == 0 || !stop.load(Ordering::Relaxed) {
            self.scan(ports, scans.complete % 2 == 1, &mut scans.retries)?;
            scans.complete += 1;
        }
        Ok(scans)
    }

    /// Scans once. After an error, the cursor goes on at its position.
    fn scan(&self, ports: &[u16], descending: bool, retries: &mut u64) -> Result<(), Failure> {
        let deadline = Instant::now() + Duration::from_secs(120);
        let scan = self.shards.scan().page(PAGE);
        let scan = if descending { scan.descending() } else { scan };
        let mut found = 0;
        for item in scan.merge(Reconnecting::new(|| connect(ports))) {
            let entry = match item {
                Ok(entry) => entry,
                Err(error) if !passes(&error) => {
                    return Err(Failure::Verdict(format!("the cursor fails: {error}")));
                }
                Err(error) if Instant::now() > deadline => return Err(error.into()),
                Err(_) => {
                    *retries += 1;
                    thread::sleep(Duration::from_millis(50));
                    continue;
                }
            };
            let at =
                if descending { self.entries.len().checked_sub(found + 1) } else { Some(found) };
            let expected = at.and_then(|at| self.entries.get(at));
            if expected != Some(&entry) {
                return Err(Failure::Verdict(format!(
                    "the cursor returns {entry:?} as item {found}, but {expected:?} is expected"
                )));
            }
            found += 1;
        }
        if found == self.entries.len() {
            return Ok(());
        }
        Err(Failure::Verdict(format!(
            "the cursor returns {found} entries of {}",
            self.entries.len()
        )))
    }
}
