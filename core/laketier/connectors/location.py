"""From a path or URI to a file system of pyarrow's."""

from __future__ import annotations

import re

import pyarrow as pa
from pyarrow import fs

from laketier.spi import FeatureNotSupported

HIDDEN = ("_", ".")
"""How the names of files begin that are not data, or not complete."""
_CREDENTIALS = re.compile(r"(?<=://)[^/@]*@")


def filesystem_of(location: str, *, used_as: str = "a folder source") -> tuple[fs.FileSystem, str]:
    """The file system and the path in it. Raises `FeatureNotSupported` for what pyarrow can't open."""
    if "://" not in location and not location.startswith("file:"):
        return fs.LocalFileSystem(), location.rstrip("/") or "/"
    try:
        filesystem, folder = fs.FileSystem.from_uri(location)
    except (pa.ArrowInvalid, OSError) as error:
        reason = f"pyarrow can't open {shown(location)}: {str(error).replace(location, shown(location))}"
        raise FeatureNotSupported("the location", format=used_as, reason=reason) from None
    return filesystem, folder.rstrip("/") or "/"


def shown(location: str) -> str:
    """A location without the user and password that a URI may hold."""
    return _CREDENTIALS.sub("***@", location)


def is_hidden(path: str) -> bool:
    """Whether a file, or a folder on the way to it, is left out."""
    return any(part.startswith(HIDDEN) for part in path.split("/") if part)
