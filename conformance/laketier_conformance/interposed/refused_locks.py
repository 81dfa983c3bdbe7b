"""How a lock of a request may be refused, and files that stand for one."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator

from laketier_conformance.interposed.deciding import Run
from laketier_conformance.interposed.effects import Effect, kind_of
from laketier_conformance.interposed.runs import spread

_ASIDE = ".laketier-aside"
_LONGEST = 1024
_OF_DATABASES = ("-journal", "-wal", "-shm")
"""Files of one transaction, of which others keep their hands off."""


def errors_of(lock: Effect) -> tuple[int, ...]:
    """What a system may say against it: another one has it, a signal came, there is a circle of them, or a mounted file
    system has none."""
    if lock.unlocks:
        return errno.ENOLCK, errno.EIO
    if "LOCK_NB" in lock.call or "SETLK," in lock.call:
        return errno.EAGAIN, errno.ENOLCK
    return (errno.ENOLCK, errno.EINTR, errno.EDEADLK) if lock.call.startswith("fcntl") else (errno.ENOLCK, errno.EINTR)


def refused_of(whole: Run, most: int, draw: int) -> Iterator[tuple[int, int]]:
    """Some of a request's locks by their numbers, and what each ends in: with 0 each error in turn, else one by the
    seed."""
    for at in spread(len(whole.locks), most, draw):
        errors = errors_of(whole.locks[at])
        yield from ((at, error) for error in (errors if not most else [errors[(at + draw) % len(errors)]]))


def is_kept(whole: Run) -> None:
    """Nothing came upon it, and so it had its locks as long as it needed them."""
    assert whole.void is None, (
        f"a request to {whole.do} goes on, with {whole.void.call} {whole.void.on[-1]}, when its lock is lost: a "
        "process that closes a file by any descriptor loses the locks of POSIX that it has on it by another one"
    )


def lock_files_of(whole: Run, is_well: Callable[[], bool]) -> list[str]:
    """Those of a request: it made and removed them, and nothing else became of them; or it locked them, and all is well
    without them, as they hold nothing."""
    made = dict.fromkeys(_made_and_removed(whole.steps))
    locked = {lock.on[0] for lock in whole.locks} - made.keys()
    return [*made, *(file for file in sorted(locked) if _holds_nothing(file, is_well))]


def _made_and_removed(steps: list[Effect]) -> Iterator[str]:
    given = {step.on[0] for step in steps if len(step.on) > 1}
    there: set[str] = set()
    for step in steps:
        kind, path = kind_of(step), step.on[-1]
        if kind == "new files":
            there.add(path)
        elif kind == "removals" and path in there and path not in given and not path.endswith(_OF_DATABASES):
            yield path


def _holds_nothing(file: str, is_well: Callable[[], bool]) -> bool:
    """Found out by moving it aside while nobody works. Who holds the lock, and since when, may stand in it."""
    if not os.path.isfile(file) or os.path.getsize(file) > _LONGEST:
        return False
    os.rename(file, file + _ASIDE)
    try:
        return is_well()
    except Exception:  # noqa: BLE001 - whatever a database says that is not there
        return False
    finally:
        os.replace(file + _ASIDE, file)
