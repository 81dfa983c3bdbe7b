"""Whether a table that was found after a power cut is right, and goes on rightly."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from laketier.spi import LakeStorage, ScanRequest, Stale, TableNotFound
from laketier_conformance.lake import read_plan
from laketier_verification.powercut.scenario import PATH, STEPS, Rows, run, storage_at

_RECOVERED = ("published", "already there", "recovered", "done")


def judge(folder: Path, acknowledged: int) -> None:
    """Raises AssertionError, or what laketier raises, unless the warehouse in ``folder`` holds all steps that were
    acknowledged, of the next one all or nothing, and both a replay and the next step end as they should."""
    storage = storage_at(folder)
    allowed = [STEPS[acknowledged - 1].rows if acknowledged else None]
    if acknowledged < len(STEPS):
        allowed.append(STEPS[acknowledged].rows)
    found = seen(storage)
    assert found in allowed, f"before anything is mended: {_difference(found, allowed[0])}"
    if found is not None and acknowledged and STEPS[acknowledged - 1].epoch is not None:
        with suppress(Stale):  # the step that was under way has landed
            outcome = run(storage, STEPS[acknowledged - 1])
            assert outcome == "already there", f"the replay of an acknowledged epoch: {outcome}"
    last = min(acknowledged, len(STEPS) - 1)
    outcome = run(storage, STEPS[last])
    assert outcome in _RECOVERED, outcome
    found = seen(storage)
    assert found == STEPS[last].rows, f"after {STEPS[last].name}: {_difference(found, STEPS[last].rows)}"
    if found is not None:
        for number in range(last + 1):
            rows = seen(storage, number)
            assert rows == STEPS[number].rows, f"snapshot {number}: {_difference(rows, STEPS[number].rows)}"
        plain = seen_by_others(folder)
        assert plain == found, f"to plain readers: {_difference(plain, found)}"


def seen(storage: LakeStorage, snapshot_id: int | None = None) -> Rows | None:
    """The rows of the table; None where there is none."""
    try:
        table = storage.catalog().load_table(PATH)
    except TableNotFound:
        return None
    source = storage.source(table)
    return _rows(read_plan(source, source.plan(ScanRequest(snapshot_id=snapshot_id))))


def seen_by_others(folder: Path) -> Rows:
    """What a reader finds that knows nothing but Parquet files below a folder."""
    rows: Rows = Counter()
    for path in (folder / PATH.database / PATH.table).rglob("*.parquet"):
        rows += _rows(pq.read_table(path, partitioning=None))
    return rows


def _rows(table: pa.Table) -> Rows:
    return Counter(zip(table["id"].to_pylist(), table["part"].to_pylist(), strict=True))


def _difference(found: Rows | None, expected: Rows | None) -> str:
    if found is None or expected is None:
        return f"found {found}, not {expected}"
    lost, more = sorted((expected - found).elements()), sorted((found - expected).elements())
    return f"lost {lost}, not expected {more}"
