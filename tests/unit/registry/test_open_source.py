"""What a source does wrong at its end is told, and harms no other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from laketier.registry import OpenSource, open_log_source
from laketier.spi import LogSource, LogSourceConfig, LogSourcePlugin, StorageError, TableLog


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


class Failing(LogSource):
    """One whose client library raises what no laketier knows."""

    def list_tables(self) -> Sequence[str]:
        raise KeyError("topics")

    def open(self, name: str, options: Any) -> TableLog:
        raise KeyError("partitions")


class FailingPlugin(UnclosablePlugin):
    identifier = "failing"

    def create_source(self, config: LogSourceConfig) -> LogSource:
        raise KeyError("brokers")


def test_an_error_of_the_sources_own_says_whose_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that could not be made ended the whole service with a bare traceback."""
    source = OpenSource("clicks", UnclosablePlugin(), Failing(), "service.yaml")
    with pytest.raises(StorageError, match=r"^clicks: the source failed in `LogSource.list_tables`, because KeyError"):
        source.list_tables()
    with pytest.raises(StorageError, match=r"^clicks.a: the source failed in `LogSource.open`.*author of the source"):
        source.open("a")
    monkeypatch.setattr("laketier.registry.log_source.load_source", lambda _: FailingPlugin())
    with pytest.raises(StorageError, match=r"^clicks: the source failed in `LogSourcePlugin.create_source`"):
        open_log_source("failing", {}, name="clicks", origin="service.yaml")


def test_a_source_that_can_not_be_closed_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    OpenSource("clicks", UnclosablePlugin(), Unclosable(), "service.yaml").close()
    assert "source=clicks" in caplog.text
    assert "broker gone" in caplog.text
    assert "hunter2" not in caplog.text
