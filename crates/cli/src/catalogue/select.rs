//! The choice of indexes by `--index` and `--variant`.
//!
//! An index of ours that is named must be able to do what is requested. Peers, and members of a
//! group, that cannot are left out, with a note.

use crate::catalogue::{self, AnyMaker, Entry, Inspect, Make, Nodes, Variant, Verify};
use crate::contender::Upserts;
use crate::drive::keys::BenchKey;
use crate::flags::error::Error;
use crate::flags::types::{KeyType, Types};
use silvics_workload::{Longest, Mix};
use std::fmt;

use crate::flags::place::Place;

/// An index to be run.
#[derive(Clone, Copy)]
pub struct Chosen {
    pub entry: &'static Entry,
    pub variant: &'static Variant,
    /// Whether the variant was named.
    explicit_variant: bool,
    /// Whether the index was named itself, rather than its group.
    pub named: bool,
    /// The mistake that is planted in it.
    pub canary: Option<Canary>,
}

impl fmt::Debug for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chosen({})", self.name())
    }
}

impl Chosen {
    /// The name by which it was chosen.
    pub fn name(&self) -> String {
        if let Some(canary) = self.canary {
            format!("{CANARY}{}", canary.name())
        } else if self.explicit_variant {
            format!("{}:{}", self.entry.name, self.variant.name)
        } else {
            self.entry.name.clone()
        }
    }

    /// Whether the variant was named.
    pub fn has_named_variant(&self) -> bool {
        self.explicit_variant
    }

    /// The constructors of the index for a place and for types of keys and values.
    fn maker(&self, place: Place, types: Types) -> Option<AnyMaker> {
        // A peer places its nodes itself.
        let pooled = place.is_pooled() || self.entry.is_peer();
        (self.variant.make)(types, if pooled { Nodes::Pooled } else { Nodes::Shared })
    }

    /// The constructor of the index for a place and for types of keys and values.
    pub fn make<K: BenchKey + ?Sized>(&self, place: Place, types: Types) -> Option<Make<K>> {
        Some(self.maker(place, types)?.keyed()?.subject)
    }

    /// Whether there is a constructor of the index for a place and for types of keys and values.
    pub fn takes_place(&self, place: Place, types: Types) -> bool {
        self.maker(place, types).is_some()
    }

    /// The constructor of an index whose reads are recorded, in a place.
    pub fn inspect<K: BenchKey + ?Sized>(&self, place: Place) -> Option<Inspect<K>> {
        self.maker(place, Types::words(K::TYPE))?.keyed()?.inspect
    }

    /// Whether the reads of an index with keys of a type can be recorded, in some place.
    pub fn inspects(&self, key_type: KeyType) -> bool {
        let makers = [Nodes::Pooled, Nodes::Shared]
            .map(|nodes| (self.variant.make)(Types::words(key_type), nodes));
        makers.into_iter().flatten().any(|maker| maker.inspects)
    }

    /// Fails unless the index adapts its shape to contention. `flag` has asked for one that does.
    pub fn must_adapt(&self, flag: &'static str) -> Result<(), Error> {
        if self.variant.adapts() {
            return Ok(());
        }
        let adapting = catalogue::all().iter().filter(|entry| entry.variants[0].adapts());
        let names: Vec<&str> = adapting.map(|entry| entry.name.as_str()).collect();
        let problem = format!(
            "`{}` does not adapt its shape to contention: name only indexes that do, such as {}",
            self.name(),
            names.join(" or ")
        );
        Err(Error::value(flag, problem))
    }

    /// The index in another variant, if it has one of this name.
    pub fn in_variant(&self, name: &str) -> Option<Self> {
        let variant = self.entry.variants.iter().find(|variant| variant.name == name)?;
        Some(Self { variant, explicit_variant: true, ..*self })
    }

    /// The function that records and checks histories of the index, for a place and a type of keys.
    pub fn verify(&self, place: Place, key_type: KeyType) -> Option<Verify> {
        self.maker(place, Types::words(key_type))?.verify
    }

    /// The reason why it cannot run a mix with keys of a type, if it cannot.
    fn refuses(&self, mix: Mix, key_type: KeyType) -> Option<Error> {
        let index = self.name();
        if self.variant.lookups_only && mix.writes() {
            return Some(Error::LookupsOnly { index, mix });
        }
        let upserts = match self.entry.upserts {
            Upserts::Any => true,
            Upserts::OfPresentKeys => mix.share(silvics_workload::Op::Remove) == 0,
            Upserts::None => false,
        };
        if mix.upserts() && !upserts {
            return Some(Error::NoUpserts { index, mix });
        }
        let scans = !mix.scans() || self.entry.scans(key_type);
        (!scans).then_some(Error::NoScans { index, key_type, mix })
    }

    /// Whether it can run a mix with keys of a type.
    pub fn can(&self, mix: Mix, key_type: KeyType) -> bool {
        self.refuses(mix, key_type).is_none()
    }

