//! Figures made of the counts of systems that a test makes up.

use super::*;

/// A system that refuses events and returns counts as its fields say.
#[derive(Clone, Debug)]
struct Fake {
    /// Events that nothing stands for.
    unknown: Vec<Event>,
    /// Error numbers of opening events.
    errors: Vec<(Event, i32)>,
    /// The most events of a group that can be opened.
    fit: usize,
    /// The most events of a group that are ever counted.
    held: usize,
    /// Events that are never counted.
    idle: Vec<Event>,
    enabled: u64,
    running: u64,
    paranoid: Option<i64>,
}

/// Each event happens a hundred times as often as its position says, plus one.
fn happened(event: Event) -> u64 {
    100 * event as u64 + 1
}

impl Fake {
    fn new() -> Self {
        Self {
            unknown: Vec::new(),
            errors: Vec::new(),
            fit: 8,
            held: 8,
            idle: Vec::new(),
            enabled: 1000,
            running: 1000,
            paranoid: Some(2),
        }
    }

    /// A system whose processor says this of each of its events.
    fn refusing(error: i32, paranoid: Option<i64>) -> Self {
        let hardware = Event::ALL.into_iter().filter(|event| event.is_hardware());
        Self { errors: hardware.map(|event| (event, error)).collect(), paranoid, ..Self::new() }
    }

    fn sentence(self) -> String {
        Counters::of(self).tell().counters_refused.expect("something is refused")
    }
}

impl Source for Fake {
    fn used(&self, event: Event) -> Option<String> {
        (!self.unknown.contains(&event)).then(|| format!("the system's {}", event.name()))
    }

    fn open(&self, events: &[Event]) -> io::Result<Box<dyn Group>> {
        for (event, error) in &self.errors {
            if events.contains(event) {
                return Err(io::Error::from_raw_os_error(*error));
            }
        }
        if events.len() > self.fit {
            return Err(io::ErrorKind::InvalidInput.into()); // EINVAL, as Linux says
        }
        let readings = events.iter().map(|event| {
            let runs = events.len() <= self.held && !self.idle.contains(event);
            let running = if runs { self.running } else { 0 };
            Reading { count: happened(*event) * running / 1000, enabled: self.enabled, running }
        });
        Ok(Box::new(FakeGroup { readings: readings.collect(), started: false, stopped: false }))
    }

    fn paranoid(&self) -> Option<i64> {
        self.paranoid
    }
}

struct FakeGroup {
    readings: Vec<Reading>,
    started: bool,
    stopped: bool,
}

impl Group for FakeGroup {
    fn start(&mut self) -> io::Result<()> {
        self.started = true;
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        assert!(self.started, "stopped before it was started");
        self.stopped = true;
        Ok(())
    }

    fn read(&mut self) -> io::Result<Vec<Reading>> {
        assert!(self.started, "read before it was started");
        Ok(self.readings.clone())
    }
}

/// The counts of one thread in one run.
fn run(counters: &Counters) -> Counts {
    let mut open = counters.open();
    open.start();
    open.stop()
}

fn close(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() < 1e-9 * expected.max(1.0))
}

#[test]
fn figures_are_events_of_all_threads_over_their_operations() {
    let counters = Counters::of(Fake::new());
    let two_threads = run(&counters).join(run(&counters));
    let per_op = PerOp::of([(two_threads, 100), (run(&counters), 50)].into_iter()).unwrap();
    for event in Event::ALL {
        let expected = (3 * happened(event)) as f64 / 150.0;
        assert!(close(per_op.get(event), expected), "{event:?}: {per_op:?}");
    }
    assert!(close(Some(per_op.time_counted), 1.0));
    let told = counters.tell();
    assert_eq!(told.counters_refused, None);
    assert_eq!(told.counters.unwrap()["llc_misses"], "the system's llc_misses");
}

#[test]
fn what_was_counted_part_of_the_time_is_scaled() {
    let whole = Counters::of(Fake::new());
    let part = Counters::of(Fake { running: 250, ..Fake::new() });
    let quarter = run(&part);
    // A quarter of 401 whole events, times four.
    assert!(close(PerOp::of([(quarter, 1)].into_iter()).unwrap().page_walks, 400.0));
    let both = PerOp::of([(quarter.join(run(&whole)), 1)].into_iter()).unwrap();
    assert!(close(both.page_walks, 801.0));
    assert!(close(Some(both.time_counted), 0.25), "the least of them");
}

#[test]
fn what_never_ran_has_no_figure_and_is_named() {
    let counters = Counters::of(Fake { idle: vec![Event::LlcMisses], ..Fake::new() });
    assert_eq!(counters.refused.sentence(), None, "it can be opened");
    let counts = run(&counters);
    let per_op = PerOp::of([(counts, 10)].into_iter()).unwrap();
    assert_eq!((per_op.llc_misses, per_op.cycles), (None, Some(0.1)));
    let refused = counters.tell().counters_refused.unwrap();
    assert!(refused.starts_with("in some runs no llc_misses: they never got onto"), "{refused}");
    // A thread's gap is the run's, and a run's gap takes its operations with it.
    let whole = run(&Counters::of(Fake::new()));
    assert_eq!(PerOp::of([(whole.join(counts), 10)].into_iter()).unwrap().llc_misses, None);
    let runs = PerOp::of([(whole, 10), (counts, 90)].into_iter()).unwrap();
    assert!(close(runs.llc_misses, 201.0 / 10.0) && close(runs.cycles, 2.0 / 100.0), "{runs:?}");
}

