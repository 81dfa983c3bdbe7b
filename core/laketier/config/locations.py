"""Makes relative locations absolute, once, when the configuration is read.

A location goes through several processes with working folders of their own: the session that began before an
`os.chdir`, the Python processes of Spark's driver, the executors.
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
    """Make a location absolute.

    Args:
        location: A path or a URI. ``~`` at the start of a path is the user's home.
        base: The folder from which relative paths start. None for this process's own.

    Returns:
        An absolute path, or a URI.

    Raises:
        ConfigError: The location is empty, or relative to a folder that was removed.
    """
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
    return os.path.normpath(os.path.join(base or _here(), location))


def _here() -> str:
    try:
        return os.getcwd()
    except OSError as error:
        raise ConfigError(
            "a relative path leads nowhere",
            why="the folder that this process works in was removed",
            fix="Go to another folder, or give absolute paths.",
        ) from error


def absolute_database(url: str, base: str | None = None) -> str:
    """Make the file of a relative ``sqlite:///FILE`` URL absolute. Any other database URL stays."""
    match = _SQLITE.match(url)
    if match is None:
        return url
    path = os.path.join(base or _here(), os.path.expanduser(match["path"]))
    return f"{match['scheme']}:///{os.path.normpath(path)}{match['query'] or ''}"
