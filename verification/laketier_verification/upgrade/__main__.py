"""``python -m laketier_verification.upgrade COMMIT``: from that version to this one, and back. Exit code 1 when a row
is lost or there twice, or a version ends without a sentence."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from laketier_verification.upgrade import service
from laketier_verification.upgrade.shop import Shop
from laketier_verification.upgrade.versions import Version, former, today

FORMATS = ("localfile", "delta", "iceberg", "lance")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m laketier_verification.upgrade", description=__doc__)
    parser.add_argument("commit")
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--walks", default="service,fleet")
    parser.add_argument("--folder", type=Path)
    asked = parser.parse_args()
    folder = (asked.folder or Path(tempfile.mkdtemp(prefix="laketier-upgrade-"))).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    formats = tuple(asked.formats.split(","))
    old, new = former(asked.commit, folder), today()
    bad = 0
    for name in asked.walks.split(","):
        for line in _walk(name, old, new, folder / name, formats):
            print(f"{name}: {line}", flush=True)
            bad += not line.partition("\n")[0].endswith(("fine", "one of its own:"))
    return 1 if bad else 0


def _walk(name: str, old: Version, new: Version, folder: Path, formats: tuple[str, ...]) -> Iterator[str]:
    folder.mkdir()
    shop = Shop(folder, formats, "sqlite:///service.db")
    if name == "service":
        yield from service.walk(old, new, shop)
    else:
        yield from service.fleet(old, new, shop, 30)


if __name__ == "__main__":
    sys.exit(main())
