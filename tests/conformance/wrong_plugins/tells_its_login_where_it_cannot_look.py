"""An error of the log says where it is, and how it was reached: with all settings, as these are often the cause."""

from __future__ import annotations

from dataclasses import dataclass

from connected import NOBODY, ConnectedPlugin, ConnectedStorage, Options

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_secrets.py::test_no_error_of_a_place_that_is_gone_shows_a_secret"
SAYS = "the error of a new column, or what it was raised from, as anything can't be read, has the secret"


@dataclass(frozen=True)
class TellingCatalog(kit.ManifestCatalog):
    options: Options = NOBODY

    def alter_table(self, path: spi.TablePath, changes: list[spi.SchemaChange]) -> spi.TableInfo:  # type: ignore[override]
        try:
            return super().alter_table(path, changes)
        except (OSError, spi.StorageError) as error:
            given = f"login={self.options.login}"
            raise spi.StorageError("the log can't be reached", where=str(path), why=f"with {given}") from error


@dataclass(frozen=True)
class TellingStorage(ConnectedStorage):
    def catalog(self) -> kit.ManifestCatalog:
        return TellingCatalog(self.parts.table, self.warehouse, options=self.options)


class TellingPlugin(ConnectedPlugin):
    storage = TellingStorage


@hookimpl
def laketier_format() -> ConnectedPlugin:
    return TellingPlugin("tells-its-login-where-it-cannot-look")
