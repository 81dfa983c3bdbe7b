"""The storage's time is taken from the host, whose clock is right."""

from __future__ import annotations

from datetime import UTC, datetime

from crooked import CrookedPlugin

from laketier import kit
from laketier.registry import hookimpl

CAUGHT_BY = "test_clocks.py::test_the_storage_tells_the_time"
SAYS = "the storage tells the time, and not this host's clock"


class TimedCommitter(kit.ManifestCommitter):
    def storage_time(self) -> int:
        return int(datetime.now(UTC).timestamp() * 1000)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("asks-its-own-clock", committer=TimedCommitter)
