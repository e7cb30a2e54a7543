//! A table with a secondary index, kept consistent without a lock over both:
//! `cargo run --release -p silvics --example secondary_index`.
//!
//! A map holds rows by number, and a multimap from cities to numbers finds the rows of a city. The
//! row decides: an entry of the multimap only says where to look, and counts if the row agrees. So
//! a stale entry does no harm. Writers make sure that no entry is missing: a thread that puts a row
//! adds its entry afterwards, and a thread that removes an entry looks at the row afterwards. The
//! numbers of a city are read as they were at one moment.

use silvics::map::{Compute, Operation};
use silvics::{Map, MultiMap};

#[derive(Clone, Debug, PartialEq)]
struct Person {
    name: String,
    city: String,
}

#[derive(Default)]
struct People {
    rows: Map<u64, Person>,
    by_city: MultiMap<String, u64>,
}

impl People {
    fn put(&self, number: u64, person: Person) {
        let (rows, city) = (self.rows.pin(), person.city.clone());
        let old = rows.insert(number, person);
        self.by_city.insert(&city, number);
        if let Some(old) = old
            && old.city != city
        {
            self.forget(&old.city, number);
        }
    }

    fn remove(&self, number: u64) {
        if let Some(old) = self.rows.remove(number) {
            self.forget(&old.city, number);
        }
    }

    /// Removes an entry, and adds it again if the row has returned to the city meanwhile.
    fn forget(&self, city: &str, number: u64) {
        self.by_city.remove(city, &number);
        let lives_there =
            |person: Option<&Person>| person.is_some_and(|person| person.city == city);
        let look = |person: Option<&Person>| Operation::Abort(lives_there(person));
        if let Compute::Aborted(true) = self.rows.pin().compute(number, look) {
            self.by_city.insert(city, number);
        }
    }

    fn of_city(&self, city: &str) -> Vec<(u64, String)> {
        let (index, rows) = (self.by_city.pin(), self.rows.pin());
        let numbers = index.values(city).map(|number| *number);
        let people = numbers.filter_map(|number| Some((number, rows.get(number)?)));
        people
            .filter(|(_, person)| person.city == city)
            .map(|(number, person)| (number, person.name.clone()))
            .collect()
    }
}

fn main() {
    let people = People::default();
    let cities = ["Bern", "Oslo", "Rome"];
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let people = &people;
            scope.spawn(move || {
                for round in 0..30_000u64 {
                    let (number, city) = (round % 1000, cities[((round + thread) % 3) as usize]);
                    if round % 10 == 9 {
                        people.remove(number);
                    } else {
                        let name = format!("{number}");
                        people.put(number, Person { name, city: city.into() });
                    }
                }
            });
        }
    });
    let found: usize = cities.iter().map(|city| people.of_city(city).len()).sum();
    assert_eq!(found, people.rows.len(), "every row is found by its city");
    for city in cities {
        println!("{city}: {} people", people.of_city(city).len());
    }
}
