"""A pipeline under test: its lives, one after the other or side by side, and the verdict on what it left."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from laketier.registry import Lake, configure, open_lake
from laketier.spi import ScanRequest, TableInfo, TableNotFound
from laketier.tables.scan import scan
from laketier_verification.faults import oracle, work
from laketier_verification.faults.oracle import Difference, Leftovers
from laketier_verification.faults.processes import Life, Processes
from laketier_verification.faults.progress import Progress

MOST_LIVES = 6


class Unexpected(Exception):
    """A pipeline did not do what its cell is about: a failpoint was not reached, or an error was another one."""


@dataclass
class Pipeline:
    """One table, and the drivers that fill it. ``settings`` go into every life (see `bare.live`)."""

    format: str
    folder: Path
    processes: Processes
    epochs: int = 6
    rows: int = 10
    settings: dict[str, Any] = field(default_factory=dict)
    lives: list[dict[str, Any]] = field(default_factory=list)
    midway: list[Difference] = field(default_factory=list)
    recovery_seconds: float | None = None
    only: range | None = None
    _numbers: Any = field(default_factory=itertools.count)
    _interrupted: int | None = None
    _verdict: Verdict | None = None

    @property
    def warehouse(self) -> Path:
        return self.folder / "warehouse"

    @property
    def progress(self) -> Progress:
        return Progress(self.folder / "progress")

    @property
    def lake(self) -> Lake:
        """Opened anew."""
        values = {"lake.format": self.format, "lake.warehouse": str(self.warehouse), "lake.table": work.TABLE}
        return open_lake(configure(values, environment={}))

    @property
    def info(self) -> TableInfo:
        """The table as it is."""
        return self.lake.storage.catalog().load_table(self.lake.config.table)

    # -- lives ------------------------------------------------------------------------------------------------------

    def start(self, failpoints: str = "", **settings: Any) -> Life:
        """A driver that goes on where the progress log says. In ``failpoints``, ``FLAG`` is the file of a pause."""
        life = self.processes.start(self.request(failpoints, **settings))
        if self._interrupted is None and self.lives:
            self._interrupted = self.progress.next_epoch
        return life

    def request(self, failpoints: str = "", **settings: Any) -> dict[str, Any]:
        """What a driver is told for its next life."""
        number = next(self._numbers)
        scratch = self.folder / "lives"
        scratch.mkdir(parents=True, exist_ok=True)
        flag = scratch / f"{number}.paused"
        return {
            "format": self.format,
            "warehouse": str(self.warehouse),
            "progress": str(self.progress.folder),
            "epochs": self.epochs,
            "rows": self.rows,
            "tasks": 2 + number % 2,  # a restart need not have as many tasks as the life before
            "answer": str(scratch / f"{number}.json"),
            "log": str(scratch / f"{number}.log"),
            "flag": str(flag),
            "failpoints": failpoints.replace("FLAG", str(flag)),
            **self.settings,
            **settings,
        }

    def end(self, life: Life, *expected: str) -> dict[str, Any]:
        """Wait for its end. ``expected``: outcomes, or names of errors; anything else is `Unexpected`."""
        result = life.wait()
        self.lives.append({key: value for key, value in result.items() if key not in ("passed", "modules")})
        self._note_recovery(life)
        if expected and not {result["outcome"], result.get("error")} & set(expected):
            raise Unexpected(f"expected {' or '.join(expected)}, and it {_told(result)}")
        return result

    def live(self, failpoints: str = "", *expected: str, **settings: Any) -> dict[str, Any]:
        """Start a driver and wait for its end."""
        return self.end(self.start(failpoints, **settings), *expected)

    def die(self, failpoints: str, **settings: Any) -> None:
        """A life that must be killed by a failpoint; then look at what it left."""
        self.live(failpoints, "killed", **settings)
        self.look()

    def finish(self, **settings: Any) -> None:
        """Restart it, without faults, until it has finished."""
        told = ""
        for _ in range(MOST_LIVES):
            result = self.live(**settings)
            if result["outcome"] == "finished":
                return
            told = _told(result)
        raise Unexpected(f"it never finished: {told}")

    def _note_recovery(self, life: Life) -> None:
        if self.recovery_seconds is None and self._interrupted in self.progress.acknowledged:
            seconds = self.progress.acknowledged_at(self._interrupted) - life.began
            self.recovery_seconds = max(seconds, 0.0)

    # -- what is there ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Midway: acknowledged epochs are there once; of the one under way all or nothing. To be read by laketier for
        local files, as plain readers may see some files of a commit before the others; else by others."""
        acknowledged = set(self.progress.acknowledged)
        found = self.found(midway=True)
        seen = {work.epoch_of(value) for value in found}
        under_way = {max(acknowledged, default=-1) + 1}
        whole = acknowledged | (seen & under_way)
        overwrite = self.settings.get("overwrite")
        if overwrite in whole:
            whole = {epoch for epoch in whole if epoch >= overwrite}
        self.midway.append(Difference.between(self.expect(whole), found))

    def found(self, *, midway: bool = False) -> list[int]:
        """The ids in the table; none where there is no table yet."""
        try:
            info = self.info
        except TableNotFound:
            return []
        if midway and self.format == "localfile":
            _, batches = scan(self.lake.storage.source(info), ScanRequest(columns=("id",)))
            return [value for batch in batches for value in batch.column("id").to_pylist()]
        return oracle.foreign_ids(self.format, info)

    def expect(self, epochs: Iterable[int]) -> Mapping[int, list[int]]:
        return {epoch: work.ids_of(epoch, self.rows) for epoch in epochs}

    def verdict(self) -> Verdict:
        """When all is over: every row of every epoch once, and no file that nobody knows. Asked for a second time, it
        is what it was: the table may be gone by then."""
        if self._verdict is None:
            self._verdict = self._judge()
        return self._verdict

    def _judge(self) -> Verdict:
        epochs = self.only if self.only is not None else range(self.epochs)
        last = Difference.between(self.expect(epochs), self.found())
        all_looks = [*self.midway, last]
        return Verdict(
            lost=sum(look.lost for look in all_looks),
            doubled=sum(look.doubled for look in all_looks),
            alien=sum(look.alien for look in all_looks),
            torn=sum(len(look.torn) for look in all_looks),
            files=oracle.unexplained(self.format, self.lake.storage, self.info),
        )

    def forget_progress(self) -> None:
        """The whole checkpoint is gone."""
        shutil.rmtree(self.progress.folder)


@dataclass(frozen=True)
class Verdict:
    """Counts over all looks at a table, while it recovered and at the end."""

    lost: int
    doubled: int
    alien: int
    torn: int
    files: Leftovers

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.alien or self.torn or self.files.unexplained) and not (
            self.files.endangered
        )


def _told(result: Mapping[str, Any]) -> str:
    short = {key: str(value)[:400] for key, value in result.items() if key in ("outcome", "error", "message")}
    return json.dumps(short)
