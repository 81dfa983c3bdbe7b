"""How data files are named, and what their names say."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from laketier.kit import confined
from laketier.kit.file_names import ID, PREFIX, SUFFIX, FileNames, NameSettings, attempt_of_spelling, spelled
from laketier.kit.partition import LONGEST_FOLDER, OddPartitionValues, folder_for_odd
from laketier.spi import BucketSpec, CorruptTable, IncompatibleTable, UnstorableRows
from laketier_delta.partitions import log_text

BUCKETS_PROPERTY = "laketier.buckets"
"""The table property that holds the bucket spec as JSON."""

PRIMARY_KEY_PROPERTY = "laketier.primary-key"
"""The table property that holds the names of the primary key's columns as JSON."""

_CORE = rf"laketier-(?P<fingerprint>[0-9a-f]{{16}})-(?P<attempt>{ID})-\d+(?:-b(?P<bucket>\d+))?"
_NAME = re.compile(rf"(?:^|/){PREFIX}(?P<core>{_CORE}){SUFFIX}\.parquet\Z")
_CORE_IN_BYTES = re.compile(_CORE.encode())
_ELSEWHERE = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*:)?/")
"""A URI with a scheme, of Hadoop's with one slash (``file:/tmp/x``) too, or an absolute path."""
_LONGEST = 200
_ACCEPT = "set lake.delta.odd-partition-values = accept"
_NULL = "__HIVE_DEFAULT_PARTITION__"


def file_path(
    columns: Sequence[str],
    values: Sequence[Any],
    stem: str,
    bucket: int | None,
    odd: OddPartitionValues = OddPartitionValues.REFUSE,
    names: NameSettings | None = None,
) -> str:
    """A name for a data file, relative to the table. ``stem`` makes it unguessable, and ``names`` stand around it.

    Folders are Hive's, percent-encoded as delta-rs does: by the protocol the log's partition values alone count, but
    Polars and others read them from the folders. Raises `UnstorableRows` for a value that can't name one, or that the
    protocol would read as null.
    """
    pairs = zip(columns, values, strict=True)
    folders = "".join(f"{quote(column, safe='')}={_folder(column, value, odd)}/" for column, value in pairs)
    numbered = "" if bucket is None else f"-b{bucket}"
    prefix, suffix = ("", "") if names is None else (names.file_prefix, names.file_suffix)
    return f"{folders}{prefix}{stem}{numbered}{suffix}.parquet"


def stem_of(fingerprint: str, attempt: str, number: int, names: FileNames = FileNames.ATTEMPT) -> str:
    """What makes the name of a file unguessable, and tells its schema and its attempt."""
    return f"laketier-{fingerprint}-{spelled(attempt, names)}-{number:05}"


def relative_path(encoded: str) -> str:
    """The path of a file as the log spells it, relative to the table. Raises `IncompatibleTable` for one outside, as
    clones have them, and `OutsideTable` for one that leads there by its folders."""
    path = unquote(encoded)
    if _ELSEWHERE.match(path):
        raise IncompatibleTable(
            "a file of the table is outside its folder",
            where=path,
            why="the table is a shallow clone, which the delta plugin of laketier does not read",
        )
    return confined(path, where="the Delta log")


def bucket_of(path: str) -> int:
    """The bucket in a file's name, -1 for files that were not written by laketier's bucketed writer (as after
    OPTIMIZE)."""
    match = _NAME.search(path)
    return int(match["bucket"]) if match and match["bucket"] else -1


def fingerprint_of(path: str) -> str | None:
    """The fingerprint of the schema that a file was written with, None for files of other writers."""
    match = _NAME.search(path)
    return match["fingerprint"] if match else None


