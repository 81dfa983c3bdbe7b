"""Epochs of a process without an engine: what its caller gives is looked at before anything is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import laketier
from laketier.spi import ConfigError, IncompatibleData
from laketier.tiering import RoundOutcome
from laketier.tiering.epochs import EpochWriter

SCHEMA = pa.schema([("id", pa.int64())])
BATCH = pa.record_batch({"id": [1]}, schema=SCHEMA)


@pytest.fixture
def config(tmp_path: Path) -> dict[str, str]:
    return {
        "lake.format": "localfile",
        "lake.warehouse": str(tmp_path),
        "lake.table": "db.t",
        "lake.pipeline": "p",
    }


@pytest.mark.parametrize(
    ("write", "error"),
    [
        (lambda writer: writer.write(0.0, [BATCH]), ConfigError),
        (lambda writer: writer.write(False, [BATCH]), ConfigError),
        (lambda writer: writer.write("0", [BATCH]), ConfigError),
        (lambda writer: writer.write(-1, [BATCH]), ConfigError),
        (lambda writer: writer.write(0, [BATCH], content=5), ConfigError),
        (lambda writer: writer.write(0, [BATCH], content="\ud800"), ConfigError),
        (lambda writer: writer.write(0, pa.table(BATCH)), IncompatibleData),
        (lambda writer: writer.write(0, BATCH), IncompatibleData),
        (lambda writer: writer.write(0, [BATCH, pa.table(BATCH)]), IncompatibleData),
        (lambda writer: writer.write(0, [{"id": 1}]), IncompatibleData),
    ],
)
def test_what_is_no_epoch_is_refused_and_the_pipeline_goes_on(
    config: dict[str, str], write: Callable[[EpochWriter], Any], error: type[Exception]
) -> None:
    writer = laketier.open_writer(config, SCHEMA)
    with pytest.raises(error):
        write(writer)
    assert writer.next_epoch == 0
    assert writer.write(0, [BATCH], content="x" * 100_000).outcome is RoundOutcome.PUBLISHED
    assert laketier.open_writer(config, SCHEMA).next_epoch == 1


@pytest.mark.parametrize("more", [{"fence": "3"}, {"fence": -3}, {"schema": None}, {"schema": {"id": "int64"}}])
def test_a_writer_is_refused_before_a_table_is_made(
    config: dict[str, str], more: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=r"the (fence|schema) of a"):
        laketier.open_writer(config, **{"schema": SCHEMA, **more})
    assert list(tmp_path.iterdir()) == []


def test_who_leaves_no_files_open_counts_none(config: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The look lists all descriptors of the process, at each epoch."""
    looks: list[None] = []
    monkeypatch.setattr("laketier.tiering.epochs.is_crowded", lambda: looks.append(None))
    laketier.open_writer(config, SCHEMA).write(0, [BATCH])
    assert not looks
    kept = {
        **config,
        "lake.table": "db.kept",
        "lake.localfile.open-files": "true",
        "lake.localfile.file-format": "json",
    }
    with laketier.open_writer(kept, SCHEMA) as writer:
        writer.write(0, [BATCH])
    assert looks
