"""Where the suite keeps its tables, and the one thing that an author may supply.

An entry point of group ``laketier.conformance``, named as the format, may point at an object (or a class without
arguments) with any of these:

- ``setup(folder: pathlib.Path) -> Warehouse``: an empty warehouse for one test. By default a folder below ``folder``.
  Its location is a folder if it is an absolute path or a ``file:`` URI. Any other is of a server, and what the suite
  asks of warehouses in folders is then not shown.
- ``teardown(warehouse: Warehouse) -> None``: after that test.
- ``crash(warehouse: Warehouse) -> None``: ends the server of the warehouse at once, as a power cut does, and starts it
  again; returns once it answers. Needed to show that what a server answered is still there, and `Feature.POWER_CUT`
  where the warehouse is no folder.
- ``for_readers(warehouse: Warehouse) -> Mapping[str, str]``: the options (those below ``lake.<format>.``) by which an
  account reads the tables that are in the warehouse now, and which the server lets write nothing. Needed to show that
  who only reads writes nothing.
- ``object_store(store: laketier_conformance.stores.ObjectStore) -> Mapping[str, str]``: the options (those below
  ``lake.<format>.``) by which ``store.warehouse``, in an empty bucket, is reached. Needed to show
  `Feature.OBJECT_STORES`, unless ``storage`` among the format's options is a `Passthrough` that takes the names of
  `ObjectStore.usual_options`. Set few retries, short waits and a time-out of a second, as the store often fails.
- ``engine_modules: tuple[str, ...]``: top-level modules that importing the plugin must not import.
- ``roll_back(storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None``: what a foreign tool would do to take
  the table back to a snapshot. Needed to show `Feature.ROLLBACK_DETECTION`.
- ``keep_feed(storage: LakeStorage, table: TableInfo) -> None``: what a user does to make a table keep its change feed.
  Needed to show `Feature.CHANGE_FEED` where a table keeps none by itself.
- ``expire(storage: LakeStorage, table: TableInfo) -> None``: what a foreign tool would do to forget all versions but
  the newest.
- ``erase(storage: LakeStorage, table: TableInfo) -> None``: what a foreign tool would do that keeps all rows, and takes
  away what the format keeps of pipelines: it replaces properties or metadata by those that it knows.
- ``compact(storage: LakeStorage, table: TableInfo) -> None``: what a foreign tool would do to put the rows of small
  files into fewer ones, in a commit that changes no row.
- ``delete_rows(storage: LakeStorage, table: TableInfo, ids: Sequence[int]) -> None``: what a foreign tool would do to
  delete the rows with these values of the column ``id``.
- ``update_rows(storage: LakeStorage, table: TableInfo, ids: Sequence[int], column: str, text: str) -> None``: what a
  foreign tool would do to set a column to a text in the rows with these values of the column ``id``. The table may have
  partitions by that column: a tool that can't do this raises `NotImplementedError`.
- ``foreign_tables: Mapping[str, Callable[[Warehouse, TablePath], ForeignTable]]``: tables as other tools leave them,
  each by a few words that say what is particular ("with deletion vectors of Spark's"). Each function makes the table
  with the other tool, at the path that it is given, and tells what is expected by a
  `laketier_conformance.foreign_tables.ForeignTable`. Each is made several times, so keep them small.
- ``secret_options(folder: pathlib.Path) -> Mapping[str, str]``: options (those below ``lake.<format>.``) by which a
  warehouse in ``folder`` can be used, with ``{secret}`` for each password. By default each option that is a `Secret`,
  that is named like one, or that is handed on to a library.
- ``dates_by: datetime.timedelta``: how finely the storage dates files, where that is coarser than a millisecond, as in
  S3. The suite waits as long before it takes a file for older than another.
- ``dropped_files_stay: str``: why a drop leaves a table's files in its folder, where the format's library deletes them
  later, by a clean-up of its own.
- ``text_options: Mapping[str, Any]``: settings by which a full-text index (`IndexKind.INVERTED`) of the format keeps
  each word of a text, in lower case and otherwise as it is, and where it stands. Without it the format's own settings
  count.
- ``option_sets: Sequence[Mapping[str, str]]``: options (those below ``lake.<format>.``) that belong together, or whose
  values the suite can't know, such as a column of ``id``, ``name`` and ``value``: a table under each has the same rows.
- ``table_properties: Mapping[str, Sequence[str]]``: by property of a table, values that the format takes when a table
  is made, and that change how its rows are kept: sizes of files, compression, statistics, modes of writing.
- ``odd_properties: Mapping[str, Sequence[str]]``: by property, values that other tools may give a table, and that the
  format may refuse.
- ``set_property(storage: LakeStorage, table: TableInfo, key: str, value: str | None) -> None``: what a foreign tool
  would do to give a table a property, whether or not its value makes sense, or to take it away.
- ``warm_up(folder: pathlib.Path) -> None``: what a process does once, in an empty folder, that others are then forked
  from: what each would do anew for its first round, such as compile statements. No thread of an engine may be left of
  it, as no fork would have it. Nothing is asked about it: it makes the suite quicker, on Linux.
- ``vector_options: Mapping[str, Mapping[str, Any]]``: by kind of index of vectors (``ivf-flat``), settings that fit 150
  vectors of four numbers. Without them the format's own settings count.

Where one of ``expire``, ``erase``, ``compact``, ``delete_rows`` and ``update_rows`` is not there, the report says that
nothing showed its effect. One of the last three that takes no table with partitions raises `NotImplementedError` for
such a table, and the report says that, too. Where ``foreign_tables`` is not there, it says that no table of another
tool was shown.
A member that a format can't have is left out, or None: whatever a member raises is an error of the harness
(`HarnessFailed`), and never the format's refusal.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from laketier_conformance.expect import HarnessFailed, told
from laketier_conformance.foreign_tables import ForeignTable
from laketier_conformance.heard import asking_a_harness
from laketier_conformance.supplied import Supplied

if TYPE_CHECKING:
    from laketier_conformance.stores.store import ObjectStore

GROUP = "laketier.conformance"
Hook = Callable[..., Any]
MEMBERS = (
    "setup",
    "teardown",
    "crash",
    "for_readers",
    "object_store",
    "engine_modules",
    "roll_back",
    "keep_feed",
    "expire",
    "erase",
    "compact",
    "delete_rows",
    "update_rows",
    "foreign_tables",
    "secret_options",
    "dates_by",
    "dropped_files_stay",
    "text_options",
    "vector_options",
    "option_sets",
    "table_properties",
    "odd_properties",
    "set_property",
    "warm_up",
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
        with _blamed("class"):
            return cls(found() if isinstance(found, type) else found)

    def setup(self, folder: Path) -> Warehouse:
        """An empty warehouse."""
        make = self._hook("setup")
        if make is None:
            return Warehouse(str(folder / "warehouse"))
        warehouse: Warehouse = make(folder)
        if not (hasattr(warehouse, "location") and hasattr(warehouse, "options")):
            raise HarnessFailed(f"the harness's setup gave {warehouse!r}, where a Warehouse was expected")
        return warehouse

    def teardown(self, warehouse: Warehouse) -> None:
        """Undo `setup`."""
        undo = self._hook("teardown")
        if undo is not None:
            undo(warehouse)

    @property
    def engine_modules(self) -> tuple[str, ...]:
        """Empty when the author named none."""
        with _blamed("engine_modules"):
            found = getattr(self._supplied, "engine_modules", None) or ()
            if isinstance(found, str):
                raise TypeError(f"{found!r} is one text, where a tuple of names of modules was expected")
            return tuple(found)

    @property
    def dates_by(self) -> timedelta:
        """A millisecond when the author gave none."""
        with _blamed("dates_by"):
            found = getattr(self._supplied, "dates_by", None)
            if not isinstance(found, timedelta | None):
                raise TypeError(f"{found!r} is no timedelta")
            return timedelta(milliseconds=1) if found is None else found

    @property
    def dropped_files_stay(self) -> str:
        """Empty when the author gave no reason: a drop leaves nothing then."""
        with _blamed("dropped_files_stay"):
            found = getattr(self._supplied, "dropped_files_stay", None) or ""
            if not isinstance(found, str):
                raise TypeError(f"{found!r} is no text that says why")
            return found

    @property
    def text_options(self) -> Mapping[str, Any]:
        """Empty when the author gave none."""
        with _blamed("text_options"):
            return dict(getattr(self._supplied, "text_options", None) or {})

    @property
    def vector_options(self) -> Mapping[str, Mapping[str, Any]]:
        """Empty when the author gave none."""
        with _blamed("vector_options"):
            return {
                str(kind): dict(options)
                for kind, options in (getattr(self._supplied, "vector_options", None) or {}).items()
            }

    @property
    def option_sets(self) -> Sequence[Mapping[str, str]]:
        """Empty when the author gave none."""
        with _blamed("option_sets"):
            return [
                {str(key): str(value) for key, value in each.items()}
                for each in getattr(self._supplied, "option_sets", None) or ()
            ]

    @property
    def table_properties(self) -> Mapping[str, Sequence[str]]:
        """Empty when the author gave none."""
        return self._texts("table_properties")

    @property
    def odd_properties(self) -> Mapping[str, Sequence[str]]:
        """Empty when the author gave none."""
        return self._texts("odd_properties")

    @property
    def set_property(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("set_property")

    def _texts(self, member: str) -> Mapping[str, Sequence[str]]:
        with _blamed(member):
            found = getattr(self._supplied, member, None) or {}
            if any(isinstance(values, str) for values in found.values()):
                raise TypeError("it has one text, where a sequence of texts was expected")
            return {str(key): [str(value) for value in values] for key, values in found.items()}

    @property
    def warm_up(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("warm_up")

    @property
    def roll_back(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("roll_back")

    @property
    def crash(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("crash")

    def for_readers(self, warehouse: Warehouse) -> Mapping[str, str] | None:
        """None when the author gave none."""
        found = self._hook("for_readers")
        if found is None:
            return None
        with _blamed("for_readers"):
            return {str(name): str(value) for name, value in found(warehouse).items()}

    def object_store(self, store: ObjectStore) -> Mapping[str, str] | None:
        """None when the author gave none."""
        found = self._hook("object_store")
        if found is None:
            return None
        with _blamed("object_store"):
            return {str(name): str(value) for name, value in found(store).items()}

    def secret_options(self, folder: Path) -> Mapping[str, str] | None:
        """None when the author gave none."""
        found = self._hook("secret_options")
        if found is None:
            return None
        with _blamed("secret_options"):
            return dict(found(folder))

    @property
    def expire(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("expire")

    @property
    def erase(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("erase")

    @property
    def compact(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("compact")

    @property
    def delete_rows(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("delete_rows")

    @property
    def update_rows(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("update_rows")

    @property
    def foreign_tables(self) -> Mapping[str, Callable[..., ForeignTable]]:
        """Empty when the author gave none."""
        with _blamed("foreign_tables"):
            found = dict(getattr(self._supplied, "foreign_tables", None) or {})
        return {str(name): _made(f"foreign_tables[{name!r}]", make) for name, make in found.items()}

    @property
    def keep_feed(self) -> Hook | None:
        """None when the author gave none."""
        return self._hook("keep_feed")

    def _hook(self, member: str) -> Hook | None:
        """A member to be called. Each call of any goes through here."""
        with _blamed(member):
            hook = getattr(self._supplied, member, None)
        return None if hook is None else _called(member, hook)


def _called(member: str, hook: Hook) -> Hook:
    """``hook``, each error of which is the harness's own."""

    def call(*arguments: Any) -> Any:
        with _blamed(member):
            return hook(*arguments)

    return call


