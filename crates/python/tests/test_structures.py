"""Every structure of the catalogue, beside a dict."""

import random

import pytest

from silvics import Map


def names(keys):
    """The structures that take keys of a type: an error message lists them."""
    with pytest.raises(ValueError) as raised:
        Map(keys=keys, structure="none of these")
    return str(raised.value).split(": choose one of ")[1].split(", ")


CASES = [(kind, name) for kind in (int, str) for name in names(kind)]


def test_the_lists():
    assert {(int, "skiplist"), (str, "skiplist"), (int, "edge-ext-lf"), (str, "art")} <= set(CASES)
    assert len(CASES) > 10


@pytest.mark.parametrize("kind, name", CASES, ids=lambda value: getattr(value, "__name__", value))
def test_a_structure(kind, name):
    rng = random.Random(name)
    try:
        m = Map(keys=kind, structure=name)
    except ValueError as error:
        assert "scan" in str(error)
        return
    d = {}
    for _ in range(3000):
        key, verb = kind(rng.randrange(200)), rng.randrange(8)
        if verb < 3:
            m[key] = d[key] = [key]
        elif verb == 3:
            assert m.pop(key, None) == d.pop(key, None)
        elif verb == 4 and d:
            assert m.popitem(0) == (min(d), d.pop(min(d)))
        elif verb == 5 and d:
            assert m.popitem() == (max(d), d.pop(max(d)))
        elif verb == 6:
            low, high = sorted([key, kind(rng.randrange(200))])
            assert list(m.irange(low, high)) == sorted(k for k in d if low <= k <= high)
        else:
            assert m.get(key) == d.get(key)
    assert list(m.items()) == sorted(d.items()) and list(reversed(m)) == sorted(d, reverse=True)
    assert m.check() == len(d)
