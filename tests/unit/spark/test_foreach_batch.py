"""What a process remembers of the batches that it wrote."""

from __future__ import annotations

from typing import Any

import pytest

from laketier.config import LakeConfig
from laketier.registry import configure
from laketier.spark import foreach_batch
from laketier.spi import ConfigError, Token

Remote = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})


class Frame:
    """What is asked of a DataFrame."""

    sparkSession = Remote()  # noqa: N815 - as Spark spells it

    def __init__(self, plan: int) -> None:
        self.plan = plan

    def semanticHash(self) -> int:  # noqa: N802
        return self.plan

    def inputFiles(self) -> list[str]:  # noqa: N802
        return []


def write(plan: int, table: str, epoch: int, start: str = "s") -> None:
    config: LakeConfig = configure({"lake.format": "localfile", "lake.warehouse": "/w", "lake.table": table})
    frame: Any = Frame(plan)
    with foreach_batch._once(frame, config, f"uuid of {table}", Token("p", "r", epoch), start):
        pass


def test_only_the_newest_batch_of_a_run_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table for each day, say, would be remembered for ever in a query that runs for years."""
    monkeypatch.setattr(foreach_batch, "_batches", {})
    for epoch in range(3):
        for table in ("db.all", f"db.of_{epoch}"):
            write(1, table, epoch)
            write(1, table, epoch)
            with pytest.raises(ConfigError, match="a second time, with other rows"):
                write(2, table, epoch)
    write(2, "db.all", 2, start="the query was started again")
    assert {run: len(batch.written) for run, batch in foreach_batch._batches.items()} == {"r": 1}
