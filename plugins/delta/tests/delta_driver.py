"""One driver of a pipeline in a process of its own: ``delta_driver.py CONFTEST WAREHOUSE PIPELINE EPOCHS``. Prints how
many epochs it published."""

from __future__ import annotations

import importlib.util
import sys

from laketier.spi import Stale
from laketier.tiering import RoundOutcome

if __name__ == "__main__":
    conftest, warehouse, pipeline, epochs = sys.argv[1:]
    spec = importlib.util.spec_from_file_location("delta_support", conftest)
    assert spec is not None
    assert spec.loader is not None
    support = importlib.util.module_from_spec(spec)
    sys.modules["delta_support"] = support
    spec.loader.exec_module(support)
    lake = support.DeltaLake(warehouse, {})
    published = 0
    for epoch in range(int(epochs)):
        rows = support.ids(epoch) if epoch % 5 != 4 else support.ids()
        try:
            published += lake.epoch(epoch, rows, pipeline=pipeline).outcome is RoundOutcome.PUBLISHED
        except Stale:
            continue
    print(published)
