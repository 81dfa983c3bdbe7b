"""Values that are bytes as they are, or Arrow's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from laketier.codecs.arrow_ipc import ipc_batches
from laketier.codecs.decoding import Decoded, Decoder, Undecodable, one_batch, raise_if_nobodys, undecodable
from laketier.kit.conform import conform
from laketier.spi import IncompatibleData


@dataclass(frozen=True)
class RawDecoder(Decoder):
    """Values as they are, in one column of bytes."""

    schema: pa.Schema
    reads_tombstones: bool = True

    def read(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder.read`."""
        return Decoded(pa.record_batch([pa.array(values, pa.binary())], schema=self.schema), range(len(values)))


@dataclass(frozen=True)
class ArrowDecoder(Decoder):
    """Each value is an Arrow IPC stream or file, of any number of rows."""

    schema: pa.Schema

    def read(self, values: Sequence[bytes]) -> Decoded:
        """See `Decoder.read`. Columns are matched by name, and cast only where no value changes."""
        batches: list[pa.RecordBatch] = []
        index: list[int] = []
        bad: list[Undecodable] = []
        for position, value in enumerate(values):
            try:
                found = [conform(batch, self.schema) for batch in ipc_batches(pa.py_buffer(value), self.record_bytes)]
            except Exception as error:  # noqa: BLE001 - as in `Decoder.decode`, whose search for the one to blame it saves
                if not isinstance(error, IncompatibleData):
                    raise_if_nobodys(error)
                bad.append(undecodable(position, error))
                continue
            for batch in found:
                batches.append(batch)
                index.extend([position] * batch.num_rows)
        return Decoded(one_batch(batches, self.schema), index, bad)
