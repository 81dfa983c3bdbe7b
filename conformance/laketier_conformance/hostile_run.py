"""Hostile names and paths on installed formats, as many as you like: ``python -m laketier_conformance.hostile_run``.

Each path is given to each way by which one enters through the SPI: results to be discarded, results to be published,
orphans to be removed. Hostile names are given to tables and to pipelines. After each, all that lies around the table is
compared with what it was.
"""

from __future__ import annotations

import argparse
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from laketier.registry import format_names
from laketier.spi import (
    ConfigError,
    Feature,
    FeatureNotSupported,
    LaketierError,
    OrphanFile,
    Refused,
    TablePath,
    WriteResult,
)
from laketier_conformance.harness import Harness
from laketier_conformance.hostile import paths
from laketier_conformance.lake import Lake, Table, ids_of
from laketier_conformance.outside import Surroundings, touched

_PIPELINES = 20
"""Of so many paths one is also the name of a pipeline: each takes a round."""


def run(format: str, seed: int, count: int, folder: Path) -> Counter[str]:
    """How many were tried, and what became of them; ``outside`` counts those that touched anything outside."""
    harness = Harness.of(format)
    warehouse = harness.setup(folder)
    lake = Lake(format, warehouse.location, warehouse.options)
    try:
        table = lake.create()
        table.append(0)
        around = Surroundings.of(lake, table, folder)
        staged = table.staged(ids_of(1))
        found: Counter[str] = Counter()
        ways = _ways(table, staged)
        for number, path in enumerate(_paths(seed, count, around)):
            for way, attempt in ways.items():
                if way == "pipeline" and number % _PIPELINES:
                    continue
                _try(found, way, attempt, path, around)
        assert ids_of(0) == [i for i in table.ids if i in ids_of(0)], "the table's own rows are there"
    finally:
        harness.teardown(warehouse)
    return found


def _try(found: Counter[str], way: str, attempt: Callable[[str], None], path: str, around: Surroundings | None) -> None:
    before = _around(around)
    found[f"{way}: tried"] += 1
    try:
        attempt(path)
    except FeatureNotSupported:
        found[f"{way}: not supported"] += 1
    except (Refused, ConfigError):
        found[f"{way}: refused"] += 1
    except LaketierError as error:
        found[f"{way}: {type(error).__name__}"] += 1
    else:
        found[f"{way}: nothing to do"] += 1
    if touched(before, _around(around)):
        found["outside"] += 1
        _say(f"  reached outside by {way}: {path!a}")


def _around(around: Surroundings | None) -> Mapping[str, object]:
    return {} if around is None else around.around()


def _paths(seed: int, count: int, around: Surroundings | None) -> Iterator[str]:
    if around is not None:
        yield from map(str, around.theirs.rglob("*"))
        yield "../" * 40 + str(around.theirs / "canary").lstrip("/")
    yield from paths(seed, count)


def _ways(table: Table, staged: WriteResult) -> Mapping[str, Callable[[str], None]]:
    storage = table.lake.storage
    catalog = storage.catalog()
    committer = table.committer()
    state = committer.open()
    collects = table.lake.declares(Feature.ORPHAN_COLLECTION)
    maintenance = storage.maintenance(table.info) if collects else None

    def forged(path: str) -> WriteResult:
        return replace(staged, files=(replace(staged.files[0], path=path),))

    def discard(path: str) -> None:
        committer.discard([forged(path)])

    def publish(path: str) -> None:
        committer.publish(state, [forged(path)], None)

    def remove(path: str) -> None:
        if maintenance is None:
            raise FeatureNotSupported(Feature.ORPHAN_COLLECTION.value, format=table.lake.format, reason="declared")
        if maintenance.remove_orphans([OrphanFile(path, 0, 0)]):
            raise Removed("it says that it is gone")

    def name(path: str) -> None:
        catalog.load_table(TablePath("db", path))

    def pipeline(path: str) -> None:
        table.append(0, [], pipeline=path)
        assert table.watermark(path) is not None, (
            f"an epoch of pipeline {path!r} was published: expected its watermark, found none"
        )

    return {"discard": discard, "publish": publish, "remove": remove, "table": name, "pipeline": pipeline}


class Removed(LaketierError):
    """A file that was not there counts as gone: so it is with paths of the table's own."""


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """The command. 1 when anything outside was touched."""
    parser = argparse.ArgumentParser(prog="python -m laketier_conformance.hostile_run", description=__doc__)
    parser.add_argument("formats", nargs="*", help="by default all that are installed")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--count", type=int, default=1_000)
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)
    outside = 0
    for name in arguments.formats or format_names():
        with tempfile.TemporaryDirectory() as folder:
            found = run(name, arguments.seed, arguments.count, Path(folder))
        outside += found["outside"]
        told = ", ".join(f"{what} {number}" for what, number in sorted(found.items()) if what != "outside")
        _say(f"{name}: seed {arguments.seed}, {arguments.count} paths: {found['outside']} reached outside; {told}")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
