"""Where the pages for authors are: in a checkout, or among the files that came with laketier's wheel."""

from __future__ import annotations

import sysconfig
from pathlib import Path

GUIDE = "docs/authors/guide.md"
SOURCES = "docs/authors/sources.md"
_CHECKOUT = Path(__file__).parents[3]
_DOCUMENTS = Path(sysconfig.get_path("data"), "share", "doc", "laketier")


def page(link: str) -> str:
    """Where to read a page, with the heading behind ``#``: its path in a checkout, or else that of a wheel's file."""
    name, _, anchor = link.partition("#")
    if not _CHECKOUT.joinpath(name).is_file() and _DOCUMENTS.joinpath(name).is_file():
        return f"{_DOCUMENTS / name}#{anchor}" if anchor else str(_DOCUMENTS / name)
    return link
