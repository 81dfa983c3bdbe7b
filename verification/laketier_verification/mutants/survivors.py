"""Mutants that change nothing a caller could notice, each with the reason in a line: ``tests/mutants/survivors.toml``.
Those that somebody could notice, and no suite that knows no format can ask about. And those that the suite asks about
since a sample drew them.

An entry names its mutant by module, function, operator and text, so it stays when lines move. One that names none, or
one that a test notices, is an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from laketier_verification.mutants.source import Key, Module
from laketier_verification.mutants.targets import ROOT

FILE = ROOT / "tests" / "mutants" / "survivors.toml"
UNASKED = (
    "documents of other tools",
    "what one format has",
    "a server",
    "its library",
    "speed",
    "words",
    "left open",
)
"""What a mutant can be about that no suite of any format asks: documents that other tools or versions wrote; options,
settings, properties and features that one format has; a catalog behind a server; errors of the format's library, and
what it leaves where a process dies in it; speed, memory and statistics for others; words, and which of two right errors
is raised; what the contract leaves open."""


@dataclass(frozen=True)
class Argued:
    """``why`` no caller could tell. Without ``nth``, all that read the same."""

    module: str
    function: str
    operator: str
    before: str
    after: str
    why: str
    nth: int | None = None

    def is_about(self, key: Key) -> bool:
        """Whether it argues this mutant."""
        same = self.nth is None or self.nth == key.nth
        mine = (self.module, self.function, self.operator, self.before, self.after)
        return same and mine == (key.module, key.function, key.operator, key.before, key.after)


def argued(file: Path = FILE) -> list[Argued]:
    """All entries."""
    with file.open("rb") as opened:
        return [Argued(**entry) for entry in tomllib.load(opened).get("survivor", [])]


@dataclass(frozen=True)
class Beyond(Argued):
    """``about``: which of `UNASKED`, and ``why`` in a line. It counts as one only where our own tests notice it, so
    that it is a mistake, and not one that nobody asks about."""

    about: str = ""


def beyond(file: Path = FILE) -> list[Beyond]:
    """All that somebody sorted so."""
    with file.open("rb") as opened:
        return [Beyond(**entry) for entry in tomllib.load(opened).get("beyond", [])]


@dataclass(frozen=True)
class AskedSince(Argued):
    """It survived a sample, and ``by`` is the test of the suite that notices it since. ``why``: what that one asks."""

    by: str = ""


def asked_since(file: Path = FILE) -> list[AskedSince]:
    """All of which a run showed so."""
    with file.open("rb") as opened:
        return [AskedSince(**entry) for entry in tomllib.load(opened).get("asked_since", [])]


def stale(entries: Iterable[Argued], modules: Mapping[str, Module]) -> list[Argued]:
    """Those that name no mutant of the modules which they name. Of functions that are left alone, nothing is said."""
    return [
        entry
        for entry in entries
        if entry.module in modules
        and entry.function not in modules[entry.module].without
        and not any(entry.is_about(each.key) for each in modules[entry.module].mutants)
    ]
