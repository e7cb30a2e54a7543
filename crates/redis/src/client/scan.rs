//! The options of a scan, and the reading of one page of one shard.

use std::num::NonZeroUsize;
use std::ops::{Bound, RangeBounds};

use redis::{Cmd, ConnectionLike, ErrorKind, RedisError, RedisResult, Value};

use super::Merge;

/// A key with its value.
pub type Entry = (Vec<u8>, Vec<u8>);

/// A scan of one or more maps: their names, the range of keys, the direction, the size of a page.
///
/// [`merge`](Self::merge) starts to read. A scan can be cloned and run again.
#[derive(Clone, Debug)]
pub struct Scan {
    pub(super) maps: Vec<String>,
    pub(super) min: Bound<Vec<u8>>,
    pub(super) max: Bound<Vec<u8>>,
    pub(super) descending: bool,
    pub(super) page: NonZeroUsize,
}

impl Scan {
    /// The entries in a page, unless [`page`](Self::page) sets another number.
    pub const PAGE: NonZeroUsize = NonZeroUsize::new(256).unwrap();

    /// A scan over the maps with these names, at first of all keys in ascending order.
    ///
    /// Use [`Shards::scan`](super::Shards::scan) for all shards of one map. A name that is given
    /// twice is read twice.
    pub fn over<N: Into<String>>(maps: impl IntoIterator<Item = N>) -> Self {
        Self {
            maps: maps.into_iter().map(Into::into).collect(),
            min: Bound::Unbounded,
            max: Bound::Unbounded,
            descending: false,
            page: Self::PAGE,
        }
    }

    /// Reads only keys in `range`. It replaces an earlier range or prefix. A range whose start is
    /// after its end is empty.
    #[must_use]
    pub fn range<K: AsRef<[u8]> + ?Sized>(mut self, range: impl RangeBounds<K>) -> Self {
        let owned = |bound: Bound<&K>| bound.map(|key| key.as_ref().to_vec());
        self.min = owned(range.start_bound());
        self.max = owned(range.end_bound());
        self
    }

    /// Reads only keys that start with `prefix`. It replaces an earlier range or prefix.
    #[must_use]
    pub fn prefix(mut self, prefix: &[u8]) -> Self {
        self.max = match prefix.iter().rposition(|&byte| byte < u8::MAX) {
            Some(last) => {
                let mut after = prefix[..=last].to_vec();
                after[last] += 1;
                Bound::Excluded(after)
            }
            // No key is after all keys with this prefix.
            None => Bound::Unbounded,
        };
        self.min = Bound::Included(prefix.to_vec());
        self
    }

    /// Reads the keys in descending order.
    #[must_use]
    pub fn descending(mut self) -> Self {
        self.descending = true;
        self
    }

    /// Reads `entries` entries of a shard per round trip.
    ///
    /// A large page means fewer round trips, and more memory in the client. It also means that an
    /// entry may be older when it is returned.
    #[must_use]
    pub fn page(mut self, entries: NonZeroUsize) -> Self {
        self.page = entries;
        self
    }

    /// Starts the scan over `source`: a connection to a cluster or to one server, or a reference
    /// to one. It sends nothing before the first call of [`Merge::next`].
    pub fn merge<S: Pages>(self, source: S) -> Merge<S> {
        Merge::new(source, self)
    }
}

/// One page of one map: the question that [`Pages::page`] answers.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The name of the map.
    pub map: &'a str,
    /// The smallest key.
    pub min: Bound<&'a [u8]>,
    /// The largest key.
    pub max: Bound<&'a [u8]>,
    /// Whether the page starts at `max` and goes down.
    pub descending: bool,
    /// The largest number of entries.
    pub entries: NonZeroUsize,
}

/// A source of pages.
///
/// Each connection of the crate `redis` is one. Implement this trait for another client, or for a
/// test without a server.
pub trait Pages {
    /// The reason for which a page cannot be read.
    type Error;

    /// Reads the first entries of a map in the given range and direction.
    ///
    /// The entries are in order, and all of them are in the range. There are fewer than
    /// [`Page::entries`] only if the map has no more in the range. A map that does not exist is
    /// empty. After an error, the same page may be asked for again.
    fn page(&mut self, page: &Page<'_>) -> Result<Vec<Entry>, Self::Error>;
}

/// Reads a page with one command, `OM.RANGE` or `OM.REVRANGE`, and checks the reply.
///
/// A connection to a cluster follows the slots of the maps and retries by its own settings. Let it
/// read from primaries, which is its default: a replica may not have the newest writes. A primary
/// that the cluster is about to replace may also answer without them, for the time
/// `cluster-node-timeout`.
impl<C: ConnectionLike> Pages for C {
    type Error = RedisError;

