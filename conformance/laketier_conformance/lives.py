"""What a plugin's work does to the process that it lives in: a table is used in a process of its own, and what belongs
to the whole process is looked at before and after."""

from __future__ import annotations

import gc
import hashlib
import os
import random
import re
import stat
import sys
import tempfile
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from laketier.maintenance.orphans import collect_orphans
from laketier.spi import (
    AddColumn,
    Conflict,
    Feature,
    ScanRequest,
    SetProperty,
    WriteMode,
    WriterInitContext,
    new_attempt_id,
)
from laketier_conformance import started
from laketier_conformance.imported import SETTINGS
from laketier_conformance.keyed import Keyed
from laketier_conformance.lake import SCHEMA, Lake, Table, batch, ids_of, read_plan

MASK = 0o027
"""Of new files: their owner may read and write, his group may read, and nobody else may anything."""
OPEN_MASK = 0o002
"""Another one: nobody else may write, and all may read."""
ROUNDS = 5
"""A plugin that leaves something behind in each round leaves as many."""
_OF_WORK: dict[str, Callable[[], object]] = {
    **{name: told for name, told in SETTINGS.items() if name != "the threads"},
    "the mask of new files": lambda: oct(_mask()),
    "the time zone": lambda: (time.tzname, time.timezone),
}
_DESCRIPTORS = Path("/proc/self/fd")
_OF_POOL = re.compile(r"_[0-9]+\Z")


def live(lake: Lake, request: dict[str, Any]) -> dict[str, Any]:
    """Use a table as a process does that lives long. ``temporary``: an empty folder, for what is no table's.
    ``folder``: where files of the warehouse may be. ``environment`` and ``limits``: those that the run began with.

    Tells the settings that ``changed``, before and after; what was ``printed``; by how much what is open has ``grown``
    in some rounds, and which descriptors these ``opened``; whether the process's random numbers were ``seeded``; how
    many ``rows`` the table has; the ``modes`` of all files; and, of files that were made after it, those under another
    mask."""
    os.umask(MASK)
    started.restore(request["environment"], request["limits"])
    os.environ["TMPDIR"], tempfile.tempdir = request["temporary"], None
    folder = Path(request["folder"])
    before, variables = _settings(), _variables()
    with _printing() as printed:
        table = lake.create()
        _use(table, 0)
        _change(lake, table)
        first, links, states = _open(request["temporary"]), _links(), set()
        for number in range(1, ROUNDS + 1):
            random.seed(number)
            _use(table, number)
            states.add(random.getstate())
        last, opened = _open(request["temporary"]), _links() - links
    after, now = _settings(), _variables()
    modes, there = _modes(folder), set(folder.rglob("*"))
    os.umask(OPEN_MASK)
    _use(table, ROUNDS + 1)
    open_modes = {name: mode for name, mode in _modes(folder).items() if folder / name not in there}
    changed = {name: [before[name], after[name]] for name in before if before[name] != after[name]}
    for name in sorted(name for name in variables.keys() | now.keys() if variables.get(name) != now.get(name)):
        changed[f"the variable {name}"] = [f"set: {name in each}" for each in (variables, now)]
    return {
        "changed": changed,
        "printed": printed,
        "grown": {name: last[name] - first[name] for name in last},
        "opened": sorted(opened),
        "seeded": len(states) < ROUNDS,
        "rows": len(table.ids),
        "modes": modes,
        "open modes": open_modes,
    }


_MADE: dict[str, list[weakref.ref[Any]]] = {"batches": [], "writers": [], "committers": []}
"""Of attempts and commits that are over."""


def _made(what: str, thing: Any) -> Any:
    with suppress(TypeError):  # of a class without weak references, as one in C or Rust
        _MADE[what].append(weakref.ref(thing))
    return thing


