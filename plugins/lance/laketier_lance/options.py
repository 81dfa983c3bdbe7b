"""The keys ``lake.lance.*``."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from laketier.kit.store_endpoint import asks_for_plain_http
from laketier.spi import Passthrough, option

GIGABYTE = 1024**3
_RETRY_TIMEOUT, _RETRY_SECONDS = "client_retry_timeout", 20
"""For so long a request that failed is sent again. Lance's own 180 s, with four tries of 30 s each, are one try of the
six that it makes of a listing: a store that accepts and says nothing would be waited for for twelve minutes. Shorter
than the 30 s of one request, so silence is met once in each of the six; refusals (503) are retried within a second."""


class DataStorageVersion(Enum):
    """Lance's file format, chosen when a table is created. Maps and nullable structs need the newer ones."""

    V2_0 = "2.0"
    V2_1 = "2.1"
    V2_2 = "2.2"


@dataclass(frozen=True)
class LanceOptions:
    """How data files are cut and encoded, and how the store is reached."""

    max_rows_per_file: int = option(1_048_576, "Rows after which the next data file (fragment) is begun.", least=1)
    max_bytes_per_file: int = option(
        90 * GIGABYTE,
        "Arrow bytes, before encoding, after which the next data file is begun; S3 ends at 100 GB.",
        least=1,
    )
    max_rows_per_group: int | None = option(
        None, "Refused: data files since 2.0 have no row groups. Their pages are sized by data-cache-bytes."
    )
    data_storage_version: DataStorageVersion = option(
        DataStorageVersion.V2_2, "File format of tables that are created here. Existing tables keep theirs."
    )
    data_cache_bytes: int = option(
        64 * 1024**2,
        "What a writer holds back, over all columns, to write larger pages. Bounds a task's memory.",
        least=1,
    )
    buffer_rows: int = option(
        131_072, "Rows that a writer collects from small batches before it encodes them.", least=1
    )
    split_rows: int = option(1_048_576, "Rows up to which small fragments are read together in one split.", least=1)
    storage: Passthrough = option(
        Passthrough(),
        "Handed to Lance's object store: region, endpoint, access_key_id, service_account, account_name, … An "
        "http endpoint allows plain HTTP by itself. One that says nothing fails a command after six times `timeout` "
        "(30s); later where `client_retry_timeout` (20, in seconds) is longer.",
    )

    def storage_options(self) -> dict[str, str]:
        """What Lance gets as ``storage_options``: the keys as given, leave to use plain HTTP where an endpoint asks for
        it, and an end to retries, where none is given. (That of Lance's environment variable counts more by itself.)"""
        leave = {"allow_http": "true"} if asks_for_plain_http(self.storage) else {}
        given = any(key.lower() == _RETRY_TIMEOUT for key in self.storage)
        patience = {} if given else {_RETRY_TIMEOUT: str(_RETRY_SECONDS)}
        return {**patience, **self.storage, **leave}
