//! Writers: each has a connection to each primary, and keys of its own.
//!
//! WAIT counts the replicas that have the writes *of its connection*. So a batch has writes to maps
//! of one primary, and goes to it over one connection, with WAIT at its end.
//!
//! A write reads its key first, so a lost write is found also if a later one replaces it.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::thread;
use std::time::Duration;

use redis::{Cmd, Connection, Pipeline, RedisError, RedisResult, ServerErrorKind, Value, cmd};
use silvics_sync::atomic::{AtomicBool, Ordering};

use super::check::passes;
use super::commands::Commands;
use super::model::{Model, Op};
use super::server::{self, Failure};
use super::topology;

/// Writers at the same time.
pub(crate) const WRITERS: usize = 2;

/// Writes of a batch over all primaries.
const BATCH: usize = 192;

/// Entries of a batch of the load.
const LOAD_BATCH: usize = 1024;

/// The time that WAIT waits for the replica.
const WAIT_MS: u64 = 500;

/// The maps, and where they are.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) commands: Commands,
    pub(crate) ports: Vec<u16>,
    pub(crate) maps: Vec<String>,
    /// The slot of each map.
    pub(crate) slots: Vec<usize>,
    /// Whether writes count as acknowledged without WAIT.
    pub(crate) no_wait: bool,
}

impl Layout {
    /// The map of a key of a writer.
    pub(crate) fn map_of(&self, key: usize) -> usize {
        key % self.maps.len()
    }
}

/// The key of a writer, as bytes: no two writers have an equal one.
pub(crate) fn bytes_of(writer: usize, key: usize) -> Vec<u8> {
    format!("{:010}", key * WRITERS + writer).into_bytes()
}

/// The writer and the key that these bytes are of.
pub(crate) fn key_of(bytes: &[u8]) -> Option<(usize, usize)> {
    let index: usize = std::str::from_utf8(bytes).ok()?.parse().ok()?;
    Some((index % WRITERS, index / WRITERS))
}

/// Counts of a round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Writes that a server carried out, or may have carried out.
    pub(crate) written: u64,
    /// Writes that have to survive.
    pub(crate) acknowledged: u64,
    /// Writes that went to the target of a slot that was moving.
    pub(crate) asked: u64,
}

/// One writer.
pub(crate) struct Writer {
    index: usize,
    pub(crate) model: Model,
    pub(crate) counts: Counts,
    /// An error that neither a failover nor a move explains. It ends the round.
    pub(crate) fault: Option<String>,
    /// The number of the last write. Numbers of other writers differ.
    number: u64,
    random: Random,
    connections: HashMap<u16, Connection>,
    /// The port of the owner of each slot, until a write shows that this is no longer true.
    owners: Option<Vec<u16>>,
}

/// Writes to maps of one primary, by keys.
type Batch = Vec<(usize, Op)>;

/// For each write, the number that the key had, and the reply of the write.
type Replies = Vec<(RedisResult<Option<u64>>, RedisResult<Value>)>;

impl Writer {
    pub(crate) fn new(index: usize, keys: usize, seed: u64) -> Self {
        Self {
            index,
            model: Model::new(keys),
            counts: Counts::default(),
            fault: None,
            number: index as u64,
            random: Random(seed.wrapping_add(index as u64 + 1)),
            connections: HashMap::new(),
            owners: None,
        }
    }

    /// Writes all keys once, and waits until the replicas have them.
    pub(crate) fn load(&mut self, layout: &Layout) -> Result<(), Failure> {
        let keys: Vec<usize> = (0..self.model.keys()).collect();
        for keys in keys.chunks(LOAD_BATCH) {
            let writes = keys.iter().map(|&key| (key, Op::set(self.next_number()))).collect();
            for (port, batch) in self.by_owner(layout, writes)? {
                for (&(key, op), (_, reply)) in batch.iter().zip(self.send(layout, port, &batch)?) {
                    reply?;
                    self.model.acknowledge(key, op);
                }
            }
        }
        for connection in self.connections.values_mut() {
            let replicas: u64 = cmd("WAIT").arg(1).arg(30_000).query(connection)?;
            if replicas == 0 {
                return Err(Failure::Run("a replica does not receive the load".to_owned()));
            }
        }
        Ok(())
    }

