"""The type stubs name what the package has."""

import ast
import pathlib

import silvics


def declared():
    """The names that the stub file declares: those of the module, and those of each class."""
    stub = pathlib.Path(silvics.__file__).with_name("__init__.pyi")
    names = {}
    for node in ast.parse(stub.read_text()).body:
        if isinstance(node, ast.ClassDef):
            names[node.name] = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
    return names


def public(owner):
    return {name for name in dir(owner) if not name.startswith("_")}


def test_the_stubs_are_complete():
    names = declared()
    assert pathlib.Path(silvics.__file__).with_name("py.typed").exists()
    for name in ("Map", "Cursor"):
        stubbed = {method for method in names[name] if not method.startswith("_")}
        inherited = {"update"}  # declared by `MutableMapping`
        assert stubbed | (inherited if name == "Map" else set()) == public(getattr(silvics, name))
    for name in ("KeysView", "ValuesView", "ItemsView"):
        for method in names[name]:
            assert hasattr(getattr(silvics, name), method), (name, method)
    assert set(silvics.__all__) == set(names) - {"_Absent"} | {"ABSENT"}


def test_each_method_has_a_docstring():
    for owner in (silvics.Map, silvics.Cursor, silvics.KeysView, silvics.ItemsView):
        for name in public(owner):
            assert getattr(owner, name).__doc__, (owner, name)
