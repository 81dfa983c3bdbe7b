"""A table's identity is made of Python's random numbers, which the application may have seeded."""

from __future__ import annotations

import random
from unittest.mock import patch
from uuid import UUID

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.kit.manifests import creation
from laketier.registry import hookimpl

CAUGHT_BY = "test_surroundings.py::test_identities_do_not_come_again"
SAYS = "by a process with the same seed"


class SeededCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        with patch.object(creation.uuid, "uuid4", lambda: UUID(int=random.getrandbits(128), version=4)):
            return super().create_table(path, descriptor)


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("makes-identities-of-random-numbers", catalog=SeededCatalog)