    /// Writes batches until `stop`. Errors of nodes that fail or move slots are part of the test.
    pub(crate) fn run(&mut self, layout: &Layout, stop: &AtomicBool) {
        // Relaxed: nothing is read because of it but the flag; the join of the thread orders the
        // rest.
        while !stop.load(Ordering::Relaxed) {
            if let Err(error) = self.write(layout) {
                if !passes(&error) {
                    self.fault = Some(error.to_string());
                    break;
                }
                self.owners = None;
                thread::sleep(Duration::from_millis(20));
            }
        }
        // A later round starts with connections to the nodes that then run.
        self.connections.clear();
        self.owners = None;
    }

    /// Writes one batch to each primary.
    fn write(&mut self, layout: &Layout) -> RedisResult<()> {
        let mut writes = HashMap::with_capacity(BATCH);
        while writes.len() < BATCH.min(self.model.keys() / 4) {
            let number = self.next_number();
            let op = if self.random.below(8) == 0 { Op::del(number) } else { Op::set(number) };
            writes.insert(self.random.below(self.model.keys()), op);
        }
        let mut result = Ok(());
        for (port, batch) in self.by_owner(layout, writes.into_iter().collect())? {
            // The other primaries are written to also if one is down.
            if let Err(error) = self.write_to(layout, port, &batch, false) {
                self.connections.remove(&port);
                keep(&mut result, error);
            }
        }
        result
    }

    /// Writes one batch to the node at `port`, with WAIT at its end.
    fn write_to(
        &mut self,
        layout: &Layout,
        port: u16,
        batch: &[(usize, Op)],
        asking: bool,
    ) -> RedisResult<()> {
        for &(key, op) in batch {
            self.model.sent(key, op);
        }
        let replies = if asking {
            self.send_asking(layout, port, batch)
        } else {
            self.send(layout, port, batch)
        };
        let replies = match replies {
            Ok(replies) => replies,
            Err(error) => {
                // The server may have carried out any of them.
                self.counts.written += batch.len() as u64;
                return Err(error);
            }
        };
        let mut result = Ok(());
        let mut done = Batch::new();
        let mut elsewhere: HashMap<u16, Batch> = HashMap::new();
        for (&(key, op), (before, reply)) in batch.iter().zip(replies) {
            match before {
                Ok(before) => self.model.observe(key, before),
                Err(error) if passes(&error) => {} // the write has the same error
                Err(error) => keep(&mut result, error),
            }
            match reply {
                Ok(_) => done.push((key, op)),
                Err(error) => {
                    self.model.refused(key, op);
                    match redirection(&error) {
                        Some(port) if !asking => elsewhere.entry(port).or_default().push((key, op)),
                        _ => keep(&mut result, error),
                    }
                }
            }
        }
        self.counts.written += done.len() as u64;
        if !done.is_empty() && (layout.no_wait || self.wait(port)?) {
            self.counts.acknowledged += done.len() as u64;
            for (key, op) in done {
                self.model.acknowledge(key, op);
            }
        }
        if asking {
            self.counts.asked += batch.len() as u64;
        }
        for (port, batch) in elsewhere {
            if let Err(error) = self.write_to(layout, port, &batch, true) {
                self.connections.remove(&port);
                keep(&mut result, error);
            }
        }
        result
    }

    /// Whether a replica has all writes that this writer sent to the node at `port`.
    fn wait(&mut self, port: u16) -> RedisResult<bool> {
        let connection = self.connection(port)?;
        let replicas: u64 = cmd("WAIT").arg(1).arg(WAIT_MS).query(connection)?;
        Ok(replicas >= 1)
    }

    /// Sends a batch.
    fn send(&mut self, layout: &Layout, port: u16, batch: &[(usize, Op)]) -> RedisResult<Replies> {
        let mut pipe = redis::pipe();
        for &(key, op) in batch {
            for command in self.commands(layout, key, op) {
                pipe.add_command(command);
            }
        }
        replies(&mut pipe, self.connection(port)?)
    }

