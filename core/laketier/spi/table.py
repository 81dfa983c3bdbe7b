"""The name, the descriptor and the description of a table."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Self

import pyarrow as pa

from laketier.spi.errors import ConfigError
from laketier.spi.schema import schema_fingerprint
from laketier.spi.texts import refuse_unwritable

# As long as Kafka lets topics be, and a file system folders.
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_\-]{0,248}\Z")


@dataclass(frozen=True, order=True)
class TablePath:
    """The name ``database.table``, as in Fluss. Each part has up to 249 letters, digits, ``_`` and ``-``, and does not
    start with ``-``."""

    database: str
    table: str

    def __post_init__(self) -> None:
        for part in (self.database, self.table):
            if not self.is_name(part):
                raise ConfigError(
                    f"{part!r} is not a name for a database or table",
                    fix="Use up to 249 letters, digits, _ and -, for example `sales.orders`.",
                )

    @staticmethod
    def is_name(part: str) -> bool:
        """Say whether a database or a table may have a name.

        Args:
            part: The name.

        Returns:
            Whether it may.
        """
        return _NAME.match(part) is not None

    @classmethod
    def parse(cls, text: str) -> TablePath:
        """Read ``database.table``.

        Args:
            text: The name.

        Returns:
            The path.

        Raises:
            ConfigError: The text is no such name.
        """
        database, dot, table = text.partition(".")
        if not dot:
            raise ConfigError(
                f"{text!r} names no database", fix=f"Write it as database.table, for example `default.{text}`."
            )
        return cls(database, table)

    def __str__(self) -> str:
        return f"{self.database}.{self.table}"


class Transform(Enum):
    """Partition transforms, named as in Iceberg's specification."""

    IDENTITY = "identity"
    BUCKET = "bucket"
    TRUNCATE = "truncate"
    YEAR = "year"
    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    MINUTE = "minute"
    """Not in the specification: formats that keep to it refuse it."""


@dataclass(frozen=True)
class PartitionField:
    """One partition field.

    Attributes:
        column: The column.
        transform: The transform of its values.
        width: The number of buckets, or the width to truncate to. None for the other transforms.
    """

    column: str
    transform: Transform = Transform.IDENTITY
    width: int | None = None

    _TEXT = re.compile(r"(?P<name>\w+)\(\s*(?:(?P<width>\d+)\s*,\s*)?(?P<column>[^,()]+?)\s*\)\Z")

    def __post_init__(self) -> None:
        needs_width = self.transform in (Transform.BUCKET, Transform.TRUNCATE)
        if needs_width != (self.width is not None) or (self.width is not None and self.width < 1):
            raise ConfigError(
                f"{self.transform.value} on {self.column!r} has width {self.width!r}",
                fix="Write bucket(16, id), truncate(4, name), day(ts) or just the column's name.",
            )

    @classmethod
    def parse(cls, text: str) -> PartitionField:
        """Read ``column``, ``day(column)`` or ``bucket(16, column)``.

        Args:
            text: The text of one field.

        Returns:
            The field.

        Raises:
            ConfigError: The text is no partition field.
        """
        text = text.strip()
        if "(" not in text:
            if not text:
                raise ConfigError("an empty partition field", fix="Remove the stray comma in lake.partition-by.")
            return cls(text)
        match = cls._TEXT.match(text)
        names = [transform.value for transform in Transform]
        if not match or match["name"].lower().removesuffix("s") not in names:
            raise ConfigError(
                f"{text!r} is not a partition field", fix=f"Transforms are {', '.join(names)}: bucket(16, id), day(ts)."
            )
        width = int(match["width"]) if match["width"] else None
        return cls(match["column"], Transform(match["name"].lower().removesuffix("s")), width)

    @property
    def name(self) -> str:
        """The name of the field, as Iceberg's engines derive it: ``ts_day``, ``id_bucket``, ``region``."""
        if self.transform is Transform.IDENTITY:
            return self.column
        suffix = {Transform.TRUNCATE: "trunc"}.get(self.transform, self.transform.value)
        return f"{self.column}_{suffix}"

    def __str__(self) -> str:
        if self.transform is Transform.IDENTITY:
            return self.column
        return f"{self.transform.value}({f'{self.width}, ' if self.width else ''}{self.column})"


