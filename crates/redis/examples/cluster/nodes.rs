//! The processes of the cluster: three primaries with a replica each.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use redis::{Cmd, FromRedisValue, RedisResult, cmd};
use tempfile::TempDir;

use super::server::{self, Failure, Launch, Server};
use super::topology::{self, SLOTS, Seen};

/// Primaries at the start. Each has one replica.
const PRIMARIES: usize = 3;

/// The longest wait for any change of the cluster.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running cluster. Dropping it kills all its processes and deletes their folder.
#[derive(Debug)]
pub(crate) struct Cluster {
    nodes: Vec<Node>,
    launch: Launch,
    /// The last field, so that the servers end before their folder is deleted.
    folder: TempDir,
}

#[derive(Debug)]
struct Node {
    port: u16,
    bus: u16,
    /// `None` while the node is down.
    server: Option<Server>,
}

impl Node {
    /// Whether the process has ended, though the example has not killed it.
    fn has_ended(&self) -> bool {
        self.server.as_ref().is_some_and(Server::has_ended)
    }
}

impl Cluster {
    /// Starts the servers and makes them a cluster.
    pub(crate) fn start(launch: &Launch, keep: bool) -> Result<Self, Failure> {
        let folder = TempDir::with_prefix("silvics-cluster.");
        let mut folder = folder.map_err(|error| {
            Failure::Setup(format!("no temporary folder can be made: {error}; set TMPDIR"))
        })?;
        folder.disable_cleanup(keep);
        let mut launch = launch.clone();
        if let Some(module) = &mut launch.module {
            // A build during the run must not change the module of the servers.
            let copy = folder.path().join("module.so");
            fs::copy(&module, &copy)
                .map_err(|error| Failure::Setup(format!("the module cannot be copied: {error}")))?;
            *module = copy;
        }
        let ports = server::free_ports(4 * PRIMARIES)?;
        let nodes = ports.chunks_exact(2);
        let nodes = nodes.map(|ports| Node { port: ports[0], bus: ports[1], server: None });
        let mut cluster = Self { nodes: nodes.collect(), launch, folder };
        for node in 0..cluster.nodes.len() {
            cluster.launch(node)?;
        }
        cluster.form()?;
        Ok(cluster)
    }

    /// The folder of the servers, with their logs.
    pub(crate) fn folder(&self) -> String {
        self.folder.path().display().to_string()
    }

    fn launch(&mut self, node: usize) -> Result<(), Failure> {
        let folder = self.folder.path().join(format!("node-{node}"));
        let node = &mut self.nodes[node];
        let bus = node.bus.to_string();
        let settings = [
            ["--cluster-enabled", "yes"],
            ["--cluster-config-file", "nodes.conf"],
            ["--cluster-port", &bus],
            ["--cluster-node-timeout", "1500"],
            // The slots of other primaries stay writable while one is down.
            ["--cluster-require-full-coverage", "no"],
            // Each primary keeps the one replica that it has.
            ["--cluster-allow-replica-migration", "no"],
            // A replica may be elected however old its data is: only WAIT protects writes here.
            ["--cluster-replica-validity-factor", "0"],
            ["--repl-diskless-sync-delay", "0"],
            ["--repl-backlog-size", "64mb"],
        ];
        let settings: Vec<String> = settings.concat().into_iter().map(str::to_owned).collect();
        node.server = Some(self.launch.start(&folder, node.port, &settings)?);
        Ok(())
    }

    /// Joins the nodes by commands of the protocol, which all servers have.
    fn form(&self) -> Result<(), Failure> {
        for node in 0..self.nodes.len() {
            self.ask::<()>(node, cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(node + 1))?;
        }
        for primary in 0..PRIMARIES {
            let first = primary * SLOTS / PRIMARIES;
            let last = (primary + 1) * SLOTS / PRIMARIES - 1;
            self.ask::<()>(primary, cmd("CLUSTER").arg("ADDSLOTSRANGE").arg(first).arg(last))?;
        }
        for Node { port, bus, .. } in &self.nodes[1..] {
            self.ask::<()>(0, cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(port).arg(bus))?;
        }
        let all = |seen: &[Seen]| seen.len() == self.nodes.len();
        self.wait("the nodes know each other", || {
            Ok((0..self.nodes.len()).all(|node| self.view(node).is_ok_and(|seen| all(&seen))))
        })?;
        for primary in 0..PRIMARIES {
            let id: String = self.ask(primary, cmd("CLUSTER").arg("MYID"))?;
            self.ask::<()>(primary + PRIMARIES, cmd("CLUSTER").arg("REPLICATE").arg(id))?;
        }
        self.wait_until_whole()
    }

    /// Runs a command on a node.
    pub(crate) fn ask<T: FromRedisValue>(&self, node: usize, command: &Cmd) -> RedisResult<T> {
        command.query(&mut server::connect(self.nodes[node].port)?)
    }

    /// The ports of all nodes, also of one that is down.
    pub(crate) fn ports(&self) -> Vec<u16> {
        self.nodes.iter().map(|node| node.port).collect()
    }

