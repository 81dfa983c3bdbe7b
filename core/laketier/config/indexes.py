"""The indexes of a table, as a file describes them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field

from laketier.config.durations import Duration
from laketier.config.parsing import Named, Section, Unfit
from laketier.config.sizes import Size
from laketier.config.suggest import nearest
from laketier.spi import IndexKind


def _kind(value: Any) -> IndexKind:
    try:
        return IndexKind(str(value).lower().replace("_", "-"))
    except ValueError as error:
        near = nearest(str(value), [each.value for each in IndexKind])
        known = ", ".join(each.value for each in IndexKind)
        raise Unfit("is no kind of index", why=f"there are {known}", fix=near and f"Did you mean {near!r}?") from error


class IndexSection(Section):
    """An index that follows its table."""

    column: str = Field(description="The column.")
    kind: Annotated[IndexKind, BeforeValidator(_kind), Named("a kind of index")] = Field(
        description="`inverted`, `btree`, `bitmap`, …: what the format builds."
    )
    name: str | None = Field(None, description="Its name; COLUMN_idx.")
    options: dict[str, Any] = Field(default_factory=dict, description="Settings of the kind.")
    max_unindexed_rows: int = Field(
        100_000, ge=1, lt=2**63, description="So many rows without it are indexed at once; 100000."
    )
    max_unindexed_age: Duration = Field(
        600.0, description="Fewer rows are indexed when the newest part of the index is so old; 10 min."
    )
    max_segments: int = Field(8, ge=1, lt=2**31, description="More segments are merged; 8.")
    max_deleted_share: float = Field(
        0.2, gt=0, le=1, description="It is built anew when so large a share of its rows was deleted; 0.2."
    )

    workers: int | None = Field(None, ge=1, lt=2**31, description="Its parts are built by so many tasks at a time.")
    memory: Size | None = Field(None, description="What a part may take of its process: `512 MiB`.")
    partition_size: Size | None = Field(None, description="So much text becomes a partition of a full-text index.")
    spill: str | None = Field(None, min_length=1, description="A folder of each host, for what tasks write out.")

    @property
    def index_name(self) -> str:
        """Its name, given or not."""
        return self.name or f"{self.column}_idx"
