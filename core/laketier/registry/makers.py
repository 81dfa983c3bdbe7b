"""Which releases describe the tables of a format: what one wrote down, another may describe otherwise."""

from __future__ import annotations

import functools
import importlib.metadata
import re

from laketier.registry.discovery import installed_formats

_VERSION = re.compile(r"^Version:\s*(\S+)", re.MULTILINE)
_REQUIRED = re.compile(r"^Requires-Dist:\s*([A-Za-z0-9][A-Za-z0-9._-]*)(?![^\n]*extra\s*==)", re.MULTILINE)
_ALWAYS = ("laketier", "pyarrow")


def maker_of(name: str) -> str:
    """The releases that take part when a table of a format is described: laketier's, the plugin's, and those of
    what the plugin needs, such as ``laketier 0.1.0, pyarrow 26.0.1, …``. Reads package metadata, and imports nothing.

    Args:
        name: The value of ``lake.format``.

    Returns:
        The text; the same in all processes of one environment.
    """
    return _releases(frozenset(offer.distribution for offer in installed_formats() if offer.name == name))


@functools.lru_cache(maxsize=32)
def _releases(distributions: frozenset[str]) -> str:
    # Python's own reader takes each file for an e-mail, which costs a new process more than all else of a look.
    plugins = {name: _metadata(name) for name in distributions}
    needed = {each for text in plugins.values() for each in _REQUIRED.findall(text)}
    texts = plugins | {name: _metadata(name) for name in needed.union(_ALWAYS)}
    found = {name.lower(): match[1] for name, text in texts.items() if (match := _VERSION.search(text)) is not None}
    return ", ".join(f"{name} {version}" for name, version in sorted(found.items()))


def _metadata(distribution: str) -> str:
    try:
        return importlib.metadata.distribution(distribution).read_text("METADATA") or ""
    except importlib.metadata.PackageNotFoundError:
        return ""
