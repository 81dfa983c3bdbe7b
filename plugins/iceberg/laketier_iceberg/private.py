"""What this plugin needs of pyiceberg that pyiceberg keeps private. Everything else in the plugin is public API.

The first is `MetastoreCatalog._update_and_stage_table`. A catalog without a server calls it in `commit_table`, and
writes the metadata that it returns. Nothing public stands between the two, and there alone can the times of a commit be
put in order that adds no snapshot: a change of the schema, or the repair of a table. pyiceberg takes these times from
the host's clock, which may be behind. There alone, too, can a commit be kept from copying the table's whole history.
Catalogs behind a server (REST) have no such place: the server writes the metadata, by its own clock.

The others are where a catalog makes the `FileIO` of a table: `Catalog._load_file_io`, and of REST `_response_to_table`
and `_response_to_staged_table`. pyiceberg mixes the table's own properties into the catalog's there, and imports the
class that ``py-io-impl`` names, before anybody has seen the table. `by_catalog_alone` keeps them apart.

Of REST there is `_config_headers`, too (`laketier_iceberg.rest`): it is given the session before that is used, and
nothing public can set a limit of time for a catalog's requests.

``tests/test_iceberg_private.py`` says what is relied on. The plugin's dependencies keep untried versions out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from copy import copy
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from laketier.spi import PluginBroken
from laketier_iceberg.table_properties import refuse_opening, refuse_provider
from laketier_iceberg.times import in_order, mended

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

_finish: ContextVar[Callable[[TableMetadata, TableMetadata], TableMetadata]] = ContextVar("finish", default=in_order)


def keep_times(catalog: Catalog) -> bool:
    """Let each commit through ``catalog`` keep the times of a table in order. False where a server writes them. Once is
    enough, and again does nothing."""
    from pyiceberg.catalog import MetastoreCatalog

    if not isinstance(catalog, MetastoreCatalog):
        return False
    _require(catalog, "_update_and_stage_table", "stages commits")
    if "_update_and_stage_table" in vars(catalog):
        return True
    patched: Any = catalog
    stage = patched._update_and_stage_table

    def stage_in_order(current_table: Table | None, *rest: Any) -> Any:
        if current_table is not None:
            refuse_provider(current_table.metadata.properties, ".".join(current_table.name()))
        staged = stage(None if current_table is None else _sharing(current_table), *rest)
        if current_table is not None:
            staged.metadata = _finish.get()(current_table.metadata, staged.metadata)
        return staged

    patched._update_and_stage_table = stage_in_order
    return True


def by_catalog_alone(catalog: Catalog) -> None:
    """Let ``catalog`` open the files of its tables by its own properties, and a server's, and by none that the tables'
    metadata have. A table whose metadata ask for more is refused with `ConfigError` once it is loaded. Once is enough,
    and again does nothing."""
    from pyiceberg.catalog import MetastoreCatalog

    rest = sys.modules.get("pyiceberg.catalog.rest")
    if "_load_file_io" in vars(catalog) or "_response_to_table" in vars(catalog):
        return
    patched: Any = catalog
    if isinstance(catalog, MetastoreCatalog):
        _require(catalog, "_load_file_io", "opens files")
        load_file_io = patched._load_file_io

        def load_by_catalog(properties: Mapping[str, str] = MappingProxyType({}), location: str | None = None) -> Any:
            refuse_opening(properties, str(location))
            return load_file_io({}, location)

        patched._load_file_io = load_by_catalog
    elif rest is not None and isinstance(catalog, rest.RestCatalog):
        for name in ("_response_to_table", "_response_to_staged_table"):
            _require(catalog, name, "opens files")
            setattr(patched, name, _by_server(getattr(patched, name)))


def _by_server(make: Callable[[Any, Any], Table]) -> Callable[[Any, Any], Table]:
    def made(identifier: tuple[str, ...], response: Any) -> Table:
        refuse_opening(response.metadata.properties, ".".join(identifier))
        silent = response.metadata.model_copy(update={"properties": {}})
        table = make(identifier, response.model_copy(update={"metadata": silent}))
        table.metadata = response.metadata
        return table

    return made


def _require(catalog: Catalog, name: str, does: str) -> None:
    if not hasattr(catalog, name):
        raise PluginBroken(
            f"pyiceberg {version('pyiceberg')} {does} in a way that laketier-iceberg does not know",
            why=f"its {type(catalog).__name__} has no {name}",
            fix="Install a pyiceberg that this laketier-iceberg allows. Nothing was committed.",
        )


class _Shared(list[Any]):
    """A list that a deep copy shares what is in it with: snapshots and lines of logs, which nobody changes."""

    def __add__(self, more: Any) -> _Shared:
        return _Shared([*self, *more])

    def __deepcopy__(self, _: Any) -> _Shared:
        return _Shared(self)


def _sharing(table: Table) -> Table:
    """``table`` with metadata of which pyiceberg copies all but the history. It copies all of what it commits, each
    snapshot with its summary: a third of the time of a commit after 400."""
    metadata = table.metadata
    history = {name: _Shared(getattr(metadata, name)) for name in ("snapshots", "snapshot_log", "metadata_log")}
    sharing = copy(table)
    sharing.metadata = metadata.model_copy(update=history)
    return sharing


def commit_mended(table: Table, now: int) -> None:
    """Put the times of a table in order, and none later than ``now``, in one atomic commit of the catalog. Raises what
    the catalog raises."""
    from pyiceberg.table.update import AssertRefSnapshotId, SetPropertiesUpdate

    from laketier_iceberg.commit import commit

    current = table.metadata.current_snapshot()
    head = None if current is None else current.snapshot_id
    token = _finish.set(lambda _, updated: mended(updated, now))
    try:
        # Without an update there is no commit.
        nothing = SetPropertiesUpdate(updates={})
        commit(table, (nothing,), AssertRefSnapshotId.model_validate({"ref": "main", "snapshot-id": head}))
    finally:
        _finish.reset(token)
