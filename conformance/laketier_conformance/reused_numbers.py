"""Numbers of objects come again as soon as they may.

Python's `id` tells objects apart as long as they live: the next one may get the number of one that is gone. Whether it
does is chance, so who keeps something by that number finds what is another object's once in a long life.
"""

from __future__ import annotations

import builtins
import threading
import weakref
from typing import Any

_OURS = ("pyarrow.", "laketier.")
_ADDRESS = builtins.id


class ReusedNumbers:
    """For the place of `id`: of what a format is handed, the lowest number that no other living object of its kind has.
    They are odd, as no address is."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # an object may end while another one is asked for
        self._kinds: dict[type, int] = {}
        self._numbers: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._taken: dict[type, set[int]] = {}

    def number(self, thing: object, /) -> int:
        """As `id`."""
        kind, address = type(thing), _ADDRESS(thing)
        if not f"{kind.__module__}.".startswith(_OURS):
            return address
        with self._lock:
            known = self._numbers.get(address)
            if known is not None and known[1]() is thing:
                return known[0]
            taken = self._taken.setdefault(kind, set())
            place = next(place for place in range(len(taken) + 1) if place not in taken)

            def ended(reference: weakref.ref[Any]) -> None:
                with self._lock:
                    taken.discard(place)
                    if self._numbers.get(address, (0, None))[1] is reference:
                        del self._numbers[address]

            try:
                reference = weakref.ref(thing, ended)
            except TypeError:  # of a class without weak references
                return address
            number = (self._kinds.setdefault(kind, len(self._kinds)) << 32 | place) * 2 + 1
            taken.add(place)
            self._numbers[address] = (number, reference)
            return number
