"""A plugin of pytest: Python looks for no garbage among thousands of tests that all stay until the end."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Generator

import pytest

NAME = "laketier_frozen"


class Frozen:
    """What is there when the tests are collected is looked at once. Each later search would go through all of it."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        looks = gc.isenabled()
        gc.disable()
        try:
            return (yield)
        finally:
            if looks:
                gc.enable()

    def pytest_collection_finish(self) -> None:
        gc.collect()
        gc.freeze()
        # Libraries tell of objects that nobody frees.
        atexit.register(gc.unfreeze)


def freeze(config: pytest.Config) -> None:
    """Once for a run, whoever asks."""
    if not config.pluginmanager.has_plugin(NAME):
        config.pluginmanager.register(Frozen(), NAME)
