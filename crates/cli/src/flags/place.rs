//! The places of our indexes' nodes, as the command line names them.

use crate::flags::args::PlaceArgs;
use crate::flags::error::Error;
use crate::flags::units::parse_bytes;
use crate::flags::values::{list, single};
use crate::host::alloc;
use silvics::{Heap, Options, Pages, SizeClassHeap, Tuning};
use silvics_layout::{Among, PageSize, Slot};
use std::alloc::Layout;
use std::sync::Arc;

/// The place of an index's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Pools on these pages, laid out like this.
    Pooled(Pages, Tuning),
    /// The global allocator, on the pages that it uses.
    Shared,
    /// A size-class heap of the index's own, on these pages.
    SizeClass(Pages),
    /// Another allocator, by its name in [`ALLOCATORS`].
    Allocator(&'static str),
}

/// An allocator's name, and a function that makes a heap of it.
type Allocator = (&'static str, fn() -> Arc<dyn Heap>);

/// The allocators that this command was built with.
const ALLOCATORS: &[Allocator] = &[
    #[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
    ("jemalloc", || Arc::new(silvics_pool::Jemalloc)),
    #[cfg(all(feature = "jemalloc", not(target_env = "msvc")))]
    ("segregated-jemalloc", || Arc::new(silvics_pool::SegregatedJemalloc::new())),
    #[cfg(feature = "mimalloc")]
    ("mimalloc", || Arc::new(silvics_pool::Mimalloc)),
    #[cfg(all(feature = "tcmalloc", target_os = "linux"))]
    ("tcmalloc", || Arc::new(silvics_pool::Tcmalloc)),
];

/// The allocators that the command can be built with, and the feature that each needs.
const FEATURES: [(&str, &str); 4] = [
    ("jemalloc", "jemalloc"),
    ("segregated-jemalloc", "jemalloc"),
    ("mimalloc", "mimalloc"),
    ("tcmalloc", "tcmalloc"),
];

/// The placement in the global allocator.
pub const SHARED: &str = "shared";

/// The placements of our indexes, by name.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<_> = std::iter::once("pooled").chain(allocators()).collect();
    names.insert(2, "size-class");
    names
}

/// The placements in allocators that are not ours.
pub fn allocators() -> impl Iterator<Item = &'static str> {
    std::iter::once(SHARED).chain(ALLOCATORS.iter().map(|(name, _)| *name))
}

impl Place {
    /// The placement's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Pooled(..) => "pooled",
            Self::Shared => SHARED,
            Self::SizeClass(_) => "size-class",
            Self::Allocator(name) => name,
        }
    }

    /// The pages' name.
    pub fn pages(self) -> String {
        match self {
            Self::Pooled(pages, _) | Self::SizeClass(pages) => pages.to_string(),
            Self::Shared | Self::Allocator(_) => SYSTEM_PAGES.into(),
        }
    }

    /// Whether each kind of object has a pool.
    pub fn is_pooled(self) -> bool {
        matches!(self, Self::Pooled(..))
    }

    /// The options of an index in this place.
    pub fn options(self, memory_limit: Option<usize>) -> Options {
        let (pages, tuning) = match self {
            Self::Pooled(pages, tuning) => (pages, tuning),
            Self::SizeClass(pages) => (pages, Tuning::default()),
            Self::Shared | Self::Allocator(_) => (Pages::Small, Tuning::default()),
        };
        Options { pages, memory_limit, tuning, heap: self.heap(), ..Options::default() }
    }

    /// The bytes that the place takes for an 8-byte aligned object, of the index or of the program
    /// around it. `None` if they are not known.
    pub fn bytes_for(self, of_index: bool, bytes: usize) -> Option<usize> {
        let layout = Layout::from_size_align(bytes, 8).ok()?;
        match (self, self.heap()) {
            (Self::Pooled(_, tuning), _) if of_index => {
                Some(bytes.next_multiple_of(tuning.slot_alignment()))
            }
            (_, Some(heap)) => Some(heap.bytes(layout)),
            // The program around an index with pools uses the global allocator.
            (Self::Pooled(..) | Self::Shared | Self::Allocator(_) | Self::SizeClass(_), None) => {
                alloc::bytes_for(layout)
            }
        }
    }

    /// Whether an object's size or kind decides where it lies. This is not so in an allocator
    /// without size classes, which uses any free room.
    pub fn has_classes(self) -> bool {
        self != Self::Shared || alloc::among() == Among::Size
    }

    /// The place of an object of this size, as far as it is known.
    pub fn slot(self, of_index: bool, bytes: usize) -> Slot {
        let among = match self {
            Self::Pooled(..) if of_index => Among::Kind,
            Self::Allocator("segregated-jemalloc") => Among::Kind,
            Self::SizeClass(_) | Self::Allocator(_) => Among::Size,
            Self::Pooled(..) | Self::Shared => alloc::among(),
        };
        Slot { bytes: self.bytes_for(of_index, bytes).unwrap_or(bytes.max(1)), among }
    }

    /// The size of its pages, if the system provides what is requested.
    pub fn page_size(self) -> PageSize {
        match self {
            Self::Pooled(pages, _) | Self::SizeClass(pages) if pages != Pages::Small => {
                PageSize::Huge
            }
            _ => PageSize::Small,
        }
    }

    /// A new heap for the place, if it needs one.
    fn heap(self) -> Option<Arc<dyn Heap>> {
        match self {
            Self::Pooled(..) | Self::Shared => None,
            Self::SizeClass(pages) => Some(Arc::new(SizeClassHeap::new(pages))),
            Self::Allocator(name) => {
                let known = ALLOCATORS.iter().find(|(known, _)| *known == name);
                known.map(|(_, heap)| heap())
            }
        }
    }
}

