"""Delta's feed is asked for from a version on at which the table kept none, and tells what it can make of the log."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from laketier import spi
from laketier.registry import hookimpl
from laketier_delta import conformance
from laketier_delta.feed import DeltaFeed
from laketier_delta.plugin import DeltaPlugin

CAUGHT_BY = "test_feed.py::test_versions_from_before_a_feed_are_refused"
SAYS = "a range of a feed is planned that begins before the feed was kept: expected"


class Harness(conformance.Harness):
    pass


class Feed(DeltaFeed):
    def plan(self, start: int, end: int) -> spi.ScanPlan:
        with patch("laketier_delta.feed._check_on"):
            return super().plan(start, end)


class Plugin(DeltaPlugin):
    def __init__(self) -> None:
        self.identifier = "feeds-what-came-before-the-feed"  # type: ignore[misc]

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        storage: Any = super().create_storage(config)
        feed = storage.feed
        object.__setattr__(storage, "feed", lambda table: Feed(**vars(feed(table))))
        return storage  # type: ignore[no-any-return]


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin()
