"""A leaderboard: ranks, pages, a prefix, arrays, and a limit on memory."""

import random
from concurrent.futures import ThreadPoolExecutor

from silvics import ABSENT, LimitError, Map

scores = Map(keys=str, values=int)


def report(player, points):
    """Add points to a player's score. Threads lose no points."""
    while True:
        old = scores.get(player, ABSENT)
        new = points if old is ABSENT else old + points
        if scores.compare_exchange(player, old, new):
            return  # else another thread was faster


def play(seed):
    """Report points of random players, and return their sum."""
    rng, total = random.Random(seed), 0
    for _ in range(500):
        points = rng.randrange(100)
        report(f"player {rng.randrange(300):03}", points)
        total += points
    return total


with ThreadPoolExecutor(4) as threads:
    total = sum(threads.map(play, range(4)))
assert sum(scores.values()) == total

# The best score comes first, so a key begins with the negative score. Each position of a tuple has
# one type in all keys.
board = Map(keys=tuple)
board.update(((-score, player), None) for player, score in scores.items())

print("the best three:")
for score, player in board.islice(0, 3):
    print(f"  {player}: {-score}")

player = "player 042"
rank = board.bisect_left((-scores[player], player))
print(f"{player} has rank {rank + 1} of {len(board)}")
above, below = board.keys()[max(0, rank - 1)], board.keys()[min(rank + 1, len(board) - 1)]
print(f"  between {above[1]} and {below[1]}")
print("players 10 to 19:", len(list(scores.prefix("player 01"))))

# Measurements: numbers are stored in the map itself, and ranges are arrays.
series = Map(keys=float, values=float)
series.insert_many([at / 10 for at in range(10_000)], [at % 7 for at in range(10_000)])
try:
    times, values = series.arrays(100.0, 200.0, (True, False))
except TypeError as error:
    print("no arrays:", error)
else:
    print(f"{len(times)} measurements from {times[0]} to {times[-1]}, mean {values.mean():.3f}")

# A cache that may hold one mebibyte forgets its smallest keys.
cache = Map(keys=int, memory_limit=1 << 20)
forgotten = 0
for key in range(100_000):
    try:
        cache[key] = key
    except LimitError:
        for _ in range(1000):
            cache.popitem(0)
            forgotten += 1
        cache.shrink()
        cache[key] = key
print(f"the cache holds {len(cache)} entries in {cache.bytes} bytes; it forgot {forgotten}")
assert cache.check() == len(cache) and cache.bytes <= 1 << 20
