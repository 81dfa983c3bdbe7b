"""The clock of this host, which tests may shift."""

from __future__ import annotations

import time

import pytest

from laketier.spi import host_time
from laketier.spi.clocks import shifted

HOUR = 3_600_000


def _ahead() -> int:
    """By how many hours `host_time` is."""
    return round((host_time() - time.time_ns() // 1_000_000) / HOUR)


def test_a_shift_ends_with_its_block() -> None:
    assert _ahead() == 0
    with shifted(2 * HOUR):
        assert _ahead() == 2
        with shifted(-5 * HOUR):
            assert _ahead() == -5
        assert _ahead() == 2
    assert _ahead() == 0


def test_a_shift_ends_with_an_error_too() -> None:
    with pytest.raises(KeyError), shifted(3 * HOUR):
        raise KeyError
    assert _ahead() == 0
