//! The table of structures: each is declared here, once.
//!
//! A row has the name of a structure, its types by key type and build, its capabilities, and the
//! facts of the catalogue. These lists follow from the rows:
//!
//! | list | follows by |
//! |---|---|
//! | suites, faults, lookups, drops, recorded reads, layouts | [`structure_modules!`], [`for_each_index!`] |
//! | schedules in pools, histories under the sanitizers, counted lookups, the fuzzer | [`for_each_index!`] |
//! | the catalogue of the command, with its groups | [`for_each_structure!`], [`STRUCTURES`] |
//! | the first table of docs/structures.md, the facts of the pages in docs/structures | [`STRUCTURES`], by `tests/structures.rs` |
//!
//! Two lists are kept by hand: the scenarios for the rare paths of a structure, and its canaries.
//! `tests/canaries.rs` checks that each structure has a canary.
//!
//! Types are named in their default placement; [`At`] places them elsewhere.
//!
//! [`structure_modules!`]: crate::structure_modules
//! [`for_each_index!`]: crate::for_each_index
//! [`for_each_structure!`]: crate::for_each_structure

mod facts;
mod lists;

pub use facts::{Build, Capability, STRUCTURES, StructureFacts};

/// The index type `I` in placement `P`.
pub type At<I, P> = <I as crate::frame::Structure>::At<P>;

