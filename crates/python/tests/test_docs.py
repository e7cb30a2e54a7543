"""The examples of the documents: each line whose comment is a value has this value."""

import ast
import doctest
import pathlib
import re

import pytest

import silvics

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "python.md"


def test_the_docstring_of_the_package():
    results = doctest.testmod(silvics)
    assert results.attempted > 0 and results.failed == 0


def test_the_page():
    pytest.importorskip("numpy")
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names, compared = {}, 0
    for line in code.splitlines():
        statement, _, comment = line.partition("#")
        try:
            wanted = ast.literal_eval(comment.split(":")[0].strip())
        except (SyntaxError, ValueError):
            exec(line, names)
            continue
        assert eval(statement, names) == wanted, line
        compared += 1
    assert compared > 10
