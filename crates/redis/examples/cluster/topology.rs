//! The nodes of the cluster as one of them sees it.

use redis::{Connection, RedisResult, cmd};

/// The number of slots.
pub(crate) const SLOTS: usize = 16_384;

/// A node, as a line of `CLUSTER NODES` describes it.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) port: u16,
    pub(crate) is_primary: bool,
    /// Whether the cluster thinks that the node is down.
    pub(crate) is_down: bool,
    /// The slots that it owns, as ranges with both ends.
    pub(crate) slots: Vec<(u16, u16)>,
}

impl Seen {
    /// Reads a line. A slot that moves, in brackets, belongs to its owner alone.
    pub(crate) fn read(line: &str) -> Option<Self> {
        // The first word is the name of the node, the second is address:port@bus-port,host.
        let mut words = line.split_ascii_whitespace().skip(1);
        let port = words.next()?.split('@').next()?.rsplit(':').next()?.parse().ok()?;
        let flags: Vec<&str> = words.next()?.split(',').collect();
        let slots = words.skip(5).filter_map(|range| {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            Some((first.parse().ok()?, last.parse().ok()?))
        });
        Some(Self {
            port,
            is_primary: flags.contains(&"master"),
            is_down: flags.iter().any(|flag| flag.starts_with("fail")),
            slots: slots.collect(),
        })
    }
}

/// Asks a node which nodes the cluster has.
pub(crate) fn view(connection: &mut Connection) -> RedisResult<Vec<Seen>> {
    let text: String = cmd("CLUSTER").arg("NODES").query(connection)?;
    Ok(text.lines().filter_map(Seen::read).collect())
}

/// The port of the owner of each slot; 0 if it has none.
pub(crate) fn owners(view: &[Seen]) -> Vec<u16> {
    let mut owners = vec![0; SLOTS];
    for node in view.iter().filter(|node| node.is_primary) {
        for &(first, last) in &node.slots {
            owners[usize::from(first)..=usize::from(last)].fill(node.port);
        }
    }
    owners
}

/// The slot of each of these maps, as the server computes it.
pub(crate) fn slots_of(connection: &mut Connection, maps: &[String]) -> RedisResult<Vec<usize>> {
    let mut pipe = redis::pipe();
    for map in maps {
        pipe.cmd("CLUSTER").arg("KEYSLOT").arg(map);
    }
    pipe.query(connection)
}
