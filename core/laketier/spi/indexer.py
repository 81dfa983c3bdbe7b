"""Secondary indexes. A capability that a format may add: reserved, as no format builds any yet."""

from __future__ import annotations

from abc import ABC


class LakeIndexer(ABC):  # noqa: B024 - reserved
    """The secondary indexes of one table. Made by `LakeStorage.indexer`, for a format with `Feature.INDEXING`.

    It has no methods yet. What later versions of laketier add to it comes with a default that refuses.
    """
