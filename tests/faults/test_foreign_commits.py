"""Replays after many foreign commits: a slice of ``python -m laketier_verification.faults foreign``, which also
measures them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from depth import sizes
from laketier.tiering import RoundOutcome
from laketier_verification.faults import foreign
from laketier_verification.faults.marked import MarkedTable, rows_of

FORMATS = ("delta", "iceberg", "lance", "localfile")
FEW, MANY = 18, 45
RETAIN = 10


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
@sizes("commits", FEW, MANY)
def test_a_replay_is_recognised_after_foreign_commits_and_their_clean_up(
    tmp_path: Path, format: str, commits: int
) -> None:
    newcomers = int(commits == MANY)
    result = foreign.run(format, commits, tmp_path, repetitions=2, retain=RETAIN, seconds=3600, newcomers=newcomers)
    assert [line for line in result.wrong if "times as much" not in line] == [], "no time is judged here"
    assert (result.recognised, result.commits) == (4, commits)
    if format != "localfile":
        assert result.retained[1] <= RETAIN + 2, "so our commit's own snapshot is gone"


@pytest.mark.parametrize(
    ("format", "name", "most"),
    [
        ("delta", "laketier_delta.delta_log.DeltaLog.commit_info", RETAIN + 3),
        ("lance", "laketier_lance.rounds.properties_of", RETAIN + 2),
    ],
)
def test_a_look_reads_what_is_retained_and_nothing_that_was_cleaned_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format: str, name: str, most: int
) -> None:
    """Of ten thousand commits since, those that were cleaned up must cost nothing, not even a request each."""
    table, _, _ = foreign.prepare(format, tmp_path / "warehouse", FEW, RETAIN, 3600)
    reads = _counted(monkeypatch, name)
    committer = table.factory.create_committer(_context())
    watermark = committer.open().watermark("p")
    committer.close()
    assert watermark is not None
    assert 0 < len(reads) <= most
    assert table.append(0, rows_of(0, "ours", foreign.OUR_ROWS)).outcome is RoundOutcome.ALREADY_THERE


def _context() -> Any:
    from laketier.spi import CommitterInitContext, new_attempt_id

    return CommitterInitContext(commit_id=new_attempt_id())


def _counted(monkeypatch: pytest.MonkeyPatch, target: str) -> list[Any]:
    """Calls of ``target`` from here on; the real one is called too."""
    reads: list[Any] = []
    owner, _, attribute = target.rpartition(".")
    from pkgutil import resolve_name

    real = getattr(resolve_name(owner), attribute)

    def counted(*arguments: Any) -> Any:
        reads.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(target, counted)
    return reads


def test_an_epoch_that_is_not_recognised_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: MarkedTable, epoch: int, *batches: Any, pipeline: str = "p") -> Any:
        return self.round(epoch, [[batch] for batch in batches], f"{pipeline}-{len(self.read())}")

    monkeypatch.setattr(MarkedTable, "append", forgetful)
    result = foreign.Replays("localfile", 0)
    table, done, _ = foreign.prepare("localfile", tmp_path / "warehouse", 0, RETAIN, 60)
    assert table.append(0, rows_of(0, "ours", foreign.OUR_ROWS)).outcome is RoundOutcome.PUBLISHED
    with pytest.raises(AssertionError, match="twice"):
        foreign._check(table, done, result)
