//! `--sync` and `--fallback`: how the threads of a Patricia trie are synchronised.

use super::args::SyncArgs;
use super::error::Error;
use super::site::Site;
use crate::catalogue::select::Chosen;

const FLAG: &str = "--sync";

/// A way to synchronise the threads of a trie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sync {
    /// Its name on the command line.
    name: &'static str,
    /// The variant of tries that has it.
    variant: &'static str,
}

impl Sync {
    /// Lock teleportation, validated in software.
    pub const OPTIMISTIC: Self = Self { name: "optimistic", variant: "compact" };
    /// Lock teleportation by hardware transactions.
    pub const RTM: Self = Self { name: "rtm", variant: "rtm" };
    const ALL: [Self; 5] = [
        Self::OPTIMISTIC,
        Self::RTM,
        Self { name: "spin", variant: "spin" },
        Self { name: "pthread", variant: "pthread" },
        Self { name: "adaptive", variant: "adaptive" },
    ];

    /// Reads the flags. On a CPU without hardware transactions, `--sync rtm` fails, or the note
    /// says what runs instead.
    pub fn new(args: &SyncArgs, site: Site) -> Result<(Option<Self>, Option<String>), Error> {
        let Some(name) = &args.sync else {
            if args.fallback {
                return Err(Error::value("--fallback", "is for --sync rtm: add that"));
            }
            return Ok((None, None));
        };
        let Some(sync) = Self::ALL.into_iter().find(|known| known.name == name) else {
            let known = Self::ALL.map(|known| known.name).join(", ");
            let problem = format!("`{name}` is not a way to synchronise tries: choose {known}");
            return Err(Error::value(FLAG, problem));
        };
        if sync != Self::RTM || site.has_rtm {
            return Ok((Some(sync), None));
        }
        if !args.fallback {
            let problem = format!("rtm: {MISSING}: add --fallback to run {INSTEAD}");
            return Err(Error::value(FLAG, problem));
        }
        Ok((Some(Self::OPTIMISTIC), Some(format!("{FLAG} rtm: {MISSING}: {INSTEAD} runs"))))
    }

    /// Takes the builds of tries that are synchronised in this way, each once. An index that was
    /// named must have such a build. Members of groups that have none are left out, with a note.
    pub fn choose(
        self,
        chosen: Vec<Chosen>,
        site: Site,
        notes: &mut Vec<String>,
    ) -> Result<Vec<Chosen>, Error> {
        let mut kept: Vec<Chosen> = Vec::new();
        for one in chosen {
            match self.build(&one, site) {
                Some(build) if kept.iter().any(|other| other.name() == build.name()) => {}
                Some(build) => kept.push(build),
                None if one.must() => {
                    let (index, name) = (one.name(), self.name);
                    let problem =
                        format!("`{index}` has no build for {name}: choose a trie: patricia-16");
                    return Err(Error::value(FLAG, problem));
                }
                None => {
                    notes.push(format!(
                        "`{}` has no build for {}: left out",
                        one.name(),
                        self.name
                    ));
                }
            }
        }
        if kept.is_empty() {
            let problem = format!("no index has a build for {}: choose patricia-16", self.name);
            return Err(Error::value(FLAG, problem));
        }
        Ok(kept)
    }

    /// The build of an index that is synchronised in this way. A build that was named stays, or
    /// changes to the one with the same nodes.
    fn build(self, index: &Chosen, site: Site) -> Option<Chosen> {
        if !index.entry.groups.contains(&"patricia") {
            return None;
        }
        let is_default = !index.has_named_variant();
        match index.variant.name {
            "paper" if self == Self::OPTIMISTIC => Some(*index),
            "paper" => index.in_variant(&format!("paper-{}", self.variant)),
            name if name.strip_prefix("paper-").unwrap_or(name) == self.variant => Some(*index),
            // On such a CPU, this build would run optimistically.
            "rtm" if self == Self::OPTIMISTIC && !site.has_rtm => index.in_variant(self.variant),
            _ if is_default => index.in_variant(self.variant),
            _ => None,
        }
    }

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        self.name
    }
}

const MISSING: &str = "this CPU has no restricted transactional memory (RTM)";
const INSTEAD: &str = "optimistic teleportation";

/// Notes on indexes whose variant needs hardware transactions, on a CPU that has none.
pub fn notes(chosen: &[Chosen], site: Site) -> impl Iterator<Item = String> {
    let is_rtm = |chosen: &&Chosen| chosen.variant.name == Sync::RTM.variant;
    let replaced = chosen.iter().filter(is_rtm).filter(move |_| !site.has_rtm);
    replaced.map(|chosen| format!("`{}`: {MISSING}: {INSTEAD} runs", chosen.name()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(
        sync: &str,
        fallback: bool,
        has_rtm: bool,
    ) -> Result<(Option<Sync>, Option<String>), Error> {
        Sync::new(&SyncArgs { sync: Some(sync.into()), fallback }, Site::there(2, has_rtm))
    }

    #[test]
    fn transactions_need_a_cpu_that_has_them() {
        for fallback in [false, true] {
            assert_eq!(on("rtm", fallback, true).unwrap(), (Some(Sync::RTM), None));
        }
        let refused = on("rtm", false, false).unwrap_err().to_string();
        assert!(refused.contains(MISSING) && refused.contains("add --fallback"), "{refused}");
        let (sync, note) = on("rtm", true, false).unwrap();
        assert_eq!(sync, Some(Sync::OPTIMISTIC));
        assert!(note.unwrap().contains("optimistic teleportation runs"));
        assert_eq!(on("spin", false, false).unwrap().0.unwrap().variant, "spin");
        let alone = Sync::new(&SyncArgs { sync: None, fallback: true }, 2.into()).unwrap_err();
        assert!(alone.to_string().contains("--fallback"), "{alone}");
        assert!(on("mcs", false, true).unwrap_err().to_string().contains("`mcs` is not a way"));
    }
}
