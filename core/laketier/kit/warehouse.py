"""Which local folder ``lake.warehouse`` names."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from laketier.spi.errors import ConfigError


def local_warehouse(warehouse: str) -> Path | None:
    """The folder of a path or a ``file:`` URI, absolute, as executors run in folders of their own. None for another
    scheme. Raises `ConfigError` for nothing at all, which would be the working folder, and for another host."""
    if not warehouse.strip():
        raise ConfigError("lake.warehouse is empty", fix="Set it to a folder, for example /data/lake.")
    parts = urlsplit(warehouse)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise ConfigError(
                f"{warehouse!r} names the host {parts.netloc!r}", fix=f"Write file:///{parts.netloc}{parts.path}."
            )
        return Path(os.path.abspath(unquote(parts.path)))
    return None if parts.scheme else Path(os.path.abspath(os.path.expanduser(warehouse)))
