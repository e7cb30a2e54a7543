"""Values of the types int and float, bulk calls, and arrays."""

import array
import random
from fractions import Fraction

import pytest

from silvics import Map, UnsupportedError

numpy = pytest.importorskip("numpy")


def test_integer_values():
    m = Map({"a": 1}, values=int)
    m["b"] = True
    m["c"] = -(2**63)
    m["d"] = numpy.int64(7)
    assert list(m.values()) == [1, 1, -(2**63), 7] and type(m["d"]) is int
    for bad, error in (("x", TypeError), (1.5, TypeError), (None, TypeError), (2**63, OverflowError)):
        with pytest.raises(error, match="values of this map"):
            m["a"] = bad
        with pytest.raises(error):
            m.setdefault("z", bad)
        with pytest.raises(error):
            m.compare_exchange("a", 1, bad)
    assert m["a"] == 1 and "z" not in m
    assert m.compare_exchange("a", 1, 2) and m["a"] == 2 and m.pop("a") == 2
    with pytest.raises(TypeError):
        Map.fromkeys([1, 2], values=int)


def test_float_values():
    m = Map({1: 1, 2: 2.5}, values=float)
    m[3] = float("nan")
    assert m[1] == 1.0 and type(m[1]) is float and m[3] != m[3]
    assert m.compare_exchange(1, 1, 0.0) and m.compare_exchange(1, -0.0, 5)
    with pytest.raises(TypeError, match="of type float"):
        m[1] = "x"
    m[4] = m[5] = 2**53
    for inexact in (2**53 + 1, 2**2000, numpy.int64(2**53 + 1)):
        with pytest.raises(TypeError, match="none is equal to this number"):
            m[4] = inexact
        with pytest.raises(TypeError, match="none is equal to this number"):
            m.insert_many([4, 5], [0, inexact])
    assert m[4] == m[5] == 2**53
    m[4] = Fraction(1, 3)
    assert m[4] == 1 / 3


@pytest.mark.parametrize("size", [0, 10, 5000])
def test_get_many_of_objects(size):
    rng = random.Random(3)
    d = {rng.randrange(2**40): object() for _ in range(size)}
    m = Map(d, keys=int)
    probes = [*d, 5, -1]
    wanted = [d.get(key) for key in probes]
    assert m.get_many(probes) == wanted
    assert m.get_many(iter(probes)) == wanted
    buffer = array.array("q", probes)
    for made in (numpy.array(probes, dtype=numpy.int64), buffer, memoryview(buffer)):
        assert m.get_many(made) == wanted
    assert m.get_many(numpy.array(probes, dtype=numpy.int64)[::-2]) == wanted[::-2]
    assert m.get_many(["a", *probes, None, 2**80], default="no")[-1] == "no"
    assert m.get_many(["a", *probes, None])[1:-1] == wanted
    assert m.get_many([]) == []


def test_get_many_of_numbers():
    m = Map({k: k * 2 for k in range(1000)}, values=int)
    found = m.get_many(range(1000))
    assert found.dtype == numpy.int64 and list(found) == [k * 2 for k in range(1000)]
    assert list(m.get_many([1, 5000, "x"], default=-1)) == [2, -1, -1]
    with pytest.raises(KeyError) as raised:
        m.get_many([1, 5000, 6000])
    assert raised.value.args == (5000,)
    with pytest.raises(TypeError):
        m.get_many([1], default="x")
    with pytest.raises(TypeError):
        m.get_many(5)
    floats = Map({0.5: 1.5}, values=float)
    assert list(floats.get_many(numpy.array([0.5, 1.0]), default=9)) == [1.5, 9.0]
    assert list(Map(values=int).get_many([1, 2], default=3)) == [3, 3]
    with pytest.raises(KeyError):
        Map(values=int).get_many([1, 2])
    assert len(Map(values=int).get_many([])) == 0


