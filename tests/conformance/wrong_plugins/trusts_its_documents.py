"""A table keeps options as JSON beside it. No JSON, or a key too few, is refused; a value of another kind is not."""

from __future__ import annotations

import json
from pathlib import Path

from crooked import CrookedPlugin

from laketier import kit, spi
from laketier.registry import hookimpl

CAUGHT_BY = "test_damage.py::test_each_value_is_another"
SAYS = "no error of laketier's, but TypeError"


class OptionsCatalog(kit.ManifestCatalog):
    def create_table(self, path: spi.TablePath, descriptor: spi.TableDescriptor) -> spi.TableInfo:
        info = super().create_table(path, descriptor)
        file = Path(info.location, "options.json")
        if not file.exists():
            file.write_text(json.dumps({"compression": {"codec": "zstd", "level": 3}}))
        return info

    def load_table(self, path: spi.TablePath) -> spi.TableInfo:
        info = super().load_table(path)
        file = Path(info.location, "options.json")
        try:
            options = json.loads(file.read_bytes()) if file.exists() else {"compression": {"level": 0}}
            self.level = options["compression"]["level"] + 1
        except (ValueError, KeyError, RecursionError) as error:
            raise spi.CorruptTable("the options can't be read", where=str(file), why=repr(error)) from error
        return info


@hookimpl
def laketier_format() -> CrookedPlugin:
    return CrookedPlugin("trusts-its-documents", catalog=OptionsCatalog)
