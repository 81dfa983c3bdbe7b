"""Metadata of a table with one value that its format never writes, and with the checksum that belongs to it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from laketier.kit.manifests.document import digest_of, encode

MOST_SEALED, MOST = 144, 24
"""Forgeries of one table: of documents with a checksum of the kit's, which the format reads itself, and of all others,
which a library reads for it in most formats. Each is looked at several times."""
_SEALED = {"sha256", "body"}
_LEFT_OUT = object()
_NUMBERS: tuple[Any, ...] = ("x", 0, -1, 2**63, _LEFT_OUT)
_TEXTS: tuple[Any, ...] = (7, "x", _LEFT_OUT)
_OTHERS: tuple[Any, ...] = (["x"], 7, None, _LEFT_OUT)
"""What is put into the place of a number, a text and anything else. The first tells most: whoever takes it did not look
at all. Zero is a count, and nothing is divided by it."""


class Forgery(NamedTuple):
    """``change``: in words. ``content``: of the file then."""

    file: Path
    change: str
    content: bytes


class _Drawn(NamedTuple):
    """One that may be chosen. ``rank``: of what is put into the place, among all that may be put there."""

    rank: int
    file: Path
    change: str
    make: Callable[[], bytes]


_Kind = dict[str, _Drawn]
"""Of one kind of document, by what chance says."""


def forged(files: Mapping[Path, bytes]) -> list[Forgery]:
    """Of places that are alike one is taken, the last by name, and of all no more than `MOST_SEALED` and `MOST`: by
    chance, and the same each time."""
    found: dict[bool, dict[tuple[str, ...], _Kind]] = {True: {}, False: {}}
    for file, content in sorted(files.items(), reverse=True):  # of documents that have numbers the newest
        for document, made in _documents(content):
            shape = tuple(sorted(document))
            alike = found[made is encode].setdefault(shape, {})
            for place, change, altered, rank in _altered(document):
                chance = hashlib.sha256(repr((shape, place, change)).encode()).hexdigest()
                alike.setdefault(chance, _Drawn(rank, file, f"{place} is {change}", partial(made, altered)))
    chosen = [*_by_place(found[True].values(), MOST_SEALED), *_in_turn(found[False].values(), MOST)]
    return [Forgery(each.file, each.change, each.make()) for each in chosen]


def _by_place(kinds: Iterable[_Kind], most: int) -> list[_Drawn]:
    """Of documents that a format reads itself, value by value. Each place comes first with what tells most, and one
    that is in several kinds of documents in the newest of them: how a commit is read is the same in each."""
    met: Counter[str] = Counter()
    found: list[tuple[tuple[int, int, str], _Drawn]] = []
    for kind in kinds:
        found += [((met[each.change], each.rank, chance), each) for chance, each in kind.items()]
        met.update(each.change for each in kind.values())
    return [each for _, each in sorted(found, key=itemgetter(0))[:most]]


def _in_turn(kinds: Iterable[_Kind], most: int) -> list[_Drawn]:
    """The first of each kind as it was drawn, then the second of each, and so on."""
    sorted_kinds = ([kind[chance] for chance in sorted(kind)] for kind in kinds)
    return [each for row in zip_longest(*sorted_kinds) for each in row if each is not None][:most]


def resealed(files: Mapping[Path, bytes], file: Path, content: bytes) -> Mapping[Path, bytes]:
    """The files that change where ``file`` gets ``content``: it, and what names its checksum, and so on, as a forger
    leaves them who knows the format."""
    changed = {file: content}
    todo = [(files[file], content)] if is_sealed(files[file]) and is_sealed(content) else []
    while todo:
        was, now = (digest_of(document).encode() for document in todo.pop())
        for other in files.keys() - {file} if was != now else ():
            document = changed.get(other, files[other])
            if was in document and is_sealed(document):
                changed[other] = encode(json.loads(document.replace(was, now))["body"])
                todo.append((document, changed[other]))
    return changed


def is_sealed(content: bytes) -> bool:
    """Whether a file is one document with a checksum of the kit's."""
    document = _json(content)
    return document is not None and set(document) == _SEALED


def _documents(content: bytes) -> Iterator[tuple[Any, Callable[[Any], bytes]]]:
    """The objects of a file of JSON, or of lines of JSON, each with how the file is made with another in its place."""
    lines = content.splitlines() if _json(content) is None else [content]
    for at, line in enumerate(lines):
        document = _json(line)
        if document is None:
            return
        if set(document) == _SEALED:
            yield document["body"], encode
        else:
            yield document, partial(_among, lines, at)


def _among(lines: list[bytes], at: int, altered: Any) -> bytes:
    return b"\n".join([*lines[:at], json.dumps(altered).encode(), *lines[at + 1 :]])


def _json(content: bytes) -> dict[str, Any] | None:
    try:
        document = json.loads(content)
    except ValueError:
        return None
    return document if isinstance(document, dict) else None


def _altered(value: Any, place: str = "") -> Iterator[tuple[str, str, Any, int]]:
    """Each place in the value, what is there instead, the value then, and the rank of what is there."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, old in inner:
        here = f"{place}.{key}" if isinstance(value, dict) else f"{place}[]"
        kind = _NUMBERS if type(old) is int else _TEXTS if isinstance(old, str) else _OTHERS
        for rank, new in enumerate(kind):
            yield here, "left out" if new is _LEFT_OUT else repr(new), _with(value, key, new), rank
        for deeper, change, altered, rank in _altered(old, here):
            yield deeper, change, _with(value, key, altered), rank


def _with(value: Any, key: Any, new: Any) -> Any:
    """A copy."""
    copy = value.copy()
    if new is _LEFT_OUT:
        del copy[key]
    else:
        copy[key] = new
    return copy
