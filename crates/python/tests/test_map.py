"""The map beside a dict: the methods of a mapping, copies, views and pickles."""

import copy
import pickle
import random
from collections import Counter, defaultdict
from collections.abc import ItemsView, KeysView, MutableMapping, ValuesView

import pytest

import silvics
from silvics import ABSENT, Map, UnsupportedError


def test_random_operations_beside_a_dict(structure, checked):
    rng = random.Random(5)
    m, d = checked(structure=structure), {}
    for _ in range(20_000):
        key, verb = rng.randrange(300), rng.randrange(12)
        if verb < 4:
            m[key] = d[key] = rng.random()
        elif verb < 6:
            assert m.pop(key, None) == d.pop(key, None)
        elif verb == 6:
            assert m.setdefault(key, key) == d.setdefault(key, key)
        elif verb == 7:
            assert (key in m) == (key in d)
            assert m.get(key) == d.get(key)
        elif verb == 8 and key in d:
            assert m[key] == d[key]
            del m[key], d[key]
        elif verb == 9 and d:
            first = min(d)
            assert m.peekitem(0) == (first, d[first])
            assert m.popitem(0) == (first, d.pop(first))
        elif verb == 10 and d:
            last = max(d)
            assert m.peekitem() == (last, d[last])
            assert m.popitem() == (last, d.pop(last))
        else:
            assert m.compare_exchange(key, d.get(key, ABSENT), key)
            d[key] = key
    assert m == d and d == m and len(m) == len(d)
    assert list(m) == sorted(d) and list(reversed(m)) == sorted(d, reverse=True)
    assert list(m.items()) == sorted(d.items())


def test_an_empty_map():
    m = Map()
    assert not m and len(m) == 0 and list(m) == [] and m.key_type is None
    assert 1 not in m and m.get("x") is None and m.get("x", 3) == 3
    assert list(m.irange(1, 2)) == list(m.irange("a")) == list(m.islice(0, 5)) == []
    assert m.bisect_left(3) == m.bisect_right("a") == 0
    assert m.get_many([1, "a"]) == [None, None]
    assert m.insert_many([]) == 0 and m.key_type is None
    assert m.pop(1, None) is None and m.check() == 0 and m.bytes == 0
    m.clear()
    for call in (m.popitem, lambda: m[1], lambda: m.pop(1), lambda: m.__delitem__(1)):
        with pytest.raises(KeyError):
            call()
    with pytest.raises(IndexError):
        m.peekitem()


def test_it_is_a_mutable_mapping():
    m = Map([(2, "b"), (1, "a")])
    assert isinstance(m, MutableMapping)
    match m:
        case {1: value}:
            assert value == "a"
        case _:
            pytest.fail("a pattern of a mapping matches")
    assert dict(m) == dict(**{}, **{}) | {1: "a", 2: "b"}
    assert Map(m) == m and Map({1: "a", 2: "b"}) == m
    with pytest.raises(TypeError):
        hash(m)


def test_updates():
    m = Map()
    m.update({"a": 1})
    m.update([("b", 2), ["c", 3]])
    m.update(Map({"d": 4}), e=5)
    m |= {"f": 6}
    m |= [("g", 7)]
    assert list(m.items()) == list(zip("abcdefg", range(1, 8)))
    with pytest.raises(TypeError):
        m.update({"h": 8}, **{"i": 9}) or m.update([(1, 1)], j=10)
    assert list(m)[-1] == "i" and m.pop("h") + m.pop("i") == 17

    class Few:
        def keys(self):
            return ["y", "x"]

        def __getitem__(self, key):
            return key * 2

    assert Map(Few()) == {"x": "xx", "y": "yy"}
    few = Map()
    few.update(Few(), z=1)
    assert few == {"x": "xx", "y": "yy", "z": 1}
    assert m | {"a": 0} == {**m, "a": 0}
    assert {"a": 0, "z": 1} | m == {**m, "z": 1}
    assert isinstance({"a": 0} | m, Map)
    for bad in ([1], [(1,)], [(1, 2, 3)], 5):
        with pytest.raises((TypeError, ValueError)):
            Map(bad)
    with pytest.raises(TypeError):
        m | 5


def test_equality_and_repr():
    m = Map({1: [1], 2: "b"})
    assert m == {2: "b", 1: [1]} and m != {1: [1]} and m != {1: [1], 3: "b"} and m != 5
    assert repr(m) == "Map({1: [1], 2: 'b'})"
    m[3] = m
    assert repr(m) == "Map({1: [1], 2: 'b', 3: ...})"
    nan = float("nan")
    assert Map({1: nan}) == Map({1: nan})


