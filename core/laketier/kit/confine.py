"""The one rule for paths from outside: from a table's metadata, staged results, records and listings.

Such a path names a file below a folder (the table's location) and nothing else, for every reader: the kernel, a library
that reads URIs, one that normalises, one that decodes ``%2e``. So a wrong path is refused, and never repaired.

The order matters. An encoded path is decoded first, by the rules of its format, and then confined. A confined path
is never decoded again. The text does not show symbolic links on the way: `laketier.kit.local_folder` checks these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from laketier.spi.errors import OutsideTable

RECORDS = "_laketier"
"""The folder of watermark records (`laketier.kit.record`). Readers and cleaners of all formats leave ``_`` folders
alone."""

LONGEST = 4096
"""The most bytes of a path that a kernel takes. Object stores take 1,024."""

_SHOWN = 80
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")
_STORAGE = re.compile(r"([A-Za-z]|abfss?|adl|az|file|ftp|gc?s|hdfs|https?|memory|oss|s3[an]?|wasbs?):", re.IGNORECASE)
"""The drives and schemes that some reader looks up. Any other, in front of a partition's value, is a column's name:
delta-rs leaves ``ns:k=1`` as it is."""


def confined(path: str, *, where: str) -> str:
    """Return ``path`` unchanged if it is relative, normalised and inside of its folder. ``where`` names that folder,
    or the document that holds the path. Raises `OutsideTable`, which names both."""
    why = escapes(path)
    if why is not None:
        raise OutsideTable(
            f"{_shown(path)} is not the path of a file of the table, and was not touched",
            where=where,
            why=why,
            fix="No writer of laketier makes such a path: find out who wrote it, and restore that file from a backup.",
        )
    return path


def escapes(path: object) -> str | None:
    """Say why ``path`` is not confined, as a clause. None when it is confined. For callers that skip such a path."""
    if not isinstance(path, str):
        return f"it is of type {type(path).__name__}, and a path is text"
    if not path:
        return "it is empty"
    try:
        size = len(path.encode())
    except UnicodeEncodeError:
        return "it is not Unicode"
    if size > LONGEST:
        return f"it has {size} bytes, and {LONGEST} are the most"
    if _CONTROL.search(path):
        return "it holds a control character"
    names = path.split("/")
    if any("\\" in name and not _is_folder_of_column(name) for name in names):
        return "it holds a backslash, which separates folders for some readers"
    if not names[0] or (names[0][0] == "~" and "=" not in names[0]):
        return "it is absolute"
    # Readers of URIs leave blanks in front away.
    if (_STORAGE if "=" in names[0] else _SCHEME).match(path.lstrip(" ")):
        return "it begins with a scheme or a drive"
    return next((why for i, name in enumerate(names) if (why := _leaves(name, names[:i])) is not None), None)


def _is_folder_of_column(name: str) -> bool:
    """Whether a folder is of a partition whose column has a backslash in its name, as delta-rs leaves it, and is no way
    out for whom that separates folders: each part is a plain name."""
    column, equals, value = name.partition("=")
    return bool(equals) and "\\" not in value and all(part.strip(". ") for part in column.split("\\"))


def _leaves(component: str, above: Sequence[str]) -> str | None:
    if not component:
        return "it is not normalised: one of its folders has no name"
    decoded = _decoded(component)
    # Some file systems drop dots and blanks at the end of a name.
    if not component.strip(". "):
        return f"it is not normalised: {_shown(component)} names no file"
    # A partition's folder, ``column=value``, may hold any value, and that of watermark records any pipeline.
    encoded = "=" in component or above == [RECORDS]
    if decoded != component and not encoded and _leaves_decoded(decoded):
        return f"{_shown(component)} is another place to who decodes it"
    return None


def _leaves_decoded(decoded: str) -> bool:
    names = decoded.replace("\\", "/").split("/")
    return not names[0] or not all(name.strip(". ") for name in names if name) or _CONTROL.search(decoded) is not None


def _decoded(component: str) -> str:
    """Without percent-encoding, however often it was applied."""
    while (decoded := unquote(component)) != component:
        component = decoded
    return component


def _shown(path: object) -> str:
    text = ascii(path)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
