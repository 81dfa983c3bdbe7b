"""Properties of tables that change how rows are kept: those that a format takes, and those that other tools leave
behind, whether or not they make sense."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from laketier.spi import LaketierError
from laketier_conformance.expect import expect, told
from laketier_conformance.harness import Harness
from laketier_conformance.lake import Lake, Table, ids_of
from laketier_conformance.option_values import HUGE, why_no_help
from laketier_conformance.series.drawn import prove
from laketier_conformance.series.shapes import SHAPES
from laketier_conformance.short_lives import Setting, ShortLives, one_of_each

Unproven = Callable[[str, str], None]
SEEDS = {"plain": 21, "keyed": 4}
STEPS = 8
ODD = ("", "maybe", "-1", str(HUGE))
"""What a person may leave in a property of any kind."""
MOST = 5


def test_rows_are_the_same_under_each_property(lake: Lake, harness: Harness, unproven: Unproven) -> None:
    """One of each property at a time, and all of these together. So is what each round appended, in a log and as it was
    then."""
    if not harness.table_properties:
        unproven("properties of tables", "the format's harness has no table_properties")
        return
    lives = ShortLives(lake, past=True)

    def is_taken(setting: Setting, refusal: LaketierError) -> None:
        pytest.fail(f"the harness's table_properties has {setting}, which is refused: found {told(refusal)}")

    for row in one_of_each(harness.table_properties):
        lives.prove([Setting(key, value, is_option=False) for key, value in row.items()], is_taken)


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=pytest.mark.needs(*SHAPES[kind].needs)) for kind in ("plain", "keyed")]
)
def test_any_series_under_settings(lake: Lake, harness: Harness, kind: str, unproven: Unproven) -> None:
    """A short series of steps: of a table with properties, and of one with a key under options that belong together."""
    properties = list(one_of_each(harness.table_properties))
    if not properties and not harness.option_sets:
        unproven("series under settings", "the format's harness has neither table_properties nor option_sets")
        return
    by_options = bool(harness.option_sets) and (kind == "keyed" or not properties)
    given = properties[0] if properties and not by_options else {}
    options = harness.option_sets[-1] if by_options else {}
    shape = dataclasses.replace(SHAPES[kind], descriptor={**SHAPES[kind].descriptor, "properties": given}, steps=STEPS)
    under = dataclasses.replace(lake, options={**lake.options, **options})
    prove(under, harness, shape, f"{kind}_under", [SEEDS[kind]])


def test_a_new_table_with_an_odd_property(
    lake: Lake, harness: Harness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is refused by its key, or the table is as any other."""
    _goes_inside(tmp_path, monkeypatch)
    lives = ShortLives(lake)

    def helps(setting: Setting, refusal: LaketierError) -> None:
        last = setting.key.rpartition(".")[2]  # a name that says enough
        lacking = why_no_help(refusal, last, "")
        assert lacking is None, f"a new table with {setting} is refused, and {lacking}. It says: {told(refusal)}"

    for row in one_of_each(_odd(harness)):
        lives.prove([Setting(key, value, is_option=False) for key, value in row.items()], helps)


def test_a_property_that_others_left(
    lake: Lake, harness: Harness, unproven: Unproven, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is there gets it, is read and written, or refused by the property's name; and is as before once the
    property is as it was."""
    if harness.set_property is None:
        unproven("properties that others set", "the format's harness has no set_property")
        return
    _goes_inside(tmp_path, monkeypatch)
    odd = _OddTable(lake.create(), harness)
    for key, values in _odd(harness).items():
        for value in values:
            odd.meets(key, value)
        odd.is_used(f"others set the property {key}, and then back")


class _OddTable:
    """A table whose properties others change."""

    def __init__(self, table: Table, harness: Harness) -> None:
        self._table, self._harness = table, harness
        self._epoch = 0
        self._rows: list[int] = []
        self._append()
        self._info = table.info

    def meets(self, key: str, value: str) -> None:
        """Others set it, somebody reads and writes, and others set it back."""
        doing = f"others set the property {key} to {value!r:.60}"
        self._set(key, value)
        self._tried(lambda: expect(self._table.ids, self._rows, f"rows after {doing}"), f"a read after {doing}")
        self._tried(self._append, f"a round after {doing}")
        self._set(key, self._info.descriptor.properties.get(key))

    def is_used(self, told_of: str) -> None:
        """It is a table as any other."""
        try:
            expect(self._table.ids, self._rows, f"rows after {told_of}")
            self._append()
            expect(self._table.ids, self._rows, f"rows of a round after {told_of}")
        except AssertionError:
            raise
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(f"a table is used after {told_of}: expected no error, found {told(error)}")

    def _set(self, key: str, value: str | None) -> None:
        assert self._harness.set_property is not None, "the harness has a hook to set properties"
        self._harness.set_property(self._table.lake.storage, self._info, key, value)

    def _append(self) -> None:
        ids = ids_of(self._epoch, rows=2)
        self._table.append(self._epoch, ids)
        self._epoch += 1
        self._rows = sorted([*self._rows, *ids])

    def _tried(self, do: Callable[[], None], doing: str) -> None:
        try:
            do()
        except AssertionError:
            raise
        except LaketierError as refusal:
            if not (refusal.fix or refusal.why):
                pytest.fail(f"{doing} is refused with a word on what to do: found {told(refusal)}")
        except Exception as error:  # noqa: BLE001 - reported
            pytest.fail(f"{doing}: expected it, or a refusal, found {told(error)}")


def _odd(harness: Harness) -> dict[str, list[str]]:
    found = {
        key: [*ODD, *(value.upper() for value in values if value.upper() != value)][:MOST]
        for key, values in harness.table_properties.items()
    }
    for key, values in harness.odd_properties.items():
        found[key] = [*found.get(key, ()), *values]
    return {key: list(dict.fromkeys(values)) for key, values in found.items()}


def _goes_inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A text may be taken for a path."""
    inside = folder / "works" / "here"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
