//! The outputs of the jobs of `.ci/stress`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// The outcome of a job.
enum Job {
    /// Its output.
    Done(String),
    /// A tool that it needs is not installed.
    Skipped,
}

/// The outputs of all jobs.
pub(crate) struct Logs {
    /// The commit, the day, the machine and the time.
    pub(crate) run: String,
    jobs: BTreeMap<String, Job>,
}

impl Logs {
    /// Reads the outputs of the jobs that the script names. All must be there.
    pub(crate) fn read(folder: &Path, script: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(script).map_err(|e| {
            format!("{}: {e}: start in the root of the repository", script.display())
        })?;
        let of = |name: &str| fs::read_to_string(folder.join(name)).ok();
        let mut jobs = BTreeMap::new();
        let mut missing = Vec::new();
        for name in names(&text) {
            let has_passed =
                |output: &str| skips(output) || folder.join(format!("{name}.seconds")).exists();
            let Some(output) = of(name).filter(|output| has_passed(output)) else {
                missing.push(name);
                continue;
            };
            // A part of a job that has run may have been skipped, too.
            let is_skipped = skips(&output) && !output.contains("test result: ok");
            let job = if is_skipped { Job::Skipped } else { Job::Done(output) };
            jobs.insert(name.to_owned(), job);
        }
        let run = of("run.txt");
        if run.is_none() {
            missing.push("run.txt");
        }
        if !missing.is_empty() {
            return Err(format!(
                "{}: jobs of {} have not passed: {}: run `just stress`, which goes on with them",
                folder.display(),
                script.display(),
                missing.join(", ")
            ));
        }
        Ok(Self { run: run.unwrap_or_default(), jobs })
    }

    /// Logs with these outputs.
    #[cfg(test)]
    pub(crate) fn of(outputs: &[(&str, &str)]) -> Self {
        let job = |&(name, text): &(&str, &str)| (name.to_owned(), Job::Done(text.to_owned()));
        Self { run: String::new(), jobs: outputs.iter().map(job).collect() }
    }

    /// The output of a job. `None` if the job was skipped.
    pub(crate) fn text(&self, job: &str) -> Result<Option<&str>, String> {
        match self.jobs.get(job) {
            Some(Job::Done(text)) => Ok(Some(text)),
            Some(Job::Skipped) => Ok(None),
            None => Err(format!("{job}: .ci/stress has no such job")),
        }
    }

    /// The lines of a job that begin with `word`, as words. A skipped job has none.
    pub(crate) fn lines(&self, job: &str, word: &str) -> Result<Vec<Vec<String>>, String> {
        let text = self.text(job)?.unwrap_or_default();
        let words = |line: &str| plain(line).split_whitespace().map(str::to_owned).collect();
        let lines = text.lines().map(words);
        Ok(lines.filter(|w: &Vec<String>| w.first().is_some_and(|f| f == word)).collect())
    }

    /// The names of all jobs, and whether each was skipped.
    pub(crate) fn jobs(&self) -> impl Iterator<Item = (&str, bool)> {
        self.jobs.iter().map(|(name, job)| (&**name, matches!(job, Job::Skipped)))
    }
}

/// The names of the jobs' files in the script.
pub(crate) fn names(script: &str) -> impl Iterator<Item = &str> {
    let jobs = script.lines().filter_map(|line| line.strip_prefix("job "));
    jobs.filter_map(|rest| rest.split_whitespace().next())
}

fn skips(output: &str) -> bool {
    let begins =
        |line: &str| line.get(..7).is_some_and(|word| word.eq_ignore_ascii_case("skipped"));
    output.lines().any(begins)
}

/// A line that a test printed, without the name of the test, which libtest prints before it if one
/// test runs at a time.
pub(crate) fn plain(line: &str) -> &str {
    let named = line.strip_prefix("test ").and_then(|rest| rest.split_once(" ... "));
    named.map_or(line, |(_, printed)| printed)
}

/// The number in front of a text, in each line that has both: 3 for `3 kills` and ` kills`.
pub(crate) fn before<'a>(output: &'a str, text: &'a str) -> impl Iterator<Item = u64> + 'a {
    output.lines().filter_map(move |line| {
        let (front, _) = line.split_once(text)?;
        front.rsplit(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    })
}

/// The number behind a text, in each line that has both.
pub(crate) fn behind<'a>(output: &'a str, text: &'a str) -> impl Iterator<Item = u64> + 'a {
    output.lines().filter_map(move |line| {
        let (_, back) = line.split_once(text)?;
        back.split(|letter: char| !letter.is_ascii_digit()).next()?.parse().ok()
    })
}

/// The sum of numbers that must be there: `what` names them.
pub(crate) fn sum(
    job: &str,
    what: &str,
    numbers: impl Iterator<Item = u64>,
) -> Result<u64, String> {
    let numbers: Vec<u64> = numbers.collect();
    if numbers.is_empty() {
        return Err(format!("{job}: its output has no {what}"));
    }
    Ok(numbers.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with the outputs of two jobs, of which `verify.txt` has passed.
    fn folder(name: &str, suite: &str) -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("silvics-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let script =
            "step \"x\"\njob verify.txt ./silvics verify\njob suite.txt tests -p silvics\n";
        for (file, text) in [
            ("stress", script),
            ("verify.txt", "5 operations in 2 histories"),
            ("verify.txt.seconds", "4"),
            ("suite.txt", suite),
            ("run.txt", "Commit"),
        ] {
            fs::write(folder.join(file), text).unwrap();
        }
        folder
    }

    #[test]
    fn a_job_that_has_not_passed_is_named() {
        let folder = folder("failed", "test result: FAILED. 1 passed");
        let fault = Logs::read(&folder, &folder.join("stress")).err().unwrap();
        assert!(fault.contains("have not passed: suite.txt: run `just stress`"), "{fault}");
        fs::remove_file(folder.join("run.txt")).unwrap();
        fs::remove_file(folder.join("verify.txt")).unwrap();
        fs::remove_file(folder.join("verify.txt.seconds")).unwrap();
        let fault = Logs::read(&folder, &folder.join("stress")).err().unwrap();
        assert!(fault.contains("verify.txt, suite.txt, run.txt"), "{fault}");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_skipped_job_has_no_text_and_one_that_was_skipped_in_part_has() {
        for (output, expected) in [
            ("SKIPPED tsan: there is no nightly toolchain", None),
            ("SKIPPED: no tmpfs\ntest result: ok. 3 passed", Some(3)),
        ] {
            let folder = folder("skipped", output);
            let logs = Logs::read(&folder, &folder.join("stress")).unwrap();
            let text = logs.text("suite.txt").unwrap();
            assert_eq!(text.and_then(|text| before(text, " passed").next()), expected);
            assert!(logs.text("typo.txt").unwrap_err().contains("no such job"));
            fs::remove_dir_all(folder).unwrap();
        }
    }

    #[test]
    fn numbers_are_read_beside_words() {
        let output = "test a ... kills: 20, batches: 7\n12 losses of power: 34 acknowledged\n";
        assert_eq!(behind(output, "kills: ").next(), Some(20));
        assert_eq!(before(output, " losses of power: ").next(), Some(12));
        assert_eq!(before(output, " acknowledged").next(), Some(34));
        assert_eq!(plain("test a ... kills: 20"), "kills: 20");
        assert!(sum("x.txt", "line `gone: N`", behind(output, "gone: ")).is_err());
    }
}
