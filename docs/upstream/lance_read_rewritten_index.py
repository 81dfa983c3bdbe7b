"""A compaction that rewrites an index can't be read as a transaction. Nothing but pylance:

pip install "pylance==14.0.2"
python lance_read_rewritten_index.py
"""

# ruff: noqa: T201 - it prints its result

import tempfile

import lance
import pyarrow as pa

rows = pa.table({"id": pa.array(range(10), pa.int64())})
uri = tempfile.mkdtemp() + "/t.lance"
for _ in range(2):
    dataset = lance.write_dataset(rows, uri, mode="append")
dataset.create_scalar_index("id", "BTREE")
dataset.optimize.compact_files()
dataset = lance.dataset(uri)
for name, read in {
    "read_transaction": lambda: dataset.read_transaction(dataset.version),
    "get_transactions": lambda: dataset.get_transactions(1),
}.items():
    try:
        print(f"{name}:", read())
    except TypeError as error:
        print(f"{name}:", error)
