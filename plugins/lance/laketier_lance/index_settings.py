"""Settings of indexes: what a kind can be told, what it is told by default, and what Lance tells of an index."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as pt

from laketier.spi import (
    ConfigError,
    CorruptTable,
    FeatureNotSupported,
    IndexKind,
    IndexSpec,
    check_index_options,
)
from laketier_lance.dataset import lance_errors, reason, unreadable
from laketier_lance.features import FORMAT

if TYPE_CHECKING:
    from lance import LanceDataset

LANCE_KINDS: Mapping[IndexKind, str] = {
    IndexKind.INVERTED: "INVERTED",
    IndexKind.BTREE: "BTREE",
    IndexKind.BITMAP: "BITMAP",
    IndexKind.LABEL_LIST: "LABEL_LIST",
    IndexKind.NGRAM: "NGRAM",
    IndexKind.ZONEMAP: "ZONEMAP",
    IndexKind.BLOOMFILTER: "BLOOMFILTER",
    IndexKind.IVF_FLAT: "IVF_FLAT",
    IndexKind.IVF_PQ: "IVF_PQ",
    IndexKind.IVF_SQ: "IVF_SQ",
    IndexKind.IVF_HNSW_FLAT: "IVF_HNSW_FLAT",
    IndexKind.IVF_HNSW_PQ: "IVF_HNSW_PQ",
    IndexKind.IVF_HNSW_SQ: "IVF_HNSW_SQ",
}
"""The kinds that are built here, and Lance's names of them."""

NOT_BUILT: Mapping[IndexKind, str] = {
    IndexKind.IVF_RQ: "with one model and one rotation, parts rank by their codes otherwise than one piece does: of 60 "
    "questions, 44 to 56 found the same rows",
}
"""Kinds that Lance has and that are not built here, and why."""

_KINDS = {name.replace("_", "").lower(): kind for kind, name in LANCE_KINDS.items()}

_TEXT_OPTIONS: Mapping[str, type] = {
    "base_tokenizer": str,
    "language": str,
    "with_position": bool,
    "max_token_length": int,
    "lower_case": bool,
    "stem": bool,
    "remove_stop_words": bool,
    "ascii_folding": bool,
    "min_ngram_length": int,
    "max_ngram_length": int,
    "prefix_only": bool,
    "block_size": int,
    "split_identifiers": bool,
    "split_on_numerics": bool,
    "preserve_original": bool,
    "index_operators": bool,
    "document_granularity": str,
}
"""What a full-text index can be told. Without ``custom_stop_words``, as Lance does not keep them: who adds rows later
could not tell which they were."""

TRAINING: Mapping[str, int] = {"sample_rate": 256, "max_iters": 50}
"""What a model of vectors is trained by. No index tells it, and who appends trains nothing."""
_GRAPH: Mapping[str, int] = {"m": 20, "ef_construction": 150, "max_level": 7}

METRICS = ("l2", "cosine", "dot")
_LEAST_SAMPLE = 2
_MOST: Mapping[str, int] = {"sample_rate": 65_536, "max_iters": 10_000, "m": 512, "ef_construction": 10_000}
_LEAST: Mapping[str, int] = {"sample_rate": _LEAST_SAMPLE, "m": 4, "max_level": 1, "ef_construction": 4}
_MOST_LEVELS = 32
_GRAPH_ROWS = 1_048_576
"""Rows of a partition that has a graph: the graph finds its way in many, and each partition has one of its own."""
_MOST_MODEL = 512 * 1024**2


def kind_of(found: Any) -> IndexKind | None:
    """The kind of an index that Lance describes. None for one that is not built here."""
    return _KINDS.get(found.index_type.replace("_", "").lower())


def is_vector(kind: IndexKind | None) -> bool:
    """Whether an index of the kind is of vectors, and its segments share a model."""
    return kind is not None and kind.value.startswith("ivf-")


def has_codebook(kind: IndexKind) -> bool:
    return kind in (IndexKind.IVF_PQ, IndexKind.IVF_HNSW_PQ)


def has_graph(kind: IndexKind | None) -> bool:
    return kind in (IndexKind.IVF_HNSW_FLAT, IndexKind.IVF_HNSW_PQ, IndexKind.IVF_HNSW_SQ)


def why_whole(spec: IndexSpec) -> str:
    """Why an index has to be built in one part, of all rows, and can't be added to. Empty for all others. ``spec`` has
    all settings."""
    if spec.kind in (IndexKind.IVF_SQ, IndexKind.IVF_HNSW_SQ):
        return (
            "Lance scales the codes of each segment by the numbers that it holds, takes no scale from outside, and "
            "loses rows without an error where it compares or merges two scales"
        )
    if has_codebook(spec.kind) and spec.options.get("metric") == "dot":
        return (
            "Lance encodes a part of a table otherwise than the whole of it where the metric is dot, and ranks by noise"
        )
    return ""


