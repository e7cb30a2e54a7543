"""A sorted map with ranks, ranges, arrays and a memory limit.

>>> from silvics import Map
>>> m = Map({3: "c", 1: "a", 2: "b"})
>>> list(m)
[1, 2, 3]
>>> list(m.irange(2, 3)), m.peekitem(0), m.bisect_left(3)
([2, 3], (1, 'a'), 2)
"""

from collections.abc import (
    ItemsView as _ItemsView,
    KeysView as _KeysView,
    Mapping as _Mapping,
    MutableMapping as _MutableMapping,
    Sequence as _Sequence,
    ValuesView as _ValuesView,
)
from reprlib import recursive_repr as _recursive_repr

from ._silvics import ABSENT, Cursor, LimitError, Map as _Base, UnsupportedError

__all__ = [
    "ABSENT",
    "Cursor",
    "ItemsView",
    "KeysView",
    "LimitError",
    "Map",
    "UnsupportedError",
    "ValuesView",
]
__version__ = "0.2.0"

_MISSING = object()


class _Sorted(_Sequence):
    """The part that the three views have in common: indexes and slices."""

    __slots__ = ()
    _parts = ""

    def __len__(self):
        return len(self._mapping)

    def __iter__(self):
        return self._mapping._slice(self._parts)

    def __reversed__(self):
        return self._mapping._slice(self._parts, None, None, True)

    def __getitem__(self, index):
        if not isinstance(index, slice):
            return self._pick(self._mapping.peekitem(index))
        start, stop, step = index.indices(len(self))
        if step > 0:
            return list(self._mapping._slice(self._parts, start, max(start, stop)))[::step]
        # A descending slice begins at `start` and ends behind `stop`, which may be -1.
        low, high = stop + 1, start + 1
        if low >= high:
            return []
        return list(self._mapping._slice(self._parts, low, high, True))[:: -step]

    def __delitem__(self, index):
        if isinstance(index, slice):
            for key in self._mapping.keys()[index]:
                self._mapping.pop(key, None)
        else:
            self._mapping.popitem(index)


class KeysView(_KeysView, _Sorted):
    """The keys of a map in ascending order, as a set and as a sequence."""

    __slots__ = ()
    _parts = "keys"
    __len__, __iter__, __reversed__ = _Sorted.__len__, _Sorted.__iter__, _Sorted.__reversed__

    @staticmethod
    def _pick(item):
        return item[0]

    def bisect_left(self, key):
        """Return the number of keys that are smaller than `key`."""
        return self._mapping.bisect_left(key)

    def bisect_right(self, key):
        """Return the number of keys that are not greater than `key`."""
        return self._mapping.bisect_right(key)

    bisect = bisect_right

    def index(self, key, start=None, stop=None):
        """Return the index of `key`, or raise `ValueError` if it is absent."""
        return self._mapping.index(key, start, stop)

    def count(self, key):
        """Return 1 if `key` is present, else 0."""
        return int(key in self._mapping)


class ItemsView(_ItemsView, _Sorted):
    """The entries of a map as pairs, in ascending order of their keys."""

    __slots__ = ()
    _parts = "items"
    __len__, __iter__, __reversed__ = _Sorted.__len__, _Sorted.__iter__, _Sorted.__reversed__

    @staticmethod
    def _pick(item):
        return item

    def __contains__(self, item):
        try:
            key, value = item
        except (TypeError, ValueError):
            return False
        present = self._mapping.get(key, _MISSING)
        return present is not _MISSING and (present is value or present == value)

    def index(self, item, start=None, stop=None):
        """Return the index of a pair, or raise `ValueError` if it is absent."""
        if item not in self:
            raise ValueError("this pair is not in the map")
        return self._mapping.index(item[0], start, stop)

    def count(self, item):
        """Return 1 if the pair is present, else 0."""
        return int(item in self)


class ValuesView(_ValuesView, _Sorted):
    """The values of a map in ascending order of their keys."""

    __slots__ = ()
    _parts = "values"
    __len__, __iter__, __reversed__ = _Sorted.__len__, _Sorted.__iter__, _Sorted.__reversed__

    @staticmethod
    def _pick(item):
        return item[1]

    def __contains__(self, value):
        return any(present is value or present == value for present in self)


