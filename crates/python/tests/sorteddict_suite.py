"""What the documentation of `sortedcontainers.SortedDict` promises, as tests of any such class.

Each function takes `make`, which makes a map as the class does. They follow the documentation of
sortedcontainers 2.4.0, one or more per documented method. `test_sorteddict.py` runs them with
`SortedDict` and with `silvics.Map`; `original.py` runs the tests of sortedcontainers itself.
"""

import copy
import pickle
import random

import pytest

ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def letters(make):
    return make((letter, at) for at, letter in enumerate(ALPHABET))


def init_empty(make):
    assert len(make()) == 0 and list(make()) == []


def init_from_a_dict(make):
    assert list(make({"b": 1, "a": 2}).items()) == [("a", 2), ("b", 1)]


def init_from_pairs(make):
    assert make([("b", 1), ("a", 2), ("b", 3)]) == {"a": 2, "b": 3}


def init_from_names(make):
    assert make(b=1, a=2) == {"a": 2, "b": 1}


def init_with_a_key_function(make):
    negate = lambda number: -number  # noqa: E731
    assert list(make(negate, {1: 1, 2: 2})) == [2, 1]


def init_with_too_many_arguments(make):
    with pytest.raises(TypeError):
        make(None, {}, {})


def key_property(make):
    assert make().key is None


def is_a_dict(make):
    assert isinstance(make(), dict)


def clear(make):
    m = letters(make)
    m.clear()
    assert m == {} and list(m) == [] and len(m.keys()) == 0


def contains(make):
    m = letters(make)
    assert "a" in m and "z" in m and "A" not in m and "aa" not in m


def contains_another_type(make):
    m = letters(make)
    assert 1 not in m and None not in m


def contains_an_unhashable(make):
    with pytest.raises(TypeError):
        [] in letters(make)


def delitem(make):
    m = letters(make)
    del m["d"], m["x"]
    assert len(m) == 24 and "d" not in m and list(m) == [c for c in ALPHABET if c not in "dx"]


def delitem_missing(make):
    with pytest.raises(KeyError):
        del letters(make)["A"]


def getitem(make):
    m = letters(make)
    assert all(m[letter] == at for at, letter in enumerate(ALPHABET))
    with pytest.raises(KeyError):
        m["A"]


def missing_method(make):
    class Counts(type(make())):
        def __missing__(self, key):
            return 0

    assert Counts()["a"] == 0


def setitem(make):
    m = make()
    for at, letter in reversed(list(enumerate(ALPHABET))):
        m[letter] = at
        m[letter] = at + 1
    assert list(m.items()) == [(letter, at + 1) for at, letter in enumerate(ALPHABET)]


def setitem_of_mixed_numbers(make):
    m = make({1: "one"})
    m[1.5] = "more"
    assert list(m) == [1, 1.5]


def setitem_of_comparable_objects(make):
    m = make({frozenset(): 0, frozenset("a"): 1})
    assert len(m) == 2


def setitem_of_a_large_integer(make):
    assert list(make({2**70: 1, 2: 2})) == [2, 2**70]


def get(make):
    m = letters(make)
    assert m.get("a") == 0 and m.get("A") is None and m.get("A", 5) == 5


def copies(make):
    m = letters(make)
    for twin in (m.copy(), copy.copy(m), copy.deepcopy(m)):
        twin["A"] = 1
        assert len(twin) == 27 and len(m) == 26 and type(twin) is type(m)


def fromkeys(make):
    m = type(make()).fromkeys(ALPHABET, 5)
    assert list(m) == list(ALPHABET) and set(m.values()) == {5} and isinstance(m, type(make()))
    assert type(make()).fromkeys("a")["a"] is None


def iteration(make):
    m = letters(make)
    assert list(m) == list(ALPHABET) and list(reversed(m)) == list(ALPHABET[::-1])


def length(make):
    m = letters(make)
    assert len(m) == 26 and bool(m) and not make()


def keys_values_items(make):
    m = letters(make)
    assert list(m.keys()) == list(ALPHABET)
    assert list(m.values()) == list(range(26))
    assert list(m.items()) == [(letter, at) for at, letter in enumerate(ALPHABET)]


def pop(make):
    m = letters(make)
    assert m.pop("b") == 1 and m.pop("b", "no") == "no" and m.pop("b", None) is None
    with pytest.raises(KeyError):
        m.pop("b")


def pop_with_a_named_default(make):
    assert make().pop("b", default=5) == 5


def popitem(make):
    m = letters(make)
    assert m.popitem() == ("z", 25) and m.popitem(0) == ("a", 0) and m.popitem(index=1) == ("c", 2)
    assert m.popitem(-2) == ("x", 23)
    with pytest.raises(KeyError):
        make().popitem()


def popitem_out_of_range(make):
    with pytest.raises(IndexError):
        letters(make).popitem(26)


def peekitem(make):
    m = letters(make)
    assert m.peekitem() == ("z", 25) and m.peekitem(0) == ("a", 0) and m.peekitem(index=4) == ("e", 4)
    for index in (26, -27):
        with pytest.raises(IndexError):
            m.peekitem(index)
    with pytest.raises(IndexError):
        make().peekitem()


def setdefault(make):
    m = letters(make)
    assert m.setdefault("d", -1) == 3 and m.setdefault("A", 10) == 10 and m.setdefault("B") is None
    assert m["A"] == 10 and m["B"] is None


def update(make):
    m = make()
    m.update()
    m.update({})
    m.update([("b", 1)])
    m.update({"a": 2}, c=3)
    m.update(d=4)
    assert m == {"a": 2, "b": 1, "c": 3, "d": 4}


def update_of_a_small_part(make):
    m = make((k, k) for k in range(1000))
    m.update((k, -k) for k in range(20, 30))
    assert m[25] == -25 and len(m) == 1000


