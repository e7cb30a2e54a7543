"""Runs the tests of sortedcontainers 2.4.0 for `SortedDict` with `silvics.Map` in its place.

    python original.py [FOLDER]

FOLDER has the source of sortedcontainers. Without it, apt-get fetches the source of Debian's
package, since the archive for pip contains no tests. The tests of `EXCEPTIONS` must fail, each for
the reason there, and no other test may. Without the source it prints a message and ends: without an
error, or with one if SILVICS_REQUIRE=1.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

# The module that the tests import in place of sortedcontainers.
STAND_IN = """
import silvics

class SortedDict(silvics.Map):
    def _check(self):
        self.check()

    def _reset(self, load):
        pass  # a setting of SortedDict's lists
"""

KEY_FUNCTION = "the test has a key function"
EXCEPTIONS = {
    "test_init": "Map has no attribute `key`: there is no key function",
    "test_init_key": KEY_FUNCTION,
    "test_init_kwargs": "named arguments of Map are its options",
    "test_iter_key": KEY_FUNCTION,
    "test_reversed_key": KEY_FUNCTION,
    "test_irange_key": KEY_FUNCTION,
    "test_notgiven": "the test looks at a private name of SortedDict",
    "test_repr_recursion": KEY_FUNCTION,
    "test_iloc": "SortedDict has deprecated `iloc`: `keys()[i]` takes its place",
    "test_index_key": KEY_FUNCTION,
    "test_bisect_key": KEY_FUNCTION,
    "test_bisect_key2": KEY_FUNCTION,
    "test_keysview": "set operations on views return a set, which is not sorted",
    "test_valuesview": "the test compares a name of a class in a text",
    "test_itemsview": "set operations on views return a set, which is not sorted",
    "test_pickle": KEY_FUNCTION,
}


def fetched(place):
    """Fetches the source by apt-get, with the lists of this machine as lists of sources."""
    lists = place / "lists"
    lists.mkdir()
    for path in pathlib.Path("/etc/apt/sources.list.d").glob("debian*"):
        text = re.sub(r"(?m)^Types: deb$", "Types: deb-src", path.read_text())
        (lists / path.name).write_text(re.sub(r"(?m)^deb ", "deb-src ", text))
    options = [
        f"-oDir::Etc::SourceParts={lists}",
        "-oDir::Etc::SourceList=/dev/null",
        f"-oDir::State::Lists={place}",
        f"-oDir::Cache::srcpkgcache={place}/srcpkgcache.bin",
        f"-oDir::Cache::pkgcache={place}/pkgcache.bin",
    ]
    for command in (["update"], ["source", "--download-only", "sortedcontainers"]):
        subprocess.run(
            ["apt-get", "-qq", *options, *command],
            cwd=place,
            check=True,
            capture_output=True,
            timeout=120,
        )
    archive = next(place.glob("sortedcontainers_2.4.0.orig.tar.*"))
    subprocess.run(["tar", "xf", archive.name], cwd=place, check=True)
    return next(place.glob("*sortedcontainers-2.4.0"))


class Outcomes:
    """A plug-in of pytest that keeps the names of the tests by their outcomes."""

    def __init__(self):
        self.passed, self.failed = set(), set()

    def pytest_runtest_logreport(self, report):
        """Sees the outcome of a test."""
        if report.when == "call" or report.failed:
            names = self.passed if report.passed else self.failed
            names.add(report.nodeid.rsplit("::", 1)[1])


def main():
    """Runs the tests, and returns the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        place = pathlib.Path(folder)
        try:
            source = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else fetched(place)
        except (OSError, StopIteration, subprocess.SubprocessError) as error:
            print(f"skipped: the source of sortedcontainers cannot be fetched ({error})")
            return int(os.environ.get("SILVICS_REQUIRE") == "1")
        tests = place / "run" / "tests"
        tests.mkdir(parents=True)
        for name in ("test_coverage_sorteddict.py", "test_stress_sorteddict.py"):
            shutil.copy(source / "tests" / name, tests)
        (tests / "__init__.py").touch()
        (tests / "context.py").write_text("import sortedcontainers\n")
        (tests.parent / "sortedcontainers.py").write_text(STAND_IN)
        sys.path.insert(0, str(tests.parent))
        sys.modules.pop("sortedcontainers", None)
        outcomes = Outcomes()
        pytest.main(["-qq", "-p", "no:cacheprovider", "--tb=no", "--no-summary", str(tests)], [outcomes])
    wrong = outcomes.failed ^ set(EXCEPTIONS)
    print(f"sortedcontainers' own tests: {len(outcomes.passed)} pass, {len(outcomes.failed)} do not apply")
    if wrong or len(outcomes.passed) < 40:
        print(f"not as in the list of exceptions: {', '.join(sorted(wrong))}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
