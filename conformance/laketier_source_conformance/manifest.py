"""``python -m laketier_source_conformance.manifest SOURCE``: write the MANIFEST anew."""

from __future__ import annotations

import sys
from pathlib import Path

from laketier_conformance.manifest import write

if __name__ == "__main__":
    write(
        Path(__file__).with_name("MANIFEST"),
        "python -m laketier_source_conformance.manifest SOURCE",
        f"--log-source={sys.argv[1]}",
    )
