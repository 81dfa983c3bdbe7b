"""What tests of this plugin share."""

from __future__ import annotations

import pytest


@pytest.fixture
def client() -> None:
    """Leaves a test out where the client is not installed, as pyfluss has no builds for Python 3.13 and newer."""
    pytest.importorskip("fluss", reason="pyfluss is not installed: it is built for Python 3.11 and 3.12 alone")
