"""What a version of a Lance dataset needs, and `tracked_files` does not list. Nothing but pylance:

pip install "pylance==14.0.2"
python lance_tracked_files_incomplete.py
"""

# ruff: noqa: T201 - it prints its result

import tempfile
from datetime import timedelta

import lance
import pyarrow as pa
from lance.fragment import write_fragments

rows = pa.table({"id": pa.array(range(10), pa.int64())})


def listed(dataset, kind):
    """How many files of a kind `tracked_files` lists."""
    return sum(row["type"] == kind for row in dataset.tracked_files().read_all().to_pylist())


# 1: a branch that inherits an index.
dataset = lance.write_dataset(rows, tempfile.mkdtemp() + "/branch.lance")
dataset.create_scalar_index("id", "BTREE")
branch = dataset.create_branch("b", dataset.version)
print("1 index files of the branch's index:", listed(branch, "index file"), "of", listed(dataset, "index file"))

# 2: a detached version.
uri = tempfile.mkdtemp() + "/detached.lance"
dataset = lance.write_dataset(rows, uri)
append = lance.LanceOperation.Append(write_fragments(rows, uri, mode="append"))
detached = lance.LanceDataset.commit(dataset, lance.Transaction(1, append), detached=True)
print("2 data files of the detached version:", listed(detached, "data file"), "of", len(detached.get_fragments()))
dataset.cleanup_old_versions(older_than=timedelta(days=3650), delete_unverified=True)
try:
    print("2 its rows after a cleanup of orphans:", lance.dataset(uri, version=detached.version).to_table().num_rows)
except ValueError as error:
    print("2 its rows after a cleanup of orphans:", str(error).split(", ", 1)[0])
