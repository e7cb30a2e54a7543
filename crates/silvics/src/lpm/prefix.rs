//! Prefixes as users write them, and what can be wrong with them.

use crate::error::AllocError;
use crate::map::Rejected;
use crate::map::outcome::Repeatable;
use ipnet::IpNet;
use std::error::Error;
use std::fmt;

/// The reason why a prefix is none.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PrefixError {
    /// The text is no address with a length behind it.
    Syntax {
        /// The text.
        text: String,
    },
    /// Bits behind the length are set, so the prefix names a host and not a network.
    HostBits {
        /// The prefix as it was given.
        given: IpNet,
    },
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Syntax { text } => write!(
                f,
                "`{text}` is no prefix: write an address, `/` and a length, such as 10.0.0.0/8 or \
                 2001:db8::/32"
            ),
            Self::HostBits { given } => {
                write!(f, "{given} has bits set behind its length: write {}", given.trunc())
            }
        }
    }
}

impl Error for PrefixError {}

/// Reads a prefix in CIDR notation.
///
/// ```
/// use silvics::lpm::parse_prefix;
///
/// assert_eq!(parse_prefix("10.0.0.0/8")?.prefix_len(), 8);
/// let error = parse_prefix("10.1.2.3/8").unwrap_err();
/// assert_eq!(error.to_string(), "10.1.2.3/8 has bits set behind its length: write 10.0.0.0/8");
/// # Ok::<(), silvics::lpm::PrefixError>(())
/// ```
pub fn parse_prefix(text: &str) -> Result<IpNet, PrefixError> {
    let net: IpNet = text.parse().map_err(|_| PrefixError::Syntax { text: text.to_string() })?;
    network(net)
}

/// The prefix, if no bit behind its length is set.
pub(super) fn network(net: IpNet) -> Result<IpNet, PrefixError> {
    if net == net.trunc() { Ok(net) } else { Err(PrefixError::HostBits { given: net }) }
}

/// The reason why [`LpmView::insert`](super::LpmView::insert) did not insert. The table is
/// unchanged, and each variant returns the value to the caller.
#[derive(Debug)]
#[non_exhaustive]
pub enum InsertError<V> {
    /// The prefix is none.
    Prefix {
        /// The mistake.
        error: PrefixError,
        /// The value that was to be inserted.
        value: V,
    },
    /// An allocation failed.
    Alloc(Rejected<V>),
}

/// The reason why [`LpmView::remove`](super::LpmView::remove) did not remove. The table is
/// unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RemoveError {
    /// The prefix is none.
    Prefix(PrefixError),
    /// An allocation failed: the nodes on the way to a prefix are copied to remove it.
    Alloc(AllocError),
}

impl<V> fmt::Display for InsertError<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix { error, .. } => error.fmt(f),
            Self::Alloc(rejected) => rejected.fmt(f),
        }
    }
}

impl fmt::Display for RemoveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Prefix(error) => error.fmt(f),
            Self::Alloc(error) => error.fmt(f),
        }
    }
}

impl<V: fmt::Debug> Error for InsertError<V> {}
impl Error for RemoveError {}

impl<V> Repeatable for InsertError<V> {
    type Argument = V;

    fn argument(self) -> Result<V, Self> {
        match self {
            Self::Alloc(rejected) => rejected.argument().map_err(Self::Alloc),
            wrong @ Self::Prefix { .. } => Err(wrong),
        }
    }
}

impl Repeatable for RemoveError {
    type Argument = ();

    fn argument(self) -> Result<(), Self> {
        match self {
            Self::Alloc(error) => error.argument().map_err(Self::Alloc),
            wrong @ Self::Prefix(_) => Err(wrong),
        }
    }
}
