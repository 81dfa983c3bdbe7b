"""What is the same in the plans of all formats."""

from __future__ import annotations

import pytest

from laketier.kit.scans import check_versions, cut_to_limit
from laketier.spi import LakeSplit, OffsetsExpired, SnapshotNotFound, VersionBounds

SPLITS = [LakeSplit(index=i, rows=rows, plain_parquet=f"/{i}", files=(f"f{i}",)) for i, rows in enumerate((3, 0, 4, 5))]


@pytest.mark.parametrize(
    ("limit", "rows"),
    [(0, []), (2, [2]), (3, [3]), (4, [3, 0, 1]), (7, [3, 0, 4]), (12, [3, 0, 4, 5]), (99, [3, 0, 4, 5])],
)
def test_splits_are_cut_to_a_limit(limit: int, rows: list[int]) -> None:
    taken = cut_to_limit(SPLITS, limit)
    assert [split.rows for split in taken] == rows
    for split, whole in zip(taken, SPLITS, strict=False):
        if split.rows == whole.rows:
            assert split is whole
        else:
            assert (split.plain_parquet, split.files) == (None, ())
            assert split.limit == split.rows


def test_a_split_that_does_not_know_its_rows_matters_only_where_it_is_reached() -> None:
    unknown = [SPLITS[0], LakeSplit(index=1)]
    assert cut_to_limit(unknown, 4) == unknown
    assert cut_to_limit(unknown, 3) == SPLITS[:1]


def test_versions() -> None:
    there = VersionBounds(earliest=4, latest=8)
    check_versions(4, 8, there, where="t")
    check_versions(2, 2, there, where="t")  # nothing is asked for
    with pytest.raises(SnapshotNotFound, match="t: the newest snapshot is 7, and 8 was asked for"):
        check_versions(4, 9, there, where="t", noun="snapshot")
    with pytest.raises(OffsetsExpired, match=r"t: versions from 3 on have expired, because .* is 4\. Keep them\."):
        check_versions(3, 8, there, where="t", fix="Keep them.")
