"""How a refusal of the storage is told."""

from __future__ import annotations

import errno

import pytest

from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import StorageError

FULL = (
    "Generic LocalFileSystem error\n          \x1b[31m↳\x1b[0m Unable to copy data to file\n"
    "           \x1b[31m↳\x1b[0m No space left on device (os error 28)\n"
)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), OSError(FULL)])
def test_a_full_disk_says_what_to_do_whichever_library_met_it(error: OSError) -> None:
    with pytest.raises(StorageError, match="o space left on device") as refused, naming_storage_errors("it ran"):
        raise error
    told = "Free some space in the place of lake.warehouse, or in the folder of temporary files. Nothing"
    assert told in str(refused.value), "no library names the path"


def test_a_full_disk_is_told_by_its_path_where_that_is_known() -> None:
    with pytest.raises(StorageError) as refused, naming_storage_errors("it ran"):
        raise OSError(errno.ENOSPC, "No space left on device", "/spill/1")
    assert str(refused.value).startswith("/spill/1: ")
    assert "Free some space. Nothing" in str(refused.value)


def test_a_refusal_is_told_in_one_line_without_colours() -> None:
    with pytest.raises(StorageError) as refused, naming_storage_errors("it ran"):
        raise OSError(FULL)
    assert refused.value.why == (
        "generic LocalFileSystem error: Unable to copy data to file: No space left on device (os error 28)"
    )
