"""A service that keeps indexes up with its lake tables, also where its worker is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from depth import deep_where
from laketier.cli.serve import serve
from laketier.config.service import load_service
from laketier.kit import failpoints
from laketier.kit.failpoints import observed
from laketier.maintenance.index_builds import PART_BUILT, build_here
from laketier.maintenance.table_policies import INDEXES as INDEXES_OF_TABLE
from laketier.registry import configure, open_lake
from laketier.rounds.log_engine import LocalEngine
from laketier.service.failpoints import FINISHED
from laketier.service.index_keeper import IndexKeeper
from laketier.service.state import IndexFigures, StateStore, Upkeep, Worker
from laketier.service.status import status_document
from laketier.service.tables import ServiceTables
from laketier.service.worker import TieringWorker, WorkerSettings
from laketier.spi import ConfigError, IndexInfo, TableDescriptor, TablePath
from laketier_verification.lines import LinesTable

lance = pytest.importorskip("lance")
pytest.importorskip("laketier_lance")

CLI = "from laketier.cli.app import main; main()"
INDEXES = [
    {"column": "text", "kind": "inverted", "max-unindexed-rows": 10, "max-segments": 2},
    {"column": "id", "kind": "btree", "max-unindexed-rows": 10},
]


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def described(folder: Path, indexes: list[dict[str, Any]], format: str = "lance") -> Path:
    LinesTable(folder / "logs", "t").create()
    document = {
        "name": "tests",
        "state": f"sqlite:///{folder}/state.db",
        "sources": {"src": {"type": "lines", "options": {"path": str(folder / "logs")}}},
        "defaults": {"sink": {"lake.format": format, "lake.warehouse": str(folder / "lake")}, "target": "db.{table}"},
        "tables": [{"source": "src", "indexes": indexes}],
    }
    file = folder / "service.yaml"
    file.write_text(json.dumps(document))
    return file


def add(folder: Path, count: int) -> None:
    log = LinesTable(folder / "logs", "t")
    first = len((log.folder / "0.jsonl").read_text().splitlines())
    log.append(*range(first, first + count))


def indexes(folder: Path) -> dict[str, IndexInfo]:
    values = {"lake.format": "lance", "lake.warehouse": str(folder / "lake"), "lake.table": "db.t"}
    lake = open_lake(configure(values))
    return {each.name: each for each in lake.indexer(lake.load_table()).indexes()}


def answers(folder: Path) -> int:
    values = {"lake.format": "lance", "lake.warehouse": str(folder / "lake"), "lake.table": "db.t"}
    dataset = lance.dataset(open_lake(configure(values)).load_table().location)
    return int(dataset.to_table(["id", "_score"], full_text_query="row", limit=10_000).num_rows)


def upkeep(file: Path) -> Upkeep:
    described = load_service(file)
    with StateStore.open(described.state, service=described.name) as store:
        (status,) = store.snapshot()
        assert status.upkeep is not None
        assert status_document(status)["indexes"][0]["name"] == status.upkeep.indexes[0].name
        return status.upkeep


def run(file: Path) -> None:
    serve(file, engine="local", until_idle=True, http=None, http_token_file=None, log_format="text")


def test_a_service_keeps_indexes_up(tmp_path: Path) -> None:
    file = described(tmp_path, INDEXES)
    for count in (20, 20, 20, 5):
        add(tmp_path, count)
        run(file)
    words, ids = indexes(tmp_path)["text_idx"], indexes(tmp_path)["id_idx"]
    assert (words.rows_indexed, words.rows_not_indexed, len(words.segments)) == (60, 5, 1), "two became one"
    assert (ids.rows_indexed, ids.rows_not_indexed, len(ids.segments)) == (60, 5, 3)
    assert answers(tmp_path) == 65
    kept = upkeep(file)
    assert (kept.failures, kept.failures_total) == (0, 0)
    # Of each: a build and two appends; and a merge of words.
    assert kept.steps_total == 7
    (words_told, ids_told) = kept.indexes
    assert (words_told.name, words_told.segments, words_told.tail_share) == ("text_idx", 1, 5 / 65)
    assert (ids_told.name, ids_told.rows_not_indexed, ids_told.error) == ("id_idx", 5, None)


def test_a_build_that_fails_is_counted_and_stops_no_round(tmp_path: Path) -> None:
    file = described(tmp_path, [{"column": "txet", "kind": "inverted"}, INDEXES[1]])
    add(tmp_path, 20)
    run(file)
    kept = upkeep(file)
    assert kept.failures >= 1
    assert "'text'" in (kept.indexes[0].error or "")
    assert kept.indexes[1].segments == 1
    assert set(indexes(tmp_path)) == {"id_idx"}


def test_rounds_go_on_while_an_index_is_built(tmp_path: Path) -> None:
    """The build ends after two more rounds were committed: it waits for them."""
    file = described(tmp_path, INDEXES[:1])
    add(tmp_path, 20)
    document = load_service(file)
    finished = threading.Semaphore(0)
    built = threading.Event()
    ended: list[bool] = []

    def watch(point: str) -> None:
        if point == FINISHED:
            finished.release()
        if point == PART_BUILT and not built.is_set():
            finished.acquire()  # of the first round, without which there is nothing to index
            built.set()
            try:
                for _ in range(2):
                    add(tmp_path, 10)
                    store.retier("*")
                    ended.append(finished.acquire(timeout=60))
            finally:
                worker.stop()

    with StateStore.open(document.state, service=document.name) as store:
        tables = ServiceTables(document, store, origin="the test")
        tables.discover()
        here, engine = Worker.here(), LocalEngine(2)
        keeper = IndexKeeper(store, tables, here, build_here, idle_seconds=0.01)
        worker = TieringWorker(store, tables, engine, WorkerSettings(idle_seconds=0.01), worker=here, keeper=keeper)
        with observed(watch):
            assert worker.run()
        engine.close()
        tables.close()
    assert ended == [True, True]
    run(file)
    assert indexes(tmp_path)["text_idx"].rows_indexed == 40
    assert answers(tmp_path) == 40


def test_an_index_of_a_format_without_any_is_refused_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="`indexes` can't be kept"):
        run(described(tmp_path, INDEXES, "localfile"))


def test_a_table_with_a_key_has_none(tmp_path: Path) -> None:
    """Its rounds would be refused from then on."""
    file = described(tmp_path, INDEXES)
    document = json.loads(file.read_text())
    keyed = document | {"tables": [document["tables"][0] | {"primary-key": ["id"]}]}
    file.write_text(json.dumps(keyed))
    with pytest.raises(ConfigError, match="with a primary key"):
        run(file)
    # A source that has a key of its own tells it with the table.
    file.write_text(json.dumps(document))
    LinesTable(tmp_path / "logs", "t").describe(primary_key=["id"])
    for _ in range(2):
        add(tmp_path, 20)
        run(file)
    assert indexes(tmp_path) == {}
    assert "with a primary key" in (upkeep(file).indexes[0].error or "")


def create_with(folder: Path, indexes: list[dict[str, Any]]) -> None:
    """The lake table, before the service, with policies of its own."""
    values = {"lake.format": "lance", "lake.warehouse": str(folder / "lake"), "lake.table": "db.t"}
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    descriptor = TableDescriptor(schema, properties={INDEXES_OF_TABLE: json.dumps(indexes)})
    open_lake(configure(values)).storage.catalog().create_table(TablePath("db", "t"), descriptor)


def test_a_table_carries_its_policies(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Those of the file count more, and it is said for which index they differ."""
    file = described(tmp_path, [INDEXES[1] | {"max-segments": 5}])
    create_with(tmp_path, INDEXES)
    add(tmp_path, 20)
    run(file)
    assert set(indexes(tmp_path)) == {"id_idx"}, "nobody asked for those of the table"
    document = json.loads(file.read_text())
    document["defaults"]["table-indexes"] = True
    file.write_text(json.dumps(document))
    add(tmp_path, 20)
    with caplog.at_level("WARNING"):
        run(file)
    assert {name: each.rows_indexed for name, each in indexes(tmp_path).items()} == {"id_idx": 40, "text_idx": 40}
    assert "index id_idx: the service file and the table's property differ; the file counts" in caplog.text
    assert "index text_idx: the service file" not in caplog.text


