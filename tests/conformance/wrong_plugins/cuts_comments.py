"""A comment is kept in a column of 255 letters of a database that cuts what is longer."""

from __future__ import annotations

from dataclasses import replace

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_catalog.py::test_a_comment_stays_as_it_is"
SAYS = "letters is kept whole, or refused: found 255 letters of it"


class CuttingCatalog(kit.ManifestCatalog):
    def _checked(self, descriptor: spi.TableDescriptor) -> spi.TableDescriptor:
        checked = super()._checked(descriptor)
        return checked if checked.comment is None else replace(checked, comment=checked.comment[:255])


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("cuts-comments", catalog=CuttingCatalog)
