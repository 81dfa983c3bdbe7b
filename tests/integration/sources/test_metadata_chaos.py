"""The metadata cache under processes of one host that do everything at once, and are killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import cache_chaos
from laketier.tables.metadata.counts import Counts
from laketier.tables.metadata.disk import Disk
from laketier_verification.lakes import OURS
from saved_table import NAME, saved


@pytest.mark.deep
@pytest.mark.parametrize("format", OURS)
def test_nobody_is_told_what_the_table_was_not_in_between(tmp_path: Path, format: str) -> None:
    """Sixteen processes look, append, alter, drop and make anew; twelve are killed. A look that hangs ends the test by
    its limit of time."""
    cache = tmp_path / "cache"
    ran = subprocess.run(
        [sys.executable, cache_chaos.__file__, format, str(tmp_path), "16", "12", "7"],
        stdout=subprocess.PIPE,
        timeout=900,
        check=True,
        env={**os.environ, "LAKETIER_CACHE_DIR": str(cache)},
    )
    found = json.loads(ran.stdout.splitlines()[-1])
    assert found["looks"] >= 12 * cache_chaos.LOOKS_PER_KILL
    assert (found["wrong"], found["bare"]) == ([], [])
    disk = Disk(cache, 1 << 20, 3600, Counts())
    assert disk.root is not None
    remains = [path for path in disk.root.iterdir() if path.name.endswith(".tmp")]
    assert len(remains) <= 12
    for path in remains:
        os.utime(path, ns=(0, 10**18))
    assert disk.save(NAME, saved())
    assert not [path for path in disk.root.iterdir() if path.name.endswith(".tmp")]
