"""What the methods of a plugin answer, held against the types that the SPI says: an answer of another type is told by
the method's name. It would else be an error of Python's, somewhere in a test or in laketier.

Nothing is raised at the call, as laketier takes an error of a publish for an unknown outcome. It is noted, and the run
fails the test that was underway.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import functools
import importlib
import re
import types
import typing
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from laketier import spi
from laketier_conformance.expect import shown
from laketier_conformance.heard import heard

CONTRACT: tuple[type, ...] = (
    spi.LakeStoragePlugin,
    spi.LakeStorage,
    spi.LakeCatalog,
    spi.LakeTieringFactory,
    spi.LakeWriter,
    spi.LakeCommitter,
    spi.TableState,
    spi.LakeSource,
    spi.LakeHistory,
    spi.LakeChanges,
    spi.LakeFeed,
    spi.LakeMaintenance,
    spi.LakeAdoption,
    spi.LakeIndexer,
    spi.LakeIndexBuilder,
    spi.LakeSearcher,
    spi.SimpleVersionedSerializer,
)
"""What a plugin implements. An object of these that a method answers is watched from then on."""
WRONG: list[str] = []
"""What was noted since it was cleared, in sentences."""
_MANY = 50
"""Of a list, so many are looked at."""
_WATCHED = "__laketier_watched__"
# By name: whether a class is a subclass of these costs each new process of the suite more than its request.
_MAPPINGS = (dict, collections.abc.Mapping)
_SEQUENCES = (list, tuple, collections.abc.Sequence)
_STREAMS = (collections.abc.Iterable, collections.abc.Iterator, collections.abc.Collection)
_SEEN: set[type] = set()
"""Classes that were looked at."""


def watch(found: object) -> None:
    """Note wrong answers of an object's methods from now on, and of what they answer. Its classes are changed, once."""
    if type(found) in _SEEN:
        return
    _SEEN.add(type(found))
    for contract in CONTRACT:
        if not isinstance(found, contract):
            continue
        for name, hint in promised(contract).items():
            owner = next(each for each in type(found).__mro__ if name in vars(each))
            member = vars(owner)[name]
            if owner in CONTRACT or hasattr(getattr(member, "fget", member), _WATCHED):
                continue  # the default is right
            said = f"{contract.__name__}.{name}"
            if isinstance(member, types.FunctionType):
                setattr(owner, name, _watched(member, said, hint))
            elif isinstance(member, property) and member.fget is not None:
                setattr(owner, name, member.getter(_watched(member.fget, said, hint)))


@functools.cache
def promised(contract: type) -> dict[str, Any]:
    """By its name, the type that each method and property of a class of the SPI answers."""
    told = {}
    for name, member in vars(contract).items():
        function = member.fget if isinstance(member, property) else member
        if isinstance(function, types.FunctionType) and not name.startswith("_"):
            told[name] = _hints(function)["return"]
    return told


def _watched(function: Callable[..., Any], said: str, hint: Any) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        answer = function(*arguments, **named)
        heard()
        wrong = None if hint is type(None) else next(_wrong(answer, hint, "the answer"), None)
        if wrong is not None:
            WRONG.append(f"{said} answers what its contract says: {wrong}")
        watch(answer)
        return answer

    setattr(call, _WATCHED, True)
    return call


def _wrong(found: Any, hint: Any, what: str) -> Iterator[str]:
    """What is not as the annotation says, in words."""
    hint = getattr(hint, "__bound__", hint)
    if not _is(found, hint):
        yield f"expected {what} to be {named(hint)}, found {shown(found)}"
        return
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if found is not None:
            yield from _wrong(found, next(each for each in inner if each is not type(None) and _is(found, each)), what)
    elif origin in _MAPPINGS:
        for key, value in islice(found.items(), _MANY):
            yield from _wrong(key, inner[0], f"a key of {what}")
            yield from _wrong(value, inner[1], f"{key!r} of {what}")
    elif origin in _SEQUENCES:
        if origin is not tuple or inner[1:] == (Ellipsis,):
            for each in islice(found, _MANY):
                yield from _wrong(each, inner[0], f"each of {what}")
    elif isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint.__module__.startswith(f"{spi.__name__}."):
        hints = _hints(hint)
        for field in dataclasses.fields(hint):
            yield from _wrong(getattr(found, field.name), hints[field.name], f"{field.name} of {hint.__name__}")


def _is(found: Any, hint: Any) -> bool:
    """Whether it may be used as this type: any sequence is a list, and numbers of NumPy are Python's."""
    origin = typing.get_origin(hint) or hint
    if isinstance(origin, typing.TypeVar):
        return origin.__bound__ is None or _is(found, origin.__bound__)
    if origin in (types.UnionType, typing.Union):
        return any(_is(found, each) for each in typing.get_args(hint))
    if origin is Any or not isinstance(origin, type):
        return True
    if origin in _MAPPINGS:
        return isinstance(found, collections.abc.Mapping)
    if origin in _SEQUENCES:
        return isinstance(found, collections.abc.Sequence) and not isinstance(found, str | bytes)
    if origin in _STREAMS:
        return isinstance(found, collections.abc.Iterable) and not isinstance(found, str | bytes)
    if origin is int or origin is float:
        return not isinstance(found, bool) and hasattr(found, "__index__" if origin is int else "__float__")
    return isinstance(found, origin)


def named(hint: Any) -> str:
    """A type, as the SPI's pages have it."""
    if isinstance(hint, typing.TypeVar):
        return named(hint.__bound__)
    if isinstance(hint, type) and not typing.get_args(hint):
        return "None" if hint is type(None) else hint.__name__
    return re.sub(r"[\w.]+\.(?=\w)", "", str(hint)).replace("NoneType", "None")


@functools.cache
def _hints(what: Any) -> dict[str, Any]:
    """Of a function or a class of the SPI, whose modules import some names for types alone."""
    of_types = {**vars(collections.abc), **{name: getattr(spi, name) for name in dir(spi)}}
    return typing.get_type_hints(what, of_types | vars(importlib.import_module(what.__module__)))