    /// Sends a batch to a node that does not own the slots yet.
    fn send_asking(
        &mut self,
        layout: &Layout,
        port: u16,
        batch: &[(usize, Op)],
    ) -> RedisResult<Replies> {
        let mut pipe = redis::pipe();
        for &(key, op) in batch {
            for command in self.commands(layout, key, op) {
                pipe.cmd("ASKING").ignore();
                pipe.add_command(command);
            }
        }
        replies(&mut pipe, self.connection(port)?)
    }

    /// The commands that read a key and write it.
    fn commands(&self, layout: &Layout, key: usize, op: Op) -> [Cmd; 2] {
        let map = &layout.maps[layout.map_of(key)];
        let bytes = bytes_of(self.index, key);
        let write = if op.deletes() {
            layout.commands.del(map, &bytes)
        } else {
            layout.commands.set(map, &bytes, op.number().to_string().as_bytes())
        };
        [layout.commands.get(map, &bytes), write]
    }

    fn connection(&mut self, port: u16) -> RedisResult<&mut Connection> {
        match self.connections.entry(port) {
            Entry::Occupied(connection) => Ok(connection.into_mut()),
            Entry::Vacant(place) => Ok(place.insert(server::connect(port)?)),
        }
    }

    /// Groups writes by the primaries that own their maps.
    fn by_owner(&mut self, layout: &Layout, writes: Batch) -> RedisResult<HashMap<u16, Batch>> {
        if self.owners.is_none() {
            self.owners = Some(self.find_owners(layout)?);
        }
        let owners = self.owners.as_deref().unwrap_or_default();
        let mut batches: HashMap<u16, Batch> = HashMap::new();
        for (key, op) in writes {
            let owner = owners[layout.slots[layout.map_of(key)]];
            // No write goes to a slot without an owner.
            if owner != 0 {
                batches.entry(owner).or_default().push((key, op));
            }
        }
        Ok(batches)
    }

    /// Asks the first node that answers, from a random one on.
    fn find_owners(&mut self, layout: &Layout) -> RedisResult<Vec<u16>> {
        let nodes = layout.ports.len();
        let start = self.random.below(nodes);
        let mut result = Err(RedisError::from(std::io::Error::other("no node answers")));
        for step in 0..nodes {
            let connection = server::connect(layout.ports[(start + step) % nodes]);
            result = connection.and_then(|mut connection| topology::view(&mut connection));
            if result.is_ok() {
                break;
            }
        }
        result.map(|view| topology::owners(&view))
    }

    fn next_number(&mut self) -> u64 {
        self.number += WRITERS as u64;
        self.number
    }
}

/// Keeps an error, unless there is one that nothing explains.
fn keep(result: &mut RedisResult<()>, error: RedisError) {
    if result.as_ref().err().is_none_or(passes) {
        *result = Err(error);
    }
}

/// Sends the commands, and returns the replies in pairs.
fn replies(pipe: &mut Pipeline, connection: &mut Connection) -> RedisResult<Replies> {
    let replies: Vec<RedisResult<Value>> = pipe.ignore_errors().query(connection)?;
    let mut replies = replies.into_iter();
    let mut pairs = Replies::with_capacity(replies.len() / 2);
    while let (Some(read), Some(write)) = (replies.next(), replies.next()) {
        pairs.push((read.and_then(|value| Ok(redis::from_redis_value(value)?)), write));
    }
    Ok(pairs)
}

/// The port of the node that has to be asked, if the error says so.
fn redirection(error: &RedisError) -> Option<u16> {
    let asks = error.kind() == redis::ErrorKind::Server(ServerErrorKind::Ask);
    let (address, _) = error.redirect_node().filter(|_| asks)?;
    address.rsplit(':').next()?.parse().ok()
}

/// A generator of random numbers: splitmix64, so that a seed repeats the choices.
#[derive(Debug)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((x ^ (x >> 31)) % bound as u64) as usize
    }
}