    /// An index with one of its variants, named by its group.
    fn of_group(entry: &'static Entry, variant: &'static Variant, explicit_variant: bool) -> Self {
        Self { entry, variant, explicit_variant, named: false, canary: None }
    }

    /// Whether it must be able to do everything that is asked: an index of ours that was named. A
    /// peer loses what it cannot do, and so does a member of a group.
    pub fn must(&self) -> bool {
        self.named && !self.entry.is_peer()
    }

    /// Whether it takes a key of this length: an error if it must, else a note.
    pub fn takes_length(&self, longest: Longest) -> Result<Result<(), String>, Error> {
        let limit = match self.entry.max_key_bytes {
            Some(limit) if longest.bytes > limit => limit,
            _ => return Ok(Ok(())),
        };
        let error = Error::KeyTooLong {
            index: self.name(),
            bytes: longest.bytes,
            line: longest.line,
            limit,
        };
        if self.must() {
            return Err(error);
        }
        Ok(Err(error.to_string()))
    }
}

/// The indexes that a list names, each once. An index without a variant in the list gets `variant`,
/// if it has that.
pub fn resolve(text: &str, variant: Option<&str>) -> Result<Vec<Chosen>, Error> {
    let mut chosen: Vec<Chosen> = Vec::new();
    for item in text.split(',') {
        for candidate in named(item, variant)? {
            match chosen.iter_mut().find(|other| other.name() == candidate.name()) {
                Some(other) => other.named |= candidate.named,
                None => chosen.push(candidate),
            }
        }
    }
    Ok(chosen)
}

/// Reads `--index` for a benchmark. The notes say which members of groups were left out.
pub fn select(
    text: &str,
    variant: Option<&str>,
    types: Types,
    mixes: &[Mix],
) -> Result<(Vec<Chosen>, Vec<String>), Error> {
    suited(resolve(text, variant)?, text, types, mixes)
}

/// The indexes that can run with these types and mixes. `text` named them.
pub fn suited(
    chosen: Vec<Chosen>,
    text: &str,
    types: Types,
    mixes: &[Mix],
) -> Result<(Vec<Chosen>, Vec<String>), Error> {
    if let Some(broken) = chosen.iter().find(|chosen| chosen.canary.is_some()) {
        let problem =
            format!("`{}` is broken on purpose: name it to `silvics verify`", broken.name());
        return Err(Error::value("--index", problem));
    }
    let mut notes = Vec::new();
    let mut kept = Vec::new();
    for candidate in chosen {
        match suits(&candidate, types, mixes) {
            Ok(()) => kept.push(candidate),
            Err(error) if candidate.must() => return Err(error),
            Err(error) => notes.push(left_out(&error)),
        }
    }
    if kept.is_empty() {
        return Err(Error::Nothing {
            indexes: text.into(),
            why: "takes these keys, values and mixes (--key-type, --value-type, --mix)",
        });
    }
    // A peer or a member of a group that cannot scan or write still runs the other mixes.
    for candidate in &kept {
        let refused = mixes.iter().filter_map(|&mix| candidate.refuses(mix, types.key));
        notes.extend(refused.map(|error| left_out(&error)));
    }
    Ok((kept, notes))
}

fn left_out(error: &Error) -> String {
    match error {
        Error::KeyType { index, key_type } => {
            format!("`{index}` takes no {key_type} keys: left out")
        }
        Error::ValueType { index } => format!("`{index}` stores 8-byte values only: left out"),
        Error::NoScans { index, key_type, mix } => {
            format!("`{index}` cannot scan {} keys: left out of --mix {mix}", key_type.name())
        }
        Error::LookupsOnly { index, mix } => {
            format!("`{index}` only looks keys up: left out of --mix {mix}")
        }
        Error::NoUpserts { index, mix } => {
            format!("`{index}` has no such upserts: left out of --mix {mix}")
        }
        other => other.to_string(),
    }
}

fn suits(candidate: &Chosen, types: Types, mixes: &[Mix]) -> Result<(), Error> {
    let index = candidate.name();
    if !candidate.variant.takes(Types::words(types.key)) {
        return Err(Error::KeyType { index, key_type: types.key });
    }
    if !candidate.variant.takes(types) {
        return Err(Error::ValueType { index });
    }
    let mut refused = mixes.iter().filter_map(|&mix| candidate.refuses(mix, types.key));
    match refused.next() {
        Some(error) if candidate.must() || 1 + refused.count() == mixes.len() => Err(error),
        _ => Ok(()),
    }
}

/// The group that means every variant of its members: the trees of the study.
const EVERY_BUILD: &str = "bst";

