"""``table.json``, which makes a folder a table, and the names of the files beside it that all tables have."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laketier.kit.local_store import store_of
from laketier.kit.manifests.document import FORMAT_VERSION, decode, encode, whole
from laketier.kit.manifests.layout import ManifestLayout
from laketier.kit.table_store import TableStore
from laketier.spi.errors import IncompatibleTable, OutsideTable, TableNotFound

ROLLUPS = "rollups"
HEAD_FILE = "head.json"
UUID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class TableFile:
    """The content of ``table.json``. It never changes; creating it creates the table. Manifests lie in a folder
    named after ``table_uuid``, so a writer of a dropped table can't write into its successor."""

    format: str
    table_uuid: str
    manifests_per_rollup: int

    def encode(self) -> bytes:
        """The document."""
        return encode(
            {
                "version": FORMAT_VERSION,
                "format": self.format,
                "table_uuid": self.table_uuid,
                "manifests_per_rollup": self.manifests_per_rollup,
            }
        )

    @classmethod
    def read(cls, place: Path | TableStore, layout: ManifestLayout) -> TableFile:
        """Read it. Raises `TableNotFound` when it is not there, `CorruptTable`, `IncompatibleTable` when it is of
        another format, and `OutsideTable` when it, or the folder of the manifests, is a link: another table's,
        perhaps."""
        store = store_of(place)
        try:
            store.refuse_links(layout.table_file)
            table = decode(store.read(layout.table_file), store.where(layout.table_file), cls._from_body)
        except (FileNotFoundError, NotADirectoryError) as error:
            raise TableNotFound("there is no table here", where=store.root) from error
        if table.format != layout.format:
            raise IncompatibleTable(
                f"the table has the format {table.format!a}, and {layout.format!r} was asked for",
                where=store.root,
                fix="Set lake.format to the table's own, or use another table name.",
            )
        store.refuse_links(f"{layout.folder}/{table.table_uuid}/{ROLLUPS}/{HEAD_FILE}")
        return table

    @classmethod
    def _from_body(cls, body: dict[str, Any], _: str) -> TableFile:
        table_uuid, manifests_per_rollup = body["table_uuid"], whole(body["manifests_per_rollup"])
        if not UUID.fullmatch(table_uuid):
            raise OutsideTable(f"{table_uuid!r} is no name of a folder of manifests", where="table_uuid")
        if manifests_per_rollup < 2:
            raise ValueError(f"manifests_per_rollup is {manifests_per_rollup}")
        return cls(body["format"], table_uuid, manifests_per_rollup)
