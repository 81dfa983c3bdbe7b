"""Pausing Python's collector: by any number of holders, in threads, and where somebody else turned it off."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
from contextlib import suppress

from laketier.kit.many_objects import making_many_objects


def test_the_collector_is_off_within_and_on_after_an_error() -> None:
    assert gc.isenabled()
    with suppress(KeyError), making_many_objects():
        with making_many_objects():
            assert not gc.isenabled()
        assert not gc.isenabled(), "the inner one ended, and the outer one still holds"
        raise KeyError
    assert gc.isenabled()


def test_a_thread_that_ends_first_leaves_it_off_for_the_other() -> None:
    began, go_on = threading.Event(), threading.Event()
    seen: list[bool] = []

    def other() -> None:
        with making_many_objects():
            began.set()
            assert go_on.wait(30)
            seen.append(gc.isenabled())

    thread = threading.Thread(target=other)
    with making_many_objects():
        thread.start()
        assert began.wait(30)
    go_on.set()
    thread.join(30)
    assert seen == [False]
    assert gc.isenabled()


def test_who_turned_it_off_keeps_it_off() -> None:
    gc.disable()
    try:
        with making_many_objects():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_process_that_is_forked_within_collects() -> None:
    """In a process of its own, as nobody may fork one that has threads."""
    forked = """
import gc, os
from laketier.kit.many_objects import making_many_objects
with making_many_objects():
    child = os.fork()
    if not child:
        os._exit(0 if gc.isenabled() else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert gc.isenabled()
"""
    subprocess.run([sys.executable, "-c", forked], check=True)