def test_equality_looks_up_no_absent_key():
    counts, lists = Counter({2: 1}), defaultdict(list, {2: []})
    assert Map({1: 0}) != counts and counts != Map({1: 0}) and list(counts) == [2]
    assert Map({1: []}) != lists and lists != Map({1: []}) and list(lists) == [2]
    assert Map({2: 1}) == counts and Map({2: []}) == lists


def test_equality_of_maps_with_other_types_of_keys():
    for one, two in (
        (Map({1: "a", 2: "b"}), Map({1.0: "a", 2.0: "b"})),
        (Map({("x", 1): 1}), Map({("x", 1.0): 1})),
        (Map(keys=str), Map(keys=bytes)),
        (Map({1: 1}), Map({1: 1}, structure="skiplist")),
    ):
        assert one == two and two == one and dict(one) == dict(two)
    for one, two in (
        (Map({1: 1}), Map({"1": 1})),
        (Map({1: 1}), Map({1.5: 1})),
        (Map({2**53 + 1: 1}), Map({2.0**53: 1})),
    ):
        assert one != two and two != one


@pytest.mark.parametrize("options", [{}, {"structure": "skiplist"}, {"values": int, "pages": "4k"}])
def test_copies_and_pickles(options):
    m = Map({"b": 2, "a": 1}, **options)
    for twin in (m.copy(), copy.copy(m), copy.deepcopy(m), pickle.loads(pickle.dumps(m))):
        assert twin == m and twin is not m
        assert (twin.structure, twin.value_type, twin.pages) == (m.structure, m.value_type, m.pages)
        twin["c"] = 3
        assert "c" not in m
    assert pickle.loads(pickle.dumps(ABSENT)) is ABSENT
    empty = pickle.loads(pickle.dumps(Map(keys=bytes, memory_limit=1 << 20)))
    assert (empty.key_type, empty.memory_limit) == (bytes, 1 << 20)


def test_a_pickle_of_a_cycle():
    m = Map({1: "a"})
    m[2] = m
    twin = pickle.loads(pickle.dumps(m))
    assert twin[2] is twin and twin[1] == "a"
    deep = copy.deepcopy(m)
    assert deep[2] is deep


def test_derived_classes():
    class Named(Map):
        pass

    m = Named({1: 2})
    m.name = "n"
    assert type(m.copy()) is Named and repr(m) == "Named({1: 2})"
    assert type(Named.fromkeys([1, 2], 0)) is Named
    assert Map.fromkeys("ba", 1) == {"a": 1, "b": 1}
    assert Map.fromkeys([1, 2]) == {1: None, 2: None}
    assert Map[int, str].__origin__ is Map


class Tagged(Map):
    """A derived class whose `__init__` takes other arguments, and which has attributes."""

    __slots__ = ("slot", "__dict__")

    def __init__(self, tag, entries=(), *, note, **options):
        super().__init__(entries)
        self.tag, self.note, self.slot = tag, note, [tag]


def test_derived_classes_with_attributes():
    m = Tagged("t", {2: "b", 1: "a"}, note="n", memory_limit=1 << 24)
    m.self = m
    twins = (m.copy(), copy.copy(m), copy.deepcopy(m), pickle.loads(pickle.dumps(m)))
    for twin in (*twins, m | {}, {} | m):
        assert type(twin) is Tagged and twin is not m and twin == {1: "a", 2: "b"}
        assert (twin.tag, twin.note, twin.slot, twin.memory_limit) == ("t", "n", ["t"], 1 << 24)
    for twin in twins[2:]:
        assert twin.self is twin and twin.slot is not m.slot
    with pytest.raises(TypeError):
        Map({}, unknown=1)
    with pytest.raises(TypeError):
        Map({}, {})


class Slotted(Map):
    __slots__ = ("slot",)


def test_a_derived_class_with_slots_only():
    m = Slotted({1: 2})
    m.slot = 3
    for twin in (m.copy(), copy.deepcopy(m), pickle.loads(pickle.dumps(m)), {} | m):
        assert twin.slot == 3 and twin == m and not hasattr(twin, "__dict__")


class Stateful(Map):
    def __getstate__(self):
        return {"n": 5}

    def __setstate__(self, state):
        self.restored = state["n"]


def test_derived_classes_with_their_own_state():
    m = Stateful({1: 2})
    for twin in (m.copy(), copy.deepcopy(m), pickle.loads(pickle.dumps(m)), m | {}):
        assert twin.restored == 5 and twin == m


