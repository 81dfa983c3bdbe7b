"""The records of a range of one bucket. Only in a child."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from laketier.spi import ConfigError, OffsetsExpired, StorageError
from laketier_fluss.buckets import Bucket
from laketier_fluss.client import Client, Silence, brief, is_no_partition, is_passing
from laketier_fluss.rows import Asked, record_columns
from laketier_fluss.tail import subscribe

_POLL_MS = 200
_CHUNK_ROWS = 20_000


class Reading:
    """One request to read. Progress is the position: a batch or record at or after the last offset of the range."""

    def __init__(
        self, client: Client, path: Any, info: Any, request: dict[str, Any], send: Callable[..., None]
    ) -> None:
        self._client = client
        self._path = path
        self._info = info
        self._send = send
        self._bucket = Bucket.parse(request["bucket"])
        self._start, self._end = request["start"], request["end"]
        self._position = self._start
        self._asked = Asked(**request["asked"])
        self._rows = self._asked.by_row
        self._sent_schema = False

    async def run(self) -> None:
        """Send batches up to the range's end. Raises `OffsetsExpired`, `ConfigError` and `StorageError`."""
        silence = Silence()
        while self._position < self._end:
            try:
                await self._check_bounds()
                await self._read_on(silence)
            except _Away as away:
                if silence.seconds > self._client.timeout:
                    raise self._silent(str(away)) from None
                await asyncio.sleep(_POLL_MS / 1000)
        self._send({"last": True})

    async def _read_on(self, silence: Silence) -> None:
        from fluss import FlussError

        try:
            scanner = await self._client.call("a table was opened to be read", self._scanner, str(self._path))
            subscribe(scanner, {self._bucket: self._position})
            since_look = Silence()
            async for batch in self._batches(scanner):
                if batch is not None:
                    self._emit(batch)
                    silence.heard()  # the reader's time is not the server's
                    since_look.heard()
                elif silence.seconds > self._client.timeout:
                    raise self._silent(None)
                elif since_look.seconds > min(2.0, self._client.timeout / 4):
                    await self._check_bounds()
                    since_look.heard()
        except FlussError as error:
            if "out of range" in error.message:
                await self._check_bounds()
            if not is_passing(error):
                raise self._client.refusal(error, self._doing, str(self._path)) from None
            raise _Away(brief(error.message)) from None

    async def _scanner(self, fluss: Any) -> Any:
        table = await fluss.get_table(self._path)
        known = table.arrow_schema.names
        missing = [name for name in self._asked.columns if name not in known]
        if missing:
            raise ConfigError(
                f"the Fluss table has no columns {missing} any more",
                where=str(self._path),
                fix="Open it again: its schema changed.",
            )
        # Batches that were written before a column was added get it, with nulls.
        scan = table.new_scan().with_fixed_schema(True).project_by_name(self._asked.columns or known[:1])
        return await (scan.create_log_scanner() if self._rows else scan.create_record_batch_log_scanner())

    async def _batches(self, scanner: Any) -> AsyncIterator[pa.RecordBatch | None]:
        """Batches with the columns that were asked for; None for each wait in which nothing came."""
        while self._position < self._end:
            if self._rows:
                records = await scanner.poll(_POLL_MS)
                taken = [record for _, found in records.items() for record in found]
                await self._check_gap(taken[0].offset if taken else None)
                for start in range(0, len(taken), _CHUNK_ROWS):
                    yield self._of_records(taken[start : start + _CHUNK_ROWS])
                if not taken:
                    yield None
                continue
            found = await scanner.poll_record_batch(_POLL_MS)
            for each in found:
                await self._check_gap(each.base_offset)
                yield self._of_batch(each)
            if not found:
                yield None

    async def _check_gap(self, first: int | None) -> None:
        """Offsets without records are passed over; those whose records have expired are not."""
        if first is not None and first > self._position:
            await self._check_bounds()

    def _of_batch(self, found: Any) -> pa.RecordBatch:
        """What of it is in the range. The client has cut off what is before its start."""
        base, rows = found.base_offset, found.batch
        if base < self._position or rows.num_rows != found.last_offset - base + 1:
            raise StorageError(
                f"{rows.num_rows} records came for offsets {base} to {found.last_offset}, after {self._position - 1}",
                where=f"{self._path} {self._bucket}",
                fix="Run it again.",
            )
        kept = rows.slice(0, max(0, min(self._end - base, rows.num_rows)))
        self._position = found.last_offset + 1
        columns = {name: kept.column(name) for name in self._asked.columns}
        self._add_bucket(columns, kept.num_rows)
        if self._asked.offset is not None:
            columns[self._asked.offset] = pa.array(np.arange(base, base + kept.num_rows, dtype=np.int64))
        return self._asked.batch(columns, kept.num_rows)

    def _of_records(self, records: list[Any]) -> pa.RecordBatch:
        offsets = [record.offset for record in records]
        if any(after <= before for before, after in pairwise([self._position - 1, *offsets])):
            raise StorageError(
                f"records came out of order: offsets {offsets[0]} to {offsets[-1]}, after {self._position - 1}",
                where=f"{self._path} {self._bucket}",
                fix="Run it again.",
            )
        self._position = offsets[-1] + 1
        kept = [record for record in records if record.offset < self._end]
        columns = record_columns(kept, self._asked)
        self._add_bucket(columns, len(kept))
        return self._asked.batch(columns, len(kept))

    def _add_bucket(self, columns: dict[str, pa.Array], rows: int) -> None:
        if self._asked.bucket is not None:
            columns[self._asked.bucket] = pa.array(np.full(rows, self._bucket.number, dtype=np.int32))

    def _emit(self, batch: pa.RecordBatch) -> None:
        if not batch.num_rows:
            return
        if not self._sent_schema:
            self._send({"schema": True}, batch.schema.serialize())
            self._sent_schema = True
        self._send({"rows": batch.num_rows}, batch.serialize() if batch.num_columns else None)

    async def _check_bounds(self) -> None:
        """Raises when what is to be read next is not there any more: the client would wait for it."""
        from fluss import FlussError, OffsetSpec

        place = self._bucket.partition

        async def ask(fluss: Any) -> tuple[int, int] | None:
            admin, numbers = fluss.get_admin(), [self._bucket.number]
            found = []
            for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):
                if place is None:
                    offsets = await admin.list_offsets(self._path, numbers, spec)
                else:
                    try:
                        offsets = await admin.list_partition_offsets(self._path, place.name, numbers, spec)
                    except FlussError as error:
                        if is_no_partition(error):
                            return None
                        raise
                found.append(offsets[self._bucket.number])
            return found[0], found[1]

        bounds = await self._client.call("asking for offsets", ask, str(self._path))
        if bounds is None:
            raise partition_gone(str(self._path), str(self._bucket), self._position, self._end)
        if self._position < bounds[0]:
            raise expired(str(self._path), str(self._bucket), self._position, self._end, bounds[0])
        if self._end > bounds[1]:
            # A server that has just started may not know its end yet.
            raise _Away(f"the bucket ends at offset {bounds[1]}")

    @property
    def _doing(self) -> str:
        return f"offsets {self._start} to {self._end} of bucket {self._bucket} were read"

    def _silent(self, why: str | None) -> StorageError:
        return StorageError(
            f"Fluss sent nothing for {self._client.timeout:g} s, at offset {self._position} of {self._start} to "
            f"{self._end}",
            where=f"{self._path} {self._bucket}",
            why=why,
            fix="Check that this machine reaches the bucket's tablet server, or raise timeout-seconds.",
        )


class _Away(Exception):
    """The server is not there; read on when it is back."""


def expired(table: str, bucket: str, start: int, end: int, earliest: int) -> OffsetsExpired:
    """Fluss does not have ``start`` of ``bucket`` any more."""
    return OffsetsExpired(
        f"offsets {start} to {min(end, earliest) - 1} of bucket {bucket} are gone, of the range {start} to {end}",
        where=table,
        why=f"table.log.ttl deleted the records before {earliest}",
        fix="Raise table.log.ttl. To continue without them, set on-expired to skip.",
    )


def partition_gone(table: str, bucket: str, start: int, end: int) -> OffsetsExpired:
    """Its partition was dropped, with what was not read."""
    return OffsetsExpired(
        f"offsets {start} to {end - 1} of bucket {bucket} are gone",
        where=table,
        why="their partition was dropped",
        fix="Keep partitions for longer (table.auto-partition.num-retention). The next round skips the bucket.",
    )
