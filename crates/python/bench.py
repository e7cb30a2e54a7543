"""Measure `silvics.Map` beside `sortedcontainers.SortedDict`.

Each row runs both sides in alternation (A B B A), and prints the medians and their ratio. Each row
also compares the answers of both sides. Run it on an idle machine:

    python bench.py            # a million keys, about a minute
    python bench.py --quick    # fewer keys and rounds: it checks answers, and its times mean little
"""

import argparse
import random
import statistics
import sys
import time

import numpy
from sortedcontainers import SortedDict

import silvics


def timed(call):
    """Run a call, and return its result and its seconds."""
    begin = time.perf_counter()
    result = call()
    return result, time.perf_counter() - begin


class Table:
    """The rows that were measured."""

    def __init__(self, rounds):
        self.rounds = rounds
        self.rows = []

    def row(self, name, ours, theirs, target, count):
        """Measure two calls in alternation, and compare their results."""
        mine, others = [], []
        for _ in range(self.rounds):
            for side in "ABBA":
                result, seconds = timed(ours if side == "A" else theirs)
                if side == "A":
                    mine.append(seconds)
                    answer = result
                else:
                    others.append(seconds)
                    wanted = result
            if not same(answer, wanted):
                sys.exit(f"{name}: the answers differ")
        mine, others = statistics.median(mine), statistics.median(others)
        ratio = others / mine
        scale = 1e9 / count
        self.rows.append((name, mine * scale, others * scale, ratio, target))

    def print(self):
        """Print the rows as a table."""
        print("| row | silvics, ns | other side, ns | ratio | target |")
        print("|---|---|---|---|---|")
        for name, mine, others, ratio, target in self.rows:
            missed = ", missed" if target and ratio < target else ""
            bar = f"≥ {target}{missed}" if target else "–"
            print(f"| {name} | {mine:.0f} | {others:.0f} | {ratio:.2f} | {bar} |")


def same(one, two):
    """Whether two answers are equal; an array is equal to a list of its elements."""
    if isinstance(one, numpy.ndarray) or isinstance(two, numpy.ndarray):
        return numpy.array_equal(numpy.asarray(one), numpy.asarray(two))
    return one == two


def lookups(m, keys):
    """Look up keys one by one."""

    def call():
        total = 0
        for key in keys:
            total += m[key]
        return total

    return call


def gets(m, keys):
    """Look up keys one by one with `get`, into a list."""

    def call():
        get = m.get
        return [get(key) for key in keys]

    return call


def inserts(make, keys):
    """Insert new keys into an empty map."""

    def call():
        m = make()
        for key in keys:
            m[key] = key
        return len(m)

    return call


def ranges(m, bounds):
    """Iterate over ranges of keys."""

    def call():
        total = 0
        for low, high in bounds:
            for key in m.irange(low, high):
                total += key
        return total

    return call


def lists(m, bounds):
    """Collect ranges of keys in lists."""

    def call():
        return sum(len(list(m.irange(low, high))) for low, high in bounds)

    return call


def arrays(m, bounds):
    """Collect ranges of keys in arrays."""

    def call():
        return sum(len(m.keys_array(low, high)) for low, high in bounds)

    return call


def measure(table, size, draw, lookup_count, targets):
    """Measure maps of one size."""
    keys = list({draw() for _ in range(size)})
    random.shuffle(keys)
    label = f"{size:,} keys"
    mine, other = silvics.Map(), SortedDict()
    for key in keys:
        mine[key] = key
    other.update((key, key) for key in keys)
    probes = [random.choice(keys) for _ in range(lookup_count)]
    table.row(f"`m[k]`, {label}", lookups(mine, probes), lookups(other, probes), targets["get"], len(probes))
    ordered = sorted(keys)
    width = min(1000, size)
    starts = [random.randrange(len(ordered) - width + 1) for _ in range(max(1, lookup_count // 1000))]
    bounds = [(ordered[start], ordered[start + width - 1]) for start in starts]
    count = len(bounds) * width
    name = f"`irange` of {width:,} keys, {label}"
    table.row(name, ranges(mine, bounds), ranges(other, bounds), targets["irange"], count)
    table.row(name + ", as lists", lists(mine, bounds), lists(other, bounds), targets["irange"], count)
    if "array" in targets:
        name = f"`keys_array` of {width:,} keys beside a list of `irange`, {label}"
        table.row(name, arrays(mine, bounds), lists(other, bounds), targets["array"], count)
    if "insert" in targets:
        name = f"inserting new keys, {label}"
        table.row(name, inserts(silvics.Map, keys), inserts(SortedDict, keys), targets["insert"], size)
    if "many" in targets:
        array = numpy.array(probes, dtype=numpy.int64)
        numbers = silvics.Map(keys=int, values=int)
        numbers.insert_many(numpy.array(keys, dtype=numpy.int64), numpy.array(keys, dtype=numpy.int64))
        for name, m in (("objects", mine), ("numbers", numbers)):
            name = f"`get_many` of an array beside a loop of `get`, {name}, {label}"
            table.row(name, lambda m=m: m.get_many(array), gets(m, probes), targets["many"], len(probes))


def replaces(m, keys):
    """Remove keys and insert them again."""

    def call():
        for key in keys:
            m[key] = m.pop(key)
        return len(m)

    return call


def bisects(m, keys):
    """Count the smaller keys."""

    def call():
        return sum(m.bisect_left(key) for key in keys)

    return call


def measure_others(table, size, lookup_count):
    """Measure other calls and other keys, which have no target."""
    label = f"{size:,} keys"
    numbers = random.sample(range(size * 10), size)
    for kind, keys in (
        ("int", numbers),
        ("str", [f"user/{number:09}" for number in numbers]),
        ("tuple", [(f"user {number % 100}", number) for number in numbers]),
    ):
        mine, other = silvics.Map(zip(keys, numbers)), SortedDict(zip(keys, numbers))
        probes = [random.choice(keys) for _ in range(lookup_count)]
        if kind != "int":
            name = f"`m[k]`, keys of type {kind}, {label}"
            table.row(name, lookups(mine, probes), lookups(other, probes), "", len(probes))
        name = f"all keys as a list, {kind}, {label}"
        table.row(name, lambda: list(mine), lambda: list(other), "", size)
        name = f"all items as a list, {kind}, {label}"
        table.row(name, lambda: list(mine.items()), lambda: list(other.items()), "", size)
        if kind == "int":
            probes = probes[: lookup_count // 4]
            name = f"`bisect_left`, {label}"
            table.row(name, bisects(mine, probes), bisects(other, probes), "", len(probes))
            name = f"`m[k] = m.pop(k)`, {label}"
            table.row(name, replaces(mine, probes), replaces(other, probes), "", len(probes))


def main():
    """Measure all rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer keys and rounds")
    quick = parser.parse_args().quick
    random.seed(1)

    def draw():
        return random.getrandbits(62) - 2**61

    table = Table(1 if quick else 5)
    small = {"get": 0.4, "irange": 0.4}
    large = {"get": 1.3, "irange": 0.9, "array": 3, "insert": 3, "many": 4}
    measure(table, 1000, draw, 2_000 if quick else 200_000, small)
    measure(table, 20_000 if quick else 1_000_000, draw, 2_000 if quick else 200_000, large)
    measure_others(table, 1000, 2_000 if quick else 100_000)
    measure_others(table, 10_000 if quick else 200_000, 2_000 if quick else 100_000)
    table.print()


if __name__ == "__main__":
    main()
