"""How a warehouse is opened stands in the plugin's own log, for who looks for mistakes in options."""

from __future__ import annotations

import logging
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage
from shows_its_password import Options

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_text_for_people_shows_a_secret"
SAYS = "a line of the log logs_its_password, or its traceback, has the secret"

log = logging.getLogger(__name__)


class LoggingInPlugin(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        assert isinstance(config.options, Options)
        log.debug("opening %s with %s", config.warehouse, config.options)
        return CrookedStorage(Path(config.warehouse), self._parts)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return LoggingInPlugin("logs-its-password")
