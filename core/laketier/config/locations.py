"""Where a location lies: what is relative is made absolute once, when the configuration is read.

A location goes through several processes, and each has a folder of its own that it works in: the session that began
before an `os.chdir`, the Python processes of Spark's driver, executors.
"""

from __future__ import annotations

import os
import re

from laketier.spi import ConfigError

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+:")  # one letter is a drive
_FILE = re.compile(r"file:(?!/)(?P<path>.*)", re.IGNORECASE | re.DOTALL)
_SQLITE = re.compile(
    r"(?P<scheme>sqlite(?:\+[a-z0-9_]+)?):///(?P<path>(?!file:)[^/?:][^?]*)(?P<query>\?.*)?\Z", re.DOTALL
)


def absolute(location: str, base: str | None = None) -> str:
    """``location``, absolute: a path, or a URI. ``base``: the folder that relative ones start from; this process's own
    by default. ``~`` at its start is a user's home. Raises `ConfigError` for an empty location."""
    if not location.strip():
        raise ConfigError("the location is empty", fix="Give a folder or a URI.")
    relative = _FILE.match(location)
    if relative is not None:
        location = relative["path"]
    elif _SCHEME.match(location):
        return absolute_database(location, base)
    location = os.path.expanduser(location)
    if os.path.isabs(location):
        return location
    return os.path.normpath(os.path.join(base or os.getcwd(), location))


def absolute_database(url: str, base: str | None = None) -> str:
    """A database URL as SQLAlchemy has them: the file of a relative ``sqlite:///FILE`` is made absolute; any other text
    stays."""
    match = _SQLITE.match(url)
    if match is None:
        return url
    path = os.path.join(base or os.getcwd(), os.path.expanduser(match["path"]))
    return f"{match['scheme']}:///{os.path.normpath(path)}{match['query'] or ''}"
