"""Series are drawn from seeds, played, and made shorter where they fail."""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, count

from laketier_conformance.expect import HarnessFailed, NotShown, told
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake
from laketier_conformance.series.life import Life
from laketier_conformance.series.looks import Look
from laketier_conformance.series.notes import Draw
from laketier_conformance.series.other_looks import LOOKS
from laketier_conformance.series.other_steps import OTHERS
from laketier_conformance.series.shapes import Shape
from laketier_conformance.series.steps import ROUNDS, Step

_WINDOW = 6
"""Steps that lie further apart hardly meet."""
_TRIES, _PLAYED = 60, 400
"""A series is made shorter by so many tries, of so many steps together."""
_LONGEST = 420
"""Of the steps in a sentence: a report cuts it, and the lines below it have all."""


@dataclass(frozen=True)
class Drawn:
    """A step, and what is looked at before and after it. ``kept``: through a handle that was opened before the first
    step."""

    step: Step
    draw: Draw
    kept: bool
    before: tuple[Look, ...]
    looks: tuple[Look, ...]


@dataclass(frozen=True)
class Failure:
    """``where``: the step or the look, by which two failures are the same. ``done``: what came before it, in words, and
    ``played`` how many steps of the series, with the one that failed."""

    where: str
    look: Look | None
    sentence: str
    done: tuple[str, ...]
    played: int


def steps_for(lake: Lake, harness: Harness, shape: Shape) -> tuple[Step, ...]:
    """Those that the format has, for such a table."""
    return tuple(
        step
        for step in (*ROUNDS, *OTHERS)
        if shape.keyed in step.of
        and lake.declares(*step.needs)
        and (not step.hook or (shape.of_others and getattr(harness, step.hook) is not None))
    )


def draw(
    steps: Sequence[Step], looks: Sequence[Look], length: int, seeds: Sequence[int]
) -> Iterator[tuple[int, tuple[Drawn, ...]]]:
    """A series for each seed. Of the steps that may come next one is preferred that comes after two others, not long
    ago, after which none of the series before had it."""
    met: set[tuple[str, ...]] = set()
    for seed in seeds:
        dice = random.Random(seed)
        names: list[str] = []
        series = []
        others = [look for look in looks if not look.always]
        deck: list[Look] = []
        for at in range(1, length + 1):
            may = [each for each in steps if _may_come(each, at, length, names)]
            # Each other series begins with any step, as a new table is a case of its own.
            step = (
                steps[0]
                if at == 1 and seed % 2 == 0
                else max(may, key=lambda each: _worth(names, each, met) + dice.random() * 3)
            )
            met |= set(_met(names, step))
            names.append(step.name)
            deck = deck or dice.sample(others, len(others))  # each of them once before one comes again
            chosen = [deck.pop()] if dice.random() < 0.7 else []
            before = tuple(look for look in looks if step.ends and look.of_past)
            after = (*(look for look in looks if look.always), *chosen)
            series.append(Drawn(step, Draw(at, dice.getrandbits(32)), dice.random() < 0.3, before, after))
        yield seed, tuple(series)


def _may_come(step: Step, at: int, length: int, names: Sequence[str]) -> bool:
    """What ends the past comes once, and a new table while there is time for another past."""
    return not step.ends or (step.name not in names and (at * 3 <= length or not step.makes_anew))


def _met(names: Sequence[str], step: Step) -> Iterator[tuple[str, ...]]:
    before = names[-_WINDOW:]
    yield from ((name, step.name) for name in before)
    yield from ((one, other, step.name) for one, other in combinations(before, 2))


def _worth(names: Sequence[str], step: Step, met: set[tuple[str, ...]]) -> float:
    new = [each for each in _met(names, step) if each not in met]
    # Without rows there is little to look at: each third step brings some, or may.
    rows = 8.0 if step.name in ("round", "upsert") and step.name not in names[-2:] else 0.0
    return rows + sum(1 if len(each) == 3 else 3 for each in new) / (4.5 if step.variation else 3)


