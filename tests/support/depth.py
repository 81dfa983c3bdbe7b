"""One test in two sizes: the small one in `make test`, the large one, marked `deep`, before a release."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest


def sizes(name: str, small: Any, large: Any) -> pytest.MarkDecorator:
    """Parametrize with both. docs/proof/test-time.md says what each of them is there for."""
    return pytest.mark.parametrize(
        name, [pytest.param(small, id="small"), pytest.param(large, id="deep", marks=pytest.mark.deep)]
    )


def deep_where(rows: list[tuple[Any, ...]], deep: Callable[..., bool]) -> list[Any]:
    """The rows of a parametrization, those for which ``deep`` is true marked so."""
    return [pytest.param(*row, marks=pytest.mark.deep) if deep(*row) else pytest.param(*row) for row in rows]


BY_TURNS = ("tests/faults/", "tests/integration/")
"""What lies here asks the core, on each of our formats. The suite asks the formats."""
FORMATS = ("delta", "iceberg", "lance", "localfile")
_EACH = 2


def formats_by_turns(items: list[pytest.Item]) -> None:
    """Mark of what several formats meet every second one as deep: of two cases of a test, or two tests, not the same
    formats. ``each_format`` says no."""
    alike: dict[str, dict[str, list[tuple[str, pytest.Item]]]] = {}
    for item in items:
        if item.nodeid.startswith(BY_TURNS) and _may_be_left(item):
            parameters: dict[str, object] = item.callspec.params  # type: ignore[attr-defined]
            named = [value for value in parameters.values() if isinstance(value, str) and value in FORMATS]
            if len(named) == 1:
                test, _, told = item.nodeid.removesuffix("]").partition("[")
                others = "-".join(part for part in told.split("-") if part != named[0])
                alike.setdefault(test, {}).setdefault(others, []).append((named[0], item))
    for test, cases in alike.items():
        first = zlib.crc32(test.encode())
        for number, others in enumerate(sorted(cases, key=lambda each: zlib.crc32(each.encode()))):
            formats = sorted(name for name, _ in cases[others])
            for name, item in cases[others] if len(formats) > _EACH else ():
                if (first + number + formats.index(name)) % _EACH:
                    item.add_marker(pytest.mark.deep)


def cases_by_turns(items: list[pytest.Item]) -> None:
    """Mark all but every n-th case of a test with ``every(n)`` as deep. The first case stays."""
    seen: dict[str, int] = {}
    for item in items:
        chosen = item.get_closest_marker("every")
        if chosen is not None and item.get_closest_marker("deep") is None:
            test = item.nodeid.partition("[")[0]
            seen[test] = number = seen.get(test, -1) + 1
            if number % chosen.args[0]:
                item.add_marker(pytest.mark.deep)


def _may_be_left(item: pytest.Item) -> bool:
    marked = any(item.get_closest_marker(name) is not None for name in ("deep", "each_format"))
    return hasattr(item, "callspec") and not marked
