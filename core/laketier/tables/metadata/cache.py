"""The cache of tables' metadata: memory, then the disk of this host, then the table itself."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from laketier.config import LakeConfig
from laketier.registry import Lake
from laketier.spi import TableInfo, TablePath
from laketier.tables.metadata.counts import Counts, Statistics
from laketier.tables.metadata.disk import Disk
from laketier.tables.metadata.key import file_name, key_parts, same_warehouse, table_key
from laketier.tables.metadata.look import look
from laketier.tables.metadata.saving import FLUSH_SECONDS
from laketier.tables.metadata.tiers import Tiers, awake_and_asleep

MEMORY_BYTES = 64 * 1024 * 1024
DISK_BYTES = 64 * 1024 * 1024
TTL_SECONDS = 3600.0


class MetadataCache:
    """Keeps the descriptions of tables, as `LakeCatalog.load_table` gives them. Safe in threads; one per process.

    What is kept is served only if `LakeCatalog.table_version` names the state that it was loaded in; a format that
    can't name one is loaded each time. So what is served is as new as what `load_table` would give. Nothing of it is
    given to `LakeCommitter.open` or `publish`.

    Args:
        folder: Of the disk tier. None for none.
        memory_bytes: What descriptions and handles may take.
        disk_bytes: What the files may take.
        ttl: Seconds after which a description is loaded anew, behind. One that is twice as old is not served.
        clock: A clock that never goes back, in seconds.
    """

    def __init__(
        self,
        folder: Path | None,
        *,
        memory_bytes: int = MEMORY_BYTES,
        disk_bytes: int = DISK_BYTES,
        ttl: float = TTL_SECONDS,
        clock: Callable[[], float] = awake_and_asleep,
    ) -> None:
        self.tiers = Tiers(folder, memory_bytes=memory_bytes, disk_bytes=disk_bytes, ttl=ttl, clock=clock)

    @property
    def counts(self) -> Counts:
        """What it did."""
        return self.tiers.counts

    @property
    def disk(self) -> Disk:
        """The tier on the disk."""
        return self.tiers.disk

    # -- looking up -------------------------------------------------------------------------------------------------

    def described(self, lake: Lake) -> TableInfo:
        """The table of ``lake.config``, perhaps without a handle, and from the disk of this host. For who needs its
        schema and its place. With `lake.metadata-cache-max-age` it may be that old. Raises as `Lake.load_table`."""
        return look(self.tiers, lake, with_handle=False)

    def opened(self, lake: Lake) -> TableInfo:
        """The table of ``lake.config``, with a handle where its format has one, as it is now. For who goes on with its
        state. Raises as `Lake.load_table`."""
        return look(self.tiers, lake, with_handle=True)

    # -- forgetting and looking at it -------------------------------------------------------------------------------

    def changed(self, config: LakeConfig) -> None:
        """Tell that this process committed to the table, altered or dropped it, or found it otherwise than it was
        described: what is kept is checked before it is served again, also where it need not be."""
        key = table_key(config)
        entry = None if key is None else self.tiers.memory.get(key.text)
        if entry is not None:
            entry.must_check = True

    def distrust(self, config: LakeConfig) -> None:
        """Throw away what is kept of a table, and don't wait: a round that was planned with it failed."""
        key = table_key(config)
        if key is not None:
            self.tiers.memory.drop(key.text)
            self.tiers.saving.drop_behind(key)

    def forget(self, config: LakeConfig) -> bool:
        """Throw away what is kept of a table, in memory and on the disk. Returns whether the disk had it."""
        key = table_key(config)
        if key is None:
            return False
        self.tiers.memory.drop(key.text)
        self.flush(FLUSH_SECONDS)
        return bool(self.tiers.saving.drop([key.name]))

    def forget_all(self, config: LakeConfig, table: TablePath | None) -> int:
        """Throw away what is kept of a table, or of all tables of its warehouse: also of dropped ones, and what was
        described with other options or by other releases. Asks the warehouse nothing. Returns of how many tables there
        were files."""
        key = table_key(config)
        if key is None:
            return 0
        self.flush(FLUSH_SECONDS)
        for entry in self.tiers.memory.entries():
            if same_warehouse(key.text, entry.key.text, table):
                self.tiers.memory.drop(entry.key.text)
        files = self.files_of(config, table)
        return len({files[name] for name in self.tiers.saving.drop(list(files))})

    def files_of(self, config: LakeConfig, table: TablePath | None) -> dict[str, str]:
        """The names of the files of a table, or of all tables of its warehouse, without their ends, and of which table
        each is: one that was described with other options, or by other releases, has several."""
        key = table_key(config)
        keys = [] if key is None else [saved.key for saved, _ in self.disk.entries()]
        ours = [each for each in keys if key is not None and same_warehouse(key.text, each, table)]
        return {file_name(each): parts.table for each in ours if (parts := key_parts(each)) is not None}

    def clear(self) -> int:
        """Throw away everything, in memory and on the disk. Returns of how many tables there were files."""
        self.tiers.memory.clear()
        return self.tiers.saving.clear()

    def flush(self, seconds: float | None = None) -> bool:
        """Wait until all that has to be saved is saved, at most for ``seconds``. Returns whether it is."""
        return self.tiers.saving.flush(seconds)

    def statistics(self) -> Statistics:
        """What is in memory, and what was counted."""
        entries, now = self.tiers.memory.entries(), self.tiers.clock()
        oldest = max((now - entry.loaded_at for entry in entries), default=None)
        return Statistics(len(entries), self.tiers.memory.bytes, oldest, self.counts.as_dict())
