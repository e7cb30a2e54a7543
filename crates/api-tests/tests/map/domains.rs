//! Maps that share a domain, as maps do by default, and maps with a domain of their own.

use silvics::{Domain, Map, Options, Pages};

/// The entries of a map that churns.
const ENTRIES: u64 = if cfg!(miri) { 50 } else { 2_000 };
const ROUNDS: u64 = if cfg!(miri) { 4 } else { 50 };

fn map(domain: &Domain) -> Map<u64, String> {
    let options =
        Options { domain: Some(domain.clone()), pages: Pages::Small, ..Options::default() };
    Map::with_options(&options).unwrap()
}

/// Replaces all entries of a map again and again, and returns the bytes that it holds then.
fn churn(map: &Map<u64, String>) -> usize {
    for round in 0..ROUNDS {
        map.extend((0..ENTRIES).map(|key| (key, format!("value {key} of round {round}"))));
        map.flush();
    }
    map.bytes()
}

/// The docs of `Builder::domain` state this growth: a map holds all that it has removed since the
/// oldest pin of its domain.
#[test]
fn a_pin_holds_back_what_other_maps_of_its_domain_remove() {
    let (shared, own) = (Domain::new(), Domain::new());
    let (pinned, beside, apart) = (map(&shared), map(&shared), map(&own));
    let usual = churn(&beside);
    assert!(churn(&beside) <= usual + usual / 4, "without a pin, memory follows the live entries");
    let view = pinned.pin();
    let (grown, unmoved) = (churn(&beside), churn(&apart));
    let removed = (ROUNDS * ENTRIES) as usize * size_of::<String>();
    assert!(grown > usual + removed / 2, "{grown} bytes, {usual} before the pin");
    assert!(grown < usual + 4 * removed, "{grown} bytes, {usual} before the pin");
    assert!(unmoved <= usual + usual / 4, "{unmoved} bytes in a domain of its own");
    drop(view);
    (0..20).for_each(|_| beside.flush()); // each runs some batches
    let again = churn(&beside);
    assert!(again <= grown + usual / 4, "what the pin held back is used again: {again} of {grown}");
    beside.shrink();
    assert!(beside.bytes() < grown / 2, "or it is returned: {} of {grown}", beside.bytes());
}