/// The indexes an item of the list names.
fn named(item: &str, variant: Option<&str>) -> Result<Vec<Chosen>, Error> {
    let all = catalogue::all();
    if let Some(name) = item.strip_prefix(CANARY) {
        return Ok(vec![with_canary(name)?]);
    }
    let members = || all.iter().filter(|entry| item == "all" || entry.groups.contains(&item));
    let of_group: Vec<Chosen> = match variant {
        None => members()
            .flat_map(|entry| {
                let builds = if item == EVERY_BUILD { entry.variants.len() } else { 1 };
                let variants = entry.variants[..builds].iter();
                variants.map(move |variant| Chosen::of_group(entry, variant, builds > 1))
            })
            .collect(),
        Some(name) => members()
            .filter_map(|entry| Some((entry, entry.variants.iter().find(|v| v.name == name)?)))
            .map(|(entry, variant)| Chosen::of_group(entry, variant, true))
            .collect(),
    };
    if members().next().is_some() {
        return match variant {
            Some(name) if of_group.is_empty() => Err(Error::value(
                "--variant",
                format!(
                    "nothing in `{item}` has a variant `{name}`: `silvics list` shows all variants"
                ),
            )),
            _ => Ok(of_group),
        };
    }
    if let Some(entry) = all.iter().find(|entry| entry.name == item) {
        if let Some(variant) = variant {
            return with_variant("--variant", entry, variant).map(|chosen| vec![chosen]);
        }
        return Ok(vec![Chosen {
            entry,
            variant: &entry.variants[0],
            explicit_variant: false,
            named: true,
            canary: None,
        }]);
    }
    // The colon before a variant is the last one: names of peers have one, too.
    if let Some((name, variant)) = item.rsplit_once(':')
        && let Some(entry) = all.iter().find(|entry| entry.name == name)
    {
        return with_variant("--index", entry, variant).map(|chosen| vec![chosen]);
    }
    Err(unknown(item))
}

fn with_variant(flag: &'static str, entry: &'static Entry, name: &str) -> Result<Chosen, Error> {
    let Some(variant) = entry.variants.iter().find(|variant| variant.name == name) else {
        let variants: Vec<&str> = entry.variants.iter().map(|variant| variant.name).collect();
        let problem =
            format!("`{}` has no variant `{name}`: choose {}", entry.name, variants.join(" or "));
        return Err(Error::value(flag, problem));
    };
    Ok(Chosen { entry, variant, explicit_variant: true, named: true, canary: None })
}

/// The prefix of the names of planted mistakes.
const CANARY: &str = "canary:";

/// A mistake of `silvics::canary`, where there are any.
#[cfg(feature = "canaries")]
pub use silvics::canary::Canary;
/// A mistake that can be planted: there is none without the feature `canaries`.
#[cfg(not(feature = "canaries"))]
#[derive(Clone, Copy)]
pub enum Canary {}

#[cfg(not(feature = "canaries"))]
impl Canary {
    fn name(self) -> &'static str {
        match self {}
    }
}

/// Plants the mistake in all indexes of this library from now on, or none.
pub fn plant(canary: Option<Canary>) {
    #[cfg(feature = "canaries")]
    silvics::canary::plant(canary);
    #[cfg(not(feature = "canaries"))]
    let _: Option<Canary> = canary;
}

/// The index that a mistake belongs to, with the mistake planted.
#[cfg(feature = "canaries")]
fn with_canary(name: &str) -> Result<Chosen, Error> {
    let Some(&canary) = Canary::ALL.iter().find(|canary| canary.name() == name) else {
        let names: Vec<&str> = Canary::ALL.iter().map(|canary| canary.name()).collect();
        let problem = format!("`{CANARY}{name}` is not a canary: choose {}", names.join(", "));
        return Err(Error::value("--index", problem));
    };
    // The catalogue calls the maps by other names.
    let name = match canary.index() {
        "versions" => "versioned",
        "multi" => "multimap",
        index => index,
    };
    let mut chosen = named(name, None)?.swap_remove(0);
    chosen.canary = Some(canary);
    Ok(chosen)
}

#[cfg(not(feature = "canaries"))]
fn with_canary(name: &str) -> Result<Chosen, Error> {
    let problem = format!(
        "`{CANARY}{name}` needs a build that can plant mistakes: add --features canaries to cargo run"
    );
    Err(Error::value("--index", problem))
}

fn unknown(item: &str) -> Error {
    const GROUPS: [&str; 5] = ["all", "default", "ours", "bst", "peers"];
    let names = catalogue::all().iter().map(|entry| entry.name.as_str());
    let close = names
        .chain(GROUPS)
        .map(|name| (strsim::damerau_levenshtein(item, name), name))
        // A peer's name without its prefix is close, however long the prefix.
        .map(|(distance, name)| match name.strip_prefix("peer:") {
            Some(bare) => (distance.min(strsim::damerau_levenshtein(item, bare)), name),
            None => (distance, name),
        })
        .min()
        .filter(|&(distance, _)| distance <= 3 && distance < item.len());
    let remedy = match close {
        Some((_, name)) => format!("did you mean `{name}`? `silvics list` shows all"),
        None => "choose from those that `silvics list` shows".into(),
    };
    Error::value("--index", format!("`{item}` is not an index: {remedy}"))
}
