"""The time by the clock that dates a dataset's files."""

from __future__ import annotations

import tempfile
from contextlib import suppress

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as pafs

from laketier.spi import StorageError, time_of_storage
from laketier_lance.dataset import LANCE_ERRORS, lance_errors, open_dataset, reason
from laketier_lance.location import PROBE, local_path
from laketier_lance.options import LanceOptions
from laketier_lance.sessions import file_session


def storage_time(location: str, options: LanceOptions) -> int:
    """For `LakeCommitter.storage_time`. In an object store Lance tells the date of a file only by listing all of them,
    as it does when orphans are looked for. Raises `OSError` and `StorageError`."""
    local = local_path(location)
    if local is not None:
        return time_of_storage(pafs.LocalFileSystem(), str(local))
    try:
        session = file_session(location, options.storage_options())
        with tempfile.NamedTemporaryFile() as empty:
            session.upload_file(empty.name, PROBE)
        files = open_dataset(location, options.storage_options()).all_files().read_all()
        with suppress(*LANCE_ERRORS):  # another process asks for the time as well, and was faster
            session.delete_file(PROBE)
        # All that is listed was written before now, so the newest of it will do, also without the file above.
        newest = pc.max(files.column("last_modified").cast(pa.int64())).as_py()
    except lance_errors() as error:
        raise StorageError("the storage could not be asked for the time", where=location, why=reason(error)) from error
    return int(newest) // 1000