#[test]
fn groups_are_as_large_as_they_fit_and_run() {
    let groups = |fit, held| Counters::of(Fake { fit, held, ..Fake::new() }).groups;
    let [hardware, software] = [&Event::ALL[..5], &Event::ALL[5..]];
    assert_eq!(groups(8, 8), [hardware, software]);
    assert_eq!(groups(3, 3), [&hardware[..3], &hardware[3..], software]);
    // They fit, and something else has one of the counters.
    let alone: Vec<Vec<Event>> = hardware.iter().map(|&event| vec![event]).collect();
    let split = groups(8, 4);
    assert_eq!(split[..5], alone);
    assert_eq!(split[5], software);
}

#[test]
fn what_there_is_is_counted_and_the_rest_named() {
    let fake = Fake {
        unknown: vec![Event::PageWalks],
        errors: vec![(Event::DtlbMisses, libc::ENOENT), (Event::ContextSwitches, libc::EACCES)],
        ..Fake::new()
    };
    let counters = Counters::of(fake);
    let per_op = PerOp::of([(run(&counters), 1)].into_iter()).unwrap();
    let known = [Event::Cycles, Event::Instructions, Event::LlcMisses, Event::PageFaults];
    assert_eq!(PerOp::known(std::iter::once(&per_op)), known);
    assert_eq!(
        counters.tell().counters_refused.unwrap(),
        "no dtlb_misses, page_walks: no event of this processor is known for them: choose one from \
         its manual and count it with perf stat -e rNNNN; no context_switches: \
         kernel.perf_event_paranoid is 2, which forbids them: set it by sudo sysctl \
         kernel.perf_event_paranoid=1"
    );
}

#[test]
fn nothing_is_no_figure() {
    let unknown = Event::ALL.to_vec();
    let counters = Counters::of(Fake { unknown, ..Fake::new() });
    assert_eq!(PerOp::of([(run(&counters), 1)].into_iter()), None);
    assert_eq!(PerOp::of(std::iter::empty()), None);
    let whole = run(&Counters::of(Fake::new()));
    assert_eq!(PerOp::of([(whole, 0)].into_iter()).unwrap().cycles, None, "no operations");
}

#[test]
fn each_refusal_has_its_words() {
    let events = "no cycles, instructions, llc_misses, dtlb_misses, page_walks: ";
    for (error, paranoid, words) in [
        (
            libc::ENOENT,
            Some(2),
            "this machine, probably virtual, has no such counters: measure on a bare",
        ),
        (
            libc::EACCES,
            Some(3),
            "kernel.perf_event_paranoid is 3, which forbids them: set it by sudo",
        ),
        (
            libc::EPERM,
            Some(4),
            "kernel.perf_event_paranoid is 4, which forbids them: set it by sudo",
        ),
        (libc::EPERM, Some(2), "the system forbids them, as containers do: grant CAP_PERFMON"),
        (libc::EACCES, None, "the system forbids them, as containers do: grant CAP_PERFMON"),
        (libc::EMFILE, Some(2), "each thread needs a file per event, and there are too many open"),
        (libc::ENFILE, Some(2), "each thread needs a file per event, and there are too many open"),
        (libc::EBUSY, Some(2), "another program has the counters to itself"),
        (libc::ENOSYS, None, "this system has no perf_event_open"),
        (libc::EIO, Some(2), "the system says `"),
    ] {
        let sentence = Fake::refusing(error, paranoid).sentence();
        let found = sentence.strip_prefix(events);
        assert!(found.is_some_and(|found| found.starts_with(words)), "{error}: {sentence}");
        assert!(!sentence.contains(['\n', ';']), "one sentence: {sentence}");
    }
}

/// With many threads the files may run out after all was found to be there.
#[test]
fn what_a_run_cannot_open_is_named() {
    let mut counters = Counters::of(Fake::new());
    counters.source = Box::new(Fake::refusing(libc::EMFILE, Some(2)));
    let per_op = PerOp::of([(run(&counters), 10)].into_iter()).unwrap();
    assert_eq!((per_op.cycles, per_op.page_faults), (None, Some(50.1)));
    let refused = counters.tell().counters_refused.unwrap();
    assert!(refused.starts_with("in some runs no cycles, instructions, "), "{refused}");
    assert!(refused.contains("ulimit -n, or take fewer threads"), "{refused}");
}

#[test]
fn columns_show_what_can_be_told_apart() {
    let shown =
        [(Event::Cycles, 1234.56), (Event::LlcMisses, 0.0125), (Event::PageFaults, 0.000_012)];
    let shown = shown.map(|(event, per_op)| event.shown(per_op));
    assert_eq!(shown, ["1235", "0.013", "12.0"]);
}
