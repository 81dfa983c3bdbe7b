"""Secondary indexes. A capability that a format may add. Reserved: no format builds an index yet."""

from __future__ import annotations

from abc import ABC


class LakeIndexer(ABC):  # noqa: B024 - reserved
    """The secondary indexes of one table. Made by `LakeStorage.indexer`, for a format with `Feature.INDEXING`.

    It has no methods yet. A later version of laketier adds them with defaults that refuse.
    """
