"""Rounds in a process of their own, to be killed or raced. Its argument is a job as JSON."""

from __future__ import annotations

import json
import sys

import pyarrow as pa
from laketier_localfile.plugin import LocalFilePlugin

from laketier.spi import LakeStorageConfig, Outcome, TablePath, Token, WriteMode, WriterInitContext, new_attempt_id
from laketier.tiering import TieringRound


def main() -> None:
    job = json.loads(sys.argv[1])
    storage = LocalFilePlugin().create_storage(LakeStorageConfig(job["warehouse"]))
    info = storage.catalog().load_table(TablePath.parse(job["table"]))
    factory = storage.tiering_factory(info)
    for epoch in job["epochs"]:
        token = Token(job["pipeline"], "run", epoch)
        work = TieringRound(factory, token=token, mode=WriteMode(job["mode"]))
        if work.begin() is Outcome.DONE:
            print("DONE", epoch, flush=True)
            continue
        results = []
        for part in range(2):
            writer = factory.create_writer(WriterInitContext(new_attempt_id(), split_index=part))
            ids = [epoch * 1000 + part * 2 + i for i in range(2)]
            writer.write(pa.RecordBatch.from_pydict({"id": ids, "region": ["r0", "r1"]}))
            results.append(writer.complete())
        print(work.commit(results).ending.name, epoch, flush=True)


if __name__ == "__main__":
    main()
