"""A table that can't be looked at is told as gone, by an error of the format's own. Whoever catches `TableNotFound`
gets that as well."""

from __future__ import annotations

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_looks.py::test_a_look_at_a_table_fails[driver]"
SAYS = "is told how the table is, though nobody could see it"


class NoSuchFeatherError(spi.TableNotFound):
    """In the words of the format."""


class OwnCatalog(kit.ManifestCatalog):
    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        try:
            return super().load_table(path)
        except (OSError, spi.StorageError) as error:
            raise NoSuchFeatherError("there is no such table", where=str(path)) from error


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("has-its-own-word-for-absence", catalog=OwnCatalog)
