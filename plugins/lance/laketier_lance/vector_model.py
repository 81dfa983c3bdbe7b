"""What all segments of an index of vectors share: the centres of its partitions, and the codebook of its codes.

It is trained once, or read from a segment that is there. Lance builds and commits segments with models of their own
just as well; but these can't be merged any more, and their distances are not those of one build.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from laketier.spi import CorruptTable, FeatureNotSupported, TableError
from laketier_lance.dataset import lance_errors, reason
from laketier_lance.features import FORMAT
from laketier_lance.wire import field, fields

if TYPE_CHECKING:
    from lance import LanceDataset

_CENTROIDS_TENSOR = 4  # of the message IVF
_TYPE, _SHAPE, _DATA = 1, 2, 3  # of the message Tensor
_TYPES = {1: "halffloat", 2: "float", 3: "double"}
_ARROW = {"halffloat": pa.float16(), "float": pa.float32(), "double": pa.float64()}


@dataclass(frozen=True)
class VectorModel:
    """Plain data, picklable: it goes to the tasks with their builder.

    Attributes:
        metric: ``l2``, ``cosine`` or ``dot``.
        dimension: The numbers of a vector.
        values: The Arrow type of a number: ``halffloat``, ``float`` or ``double``.
        centroids: The centres of the partitions, one after the other.
        codebook: The centres of the sub-vectors, one sub-vector after the other. Empty for kinds without a codebook.
        num_sub_vectors: The sub-vectors of a vector. 0 without a codebook.
        num_bits: The bits of a code. 0 without a codebook.
    """

    metric: str
    dimension: int
    values: str
    centroids: bytes
    codebook: bytes = b""
    num_sub_vectors: int = 0
    num_bits: int = 0

    @property
    def num_partitions(self) -> int:
        return len(self.centroids) // (self.dimension * _ARROW[self.values].bit_width // 8)

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.centroids) + len(self.codebook)

    @property
    def digest(self) -> str:
        shape = [self.metric, self.dimension, self.values, self.num_sub_vectors, self.num_bits, len(self.centroids)]
        return hashlib.sha256(json.dumps(shape).encode() + self.centroids + self.codebook).hexdigest()

    def arguments(self) -> dict[str, Any]:
        """What Lance is told to build a segment with this model."""
        told: dict[str, Any] = {
            "metric": self.metric,
            "num_partitions": self.num_partitions,
            "ivf_centroids": _array(self.centroids, self.values, self.dimension),
        }
        if self.codebook:
            told |= {
                "pq_codebook": _array(self.codebook, self.values, self.dimension),
                "num_sub_vectors": self.num_sub_vectors,
                "num_bits": self.num_bits,
            }
        return told


def train(dataset: LanceDataset, column: str, options: Mapping[str, Any], *, codebook: bool) -> VectorModel:
    """Train a model on a sample of the rows that are there. Executor or driver.

    Args:
        dataset: The dataset, at the version of the plan.
        column: The column of vectors.
        options: All settings: ``metric``, ``num_partitions``, ``sample_rate``, ``max_iters``, and with a codebook
            ``num_sub_vectors`` and ``num_bits``.
        codebook: Whether the kind has one.

    Returns:
        The model.

    Raises:
        TableError: There are too few vectors for it, or the dataset could not be read.
    """
    from lance.indices import IndicesBuilder

    rows = dataset.count_rows()
    rate, iterations = int(options["sample_rate"]), int(options["max_iters"])
    partitions = int(options["num_partitions"])
    try:
        builder = IndicesBuilder(dataset, column)
        ivf = builder.train_ivf(
            partitions,
            distance_type=options["metric"],
            sample_rate=max(2, min(rate, rows // partitions)),
            max_iters=iterations,
        )
        centroids = ivf.centroids
        given: dict[str, Any] = {}
        if codebook:
            bits = int(options["num_bits"])
            pq = builder.train_pq(
                ivf,
                int(options["num_sub_vectors"]),
                sample_rate=max(2, min(rate, rows >> bits)),
                max_iters=iterations,
                num_bits=bits,
            )
            given = {"codebook": _bytes(pq.codebook), "num_sub_vectors": pq.num_subvectors, "num_bits": bits}
            _check_finite(pq.codebook, dataset.uri, column)
    except lance_errors() as error:
        raise TableError(
            f"Lance could not train the model of column {column!r}",
            where=dataset.uri,
            why=reason(error),
            fix="Take fewer partitions (num_partitions), or wait for more rows.",
        ) from error
    _check_finite(centroids, dataset.uri, column)
    kind = centroids.type
    return VectorModel(str(options["metric"]), kind.list_size, str(kind.value_type), _bytes(centroids), **given)


def model_of(location: str, storage: dict[str, str], segment: str) -> VectorModel:
    """Read the model of a segment from its files.

    Args:
        location: The dataset.
        storage: What its store is told.
        segment: The id of the segment.

    Returns:
        The model that it was built with.

    Raises:
        FeatureNotSupported: The segment is of a form that does not tell it.
        CorruptTable: Its files can't be read.
    """
    from lance.file import LanceFileReader

    try:
        index, codes = (
            LanceFileReader(f"{location}/_indices/{segment}/{name}", storage_options=storage)
            for name in ("index.idx", "auxiliary.idx")
        )
        about = _metadata(index)
        metric = json.loads(about["lance:index"])["distance_type"]
        values, shape, centroids = _tensor(
            field(index.read_global_buffer(int(about["lance:ivf"])), _CENTROIDS_TENSOR), segment
        )
        stored = json.loads(json.loads(_metadata(codes)["storage_metadata"])[0])
        if "codebook_position" not in stored:
            return VectorModel(metric, shape[1], values, centroids)
        codebook = _tensor(codes.read_global_buffer(int(stored["codebook_position"])), segment)[2]
    except (KeyError, TypeError, IndexError, json.JSONDecodeError) as error:
        raise FeatureNotSupported(
            f"building more of segment {segment}",
            format=FORMAT,
            reason="its files do not tell the model that it was built with; most likely an old Lance wrote it",
            fix="Build the index anew: mode `replace`.",
        ) from error
    except lance_errors() as error:
        raise CorruptTable(f"index segment {segment} can't be read", where=location, why=reason(error)) from error
    return VectorModel(
        metric, shape[1], values, centroids, codebook, int(stored["num_sub_vectors"]), int(stored["nbits"])
    )


def _metadata(reader: Any) -> dict[str, str]:
    return {key.decode(): value.decode() for key, value in (reader.metadata().schema.metadata or {}).items()}


def _tensor(message: bytes, segment: str) -> tuple[str, list[int], bytes]:
    """The type, the shape and the values."""
    told: dict[int, Any] = {}
    shape: list[int] = []
    for number, value in fields(message):
        told[number] = value
        if number == _SHAPE:
            shape += [value] if isinstance(value, int) else _packed_varints(value)
    if told[_TYPE] not in _TYPES:
        raise KeyError(f"numbers of type {told[_TYPE]} in segment {segment}")
    return _TYPES[told[_TYPE]], shape, told[_DATA]


def _packed_varints(packed: bytes) -> list[int]:
    found, value, shift = [], 0, 0
    for byte in packed:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            found.append(value)
            value = shift = 0
    return found


def _array(values: bytes, kind: str, dimension: int) -> pa.FixedSizeListArray:
    flat = pa.Array.from_buffers(_ARROW[kind], len(values) * 8 // _ARROW[kind].bit_width, [None, pa.py_buffer(values)])
    return pa.FixedSizeListArray.from_arrays(flat, dimension)


def _bytes(vectors: pa.FixedSizeListArray) -> bytes:
    flat = pa.concat_arrays([vectors.flatten()])
    width = flat.type.bit_width // 8
    return bytes(flat.buffers()[1])[flat.offset * width : (flat.offset + len(flat)) * width]


def _check_finite(vectors: pa.FixedSizeListArray, where: str, column: str) -> None:
    if not pc.all(pc.is_finite(vectors.flatten().cast(pa.float64()))).as_py():
        raise TableError(
            f"the model that Lance trained of column {column!r} has numbers that are none",
            where=where,
            why="there are too few different vectors for it",
            fix="Take fewer partitions (num_partitions).",
        )
