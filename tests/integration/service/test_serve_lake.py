"""`laketier serve` with lake tables for a source."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from followed import FOLLOWED
from laketier.config.service import load_service
from laketier.service.schedule import State
from laketier.service.state import StateStore
from laketier.service.tables import ServiceTables
from laketier_verification.lakes import append, ids, lake_at, rows_of


def test_the_tables_of_a_lake_are_tiered_into_other_formats(tmp_path: Path) -> None:
    source = FOLLOWED["iceberg"](tmp_path / "from").create()
    source.append(1, 2)
    append(lake_at(tmp_path / "from", "iceberg", "db.other"), rows_of(7))
    document = {
        "name": "tests",
        "state": f"sqlite:///{tmp_path}/state.db",
        "sources": {
            "ice": {"type": "lake", "options": {"lake.format": "iceberg", "lake.warehouse": str(tmp_path / "from")}}
        },
        "defaults": {"target": "copy.{table}", "freshness": "1 s"},
        "tables": [
            {
                "source": "ice",
                "include": [table],
                "sink": {"lake.format": kind, "lake.warehouse": str(tmp_path / "to")},
            }
            for table, kind in (("db.s", "lance"), ("db.other", "delta"))
        ],
    }
    file = tmp_path / "service.yaml"
    file.write_text(json.dumps(document))
    for more in ((), (3, 4)):
        if more:
            source.foreign_append(*more)
        _serve(file)
        assert ids(lake_at(tmp_path / "to", "lance", "copy.db_s")) == [1, 2, *more]
        assert ids(lake_at(tmp_path / "to", "delta", "copy.db_other")) == [7]


def test_tables_of_a_warehouse_that_is_away_stay_known(tmp_path: Path) -> None:
    source = FOLLOWED["localfile"](tmp_path / "from").create()
    options = {"lake.format": "localfile", "lake.warehouse": str(source.warehouse)}
    sink = {"lake.format": "localfile", "lake.warehouse": str(tmp_path / "to")}
    document = {
        "name": "tests",
        "state": f"sqlite:///{tmp_path}/state.db",
        "sources": {"src": {"type": "lake", "options": options}},
        "tables": [{"source": "src", "sink": sink, "target": "copy.{table}"}],
    }
    file = tmp_path / "service.yaml"
    file.write_text(json.dumps(document))
    service = load_service(file)
    with StateStore.open(service.state, service=service.name) as store:
        tables = ServiceTables(service, store, origin="the test")
        try:
            tables.discover()
            source.warehouse.rename(tmp_path / "away")
            tables.discover()
            (status,) = store.snapshot()
        finally:
            tables.close()
    assert status.table.state is not State.DROPPED


def _serve(file: Path) -> None:
    command = [str(Path(sys.executable).with_name("laketier")), "serve", str(file), "--engine", "local", "--until-idle"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
