"""Union reads beside rounds: a slice of ``python -m laketier_verification.faults union``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from depth import sizes
from laketier.registry import load_format
from laketier.spi import Feature, LogOffsets, support_of
from laketier.union_read import merge_read
from laketier.union_read import planning as union_read
from laketier_verification.faults import union

FORMATS = ("delta", "iceberg", "lance", "localfile")


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@sizes("reads", 7, 25)
def test_each_union_read_is_a_prefix_of_the_log(tmp_path: Path, format: str, reads: int) -> None:
    result = union.run(format, reads, tmp_path)
    assert result.wrong == []
    verdict = result.verdict
    assert (verdict.gaps, verdict.overlaps, verdict.strays) == (0, 0, 0)
    assert result.rounds > 0


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@sizes("reads", 7, 25)
def test_each_union_read_by_key_is_what_a_prefix_of_the_changes_comes_to(
    tmp_path: Path, format: str, reads: int
) -> None:
    if not support_of(load_format(format).features, Feature.UPSERT).full:
        pytest.skip(f"{format} does not merge by key")
    result = union.run(format, reads, tmp_path, keyed=True)
    assert result.wrong == []
    assert result.rounds > 0


def test_older_rows_that_stay_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merge_read, "without_keys", lambda batch, _: batch)
    assert union.run("localfile", 25, tmp_path, keyed=True).verdict.strays > 0


def test_offsets_that_fall_behind_the_snapshot_are_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = union_read.committed_offsets

    def older(*arguments: Any, **named: Any) -> LogOffsets | None:
        offsets = real(*arguments, **named)
        return None if offsets is None else LogOffsets({bucket: max(0, at - 1) for bucket, at in offsets.items()})

    monkeypatch.setattr(union_read, "committed_offsets", older)
    assert union.run("localfile", 25, tmp_path).verdict.overlaps > 0


def test_a_half_that_is_missing_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(union_read, "_lake_half", lambda *_, **__: None)
    assert union.run("localfile", 25, tmp_path).verdict.gaps > 0
