//! The databases to be measured: combinations of indexes, policies, layouts of rows and places.

use crate::flags::error::Error;
use crate::flags::place::{self, Place};
use crate::flags::store::ContenderArgs;
use crate::flags::values::{list, named};
use silvics::structures::STRUCTURES;
use silvics::{Options, WordTree};
use silvics_store::index::{Lists, Named, Scannable, Scans, Search};
use silvics_store::lock::{Latched, Padded, PthreadLock};
use silvics_store::{Locking, NoWait, Optimistic, Policy, StoreOptions, Study, WaitDie};

/// How an index is made.
pub type Make<I> = Box<dyn Fn(&Options) -> Result<I, silvics_store::Error> + Send + Sync>;

/// A concurrency control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    Optimistic,
    NoWait,
    WaitDie,
}

impl Control {
    const ALL: [Self; 3] = [Self::Optimistic, Self::NoWait, Self::WaitDie];

    pub fn name(self) -> &'static str {
        match self {
            Self::Optimistic => "optimistic",
            Self::NoWait => "no-wait",
            Self::WaitDie => "wait-die",
        }
    }
}

/// A layout of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    Inline,
    Study,
    StudyPadded,
}

impl Layout {
    const ALL: [Self; 3] = [Self::Inline, Self::Study, Self::StudyPadded];

    pub fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::Study => "study",
            Self::StudyPadded => "study-padded",
        }
    }
}

/// A database to be measured.
#[derive(Clone, Debug)]
pub struct Contender {
    pub index: String,
    pub control: Control,
    pub layout: Layout,
    pub place: Place,
    pub mixed: bool,
}

/// A note on the trees that a load in the order of keys turns into lists.
pub fn note_on_lists(contenders: &[Contender]) -> Option<String> {
    let mut lists: Vec<&str> = Vec::new();
    for contender in contenders.iter().filter(|contender| contender.becomes_list()) {
        if !lists.contains(&&*contender.index) {
            lists.push(&contender.index);
        }
    }
    (!lists.is_empty()).then(|| {
        format!(
            "insertorder=ordered inserts keys in ascending order, which turns a tree that does not \
             balance itself into a list: the time of the load grows with the square of recordcount \
             ({})",
            lists.join(", ")
        )
    })
}

/// All combinations of indexes, policies, layouts and places.
pub fn all(args: &ContenderArgs) -> Result<Vec<Contender>, Error> {
    let controls = list("--policy", &args.policy, |text| {
        named(text, "a policy", Control::ALL, Control::name)
    })?;
    let layouts = list("--row-layout", &args.row_layout, |text| {
        named(text, "a layout of rows", Layout::ALL, Layout::name)
    })?;
    let places = place::read(&args.place)?;
    let mut contenders = Vec::new();
    for index in indexes(&args.index) {
        if index.starts_with("db:") {
            let (control, layout, place) = (Control::Optimistic, Layout::Inline, places[0]);
            contenders.push(Contender { index, control, layout, place, mixed: false });
            continue;
        }
        // A peer has its own memory.
        let places = if index.starts_with("peer:") { &places[..1] } else { &places[..] };
        for &control in &controls {
            for &layout in &layouts {
                for &place in places {
                    let (index, mixed) = (index.clone(), args.mixed);
                    contenders.push(Contender { index, control, layout, place, mixed });
                }
            }
        }
    }
    Ok(contenders)
}

/// The names that `--index` takes.
pub fn names() -> Vec<&'static str> {
    let mut names = vec!["map", "bst"];
    let takes_numbers =
        |name: &&str| Named::<u64>::with_structure(name, false, &Options::default()).is_ok();
    names.extend(STRUCTURES.iter().map(|structure| structure.name).filter(takes_numbers));
    #[cfg(feature = "peers")]
    names.extend(super::peers::Peer::NAMES);
    #[cfg(feature = "databases")]
    names.extend(["db:sqlite", "db:redb", "db:surrealmx"]);
    names
}

