"""Secondary indexes: reserved, so there is no more than the object or its refusal to look at."""

from __future__ import annotations

import pytest

from laketier.spi import Feature, LakeIndexer
from laketier_conformance.lake import Lake, Table


@pytest.mark.needs(Feature.INDEXING)
def test_indexing(lake: Lake, table: Table) -> None:
    assert isinstance(lake.storage.indexer(table.info), LakeIndexer), "the storage's indexer is a LakeIndexer"