def test_messages_name_the_class():
    m = Map()
    for call in (lambda: m.get(), lambda: m.cursor(1), lambda: m.peekitem("x", 1), lambda: m.nothing):
        with pytest.raises((TypeError, AttributeError)) as raised:
            call()
        assert "Base" not in str(raised.value)
    for bad, error in ((-1, ValueError), (2**70, ValueError), ("1", TypeError), (1.5, TypeError)):
        with pytest.raises(error, match="number of bytes"):
            Map(memory_limit=bad)
    for call in (lambda: m.update(5), lambda: Map(5), lambda: m.insert_many(5)):
        with pytest.raises(TypeError, match="mapping or an iterable of pairs, not int"):
            call()
    assert type(ABSENT).__module__ == "silvics._silvics"
    assert getattr(silvics._silvics, type(ABSENT).__name__) is type(ABSENT)


def test_views():
    m = Map({k: k * 10 for k in (3, 1, 2)})
    keys, values, items = m.keys(), m.values(), m.items()
    assert isinstance(keys, KeysView) and isinstance(values, ValuesView) and isinstance(items, ItemsView)
    assert list(keys) == [1, 2, 3] and list(reversed(keys)) == [3, 2, 1]
    assert list(values) == [10, 20, 30] and list(reversed(values)) == [30, 20, 10]
    assert list(items) == [(1, 10), (2, 20), (3, 30)]
    assert keys[0] == 1 and keys[-1] == 3 and values[1] == 20 and items[-3] == (1, 10)
    assert keys.index(2) == 1 and keys.count(2) == 1 and keys.count(9) == 0
    assert values.index(20) == 1 and values.count(20) == 1 and 20 in values and 21 not in values
    assert items.index((2, 20)) == 1 and items.count((2, 21)) == 0
    assert (1, 10) in items and (1, 11) not in items and 5 not in items
    assert keys.bisect_left(2) == 1 and keys.bisect_right(2) == keys.bisect(2) == 2
    assert keys & {1, 9} == {1} and keys | {9} == {1, 2, 3, 9} and keys - {1} == {2, 3}
    assert keys ^ {1, 9} == {2, 3, 9} and {1, 2, 3} == keys and keys.isdisjoint({7})
    assert keys <= {1, 2, 3, 4} and items & {(1, 10)} == {(1, 10)}
    m[4] = 40
    assert len(keys) == 4 and keys[3] == 4
    for view in (keys, values, items):
        with pytest.raises(IndexError):
            view[10]
    with pytest.raises(ValueError):
        keys.index(17)
    with pytest.raises(ValueError):
        items.index((1, 11))


def test_slices_of_views():
    m = Map({k: -k for k in range(10)})
    keys, values, items = list(m), [-k for k in m], [(k, -k) for k in m]
    bounds = [None, -12, -10, -3, -1, 0, 1, 5, 9, 10, 15]
    for start in bounds:
        for stop in bounds:
            for step in (None, 1, 2, 3, -1, -2, -7):
                at = slice(start, stop, step)
                assert m.keys()[at] == keys[at], at
                assert m.values()[at] == values[at], at
                assert m.items()[at] == items[at], at
    assert m.keys()[2:5] == [2, 3, 4]


def test_pop_takes_defaults():
    m = Map({1: None})
    assert m.pop(1) is None
    assert m.pop(1, 5) == 5 and m.pop(1, default := object()) is default
    with pytest.raises(KeyError):
        m.pop(1)
    with pytest.raises(TypeError):
        m.pop(1, 2, 3)
    m = Map({k: k for k in range(10)})
    assert m.popitem(3) == (3, 3) and m.popitem(-2) == (8, 8) and m.peekitem(-2) == (7, 7)
    for index in (8, -9, 100, -100):
        with pytest.raises(IndexError):
            m.popitem(index)
        with pytest.raises(IndexError):
            m.peekitem(index)


def test_indexes_beyond_64_bits():
    m = Map({k: k for k in range(5)})
    assert list(m.islice(0, 2**70)) == list(m.islice(-(2**70))) == [0, 1, 2, 3, 4]
    assert list(m.islice(2**70)) == [] and m.index(3, 0, 2**70) == 3
    for call in (m.peekitem, m.popitem, lambda index: m.keys()[index]):
        for index in (2**70, -(2**70)):
            with pytest.raises(IndexError, match="no entry at this index"):
                call(index)
        with pytest.raises(TypeError):
            call("1")
    for inclusive in ([True, False], (1, 0), [1, []]):
        assert list(m.irange(1, 3, inclusive)) == [1, 2] and m.count(1, 3, inclusive) == 2
    for bad, error in (((True,), ValueError), ((1, 0, 1), ValueError), (5, TypeError)):
        with pytest.raises(error):
            m.irange(1, 3, bad)


