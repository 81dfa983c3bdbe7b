"""The command that tries hostile names and paths on any format, on one of them and with few."""

from __future__ import annotations

from pathlib import Path

from laketier_conformance.hostile_run import run


def test_nothing_is_reached(tmp_path: Path) -> None:
    found = run("localfile", seed=3, count=40, folder=tmp_path)
    assert found["outside"] == 0
    ways = {what.partition(":")[0] for what in found} - {"outside"}
    assert ways == {"discard", "publish", "remove", "table", "pipeline"}
    assert found["publish: refused"] == found["publish: tried"] >= 40
