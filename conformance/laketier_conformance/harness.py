"""Where the suite keeps its tables, and the one thing that an author may supply.

An entry point of group ``laketier.conformance``, named as the format, may point at an object (or a class without
arguments) with any of these:

- ``setup(folder: pathlib.Path) -> Warehouse``: an empty warehouse for one test. By default a folder below ``folder``.
- ``teardown(warehouse: Warehouse) -> None``: after that test.
- ``engine_modules: tuple[str, ...]``: top-level modules that importing the plugin must not import.
- ``roll_back(storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None``: what a foreign tool would do to take
  the table back to a snapshot. Needed to show `Feature.ROLLBACK_DETECTION`.
- ``keep_feed(storage: LakeStorage, table: TableInfo) -> None``: what a user does to make a table keep its change feed.
  Needed to show `Feature.CHANGE_FEED` where a table keeps none by itself.
- ``expire(storage: LakeStorage, table: TableInfo) -> None``: what a foreign tool would do to forget all versions but
  the newest.
- ``compact(storage: LakeStorage, table: TableInfo) -> None``: what a foreign tool would do to put the rows of small
  files into fewer ones, in a commit that changes no row.
- ``delete_rows(storage: LakeStorage, table: TableInfo, ids: Sequence[int]) -> None``: what a foreign tool would do to
  delete the rows with these values of the column ``id``.
- ``secret_options(folder: pathlib.Path) -> Mapping[str, str]``: options (those below ``lake.<format>.``) by which a
  warehouse in ``folder`` can be used, with ``{secret}`` for each password. By default each option that is a `Secret`,
  that is named like one, or that is handed on to a library.

Where one of ``expire``, ``compact`` and ``delete_rows`` is not there, the report says that nothing showed its effect.
"""

from __future__ import annotations

import difflib
import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laketier.spi import PluginBroken, PluginConflict

GROUP = "laketier.conformance"
_MEMBERS = (
    "setup",
    "teardown",
    "engine_modules",
    "roll_back",
    "keep_feed",
    "expire",
    "compact",
    "delete_rows",
    "secret_options",
)


@dataclass(frozen=True)
class Warehouse:
    """A warehouse and the options to open it: the keys below ``lake.<format>.``, as text."""

    location: str
    options: Mapping[str, str] = field(default_factory=dict)


class Harness:
    """What the author supplied, with defaults for the rest."""

    def __init__(self, supplied: Any = None) -> None:
        self._supplied = supplied

    @classmethod
    def of(cls, name: str) -> Harness:
        """The harness for a format."""
        found = supplied_for(name)
        return cls(found() if isinstance(found, type) else found)

    def setup(self, folder: Path) -> Warehouse:
        """An empty warehouse."""
        make = getattr(self._supplied, "setup", None)
        if make is None:
            return Warehouse(str(folder / "warehouse"))
        warehouse: Warehouse = make(folder)
        return warehouse

    def teardown(self, warehouse: Warehouse) -> None:
        """Undo `setup`."""
        undo = getattr(self._supplied, "teardown", None)
        if undo is not None:
            undo(warehouse)

    @property
    def engine_modules(self) -> tuple[str, ...]:
        """Empty when the author named none."""
        return tuple(getattr(self._supplied, "engine_modules", ()))

    @property
    def roll_back(self) -> Any:
        """None when the author gave none."""
        return getattr(self._supplied, "roll_back", None)

    def secret_options(self, folder: Path) -> Mapping[str, str] | None:
        """None when the author gave none."""
        found = getattr(self._supplied, "secret_options", None)
        return None if found is None else dict(found(folder))

    @property
    def expire(self) -> Any:
        """None when the author gave none."""
        return getattr(self._supplied, "expire", None)

    @property
    def compact(self) -> Any:
        """None when the author gave none."""
        return getattr(self._supplied, "compact", None)

    @property
    def delete_rows(self) -> Any:
        """None when the author gave none."""
        return getattr(self._supplied, "delete_rows", None)

    @property
    def keep_feed(self) -> Any:
        """None when the author gave none."""
        return getattr(self._supplied, "keep_feed", None)


def supplied_for(name: str) -> Any:
    """What the entry point of a format points at, None without one. Raises `PluginConflict` for two of them, and
    `PluginBroken` for one that can't be imported or has a member whose name is nearly one of the above."""
    offers = {entry.value: entry for entry in importlib.metadata.entry_points(group=GROUP, name=name)}
    if not offers:
        return None
    if len(offers) > 1:
        both = " and ".join(sorted(offers))
        raise PluginConflict(f"two harnesses are offered for the format {name!r}: {both}", fix="Uninstall one of them.")
    ((place, entry),) = offers.items()
    what = f"the harness of the format {name!r} can't be used"
    try:
        found = entry.load()
    except Exception as error:  # whatever the import of a module may raise
        fix = f'Mend the entry point of group "{GROUP}" in pyproject.toml, or what it names, and install it again.'
        raise PluginBroken(what, where=place, why=f"{type(error).__name__}: {error}", fix=fix) from error
    for member in dir(found):
        near = difflib.get_close_matches(member, _MEMBERS, n=1, cutoff=0.8)
        if near and member not in _MEMBERS and not member.startswith("_"):
            why = f"nothing would ever call its member {member!r}"
            raise PluginBroken(what, where=place, why=why, fix=f"Call it {near[0]!r}, or give it a name less alike.")
    return found