def check_options(spec: IndexSpec) -> None:
    """Check the options by name and type. Raises `ConfigError`, and `FeatureNotSupported` for one that Lance has and
    that can't be kept here."""
    if spec.kind is IndexKind.INVERTED and spec.options.get("custom_stop_words") is not None:
        raise FeatureNotSupported(
            f"custom_stop_words of index {spec.name!r}",
            format=FORMAT,
            reason="Lance does not keep them with the index, so a part that is built later could not have the same",
            fix="Leave these words out of the text, or ask without them.",
        )
    if is_vector(spec.kind):
        known = {"metric": str, "num_partitions": int, **dict.fromkeys(TRAINING, int)}
        known |= {"num_sub_vectors": int, "num_bits": int} if has_codebook(spec.kind) else {}
        known |= dict.fromkeys(_GRAPH, int) if has_graph(spec.kind) else {}
        check_index_options(spec, known)
    else:
        check_index_options(spec, _TEXT_OPTIONS if spec.kind is IndexKind.INVERTED else {})


def settled(dataset: LanceDataset, spec: IndexSpec, where: str) -> IndexSpec:
    """The spec of a new index with all settings that a task needs.

    Raises:
        ConfigError: The column holds no vectors, or an option does not fit them or their number.
        FeatureNotSupported: Lance has such an index, and it is not built here.
    """
    if not is_vector(spec.kind):
        return spec
    vectors = _vectors(dataset.schema.field(spec.column), where)
    rows = dataset.count_rows()
    given = {key: value for key, value in spec.options.items() if value is not None}
    options: dict[str, Any] = {"metric": "l2", "num_partitions": _partitions(spec.kind, rows), **TRAINING}
    if has_codebook(spec.kind):
        cut = given.get("num_sub_vectors") or _sub_vectors(vectors.list_size, where)
        options |= {"num_sub_vectors": cut, "num_bits": 8}
    options |= _GRAPH if has_graph(spec.kind) else {}
    options |= given
    _check_values(options, where)
    _check_fit(options, rows, vectors, where)
    return IndexSpec(spec.name, spec.column, spec.kind, options)


def told_settings(dataset: LanceDataset, found: Any) -> dict[str, Any]:
    """The settings of an index, as far as Lance tells them, under the names by which they are given. Raises
    `TableError`."""
    told = described_settings(found)
    if not is_vector(kind_of(found)):
        return told
    try:
        return told | {"num_partitions": len(dataset.get_ivf_model(found.name).centroids)}
    except lance_errors() as error:
        if "Not found" not in str(error):
            raise unreadable(dataset.uri, error) from error
        raise CorruptTable(
            f"index {found.name!r} can't be read", where=dataset.uri, why=reason(error), fix="Replace it, or drop it."
        ) from error


def described_settings(found: Any) -> dict[str, Any]:
    """Those of `told_settings` for which none of the index's files is read."""
    details = {key: value for key, value in (found.details or {}).items() if value is not None}
    if not is_vector(kind_of(found)):
        return details
    codes, graph = details.get("compression") or {}, details.get("hnsw") or {}
    told = {
        "metric": str(details.get("metric_type", "")).lower() or None,
        "num_sub_vectors": codes.get("num_sub_vectors"),
        "num_bits": codes.get("num_bits") if codes.get("type") == "pq" else None,
        "m": graph.get("max_connections"),
        "ef_construction": graph.get("construction_ef"),
        "max_level": graph.get("max_level"),
    }
    return {key: value for key, value in told.items() if value is not None}


def as_it_is(dataset: LanceDataset, found: Any, spec: IndexSpec, where: str) -> IndexSpec:
    """The spec with all settings of the index that is there. Raises `ConfigError` where it asks for others: Lance would
    commit segments with another tokenizer, and answer with both. How a model is trained is no setting of the index."""
    kind, told = kind_of(found), told_settings(dataset, found)
    asked = {key: value for key, value in spec.options.items() if value is not None and key not in TRAINING}
    others = {key: value for key, value in asked.items() if told.get(key) != value}
    if kind is not spec.kind or others:
        raise ConfigError(
            f"index {spec.name!r} was built with other settings",
            where=where,
            why=f"it is of kind {kind or found.index_type} with {told}",
            fix="Append without options, or replace the index.",
        )
    return IndexSpec(spec.name, spec.column, spec.kind, told)