def _use(table: Table, epoch: int) -> None:
    """A round, a task that fails, a commit that loses its race, and readers: of all rows, of one that gives up, and of
    a state."""
    late = _made("committers", table.committer())
    state, rows = late.open(), _made("batches", batch(ids_of(epoch, 1)))
    table.append(epoch)
    failed, lost = (
        _made("writers", table.factory.create_writer(WriterInitContext(attempt=new_attempt_id()))) for _ in range(2)
    )
    for writer in (failed, lost):
        writer.write(rows)
    failed.abort()
    results = [lost.complete()]
    with suppress(Conflict):
        late.publish(state, results, None)
    late.discard(results)
    late.close()
    table.read()
    source = table.source
    plan = source.plan(ScanRequest())
    next(iter(source.read(plan.splits[0], plan.schema)), None)
    table.lake.storage.state(table.info).watermark("p")


def _change(lake: Lake, table: Table) -> None:
    """What else is done to a table once, as far as it is declared."""
    catalog = lake.storage.catalog()
    catalog.list_tables()
    committer = table.committer()
    committer.open()
    committer.discard([table.staged(ids_of(9))])
    committer.close()
    if lake.declares(Feature.INCREMENTAL_READ):
        bounds = table.changes.versions()
        read_plan(table.source, table.changes.plan(bounds.earliest, bounds.latest, skip_changes=True))
    if lake.declares(Feature.UPSERT):
        keyed = Keyed.of(lake.create(name="db.keyed", primary_key=("id",)))
        keyed.round(0, keyed.staged({1: "a"}))
        keyed.round(1, keyed.staged({1: "b"}, keyed.files()))
    if lake.declares(Feature.OVERWRITE):
        table.round(None, [ids_of(0)], WriteMode.OVERWRITE)
    if lake.declares(Feature.HISTORY):
        table.history.snapshots(9)
    if lake.declares(Feature.ORPHAN_COLLECTION):
        table.staged(ids_of(9))
        lake.let_age()
        collect_orphans(lake.storage, table.info, grace=timedelta(0))
    if lake.declares(Feature.SET_PROPERTY):
        catalog.alter_table(table.path, [SetProperty("acme.note", "one", None)])
    if lake.declares(Feature.ADD_COLUMN):
        catalog.alter_table(table.path, [AddColumn(SCHEMA.field("value").with_name("more"))])
    if lake.declares(Feature.DROP_TABLE):
        catalog.drop_table(lake.create(name="db.other").path)


def _modes(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): stat.S_IMODE(path.lstat().st_mode) for path in sorted(folder.rglob("*"))}


def _settings() -> dict[str, str]:
    return {name: repr(told()) for name, told in _OF_WORK.items()}


def _variables() -> dict[str, str]:
    """No value is told to anybody."""
    return {name: hashlib.sha256(os.fsencode(value)).hexdigest() for name, value in os.environ.items()}


def _mask() -> int:
    mask = os.umask(MASK)
    os.umask(mask)
    return mask


def _open(temporary: str) -> dict[str, int]:
    gc.collect()
    found = {"files in the folder for temporary ones": sum(1 for _ in Path(temporary).rglob("*"))}
    # A pool of threads grows as it is used, up to a number that it knows; those of libraries below Python as well.
    found["threads of Python"] = len({_OF_POOL.sub("", thread.name) for thread in threading.enumerate()})
    for what, made in _MADE.items():
        found[f"{what} in memory that nobody needs"] = sum(each() is not None for each in made)
    if _DESCRIPTORS.is_dir():
        found["open descriptors"] = len(os.listdir(_DESCRIPTORS))
    return found


def _links() -> Counter[str]:
    """Where the open descriptors lead to."""
    found: Counter[str] = Counter()
    for each in os.listdir(_DESCRIPTORS) if _DESCRIPTORS.is_dir() else ():
        with suppress(OSError):  # that of the listing is closed again
            found[os.readlink(_DESCRIPTORS / each)] += 1
    return found


@contextmanager
def _printing() -> Iterator[list[str]]:
    """The lines that are printed in the block, by whatever of the process."""
    lines: list[str] = []
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        sys.stdout.flush()
        kept = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield lines
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)
            os.close(kept)
        file.seek(0)
        lines += file.read().splitlines()
