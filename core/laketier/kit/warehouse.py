"""Which local folder ``lake.warehouse`` names."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from laketier.spi.errors import ConfigError


def local_warehouse(warehouse: str) -> Path | None:
    """The folder of a path or a ``file:`` URI, absolute, as executors run in folders of their own. None for a
    URI of another scheme. Raises `ConfigError` for nothing at all, which would be the working folder, for another host,
    for a query or a fragment, and for ``scheme:path``, which may be a mistake in a URI or a folder of an odd name."""
    parts = urlsplit(warehouse)
    if not warehouse.strip() or (parts.scheme == "file" and not parts.path):
        raise ConfigError("lake.warehouse is empty", fix="Set it to a folder, for example /data/lake.")
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise ConfigError(
                f"{warehouse!r} names the host {parts.netloc!r}", fix=f"Write file:///{parts.netloc}{parts.path}."
            )
        if parts.query or parts.fragment:
            raise ConfigError(
                f"{warehouse!r} has a {'?' if parts.query else '#'}, behind which a URI names no folder",
                fix="Write %3F for ? and %23 for #, or the path without file:.",
            )
        return Path(os.path.abspath(unquote(parts.path)))
    if parts.scheme and "://" not in warehouse:
        scheme, _, rest = warehouse.partition(":")
        raise ConfigError(
            f"lake.warehouse is {warehouse!r}: neither a URI nor a plain path",
            why=f"it begins with {scheme}: and has no //",
            fix=f"Write {scheme}://{rest.lstrip('/')} for a store, or ./{warehouse} for a folder.",
        )
    return None if parts.scheme else Path(os.path.abspath(os.path.expanduser(warehouse)))


def is_same_place(one: str, other: str) -> bool:
    """Whether two warehouses are one, each a URI, a name, or the absolute path of a folder, maybe over links."""
    if one == other:
        return True
    return one.startswith("/") and other.startswith("/") and os.path.realpath(one) == os.path.realpath(other)