def play(life: Life, series: Sequence[Drawn], looks: Sequence[Look], only: Look | None = None) -> Failure | None:
    """Do all steps, with their looks, and at last each look; or ``only`` one at the end."""
    for number, drawn in enumerate(series, 1):
        failure = None
        for look in () if only else drawn.before:
            failure = failure or _seen(life, number - 1, look, drawn.draw)
        life.through = life.kept if drawn.kept else life.fresh
        failure = failure or _tried(life, number, drawn.step.name, None, partial(_done, life, drawn))
        for look in () if only else drawn.looks:
            failure = failure or _seen(life, number, look, drawn.draw)
        if failure:
            return failure
    life.through = life.fresh
    for look in (only,) if only else looks:
        failure = _seen(life, len(series), look, Draw(0, 0))
        if failure:
            return failure
    return None


def _done(life: Life, drawn: Drawn) -> None:
    said = drawn.step.do(life, drawn.draw)
    if said is not None:
        life.done.append(f"{said} (by a handle that was kept)" if drawn.kept else said)


def _seen(life: Life, number: int, look: Look, draw: Draw) -> Failure | None:
    seed = zlib.crc32(f"{draw.seed} {look.name}".encode())
    return _tried(life, number, look.name, look, partial(look.see, life, Draw(draw.at, seed)))


def _tried(life: Life, number: int, where: str, look: Look | None, do: Callable[[], None]) -> Failure | None:
    try:
        do()
    except (HarnessFailed, NotShown):
        raise
    except AssertionError as error:
        said, _, _ = str(error).partition("\n")
        return Failure(where, look, said, tuple(life.done), number)
    except Exception as error:  # noqa: BLE001 - of whichever library, it is told
        said = f"{'a look at' if look else 'the step'} {where!r}: expected no error, found {told(error)}"
        return Failure(f"{where}, {type(error).__name__}", look, said, tuple(life.done), number)
    return None


def shortened(failure: Failure, series: Sequence[Drawn], looks: Sequence[Look], made: Callable[[], Life]) -> Failure:
    """The failure of the shortest series that was found to fail alike."""
    tries = played = 0

    def fails(some: Sequence[Drawn], only: Look | None) -> Failure | None:
        nonlocal tries, played
        tries, played = tries + 1, played + len(some)
        found = play(made(), some, looks, only)
        return found if found is not None and found.where == failure.where else None

    left, only = list(series[: failure.played]), failure.look
    best = fails(left, only)
    if best is None and only is not None:  # the looks before it have a part in it
        left, only = list(series), None
        best = fails(left, only)
    if best is None:
        return failure
    size = max(1, len(left) // 2)
    while size:
        at = 0
        while at < len(left) and tries < _TRIES and played < _PLAYED:
            fewer = left[:at] + left[at + size :]
            found = fails(fewer, only) if fewer else None
            if found is None:
                at += size
            else:
                best, left = found, fewer
        size //= 2
    return best


def in_words(failure: Failure, shape: Shape, seed: int, steps: int) -> str:
    """A sentence that says what was done step by step, and what was found; below it what a report has no room for."""
    numbered = [f"({number}) {said}" for number, said in enumerate(failure.done, 1)]
    shown, left = "; ".join(numbered), len(numbered)
    while len(shown) > _LONGEST and left > 1:
        left -= 1
        shown = f"(1) to ({len(numbered) - left}) below; " + "; ".join(numbered[-left:])
    did = f"after {shown}" if numbered else "that is new"
    did += "" if failure.look else f", and in the step {failure.where!r}"
    lines = [
        f"{shape.told}, {did}: {failure.sentence}",
        f"It was drawn from seed {seed}, of {steps} steps, and made shorter while it failed by the same look or step.",
        *numbered,
    ]
    return "\n".join(lines)


def prove(lake: Lake, harness: Harness, shape: Shape, name: str, seeds: Sequence[int]) -> None:
    """Play the series of each seed. The first that fails is made shorter and told."""
    __tracebackhide__ = True
    names = (f"db.{name}_{number}" for number in count())

    def made() -> Life:
        return Life(lake, harness, shape, next(names))

    steps = steps_for(lake, harness, shape)
    looks = [look for look in LOOKS if lake.declares(*look.needs)]
    for seed, series in draw(steps, looks, shape.steps, seeds):
        failure = play(made(), series, looks)
        if failure is not None:
            told_of = shortened(failure, series, looks, made)
            raise AssertionError(in_words(told_of, shape, seed, len(series)))
