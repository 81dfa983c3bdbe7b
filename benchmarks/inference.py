"""The schema of a folder of 100,000 Parquet files: by a sample, and by all.

``python -m benchmarks.inference [FILES]`` makes the files in a temporary folder, and prints a line per way.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from laketier.connectors.files.folder import Folder
from laketier.connectors.files.inferring import infer_folder


def main(count: int) -> None:
    """Make them, and measure."""
    with tempfile.TemporaryDirectory(prefix="laketier-inference-") as name:
        root = Path(name)
        shapes = []
        for kind in (pa.int32(), pa.int64()):
            sink = pa.BufferOutputStream()
            columns = {"id": pa.array([1, 2], kind), **{f"c{at}": ["a", "b"] for at in range(9)}}
            pq.write_table(pa.table(columns), sink)
            shapes.append(sink.getvalue().to_pybytes())
        for at in range(count):
            folder = root / f"{at // 1000:03}"
            folder.mkdir(exist_ok=True)
            (folder / f"{at:06}.parquet").write_bytes(shapes[at % 2])
        for sample in (100, 1000, 10_000, None):
            begun = time.perf_counter()
            found = infer_folder(Folder(name, "."), sample=sample)
            print(f"{found.share}: {time.perf_counter() - begun:.2f} s, {len(found.schema)} columns", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
