"""Threads that take turns at failpoints, in an order drawn from a seed: the same seed, the same history."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from laketier.kit.failpoints import observed

_PATIENCE_SECONDS = 120.0


@dataclass
class _Actor:
    name: str
    run: Callable[[], None]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    at: str = "start"
    error: BaseException | None = None
    ended: bool = False


def interleave(actors: Mapping[str, Callable[[], None]], seed: int) -> list[tuple[str, str]]:
    """Run each actor in a thread of its own, one at a time: at every failpoint the next to go on is drawn.

    Returns the history: who went on, from which failpoint. Raises the first error of an actor, when all have ended; a
    note on it has the seed and the history. The actors must not wait for one another.
    """
    draw = random.Random(seed)
    stopped = threading.Semaphore(0)
    cast = [_Actor(name, run) for name, run in actors.items()]
    by_thread: dict[int, _Actor] = {}
    history: list[tuple[str, str]] = []

    def wait(actor: _Actor) -> None:
        if not actor.turn.acquire(timeout=_PATIENCE_SECONDS):
            raise TimeoutError(f"{actor.name} was never given its turn")

    def body(actor: _Actor) -> None:
        try:
            wait(actor)
            actor.run()
        except BaseException as error:  # noqa: BLE001 - it belongs to the thread that called `interleave`
            actor.error = error
        finally:
            actor.ended = True
            stopped.release()

    def at_failpoint(name: str) -> None:
        actor = by_thread.get(threading.get_ident())
        if actor is not None:
            actor.at = name
            stopped.release()
            wait(actor)

    threads = [threading.Thread(target=body, args=(actor,), name=actor.name, daemon=True) for actor in cast]
    with observed(at_failpoint):
        for thread, actor in zip(threads, cast, strict=True):
            thread.start()
            assert thread.ident is not None
            by_thread[thread.ident] = actor
        while waiting := [actor for actor in cast if not actor.ended]:
            actor = draw.choice(waiting)
            history.append((actor.name, actor.at))
            actor.turn.release()
            if not stopped.acquire(timeout=_PATIENCE_SECONDS):
                raise TimeoutError(f"{actor.name} neither ended nor came to another failpoint after {actor.at}")
        for thread in threads:
            thread.join()
    for actor in cast:
        if actor.error is not None:
            actor.error.add_note(f"in {actor.name}, seed {seed}: " + ", ".join(f"{who}@{at}" for who, at in history))
            raise actor.error
    return history
