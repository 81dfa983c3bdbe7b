"""Makes ``older_tables.tar.xz``: a warehouse as this laketier-localfile leaves it, for later ones to go on with.

What is in the repository was made by the code from before `laketier.kit.manifests`: it is not to be made anew, or the
test would show nothing. ``python make_older_tables.py TARGET.tar.xz`` makes another one.
"""

from __future__ import annotations

import os
import sys
import tarfile
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from conftest import Table

from laketier.kit import FailpointError
from laketier.kit.failpoints import VARIABLE
from laketier.spi import AddColumn, ScanRequest, TableDescriptor, TablePath, Token, Watermark, WriteMode
from laketier.tiering import TieringRound
from laketier_localfile.options import LocalFileOptions

OPTIONS = LocalFileOptions(manifests_per_rollup=2)


def make(warehouse: Path) -> None:
    """Two tables: ``events`` has partitions, rollups, an added column, an overwrite, and a newest commit that was
    killed before its files were in place; ``keyed`` has a primary key, and files that were replaced."""
    events = Table(warehouse, TablePath("db", "events"), partition_by=("region",), options=OPTIONS)
    events.create()
    for epoch in range(2):
        events.round(epoch, events.ids(epoch, rows=2), mode=WriteMode.OVERWRITE if epoch else WriteMode.APPEND)
    events.storage.catalog().alter_table(events.path, [AddColumn(pa.field("note", pa.string()))])
    events.schema = events.schema.append(pa.field("note", pa.string()))
    for epoch in range(2, 4):
        events.round(epoch, [{"id": 1000 * epoch, "region": "eu/1", "note": "n"}, {"id": 1000 * epoch + 1}])
    _killed_after_its_manifest(events, 4)

    keyed = Table(warehouse, TablePath("db", "keyed"), options=OPTIONS)
    keyed.storage.catalog().create_table(
        keyed.path,
        TableDescriptor(keyed.schema, primary_key=("id",), properties={"owner": "ada"}, comment="with a key"),
    )
    _upsert(keyed, 0, [1, 2])
    _upsert(keyed, 1, [3])
    first = keyed.storage.source(keyed.info).plan(ScanRequest()).splits[0].files
    _upsert(keyed, 2, [1, 4], first)


def _killed_after_its_manifest(table: Table, epoch: int) -> None:
    staged = table.stage([{"id": 1000 * epoch, "region": "us", "note": None}])
    committer = table.committer(commit_id="killed")
    watermark = Watermark(Token("p", "run", epoch), "killed", rows=1)
    os.environ[VARIABLE] = "publish.after_manifest_before_renames=error"
    try:
        with suppress(FailpointError):
            committer.publish(committer.open(), [staged], watermark)
    finally:
        del os.environ[VARIABLE]


def _upsert(table: Table, epoch: int, ids: list[int], replaced: tuple[str, ...] = ()) -> None:
    result = replace(table.stage([{"id": i, "region": "r"} for i in ids]), replaced=replaced)
    tiering = TieringRound(table.factory, token=Token("p", "run", epoch), mode=WriteMode.UPSERT)
    tiering.begin()
    tiering.commit([result])


def main(target: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        make(Path(folder))
        with tarfile.open(target, "w:xz") as archive:
            archive.add(folder, ".")


if __name__ == "__main__":
    main(sys.argv[1])