@pytest.mark.parametrize("kind", [int, float])
def test_ranges_as_arrays(kind):
    rng = random.Random(4)
    d = {kind(rng.randrange(-(10**6), 10**6)): rng.randrange(100) for _ in range(8000)}
    m = Map(d, values=int)
    ordered = sorted(d)
    keys, values = m.arrays()
    assert list(keys) == ordered and list(values) == [d[key] for key in ordered]
    assert keys.dtype == (numpy.int64 if kind is int else numpy.float64)
    for _ in range(50):
        low, high = sorted(rng.sample(ordered, 2))
        inclusive = rng.random() < 0.5, rng.random() < 0.5
        wanted = list(m.irange(low, high, inclusive))
        assert list(m.keys_array(low, high, inclusive)) == wanted
        assert list(m.values_array(low, high, inclusive)) == [d[key] for key in wanted]
        assert m.count(low, high, inclusive) == len(wanted)
    assert len(m.keys_array(ordered[-1], ordered[0])) == 0
    assert m.keys_array().flags.writeable and m.keys_array().flags.owndata


def test_arrays_need_numbers():
    with pytest.raises(UnsupportedError, match="int or float"):
        Map({"a": 1}).keys_array()
    with pytest.raises(UnsupportedError, match="values=int"):
        Map({1: 1}).values_array()
    with pytest.raises(UnsupportedError):
        Map({1: 1}).arrays()
    assert len(Map().keys_array()) == 0 and len(Map(values=float).values_array()) == 0


def test_insert_many():
    m = Map()
    assert m.insert_many([3, 1, 2], "cab") == 3
    assert m.insert_many({4: "d"}) == 1 and m.insert_many(((5, "e"),)) == 1
    assert m.insert_many([1, 1, 1], "xyz") == 3 and m[1] == "z"
    assert list(m.values()) == ["z", "b", "c", "d", "e"]
    numbers = Map(values=float)
    keys = numpy.arange(10_000)[::-1]
    assert numbers.insert_many(keys, keys / 2) == 10_000
    assert numbers.key_type is int and numbers[9] == 4.5 and len(numbers) == 10_000
    numbers.insert_many(numpy.array([9], dtype=numpy.int32), numpy.array([1], dtype=numpy.float32))
    assert numbers[9] == 1.0
    objects = Map()
    objects.insert_many(array.array("d", [1.5, 0.5]), [object, None])
    assert objects.key_type is float and list(objects) == [0.5, 1.5]


def test_insert_many_writes_nothing_if_it_cannot_read_all():
    m = Map({1: 1})
    for keys, values, error in (
        ([2, "x"], [1, 1], TypeError),
        ([2, 3], [1], ValueError),
        ([2], [1, 2], ValueError),
        ([2, 2**70], [1, 1], OverflowError),
        ([2, []], [1, 1], TypeError),
        (5, [1], TypeError),
        (numpy.array([0.5]), [1], TypeError),
        (numpy.zeros((2, 2), dtype=numpy.int64), [1, 1], TypeError),
    ):
        with pytest.raises(error) as raised:
            m.insert_many(keys, values)
        assert raised.value.inserted == 0
        assert list(m.items()) == [(1, 1)]
    fresh = Map()
    with pytest.raises(TypeError):
        fresh.insert_many([1, "x"], [1, 1])
    assert fresh.key_type is None
    nan = Map(keys=float)
    with pytest.raises(ValueError):
        nan.insert_many(numpy.array([1.0, float("nan")]), [1, 1])
    assert len(nan) == 0


def test_numpy_numbers_as_keys():
    m = Map({numpy.int64(3): 1, numpy.int8(-1): 2, numpy.uint64(9): 3})
    assert list(m) == [-1, 3, 9] and m[numpy.int32(3)] == 1
    with pytest.raises(OverflowError):
        m[numpy.uint64(2**63)] = 1
    m = Map({numpy.float64(0.5): 1})
    m[numpy.float32(0.25)] = 2
    assert list(m) == [0.25, 0.5] and numpy.float32(0.1) not in m
    assert Map({numpy.str_("a"): 1, numpy.str_("b"): 1}).key_type is str


