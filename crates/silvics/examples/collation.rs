//! Names in the order of a language, which is chosen at run time: `ä` is a letter of its own behind
//! `z` in Swedish, and sorts with `a` in German. The crate `icu_collator` compares.
//!
//! An order may call two different strings equal, as this one does with capitals. The map holds the
//! key that was inserted first.

use icu_collator::options::{CollatorOptions, Strength};
use icu_collator::{Collator, CollatorBorrowed};
use icu_locale_core::{Locale, locale};
use silvics::OrdMap;
use silvics::ord::OnBorrowed;
use std::cmp::Ordering;
use std::error::Error;
use std::ops::Bound::{Included, Unbounded};

/// An order of texts.
type Order = Box<dyn Fn(&str, &str) -> Ordering + Send + Sync>;
/// A directory: telephone numbers by name. Lookups take a `&str`.
type Directory = OrdMap<String, u32, OnBorrowed<str, Order>>;

/// An empty directory in the order of a language, in which capitals are equal to small letters.
fn directory(language: Locale) -> Result<Directory, Box<dyn Error>> {
    let mut options = CollatorOptions::default();
    options.strength = Some(Strength::Secondary);
    let collator: CollatorBorrowed<'static> = Collator::try_new(language.into(), options)?;
    let order: Order = Box::new(move |a, b| collator.compare(a, b));
    Ok(OrdMap::ordered_by(OnBorrowed::new(order)))
}

fn main() -> Result<(), Box<dyn Error>> {
    let names = ["Zander", "Ärlig", "Adler", "Öman", "Åberg", "Olsson"];
    for (language, expected) in [
        (locale!("de"), ["Åberg", "Adler", "Ärlig", "Olsson", "Öman", "Zander"]),
        (locale!("sv"), ["Adler", "Olsson", "Zander", "Åberg", "Ärlig", "Öman"]),
    ] {
        let title = language.to_string();
        let directory = directory(language)?;
        std::thread::scope(|scope| {
            for (number, name) in (100..).zip(names) {
                let directory = &directory;
                scope.spawn(move || {
                    directory.insert(name.to_string(), number);
                });
            }
        });
        // Equal in this order: the number is replaced, and the name stays.
        assert_eq!(directory.insert("ADLER".to_string(), 7).as_deref(), Some(&102));

        let view = directory.pin();
        let sorted: Vec<&str> =
            view.iter().filter_map(|(name, _)| name.into_ref()).map(String::as_str).collect();
        assert_eq!(sorted, expected);
        assert_eq!(view.get("adler").as_deref(), Some(&7));
        let from_o = view.range::<str, _>((Included("o"), Unbounded)).count();
        println!("{title}: {sorted:?}, {from_o} of them from O on");
    }
    Ok(())
}
