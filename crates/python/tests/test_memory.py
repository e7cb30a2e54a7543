"""References, the garbage collector, destructors, and the memory limit."""

import gc
import subprocess
import sys
import weakref

import pytest

from silvics import LimitError, Map


class Value:
    """An object with weak references."""


def gone(ref):
    return ref() is None


def made():
    value = Value()
    return value, weakref.ref(value)


REMOVALS = {
    "del": lambda m: m.__delitem__(1),
    "pop": lambda m: m.pop(1),
    "popitem": lambda m: m.popitem(),
    "replace": lambda m: m.__setitem__(1, None),
    "update": lambda m: m.update({1: None}),
    "insert_many": lambda m: m.insert_many([1], [None]),
    "compare_exchange": lambda m: m.compare_exchange(1, m[1], None),
    "clear": lambda m: m.clear(),
}


@pytest.mark.parametrize("remove", REMOVALS.values(), ids=REMOVALS)
def test_a_removed_value_is_released_at_once(remove, structure):
    value, ref = made()
    m = Map({1: value}, structure=structure)
    del value
    assert not gone(ref)
    remove(m)
    assert gone(ref)


def test_counts_of_references():
    value = Value()
    base = sys.getrefcount(value)
    m = Map({k: value for k in range(10)})
    assert sys.getrefcount(value) == base + 10
    assert m[3] is value and m.get(4) is value and m.setdefault(5, None) is value
    m.setdefault(11, value)
    assert sys.getrefcount(value) == base + 11
    list(m.values()), list(m.items()), m.get_many(range(20)), m.peekitem(), m.cursor().first()
    assert sys.getrefcount(value) == base + 11
    m[3] = value
    m.insert_many(range(5), [value] * 5)
    m.compare_exchange(4, value, value)
    m.compare_exchange(4, 1, value)
    assert sys.getrefcount(value) == base + 11
    with pytest.raises(TypeError):
        m["x"] = value
    with pytest.raises(TypeError):
        m.insert_many([1, "x"], [value, value])
    with pytest.raises(TypeError):
        m.setdefault("x", value)
    assert sys.getrefcount(value) == base + 11
    twin = m.copy()
    assert sys.getrefcount(value) == base + 22
    m.pop(1), m.popitem(0), m.popitem()
    assert sys.getrefcount(value) == base + 19
    twin.clear()
    assert sys.getrefcount(value) == base + 8
    del m
    assert sys.getrefcount(value) == base


def test_a_cycle_is_collected(structure):
    m = Map(structure=structure)
    ref = weakref.ref(m)
    m[1] = [m]
    m[2] = m.cursor()
    m[3] = iter(m)
    m[4] = m.keys()
    del m
    assert not gone(ref)
    gc.collect()
    assert gone(ref)


def test_a_map_that_is_reachable_is_not_collected():
    m = Map({k: [k] for k in range(2000)})
    m[-1] = m
    gc.collect()
    assert len(m) == 2001 and m[5] == [5]
    assert any(referent is m for referent in gc.get_referents(m))


def test_a_cycle_of_two_maps():
    one, two = Map(), Map()
    one["two"], two["one"] = two, one
    refs = weakref.ref(one), weakref.ref(two)
    del one, two
    gc.collect()
    assert all(map(gone, refs))


def test_a_cursor_and_an_iterator_keep_the_map_alive():
    value, ref = made()
    m = Map({1: value, 2: None})
    del value
    cursor, iterator = m.cursor(), iter(m.values())
    del m
    gc.collect()
    assert cursor.first() and cursor.value is ref()
    assert next(iterator) is ref()
    del cursor
    assert not gone(ref)
    del iterator
    assert gone(ref)


