"""Keys: their types, their order, and the exceptions of objects that are no keys."""

import random
import sys
import threading
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import pytest

from silvics import ABSENT, LimitError, Map


# Structures that take strings and tuples.
BLOCKS = pytest.mark.parametrize("structure", [None, "skiplist", "art"])


def texts(rng):
    pool = ["", "\0", "a", "\xff", "\u0100", "\ud800", "\udfff", "\ue000", "\uffff", "\U00010000", "\U0010ffff"]
    return "".join(rng.choice(pool) for _ in range(rng.randrange(4)))


def strings(rng):
    return bytes(rng.choice([0, 1, 97, 254, 255]) for _ in range(rng.randrange(4)))


def ints(rng):
    return rng.choice([0, 1, -1, 2**63 - 1, -(2**63), rng.getrandbits(64) - 2**63, rng.randrange(-9, 9)])


def floats(rng):
    special = [0.0, -0.0, 1e-320, -1e-320, float("inf"), float("-inf"), sys.float_info.max, 2.0**-1074]
    return rng.choice([*special, rng.uniform(-2, 2), rng.uniform(-1e300, 1e300)])


def tuples(rng):
    inner = (strings(rng), ints(rng))[: rng.randrange(3)]
    return (texts(rng), inner, ints(rng), floats(rng), strings(rng))[: rng.randrange(6)]


@BLOCKS
@pytest.mark.parametrize("draw", [texts, strings, ints, floats, tuples])
def test_keys_sort_as_in_python(draw, structure):
    rng = random.Random(11)
    keys = [draw(rng) for _ in range(3000)]
    d = {key: at for at, key in enumerate(keys)}
    m = Map(structure=structure)
    for at, key in enumerate(keys):
        m[key] = at
    ordered = sorted(d)
    assert list(m) == ordered and [m[key] for key in ordered] == [d[key] for key in ordered]
    assert list(m.items()) == sorted(d.items())
    for _ in range(300):
        low, high = draw(rng), draw(rng)
        inclusive = rng.choice([True, False]), rng.choice([True, False])
        wanted = [
            key
            for key in ordered
            if (low < key or inclusive[0] and low == key) and (key < high or inclusive[1] and key == high)
        ]
        assert list(m.irange(low, high, inclusive)) == wanted
        assert list(m.irange(low, high, inclusive, True)) == wanted[::-1]
    assert m.check() == len(ordered)


@BLOCKS
def test_prefixes(structure):
    rng = random.Random(12)
    for draw, begins in (
        (texts, str.startswith),
        (strings, bytes.startswith),
        (tuples, lambda key, prefix: key[: len(prefix)] == prefix),
    ):
        m = Map({draw(rng): 0 for _ in range(2000)}, structure=structure)
        for _ in range(300):
            prefix = draw(rng)
            wanted = [key for key in m if begins(key, prefix)]
            assert list(m.prefix(prefix)) == wanted
            assert list(m.prefix(prefix, reverse=True)) == wanted[::-1]
    assert list(Map({("a",): 1, ("a\0b",): 1, ("ab",): 1}).prefix(("a",))) == [("a",)]
    for key in (1, 1.0):
        with pytest.raises(TypeError):
            Map({key: 1}).prefix(key)
    assert list(Map().prefix("a")) == []


def test_integers():
    class Two:
        def __index__(self):
            return 2

    class Color(IntEnum):
        RED = 3

    m = Map({True: "true", False: "false"})
    m[Two()] = "two"
    m[Color.RED] = "red"
    assert list(m) == [0, 1, 2, 3] and m[True] == "true" and m[Two()] == "two" and m[3] == "red"
    assert all(type(key) is int for key in m)
    for big in (2**63, -(2**63) - 1, 10**30):
        assert big not in m and m.get(big, 7) == 7
        with pytest.raises(KeyError):
            m[big]
        with pytest.raises(OverflowError, match="64 bits"):
            m[big] = 1
        with pytest.raises(OverflowError):
            m.irange(0, big)
        with pytest.raises(OverflowError):
            Map({big: 1})
    m[2**63 - 1] = m[-(2**63)] = 0
    assert list(m)[-1] == 2**63 - 1 and list(m)[0] == -(2**63)


def test_an_index_that_raises():
    class Raises:
        def __index__(self):
            raise ZeroDivisionError

    m = Map({1: 1})
    for call in (m.__getitem__, m.get, m.__contains__, m.pop, lambda key: m.__setitem__(key, 1)):
        with pytest.raises(ZeroDivisionError):
            call(Raises())
    assert list(m.items()) == [(1, 1)]


