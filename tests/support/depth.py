"""One test in two sizes: the small one in `make test`, the large one, marked `deep`, before a release."""

from __future__ import annotations

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
