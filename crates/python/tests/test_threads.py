"""Threads: bulk calls without the GIL beside threads that read and write."""

import gc
import os
import pathlib
import random
import sys
import threading
import time
import weakref

import pytest

from silvics import ABSENT, Map

numpy = pytest.importorskip("numpy")

SECONDS = float(os.environ.get("SILVICS_TEST_SECONDS", "1"))


def run(*workers):
    """Run workers until the time is over, and raise what they raise."""
    stop, errors = time.monotonic() + SECONDS, []

    def loop(worker, seed):
        rng = random.Random(seed)
        try:
            while time.monotonic() < stop and not errors:
                worker(rng)
        except BaseException as error:
            errors.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    threads = [threading.Thread(target=loop, args=(worker, at)) for at, worker in enumerate(workers)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    if errors:
        raise errors[0]


class Tagged:
    """A value that knows its key, and counts the living ones."""

    alive = 0
    __slots__ = ("key", "stamp", "__weakref__")

    def __init__(self, key):
        self.key, self.stamp = key, "alive"
        Tagged.alive += 1

    def __del__(self):
        self.stamp = "dead"
        Tagged.alive -= 1


@pytest.mark.parametrize("form", [int, "key {:06}".format], ids=["int", "str"])
def test_bulk_calls_beside_removals(form, structure):
    if form is not int and structure == "edge-ext-lf":
        pytest.skip("this structure takes numbers only")
    Tagged.alive = 0
    size = 3000
    keys = [form(at) for at in range(size)]
    m = Map({key: Tagged(key) for key in keys}, structure=structure)
    probes = numpy.arange(size) if form is int else keys

    def read(_):
        for key, value in zip(keys, m.get_many(probes)):
            assert value is None or value.key == key and value.stamp == "alive"

    def write(rng):
        for _ in range(300):
            key = rng.choice(keys)
            if rng.random() < 0.5:
                m.pop(key, None)
            else:
                m[key] = Tagged(key)

    def write_many(rng):
        some = rng.sample(keys, 1000)
        m.insert_many(some, [Tagged(key) for key in some])

    def scan(_):
        for key, value in m.items():
            assert value.key == key and value.stamp == "alive"

    def collect(_):
        gc.collect()
        time.sleep(0.01)

    run(read, read, write, write_many, scan, collect)
    gc.collect()
    assert m.check() == len(m)
    assert Tagged.alive == len(m)
    m.clear()
    assert Tagged.alive == 0


def test_clear_beside_bulk_calls():
    keys = list(range(5000))
    m = Map()

    def fill(_):
        m.insert_many(keys, [[key] for key in keys])

    def clear(_):
        m.clear()
        time.sleep(0.001)

    def read(_):
        for key, value in zip(keys, m.get_many(keys)):
            assert value is None or value == [key]

    run(fill, fill, clear, read)
    assert m.check() == len(m)


def test_arrays_beside_writers():
    m = Map(keys=int, values=int)
    fixed = numpy.arange(0, 20_000, 2)
    m.insert_many(fixed, fixed)

    def read(_):
        keys, values = m.arrays()
        assert (numpy.diff(keys) > 0).all() and (keys == values).all()
        assert numpy.isin(fixed, keys).all()

    def write(rng):
        odd = numpy.array(rng.sample(range(1, 20_000, 2), 1000))
        m.insert_many(odd, odd)
        for key in odd[:500].tolist():
            m.pop(key, None)

    run(read, read, write, write)
    assert m.check() == len(m)


def test_compare_exchange_counts():
    m = Map({"n": 0})
    done = [0, 0, 0, 0]

    def adder(at):
        def add(_):
            old = m["n"]
            done[at] += m.compare_exchange("n", old, old + 1)

        return add

    run(*(adder(at) for at in range(4)))
    assert m["n"] == sum(done) > 0


def test_the_example_loses_no_points():
    """Four threads run the function of examples/leaderboard.py for one player."""
    page = pathlib.Path(__file__).parents[1] / "examples" / "leaderboard.py"
    source = page.read_text()
    example = {"ABSENT": ABSENT, "scores": Map(keys=str, values=int)}
    exec(source[source.index("def report") : source.index("def play")], example)
    counts = [0, 0, 0, 0]

    def reporter(at):
        def report(_):
            for _ in range(100):
                example["report"]("player", 1)
            counts[at] += 100

        return report

    run(*map(reporter, range(4)))
    assert example["scores"]["player"] == sum(counts)


def test_first_key_in_two_threads():
    for _ in range(200):
        m, errors = Map(), []
        barrier = threading.Barrier(2)

        def put(key):
            barrier.wait()
            try:
                m[key] = key
            except TypeError:
                errors.append(key)

        threads = [threading.Thread(target=put, args=(key,)) for key in (1, "a")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(m) == 1 and len(errors) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_a_fork_during_a_bulk_call_of_another_thread():
    """The child releases removed values at once, and collects cycles through the map."""
    m = Map({at: None for at in range(200_000)})
    m[-2] = m
    probes = numpy.arange(200_000)
    stop = threading.Event()

    def read():
        while not stop.is_set():
            m.get_many(probes)

    thread = threading.Thread(target=read)
    thread.start()
    children = []
    for _ in range(20):
        time.sleep(0.003)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                cycle = weakref.ref(made := Tagged(0))
                m[-1] = made
                del made
                m[-1] = None
                gone = cycle() is None
                code = 0 if gone and any(found is m for found in gc.get_referents(m)) else 2
            finally:
                os._exit(code)
        children.append(child)
    stop.set()
    thread.join()
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 20


def test_many_threads_that_end():
    m = Map(memory_limit=1 << 24)
    for at in range(50):
        thread = threading.Thread(target=lambda: m.insert_many(range(at * 100, at * 100 + 100), [at] * 100))
        thread.start()
        thread.join()
    assert m.check() == 5000 and m.compare_exchange(0, 0, ABSENT)


def test_bulk_calls_release_the_gil():
    m = Map(keys=int, values=int)
    keys = numpy.random.default_rng(1).permutation(1_000_000)
    began, ticks = threading.Event(), []

    def bulk():
        began.set()
        m.insert_many(keys, keys)
        ticks.append("end")

    thread = threading.Thread(target=bulk)
    thread.start()
    began.wait()
    time.sleep(0.005)
    count = 0
    while thread.is_alive() and not ticks:
        count += 1
        time.sleep(0)
    thread.join()
    assert count > 100
