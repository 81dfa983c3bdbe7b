"""Merged segments of a full-text index keep deleted rows, and merged IVF_PQ segments can't be merged again: pylance."""

# ruff: noqa: T201 - it prints its result

from __future__ import annotations

import tempfile

import lance
import numpy as np
import pyarrow as pa
from lance.dataset import Index
from lance.indices import IndicesBuilder

WORDS = ("lake", "river", "stream", "pond", "snow")


def committed(dataset: lance.LanceDataset, name: str) -> list[Index]:
    """The segments of an index, as the merge takes them."""
    found = next(each for each in dataset.describe_indices() if each.name == name)
    return [
        Index(
            uuid=each.uuid,
            name=name,
            fields=list(found.fields),
            dataset_version=each.dataset_version_at_last_update,
            fragment_ids=set(each.fragment_ids),
            index_version=each.index_version,
            index_details=(found.type_url, b""),
        )
        for each in found.segments
    ]


def top_score(uri: str) -> float:
    found = lance.dataset(uri).to_table(["id", "_score"], full_text_query="snow", limit=1)
    return found["_score"].to_pylist()[0]


def words(uri: str) -> None:
    """Delete nearly all rows with a word: its score is that of a rare word only after a build anew."""
    for first in (0, 500):
        ids = list(range(first, first + 500))
        texts = [f"{WORDS[each % 5]} number {each}" for each in ids]
        lance.write_dataset(pa.table({"id": ids, "doc": texts}), uri, mode="append")
    dataset = lance.dataset(uri)
    parts = [dataset.create_index_uncommitted("doc", "INVERTED", name="x", fragment_ids=[each]) for each in (0, 1)]
    finished = [dataset.merge_existing_index_segments([each]) for each in parts]
    dataset.commit_existing_index_segments("x", "doc", finished)
    lance.dataset(uri).delete("id % 5 = 4 AND id > 10")
    print(f"segments:     {top_score(uri):.3f}")
    dataset = lance.dataset(uri)
    merged = dataset.merge_existing_index_segments(committed(dataset, "x"))
    dataset.commit_existing_index_segments("x", "doc", [merged])
    print(f"merged:       {top_score(uri):.3f}")
    lance.dataset(uri).create_scalar_index("doc", "INVERTED", name="x", replace=True)
    print(f"built anew:   {top_score(uri):.3f}")


def vectors(uri: str) -> None:
    """Segments of one model: two are merged, and what came of it with a third."""
    numbers = np.random.default_rng(0)

    def add() -> None:
        values = pa.array(numbers.normal(size=2000 * 32).astype(np.float32))
        lance.write_dataset(pa.table({"v": pa.FixedSizeListArray.from_arrays(values, 32)}), uri, mode="append")

    add()
    add()  # a segment of all fragments that there are is transposed at once, too
    dataset = lance.dataset(uri)
    builder = IndicesBuilder(dataset, "v")
    coarse = builder.train_ivf(num_partitions=8, sample_rate=64)
    fine = builder.train_pq(coarse, num_subvectors=8, sample_rate=7)
    model = {"ivf_centroids": coarse.centroids, "num_partitions": 8, "pq_codebook": fine.codebook, "num_sub_vectors": 8}
    for number in range(3):
        if number > 1:
            add()
        dataset = lance.dataset(uri)
        part = dataset.create_index_uncommitted("v", "IVF_PQ", name="v", replace=True, fragment_ids=[number], **model)
        dataset.commit_existing_index_segments("v", "v", [part])
        dataset = lance.dataset(uri)
        if number:
            try:
                merged = dataset.merge_existing_index_segments(committed(dataset, "v"))
                dataset.commit_existing_index_segments("v", "v", [merged])
                print(f"IVF_PQ merge {number}: done")
            except RuntimeError as error:
                print(f"IVF_PQ merge {number}: {error}".partition(", /")[0])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        words(f"{folder}/words")
        vectors(f"{folder}/vectors")
