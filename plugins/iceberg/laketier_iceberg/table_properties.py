"""Properties of a table that each commit to it reads. Driver.

pyiceberg and `laketier_iceberg.expiry` read them once the data and the manifests are written. One that they don't
understand would end each commit there, as one whose outcome nobody knows. So they are looked at before.

Some properties name code, servers or credentials for pyiceberg. Whoever may write a table's metadata could name any, so
laketier takes these from the catalog's options alone. `refuse_opening` refuses such a table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from laketier.spi import ConfigError
from laketier_iceberg.locations import split

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

TARGET_FILE_SIZE = "write.target-file-size-bytes"
MAX_SNAPSHOT_AGE = "history.expire.max-snapshot-age-ms"
MIN_SNAPSHOTS = "history.expire.min-snapshots-to-keep"
MAX_REF_AGE = "history.expire.max-ref-age-ms"
EXPIRY = (MAX_SNAPSHOT_AGE, MIN_SNAPSHOTS, MAX_REF_AGE)
"""Read where commits expire snapshots."""
DELETE_OLD_METADATA = "write.metadata.delete-after-commit.enabled"
_MANIFEST_CODEC = "write.avro.compression-codec"
_LEAST = {
    TARGET_FILE_SIZE: 1,
    MAX_SNAPSHOT_AGE: 0,
    MIN_SNAPSHOTS: 0,
    MAX_REF_AGE: 0,
    "commit.manifest.target-size-bytes": 1,
    "commit.manifest.min-count-to-merge": 0,
    "write.metadata.previous-versions-max": 0,
    "write.summary.partition-limit": 0,
}
"""The whole numbers."""
_PLACES = ("write.data.path", "write.metadata.path")
"""Where files go. A path that is none would lead to whatever folder a process runs in."""
_SWITCHES = (
    "commit.manifest-merge.enabled",
    DELETE_OLD_METADATA,
    "write.object-storage.enabled",
    "write.object-storage.partitioned-paths",
)
_CLASS = "write.py-location-provider.impl"
"""pyiceberg imports what it names when it stages a commit. Reading a table does not."""
_FILE_IO = "py-io-impl"
"""pyiceberg imports what it names when it loads the table."""
_STORES = ("s3.", "adls.", "gcs.", "hdfs.", "hf.")
_ACCOUNT = frozenset(
    f"client.{each}"
    for each in (
        "profile-name",
        "region",
        "access-key-id",
        "secret-access-key",
        "session-token",
        "role-arn",
        "role-session-name",
    )
)
"""Not all below ``client.``, which is a word that people have for properties of their own."""
_DEFAULTS = ("DEFAULT_SCHEME", "DEFAULT_NETLOC")
"""By these, pyiceberg finds the store of a location that names none."""


def check_properties(properties: dict[str, str], where: str, *, unread: Collection[str] = ()) -> None:
    """Raise `ConfigError` for the first one that commits would stumble over, or that names code, of table ``where``.
    ``unread``: those that nobody reads there, so that what another tool left in them hinders nothing."""
    from pyiceberg.utils.properties import property_as_bool

    refuse_opening(properties, where)
    refuse_provider(properties, where)
    for key in _LEAST.keys() & properties.keys() - set(unread):
        if not _is_whole(properties[key], _LEAST[key]):
            raise _refused(key, properties[key], where, f"a whole number from {_LEAST[key]} on")
    for key in _SWITCHES:
        try:
            property_as_bool(properties, key, False)
        except ValueError as error:
            raise _refused(key, properties[key], where, "true or false") from error
    for key in _PLACES:
        parts = split(properties.get(key, "/"))
        if not (parts.authority or parts.path.startswith("/")):
            raise _refused(key, properties[key], where, "an absolute path or a URI")
    manifest_codec(properties, where)


def refuse_unopened(properties: Mapping[str, str], io: FileIO, where: str) -> None:
    """Raise `ConfigError` for a place of table ``where`` at which its FileIO opens no file. Asks no store."""
    for key in _PLACES:
        text = properties.get(key)
        if text is None:
            continue
        try:
            io.new_output(f"{text}/any")
        except ValueError as error:
            raise _refused(key, text, where, "where the FileIO of the catalog can open files") from error


def refuse_opening(properties: Mapping[str, str], where: str) -> None:
    """Raise `ConfigError` for a property by which the metadata of table ``where`` would choose how its files are
    opened: by which code, at which server, as who. It has to be asked before pyiceberg makes a `FileIO`."""
    if _FILE_IO in properties:
        raise _code(_FILE_IO, properties[_FILE_IO], where, "The catalog's option of that name is honoured.")
    for key in sorted(properties):
        if key.startswith(_STORES) or key in _ACCOUNT or key in _DEFAULTS:
            # Its value may be a password.
            raise ConfigError(
                f"the table property {key} says how files are opened",
                where=where,
                why="whoever may write the table's metadata could send credentials to a server of their own by it",
                fix="Take the property away with the engine that has set it. If it is right, set it as an option of "
                f"the catalog: lake.iceberg.catalog.{key}.",
            )


def refuse_provider(properties: Mapping[str, str], where: str) -> None:
    """Raise `ConfigError` where pyiceberg would import code that the table names to stage a commit."""
    if _CLASS in properties:
        raise _code(_CLASS, properties[_CLASS], where, "write.data.path says where files go, too.")


def _code(key: str, text: str, where: str, instead: str) -> ConfigError:
    return ConfigError(
        f"the table property {key} is {text!r:.200}",
        where=where,
        why="pyiceberg would import it, and laketier runs no code that a table's metadata names",
        fix=f"Take the property away with the engine that has set it. {instead}",
    )


def manifest_codec(properties: Mapping[str, str], where: str) -> str:
    """The codec of manifests, in pyiceberg's word for it. Raises `ConfigError` for one that this process lacks."""
    from pyiceberg.avro.codecs import CODEC_MAPPING_ICEBERG_TO_AVRO, KNOWN_CODECS

    text = properties.get(_MANIFEST_CODEC, "gzip")
    given = text.lower()
    name = "null" if given == "uncompressed" else CODEC_MAPPING_ICEBERG_TO_AVRO.get(given, given)
    try:
        codec = {str(known): made for known, made in KNOWN_CODECS.items()}[name]
        if codec is not None:
            codec.compress(b"")
    except (KeyError, ImportError) as error:
        raise _refused(_MANIFEST_CODEC, text, where, "gzip, zstd, deflate or uncompressed") from error
    return name


def _is_whole(text: str, least: int) -> bool:
    try:
        return int(text) >= least
    except ValueError:
        return False


def _refused(key: str, text: str, where: str, wanted: str) -> ConfigError:
    return ConfigError(
        f"the table property {key} is {text!r}, and it has to be {wanted}",
        where=where,
        why="each commit to the table reads it, and would fail",
        fix="Set it where the table is created, or with the engine that has set it, for example Spark.",
    )
