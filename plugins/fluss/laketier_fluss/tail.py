"""Where the log of a table with a primary key ends for certain.

A change that changes nothing (a key deleted that was not there, a second row for a table that keeps the first) takes an
offset in the log and is no record. The client does not tell its position, so at the end of a log nobody can tell such
offsets from records that are slow to come. Hence a bucket is said to end after its last record; that record then proves
that all before it was read, and the offsets after it wait for the next one.
"""

from __future__ import annotations

from typing import Any

from laketier_fluss.buckets import Bucket
from laketier_fluss.client import Client, Silence

_QUIET = 1.0
"""Seconds without a record after which there is none. If a server was slower than this, the end is only told later."""
_POLL_MS = 100
_FIRST, _STEP = 1, 256


async def proven_ends(
    client: Client, path: Any, bounds: dict[str, list[int]], known: dict[str, list[int]]
) -> dict[str, list[int]]:
    """``[earliest, proven end]`` of each bucket. ``known``: bucket → ``[latest, proven end]`` of an earlier look,
    which is brought up to date."""
    open_buckets = {
        bucket: latest
        for bucket, (earliest, latest) in bounds.items()
        if latest > earliest and known.get(bucket, [-1])[0] != latest
    }
    floor = {bucket: max(bounds[bucket][0], known.get(bucket, [0, 0])[1]) for bucket in open_buckets}
    ends: dict[str, int] = {}
    width = _FIRST
    while open_buckets:
        starts = {bucket: max(floor[bucket], latest - width) for bucket, latest in open_buckets.items()}
        last = await _last_records(client, path, starts, open_buckets)
        for bucket, start in starts.items():
            if bucket in last:
                ends[bucket] = last[bucket] + 1
            elif start == floor[bucket]:
                ends[bucket] = start
        open_buckets = {bucket: latest for bucket, latest in open_buckets.items() if bucket not in ends}
        width *= _STEP
    for bucket, (earliest, latest) in bounds.items():
        known[bucket] = [latest, ends.get(bucket, known.get(bucket, [latest, earliest])[1])]
    return {bucket: [earliest, max(earliest, known[bucket][1])] for bucket, (earliest, _) in bounds.items()}


async def _last_records(client: Client, path: Any, starts: dict[str, int], ends: dict[str, int]) -> dict[str, int]:
    """The offset of the last record in each range, where there is one."""

    async def look(fluss: Any) -> dict[str, int]:
        table = await fluss.get_table(path)
        names = {_place(Bucket.parse(bucket)): bucket for bucket in starts}
        scanner = await table.new_scan().create_log_scanner()
        subscribe(scanner, {Bucket.parse(bucket): start for bucket, start in starts.items()})
        last: dict[str, int] = {}
        quiet = Silence()
        while quiet.seconds < _QUIET and any(last.get(bucket, -1) < end - 1 for bucket, end in ends.items()):
            records = await scanner.poll(_POLL_MS)
            for place, found in records.items():
                last[names[place.partition_id, place.bucket_id]] = found[-1].offset
                quiet.heard()
        return last

    return await client.call("looking for the end of a log", look, str(path))


def _place(bucket: Bucket) -> tuple[int | None, int]:
    return (None if bucket.partition is None else bucket.partition.id), bucket.number


def subscribe(scanner: Any, starts: dict[Bucket, int]) -> None:
    """Have a scanner read these buckets from these offsets."""
    plain = {bucket.number: start for bucket, start in starts.items() if bucket.partition is None}
    if plain:
        scanner.subscribe_buckets(plain)
    for bucket, start in starts.items():
        if bucket.partition is not None:
            scanner.subscribe_partition(bucket.partition.id, bucket.number, start)
