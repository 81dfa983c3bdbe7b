"""The process beside: what it dies of, how it ends, and that nothing waits for it for ever. Real processes, without a
server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import psutil
import pytest

from laketier.spi import OffsetsExpired, StorageError
from laketier_fluss import children
from laketier_fluss.children import Child, borrowed, close_idle
from laketier_fluss.connection import Connection
from laketier_fluss.frames import error_header, error_of

HANGS = "did not answer for 1.2 s"
CONNECTION = Connection("127.0.0.1:1", 0.2, (("security.sasl.password", "open sesame"),))


@pytest.fixture(autouse=True)
def no_child_is_left() -> Iterator[None]:
    yield
    close_idle(CONNECTION)


def scripted(monkeypatch: pytest.MonkeyPatch, code: str, grace: float = 60.0) -> Child:
    """A child that runs ``code`` after it was asked something."""
    prelude = (
        "import os, sys, time\nfor _ in range(2): sys.stdin.readline()\ndef say(text): os.write(1, text.encode())\n"
    )
    monkeypatch.setattr(children, "_GRACE", grace)
    return Child(CONNECTION, [sys.executable, "-I", "-c", prelude + code])


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ('say(\'{"rows": 1, "payload": 100}\\nshort\'); os.kill(os.getpid(), 6)', "ended by signal 6"),
        ("print('thread panicked', file=sys.stderr); sys.stderr.flush(); os._exit(3)", "with code 3.*thread panicked"),
        ("print('open sesame!', file=sys.stderr); sys.exit(1)", r"it said: \*\*\*!"),
        ("os.close(1); time.sleep(60)", "ended by signal 9"),
        ("say('{\"rows\": '); time.sleep(60)", HANGS),
    ],
)
def test_a_child_that_dies_or_hangs_is_an_error(code: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    child = scripted(monkeypatch, code, 1.0 if said == HANGS else 60.0)
    try:
        with pytest.raises(StorageError, match=said):
            list(child.ask({"op": "read"}))
    finally:
        child.close()


def test_frames_come_whole_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        'text = \'{"n": 1, "payload": 9}\\n\' + \'a\\nbcdefg\\n\' + \'{"n": 2}\\n{"last": true, "payload": 2}\\nxy\'\n'
        "for each in text: say(each)\ntime.sleep(60)"
    )
    child = scripted(monkeypatch, code)
    try:
        frames = [(header.get("n"), payload and payload.to_pybytes()) for header, payload in child.ask({})]
        assert frames == [(1, b"a\nbcdefg\n"), (2, None), (None, b"xy")]
    finally:
        child.close()


def test_errors_keep_their_class_on_the_way() -> None:
    sent = OffsetsExpired("gone", where="d.t", why="old", fix="Hurry.")
    got = error_of(error_header(sent))
    assert (type(got), str(got)) == (OffsetsExpired, str(sent))


@pytest.mark.usefixtures("client")
def test_a_child_is_used_again_and_not_after_an_error() -> None:
    with borrowed(CONNECTION) as first:
        pass
    with borrowed(CONNECTION) as second, borrowed(CONNECTION) as other:
        assert second is first
        assert other is not first
    with pytest.raises(StorageError, match="did not answer"), borrowed(CONNECTION) as failing:
        list(failing.ask({"op": "databases"}))
    assert not psutil.pid_exists(failing.process_id)


def test_a_child_whose_answer_nobody_wants_any_more_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    child = scripted(monkeypatch, "say('{\"n\": 1}\\n'); time.sleep(60)")
    monkeypatch.setattr(children, "_taken", lambda _: child)

    def read() -> Iterator[object]:
        with borrowed(CONNECTION) as lent:
            yield from lent.ask({})

    reading = read()
    next(reading)
    reading.close()  # type: ignore[attr-defined]
    assert not psutil.pid_exists(child.process_id)


def test_a_fork_does_not_share_its_parents_children() -> None:
    with borrowed(CONNECTION) as mine:
        pass
    key = (os.getpid() + 1, CONNECTION)  # what a fork's key would be
    assert children._taken(key) is None
    assert children._taken((os.getpid(), CONNECTION)) is mine
    mine.close()


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM])
def test_a_child_ends_with_the_process_that_started_it(end: signal.Signals) -> None:
    code = (
        "import time; from laketier_fluss.children import Child; from laketier_fluss.connection import Connection\n"
        "child = Child(Connection('127.0.0.1:1', 30.0)); print(child.process_id, flush=True)\n"
        "list(child.ask({'op': 'databases'}))"
    )
    parent = subprocess.Popen([sys.executable, "-I", "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    parent.send_signal(end)
    parent.wait()
    parent.stdout.close()
    child.wait(60)
