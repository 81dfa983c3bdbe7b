"""Secrets among a plugin's options: no text for people shows them, and nothing is stored with them."""

from __future__ import annotations

import base64
import dataclasses
import errno
import importlib.metadata
import json
import logging
import os
import pickle
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from laketier.spi import (
    LakeStoragePlugin,
    LaketierError,
    Leaf,
    Op,
    Passthrough,
    ScanRequest,
    Secret,
    TablePath,
    WriterInitContext,
    new_attempt_id,
    pack,
)
from laketier.spi.redaction import is_secret
from laketier_conformance import apart
from laketier_conformance.children import Child
from laketier_conformance.expect import cause_of
from laketier_conformance.harness import Harness
from laketier_conformance.interposed.calls import ON_NAMES
from laketier_conformance.interposed.effects import Effect
from laketier_conformance.interposed.looks import Looks
from laketier_conformance.interposed.runs import Interposed
from laketier_conformance.lake import Lake, Table, ids_of

SECRET = "cAnArY-0f-th3-su1te"
SENDS = 4
"""So many messages of a round fail: its first requests."""
GONE: dict[str, Callable[[Effect], bool]] = {
    "anything": lambda _: True,
    "any file": lambda look: look.call not in ON_NAMES and not any(map(os.path.isdir, look.on)),
}
"""By what can't be read: which looks fail."""


@pytest.fixture
def secretive(lake: Lake, harness: Harness) -> Lake:
    """The warehouse, opened with a secret wherever one fits. Without such options there is none to be shown."""
    given = harness.secret_options(Path(lake.location))
    options = _default(lake.plugin) if given is None else given
    filled = {name: value.replace("{secret}", SECRET) for name, value in options.items()}
    return dataclasses.replace(lake, options={**lake.options, **filled})


def _default(plugin: LakeStoragePlugin) -> Mapping[str, str]:
    options = {}
    kinds = get_type_hints(plugin.options_type)
    for field in dataclasses.fields(plugin.options_type):
        key = field.name.replace("_", "-")
        if kinds[field.name] is Passthrough:
            options[f"{key}.conformance_password"] = "{secret}"
        elif "Secret" in str(kinds[field.name]) or (is_secret(key) and "str" in str(kinds[field.name])):
            options[key] = "{secret}"
    return options


def _hidden(text: str | bytes, what: str) -> None:
    there = SECRET.encode() in text if isinstance(text, bytes) else SECRET in text
    assert not there, f"{what} has the secret of an option in it: hold it as a Secret, and leave it out of texts"


def test_no_text_for_people_shows_a_secret(
    secretive: Lake,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    recwarn: pytest.WarningsRecorder,
) -> None:
    """Neither a text of an object, nor an error, a warning, a line of laketier's or the plugin's own log, or what is
    printed."""
    caplog.set_level(logging.DEBUG)
    own = ("laketier", type(secretive.plugin).__module__.partition(".")[0], *_packages(secretive.format))
    table = secretive.create()
    table.append(0)
    storage, factory, source = secretive.storage, table.factory, table.source
    writer = factory.create_writer(WriterInitContext(attempt=new_attempt_id()))
    committer = table.committer()
    plan = source.plan(ScanRequest())
    parts = [storage, storage.catalog(), table.info, factory, writer, committer, committer.open(), source, plan]
    for part in [*parts, Secret(SECRET)]:
        _hidden(f"{part!r} {part}", f"the text of a {type(part).__name__}")
    writer.abort()
    committer.close()
    for error in _errors(table):
        _hidden(f"{error!r} {error}", f"the text of a {type(error).__name__}")
    for record in caplog.records:
        if record.name.startswith(own):
            _hidden(logging.Formatter().format(record), f"a line of the log {record.name}, or its traceback,")
    for warning in recwarn:
        _hidden(str(warning.message), "a warning")
    printed = capfd.readouterr()
    _hidden(printed.out + printed.err, "what was printed")
    there = [name for name, value in os.environ.items() if SECRET in value]
    assert not there, f"variables of the environment, which every child inherits, have the secret of an option: {there}"


def _packages(format: str) -> set[str]:
    entries = importlib.metadata.entry_points(group="laketier.formats", name=format)
    return {entry.module.partition(".")[0] for entry in entries}


