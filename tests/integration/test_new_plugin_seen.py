"""A test of the suite that is new or changed meets what ``laketier new-plugin`` makes before its author is done."""

from __future__ import annotations

from pathlib import Path

import pytest

import templates_seen

FEW = 2
"""Files of the suite in each run: those that are not noted as passed come in turns."""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("kind", templates_seen.KINDS)
def test_it_passes_tests_that_are_new(kind: str, tmp_path: Path) -> None:
    chosen = templates_seen.unseen(templates_seen.digests(), templates_seen.noted(), FEW)
    if not chosen:
        return
    found, said = templates_seen.outcomes(kind, chosen, tmp_path)
    assert found, said
    assert templates_seen.failed(found) == {}, (
        f"{said}\nThe templates of `laketier new-plugin --kind {kind}` fail tests that are new or changed. "
        f"If both are right now: python tests/support/templates_seen.py {' '.join(chosen)}"
    )


def test_what_changed_comes_up_in_turns(tmp_path: Path) -> None:
    for number in range(9):
        (tmp_path / f"test_{number}.py").write_text(str(number))
    before = templates_seen.digests(tmp_path)
    assert templates_seen.unseen(before, before, 9) == []
    met = set()
    for number in range(40):
        (tmp_path / "test_8.py").write_text(f"changed {number}")
        now = templates_seen.digests(tmp_path)
        assert templates_seen.unseen(now, before, 9) == ["test_8.py"]
        some = templates_seen.unseen(now, {}, 2)
        assert some == templates_seen.unseen(now, {}, 2)
        met |= {*some}
    assert met == set(before)


def test_outcomes_that_are_no_pass_are_told() -> None:
    found = {"a": "passed", "b": "refused", "c": "failed", "d": "error", "e": "not interposed", "f": "not shown"}
    assert templates_seen.failed(found) == {"c": "failed", "d": "error", "f": "not shown"}