/// Calls a macro with all rows of the table: `for_each_structure!((path::to::callback) arguments)`
/// expands to `path::to::callback! { (arguments) {row} {row} … }`. [`structures`](self) shows the
/// fields of a row; a callback repeats them all in its pattern.
#[macro_export]
macro_rules! for_each_structure {
    (($($callback:tt)+) $($arguments:tt)*) => { $($callback)+! { ($($arguments)*)
        {
            ident: edge_ext_lf,
            name: "edge-ext-lf",
            groups: ["bst", "default"],
            caps: scans,
            paper: "Natarajan and Mittal, PPoPP 2014",
            topology: "external binary search tree",
            sync: "lock-free, marks on edges",
            progress: "lock-free; lookups and scans wait for no thread",
            scans: "both ways, cursors",
            page: "bst/natarajan",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: compact, name: "compact", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::NatarajanTree<$crate::Pooled, $crate::bst::natarajan::build::Compact>, }
                }
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: suite, faults: scans,
                    types: { u64_keys: $crate::NatarajanTree<$crate::Pooled, $crate::bst::natarajan::build::Fixed>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: [],
                    runs: alias, faults: scans,
                    types: { u64_keys: $crate::NatarajanTree<$crate::Pooled, $crate::bst::natarajan::build::Baseline>, }
                }
                {
                    ident: shifted, name: "shifted", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::NatarajanTree<$crate::Pooled, $crate::bst::natarajan::build::Shifted>, }
                }
                {
                    ident: collocated, name: "collocated", oversights: [],
                    runs: full, faults: points,
                    types: { u64_keys: $crate::NatarajanTree<$crate::Pooled, $crate::bst::natarajan::build::Collocated>, }
                }
            }
        }
        {
            ident: edge_ext_lf_2,
            name: "edge-ext-lf-2",
            groups: ["bst"],
            caps: scans,
            paper: "Natarajan and Mittal, PPoPP 2014",
            topology: "external binary search tree",
            sync: "lock-free, marks on edges",
            progress: "lock-free",
            scans: "both ways, cursors",
            page: "bst/natarajan",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::NatarajanTree<$crate::Pooled, $crate::bst::natarajan::build::Fixed2>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: ["padding"],
                    runs: suite, faults: scans,
                    types: { u64_keys: $crate::NatarajanTree<$crate::Pooled, $crate::bst::natarajan::build::Baseline2>, }
                }
            }
        }
        {
            ident: ticket,
            name: "ticket",
            groups: ["bst"],
            caps: scans,
            paper: "David, Guerraoui and Trigonakis, ASPLOS 2015",
            topology: "external binary search tree",
            sync: "versioned locks on edges",
            progress: "deadlock-free; lookups and scans wait for no thread",
            scans: "both ways, cursors",
            page: "bst/ticket",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: compact, name: "compact", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::TicketTree<$crate::Pooled, $crate::bst::ticket::build::Compact>, }
                }
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: suite, faults: scans,
                    types: { u64_keys: $crate::TicketTree<$crate::Pooled, $crate::bst::ticket::build::Fixed>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: ["padding"],
                    runs: suite, faults: scans,
                    types: { u64_keys: $crate::TicketTree<$crate::Pooled, $crate::bst::ticket::build::Baseline>, }
                }
            }
        }
        {
            ident: ext_lf,
            name: "ext-lf",
            groups: ["bst"],
            caps: scans,
            paper: "Ellen, Fatourou, Ruppert and van Breugel, PODC 2010",
            topology: "external binary search tree",
            sync: "lock-free, descriptors",
            progress: "lock-free; lookups and scans wait for no thread",
            scans: "both ways, cursors",
            page: "bst/ellen",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: compact, name: "compact", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::EllenTree<$crate::Pooled, $crate::bst::ellen::build::Compact>, }
                }
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: suite, faults: scans,
                    types: { u64_keys: $crate::EllenTree<$crate::Pooled, $crate::bst::ellen::build::Fixed>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: ["padding", "heavy traversal"],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::EllenTree<$crate::Pooled, $crate::bst::ellen::build::Baseline>, }
                }
            }
        }
        {
            ident: occ_avl,
            name: "occ-avl",
            groups: ["bst", "default"],
            caps: points,
            paper: "Bronson, Casper, Chafi and Olukotun, PPoPP 2010",
            topology: "partially external relaxed AVL tree",
            sync: "fine locks, optimistic lookups",
            progress: "deadlock-free; lookups wait for rotations alone",
            scans: "none",
            page: "bst/bronson",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: restarting, name: "restarting", oversights: [],
                    runs: full, faults: points,
                    types: { u64_keys: $crate::BronsonTree<$crate::Pooled, $crate::bst::bronson::build::Restarting>, }
                }
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: full, faults: points,
                    types: { u64_keys: $crate::BronsonTree<$crate::Pooled, $crate::bst::build::Fixed>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: ["lock of 40 bytes", "padding", "scattered fields"],
                    runs: suite, faults: points,
                    types: { u64_keys: $crate::BronsonTree<$crate::Pooled, $crate::bst::build::Baseline>, }
                }
            }
        }
        {
            ident: occ_avl_2,
            name: "occ-avl-2",
            groups: ["bst"],
            caps: points,
            paper: "Bronson, Casper, Chafi and Olukotun, PPoPP 2010",
            topology: "partially external relaxed AVL tree",
            sync: "fine locks, optimistic lookups",
            progress: "deadlock-free; lookups wait for rotations alone",
            scans: "none",
            page: "bst/bronson",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: full, faults: points,
                    types: { u64_keys: $crate::BronsonTree<$crate::Pooled, $crate::bst::bronson::build::Fixed2>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: [],
                    runs: alias, faults: points,
                    types: { u64_keys: $crate::BronsonTree<$crate::Pooled, $crate::bst::bronson::build::Baseline2>, }
                }
                {
                    ident: ret, name: "ret", oversights: [],
                    runs: full, faults: points,
                    types: { u64_keys: $crate::BronsonTree<$crate::Pooled, $crate::bst::bronson::build::Restarting2>, }
                }
            }
        }
        {
            ident: log_int,
            name: "log-int",
            groups: ["bst"],
            caps: scans,
            paper: "Drachsler, Vechev and Yahav, PPoPP 2014",
            topology: "internal binary search tree",
            sync: "fine locks, ordered list",
            progress: "deadlock-free; lookups and scans wait for no thread",
            scans: "both ways, cursors",
            page: "bst/drachsler",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::DrachslerTree<$crate::Pooled, $crate::bst::build::Fixed>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: ["padding", "scattered fields"],
                    runs: suite, faults: scans,
                    types: { u64_keys: $crate::DrachslerTree<$crate::Pooled, $crate::bst::build::Baseline>, }
                }
            }
        }
        {
            ident: citrus,
            name: "citrus",
            groups: ["bst"],
            caps: points,
            paper: "Arbel and Attiya, PODC 2014",
            topology: "internal binary search tree",
            sync: "fine locks, RCU",
            progress: "deadlock-free; lookups wait for no thread, some removals wait for the descents under way",
            scans: "none",
            page: "bst/citrus",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: full, faults: points,
                    types: { u64_keys: $crate::CitrusTree<$crate::Pooled, $crate::bst::build::Fixed>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: ["lock of 40 bytes"],
                    runs: suite, faults: points,
                    types: { u64_keys: $crate::CitrusTree<$crate::Pooled, $crate::bst::build::Baseline>, }
                }
            }
        }
        {
            ident: int_lf,
            name: "int-lf",
            groups: ["bst"],
            caps: points,
            paper: "Howley and Jones, SPAA 2012",
            topology: "internal binary search tree",
            sync: "lock-free, descriptors",
            progress: "lock-free",
            scans: "none",
            page: "bst/howley",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: full, faults: points,
                    types: { u64_keys: $crate::HowleyTree<$crate::Pooled, $crate::bst::build::Fixed>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: ["padding"],
                    runs: suite, faults: points,
                    types: { u64_keys: $crate::HowleyTree<$crate::Pooled, $crate::bst::build::Baseline>, }
                }
            }
        }
        {
            ident: edge_int_lf,
            name: "edge-int-lf",
            groups: ["bst"],
            caps: points,
            paper: "Ramachandran and Mittal, ICDCN 2015",
            topology: "internal binary search tree",
            sync: "lock-free, marks on edges",
            progress: "lock-free",
            scans: "none",
            page: "bst/ramachandran",
            checked: "conformance suite, `check`, schedules, loom",
            max_key_bytes: None,
            builds: {
                {
                    ident: fixed, name: "fixed", oversights: [],
                    runs: full, faults: points,
                    types: { u64_keys: $crate::RamachandranTree<$crate::Pooled, $crate::bst::build::Fixed>, }
                }
                {
                    ident: baseline, name: "baseline", oversights: ["heavy traversal"],
                    runs: full, faults: points,
                    types: { u64_keys: $crate::RamachandranTree<$crate::Pooled, $crate::bst::build::Baseline>, }
                }
            }
        }
        {
            ident: skiplist, name: "skiplist", groups: ["default"], caps: scans,
            paper: "Pugh, CACM 1990; Herlihy and Shavit 2008; Fraser 2004",
            topology: "skip list, keys inline",
            sync: "lock-free",
            progress: "lock-free; lookups and scans wait for no thread",
            scans: "both ways, cursors",
            page: "skiplist",
            checked: "conformance suite, `check`, schedules, loom, hints by enumeration",
            max_key_bytes: None,
            builds: {
                {
                    ident: default, name: "default", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::SkipList<u64>, byte_keys: $crate::SkipList<[u8]>, }
                }
            }
        }
        {
            ident: art, name: "art", groups: ["default"], caps: ends,
            paper: "Leis, Kemper and Neumann, ICDE 2013; Leis, Scheibner, Kemper and Neumann, DaMoN 2016",
            topology: "adaptive radix tree",
            sync: "version locks, wait-free lookups",
            progress: "deadlock-free; lookups wait-free",
            scans: "both ways, cursors, first and last",
            page: "art",
            checked: "conformance suite, `check`, schedules",
            max_key_bytes: Some(512 << 10),
            builds: {
                {
                    ident: default, name: "default", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::ArtTree<u64>, u128_keys: $crate::ArtTree<u128>, byte_keys: $crate::ArtTree<[u8]>, }
                }
            }
        }
        {
            ident: patricia_2, name: "patricia-2", groups: ["patricia"], caps: scans,
            paper: "Repetti and Herlihy, Brown University; Morrison, JACM 1968",
            topology: "Patricia trie of 2 characters",
            sync: "lock teleportation validated in software, then hand-over-hand locks",
            progress: "deadlock-free", scans: "both ways, cursors", page: "patricia",
            checked: "conformance suite, `check`, schedules", max_key_bytes: Some(512 << 10),
            builds: {
                {
                    ident: compact, name: "compact", oversights: [], runs: stress, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Compact<2>>, }
                }
                {
                    ident: paper, name: "paper", oversights: [], runs: suite, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Paper<2>>, }
                }
            }
        }
        {
            ident: patricia_4, name: "patricia-4", groups: ["patricia"], caps: scans,
            paper: "Repetti and Herlihy, Brown University; Morrison, JACM 1968",
            topology: "Patricia trie of 4 characters",
            sync: "lock teleportation validated in software, then hand-over-hand locks",
            progress: "deadlock-free", scans: "both ways, cursors", page: "patricia",
            checked: "conformance suite, `check`, schedules", max_key_bytes: Some(512 << 10),
            builds: {
                {
                    ident: compact, name: "compact", oversights: [], runs: stress, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Compact<4>>, }
                }
                {
                    ident: paper, name: "paper", oversights: [], runs: stress, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Paper<4>>, }
                }
            }
        }
        {
            ident: patricia_16, name: "patricia-16", groups: ["patricia"], caps: scans,
            paper: "Repetti and Herlihy, Brown University; Morrison, JACM 1968",
            topology: "Patricia trie of 16 characters",
            sync: "lock teleportation validated in software, then hand-over-hand locks",
            progress: "deadlock-free", scans: "both ways, cursors", page: "patricia",
            checked: "conformance suite, `check`, schedules", max_key_bytes: Some(512 << 10),
            builds: {
                {
                    ident: compact, name: "compact", oversights: [], runs: full, faults: scans,
                    types: {
                        u64_keys: $crate::PatriciaTree<u64, $crate::Pooled, $crate::patricia::build::Compact<16>>,
                        u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Compact<16>>,
                        byte_keys: $crate::PatriciaTree<[u8], $crate::Pooled, $crate::patricia::build::Compact<16>>,
                    }
                }
                {
                    ident: paper, name: "paper", oversights: [], runs: full, faults: scans,
                    types: {
                        u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Paper<16>>,
                        byte_keys: $crate::PatriciaTree<[u8], $crate::Pooled, $crate::patricia::build::Paper<16>>,
                    }
                }
                {
                    ident: spin, name: "spin", oversights: [], runs: locked, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Compact<16>, $crate::patricia::policy::Spin>, }
                }
                {
                    ident: pthread, name: "pthread", oversights: [], runs: stress, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Compact<16>, $crate::patricia::policy::Pthread>, }
                }
                {
                    ident: adaptive, name: "adaptive", oversights: [], runs: stress, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Compact<16>, $crate::patricia::policy::Adaptive>, }
                }
                {
                    ident: rtm, name: "rtm", oversights: [], runs: stress, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Compact<16>, $crate::patricia::policy::Hardware>, }
                }
                {
                    ident: paper_spin, name: "paper-spin", oversights: [], runs: stress, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Paper<16>, $crate::patricia::policy::Spin>, }
                }
            }
        }
        {
            ident: patricia_256, name: "patricia-256", groups: ["patricia"], caps: scans,
            paper: "Repetti and Herlihy, Brown University; Morrison, JACM 1968",
            topology: "Patricia trie of 256 characters",
            sync: "lock teleportation validated in software, then hand-over-hand locks",
            progress: "deadlock-free", scans: "both ways, cursors", page: "patricia",
            checked: "conformance suite, `check`, schedules", max_key_bytes: Some(512 << 10),
            builds: {
                {
                    ident: compact, name: "compact", oversights: [], runs: stress, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Compact<256>>, }
                }
                {
                    ident: paper, name: "paper", oversights: [], runs: stress, faults: none,
                    types: { u128_keys: $crate::PatriciaTree<u128, $crate::Pooled, $crate::patricia::build::Paper<256>>, }
                }
            }
        }
        {
            ident: words, name: "words", groups: ["default"], caps: ends,
            paper: "Fagin, Nievergelt, Pippenger and Strong, TODS 1979; \
                    Binna, Zangerle, Pichl, Specht and Leis, SIGMOD 2018",
            topology: "directory over blocks of words",
            sync: "exchanges of values and keys, locks to make room, lookups that wait for no thread",
            progress: "deadlock-free; lookups and scans wait for no thread",
            scans: "both ways, cursors, first and last",
            page: "words",
            checked: "conformance suite, `check`, schedules",
            max_key_bytes: None,
            builds: {
                {
                    ident: default, name: "default", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::WordTree<u64>, u128_keys: $crate::WordTree<u128>, }
                }
            }
        }
        {
            ident: ca_tree, name: "ca-tree", groups: ["default"], caps: updates,
            paper: "Sagonas and Winblad, ISPDC 2015; Sagonas and Winblad, JPDC 2018",
            topology: "route nodes over base nodes with B⁺-trees, or with AVL trees",
            sync: "version locks that are split and joined by contention, optimistic lookups",
            progress: "deadlock-free",
            scans: "both ways, cursors, first and last; atomic ranges",
            page: "ca",
            checked: "conformance suite, `check`, schedules",
            max_key_bytes: Some(512 << 10),
            builds: {
                {
                    ident: default, name: "default", oversights: [],
                    runs: full, faults: scans,
                    types: {
                        u64_keys: $crate::CaTree<u64, $crate::Pooled, $crate::ca::build::Adaptive>,
                        u128_keys: $crate::CaTree<u128, $crate::Pooled, $crate::ca::build::Adaptive>,
                        byte_keys: $crate::CaTree<[u8], $crate::Pooled, $crate::ca::build::Adaptive>,
                    }
                }
                {
                    ident: coarse, name: "coarse", oversights: [], runs: suite, faults: none,
                    types: { u64_keys: $crate::CaTree<u64, $crate::Pooled, $crate::ca::build::Coarse>, }
                }
                {
                    ident: fine, name: "fine", oversights: [], runs: suite, faults: none,
                    types: { u64_keys: $crate::CaTree<u64, $crate::Pooled, $crate::ca::build::Fine>, }
                }
                {
                    ident: restless, name: "restless", oversights: [],
                    runs: suite, faults: scans,
                    types: {
                        u64_keys: $crate::CaTree<u64, $crate::Pooled, $crate::ca::build::Restless>,
                        byte_keys: $crate::CaTree<[u8], $crate::Pooled, $crate::ca::build::Restless>,
                    }
                }
                {
                    ident: avl, name: "avl", oversights: [], runs: locked, faults: scans,
                    types: { u64_keys: $crate::CaTree<u64, $crate::Pooled, $crate::ca::build::Avl>, }
                }
                {
                    ident: avl_coarse, name: "avl-coarse", oversights: [], runs: locked, faults: scans,
                    types: { u64_keys: $crate::CaTree<u64, $crate::Pooled, $crate::ca::build::AvlCoarse>, }
                }
                {
                    ident: avl_restless, name: "avl-restless", oversights: [], runs: locked, faults: none,
                    types: {
                        u64_keys: $crate::CaTree<u64, $crate::Pooled, $crate::ca::build::AvlRestless>,
                        byte_keys: $crate::CaTree<[u8], $crate::Pooled, $crate::ca::build::AvlRestless>,
                    }
                }
                {
                    ident: spin, name: "spin", oversights: [], runs: locked, faults: scans,
                    types: { u64_keys: $crate::CaTree<u64, $crate::Pooled, $crate::ca::build::Spin>, }
                }
            }
        }
        {
            ident: lfca_tree, name: "lfca-tree", groups: ["default"], caps: atomic,
            paper: "Winblad, Sagonas and Jonsson, SPAA 2018; Winblad, ICCSW 2017",
            topology: "route nodes over immutable base nodes with B⁺-trees",
            sync: "exchanges of base nodes that are split and joined by contention",
            progress: "lock-free, but for atomic ranges and pops; lookups and scans wait for no thread",
            scans: "both ways, cursors, first and last; atomic ranges",
            page: "lfca",
            checked: "conformance suite, `check`, schedules",
            max_key_bytes: Some(512 << 10),
            builds: {
                {
                    ident: default, name: "default", oversights: [],
                    runs: full, faults: scans,
                    types: {
                        u64_keys: $crate::LfcaTree<u64, $crate::Pooled, $crate::ca::build::Adaptive>,
                        u128_keys: $crate::LfcaTree<u128, $crate::Pooled, $crate::ca::build::Adaptive>,
                        byte_keys: $crate::LfcaTree<[u8], $crate::Pooled, $crate::ca::build::Adaptive>,
                    }
                }
                {
                    ident: restless, name: "restless", oversights: [],
                    runs: suite, faults: scans,
                    types: {
                        u64_keys: $crate::LfcaTree<u64, $crate::Pooled, $crate::ca::build::Restless>,
                        byte_keys: $crate::LfcaTree<[u8], $crate::Pooled, $crate::ca::build::Restless>,
                    }
                }
            }
        }
        {
            ident: blocks, name: "blocks", groups: ["default"], caps: ends,
            paper: "Binna, Zangerle, Pichl, Specht and Leis, SIGMOD 2018; Wu, Ni and Jiang, EuroSys 2019",
            topology: "trie of bits over blocks of entries",
            sync: "locks on blocks and copied nodes, wait-free lookups",
            progress: "deadlock-free; lookups wait-free",
            scans: "both ways, cursors, first and last",
            page: "blocks",
            checked: "conformance suite, `check`, schedules",
            max_key_bytes: Some(512 << 10),
            builds: {
                {
                    ident: default, name: "default", oversights: [],
                    runs: full, faults: scans,
                    types: { u64_keys: $crate::BlockTree<u64>, u128_keys: $crate::BlockTree<u128>, byte_keys: $crate::BlockTree<[u8]>, }
                }
                {
                    ident: prefixes, name: "prefixes", oversights: [],
                    runs: full, faults: scans,
                    types: { byte_keys: $crate::BlockTree<$crate::key::Prefixed<'static>>, }
                }
            }
        }
    } };
}
