//! The advice as Rust. `crates/api-tests/tests/advised` has the lines that can be given, each
//! change of a part by itself, so that the compiler checks them. The test below writes it.

use super::candidates::{Candidate, Need, usual_place};
use super::plan::Plan;
use crate::flags::place::Place;
use crate::flags::types::KeyType;
use silvics::{Counting, Pages};
use silvics_workload::Op;
use std::fmt::Write as _;

/// The three lines that make and use the index of a candidate: the imports, the map, a call.
pub fn lines(candidate: &Candidate, plan: &Plan) -> [String; 3] {
    let key_type = plan.key_type;
    let is_atomic = plan.needs.contains(&Need::AtomicRanges);
    let key = match key_type {
        KeyType::U64 => "u64",
        KeyType::U128 => "u128",
        KeyType::Bytes | KeyType::String => "Vec<u8>",
    };
    let mut used = Vec::new();
    let map = match &candidate.chosen.name()[..] {
        "ordmap:function" => {
            used.extend(["OrdMap", "Options"]);
            let order = format!("|a: &{key}, b: &{key}| b.cmp(a)");
            let options = options(candidate, &mut used);
            format!("OrdMap::<{key}, u64, _>::with_options({order}, &{options})?")
        }
        "versioned" => {
            used.extend(["VersionedMap", "Options", "versions::Retain"]);
            let options = options(candidate, &mut used);
            format!("VersionedMap::<{key}, u64>::with_options(&{options}, Retain::default())?")
        }
        // Its keys are not those of a map: it is used as an index.
        "blocks:prefixes" => {
            used.extend(["BlockTree", "Options", "key::Prefixed"]);
            let options = options(candidate, &mut used);
            if candidate.place == Place::Shared {
                used.push("Shared");
                format!("BlockTree::<Prefixed, Shared>::with_options(&{options})?")
            } else {
                format!("BlockTree::<Prefixed>::with_options(&{options})?")
            }
        }
        "multimap" => {
            used.extend(["Map", "MultiMap"]);
            let built = built(candidate, key_type, key, &mut used);
            format!("{built}.build_multi()?")
        }
        // A map has no atomic ranges: the structure is used as an index.
        _ if is_atomic => {
            let options = options(candidate, &mut used);
            used.push("Options");
            format!("<{}>::with_options(&{options})?", placed(candidate, key_type))
        }
        _ => {
            used.push("Map");
            format!("{}.build()?", built(candidate, key_type, key, &mut used))
        }
    };
    used.sort_unstable();
    let used = match &used[..] {
        [one] => (*one).to_owned(),
        several => format!("{{{}}}", several.join(", ")),
    };
    let call = if candidate.batch > 1 {
        let is_index = is_atomic || candidate.chosen.name() == "blocks:prefixes";
        format!(
            "let view = map.pin(); {} // {} keys a call",
            calls(plan, is_index),
            candidate.batch
        )
    } else if is_atomic {
        "let view = map.pin(); // `view.collect_range(from..to)?` is atomic".into()
    } else {
        "let view = map.pin(); // for many calls".into()
    };
    let typed = if candidate.chosen.name() == "multimap" {
        format!("let map: MultiMap<{key}, u64> = {map};")
    } else {
        format!("let map = {map};")
    };
    [format!("use silvics::{used};"), typed, call]
}

/// The calls of many keys that the operations of a plan make.
fn calls(plan: &Plan, is_index: bool) -> String {
    let makes = |op| plan.mix.share(op) > 0;
    let mut calls = Vec::new();
    if makes(Op::Lookup) {
        calls.push("view.get_many(&keys, &mut found);");
    }
    if makes(Op::Insert) || makes(Op::Upsert) {
        calls.push(if is_index {
            "view.insert_many(&entries, &mut replaced)?;"
        } else {
            "view.insert_many(entries);"
        });
    }
    calls.join(" ")
}

/// The type of a structure in its place.
fn placed(candidate: &Candidate, key_type: KeyType) -> String {
    let index = candidate.chosen.variant.rust.and_then(|rust| rust(key_type)).unwrap_or_default();
    let plain: String = index.split_whitespace().collect();
    path(&if candidate.place == Place::Shared {
        plain.replace("::Pooled", "::Shared")
    } else {
        plain
    })
}

/// The builder of a map.
fn built(
    candidate: &Candidate,
    key_type: KeyType,
    key: &str,
    used: &mut Vec<&'static str>,
) -> String {
    let mut map = format!("Map::<{key}, u64>::builder()");
    if !candidate.has_usual_structure()
        && let Some(index) = candidate.chosen.variant.rust.and_then(|rust| rust(key_type))
    {
        _ = write!(map, ".index::<{}>()", path(index));
    }
    if candidate.chosen.name() == "map:counted" {
        map.push_str(".counted()");
    }
    if candidate.place == Place::Shared {
        used.push("Shared");
        map.push_str(".placement(Shared)");
    } else if candidate.place != usual_place() {
        used.push("Pages");
        _ = write!(map, ".pages(Pages::{})", pages(candidate.place));
    }
    if candidate.counting == Counting::Single {
        used.push("Counting");
        map.push_str(".counting(Counting::Single)");
    }
    map
}

/// The options of a map that has no builder.
fn options(candidate: &Candidate, used: &mut Vec<&'static str>) -> String {
    let mut fields = Vec::new();
    if candidate.place.is_pooled() && candidate.place != usual_place() {
        used.push("Pages");
        fields.push(format!("pages: Pages::{}", pages(candidate.place)));
    }
    if candidate.counting == Counting::Single {
        used.push("Counting");
        fields.push("counting: Counting::Single".into());
    }
    if fields.is_empty() {
        return "Options::default()".into();
    }
    format!("Options {{ {}, ..Options::default() }}", fields.join(", "))
}

