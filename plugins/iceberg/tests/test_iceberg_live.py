"""Results that are handed over again while their files are in the table: Iceberg itself would list them twice."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from laketier.spi import OutsideTable
from laketier_conformance.lake import Lake, Table, ids_of, token
from laketier_iceberg.writer import AFTER


@pytest.fixture
def table(warehouse: Path) -> Table:
    return Lake("iceberg", str(warehouse), {}).create()


@pytest.mark.parametrize("payload", [{}, {AFTER: "soon"}], ids=["none", "another"])
def test_a_result_of_an_older_version_is_looked_for_in_all_manifests(table: Table, payload: dict[str, str]) -> None:
    made = table.staged(ids_of(0))
    [file] = made.files
    kept = {name: text for name, text in file.payload.items() if name != AFTER}
    old = replace(made, files=(replace(file, payload=kept | payload),))
    table.commit([old], token(0))
    table.append(1)
    with pytest.raises(OutsideTable, match="an old result was handed over again"):
        table.commit([old], token(2))
    assert table.ids == ids_of(0) + ids_of(1)


def test_a_round_that_nobody_came_before_reads_no_manifest_for_it(
    table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append(0)
    looks: list[str] = []
    monkeypatch.setattr("laketier_iceberg.live_files._names", lambda *_: looks.append("look") or [])
    staged = table.staged(ids_of(1))
    table.commit([staged], token(1))
    assert looks == []
    late = table.staged(ids_of(2))
    table.append(0, ids_of(5), pipeline="other")
    table.commit([late], token(2))
    assert "look" in looks, "another pipeline's commit came between"
