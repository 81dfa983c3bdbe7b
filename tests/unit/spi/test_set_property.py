"""A property of a table, as two changes of it meet."""

from __future__ import annotations

import pytest

from laketier.spi import SetProperty, TableChanged

OTHERS = {"a": "1"}


@pytest.mark.parametrize(
    ("before", "now", "value", "then"),
    [
        (None, None, "new", {"p": "new"}),
        ("old", "old", "new", {"p": "new"}),
        ("old", "new", "new", {"p": "new"}),
        (None, "new", "new", {"p": "new"}),
        ("old", "old", None, {}),
        ("old", None, None, {}),
    ],
)
def test_a_change_that_fits(before: str | None, now: str | None, value: str | None, then: dict[str, str]) -> None:
    """Also one that was made before: the caller may not know that it landed."""
    properties = OTHERS if now is None else {**OTHERS, "p": now}
    assert SetProperty("p", value, before).applied_to(properties, where="db.t") == {**OTHERS, **then}
    assert OTHERS == {"a": "1"}, "nothing is changed in place"


@pytest.mark.parametrize(
    ("before", "now", "value"), [(None, "x", "new"), ("old", "x", "new"), ("old", None, "new"), ("old", "x", None)]
)
def test_a_property_that_somebody_else_changed(before: str | None, now: str | None, value: str | None) -> None:
    properties = OTHERS if now is None else {**OTHERS, "p": now}
    with pytest.raises(TableChanged, match="property 'p' was changed meanwhile") as refused:
        SetProperty("p", value, before).applied_to(properties, where="db.t")
    assert refused.value.where == "db.t"
