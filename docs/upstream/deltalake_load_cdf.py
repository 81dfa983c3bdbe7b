"""Shows both: python deltalake_load_cdf.py"""

# ruff: noqa: T201 - it prints its result

import tempfile

import deltalake
import pyarrow as pa

FEED = {"delta.enableChangeDataFeed": "true"}

with tempfile.TemporaryDirectory() as folder:
    rows = pa.table({"id": [7, 8], "name": ["old", "old"]})
    deltalake.write_deltalake(folder, rows, configuration=FEED)
    deltalake.write_deltalake(folder, pa.table({"id": [7], "name": ["new"]}), mode="overwrite")
    feed = pa.table(deltalake.DeltaTable(folder).load_cdf(starting_version=1).read_all())
    for row in feed.select(["_commit_version", "_change_type", "id", "name"]).to_pylist():
        print(row)

with tempfile.TemporaryDirectory() as folder:
    rows = pa.table({"id": [1], "part": ["a b/c%"]})
    deltalake.write_deltalake(folder, rows, partition_by=["part"], configuration=FEED)
    print(deltalake.DeltaTable(folder).to_pyarrow_table().to_pylist())
    print(pa.table(deltalake.DeltaTable(folder).load_cdf().read_all()).to_pylist())