/// The name of the pages that an allocator uses without a request for others.
pub const SYSTEM_PAGES: &str = "system";

/// Reads the flags of places for a verb that takes one place.
pub fn read_one(args: &PlaceArgs) -> Result<Place, Error> {
    let places = read(args)?;
    if let [place] = places[..] {
        return Ok(place);
    }
    let (placement, pages) = (&args.placement, &args.pages);
    let problem = format!("`{placement}` on `{pages}` are several: name one of each");
    Err(Error::value("--placement", problem))
}

/// Reads the flags of places for a verb that takes several.
pub fn read(args: &PlaceArgs) -> Result<Vec<Place>, Error> {
    let tuning = tuning(args)?;
    if tuning != Tuning::default() && !args.placement.split(',').any(|place| place == "pooled") {
        let problem = "pools alone can be tuned: choose pooled, or leave out --slot-align, --slab, \
                       --regions and --colouring";
        return Err(Error::value("--placement", problem));
    }
    of(&args.placement, &args.pages, tuning)
}

/// Reads `--placement` and `--pages`. Pools get the given tuning.
pub fn of(placement: &str, pages: &str, tuning: Tuning) -> Result<Vec<Place>, Error> {
    let pages = list("--pages", pages, |text| match text {
        "4k" => Ok(Pages::Small),
        "thp" => Ok(Pages::Thp),
        "hugetlb" => Ok(Pages::HugeTlb),
        _ => Err(format!("`{text}` is not a kind of pages: choose 4k, thp or hugetlb")),
    })?;
    // An allocator uses its own pages, so it counts once, however many `--pages` are named.
    let places = list("--placement", placement, |text| match text {
        "pooled" => Ok(pages.iter().map(|pages| Place::Pooled(*pages, tuning)).collect()),
        "shared" => Ok(vec![Place::Shared]),
        "size-class" => Ok(pages.iter().copied().map(Place::SizeClass).collect()),
        _ => allocator(text).map(|place| vec![place]),
    })?;
    Ok(places.concat())
}

fn allocator(text: &str) -> Result<Place, String> {
    if let Some((name, _)) = ALLOCATORS.iter().find(|(name, _)| *name == text) {
        return Ok(Place::Allocator(name));
    }
    if let Some((_, feature)) = FEATURES.iter().find(|(name, _)| *name == text) {
        return Err(format!(
            "`{text}` needs a build with that allocator: add --features {feature} to cargo run"
        ));
    }
    Err(format!("`{text}` is not a placement: choose {}", names().join(", ")))
}

/// The flags that tune pools, as they were given. `None` if there are none.
pub fn tuned(args: &PlaceArgs) -> Option<String> {
    let given =
        |flag: &str, text: &Option<String>| text.as_ref().map(|text| format!("{flag} {text}"));
    let flags = [
        given("--slot-align", &args.slot_align),
        given("--slab", &args.slab),
        given("--regions", &args.regions),
        args.colouring.then(|| "--colouring".into()),
    ];
    let flags: Vec<String> = flags.into_iter().flatten().collect();
    (!flags.is_empty()).then(|| flags.join(" "))
}

