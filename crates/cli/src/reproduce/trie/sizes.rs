//! trie/3.1: the bytes of nodes and of tries, by alphabet.
//!
//! # Method
//! A trie in the source's nodes gets random keys of 128 bits, and its objects are visited. The sum
//! has nodes without the padding to a line, and labels without their length, as the source counts
//! them. The build `compact` has nodes of the size of their content: its leaves have no children.

use super::subjects::Subject;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use silvics::patricia::build::{Alphabet, AlphabetSize, Compact, Paper};
use silvics::patricia::policy::{Spin, Teleport};
use silvics::{Objects, PatriciaTree, Pooled};
use silvics_layout::NodeLayout;

/// The source's number of keys.
const KEYS: usize = 1_000_000;

/// The bytes of the source's nodes and tries, by alphabet.
const NODES: [(usize, u64); 4] =
    [(48, 107_963_659), (64, 114_748_505), (160, 225_471_634), (2080, 2_284_996_369)];

/// The share of the source's nodes that those of the size of their content may take.
const COMPACT: f64 = 0.5;

pub fn gather(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    if !lab.wants(Level::Fact) {
        return Ok(Vec::new());
    }
    let keys = lab.plan.keys(KEYS);
    let mut lines = Vec::new();
    lines.extend(alphabet::<2>(keys, NODES[0])?);
    lines.extend(alphabet::<4>(keys, NODES[1])?);
    lines.extend(alphabet::<16>(keys, NODES[2])?);
    lines.extend(alphabet::<256>(keys, NODES[3])?);
    Ok(lines)
}

fn alphabet<const A: usize>(
    keys: usize,
    (node, total): (usize, u64),
) -> Result<[Evidence; 3], Error>
where
    Alphabet<A>: AlphabetSize,
{
    let size = content(PatriciaTree::<u128, Pooled, Paper<A>, Spin>::OBJECTS, A);
    let what = format!("alphabet {A}: bytes of a node, with a spin lock and without padding");
    let expected = Expected::exactly(node as f64);
    let node_line = Evidence::fact(what, Unit::Number(0), expected, size as f64);

    let paper = bytes(Subject::new::<Paper<A>, Teleport>(format!("patricia-{A}:paper"))?, keys)?;
    let compact = bytes(Subject::new::<Compact<A>, Teleport>(format!("patricia-{A}"))?, keys)?;
    let (nodes, of_paper) = (paper.nodes, (paper.nodes * size + paper.labels) as f64);
    let what = format!("alphabet {A}: bytes of {keys} keys, relative to the source's");
    let expected = Expected::about(1.0, 0.02);
    let found = of_paper / total as f64 * KEYS as f64 / keys as f64;
    let few = "the source's total is for a million keys";
    let total_line = Evidence::fact(what, Unit::Number(3), expected, found)
        .with(&format!("({of_paper} in {nodes} nodes and their labels)"))
        .unless((keys != KEYS).then(|| few.to_owned()));

    let what =
        format!("alphabet {A}: nodes of the size of their content, relative to the build `paper`");
    let share = compact.all as f64 / of_paper;
    let line = Evidence::fact(what, Unit::Number(2), Expected::most(COMPACT), share)
        .with(&format!("({} bytes)", compact.all));
    // The bar is for the source's best alphabet.
    let line = if A == 16 { line } else { line.aside() };
    Ok([node_line, total_line, line])
}

/// The bytes of a node of the source without the padding to a line: its fields, and a pointer for
/// each character behind them.
fn content(objects: &[NodeLayout], alphabet: usize) -> usize {
    let Some(node) = objects.iter().find(|object| object.kind == "node") else { return 0 };
    let fields = node.found.iter().map(|field| field.offset + field.bytes).max().unwrap_or(0);
    let content = fields.next_multiple_of(POINTER) + POINTER * alphabet;
    if content.next_multiple_of(LINE) == node.size { content } else { node.size }
}

const POINTER: usize = size_of::<*const u8>();
const LINE: usize = 64;

/// The bytes of the objects of a trie.
#[derive(Default)]
struct Bytes {
    nodes: usize,
    /// Without their lengths.
    labels: usize,
    all: usize,
}

fn bytes(subject: Subject, keys: usize) -> Result<Bytes, Error> {
    let mut subject = subject.loaded(&Crew::new(), keys)?;
    let mut bytes = Bytes::default();
    let entries = subject.trie.objects(&mut |placed| {
        bytes.all += placed.bytes;
        match placed.layout.kind {
            "label" => bytes.labels += placed.bytes - placed.layout.size,
            _ => bytes.nodes += 1,
        }
    });
    if entries != keys {
        let what = format!("it has {entries} keys and must have {keys}");
        return Err(Error::Wrong { index: subject.name, what });
    }
    Ok(bytes)
}
