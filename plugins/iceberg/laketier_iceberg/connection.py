"""The pyiceberg catalog of the tables. Driver only."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from laketier.kit.durable import fsync_directory, make_directories
from laketier.kit.warehouse import local_warehouse
from laketier.spi import ConfigError, CorruptTable, Passthrough, StorageError
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.private import by_catalog_alone, keep_times

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

EMBEDDED_NAME = "laketier"
"""The name of the embedded catalog. It is part of each row of the SQLite file, so it can't change."""
EMBEDDED_FILE = "catalog.db"
DURABLE_IO = "laketier_iceberg.durable_io.DurableFileIO"
_RESTORE = "Restore it from a backup; the tables' own metadata are in their folders."
LOCK_SECONDS = 30
_cache: dict[tuple[Any, ...], tuple[Catalog, tuple[int, int] | None]] = {}
"""Catalogs, each with the identity of the SQLite file that it has open."""
_made_once: dict[tuple[Any, ...], threading.Lock] = {}
_cache_lock = threading.Lock()


@dataclass(frozen=True)
class CatalogSettings:
    """Names a catalog; plain data that crosses processes. Its repr shows no value of ``properties``."""

    name: str
    warehouse: str
    embedded: bool
    properties: Passthrough = field(default_factory=Passthrough)

    @classmethod
    def of(cls, warehouse: str, options: IcebergOptions) -> CatalogSettings:
        """Raises `ConfigError` when there is no catalog and the warehouse can't hold the embedded one."""
        if options.catalog_name or options.catalog:
            return cls(options.catalog_name or EMBEDDED_NAME, warehouse, False, options.catalog)
        folder = local_warehouse(warehouse)
        if folder is None:
            raise ConfigError(
                f"the warehouse {warehouse} needs a catalog",
                why="the embedded one is a SQLite file, which has to be on a local disk",
                fix="Set lake.iceberg.catalog.type and lake.iceberg.catalog.uri, or lake.iceberg.catalog-name.",
            )
        return cls(EMBEDDED_NAME, str(folder), True)

    @property
    def database(self) -> Path:
        """The SQLite file of the embedded catalog."""
        return Path(self.warehouse) / EMBEDDED_FILE


def connect(settings: CatalogSettings) -> Catalog:
    """The catalog, made once per process: a connection pool, no table. Raises `ConfigError`, and `StorageError` where
    the catalog may answer later."""
    # SQL connections must not cross a fork.
    key = (os.getpid(), settings.name, settings.warehouse, settings.embedded, *sorted(settings.properties.items()))
    with _cache_lock:
        made_once = _made_once.setdefault(key, threading.Lock())
    with made_once:  # and not all of them: a server that does not answer holds up its own tables alone
        cached = _cache.get(key)
        if cached is not None and cached[1] != _file_identity(settings):
            # The warehouse was deleted, and perhaps recreated: the open connection would go on with the old file.
            _cache.pop(key, None)
            cached[0].close()
            cached = None
        if cached is None:
            catalog = _connect(settings)
            keep_times(catalog)
            by_catalog_alone(catalog)
            cached = _cache[key] = (catalog, _file_identity(settings))
        return cached[0]


def _file_identity(settings: CatalogSettings) -> tuple[int, int] | None:
    if not settings.embedded:
        return None
    try:
        found = os.stat(settings.database)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def disconnect() -> None:
    """Close the cached catalogs of this process; the next `connect` makes them again."""
    with _cache_lock:
        while _cache:
            _cache.popitem()[1][0].close()


def _connect(settings: CatalogSettings) -> Catalog:
    if settings.embedded:
        return _embedded(settings)
    properties = dict(settings.properties)
    if properties.get("type") != "rest":
        properties.setdefault("warehouse", settings.warehouse)
    try:
        return _opened(lambda: _loaded(settings.name, properties))
    except Exception as error:
        if _is_away(error):
            with naming_catalog_errors(settings):
                raise
        # A catalog may raise what it likes; all else is the user's setting.
        raise ConfigError(
            f"the Iceberg catalog {settings.name!r} can't be opened",
            why=f"{type(error).__name__}: {_without_secrets(str(error), properties)}",
            fix="Check lake.iceberg.catalog-name, lake.iceberg.catalog.* and pyiceberg's own configuration.",
        ) from None


def _loaded(name: str, properties: Mapping[str, str]) -> Catalog:
    """As `pyiceberg.catalog.load_catalog` has it, but for how long a REST catalog is waited for."""
    from pyiceberg.catalog import load_catalog
    from pyiceberg.utils.config import Config, merge_config

    # pyiceberg's own configuration may say the rest of it, by the catalog's name.
    known: dict[str, Any] = merge_config(Config().get_catalog_config(name) or {}, dict(properties))
    uri = str(known.get("uri", ""))
    kind = known.get("type") or ("rest" if uri.startswith("http") else "")
    if str(kind).lower() == "rest" and uri and "py-catalog-impl" not in known:
        from laketier_iceberg.rest import PatientRestCatalog

        return PatientRestCatalog(name, **known)
    return load_catalog(name, **properties)