def test_a_property_that_can_not_be_read_stops_no_round(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = described(tmp_path, [])
    document = json.loads(file.read_text())
    document["tables"][0] = {"source": "src", "table-indexes": True}
    file.write_text(json.dumps(document))
    create_with(tmp_path, [{"column": "id", "kind": "b-tree"}])
    add(tmp_path, 20)
    with caplog.at_level("WARNING"):
        run(file)
    assert indexes(tmp_path) == {}
    assert "property laketier.indexes of db.t" in caplog.text
    values = {"lake.format": "lance", "lake.warehouse": str(tmp_path / "lake"), "lake.table": "db.t"}
    assert lance.dataset(open_lake(configure(values)).load_table().location).count_rows() == 20


@pytest.mark.deep
def test_serve_on_spark_keeps_indexes_up(tmp_path: Path) -> None:
    """Three rounds, each by a service of its own; the parts are built in tasks of Spark."""
    file = described(tmp_path, INDEXES)
    document = json.loads(file.read_text())
    document["spark"] = {"spark.sql.shuffle.partitions": "2"}
    file.write_text(json.dumps(document))
    words = [sys.executable, "-c", CLI, "serve", str(file), "--engine", "spark", "--until-idle"]
    for count in (20, 20, 20):
        add(tmp_path, count)
        subprocess.run(words, check=True, capture_output=True, timeout=300)
    text, ids = indexes(tmp_path)["text_idx"], indexes(tmp_path)["id_idx"]
    assert (text.rows_indexed, text.rows_not_indexed, len(text.segments)) == (60, 0, 1)
    assert (ids.rows_indexed, ids.rows_not_indexed) == (60, 0)
    assert answers(tmp_path) == 60
    assert upkeep(file).failures_total == 0


@pytest.mark.parametrize(
    ("point", "segments"),
    deep_where(
        [
            (f"{PART_BUILT}=kill", 2),
            ("index.before_commit=kill", 2),
            ("index.between_commit_and_fsync=kill", 3),
            (f"{PART_BUILT}=kill@2", 3),
            ("index.before_commit=kill@2", 3),
            ("index.between_commit_and_fsync=kill@2", 1),
        ],
        lambda point, segments: segments == 3 or point == "index.before_commit=kill",
    ),
)
def test_a_killed_worker_leaves_an_index_that_answers(tmp_path: Path, point: str, segments: int) -> None:
    """It appends, then merges; killed at each step of both."""
    file = described(tmp_path, INDEXES[:1])
    for _ in range(2):
        add(tmp_path, 20)
        run(file)
    add(tmp_path, 20)
    words = [sys.executable, "-c", CLI, "serve", str(file), "--engine", "local", "--until-idle"]
    killed = subprocess.run(words, env={**os.environ, failpoints.VARIABLE: point}, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    left = indexes(tmp_path)["text_idx"]
    assert len(left.segments) == segments
    assert left.rows_indexed + left.rows_not_indexed == 60
    assert answers(tmp_path) == 60
    # The dead worker's lease is over at once for the one who comes: a person may wait two minutes, a test may not.
    dead = load_service(file)
    with StateStore.open(dead.state, service=dead.name, clock=lambda: 2**41) as store:
        tables = ServiceTables(dead, store, origin="the test")
        tables.discover()
        IndexKeeper(store, tables, Worker.here(), build_here).keep_all()
        tables.close()
    after = indexes(tmp_path)["text_idx"]
    assert (len(after.segments), after.rows_indexed) == (1, 60)
    assert answers(tmp_path) == 60


def test_figures_of_a_table_without_rows() -> None:
    assert IndexFigures("x").tail_share == 0
