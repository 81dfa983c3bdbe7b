"""Counts how often a table's metadata is loaded, by a format's library, or by the format where it needs none.

Nothing is replaced: what is counted runs as ever. What a library loads within its own commit is not counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import pytest


class Loads:
    """``counted``: how often a table was loaded, by where: on the driver, or on what `at` named. ``committers``: how
    many were made. ``checks``: how often a version was asked for, at the cost of `os.stat` or one request."""

    def __init__(self) -> None:
        self.counted: Counter[str] = Counter()
        self.committers = 0
        self.checks = 0
        self._place = "driver"
        self._committing = False

    @contextmanager
    def at(self, place: str) -> Iterator[None]:
        """What is loaded meanwhile is loaded there."""
        before, self._place = self._place, place
        try:
            yield
        finally:
            self._place = before

    @property
    def figures(self) -> tuple[int, int, int]:
        """Loads on the driver and on executors, and committers."""
        return self.counted["driver"], self.counted["executors"], self.committers

    def reset(self) -> None:
        """Forget what was counted."""
        self.counted.clear()
        self.committers = 0
        self.checks = 0

    @contextmanager
    def load(self) -> Iterator[None]:
        if not self._committing:
            self.counted[self._place] += 1
        yield

    @contextmanager
    def commit(self) -> Iterator[None]:
        self._committing = True
        try:
            yield
        finally:
            self._committing = False

    @contextmanager
    def check(self) -> Iterator[None]:
        self.checks += 1
        yield

    @contextmanager
    def committer(self) -> Iterator[None]:
        self.committers += 1
        yield


def counted_loads(monkeypatch: pytest.MonkeyPatch, format: str) -> Loads:
    """Count for the rest of the test, in this process."""
    loads = Loads()
    load, commit, factory = _places(format)
    _within(monkeypatch, *load, loads.load)
    _within(monkeypatch, *commit, loads.commit)
    _within(monkeypatch, factory, "create_committer", loads.committer)
    _within(monkeypatch, _catalog(format), "table_version", loads.check)
    return loads


def _places(format: str) -> tuple[tuple[Any, str], tuple[Any, str], Any]:
    """Where tables are loaded, where they are committed, and the class of their factory."""
    match format:
        case "iceberg":
            from pyiceberg.catalog.sql import SqlCatalog

            from laketier_iceberg.embedded import EmbeddedCatalog
            from laketier_iceberg.storage import IcebergTieringFactory

            return (EmbeddedCatalog, "load_table"), (SqlCatalog, "commit_table"), IcebergTieringFactory
        case "delta":
            from deltalake import DeltaTable

            from laketier_delta.storage import DeltaTieringFactory

            return (DeltaTable, "__init__"), (DeltaTable, "create_write_transaction"), DeltaTieringFactory
        case "lance":
            import lance

            from laketier_lance.storage import LanceTieringFactory

            return (lance, "dataset"), (lance.LanceDataset, "commit"), LanceTieringFactory
        case "localfile":
            from laketier.kit.manifests import ManifestLog
            from laketier_localfile.storage import LocalFileTieringFactory

            return (ManifestLog, "head"), (ManifestLog, "append"), LocalFileTieringFactory
    raise ValueError(format)


def _catalog(format: str) -> Any:
    match format:
        case "iceberg":
            from laketier_iceberg.catalog import IcebergCatalog

            return IcebergCatalog
        case "delta":
            from laketier_delta.catalog import DeltaCatalog

            return DeltaCatalog
        case "lance":
            from laketier_lance.catalog import LanceCatalog

            return LanceCatalog
    from laketier.kit.manifests import ManifestCatalog

    return ManifestCatalog


def _within(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, context: Callable[[], Any]) -> None:
    own = vars(owner)[name]
    function = getattr(own, "__func__", own)

    @wraps(function)
    def counting(*args: Any, **kwargs: Any) -> Any:
        with context():
            return function(*args, **kwargs)

    monkeypatch.setattr(owner, name, counting if function is own else type(own)(counting))
