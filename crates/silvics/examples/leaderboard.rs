//! A leaderboard: players by score, with their ranks, pages of the list, and percentiles.
//!
//! The map is keyed by score and player, the best score first. It counts its keys, so the place of
//! a player, the player at a place, and the number of players within a range of scores are found
//! without a walk over the players before.

use silvics::{CountedMap, Map};
use std::cmp::Reverse;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The best score first; players with the same score by their numbers.
type Place = (Reverse<u32>, u32);

/// The players in the order of their scores, and the score of each player.
#[derive(Default)]
struct Leaderboard {
    places: CountedMap<Place, ()>,
    scores: Map<u32, u32>,
}

impl Leaderboard {
    /// Gives a player a score. A player is written by one thread at a time.
    fn set(&self, player: u32, score: u32) {
        let before = self.scores.insert(player, score);
        self.places.insert((Reverse(score), player), ());
        if let Some(before) = before.filter(|before| **before != score) {
            self.places.remove((Reverse(*before), player));
        }
    }

    /// The place of a player, from 1 on.
    fn place(&self, player: u32) -> Option<usize> {
        let score = *self.scores.get(player)?;
        Some(1 + self.places.rank((Reverse(score), player)))
    }

    /// The players at some places, from 1 on, with their scores.
    fn page(&self, places: std::ops::Range<usize>) -> Vec<(u32, u32)> {
        let view = self.places.pin();
        let Some((first, ())) =
            view.nth(places.start.saturating_sub(1)).map(|(key, value)| (key, *value))
        else {
            return Vec::new();
        };
        let page = view.range(first..).take(places.len());
        page.map(|((score, player), _)| (player, score.0)).collect()
    }

    /// The number of players with at least a score.
    fn with_at_least(&self, score: u32) -> usize {
        self.places.count(..=(Reverse(score), u32::MAX))
    }

    /// The score that a share of the players does not reach, in percent.
    fn percentile(&self, percent: usize) -> Option<u32> {
        let number = self.places.len() * (100 - percent) / 100;
        self.places.nth(number).map(|((score, _), _)| score.0)
    }
}

fn main() {
    const PLAYERS: u32 = 50_000;
    let board = Leaderboard::default();
    let score =
        |player: u32, round: u32| (player.wrapping_mul(2_654_435_761) >> 8) % 10_000 + round;
    for player in 0..PLAYERS {
        board.set(player, score(player, 0));
    }
    assert_eq!(board.with_at_least(0), PLAYERS as usize);

    // Two threads play on, while a third one looks at the list.
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writers = [0, 1].map(|thread| {
            let board = &board;
            scope.spawn(move || {
                for player in (thread..PLAYERS).step_by(2) {
                    board.set(player, score(player, 1 + player % 50));
                }
            })
        });
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let page = board.page(1..11);
                assert!(page.is_sorted_by(|(_, a), (_, b)| a >= b), "{page:?}");
            }
        });
        for writer in writers {
            writer.join().expect("a writer does not panic");
        }
        done.store(true, Ordering::Relaxed);
    });

    let podium = board.page(1..4);
    for (number, (player, score)) in podium.iter().enumerate() {
        println!("{}. player {player} with {score}", number + 1);
        assert_eq!(board.place(*player), Some(number + 1));
    }
    let best = podium[0].1;
    assert_eq!(board.with_at_least(best + 1), 0);
    println!("half of the players have {} or more", board.percentile(50).expect("players"));
    println!("player 7 is at place {} of {}", board.place(7).expect("a player"), PLAYERS);
    // Without writers, all of these agree.
    let last = board.page(PLAYERS as usize..PLAYERS as usize + 1);
    assert_eq!(last.len(), 1);
    assert_eq!(board.place(last[0].0), Some(PLAYERS as usize));
}
