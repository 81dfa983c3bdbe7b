"""The password is an option of plain text, and the storage is a dataclass, whose text has all of its fields."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from crooked import CrookedPlugin, CrookedStorage

from laketier import spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_text_for_people_shows_a_secret"
SAYS = "the text of a LoggedInStorage has the secret of an option in it"


@dataclass(frozen=True)
class Options:
    user: str = spi.option("", "Who logs in.")
    password: str = spi.option("", "Their password.")


@dataclass(frozen=True)
class LoggedInStorage(CrookedStorage):
    options: Options = Options()


class LoggingInPlugin(CrookedPlugin):
    options_type = Options

    def create_storage(self, config: spi.LakeStorageConfig) -> CrookedStorage:
        return LoggedInStorage(Path(config.warehouse), self._parts, config.options)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return LoggingInPlugin("shows-its-password")