def test_destructors_use_the_map():
    m = Map()
    log = []

    class Meddles:
        def __init__(self, name):
            self.name = name

        def __del__(self):
            log.append(self.name)
            assert 0 not in m or m[0] is not self
            list(m.items()), m.get_many(range(10)), gc.collect()
            m[100 + len(m)] = None
            if self.name == "clear":
                m.clear()

    for remove in REMOVALS.values():
        m.clear()
        m[1] = Meddles("one")
        remove(m)
    assert len(log) == len(REMOVALS)
    m.clear()
    m.update({k: Meddles("clear") for k in range(50)})
    m[3] = None
    assert len(log) == len(REMOVALS) + 50
    m.clear()
    m.update({k: Meddles("again") for k in range(200)})
    m.clear()
    assert m.check() == len(m)


def test_a_destructor_that_raises(monkeypatch):
    class Raises:
        def __del__(self):
            raise ZeroDivisionError

    raised = []
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: raised.append(unraisable.exc_type))
    m = Map({1: Raises()})
    m[1] = 2
    assert raised == [ZeroDivisionError] and m[1] == 2
    m[1] = Raises()
    del m[1]
    assert raised == [ZeroDivisionError] * 2 and 1 not in m
    m[1] = Raises()
    del m
    assert raised == [ZeroDivisionError] * 3


def test_a_destructor_in_the_middle_of_iteration():
    m = Map()

    class Clears:
        def __del__(self):
            m.clear()

    for make in (iter, lambda m: iter(m.items()), lambda m: iter(m.values())):
        m.update({k: [k] for k in range(3000)})
        m[1500] = Clears()
        gc.collect()
        for at, _ in enumerate(make(m)):
            if at == 100:
                m[1500] = 0
        assert len(m) in (0, 1)


def test_the_collector_runs_while_lists_are_made():
    gc.collect()
    threshold = gc.get_threshold()
    gc.set_threshold(1)
    try:
        m = Map({k: [k] for k in range(500)})
        m[500] = m
        for _ in range(3):
            assert [item[0] for item in m.items()] == list(range(501))
            assert len(list(m.values())) == 501
            assert m.get_many(range(500)) == [[k] for k in range(500)]
            assert m.pop(5) == [5]
            m[5] = [5]
    finally:
        gc.set_threshold(*threshold)


def test_values_at_the_end_of_the_interpreter():
    code = """
import silvics

class Value:
    def __del__(self):
        print("released", flush=True)

m = silvics.Map({k: Value() for k in range(3)})
m[3] = m
cursor, iterator = m.cursor(), iter(m.items())
next(iterator)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("released") in (0, 3)  # the interpreter need not collect cycles


def test_deep_maps_are_released():
    m = Map()
    for _ in range(100_000):
        m = Map({1: m})
    del m
    gc.collect()


@pytest.mark.parametrize("values", [object, int])
@pytest.mark.parametrize("key", [lambda at: at, lambda at: f"key {at}"])
def test_the_memory_limit(values, key):
    m = Map(memory_limit=1 << 20, values=values)
    with pytest.raises(LimitError, match="limit") as raised:
        for at in range(1_000_000):
            m[key(at)] = at
    assert isinstance(raised.value, MemoryError) and raised.value.inserted == 0
    count = len(m)
    assert 1000 < count < 1_000_000 and m.bytes <= 1 << 20 and m.check() == count
    value = Value() if values is object else 1
    references = sys.getrefcount(value)
    with pytest.raises(LimitError) as raised:
        m.insert_many([key(at) for at in range(2_000_000, 2_100_000)], [value] * 100_000)
    inserted = raised.value.inserted
    assert 0 <= inserted < 100_000 and len(m) == count + inserted
    if values is object:
        assert sys.getrefcount(value) == references + inserted
    m.clear()
    m.shrink()
    m[key(1)] = 1
    assert m.check() == 1


def test_no_list_is_visible_before_it_is_full():
    m = Map({("key", at): at for at in range(600)})
    seen = []

    def look(phase, _):
        for found in gc.get_objects():
            if type(found) is list and len(found) > 100:
                seen.append(found[-1] is not None)

    threshold = gc.get_threshold()
    gc.callbacks.append(look)
    gc.set_threshold(50)
    try:
        assert len(list(m)) == len(list(m.items())) == len(m.get_many(m)) == 600
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(look)
    assert all(seen)
