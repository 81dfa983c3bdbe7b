"""Vector segments of fragments that rank wrong rows first. Nothing but pylance and numpy:

pip install "pylance==14.0.2" numpy
python lance_vector_segments.py
"""

# ruff: noqa: T201 - it prints its result

import tempfile

import lance
import numpy as np
import pyarrow as pa
from lance.indices import IndicesBuilder

ROWS, DIMENSION, PARTS = 4000, 32, 4
random = np.random.default_rng(0)
# The first fragments hold smaller numbers than the last ones.
vectors = random.normal(size=(ROWS, DIMENSION)) * np.repeat(np.arange(1, PARTS + 1), ROWS // PARTS)[:, None]
vectors = vectors.astype(np.float32)
queries = vectors[random.integers(0, ROWS, 50)]
uri = tempfile.mkdtemp() + "/t.lance"
rows = pa.table({"v": pa.FixedSizeListArray.from_arrays(vectors.reshape(-1), DIMENSION)})
lance.write_dataset(rows, uri, max_rows_per_file=ROWS // PARTS)


def nearest(query, metric, **more):
    asked = {"column": "v", "q": query, "k": 10, "metric": metric, **more}
    return set(lance.dataset(uri).scanner(columns=[], with_row_id=True, nearest=asked).to_table()["_rowid"].to_pylist())


def recall(metric):
    pairs = [(nearest(q, metric, nprobes=8), nearest(q, metric, use_index=False)) for q in queries]
    return float(np.mean([len(found & true) / len(true) for found, true in pairs]))


def committed(segments, metric):
    dataset = lance.dataset(uri)
    dataset.commit_existing_index_segments("i", "v", segments)
    found = recall(metric)
    lance.dataset(uri).drop_index("i")
    return f"{found:.2f}"


for kind, metric in (("IVF_PQ", "l2"), ("IVF_PQ", "dot"), ("IVF_SQ", "l2")):
    dataset = lance.dataset(uri)
    builder = IndicesBuilder(dataset, "v")
    ivf = builder.train_ivf(8, distance_type=metric)
    model = {"ivf_centroids": ivf.centroids, "num_partitions": 8, "metric": metric, "name": "i", "replace": True}
    if kind == "IVF_PQ":
        codebook = builder.train_pq(ivf, 16, sample_rate=15).codebook
        model |= {"pq_codebook": codebook, "num_sub_vectors": 16}

    def built(*fragments, kind=kind, model=model):
        return lance.dataset(uri).create_index_uncommitted("v", kind, fragment_ids=list(fragments), **model)

    print(kind, metric)
    print("  recall of one segment:", committed([built(*range(PARTS))], metric))
    print("  of four with the same model:", committed([built(each) for each in range(PARTS)], metric))
    if kind == "IVF_SQ":
        segments = [built(each) for each in range(PARTS)]
        print(
            "  of these four, merged:", committed([lance.dataset(uri).merge_existing_index_segments(segments)], metric)
        )
