"""``PYTHON foreign_indexing.py ray|daft LOCATION COLUMN OPTIONS``: full-text indexes by another project's library.

Builds one for each line on its input and answers with a line. It runs in that project's own environment, so it imports
nothing of ours.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import lance


def main() -> None:
    """Start the engine and build once for each line."""
    engine, location, column, options = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4])
    build = {"ray": _ray, "daft": _daft}[engine]()
    print("ready", flush=True)
    for _ in sys.stdin:
        dataset = lance.dataset(location)
        for index in dataset.describe_indices():
            dataset.drop_index(index.name)
        build(location, column, options)
        print("built", flush=True)


def _ray() -> Any:
    import lance_ray
    import ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)

    def build(location: str, column: str, options: dict[str, Any]) -> None:
        lance_ray.create_scalar_index(
            location, column=column, index_type="INVERTED", name=f"{column}_idx", num_workers=2, **options
        )

    return build


def _daft() -> Any:
    import daft_lance

    def build(location: str, column: str, options: dict[str, Any]) -> None:
        daft_lance.create_scalar_index(
            location, column=column, index_type="INVERTED", name=f"{column}_idx", num_partitions=2, **options
        )

    return build


if __name__ == "__main__":
    main()
