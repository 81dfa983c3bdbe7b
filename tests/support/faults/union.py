"""Union reads while rounds commit: ``python -m faults union --format delta --reads 2000``.

A writer appends to a log of several buckets; another process tiers it, round after round, and expires what the lake
holds; a third compacts with the format's own library. Meanwhile lake and log are read as one. Each read must be just a
prefix of the log: of each bucket the rows up to the offset that the read says, each once, and not less than what was in
the log before the read began.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from faults.asking import Answers, Process, serve
from faults.foreign_read import NAMES
from faults.races import write_json
from laketier.config import LakeConfig
from laketier.plugins import configure, open_log_source
from laketier.sources import LogRound
from laketier.sources.log_engine import LocalEngine
from laketier.sources.union import plan_union
from laketier.spi import LogOffsets, TableLog
from lines import LinesTable

BUCKETS = 3
STRIDE = 1_000_000_000


@dataclass
class Unions:
    """What the reads saw."""

    format: str
    reads: int = 0
    from_both: int = 0
    rounds: int = 0
    rows: int = 0
    seconds: float = 0.0
    gaps: int = 0
    overlaps: int = 0
    wrong: list[str] = field(default_factory=list)


def config_of(format: str, warehouse: str) -> LakeConfig:
    return configure(
        {"lake.format": format, "lake.warehouse": warehouse, "lake.table": "db.t", "lake.pipeline": "union"}
    )


def log_of(root: str) -> TableLog:
    source = open_log_source("lines", {"path": root}, name="lines", origin="the checker")
    return source.open("t", {})


def run(format: str, reads: int, folder: Path, *, seed: int = 1) -> Unions:
    result = Unions(format)
    root, warehouse = folder / "logs", str(folder / "lake")
    root.mkdir()
    source = LinesTable(root, "t").create(columns={"id": "int64"}, buckets=BUCKETS)
    counts = [0] * BUCKETS
    over = threading.Event()
    writer = threading.Thread(target=_write, args=(source, counts, random.Random(seed), over))
    config = config_of(format, warehouse)
    started = time.monotonic()
    with Process("faults.union", format, warehouse, str(root)) as tiering:
        tiering.begin("tier")
        writer.start()
        try:
            while result.reads < reads:
                _read(config, root, list(counts), result)
        finally:
            over.set()
            writer.join()
        (root / "over").touch()
        answer = tiering.answer()
        if "rounds" not in answer:
            result.wrong.append(f"the rounds ended: {answer}")
        result.rounds = answer.get("rounds", 0)
    result.seconds = round(time.monotonic() - started, 1)
    _read(config, root, list(counts), result)
    result.rows = sum(counts)
    return result


def _write(source: LinesTable, counts: list[int], draw: random.Random, over: threading.Event) -> None:
    """Bucket b's row i has the id b * STRIDE + i, so that an offset tells which ids are below it."""
    while not over.wait(0.005):
        bucket = draw.randrange(BUCKETS)
        rows = range(counts[bucket], counts[bucket] + draw.randint(1, 5))
        source.append_raw(*(f'{{"id": {bucket * STRIDE + i}}}' for i in rows), bucket=bucket)
        counts[bucket] = rows.stop


def _read(config: LakeConfig, root: Path, before: Sequence[int], result: Unions) -> None:
    planned = plan_union(config, log_of(str(root)))
    batches = [batch for split in planned.splits for batch in planned.read(split)]
    ids = pa.Table.from_batches(batches, schema=planned.schema)["id"]
    result.reads += 1
    result.from_both += planned.lake is not None and bool(planned.log_splits)
    _judge(ids, planned.offsets.end, before, result)


def _judge(ids: pa.ChunkedArray, end: Mapping[str, int], before: Sequence[int], result: Unions) -> None:
    buckets = pc.divide(ids, STRIDE)
    for bucket in range(BUCKETS):
        upto = end.get(str(bucket), 0)
        if upto < before[bucket]:
            result.wrong.append(
                f"read {result.reads}: bucket {bucket} ends at {upto}, {before[bucket]} rows were there"
            )
        mine = pc.subtract(ids.filter(pc.equal(buckets, bucket)), bucket * STRIDE)
        distinct = mine.unique()
        below = pc.sum(pc.cast(pc.less(distinct, upto), pa.int64())).as_py() or 0
        gaps, overlaps, beyond = upto - below, len(mine) - len(distinct), len(distinct) - below
        result.gaps += gaps
        result.overlaps += overlaps
        if gaps or overlaps or beyond:
            result.wrong.append(
                f"read {result.reads}: bucket {bucket} up to {upto}: {gaps} rows are missing, {overlaps} are there "
                f"again, {beyond} are not below that offset"
            )


def _tier(_: Answers, __: dict[str, Any]) -> dict[str, Any]:
    """Rounds until the file ``over`` is there; what the lake holds expires in the log now and then."""
    name, warehouse, root = sys.argv[1:4]
    config, engine = config_of(name, warehouse), LocalEngine(2)
    rounds = 0
    for number in itertools.count():
        last = (Path(root) / "over").exists()
        made = LogRound(log_of(root), config)
        done = made.finish(engine.run(made.plan()))
        rounds += done.ending is not None
        if number % 5 == 4:
            _expire(LinesTable(Path(root), "t"), done.end)
        if last:
            engine.close()
            return {"rounds": rounds}
        time.sleep(0.02)
    raise AssertionError("unreachable")


def _expire(source: LinesTable, end: LogOffsets) -> None:
    """All but a little of what is in the lake: a reader that looked at the lake just before still needs the rest."""
    source.describe(expired={bucket: max(0, offset - 2_000) for bucket, offset in end.items()})


def report(result: Unions) -> str:
    return (
        f"{result.format}: {result.reads} union reads in {result.seconds:.0f} s beside {result.rounds} rounds, "
        f"{result.from_both} of them from both halves; {result.rows} rows at the end; "
        f"gaps: {result.gaps}, overlaps: {result.overlaps}, wrong: {len(result.wrong)}"
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--format", required=True, choices=sorted(NAMES))
    parser.add_argument("--reads", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path, help="where the figures go; artifacts/faults/ by default")


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory(prefix="laketier-union-") as folder:
        result = run(arguments.format, arguments.reads, Path(folder), seed=arguments.seed)
    print(report(result))
    for line in result.wrong[:20]:
        print(f"  WRONG: {line}")
    write_json(arguments.json, f"union-{arguments.format}", dict(vars(result)))
    return 1 if result.wrong else 0


def command(argv: Sequence[str] | None = None) -> int:
    """The command line; the exit code."""
    prog = "python -m faults union"
    parser = argparse.ArgumentParser(prog, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser)
    return main(parser.parse_args(argv))


if __name__ == "__main__":
    serve({"tier": _tier})