def test_arrays_as_keys_and_of_two_dimensions():
    pair, table = numpy.array([1, 2]), numpy.zeros((2, 2), dtype=numpy.int64)
    for first in (1, 1.5, "a", b"a", ("a",), (1, 2)):
        m = Map({first: 1})
        assert pair not in m and (pair,) not in m and m.get(pair, 5) == 5
        with pytest.raises(TypeError, match="of type"):
            m[pair] = 1
        with pytest.raises(KeyError):
            m[pair]
    for m in (Map({1: 1}), Map({1: 1}, values=int)):
        for made in (table, table.astype(numpy.uint8)):
            for call in (
                lambda: m.get_many(made, 0),
                lambda: m.insert_many(made, [1, 2]),
            ):
                with pytest.raises(TypeError, match="one dimension, not 2"):
                    call()
    with pytest.raises(TypeError, match="one dimension, not 2"):
        Map({1: 1}, values=int).insert_many([1, 2], table)


def test_arrays_of_other_forms():
    m = Map({1: "a", 2: "b"})
    for made in (
        numpy.array([2, 1], dtype=">i8"),
        numpy.array([2, 1], dtype=numpy.uint8),
        numpy.array([2, 1], dtype=object),
        numpy.array([[2, 1]])[0],
        numpy.array([1, 0, 2])[::-2],
        memoryview(b"\2\1"),
    ):
        assert m.get_many(made) == ["b", "a"]
        assert m.insert_many(made, ["b", "a"]) == 2
    with pytest.raises(TypeError):
        m.get_many(numpy.array(1))
    assert m.get_many(numpy.array([1.0])) == [None]
    nan = Map({1.0: "a"})
    assert nan.get_many(numpy.array([1.0, float("nan")])) == ["a", None]


def test_numpy_is_optional(tmp_path):
    import subprocess
    import sys

    (tmp_path / "numpy.py").write_text("raise ImportError('hidden')")
    code = """
import silvics
m = silvics.Map({1: 2}, values=int)
assert list(m.irange(0, 5)) == [1] and m[1] == 2
try:
    m.keys_array()
except silvics.UnsupportedError as error:
    assert "NumPy" in str(error) and isinstance(error.__cause__, ImportError)
else:
    raise SystemExit("no exception")
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={"PYTHONPATH": str(tmp_path)})


def test_allocations_that_fail():
    """Arguments that are larger than the address space."""
    keys = numpy.broadcast_to(numpy.int64(1), 10**13)
    floats = numpy.broadcast_to(numpy.float64(1), 10**13)
    for call in (
        lambda: Map({1: 1}).get_many(keys),
        lambda: Map({1.0: 1}).get_many(floats),
        lambda: Map({1: 1}, values=int).get_many(keys, 0),
        lambda: Map().insert_many(keys, []),
        lambda: Map({1: 1}, values=float).insert_many([], floats),
    ):
        with pytest.raises(MemoryError):
            call()


def test_long_iterables_in_little_memory():
    import subprocess
    import sys

    code = """
import itertools, resource
from silvics import Map

numbers, objects, texts = Map({1: 1}, values=int), Map({1: 1}), Map({"a" * 1000: 1})
for m in (numbers, objects, texts):
    m.get_many([1, 2], 0), m.insert_many(list(m), [1])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (48 << 20),) * 2)
for m, key in ((numbers, 1), (objects, 1), (texts, "a" * 1000)):
    for call in (
        lambda: m.get_many(itertools.repeat(key)),
        lambda: m.get_many(itertools.repeat(None), 0),
        lambda: m.insert_many(itertools.repeat(key), []),
        lambda: m.insert_many([], itertools.repeat(1)),
        lambda: m.update(itertools.repeat((key, 1))),
    ):
        try:
            call()
        except MemoryError:
            pass
        else:
            raise SystemExit("no exception")
        assert m.check() == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_missing_key_is_that_of_the_first_pass():
    m = Map({1: 1, 2: 2}, values=int)
    for keys, missing in (([1, 5, 6], 5), ([1, "x", 5], "x"), ([1, 5, "x"], 5), ([2**80], 2**80)):
        with pytest.raises(KeyError) as raised:
            m.get_many(iter(keys))
        assert raised.value.args == (missing,)
    with pytest.raises(KeyError) as raised:
        m.get_many(numpy.array([1, 7, 8]))
    assert raised.value.args == (7,)
    with pytest.raises(KeyError) as raised:
        Map(values=float).get_many(iter("ab"))
    assert raised.value.args == ("a",)