def _embedded(settings: CatalogSettings) -> Catalog:
    from sqlalchemy.exc import DatabaseError, OperationalError

    from laketier_iceberg.embedded import EmbeddedCatalog

    try:
        make_directories(Path(settings.warehouse))
    except OSError as error:
        raise ConfigError(
            f"the warehouse {settings.warehouse} can't be used", why=str(error), fix="Choose a folder you can write."
        ) from error
    uri = f"sqlite:///{quote(str(settings.database))}?timeout={LOCK_SECONDS}"
    properties = {"uri": uri, "warehouse": settings.warehouse, "py-io-impl": DURABLE_IO}
    try:
        return _opened(lambda: EmbeddedCatalog(settings.name, **properties))
    except OperationalError as error:
        if "locked" in str(error.orig):
            raise
        raise ConfigError(
            f"the catalog file {settings.database} can't be opened",
            why=str(error.orig),
            fix="Check the folder's permissions.",
        ) from error
    except DatabaseError as error:
        raise ConfigError(
            f"the catalog file {settings.database} can't be opened",
            why=str(error.orig),
            fix=_RESTORE,
        ) from error


def _opened(make: Callable[[], Catalog]) -> Catalog:
    """What ``make`` returns. A SQL catalog looks for its two tables, and makes what is not there. Each one that another
    process makes in between ends ``make`` by an error of the database, so the third call can't meet one more."""
    for _ in range(2):
        try:
            return make()
        except Exception as error:
            raised = sys.modules.get("sqlalchemy.exc")
            if raised is None or not isinstance(error, raised.DatabaseError):
                raise
            # So does a server that can't be reached: its timeout is not waited for three times.
            if isinstance(error, raised.OperationalError) and "already exists" not in str(error.orig):
                raise
    return make()


def sync_embedded(settings: CatalogSettings) -> None:
    """What was read of the embedded catalog survives a power cut, also where its writer was killed before it synced the
    removal of SQLite's journal, which would undo the commit."""
    if settings.embedded:
        fsync_directory(settings.database.parent)


@contextmanager
def naming_catalog_errors(settings: CatalogSettings) -> Iterator[None]:
    """Raise what a catalog's database says of itself (locked, not there) as `StorageError`: it may answer later; and
    that it is damaged as `CorruptTable`. A REST catalog's refusals and lost connections are `StorageError`, too. Not
    for commits, where no answer does not mean that nothing happened."""
    try:
        yield
    except Exception as error:
        if _is_of_a_server(error):
            properties = dict(settings.properties)
            raise StorageError(
                f"the catalog {settings.name!r} did not do what it was asked for",
                where=_without_secrets(properties["uri"], {**properties, "uri": ""}) if "uri" in properties else None,
                why=_without_secrets(f"{type(error).__name__}: {error}", {**properties, "uri": ""}),
                fix="Try again. If this repeats, compare its address and what it asks for as proof of who you are with "
                "the catalog's options.",
            ) from error
        # The class is only there when the library was loaded, and then the error may be of it.
        raised = sys.modules.get("sqlalchemy.exc")
        if raised is None or not isinstance(error, raised.DatabaseError):
            raise
        if type(error) is raised.DatabaseError and settings.embedded:  # so SQLite tells damage, by the class of all
            raise CorruptTable(
                "the catalog file is damaged", where=str(settings.database), why=str(error.orig), fix=_RESTORE
            ) from error
        if isinstance(error, raised.ProgrammingError):  # of a server: a right that its user does not have, above all
            raise StorageError(
                f"the catalog {settings.name!r} did not do what it was asked for",
                why=_without_secrets(str(error.orig), dict(settings.properties)),
                fix="Give its user the rights for that, or use another one.",
            ) from error
        if not isinstance(error, raised.OperationalError):
            raise
        raise StorageError(
            f"the catalog {settings.name!r} did not answer",
            where=str(settings.database) if settings.embedded else None,
            why=_without_secrets(str(error.orig), dict(settings.properties)),
            fix="Try again. If this repeats, "
            + (
                "find the process that locks the catalog's database."
                if settings.embedded
                else "compare its address and user with the catalog's options, or find who locks its database."
            ),
        ) from error


_OF_A_SERVER = (("requests.exceptions", "RequestException"), ("pyiceberg.exceptions", "RESTError"))
_AWAY = (
    ("requests.exceptions", "ConnectionError"),
    ("requests.exceptions", "Timeout"),
    ("pyiceberg.exceptions", "ServerError"),
    ("pyiceberg.exceptions", "ServiceUnavailableError"),
    ("pyiceberg.exceptions", "TooManyRequestsError"),
    ("sqlalchemy.exc", "OperationalError"),
)
"""What a server may not say the next time that it is asked."""


def _is_of_a_server(error: Exception) -> bool:
    """Whether a REST catalog told it, or the connection to one."""
    return _is_one_of(error, _OF_A_SERVER)


def _is_away(error: Exception) -> bool:
    """Whether the catalog may answer later: who takes that for a setting stops for good."""
    return _is_one_of(error, _AWAY)


def _is_one_of(error: Exception, kinds: Iterable[tuple[str, str]]) -> bool:
    # A class is only there where its library was loaded, and then the error may be of it.
    return any(
        module in sys.modules and isinstance(error, getattr(sys.modules[module], name)) for module, name in kinds
    )


def _without_secrets(text: str, properties: dict[str, str]) -> str:
    # The longest first: the end of a password that begins as the user's name does would stay.
    for value in sorted(properties.values(), key=len, reverse=True):
        if len(value) > 3:
            text = text.replace(value, "***")
    return text
