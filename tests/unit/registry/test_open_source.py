"""What a source does wrong at its end is told, and harms no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from laketier.registry import OpenSource
from laketier.spi import LogSource, LogSourceConfig, LogSourcePlugin, TableLog


class Unclosable(LogSource):
    def list_tables(self) -> Sequence[str]:
        return []

    def open(self, name: str, options: Any) -> TableLog:
        raise NotImplementedError

    def close(self) -> None:
        raise OSError("broker gone: password=hunter2hunter2")


class UnclosablePlugin(LogSourcePlugin):
    identifier = "unclosable"
    spi_version = 2

    def create_source(self, config: LogSourceConfig) -> LogSource:
        return Unclosable()


def test_a_source_that_can_not_be_closed_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    OpenSource("clicks", UnclosablePlugin(), Unclosable(), "service.yaml").close()
    assert "source=clicks" in caplog.text
    assert "broker gone" in caplog.text
    assert "hunter2" not in caplog.text
