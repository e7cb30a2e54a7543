//! art/4.1: the share of their time that lookups wait for translations.

use super::curve::{Point, curves, in_order};
use super::held::Held;
use super::nodes::Nodes;
use super::{FEW_KEYS, KEYS, Keys};
use crate::flags::error::Error;
use crate::reproduce::evidence::{Evidence, Expected, Level, Unit};
use crate::reproduce::lab::Lab;
use silvics::Pages;
use silvics_layout::PageSize;

/// art/4.1.
pub fn stalls(lab: &mut Lab) -> Result<Vec<Evidence>, Error> {
    let (count, mut lines) = (lab.plan.keys(KEYS), Vec::new());
    for keys in Keys::BOTH {
        if lab.wants(Level::Fact) {
            lines.push(paper_size(keys, count, lab.plan.seed));
            lines.push(own_size(lab, keys, count)?);
        }
        if lab.wants(Level::Model) {
            let curve = curves(lab, keys, count, &[PageSize::Small])?.swap_remove(0);
            lines.extend(judge(keys.name(), &curve));
        }
    }
    if lab.wants(Level::Model) {
        let name = "dense, ranks in the order of the keys";
        lines.extend(peak(name, &in_order(lab, count)?).map(Evidence::aside));
    }
    Ok(lines)
}

/// The bytes of the source's nodes for these keys.
fn paper_size(keys: Keys, count: usize, seed: u64) -> Evidence {
    let megabytes = match keys {
        Keys::Dense => 19.0,
        Keys::Sparse => 22.0,
    };
    let space = keys.space(count, seed);
    let words = (0..count as u32).map(|position| space.key(position) as u32);
    let mut words: Vec<u32> = words.collect();
    words.sort_unstable();
    let nodes = Nodes::of(&words);
    let what = format!("{}: MB of the paper's nodes, values in pointers", keys.name());
    let expected = Expected::about(megabytes, megabytes / 10.0);
    let more =
        format!("({}; {:.1} with headers of 16 bytes)", nodes.text(), nodes.bytes(16) as f64 / 1e6);
    let line = Evidence::fact(what, Unit::Number(1), expected, nodes.bytes(0) as f64 / 1e6);
    let other = (count != KEYS).then(|| format!("the source tells it of {KEYS} keys"));
    line.with(&more).unless(other).aside()
}

/// The bytes of our nodes for these keys.
fn own_size(lab: &Lab, keys: Keys, count: usize) -> Result<Evidence, Error> {
    let Held { mut kinds, bytes, memory, .. } = Held::of(lab, keys, count, Pages::Small)?;
    kinds.sort_by_key(|(_, nodes)| std::cmp::Reverse(*nodes));
    let kinds: Vec<String> = kinds.iter().map(|(name, nodes)| format!("{nodes} {name}")).collect();
    let megabytes = |bytes| bytes as f64 / 1e6;
    let found = format!(
        "{:.1} MB of nodes in {:.1} MB of memory ({})",
        megabytes(bytes),
        megabytes(memory),
        kinds.join(", ")
    );
    let what = format!("{}: what the nodes here take", keys.name());
    Ok(Evidence::plain(what, "(other nodes than the paper's)".into(), found, true).aside())
}

/// A share below this is taken as none.
const SHARE: f64 = 0.01;
/// The most that the share may be at the largest exponent. The source has at most 2 %.
const LEFT: f64 = 0.03;

fn judge(name: &str, curve: &[Point]) -> Vec<Evidence> {
    let mut lines: Vec<Evidence> = peak(name, curve).collect();
    lines.extend(curve.iter().map(|point| at(name, point)));
    lines
}

/// The exponent at which the share is largest, and the share that remains with few hot keys.
fn peak(name: &str, curve: &[Point]) -> impl Iterator<Item = Evidence> + use<> {
    let highest = curve.iter().max_by(|a, b| a.share.total_cmp(&b.share));
    let what = format!("{name}: the exponent with the largest share of cycles for translations");
    let peak = highest.map(|point| {
        let line =
            Evidence::model(what, Unit::Number(1), Expected::Within(1.0, 2.0), point.exponent);
        let none = "the translations of the model hold the whole tree: give it more --keys";
        line.with(&format!("({})", Unit::Share.text(point.share)))
            .unless((point.share < SHARE).then(|| none.into()))
    });
    let what = format!("{name}: share of cycles for translations at the largest exponent");
    let left = curve
        .last()
        .map(|point| Evidence::model(what, Unit::Share, Expected::most(LEFT), point.share));
    peak.into_iter().chain(left)
}

/// The share of one skew, beside the largest that the source saw.
fn at(name: &str, point: &Point) -> Evidence {
    let exponent = point.exponent;
    let most = match exponent {
        low if low < 1.0 => 0.07,
        middle if middle <= FEW_KEYS => 0.23,
        _ => 0.02,
    };
    let what = format!("{name}, exponent {exponent}: share of cycles for translations");
    let costs = format!(
        "({:.0} cycles; {:.2} walks, {:.2} LLC misses)",
        point.cycles, point.walks, point.llc_misses
    );
    // A larger share than the source saw is not the opposite of the claim.
    Evidence::model(what, Unit::Share, Expected::AtMost(most, 1.0), point.share)
        .with(&costs)
        .aside()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::evidence::{Verdict, verdict};

    fn curve(shares: [f64; 7]) -> Vec<Point> {
        let points = super::super::EXPONENTS.into_iter().zip(shares);
        points.map(|(exponent, share)| Point { exponent, share, ..Point::default() }).collect()
    }

    #[test]
    fn the_peak_lies_between_one_and_two() {
        let judged = |shares| verdict(&judge("keys", &curve(shares)));
        assert_eq!(judged([0.05, 0.06, 0.07, 0.23, 0.1, 0.02, 0.01]), Verdict::Confirmed);
        assert_eq!(judged([0.05, 0.24, 0.07, 0.23, 0.1, 0.02, 0.01]), Verdict::Contradicted);
        assert_eq!(judged([0.05, 0.06, 0.07, 0.23, 0.1, 0.3, 0.01]), Verdict::Contradicted);
        // The peak is in the right place, but the share at the end is too large.
        assert_eq!(judged([0.05, 0.06, 0.07, 0.23, 0.1, 0.02, 0.04]), Verdict::Contradicted);
        assert_eq!(judged([0.0; 7]), Verdict::CannotBeShown);
    }
}
