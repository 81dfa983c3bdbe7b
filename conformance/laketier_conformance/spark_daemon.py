"""Spark's daemon of Python workers, for a session of a few minutes: it imports what each worker needs before it forks
them. Spark forks several for each test, and an import of pyarrow, pandas and laketier took most of their time.

No plugin and no engine is among it: a worker imports the format under test as anywhere.
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress

_NEEDED = ("pyarrow.compute", "pyarrow.parquet", "pandas", "pyspark.worker", "laketier.spark.data_source")


def settings() -> dict[str, bool | float | int | str | None]:
    """What a session is built with to use it. Only Linux bears forks of such a process."""
    return {"spark.python.daemon.module": __name__} if sys.platform == "linux" else {}


def main() -> None:
    # Numpy's BLAS would start threads as it is imported.
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
    for name in (*_NEEDED, *sys.argv[1:]):
        with suppress(ImportError):  # the worker says so
            importlib.import_module(name)
    from pyspark.daemon import manager

    manager()


if __name__ == "__main__":
    main()