fn pages(place: Place) -> &'static str {
    match place {
        Place::Pooled(Pages::Small, _) => "Small",
        Place::Pooled(Pages::HugeTlb, _) => "HugeTlb",
        _ => "Thp",
    }
}

/// A type of the table of structures as a program names it: with the crate's name instead of the
/// macro's, and without the usual placement at the end.
fn path(index: &str) -> String {
    let plain: String = index.split_whitespace().collect();
    let named = plain.replace("$crate::", "silvics::");
    let placed = named.replace(",silvics::Pooled>", ">").replace("<silvics::Pooled>", "");
    placed.replace(',', ", ")
}

#[cfg(test)]
mod tests {
    use super::super::candidates;
    use super::*;
    use crate::flags::advise::AdviseArgs;
    use crate::flags::args::Cli;
    use clap::Parser;
    use std::collections::BTreeSet;

    fn plan(key_type: &str, needs: &str, mix: &str) -> Plan {
        let mut flags = vec!["silvics", "advise", "--key-type", key_type, "--batch", "64"];
        flags.extend(["--mix", mix]);
        if !needs.is_empty() {
            flags.extend(["--needs", needs]);
        }
        let crate::flags::args::Verb::Advise(args) = Cli::try_parse_from(flags).unwrap().verb
        else {
            unreachable!("the verb is advise")
        };
        let args: &AdviseArgs = &args;
        Plan::new(args, 2).unwrap()
    }

    /// A test for each line that can be given.
    fn file() -> String {
        let mut bodies = BTreeSet::new();
        let needs = ["", "order", "ranks", "snapshots", "values", "atomic-ranges"];
        assert!(needs[1..].iter().all(|name| Need::parse(name).is_ok()));
        let mixes = ["100/0/0", "0/50/50", "90/5/5"];
        for key_type in ["u64", "u128", "bytes"] {
            for (need, mix) in needs.into_iter().flat_map(|need| mixes.map(|mix| (need, mix))) {
                let plan = plan(key_type, need, mix);
                let usual = candidates::structures(&plan).unwrap();
                let changed = usual.iter().flat_map(|candidate| candidate.neighbours(&plan));
                for candidate in changed.chain(usual.iter().copied()) {
                    if candidate.batch > 1 && candidate.batch < 64 {
                        continue; // as with 64
                    }
                    let lines = lines(&candidate, &plan);
                    let keys = match plan.key_type {
                        KeyType::U64 => "[1_u64, 2]",
                        KeyType::U128 => "[1_u128, 2]",
                        _ if candidate.chosen.name() == "blocks:prefixes" => {
                            "[Prefixed::from(\"a\"), Prefixed::from(\"b\")]"
                        }
                        _ if need == "atomic-ranges" => "[&b\"a\"[..], b\"b\"]",
                        _ => "[vec![1_u8], vec![2]]",
                    };
                    let is_atomic = need == "atomic-ranges";
                    bodies.insert(body(&lines, keys, is_atomic));
                }
            }
        }
        let mut text = String::from(
            "// Written by `SILVICS_WRITE=1 cargo test -p silvics-cli --bin silvics advised_lines`.\n",
        );
        for (at, body) in bodies.iter().enumerate() {
            _ = write!(
                text,
                "\n#[test]\n#[rustfmt::skip]\nfn advised_{at:03}() -> Result {{\n{body}    Ok(())\n}}\n"
            );
        }
        text
    }

    fn body([used, map, call]: &[String; 3], keys: &str, is_atomic: bool) -> String {
        let mut body = format!("    {used}\n    {map}\n");
        for (used, value) in [
            ("&keys", format!("keys = {keys}")),
            ("&mut found", "mut found = [None, None]".into()),
            ("entries", format!("entries = {keys}.map(|key| (key, 1_u64))")),
            ("&mut replaced", "mut replaced = [None, None]".into()),
        ] {
            if call.contains(used) {
                _ = writeln!(body, "    let {value};");
            }
        }
        _ = writeln!(body, "    {call}\n    let _ = &view;");
        if call.contains("found") {
            body.push_str("    assert!(found[0].is_none());\n");
        }
        if call.contains("replaced") {
            body.push_str("    assert_eq!(replaced, [None, None]);\n");
        } else if call.contains("entries") {
            body.push_str("    assert_eq!(map.len(), 2);\n");
        }
        if is_atomic {
            let count = if call.contains("entries") { 2 } else { 0 };
            _ = writeln!(body, "    assert_eq!(view.collect_range(..)?.len(), {count});");
        }
        body
    }

    #[test]
    fn advised_lines_are_those_that_are_compiled() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../api-tests/tests/advised/lines.in");
        let text = file();
        if std::env::var_os("SILVICS_WRITE").is_some() {
            std::fs::write(path, &text).unwrap();
        }
        let there = std::fs::read_to_string(path).unwrap_or_default();
        let remedy =
            "run this test with SILVICS_WRITE=1, and then `cargo test -p silvics-api-tests`";
        assert!(there == text, "crates/api-tests/tests/advised/lines.in is stale: {remedy}");
    }

    #[test]
    fn types_are_named_as_programs_name_them() {
        let named =
            path("$crate :: CaTree < u64, $crate :: Pooled, $crate :: ca :: build :: Avl >");
        assert_eq!(named, "silvics::CaTree<u64, silvics::Pooled, silvics::ca::build::Avl>");
        assert_eq!(path("$crate::ArtTree<u64, $crate::Pooled>"), "silvics::ArtTree<u64>");
        assert_eq!(path("$crate::TicketTree<$crate::Pooled>"), "silvics::TicketTree");
    }
}