def unions(make):
    m = make({"b": 1})
    assert m | {"a": 2} == {"a": 2, "b": 1} and {"a": 2} | m == {"a": 2, "b": 1}
    assert type(m | {}) is type({} | m) is type(m)
    same = m
    m |= {"b": 3}
    assert same is m and m == {"b": 3}
    with pytest.raises(TypeError):
        m | [("a", 1)]


def equality(make):
    m = make({"a": 1})
    assert m == make({"a": 1}) and m == {"a": 1} and m != {"a": 2} and not m == {"b": 1}


def representation(make):
    m = make({"a": 1, "b": [2]})
    assert repr(m) == type(m).__name__ + "({'a': 1, 'b': [2]})"


def recursive_representation(make):
    m = make({"a": 1})
    m["b"] = m
    assert repr(m) == type(m).__name__ + "({'a': 1, 'b': ...})"


def pickles(make):
    m = letters(make)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        twin = pickle.loads(pickle.dumps(m, protocol))
        assert twin == m and type(twin) is type(m) and list(twin) == list(m)


def bisects(make):
    m = make({1: 1, 3: 3})
    assert [m.bisect_left(k) for k in range(5)] == [0, 0, 1, 1, 2]
    assert [m.bisect_right(k) for k in range(5)] == [m.bisect(k) for k in range(5)] == [0, 1, 1, 2, 2]


def bisect_keys(make):
    assert make(abs, {1: 1}).bisect_key_left(1) == 0


def index(make):
    m = letters(make)
    assert all(m.index(letter) == at for at, letter in enumerate(ALPHABET))
    assert m.index("c", 1, 5) == 2 and m.index("z", -3) == 25
    for arguments in (("A",), ("c", 3), ("c", 0, 2), ("c", 5, 1)):
        with pytest.raises(ValueError):
            m.index(*arguments)


def iranges(make):
    m = letters(make)
    assert list(m.irange("c", "f")) == list("cdef")
    assert list(m.irange("c", "f", (False, True))) == list("def")
    assert list(m.irange("c", "f", inclusive=(False, False))) == list("de")
    assert list(m.irange("c", "f", reverse=True)) == list("fedc")
    assert list(m.irange(minimum="x")) == list("xyz") and list(m.irange(maximum="b")) == list("ab")
    assert list(m.irange()) == list(ALPHABET) and list(m.irange("f", "c")) == []
    assert list(m.irange("bb", "cc")) == ["c"]


def islices(make):
    m = letters(make)
    for start in (None, -30, -3, 0, 5, 26, 40):
        for stop in (None, -30, -3, 0, 5, 26, 40):
            assert list(m.islice(start, stop)) == list(ALPHABET[start:stop])
            assert list(m.islice(start, stop, True)) == list(ALPHABET[start:stop][::-1])


def keys_view(make):
    m = letters(make)
    keys = m.keys()
    assert len(keys) == 26 and "a" in keys and "A" not in keys
    assert keys[0] == "a" and keys[-1] == "z" and keys[2:4] == ["c", "d"] and keys[3:1:-1] == ["d", "c"]
    assert keys.index("c") == 2 and keys.count("c") == 1 and list(reversed(keys)) == list(ALPHABET[::-1])
    assert keys & set("aA") == {"a"} and keys - set(ALPHABET[1:]) == {"a"}
    assert keys | {"A"} == set("A" + ALPHABET) and keys ^ set(ALPHABET) == set()
    assert keys == set(ALPHABET) and keys > set("abc") and keys.isdisjoint("ABC")


def sets_of_keys_are_sorted(make):
    keys = letters(make).keys()
    assert (keys & set("zac"))[0] == "a"


def deletion_through_a_view(make):
    m = letters(make)
    del m.keys()[0]
    del m.keys()[-2:]
    assert list(m) == list(ALPHABET[1:-2])


def items_view(make):
    m = letters(make)
    items = m.items()
    assert items[0] == ("a", 0) and items[-1] == ("z", 25) and items[:2] == [("a", 0), ("b", 1)]
    assert ("a", 0) in items and ("a", 1) not in items and items.index(("c", 2)) == 2
    assert items.count(("c", 2)) == 1 and items & {("a", 0), ("a", 1)} == {("a", 0)}
    assert list(reversed(items))[0] == ("z", 25)


def values_view(make):
    m = letters(make)
    values = m.values()
    assert values[0] == 0 and values[-1] == 25 and values[1:3] == [1, 2] and len(values) == 26
    assert 5 in values and 26 not in values and values.index(5) == 5 and values.count(5) == 1
    assert list(reversed(values)) == list(range(25, -1, -1))


def views_follow_the_map(make):
    m = letters(make)
    keys, values, items = m.keys(), m.values(), m.items()
    m["A"] = 100
    assert keys[0] == "A" and values[0] == 100 and items[0] == ("A", 100) and len(keys) == 27


def a_key_is_the_inserted_object(make):
    key = "long key " * 10
    assert next(iter(make({key: 1}))) is key


def stress(make):
    rng, m, d = random.Random(0), make(), {}
    for _ in range(5000):
        key, verb = rng.randrange(500), rng.randrange(6)
        if verb < 3:
            m[key] = d[key] = rng.random()
        elif verb == 3:
            assert m.pop(key, None) == d.pop(key, None)
        elif d:
            at = rng.randrange(len(d))
            wanted = sorted(d)[at]
            if verb == 4:
                assert m.peekitem(at) == (wanted, d[wanted]) and m.bisect_left(wanted) == at
            else:
                assert m.popitem(at) == (wanted, d.pop(wanted))
    assert m == d and list(m) == sorted(d)
