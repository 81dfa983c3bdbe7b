"""Places for what may hang: who is silent loses its own, and who works keeps it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from laketier.rounds import threads
from laketier.rounds.threads import Permits, RoundPlaces

PATIENCE = 600.0


class Clock:
    """`time`, moved by hand."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(threads, "time", clock)
    return clock


@pytest.fixture
def places() -> RoundPlaces:
    return RoundPlaces(Permits(1, PATIENCE), Permits(1, PATIENCE), PATIENCE)


@pytest.fixture
def other(places: RoundPlaces) -> Iterator[Callable[[], threading.Event]]:
    """Begins to wait for a place; what it returns is set once it has one."""
    begun: list[threading.Thread] = []

    def begin() -> threading.Event:
        entered = threading.Event()

        def enter() -> None:
            with places.one("other"):
                entered.set()

        begun.append(threading.Thread(target=enter))
        begun[-1].start()
        return entered

    yield begin
    for each in begun:
        each.join()


def test_who_is_silent_keeps_no_other_waiting(
    places: RoundPlaces, other: Callable[[], threading.Event], clock: Clock
) -> None:
    with places.one("table"):
        clock.now += PATIENCE + 1
        assert places.late_count == 1
        assert other().wait(60)
    assert places.is_known_late("table")


def test_who_works_keeps_its_place_for_as_long_as_it_takes(
    places: RoundPlaces, other: Callable[[], threading.Event], clock: Clock
) -> None:
    with places.one("table") as works:
        for _ in range(3):
            clock.now += PATIENCE - 1
            works()
        assert places.late_count == 0
        assert not other().wait(0.3), "two work in one place"
    assert not places.is_known_late("table")


def test_who_was_silent_once_is_late_until_it_is_in_time_again(places: RoundPlaces, clock: Clock) -> None:
    with places.one("table") as works:
        clock.now += PATIENCE + 1
        works()
    assert places.is_known_late("table")
    with places.one("table"):
        pass
    assert not places.is_known_late("table")


def test_who_hears_at_the_end_how_it_went_says_so(places: RoundPlaces, clock: Clock) -> None:
    """A job of Spark's tells nothing meanwhile: one that takes long may work all the time."""
    for silent_seconds, late in ((PATIENCE + 1, True), (1.0, False)):
        with places.one("table") as works:
            clock.now += 3 * PATIENCE
            works(silent_seconds)
        assert places.is_known_late("table") == late


def test_who_waits_for_others_that_work_is_not_late(
    places: RoundPlaces, other: Callable[[], threading.Event], clock: Clock
) -> None:
    """A worker would take more tables otherwise, which others are free to do."""
    with places.one("table") as works:
        assert not other().wait(0.3), "two work in one place"
        clock.now += PATIENCE - 1
        works()
        clock.now += PATIENCE - 1
        assert places.late_count == 0
        clock.now += 2
        assert places.late_count == 2, "the one that is silent, and the one that waits for it"


def test_who_comes_back_at_once_waits_for_its_turn(places: RoundPlaces, other: Callable[[], threading.Event]) -> None:
    """Who ends one of a big table's tasks begins the next, and the small tables would wait for all of them."""
    with places.one("big"):
        entered = other()
        assert not entered.wait(0.3)
    with places.one("big"):
        assert entered.is_set()