@dataclass(frozen=True)
class BucketSpec:
    """A fixed number of buckets by key.

    Attributes:
        count: The number of buckets.
        keys: The key columns.
        function: The name of the bucket function (``fluss``, ``iceberg``, …).
    """

    count: int
    keys: tuple[str, ...]
    function: str = "fluss"

    def __post_init__(self) -> None:
        if self.count < 1 or not self.keys:
            by = ", ".join(self.keys) or "no column"
            raise ConfigError(f"{self.count} buckets by {by}", fix="Write lake.bucket-by = bucket(16, id).")

    def __str__(self) -> str:
        function = "" if self.function == "fluss" else f"{self.function}:"
        return f"{function}bucket({self.count}, {', '.join(self.keys)})"


@dataclass(frozen=True)
class TableDescriptor:
    """The definition of a table, with which it is created.

    Attributes:
        schema: The columns. Names, order and nullability count; metadata does not.
        partition_by: The partition fields.
        buckets: The buckets. None without any.
        primary_key: The primary key. Empty without one.
        properties: The format's own table properties. Those that it keeps are kept as they are given.
        comment: A comment for people.
    """

    schema: pa.Schema
    partition_by: tuple[PartitionField, ...] = ()
    buckets: BucketSpec | None = None
    primary_key: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict, hash=False)
    comment: str | None = None

    def __post_init__(self) -> None:
        names = self.schema.names
        if not names:
            raise ConfigError("a table needs at least one column")
        folded: dict[str, str] = {}
        for name in names:
            if name.lower() in folded:
                raise ConfigError(
                    f"columns {folded[name.lower()]!r} and {name!r} differ by case only, or are the same",
                    fix="Rename one: most readers fold case.",
                )
            folded[name.lower()] = name
        keys = (*(f.column for f in self.partition_by), *(self.buckets.keys if self.buckets else ()), *self.primary_key)
        for key in keys:
            if key not in names:
                raise ConfigError(f"{key!r} is not a column", fix=f"The columns are {', '.join(names)}.")
        refuse_unwritable("the comment", self.comment)
        for name, value in self.properties.items():
            refuse_unwritable("the property", name)
            refuse_unwritable(f"the value of property {name!r},", value)


@dataclass(frozen=True)
class TableInfo:
    """A table as it is: its descriptor, and the identity that staged files are checked against.

    It may carry the plugin's own *handle* of the table (`with_handle`), so that a round loads the table once. The
    handle stays in its process: a pickled copy has none, nor has a copy with other fields.

    Attributes:
        path: The name.
        descriptor: The definition. Its schema is the one that readers get and writers must write, with field ids where
            the format has them.
        table_uuid: The identity. A dropped and recreated table has another one.
        location: A URI or an absolute path.
        snapshot_id: The current snapshot. None for a table that never had one.
        spec_id: The number of the partition spec. 0 where the format has only one.
    """

    path: TablePath
    descriptor: TableDescriptor
    table_uuid: str
    location: str
    snapshot_id: int | None = None
    spec_id: int = 0
    _handle: ClassVar[Any] = None

    def with_handle(self, handle: object) -> Self:
        """The same description with another handle.

        Args:
            handle: The plugin's loaded object of the table. `LakeCatalog` attaches it. None for an object that outlives
                the look, such as a factory or a source.

        Returns:
            A copy.
        """
        found = replace(self)
        object.__setattr__(found, "_handle", handle)
        return found

    @property
    def handle(self) -> Any:
        """The plugin's loaded object of the table, as old as this description. None without a handle: the plugin then
        loads the table. Never the result of `LakeCommitter.open`, which is always fresh."""
        return self._handle

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_handle"}

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the table."""
        return self.descriptor.schema

    @property
    def schema_fingerprint(self) -> str:
        """The fingerprint (`schema_fingerprint`) of the table's schema."""
        return schema_fingerprint(self.descriptor.schema)
