"""The tables of SQLite, whose location is the one file that has them all: no table has a folder. While it is
open, a log and memory that its users share lie beside it."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from sqlite_lake.catalog import Catalog
from sqlite_lake.plugin import Factory, Maintenance, Source, SqlitePlugin, Storage

from laketier import kit, spi
from laketier.registry import hookimpl


@cache
def held(path: Path, process: int) -> sqlite3.Connection:
    """Kept open, as an application does that goes on. No connection crosses a fork."""
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("SELECT count(*) FROM sqlite_master").fetchall()
    return connection


class OneFileCatalog(Catalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        held(self.database.path, os.getpid())
        return info

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        return replace(super().load_table(path), location=str(self.database.path))


class OneFileStorage(Storage):
    def catalog(self) -> OneFileCatalog:
        return OneFileCatalog(self.warehouse)

    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return Factory(Catalog(self.warehouse), self._staged_in(table))

    def source(self, table: spi.TableInfo) -> Source:
        return Source(Catalog(self.warehouse), table)

    def maintenance(self, table: spi.TableInfo) -> Maintenance:
        return Maintenance(kit.TableFolder.at(self._staged_in(table).location))

    def _staged_in(self, table: spi.TableInfo) -> spi.TableInfo:
        return replace(table, location=str(self.warehouse / "staged" / table.table_uuid))


class OneFilePlugin(SqlitePlugin):
    """The format under another name."""

    identifier = "one-file"

    def create_storage(self, config: spi.LakeStorageConfig) -> Storage:
        inner: Any = super().create_storage(config)
        return OneFileStorage(inner.warehouse)


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return OneFilePlugin()
