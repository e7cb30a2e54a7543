"""The helpers that the tests share."""

import pytest

from silvics import Map

# The default structure has ends and ranks. The others lack ranks, and the last one lacks ends.
STRUCTURES = [None, "skiplist", "edge-ext-lf"]


@pytest.fixture(params=STRUCTURES, ids=lambda name: name or "default")
def structure(request):
    """The name of a structure."""
    return request.param


@pytest.fixture
def checked():
    """A function that makes a map of which `check` is called at the end of the test."""
    made = []

    def make(*args, **options):
        made.append(Map(*args, **options))
        return made[-1]

    yield make
    for m in made:
        assert m.check() == len(m)