    fn page(&mut self, page: &Page<'_>) -> RedisResult<Vec<Entry>> {
        let entries = entries(self.req_command(&command(page))?.extract_error()?)?;
        if is_page(page, &entries) {
            Ok(entries)
        } else {
            Err(unexpected("the page has entries out of order or out of range"))
        }
    }
}

/// A source that connects at its first page, and again after each error.
///
/// Use it for scans that have to go on after a failover. The connection of the crate `redis` to a
/// cluster asks for the slots only if a node sends it elsewhere. So it stays with a primary that
/// is down until that node answers again, and a scan over it returns errors until then.
///
/// # Example
///
/// ```no_run
/// use redis::cluster::ClusterClient;
/// use silvics_redis::client::{Reconnecting, Shards};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let client = ClusterClient::new(["redis://127.0.0.1:7000/", "redis://127.0.0.1:7001/"])?;
/// let source = Reconnecting::new(|| client.get_connection());
/// let mut errors = 0;
/// for entry in Shards::new("orders", 16)?.scan().merge(source) {
///     match entry {
///         Ok((key, _)) => println!("{}", String::from_utf8_lossy(&key)),
///         // The failover may take some seconds. The scan then goes on where it was.
///         Err(error) if errors == 100 => return Err(error.into()),
///         Err(_) => {
///             errors += 1;
///             std::thread::sleep(std::time::Duration::from_millis(100));
///         }
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Reconnecting<C, F> {
    connect: F,
    connection: Option<C>,
}

impl<C: ConnectionLike, F: FnMut() -> RedisResult<C>> Reconnecting<C, F> {
    /// A source that connects by `connect`. It does not call `connect` yet.
    pub fn new(connect: F) -> Self {
        Self { connect, connection: None }
    }
}

impl<C: ConnectionLike, F: FnMut() -> RedisResult<C>> Pages for Reconnecting<C, F> {
    type Error = RedisError;

    fn page(&mut self, page: &Page<'_>) -> RedisResult<Vec<Entry>> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => (self.connect)()?,
        };
        let entries = connection.page(page)?;
        self.connection = Some(connection);
        Ok(entries)
    }
}

fn command(page: &Page<'_>) -> Cmd {
    let (min, max) = (bound(page.min, b'-'), bound(page.max, b'+'));
    let (verb, first, second) =
        if page.descending { ("OM.REVRANGE", max, min) } else { ("OM.RANGE", min, max) };
    let mut command = redis::cmd(verb);
    command.arg(page.map).arg(first).arg(second);
    command.arg("LIMIT").arg(0).arg(page.entries.get());
    command
}

/// A bound as the commands write it: `-`, `+`, `[key` or `(key`.
fn bound(bound: Bound<&[u8]>, unbounded: u8) -> Vec<u8> {
    let (sign, key) = match bound {
        Bound::Included(key) => (b'[', key),
        Bound::Excluded(key) => (b'(', key),
        Bound::Unbounded => (unbounded, &[][..]),
    };
    [&[sign], key].concat()
}

/// The entries of a reply: an array with keys and values in turn, or a map of the protocol.
fn entries(reply: Value) -> RedisResult<Vec<Entry>> {
    match reply {
        Value::Array(items) => {
            let mut entries = Vec::with_capacity(items.len() / 2);
            let mut items = items.into_iter();
            while let Some(key) = items.next() {
                let value = items.next().ok_or_else(|| unexpected("a key has no value"))?;
                entries.push((bytes(key)?, bytes(value)?));
            }
            Ok(entries)
        }
        Value::Map(pairs) => {
            pairs.into_iter().map(|(key, value)| Ok((bytes(key)?, bytes(value)?))).collect()
        }
        _ => Err(unexpected("the reply is not an array")),
    }
}

fn bytes(value: Value) -> RedisResult<Vec<u8>> {
    match value {
        Value::BulkString(bytes) => Ok(bytes),
        _ => Err(unexpected("a key or value is not a string of bytes")),
    }
}

/// Whether the entries are a reply to the question: otherwise a merge could repeat them forever.
fn is_page(page: &Page<'_>, entries: &[Entry]) -> bool {
    let range = (page.min, page.max);
    let within = |(key, _): &Entry| RangeBounds::<[u8]>::contains(&range, key.as_slice());
    let ordered =
        entries.is_sorted_by(
            |(earlier, _), (later, _)| {
                if page.descending { earlier > later } else { earlier < later }
            },
        );
    let ends = [entries.first(), entries.last()];
    ordered && entries.len() <= page.entries.get() && ends.into_iter().flatten().all(within)
}

fn unexpected(detail: &'static str) -> RedisError {
    (ErrorKind::UnexpectedReturnType, "OM.RANGE", detail.to_owned()).into()
}
