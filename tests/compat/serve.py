"""Has an installed plugin serve this laketier, in a process of its own, and prints the results as JSON.

``python serve.py format|source|load FOLDER``. ``load`` tells only what loading both plugins says.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.config import LakeConfig
from laketier.registry import configure, load_format, load_source, open_lake, open_log_source
from laketier.rounds import LogRound
from laketier.rounds.log_task import run_log_task
from laketier.spi import LaketierError, ScanRequest, TableLog, WriteMode
from laketier.tables.scan import scan
from laketier.union_read.planning import union_batches
from laketier_verification.lakes import append, ids, rows_of
from laketier_verification.lines import LinesTable


def serve_format(folder: Path) -> dict[str, Any]:
    """Write, publish, replay, follow, overwrite and read a table."""
    lake = open_lake(_config("feather", folder))
    first, again, _ = (
        append(lake, rows_of(*rows), epoch=epoch) for epoch, rows in ((0, (1, 2)), (0, (1, 2)), (1, (3,)))
    )
    info = lake.load_table()
    source, changes = lake.source(info), lake.storage.changes(info)
    newest = ids(lake)
    latest = changes.versions().latest
    followed = changes.plan(latest - 1, latest)
    appended = _ids(batch for split in followed.splits for batch in source.read(split, followed.schema))
    append(lake, rows_of(9), epoch=2, mode=WriteMode.OVERWRITE)
    return {
        "outcomes": [first.outcome.value, again.outcome.value],
        "newest": newest,
        "appended": appended,
        "overwritten": ids(lake),
        "older": _ids(scan(source, ScanRequest(snapshot_id=first.snapshot_id))[1]),
        "snapshots": len(lake.history(info).snapshots(10)),
        "orphans": len(lake.storage.maintenance(info).orphans(modified_before=0)),
    }


def serve_source(folder: Path) -> dict[str, Any]:
    """Read a stream by rounds, and its end by a union read."""
    lines = LinesTable(folder / "logs", "t").create(buckets=2)
    source = open_log_source("lines", {"path": str(lines.root)}, name="lines", origin="serve.py")
    config = _config("localfile", folder / "lake")
    rows = []
    for bucket, numbers in ((0, (1, 2)), (1, (3,)), (0, ())):
        lines.append(*numbers, bucket=bucket)
        rows.append(_rows_of_round(source.open("t"), config))
    lines.append(4)
    union = _ids(union_batches(config, source.open("t"), ScanRequest())[1])
    lines.append_raw("no row")
    bad = _said(lambda: _rows_of_round(source.open("t"), config))
    return {"rows": rows, "lake": ids(open_lake(config)), "union": union, "bad": bad}


def load(_folder: Path) -> dict[str, Any]:
    """Load a format and a source."""
    return {"feather": _said(lambda: load_format("feather")), "lines": _said(lambda: load_source("lines"))}


def _config(format: str, warehouse: Path) -> LakeConfig:
    values = {"lake.format": format, "lake.warehouse": str(warehouse), "lake.table": "db.t", "lake.pipeline": "p"}
    return configure(values, environment={})


def _ids(batches: Iterable[pa.RecordBatch]) -> list[int]:
    return sorted(number for batch in batches for number in batch["id"].to_pylist())


def _rows_of_round(log: TableLog, config: LakeConfig) -> int:
    made = LogRound(log, config)
    tasks = pickle.loads(pickle.dumps(list(made.plan())))  # noqa: S301 - as they travel to executors
    return made.finish([run_log_task(task) for task in tasks]).rows


def _said(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except LaketierError as error:
        return f"{type(error).__name__}: {error}"
    return "fine"


if __name__ == "__main__":
    served = {"format": serve_format, "source": serve_source, "load": load}[sys.argv[1]](Path(sys.argv[2]))
    modules = {name: sys.modules[name].__file__ for name in ("feather_lake", "lines_log") if name in sys.modules}
    print(json.dumps(served | {"modules": modules}))
