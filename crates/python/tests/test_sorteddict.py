"""The promises of `SortedDict`, kept by both classes, except for a list of tests with reasons."""

import builtins
import inspect
import pathlib

import pytest
import sorteddict_suite

from silvics import Map

LIST = pathlib.Path(__file__).with_name("sorteddict_exceptions.txt")
HELPERS = {"letters"}
TESTS = {
    name: test
    for name, test in inspect.getmembers(sorteddict_suite, inspect.isfunction)
    if test.__module__ == "sorteddict_suite" and name not in HELPERS
}
EXCEPTIONS = {
    line.split(": ")[0]: line.split(": ", 2)[1:]
    for line in LIST.read_text().splitlines()
    if line and not line.startswith("#")
}


@pytest.mark.parametrize("name", TESTS)
def test_sorteddict_itself(name):
    sortedcontainers = pytest.importorskip("sortedcontainers")
    TESTS[name](sortedcontainers.SortedDict)


@pytest.mark.parametrize("name", [name for name in TESTS if name not in EXCEPTIONS])
def test_map(name):
    TESTS[name](Map)


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_map_differs(name):
    wanted = EXCEPTIONS[name][0]
    with pytest.raises(pytest.fail.Exception if wanted == "Failed" else getattr(builtins, wanted)) as raised:
        TESTS[name](Map)
    assert raised.type.__name__ == wanted


def test_the_list_has_reasons():
    assert set(EXCEPTIONS) <= set(TESTS)
    assert all(len(reason) > 10 for _, reason in EXCEPTIONS.values())
