"""What a manifest says of one data file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from laketier.kit.manifests.document import text, whole
from laketier.kit.manifests.growth import GROWTH, Growth
from laketier.kit.manifests.layout import ManifestLayout

_OWN = frozenset({"path", "rows", "bytes", "schema", "partition", "bucket", "level", "transformed", GROWTH})


@dataclass(frozen=True)
class FileEntry:
    """One data file. ``path`` is relative to the table. ``schema`` is the number of the manifest that holds the
    metadata it was written with. ``partition``: column and value as text (see `laketier.kit.partition.partition_text`),
    None for null. ``details``: what else the format wants to know of it, as JSON's own types; see
    `ManifestLayout.details`. ``level``: how often its rows were written again (see `folding`). ``transformed``: its
    partition is more than values of columns that the file has, so an older laketier must not take it for these.
    ``growth``: what the commit added to a file that stays open across commits; ``rows`` and ``bytes`` are those of the
    file as of it."""

    path: str
    rows: int
    bytes: int
    schema: int
    partition: tuple[tuple[str, str | None], ...] = ()
    bucket: int | None = None
    details: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    level: int = 0
    transformed: bool = False
    growth: Growth | None = None

    @property
    def is_open(self) -> bool:
        """Whether the file goes on growing."""
        return self.growth is not None and self.growth.is_open

    @property
    def continues(self) -> bool:
        """Whether an earlier commit recorded the file, too."""
        return self.growth is not None and self.growth.continues

    @property
    def arrived_rows(self) -> int:
        """The rows that its commit added."""
        return self.rows - (0 if self.growth is None else self.growth.rows)

    @property
    def arrived_bytes(self) -> int:
        """The bytes that its commit added."""
        return self.bytes - (0 if self.growth is None else self.growth.bytes)

    def to_plain(self) -> dict[str, Any]:
        """As JSON's own types. The details lie beside the rest."""
        own = {
            "path": self.path,
            "rows": self.rows,
            "bytes": self.bytes,
            "schema": self.schema,
            "partition": [list(item) for item in self.partition],
            "bucket": self.bucket,
            **({"level": self.level} if self.level else {}),
            **({"transformed": True} if self.transformed else {}),
            **({GROWTH: self.growth.to_plain()} if self.growth is not None else {}),
        }
        return {**self.details, **own}

    @classmethod
    def from_plain(cls, plain: dict[str, Any], layout: ManifestLayout, *, adopted: bool = False) -> FileEntry:
        """Undo `to_plain`. ``adopted``: of a table that has an origin. Raises `OutsideTable`."""
        growth = None if GROWTH not in plain else Growth.from_plain(plain[GROWTH])
        if growth is not None and not (growth.rows <= plain["rows"] and growth.upto <= plain["bytes"]):
            raise ValueError(f"the file {plain['path']!r} shrank")
        return cls(
            path=layout.data_path(plain["path"], where="added", adopted=adopted),
            rows=whole(plain["rows"]),
            bytes=whole(plain["bytes"]),
            schema=whole(plain["schema"]),
            partition=tuple(map(_partition_from_plain, plain["partition"])),
            bucket=None if plain["bucket"] is None else whole(plain["bucket"]),
            details=layout.details({name: value for name, value in plain.items() if name not in _OWN}),
            level=whole(plain.get("level", 0)),
            transformed=plain.get("transformed") is True,
            growth=growth,
        )


def _partition_from_plain(plain: Any) -> tuple[str, str | None]:
    name, value = plain
    return text(name), None if value is None else text(value)