def test_floats():
    class Index:
        # As an integer of NumPy, it compares as a float.
        def __index__(self):
            return 2**53 + 1

        __float__ = lambda self: float(2**53)
        __eq__ = lambda self, other: other == 2.0**53

    m = Map(keys=float)
    m[1] = "one"
    m[0.0] = "zero"
    m[True] = "true"
    assert list(m) == [0.0, 1.0] and all(type(key) is float for key in m)
    assert m[-0.0] == "zero" and m[1] == "true" and str(list(m)[0]) == "0.0"
    m[-0.0] = "negative zero"
    assert str(list(m)[0]) == "0.0" and len(m) == 2
    m[2**60] = m[2**70] = 1
    assert 2**60 in m and 2.0**70 in m and Fraction(1, 1) in m and Decimal(1) in m
    nan = float("nan")
    assert nan not in m and m.get(nan) is None
    for call in (lambda: m.__setitem__(nan, 1), lambda: m.irange(nan), lambda: Map({nan: 1}), lambda: Map({(nan,): 1})):
        with pytest.raises(ValueError, match="NaN"):
            call()
    m = Map(keys=float)
    for inexact in (2**53 + 1, Index(), 10**400, Fraction(1, 3), Decimal("0.1")):
        assert inexact not in m
        with pytest.raises(TypeError, match="float"):
            m[inexact] = 1
    with pytest.raises(TypeError):
        m["1.0"] = 1


@pytest.mark.parametrize(
    "first, wrong",
    [
        (1, ["a", b"a", 1.0, 1.5, (1,)]),
        (1.5, ["a", b"a", (1,), "1.5"]),
        ("a", [1, b"a", 1.0, ("a",)]),
        (b"a", [1, "a", bytearray(b"a"), memoryview(b"a")]),
        (("a",), ["a", 1, ["a"]]),
    ],
)
def test_keys_of_another_type(first, wrong):
    m = Map({first: "value"})
    for key in [*wrong, None, [], {}, object(), 1j]:
        assert key not in m and m.get(key, "default") == "default"
        assert m.pop(key, "default") == "default"
        # None stands for no bound.
        ranges = [(TypeError, lambda: m.irange(key)), (TypeError, lambda: m.irange(first, key))]
        for error, call in (
            *(ranges if key is not None else []),
            (KeyError, lambda: m[key]),
            (KeyError, lambda: m.__delitem__(key)),
            (KeyError, lambda: m.pop(key)),
            (ValueError, lambda: m.index(key)),
            (TypeError, lambda: m.__setitem__(key, 1)),
            (TypeError, lambda: m.setdefault(key, 1)),
            (TypeError, lambda: m.bisect_left(key)),
            (TypeError, lambda: m.insert_many([key], [1])),
        ):
            with pytest.raises(error) as raised:
                call()
            assert str(raised.value)
    with pytest.raises(TypeError, match="of type"):
        m[None] = 1
    assert list(m.items()) == [(first, "value")]


@pytest.mark.parametrize("key", [None, [], {}, set(), object(), 1j, bytearray(b"a"), ([],), (1, None)])
def test_objects_that_cannot_be_keys(key):
    m = Map()
    assert key not in m and m.get(key) is None
    with pytest.raises(TypeError, match="cannot be a key"):
        m[key] = 1
    assert m.key_type is None
    m["a"] = 1  # the refused key did not decide the type


def test_a_position_of_tuples_has_one_type():
    m = Map({("a", 1): 1})
    m[("b",)] = 2
    m[("b", 2, (1.5,))] = 3
    for key, position in (
        ((1,), "position 0"),
        (("a", "x"), "position 1"),
        (("a", 1.5), "position 1"),
        (("a", 1, 5), "position 2"),
        (("a", 1, ("x",)), "position 2.0"),
    ):
        assert key not in m and m.get(key) is None
        with pytest.raises(TypeError, match=position):
            m[key] = 1
        with pytest.raises(TypeError, match=position):
            m.irange(key)
    m[("b", 2, (1,))] = 4
    assert list(m)[-2:] == [("b", 2, (1.0,)), ("b", 2, (1.5,))]
    with pytest.raises(TypeError):
        m.insert_many([("c", 1, (0.5,), "new"), ("c", "x")], [1, 1])
    m[("c", 1, (0.5,), 8)] = 1  # the refused call taught no position


