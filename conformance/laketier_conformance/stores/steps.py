"""Which request of a call is answered wrongly, and how: what a proxy is told to decide."""

from __future__ import annotations

import itertools
import random
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar
from urllib.parse import urlsplit

from laketier_conformance.stores.proxy import Fault, Proxy
from laketier_conformance.stores.wsgi import Sent

READS = (Fault.FAILED, Fault.SLOW_DOWN, Fault.RESET, Fault.DENIED)
"""What may become of a request that changes nothing: there, before or after its effect is the same."""
LASTING = (Fault.FAILED, Fault.LOST, Fault.RESET, Fault.DENIED)
CHANGES = (Fault.FAILED, Fault.SLOW_DOWN, Fault.LOST, Fault.RESET, Fault.SILENCE, Fault.REFUSED, Fault.DENIED)

T = TypeVar("T")
_CHANCE = re.compile(r"[0-9a-fA-F]{2,}(-[0-9a-fA-F]{2,})*|[0-9]+")
"""What a name has of a number, a moment or a random id."""


@contextmanager
def recorded(proxy: Proxy) -> Iterator[list[Sent]]:
    """All requests of the block, in the order in which they came."""
    sent: list[Sent] = []

    def decide(request: Sent) -> None:
        sent.append(request)

    with proxy.deciding(decide):
        yield sent


@dataclass
class Step:
    """Of the requests of a call that count, this one has a fault, and others do not. ``meanwhile`` comes before that
    request, and what it asks of the store does not count. ``lasting``: all that come after it have the fault too, as of
    a store that is gone. ``met``: the request, once it came. ``failed``: what ``meanwhile`` raised."""

    at: int
    fault: Fault | None
    lasting: bool = False
    counts: Callable[[Sent], bool] = lambda _: True
    meanwhile: Callable[[], None] | None = None
    met: Sent | None = None
    failed: Exception | None = None
    _number: Iterator[int] = field(default_factory=itertools.count)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _busy: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, sent: Sent) -> Fault | None:
        with self._lock:
            if (self.met is not None and not self.lasting) or not self.counts(sent):
                return None
            if next(self._number) < self.at:
                return None
            self.met = self.met or sent
            self._busy.acquire()
        try:
            self._come_between()
        finally:
            self._busy.release()
        return self.fault if self.fault is not None and self.fault.fits(sent) else None

    def wait(self) -> None:
        """Until ``meanwhile`` is over. Who waits for the request may have given it up."""
        with self._busy:
            return

    def _come_between(self) -> None:
        if self.meanwhile is not None:
            try:
                self.meanwhile()
            except Exception as error:  # noqa: BLE001 - in a thread of the proxy nobody would hear of it
                self.failed = error

    @property
    def told(self) -> str:
        """For messages."""
        if self.met is None:
            return "nothing came upon it"
        how = self.fault.value if self.fault else "held up"
        return f"request {self.at + 1}, {self.met.told}, {how}{', and so were all after it' if self.lasting else ''}"


@dataclass
class FirstTime:
    """Each request has the fault when it is first made, and is served when it is made again. A call that is made again
    may name its files anew: so of requests that look alike, as many are served as had the fault in the calls before.
    ``met`` are those that had it."""

    fault: Fault
    met: list[Sent] = field(default_factory=list)
    _known: set[tuple[str, str, str]] = field(default_factory=set)
    _here: set[tuple[str, str, str]] = field(default_factory=set)
    """Of this call alone."""
    _served: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin_again(self) -> None:
        """The next call comes."""
        with self._lock:
            self._here.clear()
            self._served = Counter(map(_alike, self.met))

    def __call__(self, sent: Sent) -> Fault | None:
        name, alike = (sent.method, sent.target, sent.headers.get("range", "")), _alike(sent)
        with self._lock:
            if name in self._here or not self.fault.fits(sent):
                return None
            self._here.add(name)
            is_served = self._served[alike] > 0
            self._served[alike] -= is_served
            if name in self._known or is_served:
                return None
            self._known.add(name)
            self.met.append(sent)
        return self.fault

    @property
    def told(self) -> str:
        """For messages."""
        return f"each request, when it was first made, {self.fault.value}"


def _alike(sent: Sent) -> tuple[str, str]:
    return sent.method, _CHANCE.sub("*", urlsplit(sent.target).path)


def decisions(sent: Sequence[Sent], most: int, seed: str) -> list[Step | FirstTime]:
    """What comes upon a call that makes these requests, one after the other: at most ``most`` times one request fails,
    and at least once each does when it is first made, and the store is gone from one of them on. Drawn by a seed; of 1,
    one of the three, and of 0, all that there is."""
    changes = [Step(at, fault) for at, each in enumerate(sent) if each.changes for fault in CHANGES if fault.fits(each)]
    reads = [Step(at, fault) for at, each in enumerate(sent) if not each.changes for fault in READS]
    at_first = [FirstTime(fault) for fault in CHANGES]
    lasting = [Step(at, fault, lasting=True) for at in range(len(sent)) for fault in LASTING]
    if not most:
        return [*changes, *reads, *at_first, *lasting]
    drawn = random.Random(seed)
    # Most come upon requests that change something, as most requests do not.
    some: list[Step | FirstTime] = [*_of(changes, -(-most // 2), drawn), *_of(reads, most // 4, drawn)]
    # Each silence takes a second or more, and a call makes many requests.
    quick = [each for each in at_first if each.fault is not Fault.SILENCE]
    some += [*_of(quick, -(-most // 6), drawn), *_of(lasting, -(-most // 6), drawn)]
    return _of(some, 1, drawn) if most == 1 else some


def _of(all_of_them: list[T], most: int, drawn: random.Random) -> list[T]:
    return drawn.sample(all_of_them, min(len(all_of_them), most))
