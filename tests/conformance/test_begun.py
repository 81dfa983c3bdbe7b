"""Threads that began in a block of the suite."""

from __future__ import annotations

import _thread
import threading

from laketier_conformance.begun import threads_have_ended


def test_a_thread_that_a_library_began_below_python_is_not_waited_for() -> None:
    """Such a one calls back, as Arrow's do for a file system in Python. From then on Python lists it, and refuses to
    join it."""
    known, over, ended = threading.Event(), threading.Event(), threading.Event()

    def below() -> None:
        threading.current_thread()
        known.set()
        over.wait()
        ended.set()

    try:
        with threads_have_ended():
            _thread.start_new_thread(below, ())
            assert known.wait(30)
        assert not ended.is_set()
    finally:
        over.set()
        assert ended.wait(30)


def test_a_thread_of_python_is_waited_for() -> None:
    begun, done = threading.Event(), []

    def work() -> None:
        begun.wait()
        done.append(True)

    with threads_have_ended():
        threading.Thread(target=work, daemon=True).start()
        begun.set()
    assert done == [True]
