"""What a child answers. Only in a child: here pyfluss is loaded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from laketier.spi import TableChanged
from laketier_fluss.buckets import Bucket, Partition
from laketier_fluss.client import Client, is_no_partition
from laketier_fluss.reading import Reading
from laketier_fluss.tail import proven_ends

_PARTITIONS_AT_ONCE = 16
Send = Callable[..., None]


class Session:
    """Answers requests by their ``op``. ``send``: a header and, if there is one, its payload."""

    def __init__(self, settings: dict[str, str], timeout: float, send: Send) -> None:
        self._client = Client(settings, timeout)
        self._send = send

    async def answer(self, request: dict[str, Any]) -> None:
        """Raises `LaketierError`, which is an answer too."""
        await getattr(self, f"_{request['op']}")(request)

    async def _databases(self, request: dict[str, Any]) -> None:
        names = await self._client.call("listing its databases", lambda fluss: fluss.get_admin().list_databases())
        self._send({"names": names, "last": True})

    async def _tables(self, request: dict[str, Any]) -> None:
        database = request["database"]
        names = await self._client.call(
            "listing its tables", lambda fluss: fluss.get_admin().list_tables(database), database
        )
        self._send({"names": names, "last": True})

    async def _describe(self, request: dict[str, Any]) -> None:
        """The table as it is. Its schema is the payload."""
        name = request["table"]

        async def ask(fluss: Any) -> tuple[Any, Any]:
            # The client remembers tables that it has opened; the administrator asks.
            info = await fluss.get_admin().get_table_info(path_of(name))
            return info, (await fluss.get_table(path_of(name))).arrow_schema

        info, schema = await self._client.call("describing a table", ask, name)
        described = {
            "id": identity(info),
            "buckets": info.num_buckets,
            "bucket_keys": info.get_bucket_keys(),
            "partition_keys": info.get_partition_keys(),
            "primary_key": info.get_primary_keys(),
            "properties": {**info.get_properties(), **info.get_custom_properties()},
        }
        self._send({**described, "last": True}, schema.serialize())

    async def _bounds(self, request: dict[str, Any]) -> None:
        """Earliest and latest offset of each bucket; of a table with a primary key also the end that is proven, see
        `laketier_fluss.tail`. ``partitions``: these ids only, None for all. ``known``: what was answered before."""
        name = request["table"]
        info = await self.same_table(name, request["id"])
        numbers = list(range(info.num_buckets))
        partitions: list[Partition | None] = [None]
        if info.is_partitioned():
            found = await self._client.call(
                "listing partitions", lambda fluss: fluss.get_admin().list_partition_infos(path_of(name)), name
            )
            wanted = request.get("partitions")
            partitions = [
                Partition(each.partition_name, each.partition_id)
                for each in found
                if wanted is None or each.partition_id in wanted
            ]
        free = asyncio.Semaphore(_PARTITIONS_AT_ONCE)
        looks = await asyncio.gather(*(self._offsets(name, each, numbers, free) for each in partitions))
        bounds: dict[str, list[int]] = {str(bucket): ends for look in looks for bucket, ends in look.items()}
        known = request["known"]
        if info.has_primary_key():
            bounds = await proven_ends(self._client, path_of(name), bounds, known)
        self._send({"bounds": bounds, "known": known, "last": True})

    async def _offsets(
        self, name: str, partition: Partition | None, numbers: list[int], free: asyncio.Semaphore
    ) -> dict[Bucket, list[int]]:
        from fluss import FlussError, OffsetSpec

        async def ask(fluss: Any) -> tuple[dict[int, int], dict[int, int]] | None:
            admin, path = fluss.get_admin(), path_of(name)
            specs = (OffsetSpec.earliest(), OffsetSpec.latest())
            if partition is None:
                earliest, latest = [await admin.list_offsets(path, numbers, spec) for spec in specs]
                return earliest, latest
            try:
                earliest, latest = [
                    await admin.list_partition_offsets(path, partition.name, numbers, spec) for spec in specs
                ]
            except FlussError as error:
                if is_no_partition(error):
                    return None  # dropped since it was listed
                raise
            return earliest, latest

        async with free:
            found = await self._client.call("asking for offsets", ask, name)
        if found is None:
            return {}
        earliest, latest = found
        return {Bucket(number, partition): [max(0, earliest[number]), latest[number]] for number in numbers}

    async def same_table(self, name: str, table_id: str) -> Any:
        """What the server says of the table now. Raises `TableChanged` for another one under its name."""
        info = await self._client.call(
            "looking for a table", lambda fluss: fluss.get_admin().get_table_info(path_of(name)), name
        )
        if identity(info) != table_id:
            raise TableChanged(
                "the Fluss table was dropped and recreated",
                where=name,
                why=f"its id is {identity(info)}, and was {table_id} when it was opened",
                fix="Open it again. Decide first whether the lake table is kept, dropped or renamed.",
            )
        return info

    async def _read(self, request: dict[str, Any]) -> None:
        info = await self.same_table(request["table"], request["id"])
        await Reading(self._client, path_of(request["table"]), info, request, self._send).run()


def path_of(name: str) -> Any:
    """Of ``database.table``."""
    from fluss import TablePath

    return TablePath(*name.split(".", 1))


def identity(info: Any) -> str:
    """A cluster that was set up again counts its tables from zero again; so the time belongs to it."""
    return f"{info.table_id}@{info.created_time}"
