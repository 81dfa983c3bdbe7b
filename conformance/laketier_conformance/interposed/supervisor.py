"""The process that answers: it sees each effect of another process, and decides."""

from __future__ import annotations

import array  # noqa: F401 - sends of descriptors import it, and a process whose looks wait must import nothing
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from laketier_conformance.interposed.effects import Effect, descriptor_of, effect_of
from laketier_conformance.interposed.files import do_before, write_half
from laketier_conformance.interposed.seccomp import Notification, answer, install, receive
from laketier_conformance.interposed.sight import unseen_of
from laketier_conformance.interposed.sockets import lose_answer, reset

_FAR = 700
KILL, RESET, LOSE, HALVE, TWICE, DONE, INTERRUPT = range(-1, -8, -1)
Decide = Callable[[Effect], int]
"""For each effect, before it: 0 lets it happen, an errno fails it, `KILL` ends the process. Of a send, `RESET` ends the
connection before it, and `LOSE` lets it happen and takes the answer away. Of a write, `HALVE` lets a half of it happen;
of a change of names, `TWICE` does it first, so that the call finds it done, and `INTERRUPT` lets it happen and sends
SIGINT then. `DONE`: who saw it has done it already."""


class Supervisor:
    """Supervises one process, from a thread. ``with`` it: the process asks for it by `wait_for_me`."""

    def __init__(self, decide: Decide, path: Path, see: Callable[[Notification], Effect | None] = effect_of) -> None:
        """``path``: where a socket may be made. ``see`` tells what a call is about to do, None for what is let be."""
        self._decide, self._see = decide, see
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ended, self._end = os.pipe()
        self._thread = threading.Thread(target=self._run, name="supervisor")
        self.failed: BaseException | None = None
        self.lost = 0
        """How many answers were taken away."""
        self.before: list[str] = []
        """What the process had when it asked, and whose effects are not seen."""

    def __enter__(self) -> Supervisor:
        with _named(self.path) as name:
            self._socket.bind(name)
        self._socket.listen(1)
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        os.write(self._end, b".")
        self._thread.join()
        for descriptor in (self._ended, self._end):
            os.close(descriptor)
        self._socket.close()
        self.path.unlink()
        if self.failed is not None:
            raise self.failed

    def _run(self) -> None:
        try:
            if self._waits_for(self._socket.fileno()):
                with self._socket.accept()[0] as peer:
                    message, listeners, _, _ = socket.recv_fds(peer, 64, 1)
                    if not listeners:  # the process was not allowed to, and says so itself
                        return
                    [listener] = listeners
                    try:
                        self.before = unseen_of(int(message))
                        peer.send(b".")
                        self._supervise(listener, int(message))
                    finally:
                        os.close(listener)
        except BaseException as error:  # noqa: BLE001 - raised where the block ends
            self.failed = error

    def _supervise(self, listener: int, pid: int) -> None:
        while self._waits_for(listener):
            notification = receive(listener)
            if notification is None:
                continue
            effect = self._see(notification)
            decided = 0 if effect is None else self._decide(effect)
            if decided == KILL:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            elif decided == RESET:
                reset(notification, descriptor_of(notification))
                answer(listener, notification, errno.ECONNRESET)
            elif decided == LOSE:
                answer(listener, notification, value=self._lost(notification))
            elif decided == HALVE:
                answer(listener, notification, value=write_half(notification))
            elif decided == INTERRUPT:
                answer(listener, notification)
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGINT)
            elif decided == DONE:
                answer(listener, notification, value=0)
            elif decided == TWICE and effect is not None:
                do_before(effect)
                answer(listener, notification)
            else:
                answer(listener, notification, decided)

    def _lost(self, notification: Notification) -> int | None:
        sent, answered = lose_answer(notification, descriptor_of(notification))
        self.lost += answered
        return sent

    def _waits_for(self, descriptor: int) -> bool:
        """Whether there is something on it; False when all is over."""
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.register(self._ended, select.POLLIN)
        events = dict(poll.poll())
        return bool(events.get(descriptor, 0) & select.POLLIN)


def be_supervised(path: str, sees: str = "effects") -> None:
    """From now on, effects of this process and of those it starts wait for who listens at ``path``, or its looks at
    files or its connections do."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as low:
        # Never closed, and far from all others: what is sent over a descriptor of this number is not seen.
        most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        far = _FAR if most == resource.RLIM_INFINITY else min(_FAR, most * 3 // 4)
        ours = socket.socket(fileno=fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, far))
    with _named(Path(path)) as name:
        ours.connect(name)
    listener = install(ours.fileno(), sees)
    socket.send_fds(ours, [str(os.getpid()).encode()], [listener])
    os.close(listener)
    ours.recv(1)
    ours.detach()


@contextmanager
def _named(path: Path) -> Iterator[str]:
    """A name of a socket that is short, as those have to be, however long the path of its folder is."""
    folder = os.open(path.parent, os.O_PATH)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