def test_keys_that_fix_the_type():
    assert Map({"a": 1}).key_type is str and Map({1: 1}).key_type is int
    m = Map(keys=str)
    with pytest.raises(TypeError, match="of type str, not int"):
        m[1] = 1
    m.clear()
    m["a"] = 1
    del m["a"]
    with pytest.raises(TypeError):
        m[1] = 1


def test_lone_surrogates():
    keys = ["\ud800", "\udc80x", "a\udfff", "\ue000", "\U00010000"]
    m = Map({key: at for at, key in enumerate(keys)})
    assert list(m) == sorted(keys) and all(m[key] == at for at, key in enumerate(keys))


def test_long_keys():
    key = "x" * 100_000
    m = Map({key: 1})
    assert m[key] == 1 and key + "y" not in m and list(m) == [key]
    longer = "x" * (1 << 19) + "x"
    with pytest.raises(ValueError, match="bytes"):
        m[longer] = 1
    for structure in (None, "art", "blocks"):
        m = Map({key: 1}, structure=structure)
        with pytest.raises(ValueError, match="bytes") as raised:
            m.insert_many(["a", longer, "b"], [1, 2, 3])
        assert raised.value.inserted == 0 and list(m) == [key] and longer not in m
    long = Map(structure="skiplist")
    assert long.insert_many(["a", longer], [1, 2]) == 2 and long[longer] == 2


def test_calls_that_insert_nothing_decide_no_types():
    longer = "x" * (1 << 19) + "x"
    m = Map()
    for call in (
        lambda: m.__setitem__(longer, 1),
        lambda: m.setdefault(longer, 1),
        lambda: m.insert_many([longer], [1]),
        lambda: m.compare_exchange(longer, ABSENT, 1),
    ):
        with pytest.raises(ValueError):
            call()
    assert not m.compare_exchange("a", 1, 2) and m.compare_exchange("a", ABSENT, ABSENT)
    assert m.key_type is None
    m[1] = 1
    assert m.key_type is int
    small = Map(memory_limit=1)
    for call in (lambda: small.__setitem__(1, 1), lambda: small.update({1: 1})):
        with pytest.raises(LimitError):
            call()
    assert small.key_type is None

    m = Map({("a",): 1})
    for call in (
        lambda: m.__setitem__(("a", longer), 1),
        lambda: m.insert_many([("a", longer)], [1]),
    ):
        with pytest.raises(ValueError):
            call()
    assert not m.compare_exchange(("a", "b"), 1, 2) and m.compare_exchange(("a", "b"), ABSENT, ABSENT)
    m[("a", 5)] = 1
    assert m.compare_exchange(("a", 5, 1.5), ABSENT, 1)
    with pytest.raises(TypeError, match="position 2"):
        m[("a", 5, "x")] = 1


def test_a_key_that_inserts_another_one_while_it_is_read():
    m = Map()

    class Meddles:
        def __index__(self):
            m["a"] = 1
            return 5

    with pytest.raises(TypeError, match="of type str"):
        m[Meddles()] = 1
    assert list(m) == ["a"]


def test_a_structure_for_numbers_only():
    m = Map(structure="edge-ext-lf")
    with pytest.raises(ValueError, match="edge-ext-lf.*int and float.*skiplist"):
        m["a"] = 1
    m[1] = 1
    with pytest.raises(ValueError, match="edge-ext-lf"):
        Map(keys=tuple, structure="edge-ext-lf")


def nested(levels):
    key = ()
    for _ in range(levels - 1):
        key = (key,)
    return key


def test_deep_tuples():
    m = Map({nested(64): "deep"})
    assert m[nested(64)] == "deep" and list(m) == [nested(64)]
    for levels in (65, 20_000, 300_000):
        key = nested(levels)
        assert key not in m and m.get(key) is None and m.get_many([key]) == [None]
        with pytest.raises(KeyError):
            m[key]
        for call in (lambda: m.__setitem__(key, 1), lambda: m.irange(key), lambda: Map([(key, 1)])):
            with pytest.raises(ValueError, match="at most 64 levels"):
                call()
    assert len(m) == 1


def test_deep_tuples_in_a_small_stack():
    m, deep, outcomes = Map({nested(63): 1}), nested(20_000), []

    def use():
        m[nested(64)] = 2
        outcomes.append(deep not in m and list(m) == [nested(63), nested(64)])

    size = threading.stack_size(128 << 10)
    try:
        thread = threading.Thread(target=use)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(size)
    assert outcomes == [True]