/// The indexes of a list: a group stands for its structures.
fn indexes(text: &str) -> Vec<String> {
    let members = |item: &str| -> Vec<String> {
        let group = STRUCTURES.iter().filter(|structure| structure.groups.contains(&item));
        let group: Vec<String> = group.map(|structure| structure.name.to_string()).collect();
        if group.is_empty() { vec![item.to_string()] } else { group }
    };
    text.split(',').flat_map(members).collect()
}

impl Contender {
    /// The name in reports.
    pub fn name(&self) -> String {
        self.index.clone()
    }

    /// The name of the policy.
    pub fn policy(&self) -> &'static str {
        if self.is_database() { "own" } else { self.control.name() }
    }

    /// The name of the layout of rows.
    pub fn row_layout(&self) -> &'static str {
        if self.is_database() { "own" } else { self.layout.name() }
    }

    /// The name of the placement of the index's nodes.
    pub fn placement(&self) -> &'static str {
        if self.is_peer() || self.is_database() { "own" } else { self.place.name() }
    }

    /// The name of the pages of the index's nodes.
    pub fn pages(&self) -> String {
        if self.is_peer() || self.is_database() {
            place::SYSTEM_PAGES.into()
        } else {
            self.place.pages()
        }
    }

    pub fn is_database(&self) -> bool {
        self.index.starts_with("db:")
    }

    pub fn is_peer(&self) -> bool {
        self.index.starts_with("peer:")
    }

    /// Whether keys in ascending order make its index a list: it is a binary search tree, and none
    /// of those that balance themselves, which are called AVL trees.
    fn becomes_list(&self) -> bool {
        let name = self.index.split(':').next();
        let structure = STRUCTURES.iter().find(|structure| Some(structure.name) == name);
        structure.is_some_and(|structure| structure.topology.ends_with("binary search tree"))
    }

    /// Fails unless a benchmark can run on it, which scans or not.
    pub fn check(&self, scans: bool) -> Result<(), Error> {
        if self.layout != Layout::Inline && self.control != Control::NoWait {
            let problem = format!(
                "`{}` is the study's, whose rows are locked without waiting: add --policy no-wait",
                self.layout.name()
            );
            return Err(Error::value("--row-layout", problem));
        }
        if self.mixed && self.place.is_pooled() {
            let problem = "pools hold no rows: choose a placement with a heap, such as size-class";
            return Err(Error::value("--mixed", problem));
        }
        if self.index == "map" {
            return Ok(());
        }
        if self.is_peer() {
            return self.check_peer();
        }
        if self.is_database() {
            return self.check_database();
        }
        let index = Named::<u64>::with_structure(&self.index, false, &Options::default());
        let index = index.map_err(|error| Error::value("--index", error))?;
        if scans && !index.scans() {
            let scanning = STRUCTURES
                .iter()
                .filter(|structure| structure.capability != silvics::structures::Capability::Points)
                .map(|structure| structure.name);
            let names = scanning.collect::<Vec<_>>().join(", ");
            let index = &self.index;
            let problem = format!(
                "`{index}` cannot scan, as the workload does: choose from map, {names}, or peers \
                 and databases"
            );
            return Err(Error::value("--index", problem));
        }
        Ok(())
    }

    #[cfg(feature = "peers")]
    fn check_peer(&self) -> Result<(), Error> {
        if self.layout != Layout::Inline {
            let layout = self.layout.name();
            let problem = format!("`{}` has rows of the layout inline, not {layout}", self.index);
            return Err(Error::value("--row-layout", problem));
        }
        if super::peers::Peer::of(&self.index).is_some() {
            return Ok(());
        }
        let names = super::peers::Peer::NAMES.join(", ");
        let problem =
            format!("`{}` is no peer that can be an index: choose from {names}", self.index);
        Err(Error::value("--index", problem))
    }

    #[cfg(not(feature = "peers"))]
    fn check_peer(&self) -> Result<(), Error> {
        let problem = format!("`{}` needs the feature peers of the command", self.index);
        Err(Error::value("--index", problem))
    }

    #[cfg(feature = "databases")]
    fn check_database(&self) -> Result<(), Error> {
        let names = super::ycsb::DATABASES;
        if names.contains(&&*self.index) {
            return Ok(());
        }
        let problem = format!("`{}` is no database: choose from {}", self.index, names.join(", "));
        Err(Error::value("--index", problem))
    }

    #[cfg(not(feature = "databases"))]
    fn check_database(&self) -> Result<(), Error> {
        let problem = format!(
            "`{}` needs a build with databases: add --features databases to cargo run",
            self.index
        );
        Err(Error::value("--index", problem))
    }

    /// The settings of its store.
    pub fn options(&self) -> StoreOptions {
        let indexes = self.place.options(None);
        let in_heap = !self.place.is_pooled();
        let rows_in_heap = self.mixed.then(|| indexes.heap.clone()).flatten();
        StoreOptions { indexes, indexes_in_heap: in_heap, rows_in_heap }
    }

    /// Calls a method of `make` with the policy, and with the index if its type is known.
    pub fn with_policy<M: ByPolicy>(&self, make: M) -> Result<M::Made, Error> {
        match (self.layout, self.control) {
            (Layout::Inline, Control::Optimistic) => self.inline::<Optimistic, M>(make),
            (Layout::Inline, Control::NoWait) => self.inline::<Locking<NoWait>, M>(make),
            (Layout::Inline, Control::WaitDie) => self.inline::<Locking<WaitDie>, M>(make),
            (Layout::Study, _) => make.listed::<Locking<NoWait, Study<StudyLock>>>(),
            (Layout::StudyPadded, _) => make.listed::<Locking<NoWait, Study<Padded<StudyLock>>>>(),
        }
    }

    fn inline<P: Policy, M: ByPolicy>(&self, make: M) -> Result<M::Made, Error> {
        #[cfg(feature = "peers")]
        if self.is_peer() {
            use super::peers::Peer;
            let name = self.index.clone();
            let peer: Make<Peer> = Box::new(move |options| {
                Ok(Peer::of(&name).map_or_else(|| Peer::make(options), Ok)?)
            });
            return make.direct::<P, Peer>(peer);
        }
        if self.index == "map" && self.place.is_pooled() {
            let map: Make<Scans<WordTree<u64>>> = Box::new(|options| Ok(Search::make(options)?));
            return make.direct::<P, _>(map);
        }
        make.named::<P>(self.named())
    }

    /// The name of its structure.
    pub fn structure(&self) -> String {
        if self.index == "map" { "words".into() } else { self.index.clone() }
    }

    /// The constructor of an index of the table of structures.
    pub fn named(&self) -> Make<Named<u64>> {
        let (name, in_heap) = (self.structure(), !self.place.is_pooled());
        Box::new(move |options| Named::<u64>::with_structure(&name, in_heap, options))
    }
}

/// Makes stores of any policy.
pub trait ByPolicy {
    type Made;
    /// Makes a store with an index of a known type, which scans.
    fn direct<P: Policy, I: Scannable + Search<Form = u64>>(
        self,
        index: Make<I>,
    ) -> Result<Self::Made, Error>;
    /// Makes a store with an index of the table of structures.
    fn named<P: Policy>(self, index: Make<Named<u64>>) -> Result<Self::Made, Error>;
    /// Makes a store whose index leads to lists of rows, as the study's.
    fn listed<P: Policy>(self) -> Result<Self::Made, Error>;
}

/// The constructor of the study's lists around an index.
pub fn lists<I: Search>(make: Make<I>) -> Make<Lists<I>> {
    Box::new(move |options| Lists::around(make(options)?, options))
}

/// The row lock of the study's database.
type StudyLock = Latched<PthreadLock>;