/// Reads `--slot-align`, `--slab`, `--regions` and `--colouring`.
fn tuning(args: &PlaceArgs) -> Result<Tuning, Error> {
    let bytes = |flag, text: &str| {
        single(flag, text, |text| {
            parse_bytes(text).ok_or_else(|| {
                format!("`{text}` is not a number of bytes: write for example 64 or 2M")
            })
        })
    };
    let mut tuning = Tuning::default().colouring(args.colouring);
    if let Some(text) = &args.slot_align {
        let bytes = bytes("--slot-align", text)?;
        tuning = tuning.slot_align(bytes).map_err(|e| Error::value("--slot-align", e))?;
    }
    if let Some(text) = &args.slab {
        let bytes = bytes("--slab", text)?;
        tuning = tuning.slab_bytes(bytes).map_err(|error| Error::value("--slab", error))?;
    }
    if let Some(text) = &args.regions {
        let (first, largest) = text.split_once('-').unwrap_or((text, text));
        let (first, largest) = (bytes("--regions", first)?, bytes("--regions", largest)?);
        tuning = tuning.regions(first, largest).map_err(|e| Error::value("--regions", e))?;
    }
    Ok(tuning)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(placement: &str) -> PlaceArgs {
        PlaceArgs {
            placement: placement.into(),
            pages: "4k,thp".into(),
            slot_align: None,
            slab: None,
            regions: None,
            colouring: false,
        }
    }

    #[test]
    fn places_multiply_where_pages_are_ours_to_choose() {
        let places = read(&args("pooled,shared,size-class")).unwrap();
        let names: Vec<_> = places.iter().map(|place| (place.name(), place.pages())).collect();
        let names: Vec<_> = names.iter().map(|(name, pages)| (*name, pages.as_str())).collect();
        assert_eq!(
            names,
            [
                ("pooled", "4k"),
                ("pooled", "thp"),
                ("shared", "system"),
                ("size-class", "4k"),
                ("size-class", "thp")
            ]
        );
        assert!(read_one(&args("pooled")).is_err());
        let one = read_one(&args("shared")).unwrap();
        assert_eq!((one, one.page_size()), (Place::Shared, PageSize::Small));
    }

    #[test]
    fn every_allocator_it_is_built_with_has_a_name_and_a_feature() {
        for (name, _) in ALLOCATORS {
            assert!(FEATURES.iter().any(|(known, _)| known == name), "{name}");
            let place = read_one(&args(name)).unwrap();
            assert!(place.options(None).heap.is_some() && !place.is_pooled());
            assert!(place.bytes_for(true, 41).is_none_or(|bytes| bytes >= 41));
        }
        let missing = FEATURES.iter().find(|(name, _)| ALLOCATORS.iter().all(|of| of.0 != *name));
        if let Some((name, feature)) = missing {
            let error = read(&args(name)).unwrap_err().to_string();
            assert!(error.contains(&format!("--features {feature}")), "{error}");
        }
        assert!(read(&args("attic")).unwrap_err().to_string().contains("choose pooled, shared"));
    }

    #[test]
    fn pools_are_tuned_or_say_why_not() {
        let tuned = PlaceArgs { slot_align: Some("64".into()), ..args("pooled") };
        assert_eq!(read(&tuned).unwrap()[0].bytes_for(true, 40), Some(64));
        assert_eq!(Place::SizeClass(Pages::Small).bytes_for(true, 40), Some(48));
        let wrong = [
            PlaceArgs { slot_align: Some("48".into()), ..args("pooled") },
            PlaceArgs { slab: Some("many".into()), ..args("pooled") },
            PlaceArgs { regions: Some("2M-1M".into()), ..args("pooled") },
            PlaceArgs { colouring: true, ..args("shared") },
        ];
        let flags = ["--slot-align:", "--slab:", "--regions:", "--placement:"];
        for (args, flag) in wrong.iter().zip(flags) {
            let error = read(args).unwrap_err().to_string();
            assert!(error.starts_with(flag), "{error}");
        }
    }
}
