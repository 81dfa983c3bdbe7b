"""The partitions of a batch are numbered by the places of their values, in 64 bits: with many columns, two get the same
number, and are one partition."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from richer import RicherSource, RicherWriter, richer

from laketier import spi
from laketier.kit.manifests import FileEntry
from laketier.kit.partition import partition_text
from laketier.registry import hookimpl

CAUGHT_BY = "test_partition_values.py::test_values_of_one_task_stay_apart"
SAYS = "rows were read by the filter k00 = 1: expected the ids [1, 4] (all rows, filtered by pyarrow), found [1]"


class NumberingWriter(RicherWriter):
    def _flush(self) -> None:
        rows = pa.Table.from_batches(self._parts).combine_chunks()
        self._parts, self._bytes = [], 0
        names = [field.column for field in self._table.descriptor.partition_by]
        codes = np.zeros(rows.num_rows, np.uint64)
        for name in names:
            encoded = rows[name].combine_chunks().dictionary_encode(null_encoding="encode")
            codes = codes * np.uint64(len(encoded.dictionary)) + encoded.indices.to_numpy().astype(np.uint64)
        for code in np.unique(codes):
            part = rows.filter(pa.array(codes == code))
            values = tuple(part[name][0].as_py() for name in names)
            self._files.append(self._file_of(len(self._files), names, values, part))


class SkippingSource(RicherSource):
    """Skips files by equality with the value of a partition, of any type."""

    def may(self, entry: FileEntry, leaf: spi.Predicate) -> bool:
        if not isinstance(leaf, spi.Leaf) or leaf.op is not spi.Op.EQ or leaf.column not in dict(entry.partition):
            return True
        try:
            return dict(entry.partition)[leaf.column] == partition_text(leaf.value)
        except spi.IncompatibleData:  # no value of a partition
            return True


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return richer("numbers-partitions-in-64-bits", writer=NumberingWriter, source=SkippingSource)
