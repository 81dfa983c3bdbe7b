"""The columns of a table: given by the user, or those of its first file, kept in the ledger for good."""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.compute as pc

from laketier.codecs.arrow_types import parse_columns
from laketier.connectors.files.folder import Folder
from laketier.connectors.files.headers import schema_of
from laketier.connectors.files.inferring import infer_folder
from laketier.connectors.files.ledger import Ledger
from laketier.connectors.files.local import Astray, escaped
from laketier.connectors.files.options import LandingTableOptions
from laketier.connectors.files.readers import UnreadableFile, check_types
from laketier.kit.storage_errors import naming_storage_errors
from laketier.spi import ConfigError, IncompatibleData, LogTable

log = logging.getLogger(__name__)


def table_of(folder: Folder, options: LandingTableOptions, ledger: Ledger) -> LogTable:
    """Raises `ConfigError` when the columns can't be told, or are of types that the format does not have."""
    origin = f"the table {folder.name!r}"
    schema = parse_columns(options.columns, prefix="read.columns.", origin=origin)
    if schema is None:
        schema = ledger.pinned_schema() or ledger.pin_schema(_of_first_file(folder, options, ledger, origin))
    check_types(schema, options, origin=origin)
    return LogTable(name=folder.name, table_id=ledger.ledger_id, schema=schema)


def _of_many(folder: Folder, options: LandingTableOptions, origin: str) -> pa.Schema:
    """What several files can all be read as. Names of files do not decide: the table's format is configured."""
    try:
        found = infer_folder(folder, options, sample=options.infer_files or None)
    except IncompatibleData as error:
        raise ConfigError(
            "the columns can't be taken from the files",
            where=origin,
            why=str(error),
            fix="Give the columns as read.columns.<name> = <Arrow type>.",
        ) from error
    log.info("%s: the columns are taken from files: %s", origin, found.share)
    return found.schema


def _of_first_file(folder: Folder, options: LandingTableOptions, ledger: Ledger, origin: str) -> pa.Schema:
    if options.format.is_text and not options.infer:
        raise ConfigError(
            f"the columns are unknown, as {options.format.value} does not tell their types",
            where=origin,
            fix="Give them as read.columns.<name> = <Arrow type>, or set read.infer to take them from the first file.",
        )
    with naming_storage_errors("the columns were looked up", setting="the source's options"):
        ledger.refresh()
        listed = folder.listed().files
        if not len(listed):
            raise ConfigError(
                "the folder holds no file yet, so the columns are unknown",
                where=origin,
                fix="Land a file first, or give the columns as read.columns.<name> = <Arrow type>.",
            )
        order = pc.sort_indices(
            pa.table({"at": listed.places_in(ledger.files) % (len(ledger) + 1), "t": listed.mtimes, "p": listed.paths}),
            sort_keys=[("at", "ascending"), ("t", "ascending"), ("p", "ascending")],
        )
        if options.infer_files != 1:
            return _of_many(folder, options, origin)
        first = listed[order[0].as_py()].path
        try:
            found = schema_of(folder, first, options)
            if not len(found):
                raise UnreadableFile("its records have no fields, and rows without any column would be lost")
            return found
        except (UnreadableFile, Astray) as error:
            raise ConfigError(
                f"the columns can't be taken from the first file, {escaped(first)}",
                where=origin,
                why=str(error),
                fix="Give the columns as read.columns.<name> = <Arrow type>.",
            ) from error
