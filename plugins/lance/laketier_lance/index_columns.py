"""Whether an index can be built of a column: decided by the planner, as a task that finds out has cost a job."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.spi import ConfigError, FeatureNotSupported, IndexKind, IndexMode, IndexSpec
from laketier_lance.dataset import lance_errors, reason
from laketier_lance.features import FORMAT
from laketier_lance.index_settings import is_vector, kind_of

_Fits = Callable[[pa.DataType], bool]


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pt.is_list(kind) or pt.is_large_list(kind))


def _is_plain(kind: pa.DataType) -> bool:
    return not (pt.is_nested(kind) or pt.is_null(kind) or pt.is_dictionary(kind))


def _is_hashed(kind: pa.DataType) -> bool:
    widths = pt.is_integer(kind) or pt.is_float32(kind) or pt.is_float64(kind) or _is_text(kind)
    return bool(
        widths or pt.is_binary(kind) or pt.is_large_binary(kind) or pt.is_date(kind) or pt.is_time(kind)
        or pt.is_timestamp(kind)
    )  # fmt: skip


_FITS: Mapping[IndexKind, _Fits] = {
    IndexKind.INVERTED: lambda kind: _is_text(kind) or (_is_list(kind) and _is_text(kind.value_type)),
    IndexKind.NGRAM: _is_text,
    IndexKind.LABEL_LIST: lambda kind: _is_list(kind) and _is_plain(kind.value_type),
    IndexKind.BTREE: _is_plain,
    IndexKind.BITMAP: _is_plain,
    IndexKind.ZONEMAP: lambda kind: _is_plain(kind) or bool(pt.is_dictionary(kind)),
    IndexKind.BLOOMFILTER: _is_hashed,
}
"""What Lance builds of which columns. Its zone maps of nested values skip nothing, so they are refused, too. Vectors
have checks of their own."""


def check_column(schema: pa.Schema, spec: IndexSpec, where: str) -> None:
    """Check that there is such a column, and that its type suits the kind.

    Raises:
        ConfigError: There is none, or an index of this kind can't be built of it.
        FeatureNotSupported: The column is nested, or its name is one that Lance can't find again.
    """
    if spec.column not in schema.names:
        outer = spec.column.partition(".")[0]
        if outer in schema.names:
            raise FeatureNotSupported(
                f"an index of {spec.column!r}",
                format=FORMAT,
                reason="it is within a column, and an index is of a column of the table itself",
                fix="Keep the value in a column of its own.",
            )
        folded = {name.casefold(): name for name in schema.names}
        alike = folded.get(spec.column.casefold())
        near = [alike] if alike else get_close_matches(spec.column, schema.names)
        fix = f"Did you mean {near[0]!r}?" if near else f"It has {', '.join(schema.names):.500}."
        raise ConfigError(f"there is no column {spec.column!r:.200}", where=where, fix=fix)
    if "`" in spec.column:
        raise FeatureNotSupported(
            f"an index of column {spec.column!r}",
            format=FORMAT,
            reason="Lance takes the backtick for a quotation mark, and does not find the column",
            fix="Rename the column.",
        )
    kind, fits = schema.field(spec.column).type, _FITS.get(spec.kind)
    if fits is not None and not fits(kind):
        others = ", ".join(f"`{each}`" for each, suits in _FITS.items() if suits(kind))
        raise ConfigError(
            f"column {spec.column!r} holds {kind}, of which Lance builds no index of kind {spec.kind}",
            where=where,
            fix=f"Kinds for such a column are {others}." if others else "Index another column.",
        )


def check_mode(found: Any, spec: IndexSpec, mode: IndexMode, where: str) -> None:
    """Check that the mode suits what has the index's name now, None for nothing. Raises `ConfigError`."""
    if found is None:
        if mode in (IndexMode.APPEND, IndexMode.MERGE):
            raise ConfigError(f"there is no index {spec.name!r}", where=where, fix="Create it.")
        return
    if mode is IndexMode.CREATE:
        raise ConfigError(
            f"there is an index {spec.name!r} already",
            where=where,
            fix="Take another name, replace it (mode `replace`), or add the rows that it lacks (mode `append`).",
        )
    if list(found.field_names) != [spec.column]:
        raise ConfigError(
            f"index {spec.name!r} is of column {', '.join(found.field_names)}, not of {spec.column}",
            where=where,
            fix="Drop it first, or take another name.",
        )


def check_alone(found: Any, spec: IndexSpec, where: str) -> None:
    """Check that the column has no second index that would answer the same questions: Lance asks one of them, and tells
    nobody which. ``found``: the indexes of the table. Raises `ConfigError`."""
    others = (each for each in found if each.name != spec.name and list(each.field_names) == [spec.column])
    other = next((each for each in others if _answer_alike(kind_of(each), spec.kind)), None)
    if other is not None:
        raise ConfigError(
            f"column {spec.column!r} has an index of kind {kind_of(other)} already: {other.name!r}",
            where=where,
            why="of two that answer the same questions Lance asks one, and it is not known which",
            fix=f"Replace {other.name!r} under its own name (mode `replace`), or drop it first.",
        )


def _answer_alike(one: IndexKind | None, other: IndexKind) -> bool:
    return one is other or (is_vector(one) and is_vector(other))


def check_text_settings(spec: IndexSpec, where: str) -> None:
    """Let Lance index one row in memory with the settings of a full-text index: it knows best what it takes, and says
    it only when it builds. Dictionaries may be on other hosts only, so tokenizers that need one are not tried.

    Raises:
        ConfigError: It refuses them.
    """
    import lance
    from lance.query import DocumentGranularity

    given = {key: value for key, value in spec.options.items() if value is not None}
    if spec.kind is not IndexKind.INVERTED or not given:
        return
    named = str(given.get("base_tokenizer", ""))
    if named.startswith(_WITH_DICTIONARY):
        del given["base_tokenizer"]
    try:
        DocumentGranularity(given.pop("document_granularity", "row"))  # a text of those, where a segment is built
        tried = lance.write_dataset(pa.table({"text": ["snow on lakes"]}), f"memory://tried-{time.monotonic_ns()}")
        tried.create_scalar_index("text", "INVERTED", **given)
    except lance_errors(TypeError, OverflowError) as error:
        raise ConfigError(
            f"Lance refuses the settings of index {spec.name!r}", where=where, why=reason(error), fix=_advice(given)
        ) from error


_WITH_DICTIONARY = ("jieba", "lindera")
_TOKENIZERS = ("simple", "whitespace", "raw", "ngram", "icu", "code", "jieba/default", "lindera/ipadic")
_LANGUAGES = (
    *("Arabic", "Danish", "Dutch", "English", "Finnish", "French", "German", "Greek", "Hungarian", "Italian"),
    *("Norwegian", "Portuguese", "Romanian", "Russian", "Spanish", "Swedish", "Tamil", "Turkish"),
)


def _advice(given: Mapping[str, Any]) -> str:
    """The nearest name of what may have been meant."""
    for name, known in (("base_tokenizer", _TOKENIZERS), ("language", _LANGUAGES)):
        value = given.get(name)
        if value is None or value in known:
            continue
        folded = {each.casefold(): each for each in known}
        near = get_close_matches(str(value).casefold(), folded)
        said = f"Did you mean {folded[near[0]]!r}? " if near else ""
        return f"{said}{name} is one of {', '.join(known)}."
    return "Change the settings, or leave them out."
