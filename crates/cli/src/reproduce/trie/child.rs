//! The load of a trie in a process of its own, under a tool that counts what a process does.

use super::subjects::Subject;
use crate::drive::subject::Crew;
use crate::flags::error::Error;
use crate::flags::place::{self, Place};
use crate::flags::values::{THREADS_MAX, number};
use crate::interrupt;
use silvics::patricia::build::{Alphabet, AlphabetSize, Paper};
use silvics::patricia::policy::Spin;
use silvics::{Placement, Pooled, Shared, Tuning};
use silvics_workload::KEYS_MAX;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

/// A program that runs another one and counts what it does.
pub struct Tool<'f> {
    pub program: &'static str,
    /// The flags before the program that it runs, for a file with its counts.
    pub flags: &'f dyn Fn(&Path) -> Vec<String>,
}

/// The load of a trie in the source's nodes, with spin locks, by a child.
#[derive(Clone, Copy)]
pub struct Load<'a> {
    pub alphabet: usize,
    pub keys: usize,
    pub threads: usize,
    pub placement: &'a str,
    pub pages: &'a str,
}

/// The counts of a process.
pub struct Counted {
    /// The tool's file.
    pub text: String,
    /// The page faults of the process and of the tool; 0 where the system does not count them.
    pub faults: u64,
}

impl Tool<'_> {
    /// Runs a child that loads a trie under the tool, and returns what was counted. If the tool
    /// cannot run, it returns the reason.
    pub fn run(&self, load: Load<'_>) -> Result<Result<Counted, String>, Error> {
        match self.counted(load) {
            Ok(counted) => counted,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let program = self.program;
                Ok(Err(format!("{program} is missing (Debian: apt-get install {program})")))
            }
            Err(error) => Ok(Err(format!("{}: {error}", self.program))),
        }
    }

    fn counted(&self, load: Load<'_>) -> io::Result<Result<Result<Counted, String>, Error>> {
        let file = tempfile::NamedTempFile::new()?;
        let mut command = Command::new(self.program);
        command.args((self.flags)(file.path())).arg(std::env::current_exe()?);
        command.args(["reproduce", "--load-only", &load.text()]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let before = faults_of_children();
        let mut child = command.spawn()?;
        let mut errors = child.stderr.take();
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            errors.as_mut().map_or(Ok(0), |errors| errors.read_to_end(&mut text))?;
            Ok::<_, io::Error>(String::from_utf8_lossy(&text).into_owned())
        });
        let Some(status) = ended(&mut child)? else { return Ok(Err(Error::Interrupted)) };
        let errors = reader.join().unwrap_or_else(|_| Ok(String::new()))?;
        if status.success() {
            let text = std::fs::read_to_string(file.path())?;
            let faults = faults_of_children().saturating_sub(before);
            return Ok(Ok(Ok(Counted { text, faults })));
        }
        // Errors of this command begin like this. Others are the tool's.
        if let Some(error) = errors.lines().find_map(|line| line.strip_prefix("error: ")) {
            let (index, what) = (load.text(), format!("its load has failed: {error}"));
            return Ok(Err(Error::Wrong { index, what }));
        }
        let last = errors.lines().last().unwrap_or_default();
        Ok(Ok(Err(format!("{} has failed: {last}", self.program))))
    }
}

/// Waits for a child. If the user interrupts the command, it ends the child, and returns nothing.
fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status).filter(|_| !interrupt::pending()));
        }
        if interrupt::pending() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

impl Load<'_> {
    fn text(self) -> String {
        let Self { alphabet, keys, threads, placement, pages } = self;
        format!("{alphabet},{keys},{threads},{placement},{pages}")
    }
}

/// Loads a trie with random keys of 128 bits: the work of a child.
pub fn load_only(text: &str) -> Result<(), Error> {
    let wrong = |problem: &str| {
        let form = "expects ALPHABET,KEYS,THREADS,PLACEMENT,PAGES";
        Error::value("--load-only", format!("{form}: {problem}"))
    };
    let fields: Vec<&str> = text.split(',').collect();
    let &[alphabet, keys, threads, placement, pages] = &fields[..] else {
        return Err(wrong(&format!("`{text}` has {} fields", fields.len())));
    };
    let keys = number(keys, 1, KEYS_MAX / 2).map_err(|problem| wrong(&problem))?;
    let threads = number(threads, 1, THREADS_MAX).map_err(|problem| wrong(&problem))?;
    let place = place::of(placement, pages, Tuning::default())?.swap_remove(0);
    match alphabet {
        "2" => load::<2>(place, keys, threads),
        "4" => load::<4>(place, keys, threads),
        "16" => load::<16>(place, keys, threads),
        "256" => load::<256>(place, keys, threads),
        _ => Err(wrong(&format!("`{alphabet}` is not an alphabet: choose 2, 4, 16 or 256"))),
    }
}

fn load<const A: usize>(place: Place, keys: usize, threads: usize) -> Result<(), Error>
where
    Alphabet<A>: AlphabetSize,
{
    if place.is_pooled() {
        load_in::<A, Pooled>(place, keys, threads)
    } else {
        load_in::<A, Shared>(place, keys, threads)
    }
}

fn load_in<const A: usize, P: Placement>(
    place: Place,
    keys: usize,
    threads: usize,
) -> Result<(), Error>
where
    Alphabet<A>: AlphabetSize,
{
    let subject = Subject::placed::<P, Paper<A>, Spin>("trie", place.options(None))?;
    // A thread that waits for others would be counted, too.
    let loaded = if threads == 1 {
        subject.loaded_alone(keys)
    } else {
        subject.loaded(&Crew::new().loading(threads), keys)
    };
    // The process ends, so nothing is freed one by one.
    loaded.map(std::mem::forget)
}

/// The page faults of all child processes that have ended.
fn faults_of_children() -> u64 {
    #[cfg(unix)]
    {
        let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the call writes a `rusage` there; zeroes are one, too.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_CHILDREN, usage.as_mut_ptr());
            usage.assume_init()
        };
        u64::try_from(usage.ru_minflt).unwrap_or(0)
    }
    #[cfg(not(unix))]
    0
}