def _errors(table: Table) -> Iterator[BaseException]:
    """Refusals, and what they were raised from."""
    storage, info = table.lake.storage, table.info
    tries = (
        lambda: storage.catalog().load_table(TablePath("db", "missing")),
        lambda: storage.source(info).plan(ScanRequest(columns=("missing",))),
        lambda: storage.source(info).plan(ScanRequest(filters=(Leaf("missing", Op.EQ, 1),))),
        lambda: storage.source(info).plan(ScanRequest(snapshot_id=987_654_321)),
        lambda: storage.changes(info).plan(0, 1 << 20),
        lambda: storage.maintenance(info).repair(),
        lambda: _damaged(table),
    )
    for attempt in tries:
        try:
            attempt()
        except LaketierError as error:
            found: BaseException | None = error
            while found is not None:
                yield found
                found = cause_of(found)


def _damaged(table: Table) -> None:
    """What is read of a table whose files are empty."""
    for path in Path(table.lake.location).rglob("*"):
        if path.is_file():
            apart.write(path, b"")
    table.read()


def test_no_error_of_a_lost_connection_shows_a_secret(
    secretive: Lake, children: Callable[[int], list[Child]], runs: Interposed, folder: Path
) -> None:
    """Clients of catalogs and databases like to tell the address that they called, with all that is in it. What sends
    nothing has no such error."""
    table = secretive.create()
    sends = Interposed(children, secretive, folder)
    for what, asked in _asked(table):
        for number in range(SENDS if what == "a round" else 1):
            run = sends.run(at=number, decided=errno.EIO, sends=True, **asked)
            if not run.steps:
                return
            if number >= len(run.steps):
                break
            happened = runs.told(run, "a reset of the connection before")
            _hidden(json.dumps(run.answer), f"the error of {what}, {happened}, or what it was raised from,")
        secretive.create()


@pytest.mark.usefixtures("runs")  # skips it where looks can't be seen
def test_no_error_of_a_place_that_is_gone_shows_a_secret(
    secretive: Lake, children: Callable[[int], list[Child]], folder: Path
) -> None:
    """A disk that was there, or the files in it, are not any more: whoever says so names the place, and not how it was
    reached. Libraries may wait and try again, so all is asked at once."""
    if SECRET not in str(secretive.options):
        return
    table = secretive.create()
    table.append(0)
    asked = dict(_asked(table))
    drop = {"a drop": asked.pop("a drop")}
    with Looks.of(children(1)[0], secretive, folder) as looked:
        for place, gone in GONE.items():
            for some in (asked, drop):
                run = looked.ask("each", gone=gone, requests=list(some.values()))
                answers = (run.answer or {}).get("answers", [run.answer] * len(some))
                for what, answer in zip(some, answers, strict=True):
                    told = f"the error of {what}, or what it was raised from, as {place} can't be read,"
                    _hidden(json.dumps(answer), told)


def _asked(table: Table) -> Iterator[tuple[str, dict[str, Any]]]:
    """Requests to another process, by what is done in them. Those for what the format does not have are refused."""
    here: dict[str, Any] = {"table": str(table.path)}
    yield "a round", {"do": "round", **here, "pipeline": "p", "epoch": 1, "tasks": [ids_of(1)]}
    about = {"commit": "c", "version": "v", "snapshot": table.info.snapshot_id}
    for what in ("driver", "rows", "tables", "version", "history", "past", "changes", "feed", "orphans"):
        yield f"a question for {what}", {"do": "tell", **here, "what": what, **about}
    yield "a table that is made", {"do": "make", "table": "db.another"}
    yield "a new column", {"do": "alter", **here, "columns": ["more"]}
    message = base64.b64encode(table.stage(ids_of(2))).decode()
    yield "a discard", {"do": "discard", **here, "messages": [message]}
    yield "a collection of orphans", {"do": "collect", **here}
    yield "a drop", {"do": "drop", **here}


def test_no_secret_is_stored(secretive: Lake) -> None:
    """Neither in the table's metadata nor in messages, which engines write into checkpoints and logs."""
    table = secretive.create()
    _hidden(table.stage(ids_of(0)), "the message of a write result")
    table.append(0)
    table.append(1)
    source = table.source
    for split in source.plan(ScanRequest()).splits:
        _hidden(pack(source.split_serializer, split), "the message of a split")
    _hidden(pickle.dumps(table.info), "the pickle of a table's description, which goes into the logs of engines,")
    for name in sorted(secretive.files()):
        _hidden(apart.read(Path(secretive.location) / name), f"the file {name}")
        _hidden(name, "the name of a file")
