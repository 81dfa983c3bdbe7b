"""Every combination of wrong clocks, on one table of each format."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from laketier.registry import load_format
from laketier.spi import Feature, support_of
from laketier_verification.clocks.host import Host

DAYS = (-10, 0, 1, 10)


@dataclass
class Shown:
    """What became of a format's rounds, each an epoch of one row. ``refused`` ones were run again."""

    format: str
    outcomes: Counter[str] = field(default_factory=Counter)
    removed: int = 0
    lost: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)
    skewed: float = 0

    @property
    def right(self) -> bool:
        """Whether every row is there once, and no round was refused twice."""
        return not self.lost and not self.doubled and not self.outcomes["refused again"]


def shown(format: str, warehouse: Path) -> Shown:
    """One table, and a host for each clock. ``stager`` writes, ``driver`` begins and commits, ``collector`` collects
    orphans without grace in between."""
    collects = support_of(load_format(format).features, Feature.ORPHAN_COLLECTION).full
    result = Shown(format)
    with ExitStack() as ends:
        hosts = {days: Host(format, warehouse, days) for days in DAYS}
        for host in hosts.values():
            ends.callback(host.stop)
        hosts[0].ask("create")
        result.skewed = max(abs(hosts[days].ask("time") - time.time()) for days in DAYS)
        epochs = 1
        for stager, driver, collector in _combinations(collects):
            result.outcomes[_round(hosts, result, epochs, stager, driver, collector)] += 1
            epochs += 1
        found = Counter(hosts[0].ask("read"))
    result.lost = sorted(set(range(epochs)) - found.keys())
    result.doubled = sorted(row for row, times in found.items() if times > 1)
    return result


def _combinations(collects: bool) -> Iterator[tuple[int, int, int | None]]:
    if collects:
        yield from itertools.product(DAYS, (-10, 10), DAYS)
    else:
        yield from ((stager, driver, None) for stager, driver in itertools.product(DAYS, DAYS))


def _round(hosts: dict[int, Host], result: Shown, epoch: int, stager: int, driver: int, collector: int | None) -> str:
    staged = hosts[stager].ask("stage", epoch=epoch, after=hosts[driver].ask("begin", epoch=epoch))
    if collector is not None:
        time.sleep(0.02)  # files and horizon are told apart by milliseconds
        result.removed += hosts[collector].ask("collect")
    outcome: str = hosts[driver].ask("commit", epoch=epoch, message=staged)
    if outcome != "refused":
        return outcome
    again = hosts[stager].ask("stage", epoch=epoch, after=hosts[driver].ask("begin", epoch=epoch))
    outcome = hosts[driver].ask("commit", epoch=epoch, message=again)
    return "refused once, then published" if outcome == "published" else "refused again"
