//! Parts of the runs for several machines, and how they come together again.

use crate::data::{self, Data};
use crate::fault::{Fault, fault};
use crate::manifest::{Manifest, Run};
use crate::table::short;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The `index`-th of `count` parts, counted from one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shard {
    index: usize,
    count: usize,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.split_once('/').map(|(index, count)| (index.parse(), count.parse()));
        match parts {
            Some((Ok(index), Ok(count))) if (1..=count).contains(&index) => {
                Ok(Self { index, count })
            }
            _ => Err("write I/N, with I from 1 to N".into()),
        }
    }
}

impl Shard {
    /// The runs of this part, in order. All parts take about the same time: the longest run goes to
    /// the part with the fewest minutes, then the next one.
    pub(crate) fn part<'a>(self, runs: &[&'a Run]) -> Vec<&'a Run> {
        let mut longest: Vec<usize> = (0..runs.len()).collect();
        longest.sort_by(|&a, &b| runs[b].minutes.total_cmp(&runs[a].minutes));
        let mut sums = vec![0.0_f64; self.count];
        let mut own = BTreeSet::new();
        for at in longest {
            let least = (0..self.count).min_by(|&a, &b| sums[a].total_cmp(&sums[b]));
            let least = least.expect("there is at least one part");
            sums[least] += runs[at].minutes;
            if least + 1 == self.index {
                own.insert(at);
            }
        }
        own.into_iter().map(|at| runs[at]).collect()
    }
}

/// The folder in which the output of a part is kept.
pub(crate) fn folder(shard: Option<Shard>) -> PathBuf {
    match shard {
        None => data::FOLDER.into(),
        Some(Shard { index, count }) => format!("target/results/{index}-of-{count}").into(),
    }
}

/// Copies the output of all parts to docs/results/data. Returns the runs that no part has.
pub(crate) fn collect(manifest: &Manifest, folders: &[PathBuf]) -> Result<Vec<String>, Fault> {
    let mut found: Vec<(&Run, &Path, Data)> = Vec::new();
    let mut missing = Vec::new();
    for folder in folders {
        if !folder.is_dir() {
            return fault(format!("{}: there is no such folder", folder.display()));
        }
    }
    for run in manifest.runs() {
        let mut found_one = false;
        for folder in folders {
            let Some(data) = Data::read(folder, &run.id)? else { continue };
            if !found_one {
                found.push((run, folder, data));
            }
            found_one = true;
        }
        if !found_one {
            missing.push(run.id.clone());
        }
    }
    if let Some((_, first, Data { stamp, .. })) = found.first()
        && let Some((run, folder, other)) =
            found.iter().find(|(_, _, data)| data.stamp.commit != stamp.commit)
    {
        return fault(format!(
            "{}: run `{}` was measured at {}, and those of {} at {}: measure them at one commit",
            folder.display(),
            run.id,
            short(&other.stamp.commit),
            first.display(),
            short(&stamp.commit),
        ));
    }
    let machines: BTreeSet<&str> = found.iter().map(|(_, _, data)| &*data.stamp.machine).collect();
    if machines.len() > 1 {
        println!("{} kinds of machines: compare rows of one run only", machines.len());
    }
    for (run, _, data) in &found {
        data.write(Path::new(data::FOLDER), &run.id)?;
    }
    Ok(missing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::Format;

    #[test]
    fn parts_have_every_run_once_and_similar_minutes() {
        let run = |(at, minutes): (usize, &f64)| Run {
            id: at.to_string(),
            command: String::new(),
            minutes: *minutes,
            format: Format::Text,
            trial: None,
        };
        let runs: Vec<Run> =
            [9.0, 1.0, 2.0, 8.0, 3.0, 3.0, 4.0].iter().enumerate().map(run).collect();
        let parts: Vec<Vec<&Run>> = (1..=3)
            .map(|index| Shard { index, count: 3 }.part(&runs.iter().collect::<Vec<_>>()))
            .collect();
        let mut ids: Vec<&str> = parts.iter().flatten().map(|run| &*run.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, ["0", "1", "2", "3", "4", "5", "6"]);
        for part in parts {
            let minutes: f64 = part.iter().map(|run| run.minutes).sum();
            assert!((9.0..=11.0).contains(&minutes), "{minutes}");
        }
    }

    #[test]
    fn a_shard_is_one_of_its_parts() {
        assert_eq!("2/3".parse(), Ok(Shard { index: 2, count: 3 }));
        for text in ["0/3", "4/3", "1", "a/b", "1/"] {
            assert!(text.parse::<Shard>().is_err(), "{text}");
        }
    }
}