class Map(_Base):
    """A sorted map.

    `Map(items)` takes a mapping or an iterable of pairs, as `dict` does. These options follow:

    keys: the type of the keys: `int`, `float`, `str`, `bytes` or `tuple`. By default the first key
        decides it.
    values: `object` (the default), or `int` or `float`, whose values are stored in the map itself.
    structure: the name of a structure, such as "skiplist". Without a name the map counts its keys.
    memory_limit: the most bytes that the map may hold.
    pages: "thp" (the default), "4k" or "hugetlb".
    """

    __slots__ = ("__weakref__",)
    __hash__ = None

    # `__new__` sets the options, and ignores the other arguments, which a derived class can have.
    def __init__(
        self, items=(), /, *, keys=None, values=None, structure=None, memory_limit=None, pages=None
    ):
        self.update(items)

    def update(self, items=(), /, **named):
        """Insert the entries of a mapping, or of an iterable of pairs, and then the named ones."""
        if named:
            pairs = items.items() if isinstance(items, _Mapping) else _pairs(items)
            items = [*pairs, *named.items()]
        self.insert_many(items)

    def keys(self):
        """Return a sorted view of the keys."""
        return KeysView(self)

    def values(self):
        """Return a view of the values, in ascending order of their keys."""
        return ValuesView(self)

    def items(self):
        """Return a sorted view of the entries."""
        return ItemsView(self)

    def _options(self):
        return {
            "keys": self.key_type,
            "values": self.value_type,
            "structure": self.structure,
            "memory_limit": self.memory_limit,
            "pages": self.pages,
        }

    def copy(self):
        """Return a new map with the same options and entries."""
        new = self._empty()
        new.insert_many(self)
        return new

    __copy__ = copy

    def _empty(self):
        """Return a map of the same class, options and attributes, without entries."""
        new = _made(type(self), self._options())
        state = self.__getstate__()
        if hasattr(new, "__setstate__"):
            new.__setstate__(state)
        elif state is not None:
            attributes, slots = state if isinstance(state, tuple) else (state, None)
            if attributes:
                new.__dict__.update(attributes)
            for name, value in (slots or {}).items():
                setattr(new, name, value)
        return new

    @classmethod
    def fromkeys(cls, keys, value=None, /, **options):
        """Return a new map in which each key has the same value."""
        new = cls(**options)
        keys = list(keys)
        new.insert_many(keys, [value] * len(keys))
        return new

    def __or__(self, other):
        if not isinstance(other, _Mapping):
            return NotImplemented
        new = self.copy()
        new.update(other)
        return new

    def __ror__(self, other):
        if not isinstance(other, _Mapping):
            return NotImplemented
        new = self._empty()
        new.update(other)
        new.update(self)
        return new

    def __ior__(self, other):
        self.update(other)
        return self

    def __eq__(self, other):
        if not isinstance(other, _Mapping):
            return NotImplemented
        if self is other:
            return True
        if len(self) != len(other):
            return False
        if isinstance(other, Map):
            # Keys of the types int and float can be equal, but a lookup in one of the maps may
            # refuse those of the other one.
            pairs = zip(self.items(), other.items())
            return all(one == two and (a is b or a == b) for (one, a), (two, b) in pairs)
        for key, value in self.items():
            # A lookup alone can insert the key: that of a `defaultdict` does.
            if key not in other:
                return False
            try:
                found = other[key]
            except KeyError:
                return False  # another thread has removed it
            if not (found is value or found == value):
                return False
        return True

    @_recursive_repr()
    def __repr__(self):
        entries = ", ".join(f"{key!r}: {value!r}" for key, value in self.items())
        return f"{type(self).__name__}({{{entries}}})"

    def __reduce__(self):
        state = self.__getstate__()
        return _made, (type(self), self._options()), state, None, iter(self.items())

    def __sizeof__(self):
        return super().__sizeof__() + self.bytes

    __class_getitem__ = classmethod(type(list[int]))


def _pairs(items):
    """Return the pairs of an iterable of pairs, or of an object with the method `keys`."""
    return [(key, items[key]) for key in items.keys()] if hasattr(items, "keys") else items


def _made(cls, options):
    """Make an empty map of a class, for copies and unpickling. `__init__` is not called."""
    return _Base.__new__(cls, **options)


_MutableMapping.register(Map)
