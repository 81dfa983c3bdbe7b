"""The harness of this format for the conformance suite: a foreign rollback, clean-up, compaction, delete and update,
and tables of others. Not used otherwise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar

from laketier.spi import LakeStorage, TableInfo
from laketier_lance.dataset import open_dataset
from laketier_lance.foreign_tables import TABLES

if TYPE_CHECKING:
    from laketier_conformance.stores import ObjectStore


class LanceHarness:
    """Found by the entry point ``lance`` of group ``laketier.conformance``."""

    engine_modules = ("lance",)
    foreign_tables = TABLES
    text_options: ClassVar[Mapping[str, Any]] = {"with_position": True, "stem": False, "remove_stop_words": False}
    vector_options: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "ivf-flat": {"num_partitions": 4},
        "ivf-sq": {"num_partitions": 4},
        "ivf-pq": {"num_partitions": 4, "num_sub_vectors": 2, "num_bits": 4},
        "ivf-hnsw-flat": {"num_partitions": 2},
    }

    option_sets: ClassVar[Sequence[Mapping[str, str]]] = (
        {"max-rows-per-file": "2", "split-rows": "1", "buffer-rows": "1", "data-storage-version": "2.0"},
        {"max-bytes-per-file": "1", "data-cache-bytes": "1", "data-storage-version": "2.1"},
    )
    odd_properties: ClassVar[Mapping[str, Sequence[str]]] = {
        "lance.auto_cleanup.interval": ("1", "0", "x"),
        "lance.auto_cleanup.older_than": ("0s", "1ms", "x"),
    }

    def set_property(self, storage: LakeStorage, table: TableInfo, key: str, value: str | None) -> None:
        """Lance's own configuration of a dataset. What laketier calls properties of a table is a note of its own."""
        dataset = open_dataset(table.location, {})
        if value is None:
            dataset.delete_config_keys([key])
        else:
            dataset.update_config({key: value})

    def object_store(self, store: ObjectStore) -> dict[str, str]:
        """The library gives up early: its patience is not under test."""
        more = {"timeout": "1s", "client_max_retries": "1", "client_retry_timeout": "5"}
        more |= {"virtual_hosted_style_request": "false"}
        return {f"storage.{name}": value for name, value in {**store.usual_options, **more}.items()}

    def roll_back(self, storage: LakeStorage, table: TableInfo, snapshot_id: int) -> None:
        """Lance's own way back to an older version."""
        open_dataset(table.location, {}, snapshot_id).restore()  # type: ignore[no-untyped-call] # pylance has no types for it

    def expire(self, storage: LakeStorage, table: TableInfo) -> None:
        """Lance's own clean-up of versions."""
        open_dataset(table.location, {}).cleanup_old_versions(timedelta(0))

    def erase(self, storage: LakeStorage, table: TableInfo) -> None:
        """The metadata of the schema is replaced, as by one that writes its own there."""
        open_dataset(table.location, {}).update_schema_metadata({}, replace=True)

    def compact(self, storage: LakeStorage, table: TableInfo) -> None:
        """Lance's own compaction."""
        open_dataset(table.location, {}).optimize.compact_files()

    def delete_rows(self, storage: LakeStorage, table: TableInfo, ids: Sequence[int]) -> None:
        """Lance's own delete, which writes a list of deleted rows beside the file."""
        open_dataset(table.location, {}).delete(f"id IN ({', '.join(map(str, ids))})")

    def update_rows(self, storage: LakeStorage, table: TableInfo, ids: Sequence[int], column: str, text: str) -> None:
        """Lance's own update, which writes the rows anew into another file."""
        where = f"id IN ({', '.join(map(str, ids))})"
        open_dataset(table.location, {}).update({column: f"'{text}'"}, where=where)