def attempt_of(path: str, columns: Sequence[str]) -> str | None:
    """The attempt that wrote a file of a table that is partitioned by ``columns``. None for a file that is not
    laketier's, or is where laketier puts none."""
    *folders, name = path.split("/")
    match = _NAME.match(name)
    prefixes = [f"{quote(column, safe='')}=" for column in columns]
    if match is None or len(folders) != len(prefixes) or not all(map(str.startswith, folders, prefixes)):
        return None
    return attempt_of_spelling(match["attempt"])


def core_of(name: str) -> str | None:
    """What of the name of a file of laketier's nobody can guess: the name without what users chose. None for other
    files."""
    match = _NAME.search(name)
    return match["core"] if match else None


def cores_in(text: bytes) -> set[str]:
    """The `core_of` all files of laketier's that are mentioned in ``text``. They need no quoting in any encoding of a
    path. What stands around one may not be a name's: bytes before a text can look like letters."""
    return {match[0].decode() for match in _CORE_IN_BYTES.finditer(text)}


def spec_id_of(columns: Sequence[str]) -> int:
    """Stands for the columns that a table is partitioned by: Delta does not count such specs, and an overwrite by
    another writer may change them while the schema stays. 0 for none."""
    return zlib.crc32(json.dumps(list(columns)).encode()) if columns else 0


def partition_values(columns: Sequence[str], values: Sequence[Any]) -> tuple[tuple[str, str | None], ...]:
    """The values as the log has them, of which `file_path` refuses some."""
    return tuple((column, log_text(value)) for column, value in zip(columns, values, strict=True))


def buckets_to_property(buckets: BucketSpec) -> str:
    """The spec as `BUCKETS_PROPERTY` holds it."""
    return json.dumps({"count": buckets.count, "function": buckets.function, "keys": list(buckets.keys)})


def buckets_from(configuration: Mapping[str, str]) -> BucketSpec | None:
    """The bucket spec of a table. Raises `CorruptTable` when the property was damaged."""
    text = configuration.get(BUCKETS_PROPERTY)
    if text is None:
        return None
    try:
        document = json.loads(text)
        return BucketSpec(int(document["count"]), tuple(map(str, document["keys"])), str(document["function"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CorruptTable(f"table property {BUCKETS_PROPERTY} can't be read", why=f"{error!r}: {text!r}") from error


def primary_key_from(configuration: Mapping[str, str]) -> tuple[str, ...]:
    """The primary key of a table, empty for none. Raises `CorruptTable` when the property was damaged."""
    text = configuration.get(PRIMARY_KEY_PROPERTY)
    if text is None:
        return ()
    try:
        columns = json.loads(text)
        if not isinstance(columns, list) or not columns:
            raise TypeError("not a list of columns")
        return tuple(map(str, columns))
    except (ValueError, TypeError, RecursionError) as error:
        raise CorruptTable(
            f"table property {PRIMARY_KEY_PROPERTY} can't be read", why=f"{error!r}: {text!r}"
        ) from error


def _folder(column: str, value: Any, odd: OddPartitionValues) -> str:
    text = log_text(value)
    if text is None:
        return _NULL
    if not text:
        raise UnstorableRows(
            f"partition column {column!r} has empty strings",
            why="the Delta protocol reads an empty partition value as null",
            fix=f"Replace them by null or by another value in the query, or {_ACCEPT}, which makes them null.",
        )
    name, digest, begin = quote(text, safe=""), folder_for_odd(text), f"{quote(column, safe='')}="
    is_long = len(name) > _LONGEST or len(begin + name) > LONGEST_FOLDER
    has_digest = text != _NULL and len(begin + digest) <= LONGEST_FOLDER  # a column of another tool's may be longer
    if is_long and has_digest and odd is OddPartitionValues.ACCEPT:
        return digest
    if is_long or text == _NULL:
        raise UnstorableRows(
            f"partition column {column!r} has a value that can't name a folder: {text[:40]!r}",
            why="it is too long" if text != _NULL else "that name stands for null",
            fix="Partition by a shorter value, or by a hash of it"
            + (f", or {_ACCEPT}, which names the folder by a digest." if has_digest else "."),
        )
    return name
