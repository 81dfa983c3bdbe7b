"""A rival driver in a process of its own: publishes epochs of one pipeline until all of them are in the table."""

from __future__ import annotations

import sys

import pyarrow as pa

from laketier.spi import Decision, LakeStorageConfig, Stale, TablePath, Token, WriterInitContext, new_attempt_id
from laketier.tiering import RoundOutcome, TieringRound
from laketier_iceberg.options import IcebergOptions
from laketier_iceberg.storage import IcebergStorage


def main(warehouse: str, pipeline: str, epochs: int) -> None:
    storage = IcebergStorage(LakeStorageConfig(warehouse, IcebergOptions()))
    info = storage.catalog().load_table(TablePath("db", "events"))
    factory = storage.tiering_factory(info)
    print("ready", flush=True)
    sys.stdin.readline()
    conflicts = 0
    for epoch in range(epochs):
        round_ = TieringRound(factory, token=Token(pipeline, "run", epoch))
        # A rival may be ahead, at each moment: a real driver would end there; this one goes on with the next epoch.
        try:
            if round_.begin() is Decision.DONE:
                continue
        except Stale:
            continue
        writer = factory.create_writer(WriterInitContext(new_attempt_id()))
        if epoch % 5 != 4:
            rows = [f"{pipeline}-{epoch}-{i}" for i in range(10)]
            writer.write(pa.RecordBatch.from_pydict({"id": list(range(10)), "s": rows}))
        try:
            result = round_.commit([writer.complete()])
        except Stale:
            continue
        conflicts += result.conflicts
        assert result.outcome in set(RoundOutcome)
    print("conflicts", conflicts, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
