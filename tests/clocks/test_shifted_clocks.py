"""Processes whose whole clock is shifted by libfaketime: also the clocks of delta-rs, Lance and pyiceberg, which the
product cannot shift."""

from __future__ import annotations

from pathlib import Path

import pytest

from laketier.registry import format_names
from laketier_conformance.host_clocks import MISSING, shifting_library
from laketier_verification.clocks.matrix import shown

pytestmark = [pytest.mark.deep, pytest.mark.slow]


@pytest.mark.parametrize("format", format_names())
def test_no_row_is_lost_or_there_twice(format: str, tmp_path: Path) -> None:
    if shifting_library() is None:
        pytest.skip(MISSING)
    result = shown(format, tmp_path)
    assert result.skewed > 9 * 86_400, "the clocks really were shifted"
    assert result.right, result