def test_compare_exchange():
    m = Map({"a": [1]})
    assert not m.compare_exchange("a", [2], "x")
    assert m.compare_exchange("a", [1], "x") and m["a"] == "x"
    assert not m.compare_exchange("a", ABSENT, "y")
    assert m.compare_exchange("b", ABSENT, "y") and m["b"] == "y"
    assert not m.compare_exchange("c", "y", "z")
    assert m.compare_exchange("b", "y", ABSENT) and "b" not in m
    assert m.compare_exchange("b", ABSENT, ABSENT) and "b" not in m
    nan = float("nan")
    m["n"] = nan
    assert m.compare_exchange("n", nan, 1)

    class Meddles:
        """Replaces the value while it is compared."""

        def __eq__(self, other):
            if m["n"] is self:
                m["n"] = 5
            return True

    m["n"] = Meddles()
    assert m.compare_exchange("n", 5, 6) and m["n"] == 6

    class Raises:
        def __eq__(self, other):
            raise ZeroDivisionError

    m["n"] = r = Raises()
    with pytest.raises(ZeroDivisionError):
        m.compare_exchange("n", 1, 2)
    assert m["n"] is r


def test_structures_without_ranks():
    m = Map({k: k for k in range(10)}, structure="skiplist")
    assert not m.has_ranks and m.structure == "skiplist"
    calls = [
        lambda: m.peekitem(3),
        lambda: m.popitem(3),
        lambda: m.bisect_left(3),
        lambda: m.index(3),
        lambda: m.islice(1, 3),
        lambda: m.count(1, 3),
        lambda: m.keys()[1:3],
    ]
    for call in calls:
        with pytest.raises(UnsupportedError):
            call()
    assert issubclass(UnsupportedError, TypeError)
    assert list(m.irange(3, 5)) == [3, 4, 5]
    with pytest.raises(ValueError, match="nonsense"):
        Map(structure="nonsense")
    empty = Map(structure="skiplist")
    with pytest.raises(UnsupportedError):
        empty.bisect(1)


def test_cursors(structure, checked):
    m = checked({k: str(k) for k in range(0, 2000, 2)}, structure=structure)
    c = m.cursor()
    assert c.key is None and c.value is None and c.current is None
    assert c.next() and c.current == (0, "0")
    assert not c.prev() and c.key is None
    assert c.next() and c.key == 0
    assert c.seek(11) and c.key == 12 and c.value == "12"
    assert c.seek_for_prev(11) and c.key == 10
    assert c.next() and c.next() and c.key == 14 and c.prev() and c.key == 12
    assert not c.seek(5000) and c.key is None and c.prev() and c.key == 1998
    assert c.first() and c.key == 0 and c.last() and c.key == 1998
    walked = [c.key] + [c.key for _ in range(999) if c.prev()]
    assert walked == list(reversed(m))
    c.seek(100)
    del m[100]
    assert c.key == 100 and c.value is None and c.current == (100, ABSENT)
    m[100] = "new"
    assert c.current == (100, "new")
    assert c.next() and c.key == 102
    m[104] = "replaced"
    assert c.next() and c.value == "replaced"
    with pytest.raises(TypeError):
        c.seek("x")


def test_a_cursor_of_a_map_without_keys():
    m = Map()
    c = m.cursor()
    assert not c.next() and not c.first() and not c.seek("a") and c.current is None
    m["b"] = 1
    assert c.next() and c.current == ("b", 1)
    with pytest.raises(TypeError):
        Map().cursor().seek([])


def test_iterators_go_on_while_the_map_changes(structure, checked):
    m = checked({k: k for k in range(1000)}, structure=structure)
    seen = []
    for key in m:
        seen.append(key)
        if key % 2 == 0:
            m.pop(key)
        m[key + 5000] = key
        if len(seen) > 5000:
            break
    assert seen[:1000] == list(range(1000))
    it = iter(m)
    next(it)
    m.clear()
    assert len(list(it)) < 20  # the entries that were read ahead


def test_options():
    m = Map(keys=int, values=float, memory_limit=1 << 24, pages="4k")
    assert (m.key_type, m.value_type, m.memory_limit, m.pages) == (int, float, 1 << 24, "4k")
    for bad in ({"keys": list}, {"keys": "int"}, {"values": str}, {"unknown": 1}):
        with pytest.raises(TypeError):
            Map(**bad)
    with pytest.raises(ValueError):
        Map(pages="1g")


def test_memory():
    m = Map({k: None for k in range(100_000)})
    held = m.bytes
    assert held > 800_000
    m.clear()
    m.shrink()
    assert m.bytes < held / 2
