"""What the tests of tables share."""

from __future__ import annotations

import pytest

from laketier.tables.metadata.patience import Patience


@pytest.fixture(autouse=True)
def the_disk_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a user would go on without it after two seconds. A machine may stand for longer."""
    monkeypatch.setattr(Patience.__init__, "__defaults__", (60.0,))