def _made(member: str, make: Hook) -> Callable[..., ForeignTable]:
    """A function that makes a table of another tool. What the tool does to it later is blamed likewise."""

    def made(*arguments: Any) -> ForeignTable:
        found = _called(member, make)(*arguments)
        if not isinstance(found, ForeignTable):
            raise HarnessFailed(f"the harness's {member} gave {found!r}, where a ForeignTable was expected")
        steps = {each.name: getattr(found, each.name) for each in fields(found)}
        blamed: dict[str, Any] = {
            name: _called(f"{member}.{name}", step) for name, step in steps.items() if callable(step)
        }
        return replace(found, **blamed)

    return made


@contextmanager
def _blamed(member: str) -> Iterator[None]:
    """Whatever the block raises is the harness's own error."""
    try:
        with asking_a_harness():
            yield
    except Exception as error:
        raise HarnessFailed(
            f"the harness's {member} ended in {told(error)}: an error of the harness is no answer of the format. "
            "Mend the harness, or leave out a member that the format can't have"
        ) from error


def supplied_for(name: str) -> Any:
    """What the entry point of a format points at, None without one. Raises `PluginConflict` for two of them, and
    `PluginBroken` for one that can't be imported or has a member whose name is nearly one of the above."""
    supplied = Supplied.load(f"the format {name!r}", importlib.metadata.entry_points(group=GROUP, name=name))
    if supplied is None:
        return None
    supplied.check_names(dir(supplied.found), MEMBERS)
    return supplied.found
