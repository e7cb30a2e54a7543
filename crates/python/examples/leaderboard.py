"""A leaderboard: ranks, pages, a prefix, arrays, and a limit on memory."""

import random

from silvics import ABSENT, LimitError, Map

random.seed(1)

# The best score comes first, so a key begins with the negative score. Each position of a tuple has
# one type in all keys.
board = Map(keys=tuple)
scores = Map(keys=str, values=int)


def report(player, points):
    """Add points to a player's score."""
    old = scores.get(player, 0)
    while not scores.compare_exchange(player, scores.get(player, ABSENT), old + points):
        old = scores.get(player, 0)  # another thread was faster
    board.pop((-old, player), None)
    board[-(old + points), player] = None


for _ in range(2000):
    report(f"player {random.randrange(300):03}", random.randrange(100))

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