    /// The node that listens on a port.
    pub(crate) fn at(&self, port: u16) -> Option<usize> {
        self.nodes.iter().position(|node| node.port == port)
    }

    fn view(&self, node: usize) -> RedisResult<Vec<Seen>> {
        topology::view(&mut server::connect(self.nodes[node].port)?)
    }

    fn up(&self) -> impl Iterator<Item = usize> {
        (0..self.nodes.len()).filter(|&node| self.nodes[node].server.is_some())
    }

    /// The owner of each slot, if all running nodes agree on it, all owners run, and the cluster
    /// is in order.
    pub(crate) fn agreed(&self) -> RedisResult<Option<Vec<usize>>> {
        let mut agreed: Option<Vec<u16>> = None;
        for node in self.up() {
            let info: String = self.ask(node, cmd("CLUSTER").arg("INFO"))?;
            let owners = topology::owners(&self.view(node)?);
            let same = agreed.as_ref().is_none_or(|agreed| *agreed == owners);
            if !info.contains("cluster_state:ok") || !same {
                return Ok(None);
            }
            agreed = Some(owners);
        }
        let runs = |port: &u16| self.at(*port).filter(|&node| self.nodes[node].server.is_some());
        Ok(agreed.and_then(|owners| owners.iter().map(runs).collect()))
    }

    /// Whether each owner of slots has a replica that has all its writes, and knows no node to be
    /// down.
    fn in_sync(&self, owners: &[usize]) -> RedisResult<bool> {
        let mut primaries = owners.to_vec();
        primaries.dedup();
        primaries.sort_unstable();
        primaries.dedup();
        for primary in primaries {
            let info: String = self.ask(primary, cmd("INFO").arg("replication"))?;
            let field = |name: &str| {
                info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            };
            let offset = field("master_repl_offset").unwrap_or_default();
            // ip=127.0.0.1,port=20001,state=online,offset=42,lag=0
            let replica = field("slave0").unwrap_or_default();
            let has = |part: &str| replica.split(',').any(|field| field == part);
            if !has("state=online") || !has(&format!("offset={offset}")) {
                return Ok(false);
            }
            if self.view(primary)?.iter().any(|node| node.is_down) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Waits until the nodes agree and each primary has a replica in sync.
    pub(crate) fn wait_until_whole(&self) -> Result<(), Failure> {
        self.wait("each primary has a replica in sync", || {
            let Some(owners) = self.agreed()? else { return Ok(false) };
            self.in_sync(&owners)
        })
    }

    /// The owner of each slot, when all running nodes agree on it.
    pub(crate) fn wait_for_owners(&self) -> Result<Vec<usize>, Failure> {
        let mut owners = None;
        self.wait("running primaries serve all slots", || {
            owners = self.agreed()?;
            Ok(owners.is_some())
        })?;
        owners.ok_or_else(|| Failure::Run("no node runs".to_owned()))
    }

    fn wait(
        &self,
        what: &str,
        mut is_so: impl FnMut() -> RedisResult<bool>,
    ) -> Result<(), Failure> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = is_so();
            if matches!(now, Ok(true)) {
                return Ok(());
            }
            if self.nodes.iter().any(Node::has_ended) {
                return Err(Failure::Run("a server ended by itself".to_owned())); // see `crash`
            }
            if Instant::now() > deadline {
                let error = now.err().map(|error| format!(" ({error})")).unwrap_or_default();
                return Err(Failure::Run(format!(
                    "after {} s it is not so that {what}{error}; use --keep and read the logs in {}",
                    PATIENCE.as_secs(),
                    self.folder()
                )));
            }
            thread::sleep(Duration::from_millis(50));
        }
    }

    /// The process of a node that runs.
    pub(crate) fn server(&self, node: usize) -> Result<&Server, Failure> {
        let server = self.nodes[node].server.as_ref();
        server.ok_or_else(|| Failure::Run(format!("node {node} does not run")))
    }

    /// The replica of a primary.
    pub(crate) fn replica_of(&self, primary: usize) -> Result<usize, Failure> {
        let id: String = self.ask(primary, cmd("CLUSTER").arg("MYID"))?;
        let lines: Vec<String> = self.ask(primary, cmd("CLUSTER").arg("REPLICAS").arg(id))?;
        let port = lines.iter().find_map(|line| Seen::read(line)).map(|seen| seen.port);
        let node = port.and_then(|port| self.at(port));
        node.ok_or_else(|| Failure::Run(format!("node {primary} has no replica")))
    }

    /// Kills the process of a node.
    pub(crate) fn kill(&mut self, node: usize) {
        self.nodes[node].server = None;
    }

    /// A sentence about a process that ended by itself. The folder with its log is then kept.
    pub(crate) fn crash(&mut self) -> Option<String> {
        let node = self.nodes.iter().position(Node::has_ended)?;
        self.folder.disable_cleanup(true);
        Some(format!("server {node} ended by itself: see {}/node-{node}/log", self.folder()))
    }

    /// Starts the process of a killed node. It becomes the replica of the node that has its slots.
    pub(crate) fn restart(&mut self, node: usize) -> Result<(), Failure> {
        self.launch(node)?;
        self.wait_until_whole()
    }
}
