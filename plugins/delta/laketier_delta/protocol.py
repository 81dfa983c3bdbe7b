"""What a table asks of its writers and readers, and what of it laketier can't honour.

delta-rs' write transaction takes files as they are: it evaluates no constraint, fills no generated column and maps
no name. So a table that relies on one of these is refused, and never written past it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from laketier.kit.library_errors import in_one_line
from laketier.spi import ConfigError, CorruptTable, IncompatibleTable, UnsafeTable, WriteMode
from laketier_delta.char_limits import DECLARED_AS, is_padded, is_plain
from laketier_delta.layout import primary_key_from
from laketier_delta.table_features import advice

if TYPE_CHECKING:
    from deltalake import DeltaTable

RETENTION = "delta.setTransactionRetentionDuration"
CHECKPOINT_INTERVAL = "delta.checkpointInterval"
INDEXED_COLUMNS = "delta.dataSkippingNumIndexedCols"

_WRITER_FEATURES = {
    "appendOnly",
    "invariants",
    "checkConstraints",
    "generatedColumns",
    "changeDataFeed",
    "timestampNtz",
    "deletionVectors",
}
"""Writer features whose use is looked at below, or which ask nothing of an append."""
_READER_FEATURES = {"timestampNtz", "deletionVectors"}
_RULES_IN_COLUMNS = {
    "delta.invariants": "a column invariant",
    "delta.generationExpression": "a generated column",
    "delta.identity.start": "an identity column",
    "delta.identity.step": "an identity column",
    "CURRENT_DEFAULT": "a column default",
    "__COLLATIONS": "a collation",
}
_RULES_IN_PROPERTIES = {
    "delta.universalFormat.enabledFormats": "UniForm, which wants each commit written in other formats too",
}


def check_writable(handle: DeltaTable, where: str, mode: WriteMode, *, accept_retention: bool) -> None:
    """Raise `UnsafeTable` or `IncompatibleTable` where rounds of ``mode`` would not be right on this table."""
    configuration = handle.metadata().configuration
    if RETENTION in configuration and not accept_retention:
        raise UnsafeTable(
            f"the table forgets pipelines that were idle for {configuration[RETENTION]}",
            where=where,
            why=f"{RETENTION} is set, and the watermarks are such transactions",
            fix=f"Unset {RETENTION}, or accept that an idle pipeline is refused after that time with "
            "lake.delta.accept-transaction-retention = true.",
        )
    check_features(handle, where)
    check_properties(configuration)
    protocol = handle.protocol()
    rules = [key for key in configuration if key.startswith("delta.constraints.")]
    if rules:
        names = [key.removeprefix("delta.constraints.") for key in rules]
        raise _refused(where, f"CHECK constraints {names}", "drop the constraints")
    if _has_type(handle, "void"):
        raise _refused(where, "a column of type void", "give it a type, or drop it")
    for path, metadata in _columns(json.loads(handle.schema().to_json())):
        for key, what in _RULES_IN_COLUMNS.items():
            if key in metadata:
                raise _refused(where, f"{what} ({path})", "write to a table without it")
        _check_declared(path, metadata.get(DECLARED_AS), primary_key_from(configuration), where)
    for key, what in _RULES_IN_PROPERTIES.items():
        if configuration.get(key):
            raise _refused(where, what, f"unset {key}")
    if mode is not WriteMode.APPEND:
        if configuration.get("delta.appendOnly", "false").lower() == "true":
            raise _refused(where, "delta.appendOnly, so rows can't be replaced", "unset it, or append")
        # Where rows are merged, the scan of the base snapshot has refused files that have one.
        if mode is WriteMode.OVERWRITE and "deletionVectors" in (protocol.writer_features or ()):
            raise _refused(
                where, "deletion vectors, which an overwrite would have to name", "append, or drop the feature"
            )


def _check_declared(path: str, declared: str | None, primary_key: Sequence[str], where: str) -> None:
    if declared is None:
        return
    if not is_plain(declared):
        raise _refused(where, f"CHAR or VARCHAR inside a column ({path} is {declared})", "declare it as string")
    if path in primary_key and is_padded(declared):
        raise _refused(where, f"CHAR in its primary key ({path})", "declare it as varchar or string")


def integer_property(properties: Mapping[str, str], key: str, default: int) -> int:
    """A table property that is a number. Raises `ConfigError`."""
    text = properties.get(key)
    try:
        return default if text is None else int(text)
    except ValueError as error:
        raise ConfigError(f"table property {key} is {text!r}", fix="Set it to a whole number.") from error


def check_properties(properties: Mapping[str, str]) -> None:
    """Raise `ConfigError` for properties that writing to the table would stumble over."""
    for key in (CHECKPOINT_INTERVAL, INDEXED_COLUMNS):
        integer_property(properties, key, 1)


def check_readable(handle: DeltaTable, where: str) -> None:
    """Raise `IncompatibleTable` where this plugin would read wrong rows or columns."""
    configuration = handle.metadata().configuration
    if configuration.get("delta.columnMapping.mode", "none").lower() != "none":
        raise _refused(where, "column mapping", "write it to a table without delta.columnMapping.mode")
    odd = _not_honoured(handle, handle.protocol().reader_features, _READER_FEATURES)
    if odd:
        raise _refused(where, f"the reader features {odd}", advice(odd))


def check_features(handle: DeltaTable, where: str) -> None:
    """Raise `IncompatibleTable` for features by which neither rows nor columns can be added."""
    check_readable(handle, where)
    odd = _not_honoured(handle, handle.protocol().writer_features, _WRITER_FEATURES)
    if odd:
        raise _refused(where, f"the writer features {odd}", advice(odd))


def check_deletions(handle: DeltaTable, where: str) -> None:
    """Raise `IncompatibleTable` when a file of the snapshot has a deletion vector, which `read` would pass over; also
    one that the table's protocol does not declare. `CorruptTable` when one can't be read."""
    from deltalake.exceptions import DeltaError

    try:
        is_there = any(batch.num_rows for batch in handle.deletion_vectors())
    except (DeltaError, FileNotFoundError) as error:
        raise CorruptTable(
            "a deletion vector of the table can't be read",
            where=where,
            why=in_one_line(str(error)),
            fix="Restore its file (deletion_vector_….bin) from a backup, or read an older version.",
        ) from error
    if is_there:
        raise _refused(where, "files with deletion vectors", "run REORG TABLE … APPLY (PURGE) with Spark first")


def _not_honoured(handle: DeltaTable, features: Sequence[str] | None, honoured: Collection[str]) -> list[str]:
    """delta-rs 1.6 adds ``variantType`` to each table with features of which it sets a property. It asks nothing of a
    table that has no such column."""
    odd = set(features or ()).difference(honoured)
    return sorted(odd if _has_type(handle, "variant") else odd - {"variantType"})


def _has_type(handle: DeltaTable, name: str) -> bool:
    found = rf'"(?:type|elementType|keyType|valueType)":\s*"{name}\b'
    return re.search(found, handle.schema().to_json()) is not None


def _refused(where: str, what: str, fix: str) -> IncompatibleTable:
    return IncompatibleTable(
        f"the table uses {what}",
        where=where,
        why="the delta plugin of laketier does not honour that",
        fix=f"{fix[0].upper()}{fix[1:].rstrip('.')}.",
    )


def _columns(kind: Any, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """(path, metadata) of every field of a Delta type, at every level."""
    if not isinstance(kind, dict):
        return []
    found: list[tuple[str, dict[str, Any]]] = []
    for field in kind.get("fields", ()):
        here = f"{path}.{field['name']}".lstrip(".")
        found += [(here, field.get("metadata", {})), *_columns(field["type"], here)]
    for inner in ("elementType", "keyType", "valueType"):
        found += _columns(kind.get(inner), path)
    return found
