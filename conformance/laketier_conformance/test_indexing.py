"""Secondary indexes: reserved, so there is no more than the object or its refusal to look at."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from laketier.spi import Feature, LakeIndexer
from laketier_conformance.lake import Lake, Table


@pytest.mark.needs(Feature.INDEXING)
def test_indexing(lake: Lake, table: Table, unproven: Callable[[str, str], None]) -> None:
    assert isinstance(lake.storage.indexer(table.info), LakeIndexer), "the storage's indexer is a LakeIndexer"
    unproven("indexing", "the SPI has no methods for it yet: no more than the object was looked at")
