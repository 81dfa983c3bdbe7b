"""Checked documents: ``{"sha256":"<of the body>","body":<canonical JSON>}``, one line that `jq` reads, with every
bit checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from laketier.spi.errors import CorruptTable, OutsideTable

FORMAT_VERSION = 1
KEYED_VERSION = 2
"""The version of documents that name removed files or a primary key. A reader of version 1 alone would show replaced
rows again, so it must refuse them. All other documents keep version 1."""
FOLDED_VERSION = 3
"""The version of manifests with files that hold rows of older files. A reader of version 2 alone would take these rows
for new ones when it reads the commit, so it must refuse them."""
FORMATTED_VERSION = 4
"""The version of documents whose tables or files name a file format (`FORMAT_PROPERTY`, `FORMAT_DETAIL`). A reader of
the versions before would take all files for the one that it knows."""
ADOPTED_VERSION = 5
"""The version of all documents of a table that was made of files that lay there (`Manifest.origin`). A reader of the
versions before would take names of others for forged ones, and begin pipelines anew whose watermarks were lost."""
TRANSFORMED_VERSION = 6
"""The version of documents of tables whose partitions are more than values of columns in their files. A reader of the
versions before would take `day(ts)` for a column, folders by time for none of the table's, and a partition column that
files do not hold for null."""
GROWING_VERSION = 7
"""The version of documents with files that grow from commit to commit (`laketier.kit.manifests.growth`). A reader of
the versions before would read such a file to wherever it ends, or call it damaged."""
EXPIRED_VERSION = 8
"""The version of manifests of tables whose oldest snapshots have expired (`Manifest.earliest`). A reader of the
versions before would take files that were deleted with them for lost ones."""

_VERSIONS = (
    FORMAT_VERSION,
    KEYED_VERSION,
    FOLDED_VERSION,
    FORMATTED_VERSION,
    ADOPTED_VERSION,
    TRANSFORMED_VERSION,
    GROWING_VERSION,
    EXPIRED_VERSION,
)

_DIGITS = 64
_HEAD = b'{"sha256":"'
_MIDDLE = b'","body":'
_TAIL = b"}\n"
_BODY = len(_HEAD) + 64 + len(_MIDDLE)

T = TypeVar("T")


def encode(body: Mapping[str, Any]) -> bytes:
    """A checked document of ``body``."""
    written = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    return _HEAD + hashlib.sha256(written).hexdigest().encode() + _MIDDLE + written + _TAIL


def digest_of(document: bytes) -> str:
    """The SHA-256 in the head of a document made by `encode`."""
    return document[len(_HEAD) : len(_HEAD) + 64].decode()


def decode(data: bytes, path: Path | str, build: Callable[[dict[str, Any], str], T]) -> T:
    """Check a document and build an object from its body and digest. Raises `CorruptTable` naming ``path``, also for
    errors of ``build`` on a body that laketier did not write."""
    body = data[_BODY : -len(_TAIL)]
    sha256 = hashlib.sha256(body).hexdigest()
    if data != _HEAD + sha256.encode() + _MIDDLE + body + _TAIL:
        raise CorruptTable(
            "the file is damaged",
            where=str(path),
            why=f"its {len(data)} bytes do not match the checksum in its head",
            fix="Restore this file from a backup; the other files of the table are not affected.",
        )
    try:
        document = json.loads(body)
        version = document["version"]
        if version in _VERSIONS:
            return build(document, sha256)
    except OutsideTable as error:
        raise CorruptTable(
            f"{error.where}: {error.what}",
            where=str(path),
            why=error.why or "another program than laketier wrote it",
            fix="Find out who wrote the file, and restore it from a backup. Nothing outside of the table was touched.",
        ) from error
    except (MemoryError, CorruptTable):
        raise
    except Exception as error:  # each library that builds a part has errors of its own
        raise CorruptTable("the file's content does not match its place", where=str(path), why=repr(error)) from error
    raise CorruptTable(
        f"the file has version {version!r}, and this laketier reads {_VERSIONS[0]} to {_VERSIONS[-1]}",
        where=str(path),
        fix="Use a newer laketier.",
    )


def digests_from_plain(plain: Any, before: int) -> dict[int, str]:
    """Digests of manifests by their numbers, which are names in JSON. Raises `TypeError`, `ValueError` and
    `AttributeError` for what no manifest numbered ``before`` names."""
    found = {whole(int(number)): text(digest) for number, digest in plain.items()}
    if any(number >= before or len(digest) != _DIGITS for number, digest in found.items()):
        raise ValueError(
            f"it names the manifests {sorted(found)}, which are not all before {before}, or not by digests"
        )
    return found


def digest(value: Any) -> str:
    """The digest of another document, or an empty text where there is none. Raises `TypeError` and `ValueError`."""
    if len(text(value)) not in (0, _DIGITS):
        raise ValueError(f"{value!r} is no digest")
    return text(value)


def texts(mapping: Any) -> dict[str, str]:
    """Names and their texts, such as properties. Raises `TypeError` and `AttributeError` for any other value."""
    return {name: text(value) for name, value in mapping.items()}


def text(value: Any) -> str:
    """A name, or whatever else is compared with texts. Raises `TypeError` for any other value."""
    if type(value) is not str:
        raise TypeError(f"{value!r} is no text")
    return value


def whole(number: Any) -> int:
    """A number that may become part of a name, or a count. Raises `TypeError` and `ValueError` for any other value."""
    if type(number) is not int:
        raise TypeError(f"{number!r} is no whole number")
    if not 0 <= number < 2**63:
        raise ValueError(f"{number} is no count")
    return number
