"""A warehouse that the code from before `laketier.kit.manifests` left is read, mended and continued; see
``make_older_tables.py``."""

from __future__ import annotations

import hashlib
import json
import tarfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Table

from laketier.kit.manifests import files_at
from laketier.spi import Leaf, Op, ScanRequest, Stale, TablePath, Token, WriteMode
from laketier.tiering import RoundOutcome, TieringRound

TABLES = Path(__file__).with_name("older_tables.tar.xz")


@pytest.fixture
def older(tmp_path: Path) -> Callable[[str], Table]:
    with tarfile.open(TABLES) as archive:
        archive.extractall(tmp_path / "lake", filter="data")
    return lambda name: Table(tmp_path / "lake", TablePath("db", name))


def documents(table: Any) -> dict[str, str]:
    found = (path for path in table.log.folder.rglob("0*.json"))
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def test_every_snapshot_is_read(older: Any) -> None:
    table = older("events")
    now = [2000, 2001, 3000, 3001, 4000]
    assert table.read_ids() == [1000, 1001, *now], "also the file that is still staged"
    at = [table.read_ids(snapshot_id=number) for number in range(7)]
    assert at == [[], [0, 1], [1000, 1001], [1000, 1001], [1000, 1001, *now[:2]], [1000, 1001, *now[:4]], at[6]]
    assert [info.operation for info in table.storage.history(table.info).snapshots(9)] == [
        "append", "append", "append", "alter", "overwrite", "append", "create"
    ]  # fmt: skip
    assert table.scan(filters=(Leaf("id", Op.GE, 3000),)).num_rows == 3
    keyed = older("keyed")
    assert keyed.read_ids() == [1, 3, 4]
    descriptor = keyed.info.descriptor
    assert (descriptor.primary_key, dict(descriptor.properties), descriptor.comment) == (
        ("id",), {"owner": "ada"}, "with a key"
    )  # fmt: skip


def test_reading_changes_nothing_and_a_round_goes_on(older: Any) -> None:
    table = older("events")
    before = documents(table)
    table.read_ids()
    assert documents(table) == before
    table.schema = table.info.schema
    with pytest.raises(Stale):
        table.round(3)
    assert table.round(4).outcome is RoundOutcome.ALREADY_THERE, "the commit that was killed had landed"
    assert not table.staged_files(), "and is finished now"
    assert table.round(5, [{"id": 5000, "region": "eu/1"}]).snapshot_id == 7
    assert table.read_ids()[-2:] == [4000, 5000]
    assert {path: digest for path, digest in documents(table).items() if path in before} == before
    assert len(files_at(table.log, 7)) == 8
    body = json.loads(table.log.path(7).read_bytes())["body"]
    assert body["previous"] == table.log.read(6).sha256
    older_body = json.loads(table.log.path(6).read_bytes())["body"]
    known = [name for name in body if name not in ("folding", "digests")]
    assert known == list(older_body), "the same keys in the same order"
    assert set(body["added"][0]) == {"bucket", "bytes", "footer", "partition", "path", "rows", "schema", "stats"}


def test_what_is_read_is_written_in_the_same_bytes(older: Any) -> None:
    for name, newest in (("events", 6), ("keyed", 3)):
        table = older(name)
        for number in range(newest + 1):
            assert table.log.read(number).encode() == table.log.path(number).read_bytes()


def test_a_key_goes_on(older: Any) -> None:
    table = older("keyed")
    [first, *_] = table.storage.source(table.info).plan(ScanRequest()).splits
    result = replace(table.stage([{"id": 9, "region": "r"}]), replaced=first.files)
    tiering = TieringRound(table.factory, token=Token("p", "run", 3), mode=WriteMode.UPSERT)
    tiering.begin()
    assert tiering.commit([result]).snapshot_id == 4
    assert table.read_ids() == [1, 4, 9]
