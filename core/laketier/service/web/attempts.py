"""Wrong tokens: those of one address are slowed and logged. A right one is never slowed, and forgets nothing: behind a
proxy who guesses and who knows have one address. It is too long to be guessed (`read_token`)."""

from __future__ import annotations

import ipaddress
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

log = logging.getLogger(__name__)

FREE = 5
"""So many wrong ones are answered at once."""
FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0
FORGOTTEN_SECONDS = 900.0
MOST_ADDRESSES = 1024


@dataclass
class _Wrong:
    count: int = 0
    at: float = 0.0
    until: float = 0.0


@dataclass
class Attempts:
    """Of one page. Remembers the last `MOST_ADDRESSES` that were wrong. Safe in threads. ``clock``: seconds that only
    grow."""

    clock: Callable[[], float] = time.monotonic
    _known: OrderedDict[str, _Wrong] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def wait(self, address: str) -> float:
        """For how many seconds the address is told no more than to wait, unless its token is right; 0: it may try."""
        with self._lock:
            wrong = self._known.get(_network(address))
            return 0.0 if wrong is None else max(0.0, wrong.until - self.clock())

    def failed(self, address: str, path: str) -> None:
        """A token was wrong."""
        network, now = _network(address), self.clock()
        with self._lock:
            wrong = self._known.pop(network, _Wrong())
            if now - wrong.at > FORGOTTEN_SECONDS:
                wrong = _Wrong()
            wrong.count, wrong.at = wrong.count + 1, now
            if wrong.count >= FREE:
                wrong.until = now + min(FIRST_SECONDS * 2.0 ** min(wrong.count - FREE, 20), LONGEST_SECONDS)
            self._known[network] = wrong
            while len(self._known) > MOST_ADDRESSES:
                self._known.popitem(last=False)
            count, wait = wrong.count, wrong.until - now
        told = f"; wrong ones are told to wait for {wait:.0f} s" if wait > 0 else ""
        # Whoever asks chooses the path: as a literal it is one line, and no terminal obeys it.
        log.warning("a wrong token from %s at %s, the %d. from there%s", address, ascii(path[:100]), count, told)


def _network(address: str) -> str:
    """One customer has a whole /64 of IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(ipaddress.ip_network((found, 64), strict=False)) if found.version == 6 else str(found)