def _vectors(column: pa.Field, where: str) -> pa.FixedSizeListType:
    kind = column.type
    if pt.is_fixed_size_list(kind) and pt.is_floating(kind.value_type):
        return kind
    inner = getattr(kind, "value_type", None)
    if inner is not None and pt.is_fixed_size_list(inner):
        raise FeatureNotSupported(
            f"an index of column {column.name!r}, which has several vectors in a row",
            format=FORMAT,
            reason="Lance ranks such rows by all vectors of a question together, and a search here asks with one",
            fix="Keep one vector of floating-point numbers in a row.",
        )
    if pt.is_fixed_size_list(kind) and pt.is_uint8(inner):
        raise FeatureNotSupported(
            f"an index of column {column.name!r}, whose vectors are of bytes",
            format=FORMAT,
            reason="Lance compares them by the bits that differ (hamming), and a search here by l2, cosine or dot",
            fix="Keep one vector of floating-point numbers in a row.",
        )
    raise ConfigError(
        f"column {column.name!r} holds {kind}, not vectors of a fixed size",
        where=where,
        fix="Name a column of fixed-size lists of floating-point numbers.",
    )


def _partitions(kind: IndexKind, rows: int) -> int:
    if has_graph(kind):
        return max(1, rows // _GRAPH_ROWS)
    return max(1, min(round(math.sqrt(rows)), rows // TRAINING["sample_rate"]))


def _sub_vectors(dimension: int, where: str) -> int:
    for numbers in (16, 8):
        if dimension % numbers == 0:
            return dimension // numbers
    raise ConfigError(
        f"num_sub_vectors is needed: vectors of {dimension} numbers can't be cut into sub-vectors of 16 or of 8",
        where=where,
        fix="Give a divisor of the dimension. The more sub-vectors, the closer are the distances.",
    )


def _check_values(options: Mapping[str, Any], where: str) -> None:
    if options["metric"] not in METRICS:
        raise ConfigError(
            f"there is no metric {options['metric']!r}", where=where, fix=f"Choose one of {', '.join(METRICS)}."
        )
    for name, value in options.items():
        least, most = _LEAST.get(name, 1), _MOST_LEVELS if name == "max_level" else _MOST.get(name, 2**31 - 1)
        if name != "metric" and not least <= value <= most:
            raise ConfigError(f"{name} = {value} is not within {least} and {most}", where=where)


def _check_fit(options: Mapping[str, Any], rows: int, vectors: pa.FixedSizeListType, where: str) -> None:
    dimension, partitions = vectors.list_size, options["num_partitions"]
    if partitions * dimension * vectors.value_type.bit_width // 8 > _MOST_MODEL:
        raise ConfigError(
            f"a model of {partitions} partitions with {dimension} numbers is larger than {_MOST_MODEL >> 20} MiB",
            where=where,
            why="each task gets a copy",
            fix="Take fewer partitions (num_partitions).",
        )
    if rows < partitions * _LEAST_SAMPLE:
        raise ConfigError(
            f"{rows} rows are too few for {partitions} partitions",
            where=where,
            why=f"a model is trained on {_LEAST_SAMPLE} rows of each, at least",
            fix=f"Take num_partitions = {max(1, rows // TRAINING['sample_rate'])}, or wait for more rows.",
        )
    if "m" in options and options["ef_construction"] < options["m"]:
        raise ConfigError(
            f"ef_construction = {options['ef_construction']} is less than m = {options['m']}",
            where=where,
            why="Lance looks for the neighbours of a vector among so many candidates",
            fix="Give a larger ef_construction, or a smaller m.",
        )
    if "num_bits" not in options:
        return
    bits, parts = options["num_bits"], options["num_sub_vectors"]
    if bits not in (4, 8) or (bits == 4 and parts % 2):
        raise ConfigError(
            f"num_bits = {bits} with num_sub_vectors = {parts} is not possible",
            where=where,
            fix="num_bits is 8, or 4 with an even num_sub_vectors.",
        )
    if dimension % parts:
        raise ConfigError(f"num_sub_vectors = {parts} is no divisor of {dimension}, the dimension", where=where)
    if rows < _LEAST_SAMPLE << bits:
        raise ConfigError(
            f"{rows} rows are too few for a codebook of {bits} bits",
            where=where,
            why=f"it is trained on {_LEAST_SAMPLE << bits} rows, at least",
            fix="Use num_bits = 4, or kind `ivf-flat`." if bits == 8 else "Use kind `ivf-flat`.",
        )
