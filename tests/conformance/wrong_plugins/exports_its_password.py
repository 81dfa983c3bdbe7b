"""The library below takes its password from the environment, so it is put there."""

from __future__ import annotations

import os
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage
from shows_its_password import Options

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_text_for_people_shows_a_secret"
SAYS = "variables of the environment, which every child inherits, have the secret of an option"


class LoggingInPlugin(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        assert isinstance(config.options, Options)
        os.environ["CROOKED_PASSWORD"] = config.options.password
        return CrookedStorage(Path(config.warehouse), self._parts)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return LoggingInPlugin("exports-its-password")
