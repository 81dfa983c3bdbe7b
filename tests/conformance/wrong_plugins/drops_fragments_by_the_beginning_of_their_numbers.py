"""Fragments that an upsert replaces are told from those that stay by how their numbers begin: with 1 go 10 to 19, and
with them their rows."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from laketier import spi
from laketier.registry import hookimpl
from laketier_lance.committer import LanceCommitter
from laketier_lance.harness import LanceHarness
from laketier_lance.plugin import LancePlugin
from laketier_lance.storage import LanceStorage, LanceTieringFactory

CAUGHT_BY = "test_upsert.py::test_a_file_is_replaced_whose_name_others_contain"
SAYS = "of these were replaced: expected 16 entries, found 11; 5 are missing"


class Committer(LanceCommitter):
    def _operation(self, schema: Any, present: list[Any], fragments: list[Any], replaced: Collection[str]) -> Any:
        gone = {str(each.id) for each in present if any(str(each.id).startswith(number) for number in replaced)}
        return super()._operation(schema, present, fragments, gone)


class Factory(LanceTieringFactory):
    def create_committer(self, context: spi.CommitterInitContext) -> Committer:
        return Committer(self.target.table.location, self.target.options, context)


class Storage(LanceStorage):
    def tiering_factory(self, table: spi.TableInfo) -> Factory:
        return Factory(super().tiering_factory(table).target)


class Plugin(LancePlugin):
    identifier = "drops-fragments-by-the-beginning-of-their-numbers"

    def create_storage(self, config: spi.LakeStorageConfig) -> spi.LakeStorage:
        made: Any = super().create_storage(config)
        return Storage(made._warehouse, made._options)


class Harness(LanceHarness):
    pass


@hookimpl
def laketier_format() -> spi.LakeStoragePlugin:
    return Plugin()
