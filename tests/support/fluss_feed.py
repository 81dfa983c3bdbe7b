"""Writes to Fluss for tests, from a process of its own: pyfluss must not be loaded where its end matters."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from typing import Any

import pyarrow as pa

Rows = list[dict[str, Any]]


class Feed:
    """The side of the test. Each call returns when the server has acknowledged it."""

    def __init__(self, bootstrap: str) -> None:
        command = [sys.executable, __file__, bootstrap]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def create(self, table: str, schema: pa.Schema, partitions: list[dict[str, str]] | None = None, **how: Any) -> str:
        """``how``: of ``TableDescriptor``, and ``primary_keys``. Waits until each bucket has a leader."""
        encoded = base64.b64encode(schema.serialize()).decode()
        self._ask(op="create", table=table, schema=encoded, how=how)
        for partition in partitions or ():
            self.create_partition(table, **partition)
        return table

    def create_partition(self, table: str, **values: str) -> None:
        self._ask(op="create_partition", table=table, values=values)

    def drop_partition(self, table: str, **values: str) -> None:
        self._ask(op="drop_partition", table=table, values=values)

    def drop(self, table: str) -> None:
        self._ask(op="drop", table=table)

    def append(self, table: str, rows: Rows) -> None:
        """Rows of one partition."""
        self._ask(op="append", table=table, rows=rows)

    def upsert(self, table: str, rows: Rows) -> None:
        self._ask(op="upsert", table=table, rows=rows)

    def delete(self, table: str, rows: Rows) -> None:
        self._ask(op="delete", table=table, rows=rows)

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()

    def _ask(self, **request: Any) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline())
        assert answer is None, answer


class _Writer:
    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._admin = connection.get_admin()
        self._writers: dict[tuple[str, str], Any] = {}

    async def create(self, path: Any, schema: str, how: dict[str, Any]) -> None:
        import fluss

        columns = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(schema)))
        keys = how.pop("primary_keys", None)
        await self._admin.create_database(path.database_name, None, True)
        described = fluss.TableDescriptor(fluss.Schema(columns, primary_keys=keys), **how)
        await self._admin.create_table(path, described)
        if not how.get("partition_keys"):
            await self._until_led(path, how["bucket_count"])

    async def _until_led(self, path: Any, count: int, partition: str | None = None) -> None:
        import fluss

        deadline = time.monotonic() + 60
        while True:
            try:
                spec, buckets = fluss.OffsetSpec.latest(), list(range(count))
                if partition is None:
                    await self._admin.list_offsets(path, buckets, spec)
                else:
                    await self._admin.list_partition_offsets(path, partition, buckets, spec)
                return
            except fluss.FlussError:
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(0.05)

    async def create_partition(self, path: Any, values: dict[str, str]) -> None:
        await self._admin.create_partition(path, values)
        table = await self._connection.get_table(path)
        await self._until_led(path, table.get_table_info().num_buckets, "$".join(values.values()))

    async def drop_partition(self, path: Any, values: dict[str, str]) -> None:
        await self._admin.drop_partition(path, values)

    async def drop(self, path: Any) -> None:
        await self._admin.drop_table(path)

    async def append(self, path: Any, rows: Rows) -> None:
        table = await self._connection.get_table(path)
        writer = table.new_append().create_writer()
        writer.write_arrow_batch(pa.RecordBatch.from_pylist(rows, schema=table.arrow_schema))
        await writer.flush()

    async def upsert(self, path: Any, rows: Rows) -> None:
        writer = (await self._connection.get_table(path)).new_upsert().create_writer()
        for row in rows:
            writer.upsert(row)
        await writer.flush()

    async def delete(self, path: Any, rows: Rows) -> None:
        writer = (await self._connection.get_table(path)).new_upsert().create_writer()
        for row in rows:
            writer.delete(row)
        await writer.flush()


async def _serve(bootstrap: str) -> None:
    import fluss

    deadline = time.monotonic() + 60
    while True:
        try:
            connection = await fluss.FlussConnection.create(fluss.Config({"bootstrap.servers": bootstrap}))
            if len(await connection.get_admin().get_server_nodes()) == 2:
                break
        except fluss.FlussError:
            if time.monotonic() > deadline:
                raise
        await asyncio.sleep(0.1)
    writer = _Writer(connection)
    for line in sys.stdin:
        request = json.loads(line)
        path = fluss.TablePath(*request.pop("table").split("."))
        try:
            await getattr(writer, request.pop("op"))(path, **request)
            print("null", flush=True)
        except Exception as error:  # noqa: BLE001 - the test shall show it
            print(json.dumps(repr(error)), flush=True)


if __name__ == "__main__":
    asyncio.run(_serve(sys.argv[1]))
    sys.stdout.flush()
    os._exit(0)
