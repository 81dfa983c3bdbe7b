"""Processes that read, write, alter, drop and make anew one table through the metadata cache of one host, while some
are killed: ``python cache_chaos.py FORMAT FOLDER PROCESSES KILLS SEED``. Prints JSON of the looks that found what the
table can't have been in between."""

from __future__ import annotations

import fcntl
import importlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from laketier.registry import Lake, open_lake
from laketier.spi import AddColumn, LaketierError, TableDescriptor, TableNotFound
from laketier.tables.metadata import described, forget_process_cache, metadata_cache, opened
from laketier_verification.lakes import append, lake_at, rows_of

LOOKS_PER_KILL = 20
WRITERS = 3


@dataclass
class Chaos:
    """One run. All processes write lines into the same files, each line in one call."""

    format: str
    folder: Path

    def lake(self) -> Lake:
        lake = lake_at(self.folder / "lake", self.format)
        return open_lake(replace(lake.config, pipeline=None))

    def write(self, name: str, record: Any) -> None:
        file = os.open(self.folder / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, (json.dumps(record) + "\n").encode())
        os.close(file)

    def read(self, name: str) -> list[Any]:
        try:
            return [json.loads(line) for line in (self.folder / name).read_text().splitlines()]
        except FileNotFoundError:
            return []

    @contextmanager
    def locked(self, how: int) -> Iterator[None]:
        file = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(file, how)
            yield
        finally:
            os.close(file)

    def change(self, rng: random.Random) -> None:
        """Give the table a column, or make it anew. What is begun and not ended was cut off by a kill."""
        catalog, path, token = self.lake().storage.catalog(), self.lake().config.table, rng.getrandbits(60)
        with self.locked(fcntl.LOCK_EX):
            steps = self.read("steps")
            state = next((step["state"] for step in reversed(steps) if "state" in step), None)
            if steps and "state" not in steps[-1] and state and len(state) < 6 and rng.random() < 0.6:
                added = f"a{token:x}"
                change = AddColumn(pa.field(added, pa.string()))
                self._step([*state, added], lambda: catalog.alter_table(path, [change]))
                return
            self._step(None, lambda: _dropped(catalog, path))
            schema = pa.schema([("id", pa.int64()), ("name", pa.string()), (f"c{token:x}", pa.string())])
            self._step(schema.names, lambda: catalog.create_table(path, TableDescriptor(schema)))

    def _step(self, state: list[str] | None, work: Callable[[], object]) -> None:
        self.write("steps", {"at": time.monotonic(), "state": state})
        work()
        self.write("steps", {"at": time.monotonic()})

    def append(self, rng: random.Random) -> None:
        with self.locked(fcntl.LOCK_SH):  # an append would make a table that is not there
            self.lake().load_table()
            append(self.lake(), rows_of(rng.randrange(1000)))

    def look(self, rng: random.Random) -> None:
        if rng.random() < 0.3:  # as a new process
            metadata_cache().flush(5)
            forget_process_cache()
        if rng.random() < 0.05:
            metadata_cache().clear()
        lake, look = self.lake(), rng.choice([opened, described])
        began = time.monotonic()
        try:
            state = look(lake).schema.names
        except TableNotFound:
            state = None
        self.write("looks", {"began": began, "ended": time.monotonic(), "state": state})

    def child(self, number: int, seed: int) -> None:
        rng = random.Random(seed)
        while not (self.folder / "stop").exists():
            work = rng.random()
            try:
                if number < WRITERS and work < 0.4:
                    self.change(rng)
                elif WRITERS <= number < 2 * WRITERS and work < 0.05:
                    self.append(rng)
                else:
                    self.look(rng)
            except LaketierError:
                continue
            except Exception as error:  # noqa: BLE001 - told by the parent
                self.write("bare", repr(error))

    def could_be(self) -> Callable[[dict[str, Any]], bool]:
        """Says whether a table can have been so while it was looked at: from the begin of the step that leads there to
        the end of the next one that was not cut off."""
        steps = self.read("steps")
        spans: dict[str, list[tuple[float, float]]] = {}
        for at, step in enumerate(steps):
            if "state" in step:
                ended = at + 1 < len(steps) and "state" not in steps[at + 1]
                later = (other["at"] for other in steps[at + (2 if ended else 1) :] if "state" not in other)
                spans.setdefault(json.dumps(step["state"]), []).append((step["at"], next(later, float("inf"))))
        return lambda look: any(
            begin <= look["ended"] and look["began"] <= end for begin, end in spans.get(json.dumps(look["state"]), [])
        )


def _dropped(catalog: Any, path: Any) -> None:
    with suppress(TableNotFound):
        catalog.drop_table(path)


def forked(work: Callable[[], None]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        work()
        os._exit(0)
    finally:
        os._exit(1)


def run(chaos: Chaos, processes: int, kills: int, seed: int) -> dict[str, Any]:
    rng = random.Random(seed)
    if chaos.format == "iceberg":
        importlib.import_module("pyiceberg.table")  # the other engines bear no fork
    os.waitpid(forked(lambda: chaos.change(random.Random(seed))), 0)
    children = {number: forked(lambda n=number: chaos.child(n, seed + n)) for number in range(processes)}  # type: ignore[misc]
    for kill in range(kills):
        while len(chaos.read("looks")) < (kill + 1) * LOOKS_PER_KILL:
            time.sleep(0.05)
        number = rng.randrange(processes)
        os.kill(children[number], signal.SIGKILL)
        os.waitpid(children[number], 0)
        children[number] = forked(lambda n=number: chaos.child(n, rng.getrandbits(32)))  # type: ignore[misc]
    (chaos.folder / "stop").touch()
    for child in children.values():
        os.waitpid(child, 0)
    looks, right = chaos.read("looks"), chaos.could_be()
    return {"looks": len(looks), "wrong": [each for each in looks if not right(each)], "bare": chaos.read("bare")}


if __name__ == "__main__":
    made = Chaos(sys.argv[1], Path(sys.argv[2]))
    print(json.dumps(run(made, *map(int, sys.argv[3:]))))
