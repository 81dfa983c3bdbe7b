"""What a write result says of a file, and what a manifest keeps of it.

Of Parquet files both are what older versions know. An entry of another file format names it, and such manifests have a
version that older ones refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laketier.kit.manifests import FORMAT_DETAIL
from laketier.spi import StagedFile
from laketier_localfile.file_formats.interface import Described
from laketier_localfile.names import PARQUET
from laketier_localfile.parquet import stats_from_text, stats_to_text


def claim(file_format: str, described: Described, seal: str) -> dict[str, str]:
    """The payload of a staged file."""
    stats = stats_to_text(described.stats)
    if file_format == PARQUET:
        return {"footer": described.digest, "stats": stats}
    return {FORMAT_DETAIL: file_format, "digest": described.digest, "seal": seal, "stats": stats}


def format_of(details: Mapping[str, Any]) -> str:
    """The file format that a payload, or an entry's details, name."""
    return str(details.get(FORMAT_DETAIL, PARQUET))


def seal_of(file: StagedFile) -> str | None:
    """What `FileFormat.seal` gave of the file when it was written."""
    payload = file.payload
    return payload.get("footer" if format_of(payload) == PARQUET else "seal")


def details_of(file: StagedFile) -> dict[str, Any]:
    """The details of the manifest's entry. Raises `KeyError` where the payload has none."""
    payload = file.payload
    digest = payload["footer" if format_of(payload) == PARQUET else "digest"]
    return entry_details(format_of(payload), Described(digest, stats_from_text(payload["stats"])))


def entry_details(file_format: str, described: Described) -> dict[str, Any]:
    """The details of the manifest's entry of a file of that format."""
    if file_format == PARQUET:
        return {"footer": described.digest, "stats": described.stats}
    return {FORMAT_DETAIL: file_format, "digest": described.digest, "stats": described.stats}


def digest_of(details: Mapping[str, Any]) -> str:
    """The digest that `FileFormat.check` asks for, of an entry's details."""
    return str(details["footer" if format_of(details) == PARQUET else "digest"])
